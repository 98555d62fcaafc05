"""Moments with the scatter as a matrix: the representation for more rows than columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from standout._algebra import at_least, column_products, diagonal, either, outer, root, symmetric_eigen
from standout._arrays import (
    UNCOPIED_BYTES,
    Array,
    Float,
    Rows,
    dense,
    double,
    is_plain,
    is_single,
    is_thin,
    product,
    row_blocks,
    self_product,
    sum_of_squares,
    weighted_sum,
)
from standout._namespaces import is_foreign, namespace
from standout.moments._base import Moments, NormSums

# Rows are multiplied as they are while each column's squared mean stays below this many times its variance. The
# correction afterwards then loses at most two of float64's sixteen digits, and no centred copy is needed.
UNCENTRED_LIMIT = 100.0


@dataclass(frozen=True, eq=False)
class ScatterMoments(Moments):
    """Count, mean and centred scatter matrix of a dataset.

    Attributes
    ----------
    count : int
        Number of rows.
    mean : ndarray of shape (n_features,)
    scatter : ndarray of shape (n_features, n_features)
        Sum of ``(x - mean)(x - mean)ᵀ`` over the rows.
    precision : float
        Relative rounding error of the products it was summed from.
    norms : NormSums or None
        What Ledoit-Wolf shrinkage needs beside the scatter.

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

    @property
    def variances(self) -> Float:
        """Variance of each column."""
        return diagonal(self.scatter) / self.count

    @property
    def squared_norm(self) -> float:
        """Squared Frobenius norm of the covariance."""
        return sum_of_squares(self.scatter) / self.count**2

    @property
    def root_level(self) -> float:
        """Square root of the precision: squaring the data costs half of the digits."""
        return float(np.sqrt(self.precision * self.n_features))

    def covariance(self) -> Float:
        """Give the covariance matrix."""
        return self.scatter / self.count

    def root(self) -> Float:
        """Give R with ``RᵀR`` the covariance, from the eigenvectors of the correlation matrix."""
        scale = root(self.variances)
        safe = either(scale > 0, scale, 1.0)
        values, vectors = symmetric_eigen(self.covariance() / outer(safe, safe))
        result: Float = root(at_least(values, 0.0))[:, np.newaxis] * vectors.T * scale
        return result

    def apply(self, U: Float) -> Float:
        """Multiply the covariance with the columns of U."""
        return product(self.scatter, U) / self.count

    def variance(self, U: Float) -> Float:
        """Give the variance of the data along each column of U."""
        return column_products(U, self.apply(U))

    def mapped(self, matrix: Float) -> ScatterMoments:
        """Give the moments of the rows after multiplication by a matrix."""
        scatter = product(product(matrix, self.scatter), matrix.T)
        mean = product(matrix, self.mean[:, np.newaxis])[:, 0]
        return ScatterMoments(self.count, mean, scatter, self.precision)

    def __add__(self, other: Moments) -> Moments:
        """Give the moments of both datasets taken as one."""
        if not isinstance(other, Moments):
            return NotImplemented
        count, mean, step, weight = self._merged_mean(other)
        theirs = other.scatter if isinstance(other, ScatterMoments) else other.count * other.covariance()
        scatter = self.scatter + theirs
        _rank_one(scatter, weight, step)
        return ScatterMoments(
            count, mean, scatter, max(self.precision, other.precision), self._merged_norms(other, mean)
        )


def gather_scatter(rows: Rows, *, norms: bool = False, single: bool = True) -> ScatterMoments:
    """Sum the scatter matrix of a dataset block by block, in float64.

    Single-precision rows are centred and multiplied in single precision (twice as fast) unless `single` is false;
    the blocks' products are summed in float64 either way.
    """
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


def _parts(rows: Rows, norms: bool, single: bool) -> Iterator[ScatterMoments]:
    """Give the moments of one block after the other."""
    centre = single
    workspace: Array | None = None
    enough = 2 * rows.shape[1]
    for block in row_blocks(rows, at_least=enough, n_bytes=UNCOPIED_BYTES if is_plain(rows) else None):
        numbers = dense(block) if single else double(dense(block))
        part = None if centre else _scatter_uncentred(numbers, norms)
        if part is not None:
            yield part
            continue
        # Once a block has a mean too large for a correction afterwards, the following ones will have it too.
        centre = True
        for copied in row_blocks(numbers, at_least=enough):
            if workspace is None:
                workspace = np.empty_like(copied, order="C")
            yield _scatter_centred(copied, norms, workspace)


def centred_block(block: Array, workspace: Array | None = None) -> tuple[Array, Float]:
    """Give a centred copy of the block, in its own precision, and the mean that was taken off.

    The copy is made in the workspace, if one is given: fresh memory for every block would cost as much as the copy.

    The first row goes off before the mean does: then no number is rounded at the size of a large common offset, and
    a constant column becomes exactly zero.
    """
    if is_foreign(block):
        xp = namespace(block)
        moved = block - block[:1, :]
        middle = xp.mean(moved, axis=0)
        return moved - middle, block[0, :] + middle
    origin = block[0].copy()
    centred: Array = np.subtract(block, origin, out=None if workspace is None else workspace[: len(block)])
    offset = np.add.reduce(centred, axis=0, dtype=np.float64) / len(block)
    centred -= offset.astype(centred.dtype)
    return centred, origin.astype(np.float64) + offset


def _scatter_centred(block: Array, norms: bool, workspace: Array) -> ScatterMoments:
    centred, mean = centred_block(block, workspace)
    scatter = double(self_product(centred))
    sums = NormSums.of(centred) if norms else None
    return ScatterMoments(len(block), mean, scatter, float(np.finfo(block.dtype).eps), sums)


def _scatter_uncentred(block: Rows, norms: bool) -> ScatterMoments | None:
    """Multiply first and correct for the mean afterwards; None where that would cost accuracy."""
    count = block.shape[0]
    scatter = self_product(block)
    mean = weighted_sum(np.ones(count), block) / count
    squares = np.diagonal(scatter) / count
    if not np.all(mean**2 <= UNCENTRED_LIMIT / (1.0 + UNCENTRED_LIMIT) * squares):
        return None
    _rank_one(scatter, -count, mean)
    sums = None
    if norms:
        sums = NormSums.of(block).unshifted(
            mean, count, float(np.trace(scatter)), product(scatter, mean[:, np.newaxis])[:, 0]
        )
    return ScatterMoments(count, mean, scatter, norms=sums)


def _rank_one(matrix: Float, weight: float, vector: Float) -> None:
    """Add ``weight * vector vectorᵀ`` to a symmetric matrix in place."""
    if is_foreign(matrix):
        matrix += weight * outer(vector, vector)
        return
    weighted = weight * vector
    for start in range(0, len(vector), 256):
        matrix[start : start + 256] += np.multiply.outer(weighted[start : start + 256], vector)
