"""Tables to files, which are complete or not there at all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from standout._arrays import Array
from standout._messages import InvalidValueError, require_extra, short
from standout._writing import whole_file
from standout.sources._open import word

# Words that start so are formulas to spreadsheets, in full width too.
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


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
