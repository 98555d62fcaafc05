"""Moments that keep centred rows on a device: the representation of wide data in other array libraries."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from standout._algebra import column_products
from standout._arrays import (
    Float,
    Rows,
    double,
    product,
    row_slice,
    self_product,
    squared_lengths,
    stacked,
    sum_of_squares,
)
from standout._namespaces import namespace
from standout.moments._base import Moments, NormSums


class CentredRows(Moments):
    """Count and mean of a dataset, and its centred rows in place of their scatter.

    What `RowMoments` is on the host, with a centred copy of the rows: all that is made of them is as large as the copy
    at most, whichever there are more of, rows or columns.

    Attributes
    ----------
    count : int
        Number of rows.
    mean : array of shape (n_features,)
    rows : array of shape (count, n_features)
        As given, uncentred.
    precision : float
        Relative rounding error of the products.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import CentredRows
    >>> moments = CentredRows(np.array([[1.0, 5.0, 0.0], [3.0, 5.0, 4.0]]))
    >>> moments.mean, moments.variances
    (array([2., 5., 2.]), array([1., 0., 4.]))
    """

    precision = float(np.finfo(np.float64).eps)

    def __init__(self, rows: Rows) -> None:
        xp = namespace(rows)
        self.rows = rows
        self.count = rows.shape[0]
        # The first row goes off before the mean does, as everywhere.
        origin = double(row_slice(rows, 0, 1))
        moved = double(rows) - origin
        offset = xp.mean(moved, axis=0)
        self.mean = origin[0, :] + offset
        self._centred = moved - offset

    @property
    def variances(self) -> Float:
        """Variance of each column."""
        return column_products(self._centred, self._centred) / self.count

    @cached_property
    def norms(self) -> NormSums:  # type: ignore[override]
        """What Ledoit-Wolf shrinkage needs beside the scatter."""
        return NormSums.of(self._centred)

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
        """Squared Frobenius norm of the covariance, from the smaller of two matrices that have it."""
        if self.count > self.n_features:
            return sum_of_squares(self.covariance())
        return sum_of_squares(self.self_gram) / self.count**2

    @property
    def root_level(self) -> float:
        """The precision itself, grown by the size of the data."""
        return self.precision * max(self.count, self.n_features)

    def covariance(self) -> Float:
        """Give the covariance matrix."""
        return self_product(self._centred) / self.count

    def root(self) -> Float:
        """Give R with ``RᵀR`` the covariance."""
        return self._centred / self.count**0.5

    def apply(self, U: Float) -> Float:
        """Multiply the covariance with the columns of U."""
        return product(self._centred.T, product(self._centred, U)) / self.count

    def variance(self, U: Float) -> Float:
        """Give the variance of the data along each column of U."""
        projected = product(self._centred, U)
        return column_products(projected, projected) / self.count

    def centred_rows(self) -> Float:
        """Give the rows without their mean."""
        return self._centred

    def __add__(self, other: Moments) -> Moments:
        """Give the moments of both datasets taken as one."""
        if not isinstance(other, Moments):
            return NotImplemented
        if not isinstance(other, CentredRows):
            return other + self
        return CentredRows(stacked([self.rows, other.rows]))
