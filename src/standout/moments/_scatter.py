"""Moments with the scatter as a matrix: the representation for more rows than columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import linalg

from standout._arrays import Array, Float, product, sum_of_squares, weighted_sum
from standout._xp import column_products, diagonal, eigh, is_foreign, namespace, take
from standout.moments._base import Moments, NormSums, WeightSums, two_sum

# Rows are removed only if no column varies more than so many times as much with them as without.
MOST_REMOVED = 100.0


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
        Sums for Ledoit-Wolf shrinkage.
    rest : ndarray of shape (n_features,) or None
        What rounding has left out of the mean.
    weights : WeightSums or None
        Sums of the weights of the rows, if rows have weights.

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

    @cached_property
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
        """Return the covariance matrix."""
        return self.scatter / self.total_weight

    def root(self) -> Float:
        """Return R with ``RᵀR`` the covariance, from the eigenvectors of the correlation matrix."""
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
        """Return the variance of the data along each column of U."""
        return column_products(U, self.apply(U))

    def taken(self, columns: npt.NDArray[np.intp]) -> ScatterMoments:
        """Return the moments of some of the columns."""
        scatter = take(take(self.scatter, columns), columns, axis=1)
        rest = None if self.rest is None else take(self.rest, columns)
        return replace(self, mean=take(self.mean, columns), scatter=scatter, norms=None, rest=rest)

    def mapped(self, L: Float) -> ScatterMoments:
        """Return the moments of ``rows @ L``; a 1-D array stands for a diagonal matrix."""
        if L.ndim == 1:
            rest = None if self.rest is None else self.rest * L
            return replace(self, mean=self.mean * L, scatter=self.scatter * (L[:, None] * L), norms=None, rest=rest)
        scatter = product(L.T, product(self.scatter, L))
        mean = product(L.T, self.mean[:, None])[:, 0]
        return replace(self, mean=mean, scatter=0.5 * (scatter + scatter.T), norms=None, rest=None)

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of both datasets together."""
        return self._merged(other) if isinstance(other, Moments) else NotImplemented

    def without(self, part: ScatterMoments) -> ScatterMoments | None:
        """Return the moments of all rows but some of them; None if that would cost more than two digits."""
        if self.total_weight - part.total_weight < self.total_weight / MOST_REMOVED:
            return None
        left = self._merged(part, -1.0)
        kept = MOST_REMOVED * diagonal(left.scatter) >= diagonal(self.scatter)
        return left if bool(namespace(kept).all(kept)) else None

    def _merged(self, other: Moments, sign: float = 1.0) -> ScatterMoments:
        weight, mean, rest, step = self._merged_mean(other, sign)
        theirs = other.scatter if isinstance(other, ScatterMoments) else other.total_weight * other.covariance()
        scatter = self.scatter + theirs if sign > 0.0 else self.scatter - theirs
        add_outer(scatter, weight, step)
        norms, weights = self._merged_norms(other, mean, rest, sign), self._merged_weights(other, sign)
        precision, count = max(self.precision, other.precision), self.count + round(sign) * other.count
        return ScatterMoments(count, mean, scatter, precision, norms, rest, weights)


def centred_block(block: Array) -> tuple[Array, Float, Float]:
    """Return a centred copy of the block, in the block's precision, and the mean that was subtracted with its rest.

    The first row is subtracted before the mean. Then no number is rounded at the size of a large common offset, and a
    constant column becomes exactly zero.
    """
    moved = block - block[:1, :]
    if is_foreign(block):
        middle = namespace(block).mean(moved, axis=0)
        return moved - middle, *two_sum(block[0, :], middle)
    offset = np.add.reduce(moved, axis=0, dtype=np.float64) / len(block)
    moved -= offset.astype(moved.dtype)
    return moved, *two_sum(block[0].astype(np.float64), offset)


def weighted_block(block: Float, weights: Float) -> tuple[Float, Float, Float]:
    """Return a copy of the block, centred by its weighted mean and times the roots of the weights; the mean; its rest.

    The first row is subtracted before the mean, as in `centred_block`.
    """
    xp = namespace(block)
    origin = block[:1, :]
    moved = block - origin
    offset = weighted_sum(weights, moved) / xp.sum(weights)
    return (moved - offset) * xp.sqrt(weights)[:, None], *two_sum(origin[0, :], offset)


def add_outer(matrix: Float, weight: float, vector: Float) -> None:
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
