"""Several datasets as read -> the same ones as they are fitted, and a word on everything that was changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from standout._arrays import Float, is_sparse
from standout._validation import (
    MISSING_CHOICES,
    check_columns_left,
    check_means,
    check_option,
    check_squares,
    dataset_names,
    in_short,
    short,
)
from standout.io._cells import check_finite, fill_missing, shift_and_scale, take_logarithms, without_columns
from standout.io._match import match_columns
from standout.io._preprocessing import Preprocessing, drop_incomplete, own, require_complete
from standout.io._statistics import count_missing, is_constant, means_and_deviations, means_of_present
from standout.io._table import Table

STANDARDS = ("none", "background", "pooled")
MISSING = MISSING_CHOICES

_BECAUSE = "because a value was missing"
# How the note on columns that tell nothing ends.
CONSTANT = "constant in every dataset."


@dataclass(frozen=True, eq=False)
class Prepared:
    """What goes into the fit, and what was done to it?

    Attributes
    ----------
    target : Table
        The target.
    backgrounds : list of Table
        The backgrounds, with the columns of the target.
    notes : list of str
        One sentence for each thing that was changed or that looks odd, with its count.
    preprocessing : Preprocessing
        The same for new rows.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.io import Table, prepare
    >>> target = Table(np.array([[1.0, 2.0], [np.nan, 4.0], [5.0, 7.0]]), ["a", "b"], source="target.csv")
    >>> prepared = prepare(target, [target], missing="drop-rows")
    >>> prepared.target.values.shape
    (2, 2)
    """

    target: Table
    backgrounds: list[Table]
    notes: list[str]
    preprocessing: Preprocessing


def prepare(
    target: Table,
    backgrounds: Sequence[Table],
    *,
    log1p: bool = False,
    standardize: str = "none",
    missing: str = "error",
    copy: bool = True,
    background_names: Sequence[str] | None = None,
) -> Prepared:
    """How do these tables become what a method can be fitted to?

    Parameters
    ----------
    target, backgrounds : Table, sequence of Table
        As read; columns of the backgrounds are put in the order of the target's.
    log1p : bool
        Whether log(1 + x) is taken of every value, as is usual for counts.
    standardize : {"none", "background", "pooled"}
        Whether columns are centred and divided by their standard deviation: that over the rows of all backgrounds, or
        over those of all datasets. It is the same for all datasets: standardising each one by itself would wipe out
        what tells them apart.
    missing : {"error", "drop-rows", "drop-columns", "mean"}
        What to do about missing values: refuse them, leave out the rows or (in all datasets) the columns that have
        some, or fill in the mean of the column over all rows of all datasets.
    copy : bool
        Whether the values of the tables are left as they are. If not, their memory is used for the result, and the
        tables given must not be used any more: that is for data so large that there is no room for two of them.
    background_names : sequence of str, optional
        What notes and messages call the backgrounds: "background 1" and so on, if not given.

    Returns
    -------
    Prepared
        The tables, what was done in plain sentences, and the same for new rows.

    Notes
    -----
    The order is: missing rows or columns dropped, logarithm, mean filled in (that of the logarithms, if so), centre and
    scale. A column that is constant where its deviation is taken keeps its scale.

    Sparse data stay sparse: they are divided by the standard deviation but not centred, and neither are dense ones
    beside them. Every linear method centres each dataset itself, so that this does not change its result.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.io import Table, prepare
    >>> target = Table(np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 6.0]]), ["a", "b"])
    >>> background = Table(np.array([[1.0, 1.0], [2.0, 3.0]]), ["a", "b"])
    >>> prepared = prepare(target, [background], missing="drop-rows")
    >>> prepared.target.values.tolist(), prepared.notes
    ([[1.0, 2.0], [5.0, 6.0]], ['1 row of the target was dropped because a value was missing.'])
    """
    check_option(standardize, "standardize", STANDARDS)
    check_option(missing, "missing", MISSING)
    target, matched = match_columns(target, backgrounds)
    tables = _owned([target, *matched], [target, *backgrounds], copy)
    names = dataset_names(len(tables))
    if background_names is not None:
        names[1:] = [f"background {short(name)!r}" for name in background_names]
    notes: list[str] = []
    for table, name in zip(tables, names, strict=True):
        check_finite(table, name)
    tables, dropped = _without_missing(tables, names, missing, notes)
    if log1p:
        for table, name in zip(tables, names, strict=True):
            take_logarithms(table, name)
    fill = _fill(tables, names, notes) if missing == "mean" else None
    centre, scale = _standardize(tables, standardize, notes)
    _note_constants(tables, notes)
    done = Preprocessing(list(target.columns), dropped, target.has_names, log1p, missing, fill, centre, scale)
    return Prepared(tables[0], tables[1:], notes, done)


def _owned(tables: Sequence[Table], given: Sequence[Table], copy: bool) -> list[Table]:
    """Give tables whose values may be written to, each in memory of its own."""
    owned: list[Table] = []
    for table, original in zip(tables, given, strict=True):
        still_theirs = table.values is original.values
        shared = any(_share_memory(table, other) for other in owned)
        owned.append(replace(table, values=own(table.values, shared or (copy and still_theirs))))
    return owned


def _share_memory(first: Table, second: Table) -> bool:
    one, other = (table.values.data if is_sparse(table.values) else table.values for table in (first, second))
    return bool(np.may_share_memory(one, other))


def _without_missing(
    tables: list[Table], names: list[str], missing: str, notes: list[str]
) -> tuple[list[Table], list[str]]:
    """Refuse missing values, or drop the rows or columns that have some; give the names of the latter as well."""
    if missing == "error":
        require_complete(tables, names)
    if missing == "drop-rows":
        for number, name in enumerate(names):
            tables[number], n_dropped = drop_incomplete(tables[number], name)
            if n_dropped:
                notes.append(f"{_counted(n_dropped, 'row')} of {name} {_was(n_dropped)} dropped {_BECAUSE}.")
    if missing == "drop-columns":
        kept = np.sum([count_missing(table.values) for table in tables], axis=0) == 0
        columns = tables[0].columns
        dropped = [column for column, stays in zip(columns, kept, strict=True) if not stays]
        if dropped:
            check_columns_left(int(kept.sum()), len(dropped))
            left = [column for column, stays in zip(columns, kept, strict=True) if stays]
            tables = [replace(t, values=without_columns(t.values, kept), columns=list(left)) for t in tables]
            was = f"{_counted(len(dropped), 'column')} {_was(len(dropped))}"
            notes.append(f"{was} dropped in all datasets {_BECAUSE}: {in_short(dropped)}.")
        return tables, dropped
    return tables, []


def _fill(tables: Sequence[Table], names: Sequence[str], notes: list[str]) -> Float:
    """Fill in the mean over all rows of all datasets."""
    columns = tables[0].columns
    values = [table.values for table in tables]
    gaps = [count_missing(rows) for rows in values]
    counts = [int(each.sum()) for each in gaps]
    fill = means_of_present(values)
    check_means([column for column, mean in zip(columns, fill, strict=True) if np.isnan(mean)])
    check_squares(float(np.abs(fill).max()), "all rows")
    for rows, count in zip(values, counts, strict=True):
        if count:
            fill_missing(rows, fill)
    if any(counts):
        total = sum(counts)
        in_target = f" ({counts[0]} of them in the target)" if len(counts) > 1 else ""
        notes.append(
            f"{_counted(total, 'missing value')}{in_target} {_was(total)} filled with the column's mean over all rows."
        )
    for name, rows, each in zip(names, values, gaps, strict=True):
        empty = [column for column, count in zip(columns, each, strict=True) if count == rows.shape[0]]
        if empty:
            has = "has" if len(empty) == 1 else "have"
            notes.append(f"{in_short(empty)} {has} no value at all in {name}: what is there now tells nothing.")
    return fill


def _standardize(tables: Sequence[Table], standardize: str, notes: list[str]) -> tuple[Float | None, Float | None]:
    """Centre and scale all datasets alike; give the centre and the scale."""
    if standardize == "none":
        return None, None
    # Without a background the target is all the rows that there are.
    reference = tables[1:] if standardize == "background" and len(tables) > 1 else tables
    centre, scale = means_and_deviations([table.values for table in reference])
    where = "all background rows" if len(reference) < len(tables) else "all rows"
    check_squares(float(scale.max()), where)
    constant = scale == 0.0
    if constant.any():
        which = in_short([column for column, stays in zip(tables[0].columns, constant, strict=True) if stays])
        count = int(constant.sum())
        notes.append(f"{which} {'is' if count == 1 else 'are'} constant over {where}, and kept the scale.")
        scale[constant] = 1.0
    if any(is_sparse(table.values) for table in tables):
        centre = np.zeros_like(centre)
        notes.append("Sparse data were scaled but not centred, so that they stay sparse.")
    for table in tables:
        shift_and_scale(table.values, centre, scale)
    return centre, scale


def _note_constants(tables: Sequence[Table], notes: list[str]) -> None:
    constant = np.logical_and.reduce([is_constant(table.values) for table in tables])
    names = [column for column, stays in zip(tables[0].columns, constant, strict=True) if stays]
    if names:
        notes.append(f"{in_short(names)} {'is' if len(names) == 1 else 'are'} {CONSTANT}")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
