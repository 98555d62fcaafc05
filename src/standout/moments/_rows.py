"""Moments that keep the rows themselves: the representations for more columns than rows, and for huge sparse data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, reduce
from operator import add
from typing import Any, ClassVar, TypeAlias
from weakref import ReferenceType, ref

import numpy as np
import numpy.typing as npt

from standout._arrays import (
    BLOCK_BYTES,
    Array,
    Float,
    Rows,
    column_slices,
    column_squares,
    dense,
    double,
    inner,
    is_plain,
    is_single,
    is_sparse,
    is_thin,
    product,
    row_blocks,
    row_slice,
    self_product,
    squared_lengths,
    stacked,
    sum_of_squares,
    weighted_sum,
)
from standout._xp import (
    DEVICE_BLOCK_BYTES,
    column_products,
    concat,
    diagonal,
    is_foreign,
    like,
    namespace,
    take,
    to_host,
    zeros,
)
from standout.moments._base import Moments, NormSums, WeightSums, two_sum
from standout.moments._root import RootMoments, gather_root
from standout.moments._scatter import UNCENTRED_LIMIT, ScatterMoments, centred_block, gather_scatter, weighted_block

# A part of wide rows that is centred, or brought to double precision, on a device: there are several copies of it.
COPIED_ON_DEVICE = DEVICE_BLOCK_BYTES // 8


class RowMoments(Moments):
    """Count and mean of a dataset, and the rows themselves instead of their scatter.

    No matrix of size n_features x n_features is formed except by `covariance`, and no centred copy of the data is made:
    a block of rows or columns is centred when it is needed.

    Attributes
    ----------
    count : int
        Number of rows.
    mean : ndarray of shape (n_features,)
    blocks : tuple of arrays or sparse matrices
        The rows as given, uncentred.
    precision : float
        Relative rounding error of the products.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import gather
    >>> X = np.random.default_rng(0).normal(size=(3, 1000))
    >>> moments = gather(X, kind="rows")
    >>> moments.self_gram.shape
    (3, 3)
    """

    # Rows with weights are kept by `CentredRows`.
    row_weights: ClassVar[None] = None
    # What `joint_gram` has found for this dataset and others.
    joint: tuple[list[ReferenceType[Moments]], Callable[[], Float]] | None = None

    def __init__(self, *blocks: Rows, single: bool = True) -> None:
        self.single = single and all(is_single(part) and not is_thin(part) and not is_foreign(part) for part in blocks)
        # Thin sparse data are later multiplied as a whole. Integers would overflow, single precision would lose digits.
        self.blocks = tuple(double(block) if is_thin(block) else block for block in blocks)
        self.precision = float(np.finfo(np.float32 if self.single else np.float64).eps)
        self.count, self.mean, squares, _ = reduce(_merged, map(_column_moments, _pieces(self.blocks)))
        self._variances = squares / self.count

    def __getstate__(self) -> dict[str, Any]:
        return _without_products(self)

    @property
    def variances(self) -> Float:
        """Variance of each column."""
        return self._variances

    @cached_property
    def norms(self) -> NormSums:  # type: ignore[override]
        """What Ledoit-Wolf shrinkage needs in addition to the scatter."""
        lengths = self._squared_lengths()
        return NormSums(self.combine(lengths[:, np.newaxis])[:, 0], sum_of_squares(lengths))

    @property
    def quartic(self) -> float:
        """Sum of the fourth powers of the centred rows' lengths."""
        return sum_of_squares(self._squared_lengths())

    @cached_property
    def squared_norm(self) -> float:
        """Squared Frobenius norm of the covariance."""
        if self.count <= self.n_features:
            return sum_of_squares(self.self_gram) / self.count**2
        return sum(self._squared_norm_of(columns) for columns in column_slices(self.n_features, self.n_features))

    @cached_property
    def self_gram(self) -> Float:
        """Inner products of the centred rows with each other."""
        return _centred_gram(self, self) if self._correctable else _gram_by_columns([self])

    @property
    def root_level(self) -> float:
        """The precision times the size of the data: no digits are lost by squaring."""
        return float(np.finfo(np.float64).eps) * max(self.count, self.n_features)

    def covariance(self) -> Float:
        """Give the covariance matrix."""
        parts: Iterator[Moments] = (gather_scatter(block, single=self.single) for block in self.blocks)
        total = reduce(add, parts)
        assert isinstance(total, ScatterMoments)
        scatter = total.scatter
        scatter /= self.count
        return scatter

    def root(self) -> Float:
        """Give R with ``RᵀR`` the covariance."""
        parts: Iterator[Moments] = (gather_root(block) for block in self.blocks)
        total = reduce(add, parts)
        assert isinstance(total, RootMoments)
        root = total.scatter_root
        root /= float(np.sqrt(self.count))
        return root

    def apply(self, U: Float) -> Float:
        """Multiply the covariance with the columns of U."""
        return self.combine(self.project(U)) / self.count

    def variance(self, U: Float) -> Float:
        """Give the variance of the data along each column of U."""
        projected = self.project(U)
        return column_products(projected, projected) / self.count

    def project(self, U: Float) -> Float:
        """Multiply the centred rows with the columns of U: ``Z U``."""
        if self._quick:
            return concat([_product_of_single(block, U) for block in self.blocks]) - weighted_sum(self.mean, U)
        return concat([product(part, U) - weighted_sum(offset, U) for part, offset in self._parts()])

    def combine(self, W: Float) -> Float:
        """Sum the centred rows with the columns of W as weights: ``Zᵀ W``."""
        total = zeros((self.n_features, W.shape[1]), self.mean)
        start = 0
        for part, offset in ((block, self.mean) for block in self.blocks) if self._quick else self._parts():
            weights = row_slice(W, start, start + part.shape[0])
            start += part.shape[0]
            if self._quick:
                single, sizes = _in_single(weights)
                total += product(part.T, single) * sizes
            else:
                total += product(part.T, weights)
            total -= offset[:, None] * namespace(weights).sum(weights, axis=0)
        return total

    def centred_rows(self) -> Float:
        """Give a dense copy of the centred rows."""
        rows: Float = concat([double(dense(part)) - offset for part, offset in self._parts()])
        if not self._correctable:
            # Far from zero the mean itself is rounded.
            rows -= namespace(rows).mean(rows, axis=0)
        return rows

    def taken(self, columns: npt.NDArray[np.intp]) -> RowMoments:
        """Give the moments of some of the columns."""
        return RowMoments(*(take(block, columns, axis=1) for block in self.blocks), single=self.single)

    def __add__(self, other: Moments) -> Moments:
        """Give the moments of both datasets together."""
        if not isinstance(other, Moments):
            return NotImplemented
        if not isinstance(other, RowMoments):
            return other + self
        return RowMoments(*self.blocks, *other.blocks, single=self.single and other.single)

    @cached_property
    def _quick(self) -> bool:
        """Whether rows in single precision can be multiplied with a few vectors as they are."""
        return self.single and sum_of_squares(self.mean) <= self.total_variance

    @cached_property
    def _correctable(self) -> bool:
        """Whether rows can be multiplied without centring, and corrected for the mean afterwards, without loss."""
        plain = all(is_thin(block) or is_plain(block) for block in self.blocks)
        return plain and sum_of_squares(self.mean) <= UNCENTRED_LIMIT * self.total_variance

    def _parts(self) -> Iterator[tuple[Rows, Float]]:
        """Cut the rows into pieces, and give with each what is still to be subtracted from its rows."""
        if self._correctable:
            yield from ((block, self.mean) for block in self.blocks)
            return
        nothing = 0.0 * self.mean
        for piece in _pieces(self.blocks):
            for part in row_blocks(piece, n_bytes=COPIED_ON_DEVICE if is_foreign(piece) else None):
                yield _less(dense(part), self.mean), nothing

    def _centred_columns(self, columns: slice) -> Array:
        """Give a dense, centred copy of a slice of columns."""
        parts = [dense(block[:, columns]) for block in self.blocks]
        if not self.single:
            return concat([_less(part, self.mean[columns]) for part in parts])
        # A row is subtracted first. Then no single-precision number is rounded at the size of a large mean.
        origin = parts[0][0].copy()
        centred = np.vstack([part - origin for part in parts])
        centred -= (self.mean[columns] - origin).astype(np.float32)
        return centred

    def _squared_lengths(self) -> Float:
        """Squared length of each centred row."""
        if self.count <= self.n_features:
            return 1.0 * diagonal(self.self_gram)
        return concat(
            [
                squared_lengths(part) - 2.0 * product(part, offset[:, np.newaxis])[:, 0] + sum_of_squares(offset)
                for part, offset in self._parts()
            ]
        )

    def _squared_norm_of(self, columns: slice) -> float:
        """Squared Frobenius norm of a slice of the covariance's columns."""
        if self._correctable and all(is_sparse(block) for block in self.blocks):
            panel = reduce(add, (block.T @ block[:, columns] for block in self.blocks)) / self.count
            mean, some = self.mean, self.mean[columns]
            cross = inner(mean, panel @ some)
            return float(panel.multiply(panel).sum()) - 2.0 * cross + sum_of_squares(mean) * sum_of_squares(some)
        return sum_of_squares(self.combine(double(self._centred_columns(columns)))) / self.count**2


