"""From datasets to draws: the deck of units, and the statistic of every deal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from standout._arrays import Float, Rows, dense, double, stacked
from standout._messages import InvalidValueError
from standout._xp import column_norms, like, namespace, take, to_host
from standout.moments import Moments, gather_keyed, span_of
from standout.problem import Problem, Sums, solve
from standout.selection._data import WideData
from standout.selection._leading import Statistic
from standout.selection._resample import (
    Deck,
    Numbers,
    Plan,
    RowDeck,
    SumDeck,
    Totals,
    centred,
    plan_rows,
    plan_subjects,
)
from standout.sources import Source

# Up to so many rows, rows are dealt one by one. More rows become blocks, unless they have more columns than this.
MOST_ROWS, MOST_COLUMNS = 4000, 1024
# Blocks in all, at least and at most, and the most numbers in their sums (512 MiB).
LEAST_UNITS, MOST_UNITS, MOST_NUMBERS = 32, 128, 2**26
# Weights that differ by less than this share differ by rounding.
SAME_WEIGHT = 1e-9


@dataclass(frozen=True, eq=False)
class Given:
    """The datasets of a test, the target first.

    Attributes
    ----------
    sources : list of Source
        In the coordinates of the problem. Their weights are those of the rows and those that users gave, multiplied.
    learned : list of ndarray or None
        The factor of the weights that was learned from the rows.
    """

    sources: list[Source]
    learned: list[Float | None]

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.sources[0].width or 0)

    @cached_property
    def counts(self) -> list[int]:
        """Number of rows of each dataset."""
        return [source.count_rows() for source in self.sources]

    @cached_property
    def used(self) -> list[Numbers]:
        """The rows of each dataset that have a weight."""
        return [
            np.arange(count) if source.weights is None else np.flatnonzero(source.weights > 0.0)
            for source, count in zip(self.sources, self.counts, strict=True)
        ]

    @cached_property
    def placed(self) -> list[Float | None]:
        """The weights that users gave, in units of their mean; None if they are equal in a dataset."""
        found: list[Float | None] = []
        for source, learned, used in zip(self.sources, self.learned, self.used, strict=True):
            if source.weights is None:
                found.append(None)
                continue
            own = source.weights[used] if learned is None else source.weights[used] / learned[used]
            equal = float(np.ptp(own)) <= SAME_WEIGHT * float(own.max())
            found.append(None if equal else own / own.mean())
        return found

    @property
    def is_placed(self) -> bool:
        """Whether weights stay at their places."""
        return any(part is not None for part in self.placed)

    @property
    def is_wide(self) -> bool:
        """Whether there are more columns than rows."""
        return self.width > sum(self.counts)

    def plan(self, most: int, most_parts: int, rng: np.random.Generator, thinned: bool) -> Plan:
        """Make units of the rows that have a weight."""
        if self.sources[0].subjects is None:
            plan = plan_rows([len(used) for used in self.used], most, rng)
        else:
            codes = [part.subjects[used] for part, used in zip(self.sources, self.used, strict=True)]  # type: ignore[index]
            plan = plan_subjects(codes, most, rng, thinned=thinned, most_parts=most_parts)
        keys = []
        for count, used, own in zip(self.counts, self.used, plan.keys, strict=True):
            whole = np.full(count, -1)
            whole[used] = own
            keys.append(whole)
        return replace(plan, keys=keys)


def make_deck(given: Given, problem: Problem, rng: np.random.Generator, *, thinned: bool = True) -> Deck:
    """Make units of all datasets, and read what draws need of them in one pass."""
    total, width = sum(given.counts), given.width
    rows_known = all(source.rows is not None for source in given.sources)
    small = total <= MOST_ROWS or width > MOST_COLUMNS
    by_rows = given.is_placed or (given.is_wide and problem.smooth is None) or (rows_known and small)
    if by_rows:
        plan = given.plan(max(MOST_ROWS, total), 10**9, rng, thinned)
        return _row_deck(given, problem, plan)
    most_parts = max(MOST_NUMBERS // width**2, LEAST_UNITS)
    plan = given.plan(min(most_parts, MOST_UNITS), most_parts, rng, thinned)
    parts: list[Moments | None] = [None] * plan.n_parts
    for number, (source, keys) in enumerate(zip(given.sources, plan.keys, strict=True)):
        learned = given.learned[number]
        if source.weights is not None:
            source = source.named(source.name)
            source.weights = learned
        found = gather_keyed(source, keys, plan.n_parts, name=source.name)
        if problem.n_covariates:
            found = _residual(found, problem.n_covariates)
        parts = [own if one is None else one for own, one in zip(parts, found, strict=True)]
    return SumDeck.of(plan, [part for part in parts if part is not None])


def _residual(parts: list[Moments | None], q: int) -> list[Moments | None]:
    """Remove what the trailing columns of all parts together explain of the others."""
    total = None
    for part in parts:
        total = part if total is None else total if part is None else total + part
    assert total is not None
    size, covariance = total.n_features - q, total.covariance()
    slopes = namespace(covariance).linalg.pinv(covariance[size:, size:]) @ covariance[size:, :size]
    L = like(np.concatenate([np.eye(size), -to_host(slopes)]), covariance)
    return [None if part is None else part.mapped(L) for part in parts]


def _row_deck(given: Given, problem: Problem, plan: Plan) -> RowDeck:
    rows: list[Rows] = []
    for source in given.sources:
        part = source.loaded()
        own = part.rows
        if part.covariates is not None:
            middle = part.covariates - part.covariates.mean(axis=0)
            own = double(dense(own))
            own = own - like(middle, own) @ (like(np.linalg.pinv(middle), own) @ own)
        rows.append(own)
    if given.is_wide and problem.smooth is None and not depends_on_columns(problem):
        rows = list(span_of(rows).coordinates)
    whole = stacked([double(dense(part)) for part in rows])
    weights = None
    if any(part is not None for part in given.learned):
        pairs = zip(given.learned, given.counts, strict=True)
        weights = np.concatenate([np.ones(count) if own is None else own for own, count in pairs])
    deck = RowDeck(plan, whole, weights)
    if not given.is_placed:
        return deck
    at_rows = np.ones(len(whole))
    starts = np.cumsum([0, *given.counts])
    for start, used, own in zip(starts, given.used, given.placed, strict=False):
        at_rows[start + used] = 1.0 if own is None else own
    placed = at_rows[deck.numbers(plan.parts[0])].reshape(len(plan.homes), -1)
    return replace(deck, placed=placed)


def depends_on_columns(problem: Problem) -> bool:
    """Whether the problem needs the columns in every draw: to scale them, or to choose among them."""
    return problem.scale is not None or problem.n_columns is not None


@dataclass(frozen=True, eq=False)
class Engine:
    """The statistic of every deal.

    Attributes
    ----------
    deck : Deck
    statistic : Statistic
    dimension : int
        Number of columns of the data.
    anew : bool
        Whether the coordinates of wide rows are found anew in every deal.
    held : list of array or None
        Covariance of each dataset along the components that were removed, which deals do not change.
    """

    deck: Deck
    statistic: Statistic
    dimension: int
    anew: bool = False
    held: tuple[Float | None, ...] = ()

    @classmethod
    def of(cls, given: Given, statistic: Statistic, rng: np.random.Generator, level: float) -> Engine:
        """Prepare the draws."""
        problem = statistic.problem
        deck = make_deck(given, problem, rng)
        deck.plan.check(level)
        deck = centred(deck, problem.center == "own", rng)
        anew = given.is_wide and problem.smooth is None and (statistic.columns_chosen or depends_on_columns(problem))
        statistic = replace(statistic, problem=replace(problem, n_covariates=0))
        dimension = given.width
        return cls(deck, statistic, dimension, anew, (None,) * len(given.sources))

    @property
    def identity(self) -> Numbers:
        """The deal that was observed."""
        return np.arange(len(self.deck.plan.homes))

    def sums(self, at: Numbers, thinning: int) -> Sums:
        """Return the sums of a deal."""
        if self.anew:
            return self._wide_sums(at, thinning)
        dealt = self.deck.dealt(at, thinning)
        parts = tuple(part.moments(held) for part, held in zip(dealt, self.held, strict=True))
        return Sums(parts, self.dimension)

    def _wide_sums(self, at: Numbers, thinning: int) -> Sums:
        deck = self.deck
        assert isinstance(deck, RowDeck)
        rows, weights = [], []
        for home in range(deck.plan.n_datasets):
            places = np.flatnonzero(deck.plan.homes == home)
            numbers = deck.numbers(deck.plan.parts[thinning][at[places]])
            own = None if deck.weights is None else deck.weights[numbers]
            if deck.placed is not None:
                own = deck.placed[places].ravel() * (1.0 if own is None else own)
            rows.append(take(deck.rows, numbers))
            weights.append(own)
        folds = [np.zeros(part.shape[0], dtype=np.intp) for part in rows]
        return WideData(rows, folds, 1, weights, [None] * len(rows), False).sums(self.statistic.problem)

    def values(self, at: npt.NDArray[np.intp]) -> Float:
        """Return the statistic of a deal: its mean over thinnings, at each value of a path."""
        found = [self.statistic.values_of(self.sums(at, thinning)) for thinning in range(len(self.deck.plan.parts))]
        mean: Float = np.mean(found, axis=0)
        return mean

    def without_leading(self, place: int) -> Engine:
        """Remove the leading component of the datasets as they are from all rows, at one value of the path.

        With the pattern ``B u`` removed, the largest value in what is left is the next one. The variance of the
        backgrounds along the pattern stays: it is part of the ridge.
        """
        if self.anew:
            sums = self._wide_sums(self.identity, 0)
        else:
            thinned = [self.deck.dealt(self.identity, number) for number in range(len(self.deck.plan.parts))]
            totals = [sum(parts[1:], parts[0]) for parts in zip(*thinned, strict=True)]
            sums = Sums(tuple(map(Totals.moments, totals, self.held)), self.dimension)
        pattern = solve(sums, self.statistic.problems(sums)[place]).patterns[:, :1]
        pattern = pattern / column_norms(pattern)
        held = list(self.held)
        for home, part in enumerate(sums.moments[1:] if not self.anew else (), start=1):
            own = float(part.variance(pattern)[0]) * pattern * pattern.T
            held[home] = own if held[home] is None else held[home] + own
        return replace(self, deck=self.deck.without(pattern), held=tuple(held))


def refuse_no_background(sources: Sequence[Source]) -> None:
    """Raise an error if there is nothing to compare with."""
    if len(sources) < 2:
        raise InvalidValueError("a test needs a background", advice="Give `background`.")
