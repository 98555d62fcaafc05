"""Downloads of real data by pooch and scikit-learn, each turned into the file that `real` reads."""

from __future__ import annotations

import csv
import gzip
import importlib.util
import io
import os
import tarfile
import warnings
import zipfile
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import fetch_openml

from experiments.data.files import MICE_CLASSES, PROTEINS, SIGNALS

Pixels = npt.NDArray[np.uint8]

OPENML_MICE = 40966
# Addresses and SHA-256. Of CIFAR the binary versions: those for Python are pickles, which can run code.
CIFAR_10 = (
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
)
CIFAR_100 = (
    "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
    "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
)
UCI_319 = (
    "https://archive.ics.uci.edu/static/public/319/mhealth+dataset.zip",
    "16ad0ce709f3f00df18f348610d15bce0884b79e2143f57f446493673f02b8e0",
)
MNIST_IMAGES = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/train-images-idx3-ubyte.gz",
    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
)
MNIST_LABELS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/train-labels-idx1-ubyte.gz",
    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
)

FROG, GIRL = 6, 35
SUBJECTS = (1, 2, 3, 4)
ACTIVITIES = (1, 3, 6, 7, 9)


def cache_folder() -> Path | None:
    """Return the user's cache folder for downloads; None if pooch, which makes them, is missing."""
    try:
        import pooch
    except ImportError:
        return None
    return Path(pooch.os_cache("standout"))


def fetch(name: str, folder: Path | None = None) -> Path:
    """Download what a file is made from, and make it in a folder: complete under its name, or not there at all."""
    cache = cache_folder()
    if cache is None:
        raise ImportError(
            "downloads need the package 'pooch'. Install it with: pip install pooch, or install all packages of "
            "standout's extra 'experiments'."
        )
    folder = folder or cache
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # In the same folder, so that the file can be renamed in a single step.
        with TemporaryDirectory(prefix=".download-", dir=folder) as scratch:
            made = Path(scratch, name)
            MAKERS[name](made)
            os.replace(made, folder / name)
    # What a server out of reach, a damaged transfer or a changed dataset can raise.
    except (OSError, EOFError, ValueError, KeyError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise OSError(
            f"{name} could not be downloaded to {folder}: {type(error).__name__}: {error}. Try again later, or get the "
            "file by other means."
        ) from error
    return folder / name


def make_mice(made: Path) -> None:
    """Write the mice of OpenML as a table; scikit-learn compares them with OpenML's own digest."""
    words = ["MouseID", "class"]
    # The parser of pandas also reads targets of which only some are nominal.
    parser = "pandas" if importlib.util.find_spec("pandas") else "liac-arff"
    with warnings.catch_warnings():
        # Columns that OpenML does not count as data are asked for on purpose.
        warnings.filterwarnings("ignore", message="target_column=")
        table = fetch_openml(data_id=OPENML_MICE, target_column=words, as_frame=False, parser=parser, cache=False)
    found = Counter(str(label) for _, label in table.target)
    if found != MICE_CLASSES:
        raise ValueError(f"OpenML has {dict(found)} rows per class, but {MICE_CLASSES} are expected")
    order = [table.feature_names.index(protein) for protein in PROTEINS]
    with made.open("w", newline="", encoding="utf-8") as text:
        writer = csv.writer(text)
        writer.writerow([*words, *PROTEINS])
        for names, numbers in zip(table.target, table.data[:, order].tolist(), strict=True):
            writer.writerow([*names, *("" if np.isnan(number) else repr(number) for number in numbers)])


def make_mnist(made: Path) -> None:
    """Write the training digits."""
    images = np.frombuffer(gzip.decompress(_retrieve(MNIST_IMAGES, made).read_bytes()), np.uint8, offset=16)
    labels = np.frombuffer(gzip.decompress(_retrieve(MNIST_LABELS, made).read_bytes()), np.uint8, offset=8)
    np.savez_compressed(made, images=images.reshape(-1, 28, 28), labels=labels)


def make_frogs(made: Path) -> None:
    """Write the frogs of CIFAR-10 in grey."""
    parts = [f"cifar-10-batches-bin/data_batch_{number}.bin" for number in range(1, 6)]
    _make_photographs(made, CIFAR_10, parts, "cifar-10-batches-bin/test_batch.bin", 1, FROG)


def make_girls(made: Path) -> None:
    """Write the girls of CIFAR-100 in grey. An image has two labels there, a coarse and a fine one."""
    _make_photographs(made, CIFAR_100, ["cifar-100-binary/train.bin"], "cifar-100-binary/test.bin", 2, GIRL)


def make_mhealth(made: Path) -> None:
    """Write four subjects and five activities of MHealth, every signal as precise as in the logs."""
    logs, chosen = [], []
    with zipfile.ZipFile(_retrieve(UCI_319, made)) as archive:
        for subject in SUBJECTS:
            with archive.open(f"MHEALTHDATASET/mHealth_subject{subject}.log") as lines:
                log = np.loadtxt(io.TextIOWrapper(lines, encoding="ascii"), ndmin=2)
            rows = np.flatnonzero(np.isin(log[:, -1], ACTIVITIES))
            logs.append(log[rows])
            chosen.append(rows)
    kept = np.vstack(logs)
    np.savez_compressed(
        made,
        X=kept[:, :-1],
        label=kept[:, -1].astype(np.int8),
        subject=np.repeat(SUBJECTS, [len(rows) for rows in chosen]).astype(np.int8),
        row=np.concatenate(chosen).astype(np.int32),
        columns=np.array(SIGNALS),
        full_precision=np.ones(len(SIGNALS), dtype=bool),
    )


MAKERS = {
    "mice_protein.csv": make_mice,
    "mnist.npz": make_mnist,
    "cifar10_frogs.npz": make_frogs,
    "cifar100_girls.npz": make_girls,
    "mhealth.npz": make_mhealth,
}


def grey(colours: Pixels) -> Pixels:
    """Turn colours, red, green and blue along the second axis, into the nearest grey (ITU-R BT.601)."""
    red, green, blue = (colours[:, channel].astype(np.int32) for channel in range(3))
    # Integers throughout, so that halves are rounded up exactly.
    return ((299 * red + 587 * green + 114 * blue + 500) // 1000).astype(np.uint8)


def _retrieve(source: tuple[str, str], made: Path) -> Path:
    """Download a file into the folder of the one that is made from it; pooch checks the digest."""
    import pooch

    address, digest = source
    return Path(pooch.retrieve(address, known_hash=f"sha256:{digest}", path=made.parent))


def _make_photographs(
    made: Path, source: tuple[str, str], training: list[str], test: str, n_labels: int, label: int
) -> None:
    """Write the images with one label, those for training first."""
    with tarfile.open(_retrieve(source, made), "r:gz") as archive:
        parts = [_read_photographs(archive.extractfile(name), n_labels, label) for name in (*training, test)]
    is_test = np.repeat([0, 1], [sum(map(len, parts[:-1])), len(parts[-1])]).astype(np.uint8)
    np.savez_compressed(made, images=np.concatenate(parts), is_test=is_test)


def _read_photographs(member: Any, n_labels: int, label: int) -> Pixels:
    """Read the images of one class from records: labels, the finest last, then red, green and blue pixels."""
    records = np.frombuffer(member.read(), dtype=np.uint8).reshape(-1, n_labels + 3 * 32 * 32)
    chosen = records[records[:, n_labels - 1] == label]
    return grey(chosen[:, n_labels:].reshape(-1, 3, 32, 32))