class CentredRows(Moments):
    """Count and mean of a dataset, and its centred rows: `RowMoments` for rows with weights.

    It keeps a centred copy of the rows, times the roots of their weights.

    Attributes
    ----------
    count : int
        Number of rows.
    mean : array of shape (n_features,)
    rows : array of shape (count, n_features)
        As given, uncentred.
    row_weights : array of shape (count,) or None
    learned : array of shape (count,) or None
        The factor of the weights that follows from the rows: see `standout.sources.Batch`.
    precision : float
        Relative rounding error of the products.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import CentredRows
    >>> rows = np.array([[1.0, 5.0, 0.0], [3.0, 5.0, 4.0]])
    >>> CentredRows(rows).mean, CentredRows(rows).variances
    (array([2., 5., 2.]), array([1., 0., 4.]))
    >>> CentredRows(rows, np.array([3.0, 1.0])).mean
    array([1.5, 5. , 1. ])
    """

    precision = float(np.finfo(np.float64).eps)
    joint: tuple[list[ReferenceType[Moments]], Callable[[], Float]] | None = None

    def __init__(self, rows: Rows, row_weights: Float | None = None, learned: Float | None = None) -> None:
        self.rows, self.row_weights, self.learned = rows, row_weights, learned
        self.count = rows.shape[0]
        if row_weights is not None:
            self._centred, self.mean, _ = weighted_block(double(dense(rows)), row_weights)
            self.weights = WeightSums.of(row_weights)
            return
        # The first row is subtracted before the mean, as in `centred_block`.
        origin = double(row_slice(rows, 0, 1))
        moved = double(rows) - origin
        offset = namespace(rows).mean(moved, axis=0)
        self.mean = origin[0, :] + offset
        self._centred = moved - offset

    def __getstate__(self) -> dict[str, Any]:
        return _without_products(self)

    @property
    def variances(self) -> Float:
        """Variance of each column."""
        return column_products(self._centred, self._centred) / self.total_weight

    @cached_property
    def norms(self) -> NormSums:  # type: ignore[override]
        """What Ledoit-Wolf shrinkage needs in addition to the scatter."""
        return NormSums.of(self._centred, self.row_weights)

    @property
    def quartic(self) -> float:
        """Sum of the fourth powers of the centred rows' lengths."""
        return sum_of_squares(squared_lengths(self._centred))

    @cached_property
    def self_gram(self) -> Float:
        """Inner products of the centred rows with each other."""
        return self_product(self._centred.T)

    @property
    def squared_norm(self) -> float:
        """Squared Frobenius norm of the covariance, from the covariance or the Gram matrix, whichever is smaller."""
        if self.count > self.n_features:
            return sum_of_squares(self.covariance())
        return sum_of_squares(self.self_gram) / self.total_weight**2

    @property
    def root_level(self) -> float:
        """The precision times the size of the data: no digits are lost by squaring."""
        return self.precision * max(self.count, self.n_features)

    def covariance(self) -> Float:
        """Give the covariance matrix."""
        return self_product(self._centred) / self.total_weight

    def root(self) -> Float:
        """Give R with ``RᵀR`` the covariance."""
        return self._centred / self.total_weight**0.5

    def apply(self, U: Float) -> Float:
        """Multiply the covariance with the columns of U."""
        return self.combine(self.project(U)) / self.total_weight

    def variance(self, U: Float) -> Float:
        """Give the variance of the data along each column of U."""
        projected = self.project(U)
        return column_products(projected, projected) / self.total_weight

    def project(self, U: Float) -> Float:
        """Multiply the centred rows with the columns of U: ``Z U``."""
        return product(self._centred, U)

    def combine(self, W: Float) -> Float:
        """Sum the centred rows with the columns of W as weights: ``Zᵀ W``."""
        return product(self._centred.T, W)

    def centred_rows(self) -> Float:
        """Give the centred rows, times the roots of their weights."""
        return self._centred

    def taken(self, columns: npt.NDArray[np.intp]) -> CentredRows:
        """Give the moments of some of the columns."""
        return CentredRows(take(self.rows, columns, axis=1), self.row_weights, self.learned)

    def __add__(self, other: Moments) -> Moments:
        """Give the moments of both datasets together."""
        if not isinstance(other, Moments):
            return NotImplemented
        if not isinstance(other, CentredRows | RowMoments):
            return other + self
        rows = [self.rows, *([other.rows] if isinstance(other, CentredRows) else other.blocks)]
        if self.row_weights is None and other.row_weights is None:
            return CentredRows(stacked(rows))
        each = [
            like(np.ones(part.count), part.mean) if part.row_weights is None else part.row_weights
            for part in (self, other)
        ]
        known = [part.learned if isinstance(part, CentredRows) else None for part in (self, other)]
        learned = None
        if any(part is not None for part in known):
            learned = np.concatenate(
                [
                    np.ones(part.count) if own is None else to_host(own)
                    for part, own in zip((self, other), known, strict=True)
                ]
            )
        return CentredRows(stacked([dense(part) for part in rows]), concat(each), learned)


