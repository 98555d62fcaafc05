"""What all representations of a dataset's moments have in common, and the shrinkage that follows from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from standout._arrays import (
    Float,
    Rows,
    bytes_held,
    double,
    in_type_of,
    inner,
    squared_lengths,
    sum_of_squares,
    weighted_sum,
)
from standout._messages import InvalidTypeError, InvalidValueError
from standout._xp import namespace


@dataclass(frozen=True, eq=False)
class NormSums:
    """Two sums over the centred rows z that Ledoit-Wolf shrinkage needs in addition to the scatter.

    Only the second sum enters the shrinkage. The first one is needed to change the mean of the second, and so to merge
    the sums of two datasets.

    Attributes
    ----------
    cubic : ndarray of shape (n_features,)
        Sum of ``|z|² z``.
    quartic : float
        Sum of ``|z|⁴``.
    linear : ndarray of shape (n_features,) or None
        Sum of z. With weights w all sums have the factor w², and this one is not zero; None without weights.
    quadratic : float or None
        Sum of ``|z|²``; None without weights, where it is the trace of the scatter.
    origin : ndarray of shape (n_features,) or None
        The point that z is measured from, if it is not the mean of the rows. Sums about one point are exact however the
        rows are cut. The mean of some rows is not that of others, and with weights a change of mean is approximate.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import NormSums
    >>> NormSums.of(np.array([[3.0, 4.0], [-3.0, -4.0]])).quartic
    1250.0
    """

    cubic: Float
    quartic: float
    linear: Float | None = None
    quadratic: float | None = None
    origin: Float | None = None

    @classmethod
    def of(cls, rows: Rows, weights: Float | None = None) -> NormSums:
        """Sum over the rows, without centring them. Rows with weights are given times the roots of their weights."""
        lengths = double(squared_lengths(rows))
        if weights is None:
            return cls(double(weighted_sum(in_type_of(lengths, rows), rows)), sum_of_squares(lengths))
        roots = namespace(weights).sqrt(weights)
        cubic, linear = weighted_sum(lengths * roots, rows), weighted_sum(weights * roots, rows)
        return cls(cubic, sum_of_squares(lengths), linear, inner(weights, lengths))

    @classmethod
    def about(cls, scaled: Float, weights: Float, mean: Float, origin: Float | None) -> NormSums:
        """Sum over rows that are centred by their mean, and times the roots of their weights, about an origin."""
        if origin is None:
            return cls.of(scaled, weights)
        roots = namespace(weights).sqrt(weights)
        return replace(cls.of(scaled + roots[:, None] * (mean - origin), weights), origin=origin)

    def shifted(self, shift: Float, count: float, trace: float, scatter_shift: Float) -> NormSums:
        """Give the sums over ``z + shift``, where the `count` rows z have mean zero.

        `trace` is the trace of their scatter, and `scatter_shift` is their scatter multiplied with `shift`. With
        weights, `count` is the sum of their squares, and `scatter_shift` has the factor of weights that are all equal.
        """
        length = inner(shift, shift)
        along = 0.0 if self.linear is None else inner(self.linear, shift)
        trace = trace if self.quadratic is None else self.quadratic
        quartic = (
            self.quartic
            + 4.0 * inner(self.cubic, shift)
            + 4.0 * inner(shift, scatter_shift)
            + 2.0 * length * (trace + 2.0 * along)
            + count * length * length
        )
        moved = trace + 2.0 * along + count * length
        cubic = self.cubic + moved * shift + 2.0 * scatter_shift
        if self.linear is None:
            return NormSums(cubic, quartic)
        return NormSums(cubic + length * self.linear, quartic, self.linear + count * shift, moved)

    def __add__(self, other: NormSums) -> NormSums:
        """Add sums about the same point."""
        cubic, quartic = self.cubic + other.cubic, self.quartic + other.quartic
        if self.linear is None or other.linear is None or self.quadratic is None or other.quadratic is None:
            return NormSums(cubic, quartic)
        return NormSums(cubic, quartic, self.linear + other.linear, self.quadratic + other.quadratic, self.origin)

    def times(self, factor: float) -> NormSums:
        """Give the sums times a factor."""
        linear = None if self.linear is None else factor * self.linear
        quadratic = None if self.quadratic is None else factor * self.quadratic
        return NormSums(factor * self.cubic, factor * self.quartic, linear, quadratic, self.origin)

    def has_origin_of(self, other: NormSums) -> bool:
        """Tell whether both are sums about the same point, which is not the mean of either."""
        if self.origin is None or other.origin is None:
            return False
        return self.origin is other.origin or bool(namespace(self.origin).all(self.origin == other.origin))

    def weighted(self, trace: float) -> NormSums:
        """Give the same sums as those of rows that all have the weight one."""
        return self if self.linear is not None else NormSums(self.cubic, self.quartic, 0.0 * self.cubic, trace)

    def unshifted(self, shift: Float, count: int, trace: float, scatter_shift: Float) -> NormSums:
        """Undo `shifted`: from sums over ``z + shift``, give the sums over the centred z."""
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


@dataclass(frozen=True)
class WeightSums:
    """What is to be known of the weights of a dataset's rows.

    Attributes
    ----------
    total : float
        Sum of the weights.
    squares : float
        Sum of their squares.

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
        """Sum over the rows."""
        return cls(float(namespace(weights).sum(weights)), sum_of_squares(weights))


