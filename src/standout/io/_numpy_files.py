"""NumPy's own files: .npy and .npz, and the sparse matrices that SciPy keeps in the latter."""

from __future__ import annotations

import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from standout._arrays import Array
from standout._validation import check_variable
from standout.io._choice import Wanted
from standout.io._from_array import table_from_array
from standout.io._reading import attempt
from standout.io._table import Table


def read_npy(path: Path, wanted: Wanted, source: str) -> Table:
    """Read an array from an .npy file, mapped: a page is copied only once it is written to."""
    array = attempt(lambda: np.load(path, mmap_mode="c", allow_pickle=False), source, "npy")
    return table_from_array(np.asarray(array), wanted, source, "npy")


def read_npz(path: Path, wanted: Wanted, source: str) -> Table:
    """Read one array, dense or sparse, from an .npz file; vectors beside it can be ids, labels and groups."""
    forms = attempt(lambda: _forms(path), source, "npz")
    if {"format", "shape", "data"} <= set(forms) and wanted.variable is None:
        return table_from_array(attempt(lambda: sparse.load_npz(path), source, "npz"), wanted, source, "npz")
    tables = [name for name, (shape, dtype) in forms.items() if len(shape) == 2 and dtype.kind in "biuf"]
    name = check_variable(wanted.variable, tables, list(forms), source)
    beside = {other: partial(_member, path, other) for other, (shape, _) in forms.items() if len(shape) == 1}
    return table_from_array(attempt(lambda: _member(path, name), source, "npz"), wanted, source, "npz", beside)


def _member(path: Path, name: str) -> Array:
    # Opened here, because NumPy leaves a file open whose archive turns out to be damaged.
    with path.open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
        return np.asarray(stored[name])


def _forms(path: Path) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Look at the shapes and types of all arrays, without reading them."""
    forms = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            if member.endswith(".npy"):
                with archive.open(member) as opened:
                    forms[member.removesuffix(".npy")] = _form(opened)
    return forms


def _form(opened: Any) -> tuple[tuple[int, ...], Any]:
    shape, _, dtype = header_of(opened)
    return shape, dtype


def header_of(opened: Any) -> tuple[tuple[int, ...], bool, Any]:
    """Read shape, order (whether that of Fortran) and type of an array, up to where its numbers begin."""
    version = np.lib.format.read_magic(opened)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(opened)
