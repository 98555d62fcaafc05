"""Labels, groups and control rows of a screen, and the rows of each label in turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from standout._arrays import dense, double
from standout._messages import InvalidTypeError, InvalidValueError, listed, warn_user
from standout._xp import to_host
from standout.screen._null import Array, Codes, Side, halves, sums_of
from standout.sources import Source

# Each half of the controls needs rows for a covariance and for null draws.
LEAST_CONTROLS = 20
# Null draws of whole subjects need this many control subjects. With fewer, rows are drawn and scaled.
LEAST_SUBJECTS = 24
# With fewer control groups than the first number rows are treated as independent; below the second, warn.
LEAST_GROUPS, ENOUGH_GROUPS = 4, 8
# A group needs this many control rows for its own control mean.
LEAST_IN_GROUP = 5
# A random sample of this many rows represents a larger label.
MOST_ROWS = 20_000
# Numbers that are read at a time.
BLOCK_NUMBERS = 2**23


class Target(NamedTuple):
    """Rows of one label, the group of each, and the number of rows before sampling."""

    name: Any
    rows: Array
    groups: Codes | None
    n_rows: int


@dataclass(frozen=True)
class Controls:
    """Control rows about their mean.

    `kind` is "rows" if rows are independent, "subjects" if groups are, and "within" if every row is compared with the
    controls of its group.
    """

    rows: Array
    groups: Codes | None
    kind: str
    means: Array  # one, or one for each group
    counts: Array  # number of control rows behind each mean, 0 if there are too few

    @cached_property
    def variances(self) -> Array:
        """The variance of every column."""
        return self.rows.var(0, ddof=1)

    def centred(self, target: Target) -> tuple[Array, Codes | None, float]:
        """Return rows about the control mean, their groups, and the effective number of control rows."""
        groups = target.groups
        cells = groups if self.kind == "within" and groups is not None else np.zeros(len(target.rows), dtype=np.intp)
        known = self.counts[cells] > 0
        share = np.bincount(cells[known], minlength=len(self.counts)) / max(known.sum(), 1)
        error = float((share**2 / np.maximum(self.counts, 1)).sum())
        rows = target.rows[known] - self.means[cells[known]]
        return rows, None if groups is None else groups[known], 1 / max(error, 1e-12)

    def sides(self, shrinkage: float, rng: np.random.Generator) -> list[Side]:
        """Return both directions of the cross-fit: one half whitens, the other one is the reference."""
        groups = self.groups if self.kind == "subjects" else None
        units = np.arange(len(self.rows)) if groups is None else np.unique(groups, return_inverse=True)[1]
        whole = groups is not None and int(units.max()) + 1 >= LEAST_SUBJECTS
        parts = halves(units, rng)
        found = []
        for fitted, held in (parts, parts[::-1]):
            subjects = None if groups is None else np.unique(units[held], return_inverse=True)[1]
            found.append(Side(self.rows[fitted], self.rows[held], subjects, whole, self.kind == "within", shrinkage))
        return found

    def effective(self, side: Side, n_controls: float) -> list[float]:
        """Return the effective numbers of control rows with and without whitening."""
        if self.kind != "subjects" or self.groups is None:
            return [n_controls, n_controls]
        counts = np.bincount(self.groups).astype(float)
        return [side.white.effective(counts), side.plain.effective(counts)]


def coded(values: Any, n_rows: int, parameter: str) -> tuple[list[Any], Codes]:
    """Return the different values and the number of each row's value, -1 if it is missing or empty."""
    import pandas as pd

    array = values if isinstance(values, np.ndarray) else np.asarray(pd.Series(list(values)))
    if array.shape != (n_rows,):
        problem = f"has shape {array.shape}, but the data have {n_rows:,} rows"
        raise InvalidValueError(problem, parameter=parameter, advice="Give one value per row.")
    if array.dtype.kind in "fc" and not np.equal(np.mod(array[np.isfinite(array)], 1), 0).all():
        problem = "has numbers that are not whole, which are not names"
        raise InvalidTypeError(problem, parameter=parameter, advice="Give words or whole numbers.")
    words = array.astype(object)
    words[words == ""] = None
    codes, names = pd.factorize(words)
    return list(names), codes.astype(np.intp)


