"""CSV and TSV, also gzipped, by Arrow.

The header is read apart from the rest, so that names can be anything: Arrow is given numbers in their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from standout._arrays import Array
from standout._validation import check_index, check_kinds, require_extra
from standout.io._arrow import gather
from standout.io._choice import Choice, Wanted, choose
from standout.io._delimited_faults import MISSING, is_number, reject_fault
from standout.io._delimited_layout import Layout, find_layout, rows_of_text
from standout.io._table import Table, Words, make_table

# Arrow parses a block at a time. It should hold some hundred rows even where these are long, because each column of a
# block has a cost of its own.
BLOCK_BYTES = 2**20
LARGEST_BLOCK = 64 * 2**20
BLOCK_ROWS = 256


def read_delimited(path: Path, wanted: Wanted, source: str, kind: str) -> Table:
    """Read a file of cells with something between them."""
    require_extra("pyarrow", "files", "reading CSV and TSV files")
    layout = find_layout(path, source, kind)
    choice = choose(layout.names, wanted, source, index="" if layout.names[0] == "" else None)
    columns = [layout.names[position] for position in choice.features]

    def refuse(error: Exception | None) -> NoReturn:
        reject_fault(
            partial(rows_of_text, path, layout), layout.names, choice.features, layout.delimiter, source, error
        )

    # Arrow's errors are ValueErrors, or OSErrors where a compressed file ends too early.
    try:
        types = inferred(path, layout, choice.features)
    except (ValueError, OSError) as error:
        refuse(error)
    check_kinds({"dates or times": [n for n, t in zip(columns, types, strict=True) if is_date(t)]}, source)
    if not all(is_read(type_) for type_ in types):
        refuse(None)
    try:
        values, words = _gathered(path, layout, choice, types)
    except (ValueError, OSError) as error:
        refuse(error)
    if choice.roles.get("ids") == "" and "ids" not in wanted.roles:
        _check_index(words["ids"], source)
    return make_table(values, columns, words, source)


def is_date(kind: Any) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_temporal(kind))


def is_read(kind: Any) -> bool:
    import pyarrow.types as kinds

    return any(of(kind) for of in (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_null))


def inferred(path: Path, layout: Layout, features: Sequence[int]) -> list[Any]:
    """Find out from the first block what the columns hold."""
    with open_reader(path, layout, [str(position) for position in features], {}, has_text(layout, features)) as reader:
        return list(reader.schema.types)


def _gathered(path: Path, layout: Layout, choice: Choice, types: Sequence[Any]) -> tuple[Array, dict[str, Words]]:
    """Read the whole file; what the first block holds must hold throughout, up to whole numbers."""
    import pyarrow as pa

    roles = {role: str(layout.names.index(name)) for role, name in choice.roles.items()}
    features = [str(position) for position in choice.features]
    column_types = {
        name: kind if pa.types.is_boolean(kind) else pa.float64() for name, kind in zip(features, types, strict=True)
    }
    column_types |= dict.fromkeys(roles.values(), pa.string())
    needed = list(column_types)
    places = {role: needed.index(name) for role, name in roles.items()}
    with open_reader(path, layout, needed, column_types, has_text(layout, choice.features)) as reader:
        return gather(reader, range(len(features)), places, np.float64)


def has_text(layout: Layout, features: Sequence[int]) -> bool:
    """Tell whether there may be text in the file: in columns that are no data."""
    return len(features) < len(layout.names)


def open_reader(path: Path, layout: Layout, needed: list[str], types: dict[str, Any], has_text: bool) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    return csv.open_csv(
        pa.input_stream(str(path), compression="gzip" if layout.is_gzipped else None),
        read_options=csv.ReadOptions(
            block_size=min(max(BLOCK_BYTES, BLOCK_ROWS * layout.row_length), LARGEST_BLOCK),
            column_names=[str(position) for position in range(len(layout.names))],
            skip_rows=layout.n_lines,
        ),
        # A line may end within quotes where there is text, which takes half as long again to look for.
        parse_options=csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=has_text),
        convert_options=csv.ConvertOptions(
            column_types=types, include_columns=needed, null_values=sorted(MISSING), strings_can_be_null=True
        ),
    )


def _check_index(words: Words, source: str) -> None:
    """Take a first column without a name for names of rows if it holds words, or whole numbers without repetition."""
    distinct = set(words.tolist())
    are_numbers = all(is_number(word) for word in distinct)
    are_whole = are_numbers and all(word.strip().lstrip("+-").isdigit() for word in distinct)
    check_index(words[0], are_numbers and not are_whole, are_whole and len(distinct) < len(words), source)
