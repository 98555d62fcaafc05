"""Units that change places or are drawn again: rows, blocks of rows or subjects, and the moments of every draw."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, comb, exp, lgamma, log

import numpy as np
import numpy.typing as npt

from standout._arrays import Float, product, self_product, squared_lengths, sum_of_squares, weighted_sum
from standout._messages import InvalidValueError
from standout._xp import concat, like, namespace, take, to_host
from standout.moments import Moments, ScatterMoments, WeightSums

Numbers = npt.NDArray[np.intp]

# Thinnings of subjects with different numbers of rows over which a statistic is averaged.
N_THINNINGS = 5
# Correlation of the rows of a subject, by which subjects and rows are weighed against each other.
INTRACLASS = 0.4
# Blocks that the smallest dataset has at least, if it has as many rows.
LEAST_BLOCKS = 16
# Relabelings up to which their number is exact.
MOST_COUNTED = 1e6
# Share of the error of a middle that is restored, and the distance, in medians, from which a unit is far off.
RESTORED, FAR = 0.7, 2.0
# Steps towards a robust middle, and the share of the median squared distance that is added to every squared distance.
N_STEPS, SMALL_SHARE, NEAR = 60, 0.1, 1e-3
# Fewer units than this are subjects or very few rows.
FEW_UNITS = 30


# --- which rows belong together --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Plan:
    """Which rows form a unit, and which units may change places.

    Attributes
    ----------
    keys : list of ndarray of shape (n_rows,)
        The part of each row, for each dataset; -1 for rows that are left out.
    parts : ndarray of shape (n_thinnings, n_units)
        The part that stands for each unit in each thinning.
    homes : ndarray of shape (n_units,)
        The dataset of each unit.
    groups : ndarray of shape (n_units,)
        Units with the same number change places with each other.
    fixed : tuple of int
        The part of each dataset that stays where it is; -1 if there is none.
    n_parts : int
    kind : {"rows", "blocks", "subjects"}
    """

    keys: list[Numbers]
    parts: Numbers
    homes: Numbers
    groups: Numbers
    fixed: tuple[int, ...]
    n_parts: int
    kind: str

    @property
    def n_datasets(self) -> int:
        """Number of datasets."""
        return len(self.keys)

    @property
    def n_ways(self) -> float:
        """Number of ways in which the units can be dealt to the datasets."""
        total = 0.0
        for group in np.unique(self.groups):
            counts = np.bincount(self.homes[self.groups == group])
            total += lgamma(counts.sum() + 1) - sum(lgamma(count + 1) for count in counts)
        ways = exp(min(total, 700.0))
        return float(round(ways)) if ways < MOST_COUNTED else ways

    def check(self, level: float) -> None:
        """Raise an error if there are too few units for a test at this level."""
        counts = np.bincount(self.homes, minlength=self.n_datasets)
        each = next(n for n in range(2, 99) if comb(2 * n, n) * level >= 1.0)
        pairs = next(n for n in range(2, 99) if 2**n * level >= 1.0)
        what = "subjects" if self.kind == "subjects" else "rows"
        also = f", or {pairs} subjects that are in both datasets" if what == "subjects" else ""
        advice = f"At least {each} {what} in each dataset would do{also}."
        if counts.min() < 2:
            problem = f"a dataset has {'one' if counts.min() else 'no'} {what[:-1]}, but a test needs two or more"
            raise InvalidValueError(problem, advice=advice)
        if self.n_ways * level < 1.0 - 1e-9:
            n_units = np.sum(self.groups < 0) + len(np.unique(self.groups[self.groups >= 0]))
            raise InvalidValueError(
                f"{n_units} {what} can be dealt to the datasets in {round(self.n_ways)} ways only, but level={level:g} "
                f"needs {ceil(1.0 / level)}",
                advice=advice,
            )

    def deals(self, rng: np.random.Generator, count: int, every: bool = True) -> Iterator[Numbers]:
        """Yield the unit at each place of one random deal after the other; each deal once if there are few.

        The deal that was observed is not among those of a complete list.
        """
        ordered = np.argsort(self.groups, kind="stable")
        complete = every and self.n_ways <= count + 1
        seen = {self.homes.tobytes()} if complete else set()
        made = 0
        while made < count and len(seen) < self.n_ways:
            at = np.empty_like(ordered)
            at[ordered] = np.lexsort((rng.random(len(ordered)), self.groups))
            if complete:
                labels = np.empty_like(self.homes)
                labels[at] = self.homes
                if labels.tobytes() in seen:
                    continue
                seen.add(labels.tobytes())
            made += 1
            yield at


def plan_rows(counts: Sequence[int], most: int, rng: np.random.Generator) -> Plan:
    """Make units of rows, or of random blocks of rows of equal size if there are more rows than `most`."""
    size, n_blocks = _blocks(counts, most)
    starts = np.concatenate([[0], np.cumsum(n_blocks)])
    n_units = int(starts[-1])
    keys, fixed = [], []
    for count, start, own in zip(counts, starts, n_blocks, strict=False):
        left = count - own * size
        block = (rng.permutation(count) if size > 1 or left else np.arange(count)) // size
        fixed.append(n_units + len([part for part in fixed if part >= 0]) if left else -1)
        keys.append(np.where(block < own, start + block, fixed[-1]))
    homes = np.repeat(np.arange(len(counts)), n_blocks)
    n_parts = n_units + sum(part >= 0 for part in fixed)
    kind = "rows" if size == 1 else "blocks"
    return Plan(keys, np.arange(n_units)[None], homes, np.full(n_units, -1), tuple(fixed), n_parts, kind)


def _blocks(counts: Sequence[int], most: int) -> tuple[int, list[int]]:
    """Return the size of blocks, and their number in each dataset. What is left over does not change places."""
    if sum(counts) <= most:
        return 1, list(counts)
    size = max(1, min(sum(counts) // most, min(counts) // LEAST_BLOCKS))
    whole = [count // size for count in counts]
    cap = next(cap for cap in range(most, 0, -1) if sum(min(own, cap) for own in whole) <= most)
    return size, [min(own, cap) for own in whole]


def plan_subjects(
    subjects: Sequence[Numbers],
    most: int,
    rng: np.random.Generator,
    *,
    thinned: bool = True,
    most_parts: int = 10**9,
) -> Plan:
    """Make units of subjects: all rows, or the same number of rows of each.

    The leading ratio depends on the number of rows. A test by whole subjects of different size is therefore wrong: a
    deal changes the number of rows of the target.
    """
    n_subjects = 1 + max(int(codes.max()) for codes in subjects)
    sizes = np.array([np.bincount(codes, minlength=n_subjects) for codes in subjects])
    n_rows = _rows_of_each(sizes) if thinned else 1
    kept = sizes >= n_rows
    homes, owners = np.nonzero(kept)
    shared = kept.sum(axis=0) > 1
    n_thinnings = 1
    if thinned and sizes[kept].max() >= 2 * n_rows and len(homes) <= most:
        n_thinnings = int(np.clip(most_parts // len(homes), 1, N_THINNINGS))
    available = np.minimum(sizes[homes, owners] // n_rows, n_thinnings) if thinned else np.ones(len(homes), dtype=int)
    first = np.cumsum(available) - available
    place = np.full(sizes.shape, -1)
    place[homes, owners] = np.arange(len(homes))
    keys = []
    for number, codes in enumerate(subjects):
        # The place of each row among those of its subject, at random.
        order = rng.permutation(len(codes))
        order = order[np.argsort(codes[order], kind="stable")]
        rank = np.empty(len(codes), dtype=np.intp)
        rank[order] = np.arange(len(codes)) - np.repeat(np.cumsum(sizes[number]) - sizes[number], sizes[number])
        unit = place[number][codes]
        step = rank // n_rows if thinned else np.zeros_like(rank)
        keys.append(np.where((unit >= 0) & (step < available[unit]), first[unit] + step, -1))
    parts = first + np.arange(n_thinnings)[:, None] % available
    groups = np.where(shared[owners], owners, -1)
    plan = Plan(keys, parts, homes, groups, (-1,) * len(subjects), int(available.sum()), "subjects")
    return plan if len(homes) <= most else _joined(plan, owners, kept, most, rng)


def _joined(plan: Plan, owners: Numbers, kept: npt.NDArray[np.bool_], most: int, rng: np.random.Generator) -> Plan:
    """Join subjects of the same datasets at random, so that there are at most so many units."""
    kinds, kind_of = np.unique(kept, axis=1, return_inverse=True)
    present = [np.flatnonzero((kind_of.ravel() == kind) & kept.any(axis=0)) for kind in range(kinds.shape[1])]
    present = [members for members in present if len(members)]
    size, n_blocks = _blocks([len(members) for members in present], max(most // plan.n_datasets, LEAST_BLOCKS))
    block, start = np.full(kept.shape[1], -1), 0
    for members, own in zip(present, n_blocks, strict=True):
        number = rng.permutation(len(members)) // size
        block[members] = np.where(number < own, start + number, -1)
        start += own
    # Subjects that are left over stay at home.
    label = np.where(block[owners] < 0, -1 - plan.homes, block[owners] * plan.n_datasets + plan.homes)
    units, part_of = np.unique(label, return_inverse=True)
    dealt = units >= 0
    homes = np.where(dealt, units % plan.n_datasets, -1 - units)
    fixed = tuple(int(np.flatnonzero(units == -1 - k)[0]) if -1 - k in units else -1 for k in range(plan.n_datasets))
    shared = kept.sum(axis=0) > 1
    is_shared = np.zeros(len(units), dtype=bool)
    is_shared[part_of.ravel()] = shared[owners]
    groups = np.where(is_shared, units // plan.n_datasets, -1)[dealt]
    keys = [np.where(own < 0, -1, part_of.ravel()[own]) for own in plan.keys]
    return Plan(keys, np.flatnonzero(dealt)[None], homes[dealt], groups, fixed, len(units), "subjects")


def _rows_of_each(sizes: npt.NDArray[np.intp]) -> int:
    """Return the number of rows that all subjects are thinned to. Subjects with fewer rows are left out.

    Many rows of few subjects and few rows of many subjects are weighed by the effective number of rows.
    """
    best, chosen = -1.0, 1
    for n_rows in np.unique(sizes[sizes > 0]).tolist():
        n_kept = np.sum(sizes >= n_rows, axis=1)
        worth = sum(log(max(n, 1e-9)) for n in n_kept) / len(n_kept) + log(n_rows / (1.0 + INTRACLASS * (n_rows - 1)))
        if n_kept.min() >= min(np.sum(sizes > 0, axis=1).min(), 3) and (best < 0.0 or worth > best):
            best, chosen = worth, n_rows
    return int(chosen)


# --- from units to moments -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums over some rows: their number, weights, squared weights, the rows, and the products of their columns."""

    count: float
    weight: float
    squares: float
    first: Float
    second: Float

    def __add__(self, other: Totals) -> Totals:
        return self._merged(other, 1.0)

    def __sub__(self, other: Totals) -> Totals:
        return self._merged(other, -1.0)

    def _merged(self, other: Totals, sign: float) -> Totals:
        return Totals(
            self.count + sign * other.count,
            self.weight + sign * other.weight,
            self.squares + sign * other.squares,
            self.first + sign * other.first,
            self.second + sign * other.second,
        )

    def moments(self, held: Float | None = None) -> ScatterMoments:
        """Return the moments; `held` is a covariance that is added."""
        scatter = self.second - self.first[:, None] * (self.first / self.weight)
        if held is not None:
            scatter = scatter + self.weight * held
        weights = None if self.weight == self.count == self.squares else WeightSums(self.weight, self.squares)
        return ScatterMoments(round(self.count), self.first / self.weight, scatter, weights=weights)