# Moments that have the rows of the dataset.
KeptRows: TypeAlias = RowMoments | CentredRows


def _without_products(moments: KeptRows) -> dict[str, Any]:
    """Give what is to be pickled: products of rows, for several datasets together, stay behind."""
    return {name: value for name, value in vars(moments).items() if name not in ("joint", "self_gram")}


def squares_by_group(dataset: KeptRows, groups: npt.NDArray[np.intp], n_groups: int) -> tuple[Array, Float]:
    """Give the sums of squares of the centred columns over the rows of each group, and the weight of its rows."""
    members = (groups[None, :] == np.arange(n_groups)[:, None]).astype(np.float64)
    if isinstance(dataset, CentredRows):
        rows, weights = dataset.centred_rows(), dataset.row_weights
        totals = members.sum(axis=1) if weights is None else members @ to_host(weights)
        return product(like(members, rows), rows**2), totals
    parts = [
        product(like(members, dataset.mean), double(dataset._centred_columns(columns)) ** 2)
        for columns in _slices(dataset.count, dataset)
    ]
    return concat(parts, axis=1), members.sum(axis=1)


def joint_gram(datasets: Sequence[KeptRows]) -> Float:
    """Give the inner products of the centred rows of all datasets, one dataset after the other.

    Each dataset is centred by its own mean: this is the matrix K of eq. (k) for the linear kernel. It is kept for the
    next call with the same datasets, and must not be changed.
    """
    known = datasets[0].joint
    if known is not None and [id(other()) for other in known[0]] == [id(part) for part in datasets[1:]]:
        return known[1]()
    gram = _joint_gram(datasets)
    keep_joint_gram(datasets, lambda: gram)
    return gram


