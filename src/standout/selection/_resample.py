"""From units to the moments of every draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from standout._arrays import Float, Rows, product, self_product, squared_lengths, sum_of_squares, weighted_sum
from standout._xp import concat, like, namespace, take, to_host, zeros
from standout.moments import Moments, ScatterMoments, WeightSums
from standout.selection._units import Numbers, Plan

# Steps towards a robust middle, the share of the median squared distance that is added to every squared distance, and
# the share of it that ends the steps.
N_STEPS, SMALL_SHARE, NEAR = 60, 0.1, 1e-3
# Fewer units than this are subjects or very few rows.
FEW_UNITS = 30
# Share of the error of a middle that is restored, and the distance, in medians, from which a unit is far off.
RESTORED, FAR = 0.7, 2.0


class Totals(NamedTuple):
    """Sums over rows: weights, rows, and products of their columns."""

    weight: float
    first: Float
    second: Float

    def plus(self, other: Totals, sign: float = 1.0) -> Totals:
        """Add other sums, or subtract them."""
        first, second = self.first + sign * other.first, self.second + sign * other.second
        return Totals(self.weight + sign * other.weight, first, second)

    def moments(self, held: Float | None = None) -> ScatterMoments:
        """Return the moments; `held` is a covariance that is added."""
        scatter = self.second - self.first[:, None] * (self.first / self.weight)
        if held is not None:
            scatter = scatter + self.weight * held
        sums = WeightSums(self.weight, self.weight)
        return ScatterMoments(round(self.weight), self.first / self.weight, scatter, weights=sums)


# Some parts of a dataset, with the factor of each part or of each of its rows.
Hand = tuple[Numbers, Float | None]


class Deck:
    """The rows of all datasets as parts of units, which are dealt or drawn.

    Subclasses have the sums of some parts (`totals`), the mean row of each part (`means`), and return decks with a row
    subtracted from all rows of each part (`shifted`), or without some directions (`without`).
    """

    plan: Plan
    # Weights that stay at their places, by unit and row.
    placed: Float | None = None

    def totals(self, parts: Numbers, factors: Float | None = None) -> Totals:
        """Return the sums over some parts, each times its factor."""
        raise NotImplementedError

    @cached_property
    def _everything(self) -> list[Totals]:
        return [self.totals(parts) for parts in self.plan.parts]

    @cached_property
    def _fixed(self) -> list[Totals]:
        n_sets = len(self.plan.keys)
        parts = np.arange(self.plan.n_parts - n_sets, self.plan.n_parts)[:, None]
        return [self.totals(own) for own in parts] if self.plan.has_fixed else []

    def hands(self, at: Numbers, thinning: int = 0) -> list[Hand]:
        """Return the parts of each dataset if its places have these units."""
        parts, placed = self.plan.parts[thinning][at], self.placed
        return [(parts[places], None if placed is None else placed[places]) for places in self.plan.places]

    def dealt(self, at: Numbers, thinning: int = 0) -> list[Totals]:
        """Return the sums of each dataset if its places have these units.

        The sums of the largest dataset are those of all units less those of the others.
        """
        hands = self.hands(at, thinning)
        largest = -1 if self.placed is not None else int(np.argmax([len(parts) for parts, _ in hands]))
        found = [self._everything[thinning] if home == largest else self.totals(*own) for home, own in enumerate(hands)]
        for home, own in enumerate(found):
            if largest >= 0 and home != largest:
                found[largest] = found[largest].plus(own, -1.0)
        return [own.plus(fixed) for own, fixed in zip(found, self._fixed, strict=True)] if self._fixed else found

    def drawn(self, times: Float) -> list[Totals]:
        """Return the sums of each dataset if each of its units is drawn so many times."""
        return [self.totals(*hand) for hand in self.times_hands(times)]

    def times_hands(self, times: Float) -> list[Hand]:
        """Return the parts of each dataset if each of its units is drawn so many times."""
        chosen = [places[times[places] > 0] for places in self.plan.places]
        return [(self.plan.parts[0][own], times[own]) for own in chosen]


@dataclass(frozen=True, eq=False)
class RowDeck(Deck):
    """Rows in memory, all datasets under one another.

    Attributes
    ----------
    plan : Plan
    rows : array of shape (n_rows, r)
    weights : ndarray of shape (n_rows,) or None
        Weights that go with their rows.
    placed : ndarray of shape (n_units, n_rows_of_each) or None
    """

    plan: Plan
    rows: Float
    weights: Float | None = None
    placed: Float | None = None

    @cached_property
    def _order(self) -> tuple[Numbers, Numbers]:
        """The rows in the order of their parts, and where each part begins."""
        keys = np.concatenate(self.plan.keys)
        order = np.argsort(keys, kind="stable")
        return order, np.searchsorted(keys[order], np.arange(self.plan.n_parts + 1))

    def numbers(self, parts: Numbers) -> Numbers:
        """Return the row numbers of some parts."""
        order, starts = self._order
        if np.all(np.diff(starts) == 1):
            return order[starts[parts]]
        return np.concatenate([order[starts[part] : starts[part + 1]] for part in parts.tolist()])

    def chosen(self, parts: Numbers, factors: Float | None = None) -> tuple[Rows, Float | None]:
        """Return the rows of some parts with their weights."""
        numbers = self.numbers(parts)
        weights = None if self.weights is None else self.weights[numbers]
        if factors is not None:
            each = np.repeat(factors, np.diff(self._order[1])[parts]) if factors.ndim == 1 else factors.ravel()
            weights = each if weights is None else weights * each
        return take(self.rows, numbers), weights

    def totals(self, parts: Numbers, factors: Float | None = None) -> Totals:
        """Return the sums over some parts, each times its factor."""
        rows, weights = self.chosen(parts, factors)
        if weights is None:
            return Totals(rows.shape[0], namespace(rows).sum(rows, axis=0), self_product(rows))
        scaled = rows * like(np.sqrt(weights), rows)[:, None]
        return Totals(float(weights.sum()), weighted_sum(weights, rows), self_product(scaled))

    def means(self) -> Float:
        """Return the mean row of each part."""
        order, starts = self._order
        if np.all(np.diff(starts) == 1):
            return take(self.rows, order)
        found = []
        for part in range(self.plan.n_parts):
            rows, weights = self.chosen(np.array([part]))
            own = np.ones(rows.shape[0]) if weights is None else weights
            found.append(weighted_sum(own, rows) / max(own.sum(), 1e-300))
        return namespace(self.rows).stack(found)

    def shifted(self, shifts: Float) -> RowDeck:
        """Subtract a row from all rows of each part."""
        return replace(self, rows=self.rows - take(shifts, np.maximum(np.concatenate(self.plan.keys), 0)))

    def without(self, basis: Float) -> RowDeck:
        """Remove the directions of an orthonormal basis from all rows."""
        return replace(self, rows=self.rows - product(product(self.rows, basis), basis.T))


@dataclass(frozen=True, eq=False)
class SumDeck(Deck):
    """The moments of every part: a draw takes the same time at any number of rows.

    Attributes
    ----------
    plan : Plan
    weights : ndarray of shape (n_parts,)
    rows : array of shape (n_parts, r)
        The mean of each part.
    scatters : array of shape (n_parts, r, r)
        The scatter of each part about its mean.
    """

    plan: Plan
    weights: Float
    rows: Float
    scatters: Float

    @classmethod
    def of(cls, plan: Plan, moments: Sequence[Moments | None]) -> SumDeck:
        """Store the moments of every part; None is a part without rows."""
        some = next(part for part in moments if part is not None)
        xp, size = namespace(some.mean), some.n_features
        weights = np.array([0.0 if part is None else part.total_weight for part in moments])
        # About the mean of one part: squares of large means would cost digits.
        means = [zeros((size,), some.mean) if part is None else part.mean - some.mean for part in moments]
        none = zeros((size, size), some.mean)
        scatters = [none if part is None else part.total_weight * part.covariance() for part in moments]
        return cls(plan, weights, xp.stack(means), xp.stack(scatters))

    def totals(self, parts: Numbers, factors: Float | None = None) -> Totals:
        """Return the sums over some parts, each times its factor."""
        by = np.ones(len(parts)) if factors is None else factors
        size, own, rows = self.rows.shape[1], by * self.weights[parts], take(self.rows, parts)
        within = weighted_sum(by, take(self.scatters, parts).reshape((len(parts), size * size)))
        between = self_product(rows * like(np.sqrt(own), rows)[:, None])
        return Totals(float(own.sum()), weighted_sum(own, rows), within.reshape((size, size)) + between)

    def means(self) -> Float:
        """Return the mean row of each part."""
        return self.rows

    def shifted(self, shifts: Float) -> SumDeck:
        """Subtract a row from all rows of each part."""
        return replace(self, rows=self.rows - shifts)

    def without(self, basis: Float) -> SumDeck:
        """Remove the directions of an orthonormal basis from all rows."""
        rows = self.rows - product(product(self.rows, basis), basis.T)
        left = self.scatters - (self.scatters @ basis) @ basis.T
        return replace(self, rows=rows, scatters=left - basis @ (basis.T @ left))


def middle_of(rows: Float) -> Float:
    """Where is the middle of these rows, for all but those far off?

    With d the distance from the middle and s a tenth of the median of d², rows have the weights ``1 / √(s + d²)``, as
    in a smooth spatial median, and the few means of subjects ``1 / (s + d²)``. A row that is far off draws the mean
    towards itself, and so does it with the spatial median of a few rows. It then leaves a trace in all rows of its
    dataset, which a deal spreads over all datasets: false alarms.

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
        if sum_of_squares(middle - before) <= NEAR**2 * small:
            break
    return middle


