"""Columns to a CSV file, at once or batch by batch; the file is complete or not there at all."""

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
from standout.io._reader import word

# Words that begin so are formulas to spreadsheets.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


class CsvWriter:
    """A CSV file to which columns are appended, some rows at a time."""

    def __init__(self, file: Any, delimiter: str, spreadsheet: bool = False) -> None:
        self._file, self._delimiter, self._spreadsheet = file, delimiter, spreadsheet
        self._writer: Any = None
        self._schema: Any = None

    def append(self, columns: Mapping[str, Any]) -> None:
        """Write some rows: the same columns every time."""
        import pyarrow as pa
        from pyarrow import csv

        arrays = {str(name): np.asarray(column) for name, column in columns.items()}
        _check_lengths(arrays)
        if self._spreadsheet:
            arrays = {_as_text(name): _without_formulas(array) for name, array in arrays.items()}
        table = pa.table([_as_arrow(array) for array in arrays.values()], names=list(arrays))
        if self._writer is None:
            self._schema = table.schema
            options = csv.WriteOptions(delimiter=self._delimiter, batch_size=2**14)
            self._writer = csv.CSVWriter(self._file, table.schema, write_options=options)
        self._writer.write_table(table.cast(self._schema))

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()


@contextmanager
def csv_writer(path: str | os.PathLike[str], *, replace: bool = True, spreadsheet: bool = False) -> Iterator[CsvWriter]:
    """Open a CSV file to be written some rows at a time: with tabs if it is called .tsv, compressed if .gz.

    If `replace` is False, a file that appears meanwhile is not replaced: see `standout._writing.whole_file`.
    `spreadsheet` is explained at `write_csv`.
    """
    require_extra("pyarrow", "files", "writing CSV files")
    import pyarrow as pa

    final = Path(path).expanduser()
    suffixes = [suffix.lower() for suffix in final.suffixes]
    delimiter = "\t" if {".tsv", ".tab"} & set(suffixes[-2:]) else ","
    # Opened by Python, which takes names that are not text, and says in short why a file cannot be opened.
    with whole_file(final, replace=replace) as place, place.open("wb") as file:
        gzipped = ".gz" in suffixes[-1:]
        with pa.CompressedOutputStream(file, "gzip") if gzipped else pa.PythonFile(file, "w") as stream:
            writer = CsvWriter(stream, delimiter, spreadsheet)
            yield writer
            writer.close()


def write_csv(path: str | os.PathLike[str], columns: Mapping[str, Any], *, spreadsheet: bool = False) -> None:
    """How are these columns written to a file that spreadsheets and other programs read?

    Parameters
    ----------
    path : str or path
        The file; it is compressed if its name ends in ``.gz``, and has tabs if it is called ``.tsv`` or ``.tab``.
    columns : mapping of str to array-like
        Columns of one length, under their names.
    spreadsheet : bool, default=False
        Put an apostrophe before words that begin with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return.
        Spreadsheets would take them for formulas, which can read files and call programs. Numbers are never changed;
        other programs will see the apostrophe.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from standout.io import write_csv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "scores.csv")
    ...     write_csv(file, {"id": ["A", "B"], "score": [0.5, 1.25]})
    ...     text = file.read_text()
    >>> print(text.strip())
    "id","score"
    "A",0.5
    "B",1.25
    """
    if not columns:
        raise InvalidValueError("there are no columns to write", advice="Give at least one.")
    with csv_writer(path, spreadsheet=spreadsheet) as writer:
        writer.append(columns)


def _without_formulas(array: Array) -> Array:
    """Give a column in which no word is a formula; a column of numbers is left as it is."""
    if array.dtype.kind in "biuf":
        return array
    words = [_as_text(value) if isinstance(value, str) else value for value in array.tolist()]
    return np.array(words, dtype=object)


def _as_text(word: str) -> str:
    return f"'{word}" if word.startswith(_FORMULAS) else word


def _check_lengths(arrays: Mapping[str, Array]) -> None:
    """Refuse columns that are no vectors, or of different lengths."""
    limit = len(next(iter(arrays.values())))
    for name, array in arrays.items():
        if array.shape != (limit,):
            problem = "column {name} has shape {shape}, but should be a vector of {limit} values, as the first column"
            advice = "Give columns of one length."
            raise InvalidValueError(problem, name=repr(short(name)), shape=array.shape, limit=limit, advice=advice)


def _as_arrow(array: Array) -> Any:
    """Give a column as Arrow has it; values of more than one kind as words."""
    import pyarrow as pa

    try:
        return pa.array(array)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([word(value) for value in array.tolist()])
