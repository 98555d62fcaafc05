"""The base class of moments, additional sums of norms and of weights, and Ledoit-Wolf shrinkage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from standout._arrays import Float, Rows, double, in_type_of, inner, squared_lengths, sum_of_squares, weighted_sum
from standout._messages import InvalidTypeError, InvalidValueError
from standout._xp import column_products, like, namespace, nonnegative


@dataclass(frozen=True, eq=False)
class NormSums:
    """Sums over the centred rows z that Ledoit-Wolf shrinkage needs in addition to the scatter.

    The shrinkage uses only `quartic`. The other sums are needed to merge two datasets, because merging changes the
    mean. If rows have weights, all sums are weighted.

    Attributes
    ----------
    cubic : ndarray of shape (n_features,)
        Sum of ``|z|² z``.
    quartic : float
        Sum of ``|z|⁴``.
    linear : ndarray of shape (n_features,)
        Sum of z.
    quadratic : float
        Sum of ``|z|²``.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import NormSums
    >>> NormSums.of(np.array([[3.0, 4.0], [-3.0, -4.0]])).quartic
    1250.0
    """

    cubic: Float
    quartic: float
    linear: Float
    quadratic: float

    @classmethod
    def of(cls, rows: Rows, weights: Float | None = None) -> NormSums:
        """Return the sums over rows, which must be centred and multiplied by the square roots of their weights."""
        weighed = double(squared_lengths(rows))
        xp = namespace(weighed)
        roots = xp.ones_like(weighed) if weights is None else weights**0.5
        lengths = weighed / xp.where(roots > 0.0, roots, 1.0) ** 2
        cubic, linear = (double(weighted_sum(in_type_of(part, rows), rows)) for part in (lengths * roots, roots))
        return cls(cubic, inner(weighed, lengths), linear, float(xp.sum(weighed)))

    def shifted(self, shift: Float, total: float, spread_shift: Float) -> NormSums:
        """Return the sums over ``z + shift``.

        `total` is the number of rows, or the sum of their weights. `spread_shift` is ``S shift``, where S is the sum
        of ``z zᵀ``.
        """
        length, along = inner(shift, shift), inner(self.linear, shift)
        quadratic = self.quadratic + 2.0 * along + total * length
        quartic = (
            self.quartic
            + 4.0 * inner(self.cubic, shift)
            + 4.0 * inner(shift, spread_shift)
            + length * (self.quadratic + 2.0 * along + quadratic)
        )
        cubic = self.cubic + 2.0 * spread_shift + length * self.linear + quadratic * shift
        return NormSums(cubic, max(quartic, 0.0), self.linear + total * shift, quadratic)

    def plus(self, other: NormSums, sign: float = 1.0) -> NormSums:
        """Return the sum of two records (`sign` 1) or their difference (`sign` -1).

        The rows of each record must be centred at the same point.
        """
        return NormSums(
            self.cubic + sign * other.cubic,
            max(self.quartic + sign * other.quartic, 0.0),
            self.linear + sign * other.linear,
            self.quadratic + sign * other.quadratic,
        )


@dataclass(frozen=True)
class WeightSums:
    """Sums of the weights of a dataset's rows.

    Attributes
    ----------
    total : float
        Sum of the weights.
    squares : float
        Sum of the squared weights.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import WeightSums
    >>> WeightSums.of(np.array([1.0, 1.0, 2.0]))
    WeightSums(total=4.0, squares=6.0)
    """

    total: float
    squares: float

    @classmethod
    def of(cls, weights: Float) -> WeightSums:
        """Return the sums for the weights of all rows."""
        return cls(float(namespace(weights).sum(weights)), sum_of_squares(weights))


class Moments(ABC):
    """Count, mean and scatter of a dataset. The linear methods need no other numbers.

    The subclasses store the scatter as a matrix (`ScatterMoments`), or keep the rows (`RowMoments`). Two datasets are
    merged with ``+``.

    Attributes
    ----------
    count : int
        Number of rows.
    mean : ndarray of shape (n_features,)
    precision : float
        Relative rounding error of the numbers from which the scatter was computed.
    norms : NormSums or None
        Sums for Ledoit-Wolf shrinkage, if they were gathered.
    rest : ndarray of shape (n_features,) or 0
        Rounding error of `mean`: ``mean + rest`` is more exact. If the mean is far from zero, merging two datasets
        without `rest` would lose digits.
    weights : WeightSums or None
        Sums of the weights of the rows, if rows have weights. Mean and covariance are then weighted.

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
    # False if noise was added to the sums (see `standout.private`).
    exact: ClassVar[bool] = True
    rest: Float | float = 0.0
    weights: WeightSums | None = None

    def __sizeof__(self) -> int:
        # Dask's schedulers use this size.
        return object.__sizeof__(self) + sum(getattr(part, "nbytes", 0) for part in vars(self).values())

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.mean.shape[0])

    @property
    def total_weight(self) -> float:
        """Sum of the weights of the rows, or the number of rows if they have no weights."""
        return self.count if self.weights is None else self.weights.total

    @property
    def effective_count(self) -> float:
        """Effective number of rows (Kish, 1965)."""
        return self.count if self.weights is None else self.weights.total**2 / self.weights.squares

    @property
    @abstractmethod
    def variances(self) -> Float:
        """Variance of each column: the diagonal of the covariance."""

    @property
    def squared_norm(self) -> float:
        """Squared Frobenius norm of the covariance."""
        return sum_of_squares(self.covariance())

    @abstractmethod
    def covariance(self) -> Float:
        """Return the covariance matrix, with ``1/n`` as in the paper."""

    @abstractmethod
    def apply(self, U: Float) -> Float:
        """Multiply the covariance with the columns of U."""

    def variance(self, U: Float) -> Float:
        """Return the variance of the data along each column of U: ``uᵀCu``."""
        return nonnegative(column_products(U, self.apply(U)))

    @abstractmethod
    def taken(self, columns: npt.NDArray[np.intp]) -> Moments:
        """Return the moments of some columns, by number, without the sums of norms."""

    @abstractmethod
    def mapped(self, L: Float) -> Moments:
        """Return the moments of ``rows @ L``, without the sums of norms; a 1-D array stands for a diagonal matrix."""

    @abstractmethod
    def __add__(self, other: Moments) -> Moments:
        """Return the moments of the rows of this dataset and of another one together."""

    @cached_property
    def total_variance(self) -> float:
        """Trace of the covariance."""
        variances = self.variances
        return float(namespace(variances).sum(variances))

    @property
    def _squared_weights(self) -> float:
        return self.count if self.weights is None else self.weights.squares

    def _norms_about(self, norms: NormSums, mean: Float, rest: Float) -> NormSums:
        """Return the sums of norms about the point ``mean + rest`` instead of the mean of this dataset."""
        shift, total = self.mean - mean - rest + self.rest, self.total_weight
        return norms.shifted(shift, total, total * self.apply(shift[:, None])[:, 0])


