"""The paper's targets and backgrounds, taken from the real data.

Where the files hold fewer rows than the paper has, fewer are taken: the run of an experiment notices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import Bunch

from experiments.data.real import Dataset

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

SIDE = 28


def make_digits_over_frogs(
    mnist: Dataset,
    frogs: Dataset,
    *,
    digits: tuple[int, int] = (6, 9),
    n_per_digit: int = 1000,
    n_background: int = 3000,
    intensity: float = 0.25,
    random_state: int = 0,
) -> Bunch:
    """Lay handwritten digits over frogs, against other frogs: the data of the paper's Table I.

    A target image is a frog plus ``intensity`` times a digit (white is 1, sums above 1 are not cut off). All frogs are
    different ones, cropped to 28 x 28 pixels at random places. The paper does not tell which digits and frogs were
    used, nor the intensity; at 0.25 and 0.5 PCA fails as printed there, with a clustering error near one half.

    Examples
    --------
    Four blank pages and five grey squares, in place of the files:

    >>> import numpy as np
    >>> from experiments.data import Dataset, make_digits_over_frogs
    >>> mnist = Dataset(np.zeros((4, 28, 28), np.uint8), np.array([6, 6, 9, 9]))
    >>> frogs = Dataset(np.full((5, 32, 32), 51, np.uint8), np.zeros(5, int))
    >>> data = make_digits_over_frogs(mnist, frogs, n_per_digit=1, n_background=3)
    >>> data.target.shape, data.backgrounds[0].shape, data.labels
    ((2, 784), (3, 784), array([6, 9]))
    >>> float(data.target.mean())
    0.2
    """
    rng = np.random.default_rng(random_state)
    labels, ink, over, apart = _drawn_images(mnist, frogs, digits, n_per_digit, n_background, rng)
    return Bunch(
        target=_flat(_cropped(over, rng)) + intensity * ink,
        backgrounds=(_flat(_cropped(apart, rng)),),
        labels=labels,
        description=f"28 x 28 pixels: digits {_and(digits)} hidden over frogs; one background",
        image_shape=(SIDE, SIDE),
    )


def make_digits_over_girls(
    mnist: Dataset,
    girls: Dataset,
    *,
    digits: tuple[int, int] = (6, 9),
    n_per_digit: int = 200,
    n_background: int = 200,
    intensity: float = 0.5,
    random_state: int = 0,
) -> Bunch:
    """Lay handwritten digits over girls, against the halves of other girls: the data of the paper's Fig. 10.

    A target image is a photograph of a girl, resized to 28 x 28 pixels, plus ``intensity`` times a digit. Both
    backgrounds come from the same other photographs, cropped to 28 x 28 pixels at random places: the first keeps the
    upper half of each (features 1 to 392), the second the lower half, with zeros in place of the rest. The paper states
    neither the intensity nor which images were used.

    Examples
    --------
    Four blank pages and five grey squares, in place of the files:

    >>> import numpy as np
    >>> from experiments.data import Dataset, make_digits_over_girls
    >>> mnist = Dataset(np.zeros((4, 28, 28), np.uint8), np.array([6, 6, 9, 9]))
    >>> girls = Dataset(np.full((5, 32, 32), 51, np.uint8), np.zeros(5, int))
    >>> data = make_digits_over_girls(mnist, girls, n_per_digit=1, n_background=3)
    >>> [background[0, [0, 391, 392, 783]].tolist() for background in data.backgrounds]
    [[0.2, 0.2, 0.0, 0.0], [0.0, 0.0, 0.2, 0.2]]
    """
    rng = np.random.default_rng(random_state)
    labels, ink, over, apart = _drawn_images(mnist, girls, digits, n_per_digit, n_background, rng)
    photographs = _flat(_cropped(apart, rng))
    upper, lower = photographs.copy(), photographs
    upper[:, upper.shape[1] // 2 :] = 0.0
    lower[:, : lower.shape[1] // 2] = 0.0
    return Bunch(
        target=_flat(_resized(over)) + intensity * ink,
        backgrounds=(upper, lower),
        labels=labels,
        description=f"28 x 28 pixels: digits {_and(digits)} hidden over girls; two backgrounds, half an image each",
        image_shape=(SIDE, SIDE),
    )


def mice_contrast(
    mice: Dataset,
    *,
    target: Sequence[str] = ("t-SC-m", "t-SC-s"),
    background: Sequence[str] = ("c-SC-s",),
    missing: float | None = None,
) -> Bunch:
    """Take classes of mice against other classes: by default, the data of the paper's Fig. 3.

    By default, 135 rows of mice with Down syndrome that were given memantine and 132 of such that were not, against 135
    rows of healthy mice. Rows in which more than half of the proteins are missing are left out. Other missing values
    become ``missing``, or by default the mean of the protein over all rows used. The paper does not say what it took,
    nor which of the two healthy classes of 135 rows; ``c-SC-s`` had the behaviour of the target.

    Examples
    --------
    Four mice and two proteins, in place of the file:

    >>> import numpy as np
    >>> from experiments.data import Dataset, mice_contrast
    >>> X = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 4.0], [np.nan, np.nan]])
    >>> mice = Dataset(X, np.array(["t-SC-m", "t-SC-s", "c-SC-s", "c-SC-s"]))
    >>> data = mice_contrast(mice)
    >>> data.target.tolist(), data.labels.tolist(), data.backgrounds
    ([[1.0, 2.0], [3.0, 3.0]], ['t-SC-m', 't-SC-s'], (array([[5., 4.]]),))
    """
    measured = np.isnan(mice.X).mean(axis=1) <= 0.5
    chosen = _by_label(mice.labels, (*target, *background), measured)
    used = mice.X[np.concatenate(list(chosen.values()))]
    if missing is None and (empty := np.isnan(used).all(axis=0)).any():
        raise ValueError(
            f"{empty.sum()} of {len(empty)} proteins have no value in the rows used, so that they have no mean"
        )
    X = np.where(np.isnan(mice.X), np.nanmean(used, axis=0) if missing is None else missing, mice.X)
    description = f"{X.shape[1]} proteins: mice of class {_and(target)} against {_and(background)}"
    rows, others, labels = _split(X, mice.labels, chosen, target, background)
    return Bunch(target=rows, backgrounds=others, labels=labels, description=description)


def mhealth_contrast(
    mhealth: Dataset,
    *,
    subject: int = 1,
    target: Sequence[int] = (3, 7),
    background: Sequence[int] = (1,),
    n_per_label: int = 100,
    random_state: int = 0,
) -> Bunch:
    """Take activities of one person against standing still: the data of the paper's Figs. 6 and 7.

    The default is the first test; ``target=(6, 9)``, waist bends and cycling, gives the second. The paper tells neither
    the person nor the rows: they are drawn at random here, and kept in time order. Unless all signals have full
    precision, several are constant while standing still, so that the background covariance is singular.

    Examples
    --------
    Six rows of two signals, in place of the file:

    >>> import numpy as np
    >>> from experiments.data import Dataset, mhealth_contrast
    >>> labels = np.array([1, 1, 3, 3, 7, 7])
    >>> mhealth = Dataset(np.arange(12.0).reshape(6, 2), labels, {"subject": np.ones(6, int)})
    >>> data = mhealth_contrast(mhealth, n_per_label=2)
    >>> data.labels.tolist(), data.backgrounds[0].tolist()
    ([3, 3, 7, 7], [[0.0, 1.0], [2.0, 3.0]])
    """
    rng = np.random.default_rng(random_state)
    every = _by_label(mhealth.labels, (*target, *background), mhealth.details["subject"] == subject)
    n_rows = min(n_per_label, *map(len, every.values()))
    chosen = {label: np.sort(rng.permutation(rows)[:n_rows]) for label, rows in every.items()}
    description = f"{mhealth.X.shape[1]} sensor signals: activities {_and(target)} against {_and(background)}"
    rows, others, labels = _split(mhealth.X, mhealth.labels, chosen, target, background)
    return Bunch(target=rows, backgrounds=others, labels=labels, description=description)


def faces_contrast(
    faces: Dataset, *, target: Sequence[int] = (1, 2), background: Sequence[int] = (3,), n_images: int = 60
) -> Bunch:
    """Take the first images of two people against those of a third one: the data of the paper's Fig. 8.

    Rows have 32,256 pixels from 0 to 1; the lights are the same for all people. The paper tells neither the people nor
    the images. With the defaults, its clustering error of kernel discriminative PCA comes out exactly.

    Examples
    --------
    Six small images of three people, in place of the file:

    >>> import numpy as np
    >>> from experiments.data import Dataset, faces_contrast
    >>> images = np.repeat([0, 51, 255], 2).astype(np.uint8)[:, None, None] * np.ones((1, 3, 2), np.uint8)
    >>> data = faces_contrast(Dataset(images, np.repeat([1, 2, 3], 2)), n_images=1)
    >>> data.target[:, 0], data.labels, data.backgrounds[0].shape, data.image_shape
    (array([0. , 0.2]), array([1, 2]), (1, 6), (3, 2))
    """
    every = _by_label(faces.labels, (*target, *background))
    n_rows = min(n_images, *map(len, every.values()))
    chosen = {person: rows[:n_rows] for person, rows in every.items()}
    images, others, labels = _split(faces.X, faces.labels, chosen, target, background)
    height, width = faces.X.shape[1:]
    description = f"{height} x {width} pixels: faces of people {_and(target)} against {_and(background)}"
    return Bunch(
        target=_flat(images),
        backgrounds=tuple(map(_flat, others)),
        labels=labels,
        description=description,
        image_shape=(height, width),
    )


def _by_label(labels: Array, wanted: Sequence[Any], usable: Any = True) -> dict[Any, Rows]:
    """Find the usable rows of each label, which must have some."""
    found = {label: np.flatnonzero(usable & (labels == label)) for label in wanted}
    for label, rows in found.items():
        if not len(rows):
            raise ValueError(f"there are no rows of {label!r} in the data, which have {_and(np.unique(labels))}")
    return found


def _split(
    X: Array, labels: Array, chosen: dict[Any, Rows], target: Sequence[Any], background: Sequence[Any]
) -> tuple[Array, tuple[Array, ...], Array]:
    """Return the target, the backgrounds and the labels of the target."""
    rows = np.concatenate([chosen[label] for label in target])
    return X[rows], tuple(X[chosen[label]] for label in background), labels[rows]


def _drawn_images(
    mnist: Dataset,
    photographs: Dataset,
    digits: tuple[int, int],
    n_per_digit: int,
    n_background: int,
    rng: np.random.Generator,
) -> tuple[Array, Floats, Array, Array]:
    """Draw labels, digits, photographs below the digits, and other photographs; of fewer images, the same shares."""
    by_digit = _by_label(mnist.labels, digits)
    share = min(
        1.0,
        len(photographs.X) / (2 * n_per_digit + n_background),
        *(len(rows) / n_per_digit for rows in by_digit.values()),
    )
    n_digits, n_others = int(n_per_digit * share), int(n_background * share)
    order = rng.permutation(len(photographs.X))
    images = np.concatenate([rng.permutation(by_digit[digit])[:n_digits] for digit in digits])
    over, apart = np.split(order[: 2 * n_digits + n_others], [2 * n_digits])
    return np.repeat(digits, n_digits), _flat(mnist.X[images]), photographs.X[over], photographs.X[apart]


def _cropped(images: Array, rng: np.random.Generator) -> Array:
    """Cut a square at a random place out of each image."""
    windows = np.lib.stride_tricks.sliding_window_view(images, (SIDE, SIDE), axis=(1, 2))
    tops, lefts = (rng.integers(windows.shape[axis], size=len(images)) for axis in (1, 2))
    return windows[np.arange(len(images)), tops, lefts]


def _resized(images: Array) -> Floats:
    """Scale square images down: each new pixel is the mean brightness of the area it covers."""
    side = images.shape[1]
    starts = np.arange(SIDE)[:, None] * side / SIDE
    old = np.arange(side)
    overlap = np.minimum(starts + side / SIDE, old + 1) - np.maximum(starts, old)
    weights = np.clip(overlap, 0.0, None) * SIDE / side
    return weights @ images.astype(np.float64) @ weights.T


def _flat(images: Array) -> Floats:
    """Return one image per row, black at 0 and white at 1."""
    rows: Floats = images.reshape(len(images), -1) / 255.0
    return rows


def _and(names: Any) -> str:
    return " and ".join(str(name) for name in names)
