"""The record that readers give: numbers with names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from standout._arrays import Rows

Words: TypeAlias = npt.NDArray[np.object_]
"""Strings as Python objects: an array of fixed width would take the length of the longest for each."""


# Compared by identity: == between records of arrays has no single truth value.
@dataclass(frozen=True, eq=False)
class Table:
    """What did a file hold? Rows of numbers, and what is known of rows and columns.

    Attributes
    ----------
    values : ndarray or CSR array of shape (n, d)
        The data, float64, or float32 where the file holds nothing else; NaN where a value is missing. Dense ones are
        C-contiguous.
    columns : list of str
        Names of the columns.
    ids, labels, groups : ndarray of str (as objects) of shape (n,), or None
        What rows are called, how they are to be coloured, and to which dataset they belong. The empty string stands for
        a missing one.
    source : str
        What messages call the table: the name of the file.
    has_names : bool
        Whether the file names its columns. Where it does not, they are called x0, x1, ... and only their number can be
        compared with that of another file.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.io import Table
    >>> Table(np.ones((3, 2)), ["a", "b"], source="ones.csv")
    Table('ones.csv': 3 rows x 2 columns, float64)
    """

    values: Rows
    columns: list[str]
    ids: Words | None = None
    labels: Words | None = None
    groups: Words | None = None
    source: str = "table"
    has_names: bool = True

    def __repr__(self) -> str:
        known = [name for name in ("ids", "labels", "groups") if getattr(self, name) is not None]
        also = f", with {', '.join(known)}" if known else ""
        sparse = "" if isinstance(self.values, np.ndarray) else "sparse "
        n_rows, n_columns = self.values.shape
        return f"Table({self.source!r}: {n_rows} rows x {n_columns} columns, {sparse}{self.values.dtype}{also})"


def with_rows(table: Table, values: Rows, rows: Any) -> Table:
    """Give a table its new values, and what is known of the rows that they are."""
    ids, labels, groups = (None if words is None else words[rows] for words in (table.ids, table.labels, table.groups))
    return replace(table, values=values, ids=ids, labels=labels, groups=groups)


def make_table(
    values: Rows, columns: list[str], words: Mapping[str, Words], source: str, *, has_names: bool = True
) -> Table:
    """Put together what a reader has found."""
    return Table(values, columns, words.get("ids"), words.get("labels"), words.get("groups"), source, has_names)


def made_up_names(n_columns: int) -> list[str]:
    """Call columns by their number, where a file has no names."""
    return [f"x{number}" for number in range(n_columns)]


def as_words(values: Sequence[Any]) -> Words:
    """Put strings into an array as objects, whatever they look like to NumPy."""
    words = np.empty(len(values), dtype=object)
    words[:] = values
    return words
