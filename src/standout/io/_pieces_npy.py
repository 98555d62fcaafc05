"""NumPy's .npy files, piece by piece.

They are read, not mapped: pages of a mapped file count as memory in use, and would seem to grow with the file.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from standout._arrays import Array
from standout._validation import reject_table
from standout.io._from_array import check_array_form, precision
from standout.io._numpy_files import header_of
from standout.io._pieces import Form, Head, Pieces
from standout.io._reading import attempt


@dataclass(frozen=True)
class Stored:
    """Where the numbers of a file are.

    Attributes
    ----------
    shape : tuple of two ints
    by_columns : bool
        Whether one column stands after the other, not one row.
    dtype : dtype
    offset : int
        Bytes before the first number.
    """

    shape: tuple[int, int]
    by_columns: bool
    dtype: Any
    offset: int


@dataclass(frozen=True)
class NpyPieces(Pieces):
    """An array in an .npy file, in C or Fortran order."""

    def head(self) -> Head:
        """Read the header."""
        stored = self._stored()
        return Head(None, stored.shape[1], stored.shape[0])

    def form(self, features: Sequence[int]) -> Form:
        """Look at the type in the header."""
        dtype = np.dtype(precision(self._stored().dtype))
        return Form(dtype, dtype.itemsize * len(features))

    def batches(self, features: Sequence[int], form: Form, n_rows: int, start: int) -> Generator[Array]:
        """Give batches of rows."""
        stored = self._stored()
        read = _by_columns if stored.by_columns else _by_rows
        whole = list(features) == list(range(stored.shape[1]))
        with self.path.open("rb") as file:
            for first in range(start, stored.shape[0], n_rows):
                count = min(n_rows, stored.shape[0] - first)
                rows = read(file, stored, first, count, None if whole else list(features))
                yield rows.astype(form.dtype, order="K", copy=False)

    def _stored(self) -> Stored:
        shape, by_columns, dtype, offset = attempt(lambda: _header(self.path), self.source, "npy")
        check_array_form(shape, dtype, self.source)
        expected = offset + shape[0] * shape[1] * dtype.itemsize
        found = self.path.stat().st_size
        if found < expected:
            reject_table(
                self.source,
                f"it ends after {found} bytes, but an array of shape {shape} takes {expected}",
                "Write the file again.",
            )
        return Stored(shape, by_columns, dtype, offset)


def _header(path: Path) -> tuple[Any, bool, Any, int]:
    with path.open("rb") as file:
        shape, by_columns, dtype = header_of(file)
        return shape, by_columns, dtype, file.tell()


def _by_rows(file: IO[bytes], stored: Stored, first: int, count: int, features: list[int] | None) -> Array:
    width = stored.shape[1]
    file.seek(stored.offset + first * width * stored.dtype.itemsize)
    rows = np.fromfile(file, stored.dtype, count * width).reshape(count, width)
    return rows if features is None else rows[:, features]


def _by_columns(file: IO[bytes], stored: Stored, first: int, count: int, features: list[int] | None) -> Array:
    chosen = range(stored.shape[1]) if features is None else features
    columns = np.empty((len(chosen), count), dtype=stored.dtype)
    for position, column in enumerate(chosen):
        file.seek(stored.offset + (column * stored.shape[0] + first) * stored.dtype.itemsize)
        columns[position] = np.fromfile(file, stored.dtype, count)
    return columns.T
