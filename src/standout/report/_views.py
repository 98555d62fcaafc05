"""Scores of many rows: which are shown, how all are spread, and with which signs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from standout._arrays import Array, Float, Rows, row_blocks
from standout.report._findings import Numbers

# Points that a browser draws and hovers over without delay, and that a file of 3 MB has room for.
MOST_TARGET_POINTS = 5000
MOST_BACKGROUND_POINTS = 2000
# A sample must not depend on the fit's own random numbers: the same rows are shown for every method.
SAMPLE_SEED = 0

N_BINS = 48
# Bins cover all rows but this share at either end, which is counted in the outermost bins.
TAIL = 0.002

BLOCK_BYTES = 32 * 2**20


def shown_rows(n_rows: Sequence[int]) -> list[Numbers]:
    """Choose the rows to be shown of the target, whose number is the first, and of each background."""
    each = MOST_BACKGROUND_POINTS // max(len(n_rows) - 1, 1)
    return [_sample(n, each if number else MOST_TARGET_POINTS) for number, n in enumerate(n_rows)]


def _sample(n_rows: int, most: int) -> Numbers:
    if n_rows <= most:
        return np.arange(n_rows, dtype=np.int64)
    chosen = np.random.default_rng(SAMPLE_SEED).choice(n_rows, most, replace=False)
    return np.sort(chosen).astype(np.int64)


def all_scores(project: Callable[[Rows], Array], rows: Rows, d: int) -> Float:
    """Give the first d scores of all rows, a block at a time."""
    blocks = [np.asarray(project(block)[:, :d], dtype=np.float64) for block in row_blocks(rows, n_bytes=BLOCK_BYTES)]
    return np.concatenate(blocks)


def some_scores(project: Callable[[Rows], Array], rows: Rows, shown: Numbers) -> Float:
    """Give the scores of the shown rows, without a copy of them all."""
    return np.concatenate([np.asarray(project(block), dtype=np.float64) for block in _blocks_of(rows, shown)])


def _blocks_of(rows: Rows, shown: Numbers) -> Iterator[Rows]:
    if len(shown) == rows.shape[0]:
        yield from row_blocks(rows, n_bytes=BLOCK_BYTES)
        return
    size = max(BLOCK_BYTES // (8 * rows.shape[1]), 1)
    for start in range(0, len(shown), size):
        yield rows[shown[start : start + size]]


def aligned_signs(scores: Array, reference: Array) -> Float:
    """Give the sign for each column of the scores that makes it agree with the column of the reference."""
    d = min(scores.shape[1], reference.shape[1])
    first, second = scores[:, :d] - scores[:, :d].mean(axis=0), reference[:, :d] - reference[:, :d].mean(axis=0)
    signs = np.ones(scores.shape[1])
    signs[:d] = np.where(np.einsum("ij,ij->j", first, second) < 0.0, -1.0, 1.0)
    return signs


def bins_of(scores: Sequence[Float]) -> Float:
    """Choose common edges of bins for one score of several datasets.

    A few far-off rows shall not press all others into one bin.
    """
    lows = [float(np.quantile(column, TAIL)) for column in scores]
    highs = [float(np.quantile(column, 1.0 - TAIL)) for column in scores]
    low, high = min(lows), max(highs)
    margin = 0.05 * (high - low) or max(abs(low), 1.0) * 1e-3
    return np.linspace(low - margin, high + margin, N_BINS + 1)


def counted(scores: Float, edges: Float) -> Numbers:
    """Count scores by bins; what lies beyond the edges is counted in the first or the last bin."""
    inside = np.clip(scores, edges[0], edges[-1])
    return np.histogram(inside, edges)[0].astype(np.int64)


def correlations(rows: Rows, mean: Float, spreads: Float, scores: Float) -> Float:
    """Correlate the scores (n, d) with each column, a block of rows at a time."""
    centred = scores - scores.mean(axis=0)
    lengths = np.sqrt(np.einsum("ij,ij->j", centred, centred))
    products = np.zeros((scores.shape[1], rows.shape[1]))
    start = 0
    for block in row_blocks(rows, n_bytes=BLOCK_BYTES):
        part = centred[start : start + block.shape[0]]
        # Centred scores sum to zero, so the columns' means drop out: sparse rows stay sparse.
        products += np.asarray((block.T @ part).T)
        start += block.shape[0]
    return as_correlations(products, np.sqrt(rows.shape[0]) * spreads, lengths)


def as_correlations(products: Float, column_lengths: Float, score_lengths: Float) -> Float:
    """Divide products of columns and scores by their lengths; what does not vary has no correlation."""
    lengths = score_lengths[:, np.newaxis] * column_lengths
    quotient: Float = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0.0)
    return np.clip(quotient, -1.0, 1.0)


def projector(mean: Float, filters: Float) -> Callable[[Rows], Any]:
    """Give the function that projects rows on filters, the columns of an array."""
    from standout.moments import project

    return lambda rows: project(rows, mean, filters)
