"""Moments with the scatter as a matrix: the representation for more rows than columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import numpy.typing as npt
from scipy import linalg

from standout._arrays import (
    UNCOPIED_BYTES,
    Array,
    Float,
    Rows,
    column_squares,
    dense,
    double,
    is_plain,
    is_single,
    is_thin,
    product,
    row_blocks,
    row_slice,
    self_product,
    squared_lengths,
    sum_of_squares,
    weighted_sum,
)
from standout._xp import DEVICE_BLOCK_BYTES, column_products, diagonal, eigh, is_foreign, namespace, take
from standout.moments._base import Moments, NormSums, WeightSums, two_sum

# Rows are multiplied without centring them if each column's squared mean is below this many times its variance. The
# correction for the mean then costs at most two of the sixteen digits of float64, and no centred copy is needed.
UNCENTRED_LIMIT = 100.0
# Rows are taken off if a column varies no more than so many times as much with them as without.
MOST_TAKEN_OFF = 100.0
# So many rows show whether the data are far from zero, before any product is made in vain.
SOME_ROWS = 256


@dataclass(frozen=True, eq=False)
class ScatterMoments(Moments):
    """Count, mean and centred scatter matrix of a dataset.

    Attributes
    ----------
    count : int
        Number of rows.
    mean : ndarray of shape (n_features,)
    scatter : ndarray of shape (n_features, n_features)
        Sum of ``(x - mean)(x - mean)ᵀ`` over the rows, times their weights.
    precision : float
        Relative rounding error of the products it was summed from.
    norms : NormSums or None
        What Ledoit-Wolf shrinkage needs in addition to the scatter.
    rest : ndarray of shape (n_features,) or None
        What rounding has left out of the mean.
    weights : WeightSums or None
        Sums of the weights of the rows, if these do not count equally.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import gather
    >>> first, second = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([[4.0, 8.0]])
    >>> both = gather(first) + gather(second)
    >>> both.count, both.mean
    (3, array([2., 4.]))
    >>> both.covariance().round(2)
    array([[2.67, 4.67],
           [4.67, 8.67]])
    """

    count: int
    mean: Float
    scatter: Float
    precision: float = float(np.finfo(np.float64).eps)
    norms: NormSums | None = None
    rest: Float | None = None
    weights: WeightSums | None = None

    @property
    def variances(self) -> Float:
        """Variance of each column."""
        return diagonal(self.scatter) / self.total_weight

    @property
    def squared_norm(self) -> float:
        """Squared Frobenius norm of the covariance."""
        return sum_of_squares(self.scatter) / self.total_weight**2

    @property
    def root_level(self) -> float:
        """Square root of the precision: squaring the data costs half of the digits."""
        return float(np.sqrt(self.precision * self.n_features))

    def covariance(self) -> Float:
        """Give the covariance matrix."""
        return self.scatter / self.total_weight

    def root(self) -> Float:
        """Give R with ``RᵀR`` the covariance, from the eigenvectors of the correlation matrix."""
        xp = namespace(self.scatter)
        scale = xp.sqrt(self.variances)
        safe = xp.where(scale > 0, scale, 1.0)
        values, vectors = eigh(self.covariance() / (safe[:, None] * safe))
        root: Float = xp.sqrt(xp.clip(values, 0.0, None))[:, None] * vectors.T * scale
        return root

    def apply(self, U: Float) -> Float:
        """Multiply the covariance with the columns of U."""
        return product(self.scatter, U) / self.total_weight

    def variance(self, U: Float) -> Float:
        """Give the variance of the data along each column of U."""
        return column_products(U, self.apply(U))

    def taken(self, columns: npt.NDArray[np.intp]) -> ScatterMoments:
        """Give the moments of some of the columns."""
        scatter = take(take(self.scatter, columns), columns, axis=1)
        rest = None if self.rest is None else take(self.rest, columns)
        return replace(self, mean=take(self.mean, columns), scatter=scatter, norms=None, rest=rest)

    def mapped(self, matrix: Float) -> ScatterMoments:
        """Give the moments of the rows multiplied by a matrix: of ``matrix @ x`` for every row x."""
        scatter = product(product(matrix, self.scatter), matrix.T)
        mean = product(matrix, self.mean[:, None])[:, 0]
        return ScatterMoments(self.count, mean, scatter, self.precision, weights=self.weights)

    def __add__(self, other: Moments) -> Moments:
        """Give the moments of both datasets together."""
        return self._merged(other) if isinstance(other, Moments) else NotImplemented

    def without(self, part: ScatterMoments) -> ScatterMoments | None:
        """Give the moments of all rows but some of them; None if that would cost more than two digits."""
        if self.total_weight - part.total_weight < self.total_weight / MOST_TAKEN_OFF:
            return None
        left = self._merged(part, -1.0)
        kept = MOST_TAKEN_OFF * diagonal(left.scatter) >= diagonal(self.scatter)
        return left if bool(namespace(kept).all(kept)) else None

    def _merged(self, other: Moments, sign: float = 1.0) -> ScatterMoments:
        weight, mean, rest, step = self._merged_mean(other, sign)
        theirs = other.scatter if isinstance(other, ScatterMoments) else other.total_weight * other.covariance()
        scatter = self.scatter + theirs if sign > 0.0 else self.scatter - theirs
        _add_outer(scatter, weight, step)
        norms, weights = self._merged_norms(other, mean, rest, sign), self._merged_weights(other, sign)
        precision, count = max(self.precision, other.precision), self.count + round(sign) * other.count
        return ScatterMoments(count, mean, scatter, precision, norms, rest, weights)


def gather_scatter(rows: Rows, *, norms: bool = False, single: bool = True) -> ScatterMoments:
    """Sum the scatter matrix of a dataset block by block, in float64.

    Single-precision rows are centred and multiplied in single precision (twice as fast) unless `single` is false. The
    products of the blocks are summed in float64 in both cases. Foreign rows are always multiplied in float64.
    """
    if is_foreign(rows):
        return gather_on_device(rows, norms=norms)[0]
    single = single and is_single(rows)
    if is_thin(rows):
        whole = _scatter_uncentred(double(rows), norms)
        if whole is not None:
            return whole
    total: Moments | None = None
    for part in _parts(rows, norms, single):
        total = part if total is None else total + part
    assert isinstance(total, ScatterMoments)
    return total


def gather_weighted(rows: Rows, weights: Float, *, norms: bool = False, origin: Float | None = None) -> ScatterMoments:
    """Sum the scatter matrix of rows with weights block by block, in float64; fourth powers about an origin."""
    total: Moments | None = None
    start = 0
    for block in row_blocks(rows, at_least=2 * rows.shape[1]):
        some = weights[start : start + block.shape[0]]
        start += block.shape[0]
        if not float(namespace(some).sum(some)) > 0.0:
            continue
        scaled, mean, rest = weighted_block(double(dense(block)), some)
        sums = NormSums.about(scaled, some, mean, origin) if norms else None
        part = ScatterMoments(
            block.shape[0], mean, self_product(scaled), norms=sums, rest=rest, weights=WeightSums.of(some)
        )
        total = part if total is None else total + part
    assert isinstance(total, ScatterMoments)
    return total


def weighted_block(block: Float, weights: Float) -> tuple[Float, Float, Float]:
    """Give a copy of the block, centred by its weighted mean and times the roots of the weights; the mean; its rest.

    The first row is subtracted before the mean, as in `centred_block`.
    """
    xp = namespace(block)
    origin = block[:1, :]
    scaled = block - origin
    offset = weighted_sum(weights, scaled) / float(xp.sum(weights))
    scaled -= offset
    scaled *= xp.sqrt(weights)[:, None]
    return scaled, *two_sum(origin[0, :], offset)


def _parts(rows: Rows, norms: bool, single: bool) -> Iterator[ScatterMoments]:
    """Give the moments of each block."""
    centre = single or _looks_far(rows)
    workspace: Array | None = None
    origin: Array = np.zeros(0)
    enough = 2 * rows.shape[1]
    for block in row_blocks(rows, at_least=enough, n_bytes=UNCOPIED_BYTES if is_plain(rows) else None):
        numbers = dense(block) if single else double(dense(block))
        part = None if centre else _scatter_uncentred(numbers, norms)
        if part is not None:
            yield part
            continue
        # If the mean of one block is too large to multiply without centring, it is so for the following ones, too.
        centre = True
        for copied in row_blocks(numbers, at_least=enough):
            if workspace is None:
                workspace, origin = np.empty_like(copied, order="C"), copied[0].copy()
            shifted = None if single else _scatter_shifted(copied, origin, norms, workspace)
            yield _scatter_centred(copied, norms, workspace) if shifted is None else shifted


def centred_block(block: Array, workspace: Array | None = None) -> tuple[Array, Float, Float]:
    """Give a centred copy of the block, in the block's own precision, and the mean that was subtracted with its rest.

    The copy is made in the workspace if one is given: allocating memory for every block takes as long as the copy.

    The first row is subtracted before the mean. Then no number is rounded at the size of a large common offset, and a
    constant column becomes exactly zero.
    """
    if is_foreign(block):
        moved = block - block[:1, :]
        middle = namespace(block).mean(moved, axis=0)
        return moved - middle, *two_sum(block[0, :], middle)
    origin = block[0].copy()
    centred: Array = np.subtract(block, origin, out=None if workspace is None else workspace[: len(block)])
    offset = np.add.reduce(centred, axis=0, dtype=np.float64) / len(block)
    centred -= offset.astype(centred.dtype)
    return centred, *two_sum(origin.astype(np.float64), offset)


def _scatter_centred(block: Array, norms: bool, workspace: Array) -> ScatterMoments:
    centred, mean, rest = centred_block(block, workspace)
    scatter = double(self_product(centred))
    sums = NormSums.of(centred) if norms else None
    return ScatterMoments(len(block), mean, scatter, float(np.finfo(block.dtype).eps), sums, rest)


def _some_of(rows: Rows) -> Float:
    """Give some rows, spread over all, as a dense copy in float64."""
    return double(dense(row_slice(rows[:: max(rows.shape[0] // SOME_ROWS, 1), :], 0, SOME_ROWS)))


def _looks_far(rows: Rows) -> bool:
    """Tell, from some of the rows, whether they are so far from zero that they have to be centred."""
    some = _some_of(rows)
    return not _is_near(namespace(some).mean(some, axis=0), column_squares(some) / some.shape[0])


def _is_near(mean: Float, squares: Float) -> Array:
    """Tell whether rows with these means and mean squares can be corrected for the mean after multiplying them.

    On a device the answer stays there.
    """
    return namespace(mean).all(mean**2 <= UNCENTRED_LIMIT / (1.0 + UNCENTRED_LIMIT) * squares)


def _scatter_shifted(block: Array, origin: Array, norms: bool, workspace: Array) -> ScatterMoments | None:
    """Subtract a row of the data, which takes one pass less than centring; None if the row is far from the mean."""
    part = _scatter_uncentred(np.subtract(block, origin, out=workspace[: len(block)]), norms)
    if part is None:
        return None
    mean, rest = two_sum(origin, part.mean)
    return replace(part, mean=mean, rest=rest)


def _scatter_uncentred(block: Rows, norms: bool) -> ScatterMoments | None:
    """Multiply first and correct for the mean afterwards; None if that would cost accuracy."""
    count = block.shape[0]
    scatter = self_product(block)
    mean = weighted_sum(np.ones(count), block) / count
    squares = np.diagonal(scatter) / count
    if not _is_near(mean, squares):
        return None
    _add_outer(scatter, -count, mean)
    sums = _centred_norms(NormSums.of(block), count, mean, scatter) if norms else None
    return ScatterMoments(count, mean, scatter, norms=sums)


def _centred_norms(raw: NormSums, count: int, mean: Float, scatter: Float) -> NormSums:
    """Give the sums over centred rows from those over rows that are not centred."""
    trace = float(namespace(scatter).sum(diagonal(scatter)))
    return raw.unshifted(mean, count, trace, product(scatter, mean[:, None])[:, 0])


def _add_outer(matrix: Float, weight: float, vector: Float) -> None:
    """Add ``weight * vector vectorᵀ`` to a symmetric matrix in place."""
    weighted = weight * vector
    if is_foreign(matrix):
        matrix += weighted[:, None] * vector
        return
    if matrix.flags.c_contiguous and matrix.dtype == np.float64 and vector.dtype == np.float64:
        # In BLAS's order of memory this is the transpose, which is changed in place.
        linalg.blas.dger(1.0, vector, weighted, a=matrix.T, overwrite_x=False, overwrite_y=False, overwrite_a=True)
        return
    for start in range(0, len(vector), 256):
        matrix[start : start + 256] += np.multiply.outer(weighted[start : start + 256], vector)


# --- on a device ----------------------------------------------------------------------------------------------------


def gather_on_device(
    rows: Rows, *, norms: bool = False, folds: Sequence[Array | None] = (None,)
) -> list[ScatterMoments]:
    """Sum the scatter matrix of foreign rows on their device, in float64, for each of several folds.

    A fold is an array with the numbers of its rows, or None for all rows. Devices made for double precision multiply it
    as fast as single precision. As on the host, rows are corrected for the mean after multiplying them, unless that
    costs accuracy. Then one of them is subtracted before, which makes a constant column exactly zero; if a fold is far
    from it, the mean of the fold as well, in another pass.
    """
    xp = namespace(rows)
    origin = _typical_row(rows)
    for shift in (origin,) if _looks_far(rows) else (None, origin):
        sums = [_RawSums.of(_blocks_of(rows, chosen, shift), norms) for chosen in folds]
        # The host waits for this condition alone.
        if bool(xp.all(xp.stack([part.near() for part in sums]))):
            return [part.moments(shift) for part in sums]
    found = []
    for chosen, part in zip(folds, sums, strict=True):
        offset = part.total / part.count
        blocks = (block - offset for block in _blocks_of(rows, chosen, origin))
        found.append(_RawSums.of(blocks, norms).moments(origin, offset))
    return found


def sum_on_device(
    batches: Iterable[tuple[Rows, Sequence[Array | None]]], *, norms: bool = False
) -> list[ScatterMoments | None] | None:
    """Sum the scatter matrices of each fold of batches, which come with the folds of their rows, without waiting.

    What is subtracted from all rows is found in the first batch. None if that costs accuracy: then every batch has to
    be centred by itself.
    """
    sums: list[_RawSums | None] = []
    shift: Float | None = None
    for number, (rows, folds) in enumerate(batches):
        if number == 0:
            shift, sums = _typical_row(rows) if _looks_far(rows) else None, [None for _ in folds]
        for fold, chosen in enumerate(folds):
            if chosen is None or chosen.shape[0]:
                part, before = _RawSums.of(_blocks_of(rows, chosen, shift), norms), sums[fold]
                sums[fold] = part if before is None else before.plus(part)
    found = [part for part in sums if part is not None]
    if not all(bool(part.near()) for part in found):
        return None
    return [None if part is None else part.moments(shift) for part in sums]


def _typical_row(rows: Rows) -> Float:
    """Give a row that is not far from the others, as a matrix: what is subtracted is rounded at its size."""
    some = _some_of(rows)
    nearest = int(namespace(some).argmin(squared_lengths(some - namespace(some).mean(some, axis=0))))
    return row_slice(some, nearest, nearest + 1)


def _blocks_of(rows: Rows, chosen: Array | None, shift: Float | None) -> Iterator[Float]:
    """Give rows in float64, less a shift: as a whole if that needs no copy, otherwise in blocks."""
    if chosen is None and shift is None and is_plain(rows):
        yield rows
        return
    size = max(DEVICE_BLOCK_BYTES // (8 * max(rows.shape[1], 1)), 2 * rows.shape[1])
    count = rows.shape[0] if chosen is None else chosen.shape[0]
    for start in range(0, count, size):
        stop = min(start + size, count)
        block = double(row_slice(rows, start, stop) if chosen is None else take(rows, chosen[start:stop]))
        yield block if shift is None else block - shift


@dataclass(frozen=True, eq=False)
class _RawSums:
    """Sums over rows that are not centred, on their device."""

    count: int
    total: Float
    scatter: Float
    cubic: Float | None
    quartic: Float | None

    @classmethod
    def of(cls, blocks: Iterable[Float], norms: bool) -> _RawSums:
        """Sum over blocks of rows."""
        return reduce(cls.plus, (cls._of_block(block, norms) for block in blocks))

    @classmethod
    def _of_block(cls, block: Float, norms: bool) -> _RawSums:
        xp = namespace(block)
        ones = xp.ones_like(block[:, 0])
        if not norms:
            return cls(block.shape[0], product(ones[None, :], block)[0, :], self_product(block), None, None)
        lengths = squared_lengths(block)
        # One pass over the rows for both sums.
        both = product(xp.stack([ones, lengths]), block)
        return cls(block.shape[0], both[0, :], self_product(block), both[1, :], xp.sum(lengths**2))

    def near(self) -> Array:
        """Tell, on the device, whether the rows are so near zero that correcting for the mean costs no accuracy."""
        return _is_near(self.total / self.count, diagonal(self.scatter) / self.count)

    def plus(self, other: _RawSums) -> _RawSums:
        """Give the sums over both; this one's matrix is overwritten."""
        scatter = self.scatter
        scatter += other.scatter
        cubic = None if self.cubic is None or other.cubic is None else self.cubic + other.cubic
        quartic = None if self.quartic is None or other.quartic is None else self.quartic + other.quartic
        return _RawSums(self.count + other.count, self.total + other.total, scatter, cubic, quartic)

    def moments(self, *shifts: Float | None) -> ScatterMoments:
        """Centre the sums; `shifts` were subtracted from all rows."""
        count, mean, scatter = self.count, self.total / self.count, self.scatter
        _add_outer(scatter, -count, mean)
        norms = None
        if self.cubic is not None and self.quartic is not None:
            raw = NormSums(self.cubic, float(self.quartic))
            norms = _centred_norms(raw, count, mean, scatter)
        rest = None
        for shift in shifts[::-1]:
            if shift is not None:
                mean, left = two_sum(shift[0, :] if shift.ndim == 2 else shift, mean)
                rest = left if rest is None else rest + left
        return ScatterMoments(count, mean, scatter, norms=norms, rest=rest)