class Moments(ABC):
    """Count, mean and scatter of a dataset: everything that the linear methods need to know of it.

    The representations differ in how they store the scatter: as a matrix (`ScatterMoments`), as a root
    (`RootMoments`), or as the rows themselves (`RowMoments`, and `CentredRows` with weights). All have the same
    methods, and all are merged with ``+``.

    Attributes
    ----------
    count : int
        Number of rows.
    mean : ndarray of shape (n_features,)
    precision : float
        Relative rounding error of the numbers the scatter was computed with.
    norms : NormSums or None
        What Ledoit-Wolf shrinkage needs in addition to the scatter, if it was gathered.
    rest : ndarray of shape (n_features,) or None
        What rounding has left out of the mean. Far from zero, merging would lose digits without it.
    weights : WeightSums or None
        Sums of the weights of the rows, if these do not count equally. Mean and covariance are weighted ones then.

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
    # Whether there is no noise in the sums (see `standout.private`).
    exact: ClassVar[bool] = True
    # Whether these are moments of rows, and not a term that a pencil takes in the same form.
    is_dataset: ClassVar[bool] = True
    rest: Float | None = None
    weights: WeightSums | None = None

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + bytes_held(self)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.mean.shape[0])

    @property
    def total_weight(self) -> float:
        """Sum of the weights of the rows: their number, if they count equally."""
        return self.count if self.weights is None else self.weights.total

    @property
    def effective_count(self) -> float:
        """Number of rows of equal weight that would be worth as much (Kish, 1965)."""
        return self.count if self.weights is None else self.weights.total**2 / self.weights.squares

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
        """Rounding error of `root`, relative to its largest singular value."""

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

    def taken(self, columns: npt.NDArray[np.intp]) -> Moments:
        """Give the moments of some of the columns, by their numbers, without the sums of norms."""
        raise InvalidTypeError(
            "{kind} has no moments of some of its columns", kind=type(self).__name__, advice="Use all columns."
        )

    @abstractmethod
    def __add__(self, other: Moments) -> Moments:
        """Give the moments of both datasets together."""

    @property
    def quartic(self) -> float | None:
        """Sum of the fourth powers of the centred rows' lengths, if it was gathered."""
        if self.norms is None or self.norms.origin is None:
            return None if self.norms is None else self.norms.quartic
        about = self._norms_about(self.mean, 0.0 * self.mean if self.rest is None else self.rest, weighted=True)
        return None if about is None else max(about.quartic, 0.0)

    @property
    def total_variance(self) -> float:
        """Trace of the covariance."""
        variances = self.variances
        return float(namespace(variances).sum(variances))

    def _check_addable(self, other: Moments) -> None:
        """Refuse to add exact sums and sums with noise."""
        if self.exact is not other.exact:
            raise InvalidTypeError(
                "exact sums and private sums cannot be added: the noise of the result would not be known",
                advice="Release every dataset, or none.",
            )

    # Datasets are merged with the sign 1. With -1 the rows of the other one are taken off again.

    def _merged_mean(self, other: Moments, sign: float = 1.0) -> tuple[float, Float, Float, Float]:
        """Give mean and rest of both datasets, the step between the means and its weight in the scatter."""
        self._check_addable(other)
        own, theirs = self.total_weight, sign * other.total_weight
        total = own + theirs
        step = _with_rest(other.mean - self.mean, other.rest, self.rest)
        mean, rest = two_sum(self.mean, step * (theirs / total))
        return own * theirs / total, mean, _with_rest(rest, self.rest, None), step

    def _merged_weights(self, other: Moments, sign: float = 1.0) -> WeightSums | None:
        if self.weights is None and other.weights is None:
            return None
        own, theirs = (part.weights or WeightSums(part.count, part.count) for part in (self, other))
        return WeightSums(own.total + sign * theirs.total, own.squares + sign * theirs.squares)

    def _norms_about(self, mean: Float, rest: Float, *, weighted: bool) -> NormSums | None:
        """Give the sums of norms about another mean than the dataset's own."""
        if self.norms is None:
            return None
        shift = _with_rest(self.mean - mean, self.rest, rest)
        if self.norms.origin is not None:
            shift = _with_rest(self.norms.origin - mean, None, rest)
        sums = self.weights or WeightSums(self.count, self.count)
        trace = sums.total * self.total_variance
        # The scatter with squared weights is not kept. It is nearly a multiple of the scatter, and counts little here.
        moved = sums.squares * self.apply(shift[:, None])[:, 0]
        norms = self.norms.weighted(trace) if weighted else self.norms
        # Fourth powers may be out of range. `ledoit_wolf` says so where they are needed.
        with np.errstate(over="ignore", invalid="ignore"):
            return norms.shifted(shift, sums.squares, trace, moved)

    def _merged_norms(self, other: Moments, mean: Float, rest: Float, sign: float = 1.0) -> NormSums | None:
        if self.norms is not None and other.norms is not None and self.norms.has_origin_of(other.norms):
            return self.norms + other.norms.times(sign)
        weighted = self.weights is not None or other.weights is not None
        first, second = (part._norms_about(mean, rest, weighted=weighted) for part in (self, other))
        if first is None or second is None:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            return first + second.times(sign)


