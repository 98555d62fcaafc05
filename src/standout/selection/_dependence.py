"""Whether neighbouring rows are alike, and over how many rows that lasts: looked for in the scores, in row order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

import numpy as np
import numpy.typing as npt

from standout._arrays import Array, Float, Rows, double
from standout._messages import Message
from standout._xp import namespace, take, to_host
from standout.sources import Source

# Rows are looked at in windows of this length, or of a quarter of the rows; fewer than the least tell nothing.
WINDOW, LEAST_WINDOW, PARTS = 50, 12, 4
MOST_WINDOWS = 40
# Rows are alike if the likeness is above this, and so far above its standard error that chance does not explain it.
LIKE, SURELY = 0.2, 3.3
# Components whose scores are looked at, at most.
MOST_COMPONENTS = 3


def windows(n_rows: int) -> npt.NDArray[np.intp] | None:
    """Give the numbers of rows in windows spread evenly over a dataset; None if there are too few rows to tell."""
    size = min(WINDOW, n_rows // PARTS)
    if size < LEAST_WINDOW:
        return None
    starts = np.linspace(0, n_rows - size, min(n_rows // size, MOST_WINDOWS)).astype(np.intp)
    return starts[:, None] + np.arange(size)


def likeness(scores: Float) -> float:
    """How much more alike are neighbouring rows than others near them, beyond what chance explains?

    The von Neumann ratio, 1 minus half the mean squared step over the variance: 0 for independent rows, near 1 where
    each row is nearly the one before it. It is taken in windows, and its median is given: rows that are sorted by class
    have few windows with a change, and are not alike for that.

    Parameters
    ----------
    scores : ndarray of shape (n_windows, size, d)

    Returns
    -------
    float
        The largest of the d columns; 0 if it is not surely more than chance.
    """
    n_windows, size, _ = scores.shape
    xp = namespace(scores)
    largest = xp.max(abs(scores), axis=(0, 1))
    scores = scores / xp.where(largest > 0.0, largest, 1.0)
    variances = to_host(xp.var(scores, axis=1)) * (size / (size - 1.0))
    steps = 0.5 * to_host(xp.mean((scores[:, 1:, :] - scores[:, :-1, :]) ** 2, axis=1))
    # Scores that are equal but for rounding are not alike for that.
    varying = variances > 1e-18
    ratios = np.where(varying, 1.0 - steps / np.where(varying, variances, 1.0), 0.0)
    found = float(np.median(ratios, axis=0).max())
    error = (1.0 if n_windows < 3 else 1.25) / sqrt(n_windows * size)
    return found if found > max(LIKE, SURELY * error) else 0.0


def likeness_of(datasets: Sequence[Source], project: Callable[[Rows], Array]) -> float:
    """Give the largest `likeness` of the scores of datasets in memory; 0 without any."""
    found = [0.0]
    for dataset in datasets:
        places = windows(dataset.n_rows or 0) if dataset.in_memory else None
        if places is not None:
            scores = double(project(take(dataset.rows(), places.ravel())))
            width = min(int(scores.shape[1]), MOST_COMPONENTS)
            found.append(likeness(namespace(scores).reshape(scores[:, :width], (*places.shape, width))))
    return max(found)


def alike_message(found: float) -> Message:
    """Say that neighbouring rows are alike, and what to do."""
    return Message(
        "neighbouring rows are alike (von Neumann ratio of the scores {found:.2f}; independent rows have about 0), so "
        "p-values are too small, and rows that were held out are not new",
        found=found,
        advice="If several rows are of one subject, name it: {p.groups}. If rows are in the order of time, use "
        "{p.blocks:auto}.",
        kind="alike rows",
    )
