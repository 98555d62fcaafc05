"""Tables and sums to files, which are complete or not there at all."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from standout._arrays import Array
from standout._messages import InvalidValueError, require_extra, short
from standout._writing import whole_file, write_whole
from standout.io._files import attempt
from standout.sources._open import word

# Words that start so are formulas to spreadsheets, in full width too.
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_MAGIC = b"standout sums 2\n"


class TableWriter:
    """A CSV or Parquet file to which columns are appended, some rows at a time."""

    def __init__(self, file: Any, kind: str, spreadsheet: bool) -> None:
        self._file, self._kind, self._spreadsheet = file, kind, spreadsheet
        self._writer: Any = None
        self._schema: Any = None

    def append(self, columns: Mapping[str, Any]) -> None:
        """Write some rows: the same columns every time."""
        import pyarrow as pa

        arrays = {str(name): np.asarray(column) for name, column in columns.items()}
        limit = len(next(iter(arrays.values())))
        for name, array in arrays.items():
            if array.shape != (limit,):
                problem = f"column {short(name)!r} has shape {array.shape}, but the first column has {limit} values"
                raise InvalidValueError(problem, advice="Give columns of one length.")
        if self._spreadsheet:
            arrays = {_safe(name): _safe_column(array) for name, array in arrays.items()}
        table = pa.table([_as_arrow(array) for array in arrays.values()], names=list(arrays))
        if self._writer is None:
            self._schema, self._writer = table.schema, self._opened(table.schema)
        self._writer.write_table(table.cast(self._schema))

    def _opened(self, schema: Any) -> Any:
        from pyarrow import csv, parquet

        if self._kind == "parquet":
            return parquet.ParquetWriter(self._file, schema)
        options = csv.WriteOptions(delimiter="\t" if self._kind == "tsv" else ",", batch_size=2**14)
        return csv.CSVWriter(self._file, schema, write_options=options)

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()


@contextmanager
def csv_writer(
    path: str | os.PathLike[str], *, replace: bool = True, spreadsheet: bool = False
) -> Iterator[TableWriter]:
    """Open a table to be written some rows at a time: Parquet if it is called .parquet, with tabs if .tsv, else CSV."""
    require_extra("pyarrow", "files", "writing tables")
    import pyarrow as pa

    final = Path(path).expanduser()
    suffixes = [suffix.lower() for suffix in final.suffixes[-2:]]
    kind = "parquet" if {".parquet", ".pq"} & set(suffixes) else "tsv" if {".tsv", ".tab"} & set(suffixes) else "csv"
    # Opened by Python, whose names need not be text, and whose errors are short.
    with (
        whole_file(final, replace=replace) as place,
        place.open("wb") as file,
        pa.CompressedOutputStream(file, "gzip") if ".gz" in suffixes else pa.PythonFile(file, "w") as stream,
    ):
        writer = TableWriter(stream, kind, spreadsheet)
        yield writer
        writer.close()


def write_csv(path: str | os.PathLike[str], columns: Mapping[str, Any], *, spreadsheet: bool = False) -> None:
    """How are columns written to a file that spreadsheets and other programs read?

    Parameters
    ----------
    path : str or path
        The file: Parquet if its name ends in ``.parquet``, with tabs if in ``.tsv``, compressed if in ``.gz``.
    columns : mapping of str to array-like
        Columns of one length, under their names.
    spreadsheet : bool, default=False
        Put an apostrophe before words and names that a spreadsheet would run as formulas. Numbers are never changed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from standout.io import write_csv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "scores.csv")
    ...     write_csv(file, {"id": ["A", "=B"], "score": [0.5, 1.25]}, spreadsheet=True)
    ...     text = file.read_text()
    >>> print(text.strip())
    "id","score"
    "A",0.5
    "'=B",1.25
    """
    if not columns:
        raise InvalidValueError("there are no columns to write", advice="Give at least one.")
    with csv_writer(path, spreadsheet=spreadsheet) as writer:
        writer.append(columns)


def _safe_column(array: Array) -> Array:
    if array.dtype.kind in "biuf":
        return array
    return np.array([_safe(value) if isinstance(value, str) else value for value in array.tolist()], dtype=object)


def _safe(text: str) -> str:
    # Spreadsheets skip spaces before a formula.
    return f"'{text}" if text.startswith(FORMULAS) or text.lstrip().startswith(FORMULAS) else text


def _as_arrow(array: Array) -> Any:
    """Convert a column to Arrow; values of more than one kind become words."""
    import pyarrow as pa

    try:
        return pa.array(array)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([word(value) for value in array.tolist()])


# --- sums -------------------------------------------------------------------------------------------------------------

# Records that sums consist of. No other class is made from a file.
_RECORDS = ("ScatterMoments", "RootMoments", "NormSums", "WeightSums")


def save_sums(path: str | os.PathLike[str], sums: Sequence[Any], about: Mapping[str, Any] | None = None) -> None:
    """Write sums (moments) to a file: arrays and names of known records, nothing that can run code.

    Parameters
    ----------
    path : str or path
    sums : sequence of Moments
    about : mapping, optional
        What is known of the sums, as JSON: names of columns, for example.
    """
    arrays: dict[str, Array] = {}
    described = json.dumps({"about": dict(about or {}), "sums": [_flat(one, arrays) for one in sums]})
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, described=np.array(described), **arrays)
    content = buffer.getvalue()
    write_whole(Path(path).expanduser(), _MAGIC + hashlib.sha256(content).digest() + content)


def load_sums(path: str | os.PathLike[str]) -> tuple[list[Any], dict[str, Any]]:
    """Read sums and what is known of them from a file; damaged and forged files are refused."""
    return attempt(path, "sums", lambda: _loaded(Path(path).expanduser().read_bytes()))


def _loaded(stored: bytes) -> tuple[list[Any], dict[str, Any]]:
    start = len(_MAGIC)
    content = stored[start + 32 :]
    if not stored.startswith(_MAGIC) or hashlib.sha256(content).digest() != stored[start : start + 32]:
        raise ValueError("the checksum does not fit")
    with np.load(io.BytesIO(content), allow_pickle=False) as loaded:
        arrays = {name: loaded[name] for name in loaded.files}
    described = json.loads(str(arrays.pop("described")))
    found = [_record(one, arrays) for one in described["sums"]]
    for one in found:
        _check_sums(one)
    return found, dict(described["about"])


def _flat(thing: Any, arrays: dict[str, Array]) -> Any:
    if is_dataclass(thing) and type(thing).__name__ in _RECORDS:
        parts = {one.name: _flat(getattr(thing, one.name), arrays) for one in fields(thing) if one.init}
        return {"record": type(thing).__name__, "fields": parts}
    if isinstance(thing, np.ndarray) and thing.ndim:
        arrays[f"a{len(arrays)}"] = thing
        return {"array": f"a{len(arrays) - 1}"}
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    return np.asarray(thing).item()


def _record(tree: Any, arrays: Mapping[str, Array]) -> Any:
    if not isinstance(tree, dict):
        if tree is not None and not isinstance(tree, int | float):
            raise ValueError("a part is not a number")
        return tree
    if "array" in tree:
        found = arrays[tree["array"]]
        if found.dtype.kind != "f" or not np.isfinite(found).all():
            raise ValueError("an array does not have finite numbers")
        return found
    if tree["record"] not in _RECORDS:
        raise ValueError("a record is unknown")
    kind = getattr(import_module("standout.moments"), tree["record"])
    return kind(**{name: _record(part, arrays) for name, part in tree["fields"].items()})


def _check_sums(moments: Any) -> None:
    """Refuse sums whose parts do not fit together."""
    matrix: Any = moments.scatter if hasattr(moments, "scatter") else moments.scatter_root
    mean, count = moments.mean, moments.count
    if isinstance(count, bool) or not isinstance(count, int) or count < 1 or mean.ndim != 1 or matrix.ndim != 2:
        raise ValueError("the numbers do not fit together")
    square = type(moments).__name__ != "ScatterMoments" or matrix.shape[0] == len(mean)
    if matrix.shape[1] != len(mean) or not square or not float(moments.total_variance) >= 0:
        raise ValueError("the shapes do not fit together")