def joined(first: Moments | None, second: Moments | None) -> Moments | None:
    """Return the moments of the rows of two datasets together. None stands for a dataset without rows."""
    return second if first is None else first if second is None else first + second


def two_sum(first: Float, second: Float) -> tuple[Float, Float]:
    """Return the rounded sum of two arrays, and the rounding error of this sum.

    Adding the error to the rounded sum in exact arithmetic would give the exact sum.
    """
    total = first + second
    part = total - first
    return total, (first - (total - part)) + (second - part)


def ledoit_wolf(moments: Moments, dimension: int | None = None) -> float:
    """How far should this covariance be shrunk towards a multiple of the identity?

    The result is the share s that minimises the expected squared error of ``(1 - s) C + s (tr C / D) I`` (Ledoit and
    Wolf, 2004). This share goes to zero as the number of rows grows. If rows have weights, the effective number of rows
    is used. The moments must be gathered with ``norms=True``.

    Parameters
    ----------
    moments : Moments
    dimension : int, optional
        Number of columns D of the data. It is needed if the columns of `moments` are coordinates in a subspace.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.covariance import ledoit_wolf_shrinkage
    >>> from standout.moments import gather, ledoit_wolf
    >>> X = np.random.default_rng(0).normal(size=(50, 20)) * np.arange(1, 21)
    >>> round(ledoit_wolf(gather(X, norms=True)), 6), round(float(ledoit_wolf_shrinkage(X)), 6)
    (0.307355, 0.307355)
    """
    if moments.norms is None:
        problem = "Ledoit-Wolf shrinkage needs the sums of norms, but these moments have none"
        raise InvalidTypeError(problem, advice="Gather them with norms=True, or give `shrinkage` as a number.")
    quartic = moments.norms.quartic
    n_rows, n_features = moments.effective_count, dimension or moments.n_features
    squared_norm, variance = moments.squared_norm, moments.total_variance
    if variance > 0.0 and not np.finfo(np.float64).tiny < quartic < np.inf:
        problem = f"a background has a standard deviation of about {float(np.sqrt(variance)):.1e}, and the fourth "
        problem += "powers that Ledoit-Wolf shrinkage needs are out of range"
        raise InvalidValueError(problem, advice="Rescale the data, or give `shrinkage` as a number.")
    # The article divides dispersion and noise by n_features. This is left out here, because it does not change the
    # ratio of noise to dispersion.
    dispersion = squared_norm - variance * variance / n_features
    noise = (quartic / moments.total_weight - squared_norm) / n_rows
    # A covariance that is a multiple of the identity, up to rounding, needs no shrinkage.
    if dispersion <= 16 * n_features * np.finfo(np.float64).eps * squared_norm or noise <= 0.0:
        return 0.0
    return float(min(noise / dispersion, 1.0))


def own_shrinkage(moments: Moments, dimension: int) -> float:
    """Return the shrinkage that is estimated from the sums of a background.

    For private sums, the shrinkage is computed from the noise that was added. For exact sums with sums of norms, it is
    the estimate of Ledoit and Wolf. For exact sums without sums of norms, it is the estimate of Chen et al. (2010),
    which assumes Gaussian rows.
    """
    own: float | None = getattr(moments, "shrinkage", None)
    if own is not None or moments.norms is not None:
        return ledoit_wolf(moments, dimension) if own is None else float(own)
    # Divide the covariance by its trace, because the squares of its entries may be out of the range of float64.
    trace, count = moments.total_variance or 1.0, moments.effective_count
    square = moments.mapped(like(np.full(moments.n_features, trace**-0.5), moments.mean)).squared_norm
    spread = square - 1.0 / dimension
    share = ((1 - 2 / dimension) * square + 1.0) / ((count + 1 - 2 / dimension) * spread) if spread > 0.0 else 1.0
    return float(min(share, 1.0))
