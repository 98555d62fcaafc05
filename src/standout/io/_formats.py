"""What a file holds, by its name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from standout._validation import check_format, check_no_variable, reject_extension
from standout.io._choice import Wanted
from standout.io._columnar import read_arrow, read_parquet
from standout.io._delimited import read_delimited
from standout.io._h5ad import read_h5ad
from standout.io._matlab import read_mat
from standout.io._numpy_files import read_npy, read_npz
from standout.io._table import Table

Reader = Callable[[Path, Wanted, str], Table]

READERS: dict[str, Reader] = {
    "csv": partial(read_delimited, kind="csv"),
    "tsv": partial(read_delimited, kind="tsv"),
    "parquet": read_parquet,
    "arrow": read_arrow,
    "feather": read_arrow,
    "npy": read_npy,
    "npz": read_npz,
    "mat": read_mat,
    "h5ad": read_h5ad,
}

EXTENSIONS = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".txt": "csv",
    ".txt.gz": "csv",
    ".tsv": "tsv",
    ".tsv.gz": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "feather",
    ".npy": "npy",
    ".npz": "npz",
    ".mat": "mat",
    ".h5ad": "h5ad",
}

_WITH_VARIABLES = ("npz", "mat", "h5ad")


def find_reader(path: Path, format: str | None, wanted: Wanted) -> Reader:
    """Choose the reader of a file: by the format given, or else by the extension."""
    if format is None:
        name = path.name.lower()
        extension = next((known for known in EXTENSIONS if name.endswith(known)), None)
        if extension is None:
            reject_extension(path, list(EXTENSIONS))
        kind = EXTENSIONS[extension]
    else:
        kind = check_format(format, list(READERS))
    if kind not in _WITH_VARIABLES:
        check_no_variable(wanted.variable, kind)
    return READERS[kind]
