"""The kinds of moments: the scatter as a matrix, as a QR root for ill-conditioned data, or as sparse rows."""

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
    dense,
    double,
    in_type_of,
    is_sparse,
    product,
    row_blocks,
    self_product,
    stacked,
    weighted_sum,
)
from standout._xp import column_products, diagonal, eigh, is_foreign, namespace, take
from standout.moments._base import Moments, NormSums, WeightSums, two_sum

# Rows are removed only if the variance of every column falls by at most this factor.
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
        The rounding error of the mean, which merges add to it.
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
        # Rounding can make the variance of a nearly constant column negative.
        return namespace(self.scatter).clip(diagonal(self.scatter), 0.0, None) / self.total_weight

    @property
    def root_level(self) -> float:
        """Square root of the precision, because squaring the data loses half of the digits."""
        return float(np.sqrt(self.precision * self.n_features))

    def covariance(self) -> Float:
        """Return the covariance matrix."""
        return self.scatter / self.total_weight

    def root(self) -> Float:
        """Return R with ``RᵀR`` equal to the covariance, from the eigenvectors of the correlation matrix."""
        xp = namespace(self.scatter)
        scale = xp.sqrt(self.variances)
        safe = xp.where(scale > 0, scale, 1.0)
        values, vectors = eigh(self.covariance() / (safe[:, None] * safe))
        root: Float = xp.sqrt(xp.clip(values, 0.0, None))[:, None] * vectors.T * scale
        return root

    def apply(self, U: Float) -> Float:
        """Multiply the covariance with the columns of U."""
        return product(self.scatter, U) / self.total_weight

    def taken(self, columns: npt.NDArray[np.intp]) -> ScatterMoments:
        """Return the moments of some of the columns."""
        scatter = take(take(self.scatter, columns), columns, axis=1)
        return replace(self, mean=take(self.mean, columns), scatter=scatter, norms=None, rest=None)

    def mapped(self, L: Float) -> ScatterMoments:
        """Return the moments of ``rows @ L``; a 1-D array stands for a diagonal matrix."""
        if L.ndim == 1:
            return replace(self, mean=self.mean * L, scatter=self.scatter * (L[:, None] * L), norms=None, rest=None)
        scatter = product(L.T, product(self.scatter, L))
        return replace(self, mean=L.T @ self.mean, scatter=0.5 * (scatter + scatter.T), norms=None, rest=None)

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of both datasets together."""
        return self._merged(other) if isinstance(other, Moments) else NotImplemented

    def without(self, part: ScatterMoments) -> ScatterMoments | None:
        """Return the moments without some of the rows; None if this would lose more than two digits."""
        if self.total_weight - part.total_weight < self.total_weight / MOST_REMOVED:
            return None
        left = self._merged(part, -1.0)
        kept = MOST_REMOVED * diagonal(left.scatter) >= diagonal(self.scatter)
        return left if bool(namespace(kept).all(kept)) else None

    def _merged(self, other: Moments, sign: float = 1.0) -> ScatterMoments:
        fields, weight, step = self._merged_fields(other, sign)
        theirs = other.scatter if isinstance(other, ScatterMoments) else other.total_weight * other.covariance()
        scatter = self.scatter + theirs if sign > 0.0 else self.scatter - theirs
        add_outer(scatter, weight, step)
        return ScatterMoments(scatter=scatter, **fields)


@dataclass(frozen=True, eq=False)
class RootMoments(Moments):
    """Count, mean and a root of the scatter: ``rootᵀ root`` is the scatter, which is never formed.

    A root represents directions whose spread is 1e-13 of the largest, a scatter matrix only those above 1e-7. Use it
    for ill-conditioned or rank-deficient data. Two roots are merged by stacking them and reducing the stack to
    `n_features` rows by a QR decomposition.

    Attributes
    ----------
    count : int
        Number of rows.
    mean : ndarray of shape (n_features,)
    scatter_root : ndarray of shape (r, n_features), r <= n_features
    precision : float
        Relative rounding error of the numbers.
    norms : NormSums or None
        Sums for Ledoit-Wolf shrinkage.
    rest : ndarray of shape (n_features,) or None
        The rounding error of the mean, which merges add to it.
    weights : WeightSums or None
        Sums of the weights of the rows, if rows have weights.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import gather
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 8.0]])
    >>> moments = gather(X, kind="root")
    >>> np.allclose(moments.scatter_root.T @ moments.scatter_root, gather(X).scatter)
    True
    """

    count: int
    mean: Float
    scatter_root: Float
    precision: float = float(np.finfo(np.float64).eps)
    norms: NormSums | None = None
    rest: Float | None = None
    weights: WeightSums | None = None

    @property
    def variances(self) -> Float:
        """Variance of each column."""
        return column_products(self.scatter_root, self.scatter_root) / self.total_weight

    @property
    def root_level(self) -> float:
        """The precision times the size of the root, because nothing is squared."""
        return self.precision * max(self.scatter_root.shape)

    def covariance(self) -> Float:
        """Return the covariance matrix."""
        return self_product(self.scatter_root) / self.total_weight

    def root(self) -> Float:
        """Return R with ``RᵀR`` the covariance."""
        return self.scatter_root / float(np.sqrt(self.total_weight))

    def apply(self, U: Float) -> Float:
        """Multiply the covariance with the columns of U."""
        return product(self.scatter_root.T, product(self.scatter_root, U)) / self.total_weight

    def variance(self, U: Float) -> Float:
        """Return the variance of the data along each column of U."""
        projected = product(self.scatter_root, U)
        return column_products(projected, projected) / self.total_weight

    def taken(self, columns: npt.NDArray[np.intp]) -> RootMoments:
        """Return the moments of some of the columns."""
        root = _compressed([take(self.scatter_root, columns, axis=1)])
        return replace(self, mean=take(self.mean, columns), scatter_root=root, norms=None, rest=None)

    def mapped(self, L: Float) -> RootMoments:
        """Return the moments of ``rows @ L``; a 1-D array stands for a diagonal matrix."""
        if L.ndim == 1:
            return replace(self, mean=self.mean * L, scatter_root=self.scatter_root * L, norms=None, rest=None)
        root = _compressed([product(self.scatter_root, L)])
        return replace(self, mean=L.T @ self.mean, scatter_root=root, norms=None, rest=None)

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of both datasets together."""
        if not isinstance(other, Moments):
            return NotImplemented
        if isinstance(other, ScatterMoments):
            return other + self
        fields, weight, step = self._merged_fields(other)
        theirs = float(np.sqrt(other.total_weight)) * other.root()
        root = _compressed([self.scatter_root, theirs, float(np.sqrt(weight)) * step[np.newaxis, :]])
        return RootMoments(scatter_root=root, **fields)


