"""Parquet and Arrow (Feather) files, piece by piece: never more than a batch of their columns in memory."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from standout._arrays import Array
from standout._validation import require_extra
from standout.io._arrow import check_types, common_dtype, in_batches
from standout.io._columnar import BUFFER_BYTES, THREADED_COLUMNS, pandas_index
from standout.io._pieces import Form, Head, Pieces
from standout.io._reading import attempt, attempted


class ColumnarPieces(Pieces):
    """A file by columns, whose schema tells their types."""

    def _form(self, schema: Any, features: Sequence[int]) -> Form:
        names, types = schema.names, schema.types
        check_types([names[place] for place in features], [types[place] for place in features], self.source)
        dtype = np.dtype(common_dtype([types[place] for place in features]))
        return Form(dtype, dtype.itemsize * len(features))


@dataclass(frozen=True)
class ParquetPieces(ColumnarPieces):
    """A Parquet file, one row group after the other, and of a large row group one batch after the other."""

    def head(self) -> Head:
        """Read the footer."""
        with self._opened() as file:
            schema, n_rows = attempt(lambda: (file.schema_arrow, file.metadata.num_rows), self.source, "Parquet")
            return Head(schema.names, len(schema.names), n_rows, pandas_index(schema))

    def form(self, features: Sequence[int]) -> Form:
        """Look at the types in the footer."""
        with self._opened() as file:
            return self._form(file.schema_arrow, features)

    def batches(self, features: Sequence[int], form: Form, n_rows: int, start: int) -> Generator[Array]:
        """Give batches of rows; row groups before the first row are not read."""
        with self._opened() as file:
            groups = file.metadata.num_row_groups
            ends = list(accumulate(file.metadata.row_group(group).num_rows for group in range(groups)))
            first = int(np.searchsorted(ends, start, side="right"))
            names = file.schema_arrow.names
            needed = [names[place] for place in features]
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
            yield from in_batches(
                attempted(found, self.source, "Parquet"), range(len(needed)), form.dtype, n_rows, skip
            )

    def _opened(self) -> AbstractContextManager[Any]:
        require_extra("pyarrow", "files", "reading Parquet files")
        import pyarrow.parquet as parquet

        # Buffering ahead, or none at all, would take a whole row group.
        return attempt(
            lambda: parquet.ParquetFile(self.path, buffer_size=BUFFER_BYTES, pre_buffer=False), self.source, "Parquet"
        )


@dataclass(frozen=True)
class ArrowPieces(ColumnarPieces):
    """An Arrow file, in the file format (also called Feather) or the streaming format, by its record batches."""

    def head(self) -> Head:
        """Read the schema, and count the rows in one column: the file does not tell."""
        schema = attempt(self._schema, self.source, "Arrow")
        rows = attempted(self._record_batches([0], mapped=True), self.source, "Arrow")
        return Head(schema.names, len(schema.names), sum(batch.num_rows for batch in rows), pandas_index(schema))

    def form(self, features: Sequence[int]) -> Form:
        """Look at the types in the schema."""
        return self._form(attempt(self._schema, self.source, "Arrow"), features)

    def batches(self, features: Sequence[int], form: Form, n_rows: int, start: int) -> Generator[Array]:
        """Give batches of rows; of what stands before the first row only the headers are read."""
        names = attempt(self._schema, self.source, "Arrow").names
        # Not mapped: pages of a mapped file count as memory in use.
        found = (batch.select([names[place] for place in features]) for batch in self._record_batches(features))
        yield from in_batches(attempted(found, self.source, "Arrow"), range(len(features)), form.dtype, n_rows, start)

    def _schema(self) -> Any:
        with self._opened(mapped=True) as file:
            return _reader(file).schema

    def _record_batches(self, fields: Sequence[int], *, mapped: bool = False) -> Iterator[Any]:
        import pyarrow as pa

        options = pa.ipc.IpcReadOptions(included_fields=sorted(fields), use_threads=len(fields) <= THREADED_COLUMNS)
        with self._opened(mapped=mapped) as file:
            reader = _reader(file, options=options)
            if hasattr(reader, "get_batch"):
                yield from (reader.get_batch(number) for number in range(reader.num_record_batches))
            else:
                yield from reader

    def _opened(self, *, mapped: bool) -> AbstractContextManager[Any]:
        require_extra("pyarrow", "files", "reading Arrow files")
        import pyarrow as pa

        return attempt(
            lambda: pa.memory_map(str(self.path)) if mapped else pa.OSFile(str(self.path)), self.source, "Arrow"
        )


def _reader(file: Any, **options: Any) -> Any:
    import pyarrow as pa

    is_file = file.read(6) == b"ARROW1"
    file.seek(0)
    return pa.ipc.open_file(file, **options) if is_file else pa.ipc.open_stream(file, **options)