def centred(deck: RowDeck | SumDeck, own: bool, rng: np.random.Generator) -> RowDeck | SumDeck:
    """Move each dataset to its own middle, or all datasets to a common one.

    Units about the middle of their own dataset are no longer independent: their sum is nearly zero. A deal of few
    subjects in many columns then has one direction fewer that only the target has, and false alarms are too many (9 %
    for 5 and 5 subjects in 40 columns). So a random vector that is somewhat smaller than the error of the middle is
    added to each dataset.
    """
    plan, means = deck.plan, deck.means()
    if not own:
        return deck.shifted(0.0 * means + namespace(means).mean(means, axis=0))
    n_sets = len(plan.keys)
    units = sum(take(means, parts) for parts in plan.parts) / len(plan.parts)
    middles = concat([middle_of(take(units, places))[None, :] for places in plan.places])
    away = units - take(middles, plan.homes)
    sizes = np.sqrt(to_host(squared_lengths(away)))
    # Units that are far off hardly move a middle. Those of datasets with the same subjects have errors in common.
    limits = np.minimum(1.0, FAR * np.median(sizes) / np.maximum(sizes, 1e-300)) * (plan.groups < 0)
    factors = rng.standard_normal((n_sets, len(sizes))) * limits / np.sqrt(len(sizes))
    offsets = RESTORED * product(like(factors / np.sqrt(np.bincount(plan.homes))[:, None], means), away)
    homes = np.tile(np.arange(n_sets), plan.n_parts // n_sets + 1)[-plan.n_parts :]
    homes[plan.parts] = plan.homes
    return deck.shifted(take(middles - offsets, homes))