@dataclass(frozen=True, eq=False)
class RowMoments(Moments):
    """Sparse rows of a dataset in place of their scatter, for the iterative solver.

    No matrix of size n_features x n_features is formed except by `covariance`.

    Attributes
    ----------
    rows : scipy.sparse.csr_array of shape (count, n_features)
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
        mean: Float = self.rows.T @ self._shares
        return mean

    @cached_property
    def variances(self) -> Float:
        """Variance of each column."""
        squares: Float = (self.rows.multiply(self.rows) if is_sparse(self.rows) else self.rows**2).T @ self._shares
        # Large means cost digits. Here the variances of the columns only scale the problem.
        return np.maximum(squares - self.mean**2, 0.0)

    @property
    def root_level(self) -> float:
        """Rounding error of `root`."""
        return self.precision * max(self.rows.shape)

    def covariance(self) -> Float:
        """Return the covariance matrix."""
        scaled = sparse.csr_array(self.rows.multiply(np.sqrt(self._shares)[:, np.newaxis]))
        return self_product(scaled) - np.multiply.outer(self.mean, self.mean)

    def root(self) -> Float:
        """Return R with ``RᵀR`` the covariance."""
        return np.sqrt(self._shares)[:, np.newaxis] * (dense(self.rows) - self.mean)

    def apply(self, U: Float) -> Float:
        """Multiply the covariance with the columns of U."""
        combined: Float = self.rows.T @ (self._shares[:, np.newaxis] * self._scores(U))
        return combined

    def variance(self, U: Float) -> Float:
        """Return the variance of the data along each column of U."""
        scores = self._scores(U)
        return self._shares @ scores**2

    def _scores(self, U: Float) -> Float:
        scores: Float = product(self.rows, U) - self.mean @ U
        # Scores have the mean zero up to rounding. Then the sum in `apply` needs no other correction for the mean.
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
        """Return the moments of both datasets together."""
        if not isinstance(other, Moments):
            return NotImplemented
        if not isinstance(other, RowMoments):
            return other + self
        weights = None
        if self.row_weights is not None or other.row_weights is not None:
            both = [np.ones(part.count) if part.row_weights is None else part.row_weights for part in (self, other)]
            weights = np.concatenate(both)
        return RowMoments(stacked([self.rows, other.rows]), weights)


def gather_root(rows: Rows, weights: Float | None = None, *, norms: bool = False) -> RootMoments | None:
    """Compute the QR root of a dataset's scatter block by block, in float64; None if all weights are zero."""
    total: Moments | None = None
    start = 0
    for block in row_blocks(rows, at_least=2 * rows.shape[1]):
        numbers = double(dense(block))
        some = None if weights is None else weights[start : start + block.shape[0]]
        start += block.shape[0]
        if some is not None and not float(namespace(some).sum(some)) > 0.0:
            continue
        centred, mean, rest = centred_block(numbers, some)
        sums = NormSums.of(centred, some) if norms else None
        known = None if some is None else WeightSums.of(some)
        part = RootMoments(centred.shape[0], mean, _compressed([centred]), norms=sums, rest=rest, weights=known)
        total = part if total is None else total + part
    return total if isinstance(total, RootMoments) else None


def _compressed(parts: list[Float]) -> Float:
    """Stack roots, and reduce the stack to no more rows than columns."""
    stack = stacked(parts)
    if stack.shape[0] <= stack.shape[1]:
        return stack
    return namespace(stack).linalg.qr(stack)[1] if is_foreign(stack) else np.asarray(np.linalg.qr(stack, mode="r"))


def centred_block(block: Array, weights: Float | None = None) -> tuple[Array, Float, Float]:
    """Return the centred block times the roots of the weights, the mean that was subtracted, and its rounding error.

    The first row is subtracted before the mean. This avoids rounding at the size of a large common offset, and makes
    constant columns exactly zero. The copy has the block's precision.
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
    # In BLAS's order of memory this is the transpose, which is changed in place.
    linalg.blas.dger(1.0, vector, weighted, a=matrix.T, overwrite_x=False, overwrite_y=False, overwrite_a=True)
