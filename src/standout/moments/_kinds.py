"""The kinds of moments: the scatter as a matrix, or the rows themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse

from standout._arrays import (
    Array,
    Float,
    Rows,
    double,
    in_type_of,
    is_sparse,
    product,
    self_product,
    stacked,
    weighted_sum,
)
from standout._messages import InvalidTypeError
from standout._xp import diagonal, is_foreign, namespace, nonnegative, take
from standout.moments._base import Moments, NormSums, WeightSums, two_sum

# The moments of some rows are subtracted from the moments of all rows only if the total weight, and the scatter of
# every column, become smaller by at most this factor. The result then loses at most two digits.
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
        Sum of ``w (x - mean)(x - mean)ᵀ`` over the rows x, with the weight w of each row; w is 1 without weights.
    precision : float
        Relative rounding error of the products that were summed.
    norms : NormSums or None
        Sums for Ledoit-Wolf shrinkage.
    rest : ndarray of shape (n_features,) or 0
        Rounding error of `mean`: ``mean + rest`` is more exact.
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
    rest: Float | float = 0.0
    weights: WeightSums | None = None

    @cached_property
    def variances(self) -> Float:
        """Variance of each column."""
        # Rounding can make the variance of a nearly constant column negative.
        return nonnegative(diagonal(self.scatter)) / self.total_weight

    def covariance(self) -> Float:
        """Return the covariance matrix."""
        return self.scatter / self.total_weight

    def apply(self, U: Float) -> Float:
        """Multiply the covariance with the columns of U."""
        return product(self.scatter, U) / self.total_weight

    def taken(self, columns: npt.NDArray[np.intp]) -> ScatterMoments:
        """Return the moments of some of the columns."""
        scatter = take(take(self.scatter, columns), columns, axis=1)
        return replace(self, mean=take(self.mean, columns), scatter=scatter, norms=None, rest=0.0)

    def mapped(self, L: Float) -> ScatterMoments:
        """Return the moments of ``rows @ L``; a 1-D array stands for a diagonal matrix."""
        if L.ndim == 1:
            return replace(self, mean=self.mean * L, scatter=self.scatter * (L[:, None] * L), norms=None, rest=0.0)
        scatter = product(L.T, product(self.scatter, L))
        return replace(self, mean=L.T @ self.mean, scatter=0.5 * (scatter + scatter.T), norms=None, rest=0.0)

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of the rows of this dataset and of another one together."""
        return self._merged(other) if isinstance(other, Moments) else NotImplemented

    def without(self, part: ScatterMoments) -> ScatterMoments | None:
        """Return the moments without the rows of `part`; None if the subtraction would lose more than two digits."""
        if self.total_weight - part.total_weight < self.total_weight / MOST_REMOVED:
            return None
        left = self._merged(part, -1.0)
        kept = MOST_REMOVED * diagonal(left.scatter) >= diagonal(self.scatter)
        return left if bool(namespace(kept).all(kept)) else None

    def _merged(self, other: Moments, sign: float = 1.0) -> ScatterMoments:
        """Return the moments with the rows of the other dataset added (sign 1) or removed (sign -1)."""
        if self.exact is not other.exact:
            problem = "exact sums and private sums cannot be added: the noise of the result would not be known"
            raise InvalidTypeError(problem, advice="Release every dataset, or none.")
        own, theirs = self.total_weight, sign * other.total_weight
        step = other.mean - self.mean + other.rest - self.rest
        mean, rest = two_sum(self.mean, step * (theirs / (own + theirs)))
        rest = rest + self.rest
        weights = None
        if self.weights is not None or other.weights is not None:
            weights = WeightSums(own + theirs, self._squared_weights + sign * other._squared_weights)
        # Fourth powers may be out of range. `ledoit_wolf` raises an error if they are needed.
        norms = None
        if self.norms is not None and other.norms is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                norms = self._norms_about(self.norms, mean, rest).plus(
                    other._norms_about(other.norms, mean, rest), sign
                )
        theirs_scatter = other.scatter if isinstance(other, ScatterMoments) else other.total_weight * other.covariance()
        scatter = self.scatter + theirs_scatter if sign > 0.0 else self.scatter - theirs_scatter
        add_outer(scatter, own * theirs / (own + theirs), step)
        count, precision = self.count + round(sign) * other.count, max(self.precision, other.precision)
        return ScatterMoments(count, mean, scatter, precision, norms, rest, weights)


