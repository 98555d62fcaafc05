"""One file with several groups of rows -> a target and its backgrounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from standout._validation import check_target_groups, in_short
from standout.io._table import Table, with_rows


def split_by_group(
    table: Table, target: str | Sequence[str], backgrounds: str | Sequence[str] | None = None
) -> tuple[Table, list[Table]]:
    """Which rows of this file are the target, and which are its backgrounds?

    Parameters
    ----------
    table : Table
        Read with a `group_column`.
    target : str or sequence of str
        Group that is the target; several are taken as one target.
    backgrounds : str or sequence of str, optional
        Groups that are backgrounds, each one of its own. All others, in alphabetical order, if none is named.

    Returns
    -------
    target : Table
        Rows in the order of the file.
    backgrounds : list of Table
        One for each group. Where rows of a group follow one another, nothing is copied.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.io import Table, split_by_group
    >>> groups = np.array(["stim", "ctrl", "stim", "other"], dtype=object)
    >>> cells = Table(np.arange(8.0).reshape(4, 2), ["a", "b"], groups=groups, source="cells.csv")
    >>> split_by_group(cells, "stim")
    (Table("cells.csv, group 'stim'": 2 rows x 2 columns, float64, with groups),
     [Table("cells.csv, group 'ctrl'": 1 rows x 2 columns, float64, with groups),
      Table("cells.csv, group 'other'": 1 rows x 2 columns, float64, with groups)])
    """
    chosen, others = check_target_groups(target, backgrounds, table.groups, table.source)
    return _part(table, chosen), [_part(table, [name]) for name in others]


def _part(table: Table, names: Sequence[str]) -> Table:
    groups: Any = table.groups
    rows: Any = np.flatnonzero(np.logical_or.reduce([groups == name for name in names]))
    if rows[-1] - rows[0] + 1 == len(rows):
        rows = slice(int(rows[0]), int(rows[-1]) + 1)
    part = with_rows(table, table.values[rows], rows)
    return replace(part, source=f"{table.source}, {in_short(names, 'group')}")
