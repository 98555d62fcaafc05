"""How far components, ratios and correlations move when rows or subjects are drawn again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from standout._arrays import Float, Rows, product
from standout._messages import InvalidValueError
from standout._writing import tracked
from standout._xp import column_products, like, take, to_host
from standout.moments import ScatterMoments, Span, span_of
from standout.problem import Problem, Sums, solve
from standout.selection._data import WideData, column_variances
from standout.selection._engine import Given, depends_on_columns, make_deck
from standout.selection._held_out import aligned
from standout.selection._inference import given_of, opened, seed_of, statistic_of
from standout.selection._resample import Deck, Plan, RowDeck
from standout.sources import InMemory

# Correlations are kept from the ends of the range of Fisher's z.
LARGEST_CORRELATION, SMALLEST = 1.0 - 1e-9, 1e-300


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """How sure are the ratios, correlations and directions of a model?

    Attributes
    ----------
    ratio_intervals : ndarray of shape (n_components, 2)
        Interval of each ratio, from the rows that were not drawn.
    ratios : ndarray of shape (n_draws, n_components)
        Ratio of the rows that were not drawn along the components of each draw.
    correlation_intervals : ndarray of shape (n_components, n_features, 2) or None
        Interval of the correlation of each column with each score. None for the kernel methods if the rows are not in
        memory.
    angles : ndarray of shape (n_components,)
        Median angle in degrees between the scores of a draw and those of all rows: 0 if they agree, 90 if they have
        nothing in common.
    angle_draws : ndarray of shape (n_draws, n_components)
    level : float
        Share of intervals that should contain the truth.
    n_draws : int
    unit : {"rows", "blocks", "subjects"}
        What is drawn with replacement.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA, bootstrap
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(300, 3)) * [1, 1, 3], rng.normal(size=(300, 3))
    >>> found = bootstrap(DiscriminativePCA(1).fit(X, background=Y), X, background=Y, n_draws=50)
    >>> bool(found.ratio_intervals[0, 0] < 9 < found.ratio_intervals[0, 1]), bool(found.angles[0] < 10)
    (True, True)
    """

    ratio_intervals: Float
    ratios: Float
    correlation_intervals: Float | None
    angles: Float
    angle_draws: Float
    level: float
    n_draws: int
    unit: str


def bootstrap(
    model: Any,
    X: Any,
    *,
    background: Any = None,
    y: Any = None,
    groups: Any = None,
    background_groups: Any = None,
    sample_weight: Any = None,
    background_sample_weight: Any = None,
    adjust: Any = None,
    background_adjust: Any = None,
    n_draws: int = 200,
    level: float = 0.9,
    n_jobs: int | None = None,
    random_state: Any = None,
    progress: bool = False,
) -> Bootstrap:
    """How far would the components move with other rows from the same source?

    Rows, or whole subjects, of each dataset are drawn with replacement, and the problem of the fit is solved again, with
    the regularisation that the fit chose.

    Parameters
    ----------
    model : estimator or pipeline
        Fitted, as in `permutation_test`.
    X, background, y, groups, background_groups, sample_weight, background_sample_weight, adjust, background_adjust
        As in ``fit``. With `groups`, whole subjects are drawn.
    n_draws : int, default=200
    level : float, default=0.9
        Share of intervals that should contain the truth.
    n_jobs : int or None, default=None
        Number of threads.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws. None is a fixed seed.
    progress : bool, default=False
        Show a progress bar.

    Returns
    -------
    Bootstrap

    Notes
    -----
    A ratio of the rows that were drawn is too large, because components were fitted to them. Ratios are therefore those
    of the rows that were not drawn. Intervals of correlations are symmetric about the estimate in Fisher's z.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA, bootstrap
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(200, 4)) * [1, 1, 1, 3], rng.normal(size=(200, 4))
    >>> found = bootstrap(DiscriminativePCA(1).fit(X, background=Y), X, background=Y, n_draws=50)
    >>> lower, upper = found.correlation_intervals[0].T
    >>> (lower > 0) | (upper < 0)
    array([False, False, False,  True])
    """
    if n_draws < 2:
        raise InvalidValueError("is too few", parameter="n_draws", value=n_draws, advice="Use 100 or more.")
    if not 0.0 < level < 1.0:
        raise InvalidValueError(
            "is not between 0 and 1", parameter="level", value=level, advice="Use 0.9, for example."
        )
    estimator, sources = opened(
        model,
        X,
        background,
        y=y,
        groups=groups,
        background_groups=background_groups,
        sample_weight=sample_weight,
        background_sample_weight=background_sample_weight,
        adjust=adjust,
        background_adjust=background_adjust,
    )
    given = given_of(estimator, sources)
    refit = _Refit.of(given, estimator, sources[0].rows, np.random.default_rng([seed_of(random_state), 1]))
    rng = np.random.default_rng([seed_of(random_state), 2])
    times = tracked(_times(refit.deck.plan, rng, n_draws), n_draws, "drawing again", progress)
    with threadpool_limits(1, user_api="blas"):
        if n_jobs in (None, 1):
            found = [refit.draw(one) for one in times]
        else:
            found = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(refit.draw)(one) for one in times)
    ratios, angles = np.array([draw[0] for draw in found]), np.array([draw[1] for draw in found])
    estimate = refit.correlations(refit.once, refit.reference)
    correlations = None
    if estimate is not None:
        correlations = _fisher_intervals(estimate, np.array([draw[2] for draw in found]), level)
    tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    return Bootstrap(
        ratio_intervals=np.exp(np.nanquantile(np.log(ratios), tails, axis=0)).T,
        ratios=ratios,
        correlation_intervals=correlations,
        angles=np.median(angles, axis=0),
        angle_draws=angles,
        level=level,
        n_draws=n_draws,
        unit=refit.deck.plan.kind,
    )


def _times(plan: Plan, rng: np.random.Generator, n_draws: int) -> Iterator[Float]:
    """Yield how often each unit is drawn. A subject in several datasets is drawn for all of them together."""
    owners = np.where(plan.groups < 0, plan.groups.max() + 1 + np.arange(len(plan.groups)), plan.groups)
    entities, entity_of = np.unique(owners, return_inverse=True)
    member = np.zeros((plan.n_datasets, len(entities)), dtype=bool)
    member[plan.homes, entity_of] = True
    _, kinds = np.unique(member, axis=1, return_inverse=True)
    sets = [np.flatnonzero(kinds.ravel() == kind) for kind in range(int(kinds.max()) + 1)]
    for _ in range(n_draws):
        times = np.zeros(len(entities))
        for members in sets:
            times[members] = np.bincount(rng.integers(len(members), size=len(members)), minlength=len(members))
        yield times[entity_of]


def _fisher_intervals(estimate: Float, draws: Float, level: float) -> Float:
    """Return intervals about the estimate that are symmetric in Fisher's z, shape (d, n_features, 2)."""
    middle = np.arctanh(np.clip(estimate, -LARGEST_CORRELATION, LARGEST_CORRELATION))
    away = np.abs(np.arctanh(np.clip(draws, -LARGEST_CORRELATION, LARGEST_CORRELATION)) - middle)
    reach = np.quantile(away, level, axis=0)
    return np.tanh(np.stack([middle - reach, middle + reach], axis=-1))