@dataclass(frozen=True, eq=False)
class RowMoments(Moments):
    """Moments that keep the rows of a dataset instead of a scatter matrix.

    The rows are sparse, or they are rows of a kernel matrix. Only `covariance` forms a matrix of size
    n_features x n_features.

    Attributes
    ----------
    rows : scipy.sparse.csr_array or ndarray of shape (count, n_features)
        Uncentred, in float64.
    row_weights : ndarray of shape (count,) or None

    Examples
    --------
    >>> from scipy import sparse
    >>> from standout.moments import gather
    >>> moments = gather(sparse.random_array((200, 30_000), density=1e-3, format="csr", rng=0), kind="rows")
    >>> moments.variances.shape
    (30000,)
    """

    rows: Rows
    row_weights: Float | None = None

    precision = float(np.finfo(np.float64).eps)
    norms = None

    @property
    def count(self) -> int:  # type: ignore[override]
        """Number of rows."""
        return int(self.rows.shape[0])

    @cached_property
    def weights(self) -> WeightSums | None:  # type: ignore[override]
        """Sums of the weights."""
        return None if self.row_weights is None else WeightSums.of(self.row_weights)

    @cached_property
    def _shares(self) -> Float:
        """The weight of each row, with sum 1."""
        weights = np.ones(self.count) if self.row_weights is None else self.row_weights
        return weights / weights.sum()

    @cached_property
    def mean(self) -> Float:  # type: ignore[override]
        """Mean of each column."""
        return self.rows.T @ self._shares

    @cached_property
    def variances(self) -> Float:
        """Variance of each column."""
        if not is_sparse(self.rows):
            # Dense rows are rows of a kernel matrix. Their variances are used only to scale the problem, so the
            # rounding errors of this formula do not matter.
            return np.maximum((self.rows**2).T @ self._shares - self.mean**2, 0.0)
        rows = sparse.csr_array(self.rows)
        # Subtract the mean from the stored numbers before squaring. Squares of large means would lose digits.
        away, stored = rows.data - self.mean[rows.indices], np.ones(rows.nnz)
        within, share = (
            sparse.csr_array((values, rows.indices, rows.indptr), shape=rows.shape).T @ self._shares
            for values in (away**2, stored)
        )
        # The mean of a constant column has a rounding error, so `within` is not exactly zero. Set it to zero if it is
        # not larger than this error explains.
        within = np.where(within > self.count * (self.precision * self.mean) ** 2, within, 0.0)
        zeros = 1.0 - share
        return within + np.where(zeros > self.precision * self.count, zeros, 0.0) * self.mean**2

    def covariance(self) -> Float:
        """Return the covariance matrix."""
        scaled = sparse.csr_array(self.rows.multiply(np.sqrt(self._shares)[:, np.newaxis]))
        return self_product(scaled) - np.multiply.outer(self.mean, self.mean)

    def apply(self, U: Float) -> Float:
        """Multiply the covariance with the columns of U."""
        return self.rows.T @ (self._shares[:, np.newaxis] * self._scores(U))

    def variance(self, U: Float) -> Float:
        """Return the variance of the data along each column of U."""
        scores = self._scores(U)
        return self._shares @ scores**2

    def _scores(self, U: Float) -> Float:
        scores: Float = product(self.rows, U) - self.mean @ U
        # Because of rounding, the mean of these scores is not exactly zero. Subtract it, so that `apply` needs no
        # correction for the mean.
        return scores - self._shares @ scores

    def taken(self, columns: npt.NDArray[np.intp]) -> RowMoments:
        """Return the moments of some of the columns."""
        return RowMoments(self.rows[:, columns], self.row_weights)

    def mapped(self, L: Float) -> Moments:
        """Return the moments of ``rows @ L``; a 1-D array stands for a diagonal matrix."""
        if L.ndim == 1:
            return RowMoments(sparse.csr_array(self.rows.multiply(L[np.newaxis, :])), self.row_weights)
        covariance = product(L.T, self.apply(L))
        scatter = 0.5 * self.total_weight * (covariance + covariance.T)
        return ScatterMoments(self.count, L.T @ self.mean, scatter, weights=self.weights)

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of the rows of this dataset and of another one together."""
        if not isinstance(other, Moments):
            return NotImplemented
        if not isinstance(other, RowMoments):
            return other + self
        weights = None
        if self.row_weights is not None or other.row_weights is not None:
            both = [np.ones(part.count) if part.row_weights is None else part.row_weights for part in (self, other)]
            weights = np.concatenate(both)
        return RowMoments(stacked([self.rows, other.rows]), weights)


def centred_block(block: Array, weights: Float | None = None) -> tuple[Array, Float, Float]:
    """Return the centred block, the mean that was subtracted, and the rounding error of this mean.

    The rows of the centred block are multiplied by the square roots of their weights. The first row is subtracted from
    all rows before the mean is computed. So a large mean causes no large rounding errors, and constant columns become
    exactly zero. The centred block is a copy in the precision of the block.
    """
    xp = namespace(block)
    moved = block - block[:1, :]
    if weights is None:
        offset = xp.sum(moved, axis=0, dtype=xp.float64) / block.shape[0]
    else:
        offset = weighted_sum(weights, moved) / xp.sum(weights)
    moved -= in_type_of(offset, block)
    return moved if weights is None else moved * xp.sqrt(weights)[:, None], *two_sum(double(block[0, :]), offset)


def add_outer(matrix: Float, weight: float, vector: Float) -> None:
    """Add ``weight * vector vectorᵀ`` to a symmetric matrix in place."""
    weighted = weight * vector
    if is_foreign(matrix) or not (matrix.flags.c_contiguous and matrix.dtype == vector.dtype == np.float64):
        matrix += weighted[:, None] * vector
        return
    # BLAS needs Fortran order. The transpose of a C-ordered matrix has this order and is changed in place.
    linalg.blas.dger(1.0, vector, weighted, a=matrix.T, overwrite_x=False, overwrite_y=False, overwrite_a=True)
