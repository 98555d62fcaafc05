"""One pass over the rows of each dataset: scores of all rows, and what pictures show of a sample of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from tempfile import SpooledTemporaryFile
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from standout._arrays import Array, Float, Rows, dense, row_blocks
from standout.report._findings import Numbers
from standout.report._labels import Labels
from standout.report._placeholders import Placeholders
from standout.selection import likeness, windows
from standout.sources import Batch, Source

# Points that a browser draws and hovers over without delay, and that a file of 3 MB has room for.
MOST_TARGET_POINTS = 5000
MOST_BACKGROUND_POINTS = 2000
# Rows that K-means looks at: more would not change the error.
MOST_CLUSTERED = 20_000
# A sample must not depend on the fit's own random numbers: the same rows are shown for every method.
SAMPLE_SEED = 0

N_BINS = 48
# Bins cover all rows except for this share at either end, which is counted in the outermost bins.
TAIL = 0.002
# Rows from which the edges of the bins are found: more would not change the picture.
MOST_FOR_EDGES = 2**20

BLOCK_BYTES = 32 * 2**20
# Scores of all rows that are kept in memory; more are kept in a temporary file.
KEPT_BYTES = 64 * 2**20

# Rows whose values are looked at.
FIRST_ROWS = 1000

Projection: TypeAlias = Callable[[Rows], Array]
HeldOutProjection: TypeAlias = Callable[[Rows, Numbers], Array]
OnScores: TypeAlias = Callable[[int, Batch, Array, Array | None], None]


@dataclass(frozen=True, eq=False)
class Look:
    """What is to be looked at in one dataset.

    Attributes
    ----------
    project : callable
        From rows to their scores along all components.
    held_out : callable or None
        From rows and their numbers to their scores along components that were found without them.
    draws_held_out : bool
        Whether these are drawn.
    n_shown : int
        Number of leading components whose scores the report shows.
    pca : callable
        From rows to their scores in PCA's view of the target.
    path : callable or None
        From rows to their scores in all views of the path.
    shown, clustered : ndarray of int
        Numbers of the rows that are drawn, and of those that K-means looks at, in ascending order.
    labels : Labels or None
        What numbers the labels, if they are wanted.
    ids : ndarray or None
        Names of all rows. None takes those that come with the rows.
    with_mean, with_products : bool
        Whether the mean of the columns is needed, and their products with the scores.
    fold_of : callable or None
        From the numbers of rows to their folds, if products of the columns with held-out scores are needed by fold.
    n_folds : int
    cells : ndarray of int
        Columns whose values are kept for the rows that are drawn.
    n_images : int
        Number of drawn rows that are kept whole.
    strays : Strays or None
        What weighs the rows, if these have robust weights.
    sampled : ndarray of int
        Numbers of rows that are kept whole for a second fit.
    """

    project: Projection
    held_out: HeldOutProjection | None
    draws_held_out: bool
    n_shown: int
    pca: Projection
    path: Projection | None
    shown: Numbers
    clustered: Numbers
    labels: Labels | None = None
    ids: npt.NDArray[np.object_] | None = None
    with_mean: bool = False
    with_products: bool = False
    fold_of: Callable[[Numbers], Numbers] | None = None
    n_folds: int = 0
    cells: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    n_images: int = 0
    strays: Weigher | None = None
    sampled: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


class Weigher(Protocol):
    """What weighs the rows of batches."""

    total: float

    def add(self, batch: Batch, ids: Any, scores: Float, shown: Numbers) -> Batch:
        """Take in a batch; give it without wild cells, and with weights."""


class Seen:
    """What was seen of one dataset, batch by batch.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    kept : KeptRows
        The leading scores of all rows, and the number of each row's label.
    shown, clustered : RowsSeen
        The rows that are drawn, and those that K-means looks at.
    first : array of shape (n, n_features)
        The first rows.
    placeholders : Placeholders
        Values that may stand for missing ones.
    mean : ndarray of shape (n_features,)
        Mean of the rows, if it was wanted.
    products : ndarray of shape (d, n_features)
        Products of the scores with the columns, if they were wanted.
    fold_products, fold_sums : ndarray
        Products of held-out scores, and of 1, with the columns (n_folds, d + 1, n_features), and with each other
        (n_folds, d + 1, d + 1), if they were wanted.
    """

    def __init__(self, look: Look, kept: KeptRows) -> None:
        self._look = look
        self.n_rows = 0
        self.kept = kept
        self.shown, self.clustered = RowsSeen(), RowsSeen()
        self.products: Float = np.zeros((1, 1))
        self.first: Rows | None = None
        self.fold_products: Float = np.zeros((1, 1, 1))
        self.fold_sums: Float = np.zeros((1, 1, 1))
        self.placeholders = Placeholders()
        self.sampled: list[Rows] = []
        self._column_sums: Float = np.zeros(1)

    @property
    def total(self) -> float:
        """Sum of the weights of the rows: their number, if they count equally."""
        return self.n_rows if self._look.strays is None else self._look.strays.total

    @property
    def mean(self) -> Float:
        """Mean of the rows."""
        return self._column_sums / max(self.total, 1e-300)

    def add(self, batch: Batch, *, with_held_out: bool) -> tuple[Array, Array | None, Float | None]:
        """Take in a batch, and give its scores along all components: of the fit and held out; and weights."""
        look = self._look
        self.placeholders.add(batch.rows)
        if self.first is None:
            self.first = batch.rows[:FIRST_ROWS].copy()
        scores, held_out = look.project(batch.rows), None
        if look.held_out is not None and (with_held_out or look.draws_held_out or look.fold_of is not None):
            held_out = look.held_out(batch.rows, np.arange(batch.start, batch.start + batch.n_rows))
        fitted = np.asarray(scores[:, : look.n_shown], dtype=np.float64)
        leading = fitted
        if look.draws_held_out and held_out is not None:
            leading = np.asarray(held_out[:, : look.n_shown], dtype=np.float64)
        labels = None if look.labels is None else look.labels.of(batch)
        numbers = np.zeros(batch.n_rows, dtype=np.int64)
        if look.labels is not None and labels is not None:
            numbers = look.labels.numbers(labels)
        ids = batch.ids if look.ids is None else look.ids[batch.start : batch.start + batch.n_rows]
        self.kept.add(np.column_stack([leading, numbers]))
        self.n_rows += batch.n_rows
        shown, clustered, sampled = (_within(batch, chosen) for chosen in (look.shown, look.clustered, look.sampled))
        if len(shown):
            rows, pca = self.shown, _projected(look.pca, batch.rows, shown)
            rows.scores.append(leading[shown])
            rows.fitted.append(fitted[shown])
            rows.numbers.append(numbers[shown])
            rows.pca.append(pca)
            if look.path is not None:
                rows.path.append(_projected(look.path, batch.rows, shown))
            rows.ids += [] if ids is None else [str(ids[row]) for row in shown.tolist()]
            rows.labels += [] if labels is None else labels[shown].tolist()
            if len(look.cells):
                rows.cells.append(_host(batch.rows[shown][:, look.cells]))
            wanted = look.n_images - sum(map(len, rows.images))
            if wanted > 0:
                rows.images.append(_host(batch.rows[shown[:wanted]]))
        if len(clustered) and labels is not None:
            self.clustered.scores.append(leading[clustered])
            self.clustered.numbers.append(numbers[clustered])
            # Of a few thousand rows, all are drawn and all are clustered.
            same = np.array_equal(shown, clustered)
            self.clustered.pca.append(pca if same else _projected(look.pca, batch.rows, clustered))
        if len(sampled):
            self.sampled.append(batch.rows[sampled])
        if look.strays is not None:
            batch = look.strays.add(batch, ids, leading, shown)
        if look.with_mean:
            self._column_sums = self._column_sums + _column_sums(batch)
        if look.with_products:
            self.products = self.products + _products(batch.rows, _times(batch.weights, fitted))
        if look.fold_of is not None and held_out is not None:
            folds = look.fold_of(np.arange(batch.start, batch.start + batch.n_rows))
            self._add_by_fold(batch, np.asarray(held_out[:, : look.n_shown], dtype=np.float64), folds)
        return scores, held_out, batch.weights

    def _add_by_fold(self, batch: Batch, scores: Float, folds: Numbers) -> None:
        """Add products of held-out scores with the columns, for each fold apart."""
        rows, parts = batch.rows, np.column_stack([scores, np.ones(len(scores))])
        n_folds, width = self._look.n_folds, parts.shape[1]
        # One product for all folds: scores of a row stand in the columns of its fold, and 0 in all others.
        apart = np.zeros((len(parts), n_folds, width))
        apart[np.arange(len(parts)), folds] = _times(batch.weights, parts)
        self.fold_products = self.fold_products + _products(rows, apart.reshape(len(parts), -1)).reshape(
            n_folds, width, rows.shape[1]
        )
        self.fold_sums = self.fold_sums + np.einsum("nkd,ne->kde", apart, parts)


def _within(batch: Batch, chosen: Numbers) -> Numbers:
    """Give the places within a batch of those rows that are in it, of some by their numbers in ascending order."""
    first, last = np.searchsorted(chosen, [batch.start, batch.start + batch.n_rows])
    return chosen[first:last] - batch.start


def _host(rows: Rows) -> Float:
    return np.asarray(dense(rows), dtype=np.float64)


class RowsSeen:
    """What was seen of some rows, in one entry for each batch; of those that are clustered scores, pca and numbers.

    Attributes
    ----------
    scores, fitted, pca, path : list of ndarray
        Scores along the leading components as they are drawn, and as they were fitted; in PCA's view, and in all views
        of the path.
    numbers : list of ndarray
        The number of the label of each row.
    cells, images : list of ndarray
        Values in the wanted columns, and whole rows.
    ids, labels : list
        Names and labels of the rows, one entry for each row; empty if they have none.
    """

    def __init__(self) -> None:
        self.scores: list[Float] = []
        self.fitted: list[Float] = []
        self.pca: list[Float] = []
        self.path: list[Float] = []
        self.numbers: list[Numbers] = []
        self.cells: list[Float] = []
        self.images: list[Float] = []
        self.ids: list[str] = []
        self.labels: list[Any] = []


def look_at(
    datasets: Sequence[Source], looks: Sequence[Look], on_scores: OnScores | None, files: ExitStack
) -> list[Seen]:
    """Read each dataset once, batch by batch in the order of the rows; `files` closes what is kept in files."""
    every = []
    for number, (dataset, look) in enumerate(zip(datasets, looks, strict=True)):
        seen = Seen(look, files.enter_context(KeptRows(look.n_shown + 1)))
        for batch in dataset.batches():
            if batch.n_rows:
                scores, held_out, weights = seen.add(batch, with_held_out=on_scores is not None)
                if on_scores is not None:
                    on_scores(number, replace(batch, weights=weights), scores, held_out)
        every.append(seen)
    return every


def _projected(project: Projection, rows: Rows, chosen: Numbers) -> Float:
    """Give the scores of some of the rows, a block at a time: a copy of many wide rows may not fit into memory."""
    size = max(BLOCK_BYTES // (8 * rows.shape[1]), 1)
    are_all = len(chosen) == rows.shape[0]
    starts = range(0, len(chosen), size)
    blocks = (rows[start : start + size] if are_all else rows[chosen[start : start + size]] for start in starts)
    return np.concatenate([np.asarray(project(block), dtype=np.float64) for block in blocks])


def _times(weights: Float | None, numbers: Float) -> Float:
    return numbers if weights is None else numbers * weights[:, np.newaxis]


def _column_sums(batch: Batch) -> Float:
    """Sum the rows, each times its weight."""
    if batch.weights is not None:
        return _products(batch.rows, batch.weights[:, np.newaxis])[0]
    return np.asarray(batch.rows.sum(axis=0, dtype=np.float64)).ravel()


def _products(rows: Rows, scores: Float) -> Float:
    """Multiply the columns with the scores, a block at a time."""
    total, start = np.zeros((scores.shape[1], rows.shape[1])), 0
    for block in row_blocks(rows, n_bytes=BLOCK_BYTES):
        total += np.asarray((block.T @ scores[start : start + block.shape[0]]).T)
        start += block.shape[0]
    return total


def sampled_rows(n_rows: int, most: int) -> Numbers:
    """Draw the numbers of rows at random, in ascending order; all if there are no more than `most`."""
    if n_rows <= most:
        return np.arange(n_rows, dtype=np.int64)
    return np.sort(np.random.default_rng(SAMPLE_SEED).choice(n_rows, most, replace=False)).astype(np.int64)


class KeptRows:
    """A few numbers of each row of a dataset, in memory or, if there are many rows, in a temporary file."""

    def __init__(self, n_numbers: int) -> None:
        self._n_numbers = n_numbers
        self._n_rows = 0
        self._file = SpooledTemporaryFile(max_size=KEPT_BYTES)  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def add(self, rows: Float) -> None:
        """Append rows."""
        self._n_rows += len(rows)
        self._file.write(np.ascontiguousarray(rows, dtype=np.float64).tobytes())

    def blocks(self) -> Iterator[Float]:
        """Give the rows again, a block at a time."""
        size = max(BLOCK_BYTES // (8 * self._n_numbers), 1) * 8 * self._n_numbers
        self._file.seek(0)
        while content := self._file.read(size):
            yield np.frombuffer(content).reshape(-1, self._n_numbers)
        self._file.seek(0, 2)

    def at(self, windows: Numbers) -> Float:
        """Give the rows in windows, each of consecutive numbers."""
        found = []
        for numbers in windows:
            self._file.seek(int(numbers[0]) * 8 * self._n_numbers)
            found.append(np.frombuffer(self._file.read(len(numbers) * 8 * self._n_numbers)))
        self._file.seek(0, 2)
        return np.stack(found).reshape(*windows.shape, self._n_numbers)

    def some(self) -> Float:
        """Give all rows, or every second, third ... of very many."""
        step, start, found = -(-self._n_rows // MOST_FOR_EDGES), 0, []
        for block in self.blocks():
            found.append(block[-start % step :: step])
            start += len(block)
        return np.concatenate(found)


# --- all rows --------------------------------------------------------------------------------------------------------


def bin_edges(datasets: Sequence[KeptRows]) -> Float:
    """Choose common edges of bins for each score of several datasets.

    A few far-off rows must not press all others into one bin.
    """
    ends = np.array([np.quantile(kept.some()[:, :-1], [TAIL, 1.0 - TAIL], axis=0) for kept in datasets])
    low, high = ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)
    margin = np.where(high > low, 0.05 * (high - low), np.maximum(np.abs(low), 1.0) * 1e-3)
    return np.linspace(low - margin, high + margin, N_BINS + 1, axis=1)


def bin_counts(kept: KeptRows, edges: Float, group_of: Numbers, n_groups: int) -> Numbers:
    """Count the rows of each group by bins of each score; rows beyond the edges are in the outermost bins."""
    counts = np.zeros((len(edges), n_groups * N_BINS), dtype=np.int64)
    for block in kept.blocks():
        first = group_of[block[:, -1].astype(np.int64)] * N_BINS
        for k, part in enumerate(edges):
            # In bin number j are scores from edge j up to, but without, edge j + 1.
            bins = np.clip(np.searchsorted(part, block[:, k], side="right") - 1, 0, N_BINS - 1)
            counts[k] += np.bincount(first + bins, minlength=counts.shape[1])
    return counts.reshape(len(edges), n_groups, N_BINS).swapaxes(0, 1)


def mean_and_variance(kept: KeptRows) -> tuple[Float, Float]:
    """Give the mean and the variance of each score over all rows."""
    n_rows, total, squares = 0, np.zeros(1), np.zeros(1)
    for block in kept.blocks():
        n_rows, total = n_rows + len(block), total + block[:, :-1].sum(axis=0)
    for block in kept.blocks():
        squares = squares + np.square(block[:, :-1] - total / n_rows).sum(axis=0)
    return total / n_rows, squares / n_rows


def alike_rows(kept: KeptRows, n_rows: int) -> float:
    """Give how much more alike the scores of neighbouring rows are than chance makes them; 0 if no more."""
    places = windows(n_rows)
    return 0.0 if places is None else likeness(kept.at(places)[:, :, :-1])


def kurtosis(kept: KeptRows, mean: Float, variance: Float) -> Float:
    """Give the mean fourth power of each standardised score, from its mean and variance: 3 for a Gaussian."""
    n_rows, fourth = 0, np.zeros(1)
    for block in kept.blocks():
        # Squared twice: a fourth power takes ten times as long.
        squares = np.square(block[:, :-1] - mean) / np.where(variance > 0.0, variance, 1.0)
        n_rows, fourth = n_rows + len(block), fourth + np.square(squares).sum(axis=0)
    return fourth / n_rows
