"""What every representation of a dataset's moments has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from standout._algebra import total
from standout._arrays import Float, Rows, double, in_type_of, inner, squared_lengths, sum_of_squares, weighted_sum


@dataclass(frozen=True, eq=False)
class NormSums:
    """Two sums over the centred rows z, kept beside the scatter because Ledoit-Wolf shrinkage needs them.

    Only the second enters the shrinkage; the first is what lets the second move to another mean, so that the pair
    can be merged.

    Attributes
    ----------
    cubic : ndarray of shape (n_features,)
        Sum of ``|z|² z``.
    quartic : float
        Sum of ``|z|⁴``.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import NormSums
    >>> NormSums.of(np.array([[3.0, 4.0], [-3.0, -4.0]])).quartic
    1250.0
    """

    cubic: Float
    quartic: float

    @classmethod
    def of(cls, rows: Rows) -> NormSums:
        """Sum over the rows as they are."""
        lengths = double(squared_lengths(rows))
        return cls(double(weighted_sum(in_type_of(lengths, rows), rows)), sum_of_squares(lengths))

    def shifted(self, shift: Float, count: int, trace: float, scatter_shift: Float) -> NormSums:
        """Give the sums over ``z + shift``, where the `count` rows z have mean zero.

        `trace` is the trace of their scatter, `scatter_shift` the scatter times `shift`.
        """
        length = inner(shift, shift)
        quartic = (
            self.quartic
            + 4.0 * inner(self.cubic, shift)
            + 4.0 * inner(shift, scatter_shift)
            + 2.0 * length * trace
            + count * length * length
        )
        cubic = self.cubic + (trace + count * length) * shift + 2.0 * scatter_shift
        return NormSums(cubic, quartic)

    def unshifted(self, shift: Float, count: int, trace: float, scatter_shift: Float) -> NormSums:
        """Undo `shifted`: from the sums over ``z + shift`` to those over the centred z."""
        length = inner(shift, shift)
        cubic = self.cubic - (trace + count * length) * shift - 2.0 * scatter_shift
        quartic = (
            self.quartic
            - 4.0 * inner(cubic, shift)
            - 4.0 * inner(shift, scatter_shift)
            - 2.0 * length * trace
            - count * length * length
        )
        return NormSums(cubic, max(quartic, 0.0))


class Moments(ABC):
    """Count, mean and scatter of a dataset: all that the linear methods need to know of it.

    The representations differ in how they keep the scatter: as a matrix (`ScatterMoments`), as a root
    (`RootMoments`), or as the rows themselves (`RowMoments`). All add up with ``+``, and all answer the same questions.

    Attributes
    ----------
    count : int
        Number of rows.
    mean : ndarray of shape (n_features,)
    precision : float
        Relative rounding error of the numbers the scatter was computed with.
    norms : NormSums or None
        What Ledoit-Wolf shrinkage needs beside the scatter, if it was gathered.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import Moments, gather
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 8.0]])
    >>> both = gather(X[:1]) + gather(X[1:])
    >>> isinstance(both, Moments), both.count, np.allclose(both.covariance(), np.cov(X.T, bias=True))
    (True, 3, True)
    """

    count: int
    mean: Float
    precision: float
    norms: NormSums | None

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.mean.shape[0])

    @property
    @abstractmethod
    def variances(self) -> Float:
        """Variance of each column: the diagonal of the covariance."""

    @property
    @abstractmethod
    def squared_norm(self) -> float:
        """Squared Frobenius norm of the covariance."""

    @property
    @abstractmethod
    def root_level(self) -> float:
        """Relative rounding error of `root`, as a share of its largest singular value."""

    @abstractmethod
    def covariance(self) -> Float:
        """Give the covariance matrix, with ``1/n`` as in the paper."""

    @abstractmethod
    def root(self) -> Float:
        """Give a matrix R of shape (r, n_features) with ``RᵀR`` the covariance."""

    @abstractmethod
    def apply(self, U: Float) -> Float:
        """Multiply the covariance with the columns of U."""

    @abstractmethod
    def variance(self, U: Float) -> Float:
        """Give the variance of the data along each column of U: ``uᵀCu``."""

    @abstractmethod
    def __add__(self, other: Moments) -> Moments:
        """Give the moments of both datasets taken as one."""

    @property
    def quartic(self) -> float | None:
        """Sum of the fourth powers of the centred rows' lengths, if it was gathered."""
        return None if self.norms is None else self.norms.quartic

    @property
    def total_variance(self) -> float:
        """Trace of the covariance."""
        return total(self.variances)

    def _merged_mean(self, other: Moments) -> tuple[int, Float, Float, float]:
        """Count and mean of the union, the step between the means, and the weight of its square in the scatter."""
        count = self.count + other.count
        step = other.mean - self.mean
        return count, self.mean + step * (other.count / count), step, self.count * other.count / count

    def _norms_about(self, mean: Float) -> NormSums | None:
        if self.norms is None:
            return None
        shift = self.mean - mean
        moved = self.count * self.apply(shift[:, None])[:, 0]
        return self.norms.shifted(shift, self.count, self.count * self.total_variance, moved)

    def _merged_norms(self, other: Moments, mean: Float) -> NormSums | None:
        first, second = self._norms_about(mean), other._norms_about(mean)
        if first is None or second is None:
            return None
        return NormSums(first.cubic + second.cubic, first.quartic + second.quartic)
