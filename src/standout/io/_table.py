"""Rows in memory: batches that are put together to a table, and cells that are missing or infinite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import Array, Rows, dense, is_sparse, row_blocks, stacked
from standout._checks import first_cell
from standout._messages import InvalidValueError, short
from standout.io._reader import check_rows_of_file
from standout.sources import Batch, Table, Words

# Rows that are copied at a time when a table is made: what they touch stays in the cache.
COPIED_ROWS = 4096
# If the number of rows is not known, they are collected in pieces of this size: beyond 32 MiB freed memory goes back to
# the system at once.
PIECE_BYTES = 40 * 2**20
MISSING_ADVICE = (
    "Use {p.missing:drop-rows} to leave such rows out; {p.missing:drop-columns} leaves out such columns, and "
    "{p.missing:mean} fills in the mean (both in the command line and in standout.io.prepare)."
)


class Collected:
    """The rows of a table, put under one another as they come."""

    def __init__(self, n_rows: int | None, dtype: Any) -> None:
        self._n_rows, self._dtype = n_rows, dtype
        self._pieces: list[Array] = []
        self._sparse: list[Rows] = []
        self._filled = 0
        self._words: dict[str, list[Any]] = {"ids": [], "labels": [], "groups": [], "beside": []}

    def add(self, batch: Batch) -> None:
        """Put more rows under those that are there."""
        for role, parts in self._words.items():
            words = getattr(batch, role)
            if words is not None:
                parts.append(words)
        if is_sparse(batch.rows) and not self._pieces:
            self._sparse.append(batch.rows)
            return
        # A table of sparse and dense files is dense.
        for rows in self._sparse:
            self._put(dense(rows))
        self._sparse = []
        self._put(dense(batch.rows))

    def _put(self, rows: Array) -> None:
        done = 0
        while done < len(rows):
            if not self._pieces or self._filled == len(self._pieces[-1]):
                row_bytes = self._dtype.itemsize * max(rows.shape[1], 1)
                size = max(PIECE_BYTES // row_bytes, 1) if self._n_rows is None else self._n_rows
                self._pieces.append(np.empty((size, rows.shape[1]), dtype=self._dtype))
                self._filled = 0
            n_taken = min(len(rows) - done, len(self._pieces[-1]) - self._filled)
            target = self._pieces[-1][self._filled : self._filled + n_taken]
            for start in range(0, n_taken, COPIED_ROWS):
                target[start : start + COPIED_ROWS] = rows[done + start : done + min(start + COPIED_ROWS, n_taken)]
            done, self._filled = done + n_taken, self._filled + n_taken

    def made(self, columns: list[str], source: str, *, has_names: bool) -> Table:
        """Give the table."""
        words: dict[str, Any] = {role: np.concatenate(parts) if parts else None for role, parts in self._words.items()}
        if self._sparse:
            values: Rows = stacked(self._sparse)
        else:
            values = self._joined(len(columns))
        check_rows_of_file(values.shape[0], source)
        return Table(values, list(columns), source=source, has_names=has_names, **words)

    def _joined(self, width: int) -> Array:
        if not self._pieces:
            return np.empty((0, width), dtype=self._dtype)
        self._pieces[-1] = self._pieces[-1][: self._filled]
        if len(self._pieces) == 1:
            return self._pieces[0]
        rows = np.empty((sum(map(len, self._pieces)), width), dtype=self._dtype)
        start = 0
        self._pieces.reverse()
        while self._pieces:
            # Each piece is freed as soon as it is copied.
            piece = self._pieces.pop()
            rows[start : start + len(piece)] = piece
            start += len(piece)
        return rows


# --- cells -----------------------------------------------------------------------------------------------------------


def rows_with_missing(rows: Rows) -> npt.NDArray[np.bool_]:
    """Tell of each row whether it has a missing value."""
    if not is_sparse(rows):
        return np.concatenate([np.isnan(block).any(axis=1) for block in row_blocks(rows)])
    stored = rows.tocoo()
    found = np.zeros(rows.shape[0], dtype=bool)
    found[stored.row[np.isnan(stored.data)]] = True
    return found


def check_cells(
    rows: Rows, refuse_missing: bool, name: str, columns: Sequence[str], ids: Words | None, numbers: Array | None = None
) -> None:
    """Refuse what is infinite, and what is missing if that is refused, too; say where the first such cell is.

    `numbers` are those of the rows in their file, if these are only some of them.
    """
    found = first_cell(rows, (lambda cells: ~np.isfinite(cells)) if refuse_missing else np.isinf)
    if found is None:
        return
    row, column = found
    missing = np.isnan(rows[found])
    advice = MISSING_ADVICE if missing else "Mend it, or leave the cell empty."
    raise InvalidValueError(
        "{what} in {name}: column {column}, row {row}{row_id}",
        what="a value is missing" if missing else "there is an infinite value",
        name=name,
        column=repr(short(columns[column])),
        row=1 + (row if numbers is None else int(numbers[row])),
        row_id="" if ids is None else f" ({short(ids[row])!r})",
        advice=advice,
    )
