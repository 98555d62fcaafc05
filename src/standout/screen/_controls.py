"""Labels, groups and control rows of a screen, and the rows of each label in turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from standout._arrays import dense, double
from standout._messages import InvalidTypeError, InvalidValueError, listed, warn_user
from standout._xp import to_host
from standout.screen._null import Array, Codes, Side, halves, intraclass
from standout.sources import Source

# Each half of the controls needs rows for a covariance and for null draws.
LEAST_CONTROLS = 20
# Null draws of whole subjects need this many control subjects. With fewer, rows are drawn.
LEAST_SUBJECTS = 8
# A group needs this many control rows for its own control mean.
LEAST_IN_GROUP = 5
# A random sample of this many rows represents a larger label.
MOST_ROWS = 20_000
# Numbers that are read at a time.
BLOCK_NUMBERS = 2**23
# Warn if differences between groups inflate the variance of a label's mean by this factor.
LARGE_INFLATION = 1.5


class Target(NamedTuple):
    """Rows of one label, the group of each, and the number of rows before sampling."""

    name: Any
    rows: Array
    groups: Codes | None
    n_rows: int


@dataclass(frozen=True)
class Controls:
    """Centred control rows.

    `kind` is "rows" if rows are exchanged under the null hypothesis, "subjects" if whole groups are, and "within" if
    every row is compared with the controls of its group.
    """

    rows: Array
    groups: Codes | None
    kind: str
    means: Array  # (1 or n_groups, n_columns)
    counts: Array  # number of control rows behind each mean

    def centred(self, target: Target) -> tuple[Array, Codes | None, float]:
        """Return rows about the control mean, their groups, and the effective number of control rows."""
        if self.kind != "within" or target.groups is None:
            return target.rows - self.means[0], target.groups, float(self.counts[0])
        known = self.counts[target.groups] > 0
        groups = target.groups[known]
        share = np.bincount(groups, minlength=len(self.counts)) / max(len(groups), 1)
        inverse = float((share**2 / np.maximum(self.counts, 1)).sum())
        return target.rows[known] - self.means[groups], groups, 1 / max(inverse, 1e-12)

    def sides(self, shrinkage: float, rng: np.random.Generator) -> list[Side]:
        """Return both directions of the cross-fit: one half whitens, the other is the reference."""
        units = self.groups if self.kind == "subjects" and self.groups is not None else np.arange(len(self.rows))
        parts = halves(np.unique(units, return_inverse=True)[1], rng)
        found = []
        for fitted, held in (parts, parts[::-1]):
            codes = np.unique(units[held], return_inverse=True)[1] if self.kind == "subjects" else None
            found.append(Side(self.rows[fitted], self.rows[held], codes, shrinkage))
        return found


def coded(values: Any, n_rows: int, parameter: str) -> tuple[list[Any], Codes]:
    """Return the different values and the number of each row's value, -1 if it is missing."""
    array = values if isinstance(values, np.ndarray) else np.asarray(pd.Series(list(values)))
    if array.ndim != 1:
        problem = f"has {array.ndim} dimensions, but 1 is required"
        raise InvalidValueError(problem, parameter=parameter, advice="Give one value per row.")
    if len(array) != n_rows:
        problem = f"has {len(array):,} entries, but the data have {n_rows:,} rows"
        raise InvalidValueError(problem, parameter=parameter, advice="Give one value per row.")
    if array.dtype.kind in "fc" and not np.equal(np.mod(array[np.isfinite(array)], 1), 0).all():
        problem = "are numbers that are not whole, so they are not names"
        raise InvalidTypeError(problem, parameter=parameter, advice="Give words or whole numbers.")
    codes, names = pd.factorize(array.astype(object))
    return list(names), codes.astype(np.intp)


def code_of(control: Any, names: list[Any]) -> int:
    """Return the number of the control label, which may be given as text."""
    for code, name in enumerate(names):
        if name == control or str(name) == str(control):
            return code
    known = listed("label", sorted(names, key=str))
    raise InvalidValueError("is not among the labels", parameter="control", value=control, advice=f"There are {known}.")