@dataclass(frozen=True, eq=False)
class _Refit:
    """The problem of a fit, solved again for units that are drawn several times.

    Attributes
    ----------
    deck : Deck
    problem : Problem
    dimension : int
        Number of columns of the data.
    span : Span or None
        The coordinates of wide rows.
    columns : rows or None
        The target's rows in the columns of the data, if the deck has other coordinates.
    linear : bool
    reference : array of shape (r, n_components)
        The components of all rows.
    """

    deck: Deck
    problem: Problem
    dimension: int
    span: Span | None
    columns: Rows | None
    linear: bool
    reference: Float

    @classmethod
    def of(cls, given: Given, model: Any, rows: Rows | None, rng: np.random.Generator) -> _Refit:
        """Read what draws need, and solve the problem for all rows."""
        problem = replace(statistic_of(model).problem, weights=model.problem_.weights, n_components=model.n_components_)
        dimension, span = given.width, None
        if given.is_wide and problem.smooth is None:
            sources = [source.loaded() for source in given.sources]
            span = span_of([source.rows for source in sources])
            sources = [InMemory(own)._beside(part) for own, part in zip(span.coordinates, sources, strict=True)]
            given = Given(sources, given.learned)
        deck = make_deck(given, problem, rng, thinned=False)
        linear = not hasattr(model, "kernel")
        columns = rows if isinstance(deck, RowDeck) and (span is not None or not linear) else None
        problem = replace(problem, n_covariates=0)
        refit = cls(deck, problem, dimension, span, columns, linear, np.zeros(0))
        return replace(refit, reference=refit.solved(refit.once))

    @property
    def once(self) -> Float:
        """Every unit once."""
        return np.ones(len(self.deck.plan.homes))

    @cached_property
    def everything(self) -> list[ScatterMoments]:
        """The moments of all rows."""
        return [part.moments() for part in self.deck.drawn(self.once)]

    def solved(self, times: Float) -> Float:
        """Return the components of a draw, in the coordinates of the deck."""
        if self.span is None or not depends_on_columns(self.problem):
            moments = tuple(part.moments() for part in self.deck.drawn(times))
            return solve(Sums(moments, self.dimension), self.problem).vectors
        assert isinstance(self.deck, RowDeck)
        weights = self.deck.weights_of(times)
        starts = np.cumsum([0, *(rows.shape[0] for rows in self.span.rows)])
        chosen = [np.flatnonzero(weights[start:end]) for start, end in pairwise(starts)]
        rows = [take(part, own) for part, own in zip(self.span.rows, chosen, strict=True)]
        own_weights = [weights[start + own] for start, own in zip(starts, chosen, strict=False)]
        folds = [np.zeros(len(own), dtype=np.intp) for own in chosen]
        sums = WideData(rows, folds, 1, own_weights, [None] * len(rows), False).sums(self.problem)
        return self.span.drop(solve(sums, self.problem).vectors)

    def draw(self, times: Float) -> tuple[Float, Float, Float | None]:
        """Return the ratios of units that were not drawn, the angles of the scores, and the correlations."""
        target = self.everything[0]
        images = target.apply(self.reference)
        vectors = self.solved(times)
        order, signs = aligned(vectors, images)
        vectors = take(vectors, order, axis=1) * like(signs, vectors)
        lengths = to_host(target.variance(self.reference) * target.variance(vectors))
        cosines = np.abs(to_host(column_products(images, vectors))) / np.sqrt(np.maximum(lengths, SMALLEST))
        angles: Float = np.degrees(np.arccos(np.minimum(cosines, 1.0)))
        return self.left_out_ratios(times, vectors), angles, self.correlations(times, vectors)

    def left_out_ratios(self, times: Float, vectors: Float) -> Float:
        """Return the ratio of the units that were not drawn along vectors; NaN if a dataset has no such units."""
        left = (times == 0).astype(np.float64)
        if np.min(np.bincount(self.deck.plan.homes, weights=left)) < 2:
            return np.full(vectors.shape[1], np.nan)
        target, *backgrounds = (part.moments() for part in self.deck.drawn(left))
        weights = self.problem.weights
        own = _variance(target, vectors)
        if self.problem.center == "background":
            middle = sum(weight * part.mean for weight, part in zip(weights, backgrounds, strict=True))
            own = own + to_host(product((target.mean - middle)[None, :], vectors)[0, :]) ** 2
        against = sum(weight * _variance(part, vectors) for weight, part in zip(weights, backgrounds, strict=True))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(own / against)

    def correlations(self, times: Float, vectors: Float) -> Float | None:
        """Return the correlation of each column with each score in the target, shape (d, n_features)."""
        if self.columns is None and not (self.linear and self.span is None):
            return None
        if self.columns is None:
            target = self.deck.drawn(times)[0].moments()
            images, variances, spread = target.apply(vectors), target.variances, target.variance(vectors)
        else:
            assert isinstance(self.deck, RowDeck)
            n_rows = self.columns.shape[0]
            shares = self.deck.weights_of(times)[:n_rows]
            shares = shares / shares.sum()
            scores = to_host(product(self.deck.rows[:n_rows], vectors))
            scores = scores - shares @ scores
            images = to_host(self.columns.T @ like(shares[:, None] * scores, self.deck.rows))
            variances, spread = column_variances(self.columns, like(shares, self.deck.rows)), shares @ scores**2
        scale = np.sqrt(to_host(variances)[:, None] * to_host(spread))
        return np.asarray(np.divide(to_host(images), scale, out=np.zeros(scale.shape), where=scale > 0.0).T)


def _variance(moments: ScatterMoments, vectors: Float) -> Float:
    """Return the variance along vectors without the bias of the mean."""
    count = moments.effective_count
    return to_host(moments.variance(vectors)) * (count / max(count - 1.0, 1.0))