def two_sum(first: Float, second: Float) -> tuple[Float, Float]:
    """Give the rounded sum of two arrays, and what rounding has left out: both together are exact."""
    total = first + second
    part = total - first
    return total, (first - (total - part)) + (second - part)


def _with_rest(difference: Float, added: Float | None, subtracted: Float | None) -> Float:
    """Correct a difference of means by what rounding has left out of them."""
    if added is not None:
        difference = difference + added
    return difference if subtracted is None else difference - subtracted


def ledoit_wolf(moments: Moments, n_columns: int | None = None) -> float:
    """How far should this covariance be shrunk towards a multiple of the identity?

    The share s that minimises the expected squared error of ``(1 - s) C + s (tr C / D) I`` (Ledoit and Wolf, 2004). It
    goes to zero as the number of rows grows; with weights, as their effective number does. The moments must have been
    gathered with ``norms=True``.

    Parameters
    ----------
    moments : Moments
    n_columns : int, optional
        Number of columns D of the data, if the moments are those of coordinates in a subspace.

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
    quartic = moments.quartic
    if quartic is None:
        raise InvalidTypeError(
            "Ledoit-Wolf shrinkage needs the sums of norms, but these moments have none",
            advice="Gather the moments with {p.norms:True}, or give {p.shrinkage} as a number.",
        )
    n_rows, n_features = moments.effective_count, n_columns or moments.n_features
    squared_norm, variance = moments.squared_norm, moments.total_variance
    if variance > 0.0 and not np.finfo(np.float64).tiny < quartic < np.inf:
        raise InvalidValueError(
            "a background has a standard deviation of about {spread:.1e} in all, and the fourth powers that "
            "{p.shrinkage:auto} needs are out of range",
            advice="Rescale the data, or give {p.shrinkage} as a number.",
            spread=float(np.sqrt(variance)),
        )
    # Both are n_features times the quantities of the article. Only their ratio matters.
    dispersion = squared_norm - variance * variance / n_features
    weights = moments.weights
    noise = (quartic / (n_rows if weights is None else weights.squares) - squared_norm) / n_rows
    # Shrinkage does not change a covariance that is already a multiple of the identity, up to rounding.
    if dispersion <= 16 * n_features * np.finfo(np.float64).eps * squared_norm or noise <= 0.0:
        return 0.0
    return float(min(noise / dispersion, 1.0))
