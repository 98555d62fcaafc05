"""Files in the layout of the paper's real data with a few rows each: noise, but for a difference between the groups."""

import csv

import numpy as np

from experiments.data.files import PROTEINS, SIGNALS

MICE_CLASSES = ("t-SC-m", "t-SC-s", "c-SC-s", "c-CS-s")


def small_arrays(name):
    """Give the arrays of an .npz file."""
    rng = np.random.default_rng(0)

    def pixels(*shape):
        return rng.integers(0, 256, shape, dtype=np.uint8)

    if name == "mnist.npz":
        images, labels = pixels(24, 28, 28), np.repeat([6, 9], 12).astype(np.uint8)
        images[:12, :14] //= 4
        return {"images": images, "labels": labels}
    if name in ("cifar10_frogs.npz", "cifar100_girls.npz"):
        n = 60 if name == "cifar10_frogs.npz" else 36
        return {"images": pixels(n, 32, 32), "is_test": np.zeros(n, np.uint8)}
    if name == "yaleb.npz":
        person, angle = np.repeat([1, 2, 3, 4], 4), np.zeros(16, np.int16)
        images = pixels(16, 192, 168) // 4 + (30 * person[:, None, None]).astype(np.uint8)
        return {"images": images, "person": person, "azimuth": angle, "elevation": angle}
    label, subject = (part.ravel() for part in np.meshgrid(np.repeat([1, 3, 6, 7, 9], 12), [1, 2], indexing="ij"))
    return {
        "X": np.trunc(rng.normal(size=(120, 23)).astype(np.float32) * (1 + label[:, None])),
        "label": label,
        "subject": subject,
        "row": np.arange(120),
        "columns": np.array(SIGNALS),
        "full_precision": np.zeros(23, bool),
    }


def mouse_table():
    """Give the rows of the table of mice, the header first."""
    rng = np.random.default_rng(0)
    rows = [
        [f"{name}_{row}", *map(str, rng.normal(1.0, 0.1, 77).round(4)), name]
        for name in MICE_CLASSES
        for row in range(8)
    ]
    return [["MouseID", *PROTEINS, "class"], *rows]


def write_table(path, rows):
    with path.open("w", newline="") as text:
        csv.writer(text).writerows(rows)


def write_small(folder, *names):
    """Write some of the files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if name.endswith(".csv"):
            write_table(folder / name, mouse_table())
        else:
            np.savez(folder / name, **small_arrays(name))