def read(source: Source, numbers: Codes) -> Array:
    """Return some rows as a dense array in double precision."""
    return np.asarray(to_host(dense(double(source.take(numbers)))), dtype=np.float64)


def sampled(numbers: Codes, rng: np.random.Generator) -> Codes:
    """Return the numbers of the rows, or of a random sample if there are too many."""
    return numbers if len(numbers) <= MOST_ROWS else np.sort(rng.choice(numbers, MOST_ROWS, replace=False))


def gather_controls(rows: Array, groups: Codes | None, target_groups: Codes | None) -> Controls:
    """Centre the control rows, by group if the targets have rows of the same groups."""
    kind = "rows"
    if groups is not None and target_groups is not None:
        shared = np.isin(groups, target_groups)
        kind = "within" if shared.any() else "subjects" if len(np.unique(groups)) >= LEAST_SUBJECTS else "rows"
    counts, means = np.array([float(len(rows))]), rows.mean(0, keepdims=True) if len(rows) else rows
    if kind == "within" and groups is not None and target_groups is not None:
        counts = np.bincount(groups, minlength=int(max(groups.max(), target_groups.max())) + 1).astype(float)
        counts[counts < LEAST_IN_GROUP] = 0
        sums = np.zeros((len(counts), rows.shape[1]))
        np.add.at(sums, groups, rows)
        means = sums / np.maximum(counts, 1)[:, None]
        known = counts[groups] > 0
        rows, groups = rows[known], groups[known]
        # Rows about the mean of n rows have (n - 1) / n of the variance.
        rows = (rows - means[groups]) * np.sqrt(counts / np.maximum(counts - 1, 1))[groups, None]
    else:
        rows = rows - means
    if len(rows) < LEAST_CONTROLS:
        where = " in groups that have at least 5 of them" if kind == "within" else ""
        problem = f"There are {len(rows)} control rows{where}, but at least {LEAST_CONTROLS} are required"
        raise InvalidValueError(problem, advice="Give more control rows, or other `groups`.")
    return Controls(rows, groups, kind, means, counts)


def warn_of_groups(controls: Controls, side: Side, target_groups: Codes) -> None:
    """Warn if rows are exchanged although groups differ and no label shares a group with the controls."""
    if controls.kind != "rows" or controls.groups is None:
        return
    names, codes = np.unique(controls.groups, return_inverse=True)
    advice = f"Give at least {LEAST_SUBJECTS} control groups, or controls in the groups of the labels."
    if len(names) < 2:
        problem = "All controls are of one group that no other label has: differences between groups look like effects"
        warn_user(problem, advice=advice)
        return
    typical = len(target_groups) / len(np.unique(target_groups))
    inflation = 1 + (typical - 1) * intraclass(side.whitened(controls.rows), codes)
    if inflation > LARGE_INFLATION:
        problem = (
            f"The {len(names)} control groups differ, which multiplies the variance of a group's mean by "
            f"{inflation:.1f}, and are too few for null draws: p-values are too small"
        )
        warn_user(problem, advice=advice)


def targets_of(
    source: Source, codes: Codes, names: list[Any], own: int, groups: Codes | None, rng: np.random.Generator
) -> Iterator[Target]:
    """Read the rows of every label but the controls, a number of labels at a time."""
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(names) + 1))
    block: list[tuple[int, int, Codes]] = []
    total = 0
    for code in range(len(names)):
        if code == own:
            continue
        numbers = order[bounds[code] : bounds[code + 1]]
        block.append((code, len(numbers), sampled(numbers, rng)))
        total += len(block[-1][2]) * (source.width or 1)
        if total >= BLOCK_NUMBERS:
            yield from _read_block(source, block, names, groups)
            block, total = [], 0
    yield from _read_block(source, block, names, groups)


def _read_block(
    source: Source, block: list[tuple[int, int, Codes]], names: list[Any], groups: Codes | None
) -> Iterator[Target]:
    if not block:
        return
    rows = read(source, np.concatenate([numbers for _, _, numbers in block]))
    start = 0
    for code, n_rows, numbers in block:
        part = rows[start : start + len(numbers)]
        yield Target(names[code], part, None if groups is None else groups[numbers], n_rows)
        start += len(numbers)