def code_of(control: Any, names: list[Any]) -> int:
    """Return the number of the control label, which may be given as text."""
    for code, name in enumerate(names):
        if name == control or str(name) == str(control):
            return code
    known = listed("label", sorted(names, key=str))
    raise InvalidValueError("is not among the labels", parameter="control", value=control, advice=f"There are {known}.")


def gather_controls(rows: Array, groups: Codes | None, target_groups: Codes | None) -> Controls:
    """Subtract the mean of the control rows, by group if other labels have rows of the same groups."""
    kind, n_cells, cells = "rows", 1, np.zeros(len(rows), dtype=np.intp)
    if groups is not None and target_groups is not None:
        kind = "within" if np.isin(groups, target_groups).any() else _independent(groups)
        if kind == "within":
            cells, n_cells = groups, int(max(groups.max(), target_groups.max())) + 1
    counts = np.bincount(cells, minlength=n_cells).astype(float)
    counts[counts < LEAST_IN_GROUP] = 0
    means = sums_of(rows, cells, n_cells) / np.maximum(counts, 1)[:, None]
    known = counts[cells] > 0
    if known.sum() < LEAST_CONTROLS:
        where = f" in groups with {LEAST_IN_GROUP} or more" if kind == "within" else ""
        problem = f"There are {known.sum()} control rows{where}, but at least {LEAST_CONTROLS} are required"
        raise InvalidValueError(problem, advice="Give more control rows.")
    # Rows about the mean of n rows have (n - 1) / n of the variance.
    stretch = np.sqrt(counts / np.maximum(counts - 1, 1))
    centred = (rows[known] - means[cells[known]]) * stretch[cells[known], None]
    return Controls(centred, None if groups is None else groups[known], kind, means, counts)


def _independent(groups: Codes) -> str:
    """Return whether groups or rows are independent if controls have their own groups."""
    n_groups = len(np.unique(groups))
    if n_groups < ENOUGH_GROUPS:
        some = "rows are treated as independent" if n_groups < LEAST_GROUPS else "p-values are approximate"
        problem = f"The controls have {n_groups} groups, which no other label has: {some}"
        warn_user(
            problem, advice=f"Give {ENOUGH_GROUPS} or more control groups, or controls in the groups of the labels."
        )
    return "subjects" if n_groups >= LEAST_GROUPS else "rows"


def read(source: Source, numbers: Codes) -> Array:
    """Return some rows as a dense array in double precision."""
    return np.asarray(to_host(dense(double(source.take(numbers)))), dtype=np.float64)


def sampled(numbers: Codes, rng: np.random.Generator) -> Codes:
    """Return the numbers of the rows, or of a random sample if there are too many."""
    return numbers if len(numbers) <= MOST_ROWS else np.sort(rng.choice(numbers, MOST_ROWS, replace=False))


def targets_of(
    source: Source, codes: Codes, names: list[Any], own: int, groups: Codes | None, rng: np.random.Generator
) -> Iterator[Target]:
    """Read the rows of every label but the controls, a number of labels at a time."""
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(names) + 1))
    wanted = [(code, order[bounds[code] : bounds[code + 1]]) for code in range(len(names)) if code != own]
    totals = np.cumsum([min(len(numbers), MOST_ROWS) for _, numbers in wanted]) * (source.width or 1)
    for block in np.split(np.arange(len(wanted)), np.flatnonzero(np.diff(totals // BLOCK_NUMBERS)) + 1):
        chosen = [sampled(wanted[place][1], rng) for place in block]
        rows = read(source, np.concatenate(chosen))
        parts = np.split(rows, np.cumsum([len(numbers) for numbers in chosen])[:-1])
        for place, numbers, part in zip(block, chosen, parts, strict=True):
            code, every = wanted[place]
            yield Target(names[code], part, None if groups is None else groups[numbers], len(every))
