"""How far components, ratios and correlations move when rows or subjects are drawn again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from standout._arrays import Float, Rows, dense, double
from standout._messages import InvalidValueError
from standout._writing import tracked
from standout._xp import like, take, to_host
from standout.moments import Moments
from standout.problem import Sums, about, solve
from standout.selection._choose import aligned
from standout.selection._data import WideData, column_variances
from standout.selection._engine import Given, depends_on_columns, make_deck
from standout.selection._inference import given_of, opened, seed_of, statistic_of
from standout.selection._resample import Deck, Numbers, Plan, RowDeck

# Correlations are kept from the ends of the range of Fisher's z.
LARGEST_CORRELATION = 1.0 - 1e-9


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
        raise InvalidValueError("is not between 0 and 1", parameter="level", value=level, advice="Use 0.9, for example.")
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
    correlations = None
    if refit.full[2] is not None:
        correlations = _fisher_intervals(refit.full[2], np.array([draw[2] for draw in found]), level)
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
    columns : rows of the target in their own columns, if the deck has other coordinates.
    """

    deck: Deck
    problem: Any
    dimension: int
    anew: bool
    columns: Rows | None
    reference: Float
    full: tuple[Any, Any, Float | None]

    @classmethod
    def of(cls, given: Given, model: Any, rows: Rows | None, rng: np.random.Generator) -> _Refit:
        problem = replace(statistic_of(model).problem, weights=model.problem_.weights, n_components=model.n_components_)
        deck = make_deck(given, problem, rng, thinned=False)
        problem = replace(problem, n_covariates=0)
        wide = given.is_wide and problem.smooth is None
        anew = wide and depends_on_columns(problem)
        own_columns = not hasattr(model, "kernel") and (not wide or anew)
        columns = None if own_columns or not isinstance(deck, RowDeck) else rows
        refit = cls(deck, problem, given.width, anew, columns, np.zeros(0), (None, None, None))
        ones = np.ones(len(deck.plan.homes))
        vectors = refit.solved(ones)
        refit = replace(refit, reference=vectors)
        known = own_columns or columns is not None
        return replace(refit, full=(vectors, None, refit.correlations(ones, vectors) if known else None))

    def draw(self, times: Float) -> tuple[Float, Float, Float | None]:
        """Return the ratios of units that were not drawn, the angles of the scores, and the correlations."""
        vectors = self.solved(times)
        ones = np.ones(len(times))
        images = self._target_apply(ones, self.reference)
        vectors = aligned(vectors, vectors, self.reference, images)
        own, other = to_host(self.reference), to_host(vectors)
        image = to_host(images)
        lengths = np.einsum("ij,ij->j", own, image) * np.einsum(
            "ij,ij->j", other, to_host(self._target_apply(ones, vectors))
        )
        cosines = np.abs(np.einsum("ij,ij->j", image, other)) / np.sqrt(np.maximum(lengths, 1e-300))
        angles = np.degrees(np.arccos(np.minimum(cosines, 1.0)))
        correlations = None if self.full[2] is None else self.correlations(times, vectors)
        return self._ratios(np.where(times == 0, 1.0, 0.0), vectors), angles, correlations

    def solved(self, times: Float) -> Float:
        """Return the components of a draw, in the coordinates of the deck."""
        if not self.anew:
            moments = tuple(part.moments() for part in self.deck.drawn(times))
            return solve(Sums(moments, self.dimension), self.problem).vectors
        rows, weights = [], []
        assert isinstance(self.deck, RowDeck)
        for places in self.deck._places:
            chosen = places[times[places] > 0]
            numbers, own = self._weighed(self.deck.plan.parts[0][chosen], times[chosen])
            rows.append(take(self.deck.rows, numbers))
            weights.append(own)
        folds = [np.zeros(part.shape[0], dtype=np.intp) for part in rows]
        sums = WideData(rows, folds, 1, weights, [None] * len(rows), False).sums(self.problem)
        return solve(sums, self.problem).vectors

    def _weighed(self, parts: Numbers, times: Float) -> tuple[Numbers, Float]:
        """Return the rows of some parts, with their weights times the number of draws."""
        assert isinstance(self.deck, RowDeck)
        numbers = self.deck.numbers(parts)
        own = self.deck.factors(parts, times)
        return numbers, own if self.deck.weights is None else own * self.deck.weights[numbers]

    def _target_apply(self, times: Float, vectors: Float) -> Float:
        """Multiply the covariance of the target with vectors."""
        if not self.anew:
            return self._all[0].apply(vectors)
        scores, weights = self._scores(0, times, vectors)
        rows = self._rows(0, times)
        return like(to_host(rows.T @ (weights[:, None] * (scores - weights @ scores / weights.sum()))), vectors)
