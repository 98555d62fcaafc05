"""The bootstrap: how much components, ratios and correlations change when rows or subjects are drawn again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from standout._arrays import Float, one_blas_thread, product, stacked
from standout._messages import InvalidValueError
from standout._writing import tracked
from standout._xp import column_products, like, take, to_host
from standout.moments import ScatterMoments
from standout.problem import Problem, Sums, mixed, solve
from standout.selection._data import column_variances
from standout.selection._held_out import aligned
from standout.selection._inference import opened, seed_of
from standout.selection._resample import make_deck
from standout.sources import Source

# Largest correlation, because Fisher's z of 1 is infinite. SMALLEST avoids a division by zero.
LARGEST_CORRELATION, SMALLEST = 1.0 - 1e-9, 1e-300


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """How uncertain are the ratios, correlations and directions of a model?

    Attributes
    ----------
    ratio_intervals : ndarray of shape (n_components, 2)
        Interval of each ratio, computed from `ratios`.
    ratios : ndarray of shape (n_draws, n_components)
        Ratio along each component of each draw, computed on the rows that were not drawn.
    correlation_intervals : ndarray of shape (n_components, n_features, 2) or None
        Interval of the correlation of each column with each score. None for the kernel methods.
    angles : ndarray of shape (n_components,)
        Median angle in degrees between the scores of a draw and the scores of the fit: 0 if they agree, 90 if they are
        uncorrelated.
    angle_draws : ndarray of shape (n_draws, n_components)
        The angle of each draw.
    level : float
        Share of intervals that should contain the true value.
    n_draws : int
    unit : {"rows", "blocks", "subjects"}
        The units that are drawn with replacement.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA, bootstrap
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(300, 3)) * [9, 1, 3], rng.normal(size=(300, 3)) * [9, 1, 1]
    >>> found = bootstrap(DiscriminativePCA(1).fit(X, background=Y), X, background=Y, n_draws=50)
    >>> found.ratio_intervals.shape, bool(found.ratio_intervals[0, 0] > 4), bool(found.angles[0] < 10)
    ((1, 2), True, True)
    """

    ratio_intervals: Float
    ratios: Float = field(repr=False)
    correlation_intervals: Float | None = field(repr=False)
    angles: Float
    angle_draws: Float = field(repr=False)
    level: float
    n_draws: int
    unit: str


def bootstrap(
    model: Any,
    X: Any,
    *,
    background: Any = None,
    n_draws: int = 200,
    level: float = 0.9,
    n_jobs: int | None = None,
    random_state: Any = None,
    progress: bool = False,
    **rows: Any,
) -> Bootstrap:
    """How much would the components change with other rows from the same source?

    Rows, or whole subjects, of each dataset are drawn with replacement. The problem of the fit is solved again for each
    draw, with the regularisation of the fit.

    Parameters
    ----------
    model : estimator or pipeline
        Fitted, as in `permutation_test`.
    X, background
        As in ``fit``.
    n_draws : int, default=200
    level : float, default=0.9
        Share of intervals that should contain the true value.
    n_jobs : int or None, default=None
        Number of threads.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws. None is a fixed seed.
    progress : bool, default=False
        Show a progress bar.
    **rows
        Further data of each row, as in `permutation_test`. With groups, whole subjects are drawn.

    Returns
    -------
    Bootstrap

    Notes
    -----
    Components of a draw are fitted to the drawn rows, so the ratio on the drawn rows is too large. Therefore ratios are
    computed on the rows that were not drawn. Intervals of correlations are symmetric about the estimate in Fisher's z.
    These intervals do not include the bias that shrinkage causes.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA, bootstrap
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(200, 4)) * [9, 1, 1, 3], rng.normal(size=(200, 4)) * [9, 1, 1, 1]
    >>> found = bootstrap(DiscriminativePCA(1).fit(X, background=Y), X, background=Y, n_draws=50)
    >>> lower, upper = found.correlation_intervals[0].T
    >>> (lower > 0) | (upper < 0)
    array([False, False, False,  True])
    """
    if n_draws < 2:
        raise InvalidValueError("is too few", parameter="n_draws", value=n_draws, advice="Use 100 or more.")
    if not 0.0 < level < 1.0:
        raise InvalidValueError("is not between 0 and 1", parameter="level", value=level, advice="Use 0.9.")
    estimator, sources, _, problem = opened(model, X, background, rows)
    seed, linear = seed_of(random_state), not hasattr(estimator, "kernel")
    refit = _Refit(sources, problem, estimator.components_.T, np.random.default_rng([seed, 1]), linear)
    times = refit.deck.plan.times(np.random.default_rng([seed, 2]), n_draws)
    with one_blas_thread():
        work = Parallel(n_jobs=n_jobs or 1, prefer="threads")
        found = work(delayed(refit.draw)(one) for one in tracked(times, n_draws, "drawing again", progress))
    ratios, angles, correlations = (np.array(part) for part in zip(*found, strict=True))
    tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    intervals = np.exp(np.nanquantile(np.log(ratios), tails, axis=0)).T
    reach = _fisher_intervals(refit.estimate, correlations, level) if linear else None
    unit = refit.deck.plan.kind
    return Bootstrap(intervals, ratios, reach, np.median(angles, axis=0), angles, level, n_draws, unit)


def _fisher_intervals(estimate: Float, draws: Float, level: float) -> Float:
    """Return intervals about the estimate that are symmetric in Fisher's z, shape (d, n_features, 2)."""
    middle = np.arctanh(np.clip(estimate, -LARGEST_CORRELATION, LARGEST_CORRELATION))
    away = np.abs(np.arctanh(np.clip(draws, -LARGEST_CORRELATION, LARGEST_CORRELATION)) - middle)
    reach = np.quantile(away, level, axis=0)
    return np.tanh(np.stack([middle - reach, middle + reach], axis=-1))


