"""Whether neighbouring rows are alike, and over how many rows that lasts: looked for in the scores, in row order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

import numpy as np
import numpy.typing as npt

from standout._arrays import Array, Float, Rows, double
from standout._messages import Message, warn_user
from standout._xp import namespace, take, to_host
from standout.sources import Source

# Rows are looked at in windows of this length, or of a quarter of the rows; fewer than the least tell nothing.
WINDOW, LEAST_WINDOW, PARTS = 50, 12, 4
MOST_WINDOWS = 40
# Rows are alike if the likeness is above this, and so far above its standard error that chance does not explain it.
LIKE, SURELY = 0.2, 3.3
# Components whose scores are looked at, at most.
MOST_COMPONENTS = 3
# Blocks are so many autocorrelation times long, or shorter where a dataset would have fewer than so many of them.
LONG_ENOUGH, LEAST_BLOCKS = 8.0, 12
# Autocorrelations are summed up over so many autocorrelation times.
WINDOWS = 5.0


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
    """Give the largest `likeness` of the scores of datasets in memory; 0 without any. The scores may have any mean."""
    found = [0.0]
    for dataset in datasets:
        places = windows(dataset.n_rows or 0) if dataset.in_memory else None
        if places is not None:
            rows, chosen = dataset.rows(), places.ravel()
            # A copy of most rows takes longer than the scores of the rest.
            most = 2 * len(chosen) > rows.shape[0]
            scores = double(take(project(rows), chosen) if most else project(take(rows, chosen)))
            scores = scores[:, : min(int(scores.shape[1]), MOST_COMPONENTS)]
            scores = scores - scores[:1, :]
            found.append(likeness(namespace(scores).reshape(scores, (*places.shape, scores.shape[1]))))
    return max(found)


def block_length(scores: Sequence[Float], n_rows: int) -> int:
    """How many neighbouring rows make a block that is independent of the next one, nearly?

    Several times as many as the rows over which the scores remember: 8 integrated autocorrelation times, by Sokal's
    window. A block is at most a twelfth of the smallest dataset, which has `n_rows`; if that is too short, a warning
    says so.
    """
    most = max(_memory(part[:, column]) for part in scores for column in range(min(part.shape[1], MOST_COMPONENTS)))
    wanted, longest = int(np.ceil(LONG_ENOUGH * most)), max(n_rows // LEAST_BLOCKS, 1)
    if wanted > longest:
        warn_user(
            "rows remember about {memory:.0f} rows before them, and blocks should be {wanted} rows long, but a dataset "
            "with {n_rows} rows has few such blocks: they are {longest} rows long, and p-values may be too small",
            memory=most,
            wanted=wanted,
            n_rows=n_rows,
            longest=longest,
            advice="Give more rows, or name what is independent: {p.groups}.",
        )
    return min(wanted, longest)


def _memory(scores: Float) -> float:
    """Give the integrated autocorrelation time of a score: 1 for independent rows."""
    centred = scores - scores.mean()
    size = len(centred)
    spectrum = np.abs(np.fft.rfft(centred, 2 * size)) ** 2
    products = np.fft.irfft(spectrum)[:size]
    if not products[0] > 0.0:
        return 1.0
    times = 2.0 * np.cumsum(products / products[0]) - 1.0
    # The first window that is five times as long as the memory within it: beyond, the sum is noise.
    enough = np.flatnonzero(np.arange(size) >= WINDOWS * times)
    return float(max(times[enough[0] if len(enough) else -1], 1.0))


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
