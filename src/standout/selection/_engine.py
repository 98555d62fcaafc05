"""From datasets to draws: the deck of units, and the statistic of every deal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from standout._arrays import Float, Rows, dense, double, stacked
from standout._xp import column_norms, like, namespace, to_host
from standout.moments import Moments, gather_keyed, learn_weights, span_of
from standout.problem import Problem, Sums, solve
from standout.selection._data import WideData
from standout.selection._leading import Statistic
from standout.selection._resample import Hand, RowDeck, SumDeck, Totals, centred
from standout.selection._units import Numbers, plan_rows, plan_subjects
from standout.sources import Source

# Up to so many rows, rows are dealt one by one. More rows become blocks, unless they have more columns than this.
MOST_ROWS, MOST_COLUMNS = 4000, 1024
# Blocks in all, at least and at most, and the most numbers in their sums (512 MiB).
LEAST_UNITS, MOST_UNITS, MOST_NUMBERS = 32, 128, 2**26
# Weights that differ by less than this share differ by rounding.
SAME_WEIGHT = 1e-9

Weights = Sequence[Float | None]


def is_wide(sources: Sequence[Source], problem: Problem) -> bool:
    """Tell whether there are more columns than rows, which then become coordinates in the span of the rows."""
    return problem.smooth is None and int(sources[0].width or 0) > sum(source.count_rows() for source in sources)


def needs_columns(problem: Problem) -> bool:
    """Tell whether every draw needs the columns: to scale them, or to choose among them."""
    return problem.scale is not None or problem.n_columns is not None


def make_deck(
    sources: Sequence[Source],
    learned: Weights,
    problem: Problem,
    rng: np.random.Generator,
    *,
    spanned: bool = True,
    thinned: bool = True,
) -> RowDeck | SumDeck:
    """Make units of all datasets, and read what draws need of them in one pass.

    Wide rows become coordinates in their span if `spanned`. The weights of sources are those that users gave times
    those that were `learned` from the rows.
    """
    counts, width = [source.count_rows() for source in sources], int(sources[0].width or 0)
    placed, wide = _placed(sources, learned), is_wide(sources, problem)
    small = sum(counts) <= MOST_ROWS or width > MOST_COLUMNS
    by_rows = placed is not None or wide or (small and all(source.rows is not None for source in sources))
    most_parts = max(MOST_NUMBERS // width**2, LEAST_UNITS)
    most = max(MOST_ROWS, sum(counts)) if by_rows else min(most_parts, MOST_UNITS)
    if sources[0].subjects is None:
        plan = plan_rows(counts, most, rng)
    else:
        codes = [source.subjects for source in sources if source.subjects is not None]
        plan = plan_subjects(codes, most, most if by_rows else most_parts, rng, thinned=thinned)
    if by_rows:
        parts = [_residual_rows(source.loaded()) for source in sources]
        parts = list(span_of(parts).coordinates) if wide and spanned else parts
        each = [np.ones(n) if own is None else own for n, own in zip(counts, learned, strict=True)]
        weights = None if all(own is None for own in learned) else np.concatenate(each)
        deck = RowDeck(plan, stacked([double(dense(part)) for part in parts]), weights)
        at_units = None if placed is None else placed[deck.numbers(plan.parts[0])].reshape(len(plan.homes), -1)
        return deck if not thinned else replace(deck, placed=at_units)
    found: list[Moments | None] = [None] * plan.n_parts
    for source, keys, own in zip(sources, plan.keys, learned, strict=True):
        part = source.named(source.name)
        part.weights = own
        one = _residual(gather_keyed(part, keys, plan.n_parts, name=part.name), problem.n_covariates)
        found = [before if now is None else now for before, now in zip(found, one, strict=True)]
    return SumDeck.of(plan, found)


def _placed(sources: Sequence[Source], learned: Weights) -> Float | None:
    """Return the weights that users gave, in units of their mean; None if they are equal in each dataset."""
    if all(source.weights is None for source in sources):
        return None
    found = []
    for source, own in zip(sources, learned, strict=True):
        given = np.ones(source.count_rows()) if source.weights is None else source.weights
        if source.weights is not None and own is not None:
            given = np.divide(given, own, out=np.zeros(len(given)), where=own > 0.0)
        found.append(given / given.mean())
    return None if all(np.ptp(own) <= SAME_WEIGHT for own in found) else np.concatenate(found)


def _residual(parts: list[Moments | None], q: int) -> list[Moments | None]:
    """Remove what the trailing columns of all parts together explain of the others."""
    if q == 0:
        return parts
    covariance = reduce(lambda one, two: one + two, [part for part in parts if part is not None]).covariance()
    size = covariance.shape[0] - q
    slopes = namespace(covariance).linalg.pinv(covariance[size:, size:]) @ covariance[size:, :size]
    L = like(np.concatenate([np.eye(size), -to_host(slopes)]), covariance)
    return [None if part is None else part.mapped(L) for part in parts]


def _residual_rows(source: Source) -> Rows:
    """Return the rows without what the covariates explain of them."""
    if source.covariates is None:
        return source.rows
    rows, middle = double(dense(source.rows)), source.covariates - source.covariates.mean(axis=0)
    return rows - like(middle, rows) @ (like(np.linalg.pinv(middle), rows) @ rows)


def wide_sums(deck: RowDeck, hands: Sequence[Hand], problem: Problem) -> Sums:
    """Return the sums of wide rows, with coordinates that are found anew."""
    every = [deck.chosen(*hand) for hand in hands]
    rows, weights = [part for part, _ in every], [own for _, own in every]
    folds = [np.zeros(part.shape[0], dtype=np.intp) for part in rows]
    return WideData(rows, folds, 1, weights, [None] * len(rows), False).sums(problem)


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
    held : tuple of array or None
        Covariance of each dataset along the components that were removed, which deals do not change.
    """

    deck: RowDeck | SumDeck
    statistic: Statistic
    dimension: int
    anew: bool
    held: tuple[Float | None, ...]

    @classmethod
    def of(
        cls, sources: Sequence[Source], learned: Weights, statistic: Statistic, level: float, rng: np.random.Generator
    ) -> Engine:
        """Prepare the draws."""
        problem = statistic.problem
        anew = is_wide(sources, problem) and (statistic.columns_chosen or needs_columns(problem))
        deck = make_deck(sources, learned, problem, rng, spanned=not anew)
        deck.plan.check(level)
        deck = centred(deck, problem.center == "own", rng)
        if isinstance(deck, RowDeck) and deck.weights is not None:
            # Weights that each dataset learned from few rows fit these better than the rows of a deal.
            deck = replace(deck, weights=to_host(learn_weights(deck.rows)(deck.rows).weights))
        statistic = replace(statistic, problem=replace(problem, n_covariates=0))
        return cls(deck, statistic, int(sources[0].width or 0), anew, (None,) * len(sources))

    @property
    def identity(self) -> Numbers:
        """The deal that was observed."""
        return np.arange(len(self.deck.plan.homes))

    def values(self, at: Numbers) -> Float:
        """Return the statistic of a deal: its mean over thinnings, at each value of a path."""
        every = [self.statistic.values_of(self._sums(at, number)) for number in range(len(self.deck.plan.parts))]
        return np.asarray(np.mean(every, axis=0))

    def _sums(self, at: Numbers, thinning: int | None) -> Sums:
        """Return the sums of a deal; those of all thinnings together if `thinning` is None."""
        if self.anew:
            assert isinstance(self.deck, RowDeck)
            return wide_sums(self.deck, self.deck.hands(at, thinning or 0), self.statistic.problem)
        numbers = range(len(self.deck.plan.parts)) if thinning is None else [thinning]
        every = zip(*(self.deck.dealt(at, number) for number in numbers), strict=True)
        parts = [reduce(Totals.plus, own).moments(held) for own, held in zip(every, self.held, strict=True)]
        return Sums(tuple(parts), self.dimension)

    def without_leading(self, place: int) -> Engine:
        """Remove the leading component of the datasets as they are from all rows, at one value of the path.

        With the pattern ``B u`` removed, the largest value in what is left is the next one. The variance of the
        backgrounds along the pattern stays: it is part of the ridge.
        """
        sums = self._sums(self.identity, None)
        pattern = solve(sums, self.statistic.problems(sums)[place]).patterns[:, :1]
        pattern = pattern / column_norms(pattern)
        held = self.held
        if not self.anew:
            own = [part.variance(pattern) * pattern * pattern.T for part in sums.moments[1:]]
            held = (None, *(now + (0.0 if old is None else old) for now, old in zip(own, held[1:], strict=True)))
        return replace(self, deck=self.deck.without(pattern), held=held)
