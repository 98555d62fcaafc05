"""An iterator of batches as a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from standout._arrays import Rows, row_slice
from standout._validation import as_rows, check_one_place, check_same_columns, column_names, reject_spent
from standout.sources._stream import Stream


class Batches(Stream):
    """One dataset that arrives as an iterator of batches, each checked as it passes.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.sources import Batches
    >>> batches = Batches(iter([np.ones((2, 3)), np.ones((4, 3))]), "the target", min_rows=2)
    >>> sum(rows.shape[0] for rows in batches.parts()), batches.width
    (6, 3)
    """

    again = False

    def __init__(self, batches: Iterator[Any], name: str, min_rows: int) -> None:
        self._batches = batches
        self.min_rows = min_rows
        self.name = name
        self._reference = "the first batch"

    def expect(self, width: int, reference: str) -> None:
        """Hold every batch to a number of columns, that of a reference."""
        self.width, self._reference = width, reference

    def first(self, count: int) -> Rows:
        """Give the first rows; the batch that they are in stays to be read."""
        seen: list[Any] = []
        rows: Rows | None = None
        for batch in self._batches:
            seen.append(batch)
            rows = as_rows(batch, f"batch {len(seen)} of {self.name}", min_rows=0, finite=True)
            if len(seen) == 1:
                self.columns = column_names(batch)
            if rows.shape[0]:
                break
        self._batches = chain(seen, self._batches)
        if rows is None or not rows.shape[0]:
            reject_spent(self.name, 0, self.min_rows)
        return row_slice(rows, 0, count)

    def parts(self) -> Iterator[Rows]:
        """Give one batch after the other."""
        n_rows = 0
        first: Rows | None = None
        for number, batch in enumerate(self._batches, start=1):
            name = f"batch {number} of {self.name}"
            rows = as_rows(batch, name, min_rows=0, finite=True)
            columns = column_names(batch)
            if number == 1:
                self.columns = columns
            if self.width is None:
                self.width = rows.shape[1]
            check_same_columns(rows.shape[1], columns, name, self.width, self.columns, self._reference)
            first = rows[:1, :] if first is None else first
            check_one_place([first, rows], [f"batch 1 of {self.name}", name])
            n_rows += rows.shape[0]
            yield rows
        if n_rows < self.min_rows:
            reject_spent(self.name, n_rows, self.min_rows)
