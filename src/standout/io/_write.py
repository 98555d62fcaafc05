"""Columns -> a CSV file that is either there as a whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from standout._arrays import Array
from standout._validation import check_lengths, reject_unwritable, require_extra
from standout.io._words import word


def write_csv(path: str | os.PathLike[str], columns: Mapping[str, Any]) -> None:
    """How are these columns written to a file that spreadsheets and other programs read?

    Parameters
    ----------
    path : str or path
        Where to write; ``.tsv`` has tabs between columns, and what ends in ``.gz`` is compressed. A file that is there
        already is replaced once the new one is complete.
    columns : mapping of str to array of shape (n,)
        What to write, under which names. Numbers are written such that they are read as the very same.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from standout.io import write_csv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "scores.csv")
    ...     write_csv(file, {"id": ["A", "B"], "score 1": [0.1, 2.0]})
    ...     print(file.read_text())
    "id","score 1"
    "A",0.1
    "B",2
    <BLANKLINE>
    """
    require_extra("pyarrow", "files", "writing CSV files")
    arrays = {str(name): np.asarray(column) for name, column in columns.items()}
    check_lengths({name: array.shape for name, array in arrays.items()})
    final = Path(path).expanduser()
    try:
        # A device such as /dev/stdout is written to; a name put in its place would take the device away.
        if final.exists() and not final.is_file():
            _write(final, final, arrays)
            return
        draft = final.with_name(f".{uuid4().hex}.part")
        try:
            _write(draft, final, arrays)
            draft.replace(final)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        reject_unwritable(path, error)


def _write(place: Path, name: Path, arrays: Mapping[str, Any]) -> None:
    import pyarrow as pa
    from pyarrow import csv

    table = pa.table([_column(array) for array in arrays.values()], names=list(arrays))
    # What decides is the name that the file will have: the draft has another one.
    suffixes = [suffix.lower() for suffix in name.suffixes]
    compression = "gzip" if ".gz" in suffixes[-1:] else None
    delimiter = "\t" if {".tsv", ".tab"} & set(suffixes[-2:]) else ","
    with place.open("wb") as raw, pa.output_stream(raw, compression=compression) as stream:
        csv.write_csv(table, stream, csv.WriteOptions(delimiter=delimiter, batch_size=2**14))


def _column(array: Array) -> Any:
    """Give a column as Arrow has it; things of more than one kind as words."""
    import pyarrow as pa

    try:
        return pa.array(array)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([word(value) for value in array.tolist()])
