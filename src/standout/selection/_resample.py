"""The rows of all datasets as a deck of units, and the moments of each permutation or bootstrap draw.

A permutation test deals the units to the datasets at random. A bootstrap draws units of each dataset with replacement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add, or_

import numpy as np
from scipy import linalg

from standout._arrays import (
    Float,
    Rows,
    dense,
    double,
    product,
    self_product,
    squared_lengths,
    stacked,
    sum_of_squares,
    weighted_sum,
)
from standout._xp import concat, like, namespace, take, to_host
from standout.moments import Moments, ScatterMoments, Span, WeightSums, gather_keyed, span_of
from standout.problem import Problem, Sums, adjusted
from standout.selection._data import WideData
from standout.selection._units import Numbers, Plan, plan_rows, plan_subjects, sums_of
from standout.sources import Source
from standout.sources._base import each_dataset

# Without subjects, single rows are dealt in three cases, and blocks of rows otherwise:
# - the rows are in memory, and there are at most MOST_ROWS rows or more than MOST_COLUMNS columns;
# - there are more columns than rows, and the problem has no `smooth`;
# - the draws are for a permutation test, and the user's weights differ between the rows of a dataset (see `_placed`).
MOST_ROWS, MOST_COLUMNS = 4000, 1024
# Minimum and maximum number of blocks, and maximum number of entries in the scatter matrices of all blocks (512 MiB).
LEAST_UNITS, MOST_UNITS, MOST_NUMBERS = 32, 128, 2**26
# Weights are equal if they differ by less than this share.
SAME_WEIGHT = 1e-9
# The robust middle is found in at most N_STEPS steps. SMALL_SHARE of the median squared distance is added to every
# squared distance. The search ends when a step is shorter than NEAR times the root of this added number.
N_STEPS, SMALL_SHARE, NEAR = 60, 0.1, 1e-3
# With fewer units than this (subjects, or very few rows), far units get smaller weights in the robust middle.
FEW_UNITS = 30
# A unit is far off if its distance is more than FAR times the median distance. A difference of middles is more than
# chance if it exceeds FAR standard errors. SMALLEST avoids a division by zero.
FAR, SMALLEST = 2.0, 1e-300

Weights = Sequence[Float | None]
# The parts that a dataset gets in a draw, with the factor of each part, or of each row of each part.
Hand = tuple[Numbers, Float]


@dataclass(frozen=True, eq=False)
class Deck:
    """The rows of all datasets, divided into the parts of a plan. A draw is a list of hands, one for each dataset.

    Parts of many rows are stored as their sums, so that the time of a draw does not depend on the number of rows.

    Attributes
    ----------
    plan : Plan
    rows : array of shape (n_rows, r)
        The stacked rows of all datasets, or the mean of each part.
    owners : ndarray of shape (n_rows,)
        The part of each row; -1 for rows that are left out.
    weights : ndarray of shape (n_rows,)
        Weights that move with their rows.
    scatters : array of shape (n_parts, r, r) or None
        The scatter of each part about its mean, if `rows` are means.
    placed : ndarray of shape (n_units, n_rows_of_each) or None
        Weights that stay in place when units move.
    span : Span or None
        The map to coordinates of wide rows.
    """

    plan: Plan
    rows: Float
    owners: Numbers
    weights: Float
    scatters: Float | None = None
    placed: Float | None = None
    span: Span | None = None

    @cached_property
    def _order(self) -> tuple[Numbers, Numbers]:
        """The row numbers in the order of their parts, and the position at which each part begins."""
        order = np.argsort(self.owners, kind="stable")
        return order, np.searchsorted(self.owners[order], np.arange(self.plan.n_parts + 1))

    @property
    def dimension(self) -> int:
        """Number of columns of the data."""
        return int((self.rows if self.span is None else self.span.rows[0]).shape[1])

    def numbers(self, parts: Numbers) -> Numbers:
        """Return the row numbers of some parts."""
        order, starts = self._order
        sizes = np.diff(starts)[parts]
        return order[np.repeat(starts[parts] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())]

    @cached_property
    def products(self) -> Float:
        """Inner products of all rows."""
        return self_product(self.rows.T)

    def chosen(self, parts: Numbers, factors: Float) -> tuple[Numbers, Float]:
        """Return the row numbers of some parts, and the weights of the rows."""
        numbers = self.numbers(parts)
        each = np.repeat(factors, np.diff(self._order[1])[parts]) if factors.ndim == 1 else factors.ravel()
        return numbers, self.weights[numbers] * each

    def moments(self, parts: Numbers, factors: Float) -> ScatterMoments:
        """Return the moments of some parts, each multiplied by its factor."""
        numbers, weights = self.chosen(parts, factors)
        rows, total = take(self.rows, numbers), float(weights.sum())
        mean = weighted_sum(weights, rows) / total
        squares = self_product(rows * like(np.sqrt(weights), rows)[:, None])
        if self.scatters is not None:
            within = take(self.scatters, parts).reshape((len(parts), -1))
            squares += weighted_sum(factors, within).reshape(squares.shape)
        squares -= total * mean[:, None] * mean
        return ScatterMoments(round(total), mean, squares, weights=WeightSums(total, total))

    def means(self) -> Float:
        """Return the mean row of each part."""
        order, starts = self._order
        if starts[-1] - starts[0] == self.plan.n_parts:
            return take(self.rows, order[starts[0] :])
        one, parts = np.ones(1), range(self.plan.n_parts)
        return namespace(self.rows).stack([self.moments(np.array([part]), one).mean for part in parts])

    def without(self, basis: Float) -> Deck:
        """Return the deck without the directions of an orthonormal basis."""
        rows, scatters = self.rows - product(product(self.rows, basis), basis.T), self.scatters
        if scatters is not None:
            scatters = scatters - (scatters @ basis) @ basis.T
            scatters = scatters - basis @ (basis.T @ scatters)
        return replace(self, rows=rows, scatters=scatters)

    @cached_property
    def _whole(self) -> list[ScatterMoments]:
        """The moments of all parts of each thinning."""
        every = [np.append(parts, self.plan.fixed) for parts in self.plan.parts]
        return [self.moments(parts, np.ones(len(parts))) for parts in every]

    def hands(self, at: Numbers, thinning: int = 0) -> list[Hand]:
        """Return the hand of each dataset. `at` has the unit at each place."""
        parts, plan = self.plan.parts[thinning][at], self.plan
        dealt = [np.append(parts[places], own) for places, own in zip(plan.places, plan.fixed, strict=True)]
        if self.placed is None:
            return [(own, np.ones(len(own))) for own in dealt]
        return [(own, self.placed[places]) for own, places in zip(dealt, plan.places, strict=True)]

    def dealt(self, at: Numbers, thinning: int = 0) -> list[ScatterMoments]:
        """Return the moments of each dataset. `at` has the unit at each place.

        The moments of the largest dataset are the total minus the other datasets, unless this would lose digits.
        """
        hands = self.hands(at, thinning)
        if self.placed is not None:
            return [self.moments(*hand) for hand in hands]
        largest = int(np.argmax([len(parts) for parts, _ in hands]))
        found = [self.moments(*hand) for home, hand in enumerate(hands) if home != largest]
        left: ScatterMoments | None = self._whole[thinning]
        for own in found:
            left = left and left.without(own)
        return [*found[:largest], left or self.moments(*hands[largest]), *found[largest:]]

    def drawn(self, times: Float) -> list[Hand]:
        """Return the hand of each dataset. `times` is how often each unit is drawn."""
        chosen = [places[times[places] > 0] for places in self.plan.places]
        return [(self.plan.parts[0][own], times[own]) for own in chosen]

    def wide_sums(self, hands: Sequence[Hand], problem: Problem) -> Sums:
        """Return the sums of a draw of wide rows, with new coordinates."""
        every = [self.chosen(*hand) for hand in hands]
        rows, weights = [take(self.rows, numbers) for numbers, _ in every], [own for _, own in every]
        folds = [np.zeros(part.shape[0], dtype=np.intp) for part in rows]
        return WideData(rows, folds, 1, weights, [None] * len(rows), False).sums(problem)


# --- from datasets to a deck -----------------------------------------------------------------------------------------


def make_deck(
    sources: list[Source], learned: Weights, problem: Problem, rng: np.random.Generator, spanned: bool, thinned: bool
) -> Deck:
    """Return the deck of all datasets. Their rows are read in one pass.

    If `spanned`, wide rows (more columns than rows) become coordinates in their span. If `thinned`, all subjects keep
    the same number of rows, and the user's weights do not move with rows. The weights of a source are the user's
    weights times the robust weights in `learned`.
    """
    counts, width = [source.count_rows() for source in sources], int(sources[0].width or 0)
    placed = _placed(sources, learned) if thinned else None
    wide, small = problem.smooth is None and width > sum(counts), sum(counts) <= MOST_ROWS or width > MOST_COLUMNS
    by_rows = placed is not None or wide or (small and all(source.rows is not None for source in sources))
    most_parts = max(MOST_NUMBERS // width**2, LEAST_UNITS)
    most = max(MOST_ROWS, sum(counts)) if by_rows else min(most_parts, MOST_UNITS)
    if sources[0].subjects is None:
        plan = plan_rows(counts, most, rng)
    else:
        codes = [source.subjects for source in sources if source.subjects is not None]
        plan = plan_subjects(codes, most, most if by_rows else most_parts, rng, thinned=thinned)
    if by_rows:
        parts = _residual_rows([source.loaded() for source in sources], pooled=thinned)
        span = span_of(parts) if wide and spanned else None
        rows = stacked([double(dense(part)) for part in (parts if span is None else span.coordinates)])
        weights = [np.ones(n) if own is None else own for n, own in zip(counts, learned, strict=True)]
        deck = Deck(plan, rows, np.concatenate(plan.keys), np.concatenate(weights), span=span)
        if placed is None:
            return deck
        return replace(deck, placed=placed[deck.numbers(plan.parts[0])].reshape(len(plan.homes), -1))

    def gathered(place: int) -> dict[int, Moments]:
        part = sources[place].named(sources[place].name)
        part.weights = learned[place]
        every = enumerate(gather_keyed(part, plan.keys[place], plan.n_parts, name=part.name))
        known = {number: moments for number, moments in every if moments is not None}
        total = reduce(add, known.values())
        # Covariates of a dataset have the same coefficients in all of its parts.
        return {number: adjusted(moments, problem.n_covariates, by=total) for number, moments in known.items()}

    found: dict[int, Moments] = reduce(or_, each_dataset(gathered, sources))
    every, some = [found.get(part) for part in range(plan.n_parts)], next(iter(found.values()))
    totals = np.array([0.0 if part is None else part.total_weight for part in every])
    # Subtract the mean of one part, because squares of large means would lose digits. A part without rows has zeros.
    means = [0.0 * some.mean if part is None else part.mean - some.mean for part in every]
    scatters = [(part or some).covariance() * total for part, total in zip(every, totals, strict=True)]
    xp = namespace(some.mean)
    return Deck(plan, xp.stack(means), np.arange(plan.n_parts), totals, xp.stack(scatters))


def _placed(sources: Sequence[Source], learned: Weights) -> Float | None:
    """Return the user's weights, divided by their mean; None if all rows of each dataset have equal weights."""
    found = []
    for source, own in zip(sources, learned, strict=True):
        given = np.ones(source.count_rows()) if source.weights is None else source.weights
        if source.weights is not None and own is not None:
            given = np.divide(given, own, out=np.zeros(len(given)), where=own > 0.0)
        found.append(given / given.mean())
    return None if all(np.ptp(own) <= SAME_WEIGHT for own in found) else np.concatenate(found)


