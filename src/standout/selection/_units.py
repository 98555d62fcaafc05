"""Units that a permutation test permutes and a bootstrap draws: rows, random blocks of rows, or subjects.

A deal puts the units at other places. Each place belongs to a dataset. A thinning takes the same number of rows from
each subject at random.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, comb, exp, lgamma, log

import numpy as np
import numpy.typing as npt
from scipy import sparse

from standout._arrays import Float
from standout._messages import InvalidValueError

Numbers = npt.NDArray[np.intp]

# Maximum number of thinnings over which a statistic is averaged.
N_THINNINGS = 5
# Assumed correlation of the rows of a subject, for the effective number of rows.
INTRACLASS = 0.4
# Minimum number of blocks of the smallest dataset, if it has enough rows.
LEAST_BLOCKS = 16
# Below this limit, the number of deals is rounded to an integer, because `exp` and `lgamma` have rounding errors.
MOST_COUNTED = 1e6


@dataclass(frozen=True, eq=False)
class Plan:
    """Which rows form a unit, and which units may change places.

    Attributes
    ----------
    keys : list of ndarray of shape (n_rows,)
        The part of each row, for each dataset; -1 for rows that are left out.
    parts : ndarray of shape (n_thinnings, n_units)
        The part with the rows of each unit, in each thinning.
    homes : ndarray of shape (n_units,)
        The dataset of each unit.
    groups : ndarray of shape (n_units,)
        Only units with the same number change places with each other. A subject in several datasets has a separate
        number. All other units have -1.
    n_parts : int
    kind : {"rows", "blocks", "subjects"}
    fixed : ndarray of shape (n_datasets, 0 or 1)
        The part of each dataset with the rows that are left over from the blocks. These rows do not change places.
    """

    keys: list[Numbers]
    parts: Numbers
    homes: Numbers
    groups: Numbers
    n_parts: int
    kind: str
    fixed: Numbers

    @property
    def places(self) -> list[Numbers]:
        """The indices of the places that belong to each dataset."""
        return [np.flatnonzero(self.homes == home) for home in range(len(self.keys))]

    @property
    def subjects(self) -> Numbers:
        """The number of the subject of each unit. Each unit of group -1 is a separate subject."""
        own = 1 + int(self.groups.max()) + np.arange(len(self.groups))
        return np.unique(np.where(self.groups < 0, own, self.groups), return_inverse=True)[1]

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
        counts = np.bincount(self.homes, minlength=len(self.keys))
        each = next(n for n in range(2, 999) if comb(2 * n, n) * level >= 1.0)
        pairs = next(n for n in range(2, 999) if 2**n * level >= 1.0)
        what = "subjects" if self.kind == "subjects" else "rows"
        also = f", or {pairs} subjects that are in both datasets" if what == "subjects" else ""
        advice = f"At least {each} {what} in each dataset would do{also}."
        if counts.min() < 2:
            problem = f"a dataset has {'one' if counts.min() else 'no'} {what[:-1]}, but a test needs two or more"
            raise InvalidValueError(problem, advice=advice)
        if self.n_ways * level < 1.0 - 1e-9:
            n_units = np.sum(self.groups < 0) + len(np.unique(self.groups[self.groups >= 0]))
            problem = f"{n_units} {what} can be dealt to the datasets in {round(self.n_ways)} ways only"
            raise InvalidValueError(f"{problem}, but level={level:g} needs {ceil(1.0 / level)}", advice=advice)

    def deals(self, rng: np.random.Generator, count: int, every: bool = True) -> Iterator[Numbers]:
        """Yield random deals, as the index of the unit at each place.

        With `every` and few possible deals, each deal except the observed one is yielded once.
        """
        ordered = np.argsort(self.groups, kind="stable")
        complete = every and self.n_ways <= count + 1
        seen = {self.homes.tobytes()}
        left = min(count, self.n_ways - 1) if complete else count
        while left > 0:
            at, labels = np.empty_like(ordered), np.empty_like(self.homes)
            at[ordered] = np.lexsort((rng.random(len(ordered)), self.groups))
            labels[at] = self.homes
            if not complete or labels.tobytes() not in seen:
                seen.add(labels.tobytes())
                left -= 1
                yield at

    def times(self, rng: np.random.Generator, count: int) -> Iterator[Float]:
        """Yield how often each unit is drawn with replacement. A subject is drawn in all of its datasets together."""
        subjects = self.subjects
        member = np.zeros((len(self.keys), subjects.max() + 1), dtype=bool)
        member[self.homes, subjects] = True
        kinds = np.unique(member, axis=1, return_inverse=True)[1].ravel()
        for _ in range(count):
            times = np.zeros(member.shape[1])
            for kind in range(int(kinds.max()) + 1):
                some = np.flatnonzero(kinds == kind)
                times[some] = np.bincount(rng.integers(len(some), size=len(some)), minlength=len(some))
            yield times[subjects]


def sums_of(rows: Float, codes: Numbers, n_codes: int) -> Float:
    """Return the sum of the rows with each code."""
    return sparse.csr_array((np.ones(len(rows)), (codes, np.arange(len(rows)))), shape=(n_codes, len(rows))) @ rows


def plan_rows(counts: Sequence[int], most: int, rng: np.random.Generator) -> Plan:
    """Return a plan with rows as units, or random blocks of equal size if there are more rows than `most`."""
    blocks, homes, size = _in_blocks(counts, most, rng)
    n_units = len(homes)
    keys = [np.where(block < 0, n_units + home, block) for home, block in enumerate(blocks)]
    fixed = np.arange(n_units, n_units + len(counts))[:, None][:, : int(n_units * size < sum(counts))]
    kind = "rows" if size == 1 else "blocks"
    return Plan(keys, np.arange(n_units)[None], homes, np.full(n_units, -1), n_units + fixed.size, kind, fixed)


def _in_blocks(counts: Sequence[int], most: int, rng: np.random.Generator) -> tuple[list[Numbers], Numbers, int]:
    """Divide the members of each set into random blocks of equal size, at most `most` blocks in total.

    Return the block of each member (-1 for left-over members), the set of each block, and the size of the blocks.
    """
    size, n_blocks = 1, list(counts)
    if sum(counts) > most:
        size = max(1, min(sum(counts) // most, min(counts) // LEAST_BLOCKS))
        whole = [count // size for count in counts]
        cap = next(cap for cap in range(most, 0, -1) if sum(min(own, cap) for own in whole) <= most)
        n_blocks = [min(own, cap) for own in whole]
    starts, numbers = np.cumsum(n_blocks) - n_blocks, [rng.permutation(count) // size for count in counts]
    every = zip(numbers, starts, n_blocks, strict=True)
    blocks = [np.where(number < own, start + number, -1) for number, start, own in every]
    return blocks, np.repeat(np.arange(len(counts)), n_blocks), size


def plan_subjects(
    subjects: Sequence[Numbers], most: int, most_parts: int, rng: np.random.Generator, *, thinned: bool = True
) -> Plan:
    """Return a plan with subjects as units: all of their rows, or the same number of rows of each if `thinned`.

    The leading ratio depends on the number of rows. Permuting whole subjects of different sizes would be wrong, because
    each deal would change the number of rows of the target.
    """
    sizes = _sizes(subjects)
    if np.sum(sizes > 0) > most:
        subjects = _joined(subjects, sizes, most, rng)
        sizes = _sizes(subjects)
    # Each part has this number of rows of a subject. Without thinning, all rows of a subject are one part.
    n_rows = _rows_of_each(sizes) if thinned else int(sizes.max())
    kept = sizes >= (n_rows if thinned else 1)
    homes, owners = np.nonzero(kept)
    available = np.clip(sizes[kept] // n_rows, 1, int(np.clip(most_parts // len(homes), 1, N_THINNINGS)))
    first, place = np.cumsum(available) - available, np.full(sizes.shape, -1)
    place[kept] = np.arange(len(homes))
    keys = []
    for codes, own, unit_of in zip(subjects, sizes, place, strict=True):
        # Divide the rows of each subject into parts at random. In `order`, rows without a subject come first.
        order = rng.permutation(len(codes))
        order = order[np.argsort(codes[order], kind="stable")]
        starts = np.sum(codes < 0) + np.cumsum(own) - own
        step = np.empty(len(codes), dtype=np.intp)
        step[order] = (np.arange(len(codes)) - starts[codes[order]]) // n_rows
        unit = np.where(codes < 0, -1, unit_of[codes])
        keys.append(np.where((unit >= 0) & (step < available[unit]), first[unit] + step, -1))
    parts = first + np.arange(int(available.max()))[:, None] % available
    groups = np.where(kept.sum(axis=0)[owners] > 1, owners, -1)
    fixed = np.empty((len(subjects), 0), dtype=np.intp)
    return Plan(keys, parts, homes, groups, int(available.sum()), "subjects", fixed)


def _sizes(subjects: Sequence[Numbers]) -> Numbers:
    """Return the number of rows of each subject in each dataset."""
    n_subjects = 1 + max(int(codes.max()) for codes in subjects)
    return np.array([np.bincount(codes[codes >= 0], minlength=n_subjects) for codes in subjects])


def _joined(subjects: Sequence[Numbers], sizes: Numbers, most: int, rng: np.random.Generator) -> list[Numbers]:
    """Return the subjects, joined at random to groups of equal size. Left-over subjects get the code -1.

    Subjects are only joined if they are in the same datasets.
    """
    kinds = np.unique(sizes > 0, axis=1, return_inverse=True)[1].ravel()
    kinds[sizes.sum(axis=0) == 0] = -1
    members = [np.flatnonzero(kinds == kind) for kind in np.unique(kinds[kinds >= 0])]
    blocks, _, _ = _in_blocks([len(some) for some in members], max(most // len(subjects), 2 * len(members)), rng)
    joined = np.full(sizes.shape[1], -1)
    joined[np.concatenate(members)] = np.concatenate(blocks)
    return [joined[codes] for codes in subjects]


def _rows_of_each(sizes: Numbers) -> int:
    """Return the number of rows to which all subjects are thinned. Subjects with fewer rows are left out.

    This number is a compromise between many rows of few subjects and few rows of many subjects. It is the number for
    which the kept rows have the largest effective number, if the rows of a subject have the correlation `INTRACLASS`.
    """
    least = np.minimum(np.sum(sizes > 0, axis=1), 3)
    found = {}
    for n_rows in np.unique(sizes[sizes > 0]).tolist():
        n_kept = np.sum(sizes >= n_rows, axis=1)
        if np.all(n_kept >= least):
            found[n_rows] = np.mean(np.log(n_kept)) + log(n_rows / (1.0 + INTRACLASS * (n_rows - 1)))
    return int(max(found, key=lambda n_rows: found[n_rows]))
