"""Moments with the scatter as a QR root: the representation for ill-conditioned data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from standout._arrays import (
    Float,
    Rows,
    dense,
    double,
    product,
    row_blocks,
    self_product,
    stacked,
    sum_of_squares,
)
from standout._xp import column_products, is_foreign, namespace, take
from standout.moments._base import Moments, NormSums, WeightSums
from standout.moments._scatter import ScatterMoments, centred_block, weighted_block


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
        What rounding has left out of the mean.
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
    def squared_norm(self) -> float:
        """Squared Frobenius norm of the covariance."""
        return sum_of_squares(self_product(self.scatter_root.T)) / self.total_weight**2

    @property
    def root_level(self) -> float:
        """The precision times the size of the root: no digits are lost by squaring."""
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
        rest = None if self.rest is None else take(self.rest, columns)
        return replace(self, mean=take(self.mean, columns), scatter_root=root, norms=None, rest=rest)

    def mapped(self, L: Float) -> RootMoments:
        """Return the moments of ``rows @ L``; a 1-D array stands for a diagonal matrix."""
        if L.ndim == 1:
            rest = None if self.rest is None else self.rest * L
            return replace(self, mean=self.mean * L, scatter_root=self.scatter_root * L, norms=None, rest=rest)
        root = _compressed([product(self.scatter_root, L)])
        return replace(self, mean=product(L.T, self.mean[:, None])[:, 0], scatter_root=root, norms=None, rest=None)

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of both datasets together."""
        if not isinstance(other, Moments):
            return NotImplemented
        if isinstance(other, ScatterMoments):
            return other + self
        weight, mean, rest, step = self._merged_mean(other)
        size = float(np.sqrt(other.total_weight))
        theirs = other.scatter_root if isinstance(other, RootMoments) else size * other.root()
        root = _compressed([self.scatter_root, theirs, float(np.sqrt(weight)) * step[np.newaxis, :]])
        norms, weights = self._merged_norms(other, mean, rest), self._merged_weights(other)
        precision = max(self.precision, other.precision)
        return RootMoments(self.count + other.count, mean, root, precision, norms, rest, weights)


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
        centred, mean, rest = centred_block(numbers) if some is None else weighted_block(numbers, some)
        sums = NormSums.of(centred, some) if norms else None
        known = None if some is None else WeightSums.of(some)
        part = RootMoments(centred.shape[0], mean, _compressed([centred]), norms=sums, rest=rest, weights=known)
        total = part if total is None else total + part
    return total if isinstance(total, RootMoments) else None


def _compressed(parts: list[Float]) -> Float:
    """Stack roots, and reduce the stack to no more rows than columns."""
    stack = stacked(parts)
    return stack if stack.shape[0] <= stack.shape[1] else _triangle(stack)


def _triangle(matrix: Float) -> Float:
    """Return the triangular factor of a matrix."""
    if is_foreign(matrix):
        return namespace(matrix).linalg.qr(matrix)[1]
    return np.asarray(np.linalg.qr(matrix, mode="r"))
