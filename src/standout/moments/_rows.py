"""Moments that keep sparse rows: the representation for data that are large both ways."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from standout._arrays import Float, Rows, dense, product, self_product, stacked
from standout._messages import InvalidTypeError
from standout._xp import column_products
from standout.moments._base import Moments, WeightSums
from standout.moments._sums import Keys, keyed_scatter


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
        squares: Float = self.rows.multiply(self.rows).T @ self._shares
        # Large means cost digits. The variances of the columns only scale the problem here.
        return np.maximum(squares - self.mean**2, 0.0)

    @property
    def squared_norm(self) -> float:
        """Not available."""
        raise InvalidTypeError("sparse rows have no norm of their covariance", advice="Gather a scatter matrix.")

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
        return column_products(scores, self._shares[:, np.newaxis] * scores)

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
        found = keyed_scatter(product(self.rows, L), Keys(None), weights=self.row_weights)[0]
        assert found is not None
        return found

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