def keep_joint_gram(datasets: Sequence[Moments], gram: Callable[[], Float]) -> None:
    """Let `joint_gram` give what a function returns for these datasets, which keep their rows."""
    # References that do not keep the rows of other datasets.
    datasets[0].joint = [ref(part) for part in datasets[1:]], gram  # type: ignore[attr-defined]


def _joint_gram(given: Sequence[KeptRows]) -> Float:
    datasets = [dataset for dataset in given if isinstance(dataset, RowMoments)]
    if len(datasets) < len(given):
        return self_product(stacked([part.centred_rows() for part in given]).T)
    ends = np.cumsum([dataset.count for dataset in datasets]).tolist()
    places = [slice(end - dataset.count, end) for end, dataset in zip(ends, datasets, strict=True)]
    if all(dataset._correctable for dataset in datasets):
        gram = zeros((ends[-1], ends[-1]), datasets[0].mean)
        for i, first in enumerate(datasets):
            gram[places[i], places[i]] = first.self_gram
            for j, second in enumerate(datasets[:i]):
                block = _centred_gram(first, second)
                gram[places[i], places[j]] = block
                gram[places[j], places[i]] = block.T
    else:
        gram = _gram_by_columns(datasets)
    for dataset, place in zip(datasets, places, strict=True):
        # Neither computed nor kept twice.
        dataset.__dict__["self_gram"] = gram[place, place]
    return gram


