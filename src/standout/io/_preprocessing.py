"""What was done to the data of a fit, to be done to new rows as well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from standout._arrays import Float, Rows, dense
from standout._validation import (
    check_matching_columns,
    check_matching_width,
    check_preprocessing,
    check_rows_left,
    reject_gaps,
    short,
)
from standout.io._cells import (
    check_finite,
    fill_missing,
    first_cell,
    rows_with_missing,
    shift_and_scale,
    take_logarithms,
    without_rows,
)
from standout.io._match import with_columns
from standout.io._statistics import count_missing, unusual_blocks
from standout.io._table import Table, with_rows


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """What was done to the data before the fit, so that it can be done to new rows?

    Attributes
    ----------
    columns : list of str
        Columns that go in.
    dropped : list of str
        Those among them that were dropped, because a value was missing.
    has_names : bool
        Whether the columns had names; if not, new rows are matched by the number of columns.
    log1p : bool
        Whether log(1 + x) was taken.
    missing : {"error", "drop-rows", "drop-columns", "mean"}
        What is done about missing values.
    fill : ndarray of shape (d,) or None
        What is put in their place, after the logarithm.
    centre, scale : ndarray of shape (d,) or None
        What is taken from each row, and what it is divided by, last of all.

    Examples
    --------
    >>> import json, numpy as np
    >>> from standout.io import Preprocessing, Table, prepare
    >>> ones = Table(np.array([[0.0, 2.0], [2.0, 4.0]]), ["a", "b"])
    >>> done = prepare(ones, [ones], standardize="background").preprocessing
    >>> again = Preprocessing.from_dict(json.loads(json.dumps(done.to_dict())))
    >>> again.apply(Table(np.array([[7.0, 5.0, 3.0]]), ["c", "b", "a"])).values.tolist()
    [[2.0, 2.0]]
    """

    columns: list[str]
    dropped: list[str]
    has_names: bool
    log1p: bool
    missing: str
    fill: Float | None
    centre: Float | None
    scale: Float | None

    @property
    def kept(self) -> list[str]:
        """Columns that come out."""
        dropped = set(self.dropped)
        return [column for column in self.columns if column not in dropped]

    def apply(self, table: Table, *, copy: bool = True) -> Table:
        """What are new rows like, after all that was done to those of the fit?

        Parameters
        ----------
        table : Table
            New rows. Columns are found by name, in any order, and those that were not in the fit are left out; a table
            without names must have as many columns as that of the fit.
        copy : bool
            Whether the values of the table are left as they are; if not, its memory may be used for the result.

        Returns
        -------
        Table
            Rows with a missing value are left out if they were so in the fit; otherwise they are all there.
        """
        chosen = self._choose(table)
        if self.centre is not None and self.centre.any():
            # A sparse matrix minus a centre is dense.
            chosen = replace(chosen, values=dense(chosen.values))
        chosen = replace(chosen, values=own(chosen.values, copy and chosen.values is table.values))
        name = f"the data ({short(table.source)!r})"
        check_finite(chosen, name)
        if self.missing == "drop-rows":
            chosen, _ = drop_incomplete(chosen, name)
        elif self.fill is None:
            require_complete([chosen], [name])
        transform(chosen, name, self.log1p, self.fill, self.centre, self.scale)
        return chosen

    def _choose(self, table: Table) -> Table:
        if not (self.has_names and table.has_names):
            name, reference = f"the data ({short(table.source)!r})", "the data of the fit"
            check_matching_width(len(table.columns), len(self.columns), name, reference)
            table = replace(table, columns=list(self.columns), has_names=self.has_names)
        known = set(table.columns)
        lacking = [column for column in self.kept if column not in known]
        check_matching_columns(lacking, [], f"the data ({short(table.source)!r})", "the data of the fit")
        return table if table.columns == self.kept else with_columns(table, self.kept)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as lists and words, for JSON."""
        numbers = {name: getattr(self, name) for name in ("fill", "centre", "scale")}
        return {
            "columns": list(self.columns),
            "dropped": list(self.dropped),
            "has_names": self.has_names,
            "log1p": self.log1p,
            "missing": self.missing,
            **{name: None if found is None else found.tolist() for name, found in numbers.items()},
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Preprocessing:
        """Make it again from what `to_dict` gave."""
        check_preprocessing(stored)
        numbers = {
            name: None if stored[name] is None else np.asarray(stored[name], dtype=np.float64)
            for name in ("fill", "centre", "scale")
        }
        return cls(**{**stored, **numbers})


def own(values: Rows, copied: bool) -> Rows:
    """Give values that can be written to; copied if so wanted, or if they cannot."""
    if isinstance(values, np.ndarray):
        return np.array(values, order="C") if copied or not values.flags.writeable else values
    return values.copy() if copied or not values.data.flags.writeable else values


def drop_incomplete(table: Table, name: str) -> tuple[Table, int]:
    """Drop the rows that have a missing value, and count them."""
    if not count_missing(table.values).any():
        return table, 0
    kept = ~rows_with_missing(table.values)
    n_dropped = int(len(kept) - kept.sum())
    check_rows_left(int(kept.sum()), n_dropped, name)
    return with_rows(table, without_rows(table.values, kept), kept), n_dropped


def require_complete(tables: list[Table], names: list[str]) -> None:
    """Refuse missing values: say how many there are, and where the first is."""
    counts = [int(count_missing(table.values).sum()) for table in tables]
    for table, name in zip(tables, names, strict=True):
        found = first_cell(table.values, np.isnan, unusual_blocks) if any(counts) else None
        if found is not None:
            row_id = None if table.ids is None else str(table.ids[found[0]])
            told = {other: count for other, count in zip(names, counts, strict=True) if count}
            reject_gaps(told, table.columns[found[1]], found[0] + 1, row_id, name)


def transform(
    table: Table, name: str, log1p: bool, fill: Float | None, centre: Float | None, scale: Float | None
) -> None:
    """Do to the cells of a table, in place, what was decided: logarithm, filling in, centre and scale."""
    if log1p:
        take_logarithms(table, name)
    if fill is not None:
        fill_missing(table.values, fill)
    if centre is not None and scale is not None:
        shift_and_scale(table.values, centre, scale)