class Deck:
    """The rows of all datasets as parts of units, which are dealt or drawn."""

    plan: Plan
    # Weights that stay at their places, by unit and row.
    placed: Float | None = None

    def totals(self, parts: Numbers, factors: Float | None = None) -> Totals:
        """Return the sums over some parts, each times its factor."""
        raise NotImplementedError

    def means(self) -> Float:
        """Return the mean row of each part."""
        raise NotImplementedError

    def shifted(self, shifts: Float) -> Deck:
        """Subtract a row from all rows of each part."""
        raise NotImplementedError

    def without(self, basis: Float) -> Deck:
        """Remove the directions of an orthonormal basis from all rows."""
        raise NotImplementedError

    @cached_property
    def _everything(self) -> list[Totals]:
        """The sums over all units in each thinning."""
        return [self.totals(parts) for parts in self.plan.parts]

    @cached_property
    def _fixed(self) -> list[Totals | None]:
        return [None if part < 0 else self.totals(np.array([part])) for part in self.plan.fixed]

    @cached_property
    def _places(self) -> list[Numbers]:
        return [np.flatnonzero(self.plan.homes == home) for home in range(self.plan.n_datasets)]

    def dealt(self, at: Numbers, thinning: int = 0) -> list[Totals]:
        """Return the sums of each dataset if its places have these units.

        The sums of the largest dataset are those of all units less those of the others.
        """
        parts = self.plan.parts[thinning]
        largest = int(np.argmax([len(places) for places in self._places]))
        found: list[Totals | None] = []
        for home, places in enumerate(self._places):
            if self.placed is not None:
                found.append(self.totals(parts[at[places]], self.placed[places]))
            else:
                found.append(None if home == largest else self.totals(parts[at[places]]))
        if self.placed is None:
            rest = self._everything[thinning]
            for part in found:
                rest = rest if part is None else rest - part
            found[largest] = rest
        whole = zip(found, self._fixed, strict=True)
        return [part if fixed is None else part + fixed for part, fixed in whole if part is not None]

    def drawn(self, times: Float) -> list[Totals]:
        """Return the sums of each dataset if each of its units is drawn so many times."""
        found = []
        for places in self._places:
            chosen = places[times[places] > 0]
            found.append(self.totals(self.plan.parts[0][chosen], times[chosen]))
        return found


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
        Weights that stay at their places.
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
        if self.plan.kind == "rows" and not len(np.intersect1d(parts, self.plan.fixed)):
            return order[starts[parts]]
        return np.concatenate([order[starts[part] : starts[part + 1]] for part in parts.tolist()])

    def totals(self, parts: Numbers, factors: Float | None = None) -> Totals:
        """Return the sums over some parts, each times its factor."""
        numbers = self.numbers(parts)
        rows = take(self.rows, numbers)
        weights = None if self.weights is None else self.weights[numbers]
        if factors is not None:
            each = np.diff(self._order[1])[parts]
            factors = np.repeat(factors, each) if factors.ndim == 1 else factors.ravel()
            weights = factors if weights is None else weights * factors
        if weights is None:
            first = namespace(rows).sum(rows, axis=0)
            return Totals(len(numbers), len(numbers), len(numbers), first, self_product(rows))
        first = weighted_sum(weights, rows)
        second = self_product(rows * like(np.sqrt(weights), rows)[:, None])
        return Totals(len(numbers), float(weights.sum()), float(weights @ weights), first, second)

    def weights_of(self, times: Float) -> Float:
        """Return the weight of each row, if each unit is drawn so many times."""
        by_part = np.zeros(self.plan.n_parts + 1)
        by_part[self.plan.parts[0]] = times
        weights: Float = by_part[np.concatenate(self.plan.keys)]
        return weights if self.weights is None else weights * self.weights

    def means(self) -> Float:
        """Return the mean row of each part."""
        if self.plan.kind == "rows" and self.plan.n_parts == len(self.rows):
            return take(self.rows, self._order[0])
        every = [self.totals(np.array([part])) for part in range(self.plan.n_parts)]
        return namespace(self.rows).stack([part.first / part.weight for part in every])

    def shifted(self, shifts: Float) -> RowDeck:
        """Subtract a row from all rows of each part."""
        keys = np.concatenate(self.plan.keys)
        return replace(self, rows=self.rows - take(shifts, np.maximum(keys, 0)))

    def without(self, basis: Float) -> RowDeck:
        """Remove the directions of an orthonormal basis from all rows."""
        return replace(self, rows=self.rows - product(product(self.rows, basis), basis.T))


