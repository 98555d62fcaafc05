"""Record batches of Arrow -> one array of rows.

Parquet, Feather and CSV all come as record batches, column by column; rows are wanted. Batches are turned into rows one
at a time, so that no second copy of the data is ever there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import Array
from standout._validation import check_kinds
from standout.io._ahead import ahead
from standout.io._table import Words, as_words
from standout.io._words import word

# Rows that are turned at a time: the cells of one column in them touch 256 KiB of memory, which stays in the cache
# until the neighbouring columns are done.
TURNED_ROWS = 4096

# Where the number of rows is not known beforehand, they are collected in pieces of this size. Beyond 32 MiB freed
# memory goes back to the system at once, so that joining the pieces takes no second copy either.
PIECE_BYTES = 40 * 2**20


def check_types(names: Sequence[str], types: Sequence[Any], source: str) -> None:
    """Refuse columns that are no numbers, each kind by its name."""
    import pyarrow.types as kinds

    inner = [kind.value_type if kinds.is_dictionary(kind) else kind for kind in types]
    found: dict[str, list[str]] = {"dates or times": [], "words": [], "things that are no numbers": []}
    for name, kind in zip(names, inner, strict=True):
        if kinds.is_temporal(kind):
            found["dates or times"].append(name)
        elif is_text(kind):
            found["words"].append(name)
        elif not is_numeric(kind):
            found["things that are no numbers"].append(name)
    check_kinds(found, source)


def is_numeric(kind: Any) -> bool:
    """Tell whether a type of Arrow is one of numbers; bool counts, and so does a column without any value."""
    import pyarrow.types as kinds

    return any(
        of(kind) for of in (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal, kinds.is_null)
    )


def is_text(kind: Any) -> bool:
    """Tell whether a type of Arrow is one of words."""
    return str(kind) in ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")


def common_dtype(types: Sequence[Any]) -> npt.DTypeLike:
    """Stay in single precision where every column is."""
    return np.float32 if all(str(kind) in ("float", "halffloat") for kind in types) else np.float64


def gather(
    batches: Iterable[Any],
    features: Sequence[int],
    roles: dict[str, int],
    dtype: npt.DTypeLike,
    n_rows: int | None = None,
) -> tuple[Array, dict[str, Words]]:
    """Turn record batches into an array of rows, and the columns with a role into words.

    Columns are given by their position in a batch.
    """
    words: dict[str, list[Any]] = {role: [] for role in roles}
    size = max(PIECE_BYTES // (np.dtype(dtype).itemsize * max(len(features), 1)) if n_rows is None else n_rows, 1)
    pieces: list[Array] = []
    filled = size
    for batch in ahead(batches):
        for role, position in roles.items():
            words[role].append(batch.column(position))
        columns = [_numbers(batch.column(position)) for position in features]
        done = 0
        while done < batch.num_rows:
            if filled == size:
                pieces.append(np.empty((size, len(features)), dtype=dtype))
                filled = 0
            n_taken = min(batch.num_rows - done, size - filled)
            _turn([column[done : done + n_taken] for column in columns], pieces[-1][filled : filled + n_taken])
            done, filled = done + n_taken, filled + n_taken
        del batch, columns
    if not pieces:
        pieces, filled = [np.empty((0, len(features)), dtype=dtype)], 0
    pieces[-1] = pieces[-1][:filled]
    _release()
    return _joined(pieces), {role: words_of_chunks(chunks) for role, chunks in words.items()}


def _release() -> None:
    """Have Arrow give back what the batches took: it would keep it for later, beside the data."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


def in_batches(
    batches: Iterable[Any], features: Sequence[int], dtype: npt.DTypeLike, n_rows: int, skip: int
) -> Iterator[Array]:
    """Cut record batches into arrays of `n_rows` rows, whatever their own sizes; the first `skip` rows are left out.

    The arrays are laid out by columns, as the record batches are: turning them into rows would take longer than all
    other copying, and a product takes either.
    """
    rows: Array | None = None
    filled = 0
    memory = _Memory((len(features), n_rows), dtype)
    for batch in batches:
        done = min(skip, batch.num_rows)
        skip -= done
        columns = [_numbers(batch.column(position)) for position in features] if done < batch.num_rows else []
        while done < batch.num_rows:
            if rows is None:
                rows, filled = memory.free().T, 0
            n_taken = min(batch.num_rows - done, n_rows - filled)
            for position, column in enumerate(columns):
                rows[filled : filled + n_taken, position] = column[done : done + n_taken]
            done, filled = done + n_taken, filled + n_taken
            if filled == n_rows:
                yield rows
                rows = None
        del batch, columns
    if rows is not None:
        yield np.asfortranarray(rows[:filled])


class _Memory:
    """Arrays of one shape, given out again once nobody holds them: fresh memory costs as much as a copy."""

    def __init__(self, shape: tuple[int, int], dtype: npt.DTypeLike) -> None:
        self._shape, self._dtype = shape, dtype
        # How often an array is counted that only a list holds depends on the interpreter: the first one, which nobody
        # ever gets, tells.
        self._arrays: list[Array] = [np.empty(0)]

    def free(self) -> Array:
        """Give an array that nobody holds; whatever looks into one, such as its transpose, holds it."""
        unheld, *counts = [sys.getrefcount(array) for array in self._arrays]
        for array, count in zip(self._arrays[1:], counts, strict=True):
            if count == unheld:
                return array
        array = np.empty(self._shape, dtype=self._dtype)
        # Whoever keeps all arrays keeps them without this list.
        self._arrays = [self._arrays[0], *self._arrays[1:][-2:], array]
        return array


def words_of_chunks(chunks: Sequence[Any]) -> Words:
    """Turn pieces of one column into words; equal ones share one string."""
    import pyarrow as pa

    if not chunks:
        return as_words([])
    plain = [chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk for chunk in chunks]
    if pa.types.is_string(plain[0].type):
        # Joined, strings of more than 2 GiB in all have to be counted with 64 bits.
        plain = [chunk.cast(pa.large_string()) for chunk in plain]
    encoded = pa.concat_arrays(plain).dictionary_encode()
    known = as_words([*(word(value) for value in encoded.dictionary.to_pylist()), ""])
    positions = encoded.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)
    return known[positions]


def _numbers(column: Any) -> Array:
    """Give a column as NumPy has it, a missing value as NaN."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif pa.types.is_decimal(column.type) or pa.types.is_null(column.type):
        column = column.cast(pa.float64())
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _turn(columns: Sequence[Array], rows: Array) -> None:
    """Write columns into an array of rows, a few rows at a time."""
    for start in range(0, len(rows), TURNED_ROWS):
        block = rows[start : start + TURNED_ROWS]
        for position, column in enumerate(columns):
            block[:, position] = column[start : start + TURNED_ROWS]


def _joined(pieces: list[Array]) -> Array:
    """Put pieces under one another, each freed as soon as it is copied."""
    if len(pieces) == 1:
        return pieces[0]
    rows = np.empty((sum(map(len, pieces)), pieces[0].shape[1]), dtype=pieces[0].dtype)
    start = 0
    for piece in _emptied(pieces):
        rows[start : start + len(piece)] = piece
        start += len(piece)
    return rows


def _emptied(pieces: list[Array]) -> Iterator[Array]:
    pieces.reverse()
    while pieces:
        yield pieces.pop()