def _centred_gram(first: RowMoments, second: RowMoments) -> Float:
    """Multiply the rows without centring them, and correct for the means."""
    if second is first and len(first.blocks) == 1:
        gram = self_product(first.blocks[0].T)
    else:
        gram = concat([concat([product(one, two.T) for two in second.blocks], axis=1) for one in first.blocks])
    # The row means of the Gram matrix are the inner products with the mean row, so no other pass is needed.
    xp = namespace(gram)
    gram -= xp.mean(gram, axis=1, keepdims=True)
    gram -= xp.mean(gram, axis=0, keepdims=True)
    return gram


def _gram_by_columns(datasets: Sequence[RowMoments]) -> Float:
    """Centre and multiply one slice of columns after the other."""
    n_rows = sum(dataset.count for dataset in datasets)
    gram = zeros((n_rows, n_rows), datasets[0].mean)
    for columns in _slices(n_rows, *datasets):
        gram += self_product(concat([dataset._centred_columns(columns) for dataset in datasets]).T)
    return gram


def _slices(n_rows: int, *datasets: RowMoments) -> Iterator[slice]:
    """Cut the columns of datasets with so many rows in all into slices."""
    n_bytes_number = 4 if all(dataset.single for dataset in datasets) else 8
    n_bytes = COPIED_ON_DEVICE if is_foreign(datasets[0].mean) else BLOCK_BYTES
    return column_slices(n_rows, datasets[0].n_features, n_bytes_number, n_bytes)


def _product_of_single(rows: Array, U: Float) -> Float:
    """Multiply rows in single precision, and add up over slices of their columns in double precision."""
    total = np.zeros((rows.shape[0], U.shape[1]))
    single, sizes = _in_single(U)
    for columns in column_slices(rows.shape[0], rows.shape[1], 4):
        total += product(rows[:, columns], single[columns])
    return total * sizes


def _in_single(vectors: Float) -> tuple[Array, Float]:
    """Give columns in single precision, and the powers of two by which they were divided to be in its range."""
    largest = np.max(np.abs(vectors), axis=0, initial=0.0)
    sizes = np.exp2(np.ceil(np.log2(np.where(largest > 0.0, largest, 1.0))))
    return (vectors / sizes).astype(np.float32), sizes


def _less(part: Array, mean: Float) -> Float:
    """Subtract the mean in float64."""
    return double(part) - mean if is_foreign(part) else np.subtract(part, mean, dtype=np.float64)


def _pieces(blocks: tuple[Rows, ...]) -> Iterator[Rows]:
    """Cut dense data into blocks; thin sparse data stay whole, as their sums need no dense copy."""
    for block in blocks:
        if is_thin(block):
            yield block
        else:
            yield from row_blocks(block, n_bytes=COPIED_ON_DEVICE if is_foreign(block) else None)


def _column_moments(rows: Rows) -> tuple[int, Float, Float, Float]:
    """Give count, mean and centred sum of squares of each column, and what rounding has left out of the mean."""
    if not is_thin(rows):
        rows = double(dense(rows))
    count = rows.shape[0]
    mean = weighted_sum(np.ones(count), rows) / count
    squares = np.asarray(rows.multiply(rows).sum(axis=0)).ravel() if is_sparse(rows) else column_squares(rows)
    # Losing four digits does no harm here: the variances are summed, and used to estimate accuracy.
    if bool(namespace(mean).all(count * mean**2 <= (1.0 - 1e-4) * squares)):
        return count, mean, squares - count * mean**2, 0.0 * mean
    if is_sparse(rows):
        return reduce(_merged, (_column_moments(dense(block)) for block in row_blocks(rows)))
    centred, mean, rest = centred_block(rows)
    return count, mean, column_squares(centred), rest


def _merged(
    first: tuple[int, Float, Float, Float], second: tuple[int, Float, Float, Float]
) -> tuple[int, Float, Float, Float]:
    count = first[0] + second[0]
    step = (second[1] - first[1]) + (second[3] - first[3])
    mean, rest = two_sum(first[1], step * (second[0] / count))
    return count, mean, first[2] + second[2] + first[0] * second[0] / count * step**2, rest + first[3]
