"""From data to moments, and from rows to coordinates: scores along filters, and coordinates in the rows' span."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import linalg

from standout._arrays import (
    Array,
    Float,
    Rows,
    dense,
    double,
    is_single,
    is_sparse,
    product,
    row_blocks,
    row_slice,
    stacked,
)
from standout._checks import check_squares
from standout._xp import is_foreign, largest, like, namespace
from standout.moments._base import Moments
from standout.moments._folds import FoldPart, Folds, dealt_folds
from standout.moments._root import gather_root
from standout.moments._rows import CentredRows, KeptRows, RowMoments
from standout.moments._scatter import gather_on_device, gather_scatter, gather_weighted, sum_on_device
from standout.sources import Batch, Dataset, check_subjects, open_dataset

Kind = Literal["auto", "scatter", "root", "rows"]


def gather(
    data: Dataset, *, kind: Kind = "auto", norms: bool = False, single: bool = True, name: str = "the data"
) -> Moments:
    """What are the count, mean and scatter of this dataset?

    Parameters
    ----------
    data : array-like, sparse matrix, frame, table, source, or iterator of batches
        Real numbers, one row per sample. An array can have any real dtype, be in C or Fortran order, read-only or
        memory-mapped. It can be of another library (see `standout.DiscriminativePCA`). A source (see
        `standout.sources`) and an iterator are read in batches. Data are never copied as a whole, except for wide rows
        with weights (see `standout.sources.beside`).
    kind : {"auto", "scatter", "root", "rows"}, default="auto"
        How the scatter is stored: as a matrix (`ScatterMoments`), as a QR root (`RootMoments`), or as the rows
        themselves (`RowMoments`). "auto" keeps the rows if there are fewer rows than columns, and a matrix otherwise.
    norms : bool, default=False
        Gather also what Ledoit-Wolf shrinkage needs.
    single : bool, default=True
        Multiply single-precision rows in single precision, which is twice as fast. Rows are centred first, and blocks
        are summed in float64, so that the relative error is about 1e-7 of each column's spread.
    name : str, default="the data"
        Name of the dataset in messages.

    Returns
    -------
    Moments

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import gather
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> batches = (X[start : start + 2] for start in (0, 2, 4))
    >>> np.allclose(gather(batches).covariance(), gather(X).covariance())
    True
    """
    dataset = open_dataset(data, name, min_rows=1)
    if kind == "auto" and dataset.n_rows is not None and dataset.width is not None:
        kind = "rows" if dataset.n_rows < dataset.width else "scatter"
    part = Part(kind, norms, single)
    # Infinities become NaN during the computation. They are looked for in the result, where this is cheap.
    with np.errstate(invalid="ignore", over="ignore"):
        moments: Moments = part(dataset.batch()) if kind == "rows" else dataset.summed(part)
        if not np.isfinite(moments.total_variance):
            dataset.require_finite()
            check_squares(np.inf, name)
    return moments


def gather_folds(
    data: Dataset,
    n_folds: int,
    *,
    n_dealt: int | None = None,
    kind: Kind = "scatter",
    norms: bool = False,
    single: bool = True,
    name: str = "the data",
) -> Folds[Moments]:
    """What are the moments of each fold of this dataset?

    One pass gives them all, and the moments of all rows, or of all rows but those of one fold, are sums of them. Folds
    depend on the numbers of the rows alone, or on their subjects: see `Folds`.

    Parameters
    ----------
    data : as in `gather`
    n_folds : int
    n_dealt : int, optional
        Number of folds that rows are dealt into. Those of fold k of them are gathered in fold k modulo `n_folds`, as in
        `Folds.fewer`. None means `n_folds`.
    kind, norms, single, name
        As in `gather`.

    Returns
    -------
    Folds

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import gather_folds
    >>> [part.count for part in gather_folds(np.ones((7, 2)), 3).sums]
    [3, 2, 2]
    """
    dataset = open_dataset(data, name, min_rows=1)
    if kind == "auto" and dataset.n_rows is not None and dataset.width is not None:
        kind = "rows" if dataset.n_rows < dataset.width else "scatter"
    n_dealt = n_dealt or n_folds
    part = FoldPart(Part(kind, norms, single), n_folds, n_dealt, dealt_folds(dataset.subjects, n_dealt))
    with np.errstate(invalid="ignore", over="ignore"):
        folds: Folds[Moments] = dataset.summed(part)
        check_subjects(dataset, folds.count)
        if not all(np.isfinite(moments.total_variance) for moments in folds.sums if moments is not None):
            dataset.require_finite()
            check_squares(np.inf, name)
    return folds


def _suits_single(rows: Rows) -> bool:
    """Tell, from some of the rows, whether the squares of single-precision numbers are within range."""
    if is_foreign(rows) or not is_single(rows):
        return False
    enough = max(8, min(256, 2**19 // rows.shape[1]))
    some = double(dense(rows[:: max(rows.shape[0] // enough, 1)][:enough]))
    spread = np.std(some, axis=0)
    spread = spread[spread > 0]
    return bool(spread.size and spread.min() > 1e-15 and spread.max() < 1e15)


@dataclass(frozen=True)
class Part:
    """The function that gathers the moments of one batch of a dataset. It can be sent to other processes.

    Attributes
    ----------
    kind : {"auto", "scatter", "root", "rows"}
    norms, single : bool
        As in `gather`.
    """

    kind: Kind
    norms: bool
    single: bool
    # Ids, labels and groups of the rows need not be read.
    needs_words: ClassVar[bool] = False

    def __call__(self, batch: Batch) -> Any:
        """Gather the moments of these rows; None if all of them have the weight zero."""
        rows = batch.rows
        if batch.weights is not None:
            return self._weighted(batch, batch.weights)
        single = self.single and _suits_single(rows)
        # `gather` ignores these errors, too, but threads do not share NumPy's error state.
        with np.errstate(invalid="ignore", over="ignore"):
            kind = self.of_width(rows.shape[0], rows.shape[1]).kind
            if kind == "rows":
                return RowMoments(rows, single=single)
            if kind == "root":
                return gather_root(rows, norms=self.norms)
            return gather_scatter(rows, norms=self.norms, single=single)

    def of_folds(self, rows: Rows, folds: Sequence[Array]) -> list[Any] | None:
        """Gather the moments of folds of foreign rows without weights, by the numbers of their rows.

        None if rows, or roots of them, are wanted.
        """
        if self.of_width(rows.shape[0], rows.shape[1]).kind != "scatter":
            return None
        return list(gather_on_device(rows, norms=self.norms, folds=folds))

    def over_folds(self, batches: Iterable[tuple[Rows, Sequence[Array | None]]]) -> list[Any] | None:
        """Gather the moments of folds of batches on a device.

        None if they are not to be scatter matrices, or if that costs accuracy.
        """
        return None if self.kind != "scatter" else sum_on_device(batches, norms=self.norms)

    def over_batches(self, batches: Iterable[Batch]) -> Any:
        """Gather the moments of batches on a device all together; None where `over_folds` gives none."""
        found = self.over_folds((batch.rows, [None]) for batch in batches)
        return found[0] if found else None

    def _weighted(self, batch: Batch, weights: Float) -> Moments | None:
        rows, origin = batch.rows, batch.origin
        weights = like(weights, rows) if is_foreign(rows) else weights
        if not float(namespace(weights).sum(weights)) > 0.0:
            return None
        with np.errstate(invalid="ignore", over="ignore"):
            kind = self.of_width(rows.shape[0], rows.shape[1]).kind
            if kind == "rows":
                return CentredRows(rows, weights, batch.learned)
            if kind == "root":
                return gather_root(rows, weights, norms=self.norms, origin=origin)
            return gather_weighted(rows, weights, norms=self.norms, origin=origin)

    @property
    def keeps_rows(self) -> bool:
        """Whether the moments may hold the rows themselves."""
        return self.kind in ("auto", "rows", "root")

    def of_width(self, n_rows: int, width: int) -> Part:
        """Give the same function with its kind settled by the number of rows."""
        kind: Kind = "rows" if n_rows < width else "scatter"
        return replace(self, kind=kind) if self.kind == "auto" else self


def project(rows: Rows, mean: Float | None, filters: Float) -> Float:
    """What are the scores of these rows: ``(X - mean) U``?

    Rows are centred before they are multiplied, one block at a time, so that a large mean costs no digits. Sparse rows
    are corrected for the mean afterwards.

    Parameters
    ----------
    rows : array or sparse matrix of shape (n_rows, n_features)
    mean : ndarray of shape (n_features,) or None
        None leaves the scores as they are, which is faster where only their differences count.
    filters : ndarray of shape (n_features, d)

    Returns
    -------
    ndarray of shape (n_rows, d)

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import project
    >>> project(np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([2.0, 5.0]), np.array([[2.0], [1.0]]))
    array([[-2.],
           [ 2.]])
    """
    if is_sparse(rows):
        scores: Float = dense(rows @ filters)
        return scores if mean is None else scores - mean @ filters
    if mean is None:
        return stacked([double(block) @ filters for block in row_blocks(rows)])
    return stacked([(double(block) - mean) @ filters for block in row_blocks(rows)])


def in_span(datasets: Sequence[KeptRows]) -> tuple[Float, list[Float]]:
    """Give the rows of datasets in an orthonormal basis of the space that all of them span.

    Wide data have no variance outside of this space. What is computed from inner products, variances and multiples of
    the identity can be computed from the coordinates, and directions found there are mapped back by the basis.

    Parameters
    ----------
    datasets : sequence of RowMoments or CentredRows

    Returns
    -------
    basis : ndarray of shape (n_features, r)
        Orthonormal columns, one for each direction of the data: fewer than rows.
    coordinates : list of ndarray of shape (n_rows, r)
        The rows of each dataset, centred by its own mean: ``coordinates @ basis.T`` are the centred rows.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import gather, in_span
    >>> X = np.random.default_rng(0).normal(size=(5, 1000))
    >>> basis, (coordinates,) = in_span([gather(X, kind="rows")])
    >>> coordinates.shape, np.allclose(coordinates @ basis.T, X - X.mean(axis=0))
    ((5, 4), True)
    """
    # Each dataset is scaled by its own spread, so that a small one is not mistaken for rounding of a large one.
    spreads = [float(np.sqrt(dataset.total_variance)) or 1.0 for dataset in datasets]
    counts = [dataset.count for dataset in datasets]
    rows = stacked([part.centred_rows() / spread for part, spread in zip(datasets, spreads, strict=True)])
    # Each dataset loses a direction by centring. Far from zero, rounding may leave something of it.
    most = sum(count - 1 for count in counts)
    basis, coordinates = (_span_on_device if is_foreign(rows) else _span_on_host)(rows, most)
    ends = np.cumsum(counts).tolist()
    return basis, [
        row_slice(coordinates, end - count, end) * spread
        for end, count, spread in zip(ends, counts, spreads, strict=True)
    ]


def _span_on_host(rows: Float, most: int) -> tuple[Float, Float]:
    """Find basis and coordinates of rows, which are overwritten, by QR decompositions."""
    wide, triangle = linalg.qr(rows.T, mode="economic", overwrite_a=True, check_finite=False)
    # The centred rows of a dataset are linearly dependent. What rounding leaves of this is not a direction.
    turn, triangle, order = linalg.qr(triangle, mode="economic", pivoting=True, overwrite_a=True, check_finite=False)
    pivots = np.abs(np.diagonal(triangle))
    rank = int(np.sum(pivots > max(rows.shape) * np.finfo(np.float64).eps * pivots.max(initial=0.0)))
    rank = min(rank, most)
    coordinates = np.empty((len(rows), rank))
    coordinates[order] = triangle[:rank].T
    return product(wide, turn[:, :rank]), coordinates


def _span_on_device(rows: Float, most: int) -> tuple[Float, Float]:
    """Find basis and coordinates by a singular value decomposition: the array API has no pivoted QR."""
    xp = namespace(rows)
    wide, triangle = xp.linalg.qr(rows.T)
    turn, sizes, right = xp.linalg.svd(triangle, full_matrices=False)
    rank = int(xp.count_nonzero(sizes > max(rows.shape) * float(np.finfo(np.float64).eps) * largest(sizes)))
    rank = min(rank, most)
    return product(wide, turn[:, :rank]), right[:rank, :].T * sizes[:rank]
