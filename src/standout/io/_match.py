"""Columns of several files, in one order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from standout._validation import check_matching_columns, check_matching_width, short
from standout.io._table import Table


def match_columns(target: Table, backgrounds: Sequence[Table]) -> tuple[Table, list[Table]]:
    """Do these files have the same columns, and in which order?

    Parameters
    ----------
    target : Table
        Its columns and their order are the measure.
    backgrounds : sequence of Table
        Must have the same columns, in any order. Where one of two files does not name its columns, only their number is
        compared.

    Returns
    -------
    target : Table
        As it was.
    backgrounds : list of Table
        With the columns of the target in the order of the target; copied only if the order was another one.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.io import Table, match_columns
    >>> target = Table(np.ones((2, 2)), ["height", "weight"])
    >>> background = Table(np.array([[70.0, 1.8]]), ["weight", "height"])
    >>> _, (matched,) = match_columns(target, [background])
    >>> matched.columns, matched.values.tolist()
    (['height', 'weight'], [[1.8, 70.0]])
    """
    reference = f"the target ({short(target.source)!r})"
    return target, [
        in_order_of(
            target.columns, target.has_names, table, f"background {number} ({short(table.source)!r})", reference
        )
        for number, table in enumerate(backgrounds, start=1)
    ]


def in_order_of(columns: list[str], has_names: bool, table: Table, name: str, reference: str) -> Table:
    """Put the columns of a table in the order of others."""
    if not (has_names and table.has_names):
        check_matching_width(len(table.columns), len(columns), name, reference)
        return replace(table, columns=list(columns), has_names=has_names)
    if table.columns == columns:
        return table
    known, needed = set(table.columns), set(columns)
    check_matching_columns(
        [column for column in columns if column not in known],
        [column for column in table.columns if column not in needed],
        name,
        reference,
    )
    return with_columns(table, columns)


def with_columns(table: Table, columns: list[str]) -> Table:
    """Take some columns of a table, by name and in this order."""
    positions = {column: position for position, column in enumerate(table.columns)}
    order = [positions[column] for column in columns]
    values = table.values[:, order]
    return replace(
        table,
        values=np.ascontiguousarray(values) if isinstance(values, np.ndarray) else values,
        columns=list(columns),
    )