def _residual_rows(sources: Sequence[Source], pooled: bool) -> list[Rows]:
    """Return the rows without the linear effects of the covariates.

    Removing the effects within a dataset makes its rows dependent, just as removing its mean does (see `centred`). For
    deals (`pooled`), the effects are therefore estimated over all datasets together. An effect that remains within a
    dataset is kept if chance explains it. A larger effect is shortened to its expected length.
    """
    given = [source.covariates for source in sources if source.covariates is not None]
    if not given:
        return [source.rows for source in sources]
    rows, centres = [double(dense(source.rows)) for source in sources], [own - own.mean(axis=0) for own in given]
    if pooled:
        every = stacked(rows)
        slopes = like(np.linalg.pinv(np.concatenate(centres)), every) @ every
        rows = [part - like(own, part) @ slopes for part, own in zip(rows, given, strict=True)]
    found: list[Rows] = []
    for source, part, own, centre in zip(sources, rows, given, centres, strict=True):
        slopes, kept = like(np.linalg.pinv(centre), part) @ part, 0.0
        if pooled:
            subjects = np.arange(len(own)) if source.subjects is None else source.subjects + 1
            effect = to_host(like(centre, part) @ slopes)
            away = to_host(part - namespace(part).mean(part, axis=0)) - effect
            kept = _kept(sum_of_squares(effect), linalg.orth(centre).T, away, subjects)
        found.append(part - (1.0 - kept) * (like(own, part) @ slopes))
    return found