class _Refit:
    """The problem of a fit, solved again for units that are drawn with replacement.

    Parameters
    ----------
    sources : list of Source
    problem : Problem
    components : array of shape (n_features, d)
        The components of the fit. The components of each draw get the same order and signs.
    rng : Generator
    linear : bool
        Whether components are directions in the columns of the data.
    """

    def __init__(
        self, sources: list[Source], problem: Problem, components: Float, rng: np.random.Generator, linear: bool = True
    ) -> None:
        weights = [source.weights for source in sources]
        self.deck = make_deck(sources, weights, problem, rng, spanned=True, thinned=False)
        self.problem, self.linear = replace(problem, n_covariates=0), linear
        once = np.ones(len(self.deck.plan.homes))
        # Drawing every unit once gives the data of the fit. The values below are the reference for all draws.
        self.target = self._moments(once)[0]
        self.reference = components if self.deck.span is None else self.deck.span.drop(components)
        self.images = self.target.apply(self.reference)
        self.estimate = self._correlations(once, self.reference)

    def _moments(self, times: Float) -> list[ScatterMoments]:
        return [self.deck.moments(*hand) for hand in self.deck.drawn(times)]

    def _solved(self, times: Float) -> Float:
        """Return the components of a draw, in the coordinates of the deck."""
        span = self.deck.span
        if span is None or (self.problem.scale is None and self.problem.n_columns is None):
            return solve(Sums(tuple(self._moments(times)), self.deck.dimension), self.problem).vectors
        columns = replace(self.deck, rows=stacked(span.rows))
        sums = columns.wide_sums(columns.drawn(times), self.problem)
        return span.drop(solve(sums, self.problem).vectors)

    def draw(self, times: Float) -> tuple[Float, Float, Float]:
        """Return the ratios of units that were not drawn, the angles of the scores, and the correlations."""
        vectors = self._solved(times)
        (order,), (signs,), _ = aligned(self.target, self.reference, self.images, [vectors])
        vectors = take(vectors, order, axis=1) * like(signs, vectors)
        lengths = to_host(self.target.variance(self.reference) * self.target.variance(vectors))
        cosines = np.abs(to_host(column_products(self.images, vectors))) / np.sqrt(np.maximum(lengths, SMALLEST))
        angles: Float = np.degrees(np.arccos(np.minimum(cosines, 1.0)))
        return self._left_out(times, vectors), angles, self._correlations(times, vectors)

    def _left_out(self, times: Float, vectors: Float) -> Float:
        """Return the ratio of the units that were not drawn, along vectors.

        The ratio is NaN if a dataset has fewer than two such units.
        """
        left, weights = (times == 0).astype(np.float64), self.problem.weights
        if np.min(np.bincount(self.deck.plan.homes, weights=left)) < 2:
            return np.full(vectors.shape[1], np.nan)
        parts = self._moments(left)
        # Factors n / (n - 1) for unbiased variances, because the means are estimated.
        free = [part.total_weight / max(part.total_weight - 1.0, 1.0) for part in parts]
        own, *others = [by * to_host(part.variance(vectors)) for by, part in zip(free, parts, strict=True)]
        if self.problem.center == "background":
            step = parts[0].mean - mixed(weights, [part.mean for part in parts[1:]])
            own = own + to_host(product(step[None, :], vectors)[0, :]) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(own / mixed(weights, others))

    def _correlations(self, times: Float, vectors: Float) -> Float:
        """Return the correlation of each column with each score in the target; empty for a kernel."""
        if not self.linear:
            return np.zeros(0)
        hand = self.deck.drawn(times)[0]
        target = self.deck.moments(*hand)
        images, variances = target.apply(vectors), target.variances
        if self.deck.span is not None:
            numbers, weights = self.deck.chosen(*hand)
            images = self.deck.span.lift(images)
            variances = column_variances(take(self.deck.span.rows[0], numbers), weights)
        scale = np.sqrt(to_host(variances)[:, None] * to_host(target.variance(vectors)))
        return np.divide(to_host(images), scale, out=np.zeros(scale.shape), where=scale > 0.0).T