@dataclass(frozen=True, eq=False)
class SumDeck(Deck):
    """The sums of every part: a draw takes the same time at any number of rows.

    Attributes
    ----------
    plan : Plan
    counts, weights, squares : ndarray of shape (n_parts,)
    first : array of shape (n_parts, r)
    second : array of shape (n_parts, r, r)
        About zero.
    """

    plan: Plan
    counts: Float
    weights: Float
    squares: Float
    first: Float
    second: Float

    @classmethod
    def of(cls, plan: Plan, moments: Sequence[Moments]) -> SumDeck:
        """Store the moments of every part, about the mean of the first part."""
        weights = np.array([part.total_weight for part in moments])
        xp = namespace(moments[0].mean)
        means = xp.stack([part.mean - moments[0].mean for part in moments])
        squares = weights**2 / [part.effective_count for part in moments]
        second = xp.stack([part.total_weight * part.covariance() for part in moments])
        own = like(weights, means)
        second += own[:, None, None] * means[:, :, None] * means[:, None, :]
        return cls(plan, np.array([part.count for part in moments]), weights, squares, own[:, None] * means, second)

    def totals(self, parts: Numbers, factors: Float | None = None) -> Totals:
        """Return the sums over some parts, each times its factor."""
        by = np.ones(len(parts)) if factors is None else factors
        second = take(self.second, parts)
        size = second.shape[-1]
        return Totals(
            float(by @ self.counts[parts]),
            float(by @ self.weights[parts]),
            float(by @ self.squares[parts]),
            weighted_sum(by, take(self.first, parts)),
            weighted_sum(by, second.reshape((len(parts), size * size))).reshape((size, size)),
        )

    def means(self) -> Float:
        """Return the mean row of each part."""
        return self.first / like(self.weights, self.first)[:, None]

    def shifted(self, shifts: Float) -> SumDeck:
        """Subtract a row from all rows of each part."""
        own = like(self.weights, self.first)[:, None]
        first = self.first - own * shifts
        both = self.first[:, :, None] * shifts[:, None, :]
        second = self.second - both - namespace(both).permute_dims(both, (0, 2, 1))
        second += (own * shifts)[:, :, None] * shifts[:, None, :]
        return replace(self, first=first, second=second)

    def without(self, basis: Float) -> SumDeck:
        """Remove the directions of an orthonormal basis from all rows."""
        first = self.first - product(product(self.first, basis), basis.T)
        along = self.second @ basis
        left = self.second - along @ basis.T
        return replace(self, first=first, second=left - basis @ (basis.T @ left))