def _kept(length: float, shares: Iterable[Float], away: Float, subjects: Numbers) -> float:
    """Return the factor that shortens a difference to its expected length; 1 if chance explains the difference.

    `length` is the squared length of the difference. The difference is the sum of the rows times their `shares`. `away`
    has the rows without the difference.
    """
    n_codes = int(subjects.max()) + 1
    chance = float(sum(np.sum(sums_of(share[:, None] * away, subjects, n_codes) ** 2) for share in shares))
    return 1.0 if length <= FAR**2 * chance else float(np.sqrt(chance / length))


# --- the middle of each dataset --------------------------------------------------------------------------------------


def middle_of(rows: Float) -> Float:
    """Where is the middle of these rows, without the influence of outlying rows?

    The middle is a weighted mean. Each row has the weight ``1 / √(s + d²)``, as in a smooth spatial median. Here d is
    the distance of the row from the middle, and s is a tenth of the median of d². Fewer than 30 rows, such as means of
    subjects, have the weights ``1 / (s + d²)``.

    A far row shifts the mean, and also the spatial median of a few rows. The shift would then be in all centred rows of
    the dataset. A deal would mix them into all datasets, and cause false alarms.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.selection._resample import middle_of
    >>> middle_of(np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 4.0], [2.0, 999.0]])).round(1)
    array([2., 2.])
    """
    xp = namespace(rows)
    power = 1.0 if rows.shape[0] < FEW_UNITS else 0.5
    middle: Float = xp.mean(rows, axis=0)
    for _ in range(N_STEPS):
        squares = squared_lengths(rows - middle)
        small = SMALL_SHARE * float(np.median(to_host(squares))) or 1.0
        weights = (squares + small) ** -power
        before, middle = middle, weighted_sum(weights / xp.sum(weights), rows)
        if float(squared_lengths((middle - before)[None, :])[0]) <= NEAR**2 * small:
            break
    return middle


