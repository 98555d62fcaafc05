"""Parquet and Arrow (Feather) files: read a batch at a time, and only the columns that are needed."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import Array
from standout._messages import InvalidValueError, listed, require_extra, shown
from standout.io._reader import (
    COLUMN_ADVICE,
    Form,
    Head,
    Part,
    Reader,
    Wanted,
    as_words,
    word,
)
from standout.sources import Words

# Columns are read from a file in pieces of this size. Buffering ahead, or none at all, would take a whole row group,
# and a mapped file counts as memory in use.
BUFFER_BYTES = 2**16
# Arrow has a task for each column of each batch; beyond this number the tasks cost more than they bring.
THREADED_COLUMNS = 1000


class ArrowReader(Reader):
    """A file by columns, whose schema tells their types."""

    def _form(self, schema: Any, features: Sequence[int]) -> Form:
        # Lists once and for all: a schema makes them anew each time that it is asked.
        names, types = schema.names, schema.types
        chosen = [types[place] for place in features]
        _check_types([names[place] for place in features], chosen, self.source)
        single = bool(chosen) and all(str(kind) in ("float", "halffloat") for kind in chosen)
        dtype = np.dtype(np.float32 if single else np.float64)
        return Form(dtype, dtype.itemsize * len(features))


@dataclass(frozen=True)
class ParquetReader(ArrowReader):
    """A Parquet file, one row group after the other, and of a large row group one batch after the other."""

    kind = "Parquet"

    def head(self) -> Head:
        """Read the footer."""
        with self._opened() as file:
            schema, n_rows = self.attempt(lambda: (file.schema_arrow, file.metadata.num_rows))
            return Head(schema.names, len(schema.names), n_rows, _pandas_index(schema))

    def form(self, features: Sequence[int]) -> Form:
        """Look at the types in the footer."""
        with self._opened() as file:
            return self._form(file.schema_arrow, features)

    def batches(self, wanted: Wanted, form: Form, n_rows: int, start: int) -> Generator[Part]:
        """Give batches of rows; row groups before the first row are not read."""
        with self._opened() as file:
            groups = file.metadata.num_row_groups
            ends = list(accumulate(file.metadata.row_group(group).num_rows for group in range(groups)))
            first = int(np.searchsorted(ends, start, side="right"))
            needed, places = _needed(file.schema_arrow.names, wanted)
            # "a" also brings "a.b" along, which Parquet takes for a part of it.
            found = (
                batch.select(needed)
                for batch in file.iter_batches(
                    n_rows,
                    row_groups=range(first, groups),
                    columns=needed,
                    use_threads=len(needed) <= THREADED_COLUMNS,
                )
            )
            skip = start - (ends[first - 1] if first else 0)
            batches = self.attempted(found)
            yield from cut(batches, range(len(wanted.features)), places, form.dtype, n_rows, skip)

    def _opened(self) -> AbstractContextManager[Any]:
        require_extra("pyarrow", "files", "reading Parquet files")
        import pyarrow.parquet as parquet

        return self.attempt(lambda: parquet.ParquetFile(self.path, buffer_size=BUFFER_BYTES, pre_buffer=False))


@dataclass(frozen=True)
class IpcReader(ArrowReader):
    """An Arrow file, in the file format (also called Feather) or the streaming format, by its record batches."""

    kind = "Arrow"

    def head(self) -> Head:
        """Read the schema, and count the rows in one column: the file does not tell."""
        schema = self.attempt(self._schema)
        rows = self.attempted(self._record_batches([0], mapped=True))
        return Head(schema.names, len(schema.names), sum(batch.num_rows for batch in rows), _pandas_index(schema))

    def form(self, features: Sequence[int]) -> Form:
        """Look at the types in the schema."""
        return self._form(self.attempt(self._schema), features)

    def batches(self, wanted: Wanted, form: Form, n_rows: int, start: int) -> Generator[Part]:
        """Give batches of rows; of what stands before the first row only the headers are read."""
        names = self.attempt(self._schema).names
        needed, places = _needed(names, wanted)
        positions = {name: place for place, name in enumerate(names)}
        # Not mapped: pages of a mapped file count as memory in use.
        found = (batch.select(needed) for batch in self._record_batches([positions[name] for name in needed]))
        batches = self.attempted(found)
        yield from cut(batches, range(len(wanted.features)), places, form.dtype, n_rows, start)

    def _schema(self) -> Any:
        with self._opened(mapped=True) as file:
            return _ipc(file).schema

    def _record_batches(self, fields: Sequence[int], *, mapped: bool = False) -> Iterator[Any]:
        import pyarrow as pa

        options = pa.ipc.IpcReadOptions(included_fields=sorted(fields), use_threads=len(fields) <= THREADED_COLUMNS)
        with self._opened(mapped=mapped) as file:
            reader = _ipc(file, options=options)
            if hasattr(reader, "get_batch"):
                yield from (reader.get_batch(number) for number in range(reader.num_record_batches))
            else:
                yield from reader

    def _opened(self, *, mapped: bool) -> AbstractContextManager[Any]:
        require_extra("pyarrow", "files", "reading Arrow files")
        import pyarrow as pa

        return self.attempt(lambda: pa.memory_map(str(self.path)) if mapped else pa.OSFile(str(self.path)))


def _ipc(file: Any, **options: Any) -> Any:
    import pyarrow as pa

    is_file = file.read(6) == b"ARROW1"
    file.seek(0)
    return pa.ipc.open_file(file, **options) if is_file else pa.ipc.open_stream(file, **options)


def _needed(names: Sequence[str], wanted: Wanted) -> tuple[list[str], dict[str, int]]:
    """Name the columns to read, the data first, and say where among them those with words are."""
    features = [names[place] for place in wanted.features]
    needed = list(dict.fromkeys([*features, *wanted.words.values()]))
    return needed, {role: needed.index(name) for role, name in wanted.words.items()}


def _pandas_index(schema: Any) -> str | None:
    """Find the column in which pandas has kept the names of the rows."""
    stored = (schema.metadata or {}).get(b"pandas")
    if stored is None:
        return None
    try:
        index = json.loads(stored).get("index_columns", [])
    except (ValueError, AttributeError):
        return None
    # An index of several levels is taken for columns like any other, and one that only counts is not stored.
    only = index[0] if isinstance(index, list) and len(index) == 1 else None
    return only if isinstance(only, str) and only in schema.names else None


# --- types -----------------------------------------------------------------------------------------------------------


def is_numeric(kind: Any) -> bool:
    """Tell whether a type of Arrow is one of numbers; bool counts, and so does a column without any value."""
    import pyarrow.types as kinds

    return any(
        of(kind) for of in (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal, kinds.is_null)
    )


def _check_types(names: Sequence[str], types: Sequence[Any], source: str) -> None:
    """Refuse columns that are no numbers, each kind by its name."""
    import pyarrow.types as kinds

    text = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
    found: dict[str, list[str]] = {"dates or times": [], "words": [], "things that are no numbers": []}
    for name, given in zip(names, types, strict=True):
        kind = given.value_type if kinds.is_dictionary(given) else given
        if kinds.is_temporal(kind):
            found["dates or times"].append(name)
        elif str(kind) in text:
            found["words"].append(name)
        elif not is_numeric(kind):
            found["things that are no numbers"].append(name)
    reject_kinds(found, source)


def reject_kinds(found: Mapping[str, Sequence[str]], source: Any) -> None:
    """Refuse columns by what they hold: dates first, then anything else that is no number."""
    for kind, names in found.items():
        if names:
            columns, problem = listed("column", names), "there are {kind} in {columns} of {source}"
            raise InvalidValueError(problem, kind=kind, columns=columns, source=shown(source), advice=COLUMN_ADVICE)


# --- from record batches to rows -------------------------------------------------------------------------------------


def cut(
    batches: Iterable[Any],
    features: Sequence[int],
    places: Mapping[str, int],
    dtype: npt.DTypeLike,
    n_rows: int,
    skip: int,
) -> Generator[Part]:
    """Cut record batches into arrays of `n_rows` rows, whatever their own sizes; the first `skip` rows are left out.

    The arrays are in Fortran order: a column of a batch is copied in one go.
    """
    rows: Array | None = None
    words: dict[str, list[Words]] = {}
    filled = 0
    memory = _Memory((len(features), n_rows), dtype)
    for batch in batches:
        done = min(skip, batch.num_rows)
        skip -= done
        if done == batch.num_rows:
            continue
        columns = [_numbers(batch.column(position)) for position in features]
        said = {role: _words(batch.column(position)) for role, position in places.items()}
        while done < batch.num_rows:
            if rows is None:
                rows, filled, words = memory.free().T, 0, {role: [] for role in places}
            n_taken = min(batch.num_rows - done, n_rows - filled)
            for position, column in enumerate(columns):
                rows[filled : filled + n_taken, position] = column[done : done + n_taken]
            for role, column in said.items():
                words[role].append(column[done : done + n_taken])
            done, filled = done + n_taken, filled + n_taken
            if filled == n_rows:
                yield rows, {role: np.concatenate(parts) for role, parts in words.items()}
                rows = None
        del batch, columns
    if rows is not None:
        yield np.asfortranarray(rows[:filled]), {role: np.concatenate(parts) for role, parts in words.items()}


class _Memory:
    """Arrays of one shape, given out again once nobody holds them: fresh memory costs as much as a copy."""

    def __init__(self, shape: tuple[int, int], dtype: npt.DTypeLike) -> None:
        self._shape, self._dtype = shape, dtype
        # The reference count of an array that only a list holds depends on the interpreter: the first one, which is
        # never given out, tells it.
        self._arrays: list[Array] = [np.empty(0)]

    def free(self) -> Array:
        """Give an array that nobody holds; a view of an array, such as its transpose, holds it."""
        unheld, *counts = [sys.getrefcount(array) for array in self._arrays]
        for array, count in zip(self._arrays[1:], counts, strict=True):
            if count == unheld:
                return array
        array = np.empty(self._shape, dtype=self._dtype)
        # A caller that keeps all arrays keeps them without this list.
        self._arrays = [self._arrays[0], *self._arrays[1:][-2:], array]
        return array


def _words(column: Any) -> Words:
    """Turn a column into words; equal ones share one string."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    encoded = column.dictionary_encode()
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