# --- a common middle -------------------------------------------------------------------------------------------------


def middle_of(rows: Float) -> Float:
    """Where is the middle of these rows, for all but those far off?

    With d the distance from the middle and s a tenth of the median of d², rows have the weights ``1 / √(s + d²)``, as in
    a smooth spatial median, and the few means of subjects ``1 / (s + d²)``. A row that is far off draws the mean
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


def centred(deck: Deck, own: bool, rng: np.random.Generator) -> Deck:
    """Move each dataset to its own middle, or all datasets to a common one.

    Units about the middle of their own dataset are no longer independent: their sum is nearly zero. A deal of few
    subjects in many columns then has one direction fewer that only the target has, and false alarms are too many (9 %
    for 5 and 5 subjects in 40 columns). So a random vector that is somewhat smaller than the error of the middle is
    added to each dataset.
    """
    plan, means = deck.plan, deck.means()
    if not own:
        return deck.shifted(0.0 * means + namespace(means).mean(means, axis=0))
    homes = np.full(plan.n_parts, -1)
    homes[plan.parts] = plan.homes
    homes[[part for part in plan.fixed if part >= 0]] = [home for home, part in enumerate(plan.fixed) if part >= 0]
    units = sum(take(means, parts) for parts in plan.parts) / len(plan.parts)
    sets = [np.flatnonzero(plan.homes == home) for home in range(plan.n_datasets)]
    middles = concat([middle_of(take(units, own))[None, :] for own in sets])
    away = units - take(middles, plan.homes)
    sizes = np.sqrt(to_host(squared_lengths(away)))
    # Units that are far off hardly move a middle.
    limits = np.minimum(1.0, FAR * np.median(sizes) / np.maximum(sizes, np.finfo(np.float64).tiny))
    factors = rng.standard_normal((plan.n_datasets, len(sizes))) / np.sqrt(len(sizes) * np.bincount(plan.homes)[:, None])
    # The middles of datasets with the same subjects have most of their error in common.
    factors = RESTORED * np.where(plan.groups < 0, limits, 0.0) * factors
    return deck.shifted(take(middles - product(like(factors, means), away), homes))
