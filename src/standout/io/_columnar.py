"""Parquet and Arrow (Feather): files by columns, read a batch at a time and only the columns that are needed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from standout._validation import check_rows_of_file, require_extra
from standout.io._arrow import check_types, common_dtype, gather
from standout.io._choice import Choice, Wanted, choose
from standout.io._reading import attempt
from standout.io._table import Table, make_table

# A batch is decoded, turned into rows and forgotten: large enough for the cost of each of its columns not to matter.
BATCH_BYTES = 24 * 2**20
FEWEST_ROWS, MOST_ROWS = 1024, 65536

# Columns are read from the file in pieces of this size. Buffering ahead, or none at all, would take a whole row group,
# and a mapped file counts as memory in use.
BUFFER_BYTES = 2**16

# Arrow has a task for each column of each batch; beyond this number the tasks cost more than they bring.
THREADED_COLUMNS = 1000


def read_parquet(path: Path, wanted: Wanted, source: str) -> Table:
    """Read a Parquet file."""
    require_extra("pyarrow", "files", "reading Parquet files")
    import pyarrow.parquet as parquet

    def opened() -> Any:
        return parquet.ParquetFile(path, buffer_size=BUFFER_BYTES, pre_buffer=False)

    with attempt(opened, source, "Parquet") as file:
        schema = attempt(lambda: file.schema_arrow, source, "Parquet")
        choice = choose(schema.names, wanted, source, index=pandas_index(schema))
        needed = _needed(schema.names, choice)

        def batches() -> Iterator[Any]:
            n_rows = min(max(BATCH_BYTES // (8 * len(needed)), FEWEST_ROWS), MOST_ROWS)
            for batch in file.iter_batches(n_rows, columns=needed, use_threads=len(needed) <= THREADED_COLUMNS):
                # "a" also brings "a.b" along, which Parquet takes for a part of it.
                yield batch.select(needed)

        return _table(schema, choice, needed, batches(), file.metadata.num_rows, source, "Parquet")


def read_arrow(path: Path, wanted: Wanted, source: str) -> Table:
    """Read an Arrow file: the file format (also called Feather) or the streaming format."""
    require_extra("pyarrow", "files", "reading Arrow files")
    import pyarrow as pa

    with pa.memory_map(str(path)) as mapped:
        is_file = mapped.read(6) == b"ARROW1"
        mapped.seek(0)
        open_ = pa.ipc.open_file if is_file else pa.ipc.open_stream
        schema = attempt(lambda: open_(mapped).schema, source, "Arrow")
        choice = choose(schema.names, wanted, source, index=pandas_index(schema))
        needed = _needed(schema.names, choice)
        positions = {name: position for position, name in enumerate(schema.names)}

        def batches(names: Sequence[str]) -> Iterator[Any]:
            options = pa.ipc.IpcReadOptions(included_fields=[positions[name] for name in names])
            mapped.seek(0)
            reader = open_(mapped, options=options)
            found = (reader.get_batch(number) for number in range(reader.num_record_batches)) if is_file else reader
            for batch in found:
                yield batch.select(names)

        # A file does not say how many rows it has, but one column tells.
        n_rows = attempt(lambda: sum(batch.num_rows for batch in batches(needed[:1])), source, "Arrow")
        return _table(schema, choice, needed, batches(needed), n_rows, source, "Arrow")


def _needed(names: Sequence[str], choice: Choice) -> list[str]:
    return list(dict.fromkeys([*(names[position] for position in choice.features), *choice.roles.values()]))


def _table(
    schema: Any, choice: Choice, needed: list[str], batches: Iterator[Any], n_rows: int | None, source: str, kind: str
) -> Table:
    # Lists once and for all: a schema makes them anew each time that it is asked.
    all_names, all_types = schema.names, schema.types
    columns = [all_names[position] for position in choice.features]
    types = [all_types[position] for position in choice.features]
    check_types(columns, types, source)
    features = range(len(columns))
    roles = {role: needed.index(name) for role, name in choice.roles.items()}
    values, words = attempt(lambda: gather(batches, features, roles, common_dtype(types), n_rows), source, kind)
    check_rows_of_file(len(values), source)
    return make_table(values, columns, words, source)


def pandas_index(schema: Any) -> str | None:
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