def centred(deck: Deck, own: bool) -> Deck:
    """Return the deck with all rows centred at one point.

    With `own`, differences between the middles of the datasets are made smaller first.

    Rows that are centred at the middle of their dataset are not independent: their sum is nearly 0. Deals of few
    subjects in many columns then have other leading values than the observed data. Therefore differences of middles
    that chance explains are not changed, and the test is exact. Larger differences are shortened to their expected
    length.
    """
    plan, means = deck.plan, deck.means()
    units = sum(take(means, parts) for parts in plan.parts) / len(plan.parts)
    n_sets = len(plan.keys)
    shifts = namespace(means).mean(units, axis=0) + like(np.zeros((n_sets, 1)), means)
    if own:
        middles = concat([middle_of(take(units, places))[None, :] for places in plan.places])
        counts, subjects = np.bincount(plan.homes)[:, None], plan.subjects
        stretch = np.sqrt(counts / (counts - 1))[plan.homes, 0]
        away = to_host(units - take(middles, plan.homes))
        # Limit the distances of far units here, because the weights in `middle_of` limit their influence on a middle.
        sizes = np.linalg.norm(away, axis=1)
        away *= (stretch * np.minimum(1.0, FAR * np.median(sizes) / np.maximum(sizes, SMALLEST)))[:, None]
        steps = middles - weighted_sum(counts[:, 0] / len(away), middles)
        # If a subject is in several datasets, its mean is part of each middle, and cancels in their differences.
        shares = (plan.homes == np.arange(n_sets)[:, None]) / counts - 1.0 / len(away)
        lengths = to_host(squared_lengths(steps)).tolist()
        kept = [_kept(length, [share], away, subjects) for length, share in zip(lengths, shares, strict=True)]
        shifts = shifts + like(1.0 - np.array(kept)[:, None], means) * steps
    homes = np.empty(plan.n_parts, dtype=np.intp)
    homes[plan.parts], homes[plan.fixed] = plan.homes, np.arange(n_sets)[:, None]
    return replace(deck, rows=deck.rows - take(shifts, homes[np.maximum(deck.owners, 0)]))
