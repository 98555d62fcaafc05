"""MATLAB's files: up to version 7 by SciPy, version 7.3 (which is HDF5) by h5py."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from standout._arrays import BLOCK_BYTES, Rows
from standout._validation import check_variable, require_extra
from standout.io._choice import Wanted
from standout.io._from_array import table_from_array
from standout.io._matlab_tags import check_tags
from standout.io._reading import attempt
from standout.io._table import Table

_INTEGERS = [f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64)]
_NUMERIC = ("double", "single", "logical", "sparse", *_INTEGERS)

Forms = dict[str, tuple[tuple[int, ...], str]]
Reader = Callable[[Path, str], Any]


def read_mat(path: Path, wanted: Wanted, source: str) -> Table:
    """Read one matrix from a .mat file; vectors beside it can be ids, labels and groups."""
    if _is_hdf5(path):
        require_extra("h5py", "h5ad", "reading .mat files of version 7.3")
        forms, matrix, vector = attempt(lambda: _forms_hdf5(path), source, "mat"), _matrix_hdf5, _vector_hdf5
    else:
        forms, matrix, vector = attempt(lambda: _forms(path), source, "mat"), _matrix, _vector
    name = check_variable(wanted.variable, _candidates(forms), list(forms), source)
    array = attempt(lambda: matrix(path, name), source, "mat")
    beside = {
        other: partial(vector, path, other)
        for other, (shape, kind) in forms.items()
        if other != name and _is_vector(shape, kind, array.shape[0])
    }
    return table_from_array(array, wanted, source, "mat", beside)


def _candidates(forms: Forms) -> list[str]:
    """Name the matrices of numbers; vectors only where there is nothing else."""
    numeric = [name for name, (shape, kind) in forms.items() if len(shape) == 2 and kind in _NUMERIC]
    return [name for name in numeric if min(forms[name][0]) > 1] or numeric


def _is_vector(shape: tuple[int, ...], kind: str, n_rows: int) -> bool:
    """Tell a vector with one value per row: in MATLAB that is a matrix too, and words can be one of letters."""
    return (kind == "char" and shape[:1] == (n_rows,)) or (len(shape) == 2 and n_rows in shape and min(shape) == 1)


def _is_hdf5(path: Path) -> bool:
    with path.open("rb") as opened:
        head = opened.read(520)
    # MATLAB writes 512 bytes of its own before; other writers of HDF5 do not.
    return b"\x89HDF" in (head[:4], head[512:516])


def _forms(path: Path) -> Forms:
    from scipy import io

    check_tags(path)
    return {name: (tuple(shape), kind) for name, shape, kind in io.whosmat(str(path))}


def _matrix(path: Path, name: str) -> Rows:
    from scipy import io

    return io.loadmat(str(path), variable_names=[name])[name]


def _vector(path: Path, name: str) -> Any:
    found = np.atleast_1d(np.squeeze(_matrix(path, name)))
    if found.dtype == object:
        # A cell array of words: each is an array with one string in it.
        return ["" if np.size(cell) == 0 else np.ravel(cell)[0] for cell in found]
    return np.char.rstrip(found) if found.dtype.kind == "U" else found


def _forms_hdf5(path: Path) -> Forms:
    import h5py

    forms: Forms = {}
    with h5py.File(path, "r") as file:
        for name, node in file.items():
            kind = node.attrs.get("MATLAB_class", b"double")
            if "MATLAB_sparse" in node.attrs:
                forms[name] = (2, 2), "sparse"
            elif isinstance(node, h5py.Dataset):
                forms[name] = node.shape[::-1], kind.decode() if isinstance(kind, bytes) else str(kind)
    return forms


def _matrix_hdf5(path: Path, name: str) -> Rows:
    import h5py

    with h5py.File(path, "r") as file:
        node = file[name]
        if isinstance(node, h5py.Group):
            starts = node["jc"][()]
            shape = (int(node.attrs["MATLAB_sparse"]), len(starts) - 1)
            if "data" not in node:
                return sparse.csc_array(shape)
            return sparse.csc_array((node["data"][()], node["ir"][()], starts), shape=shape)
        if node.ndim != 2:
            return np.asarray(node[()]).T
        # MATLAB stores by columns: turned a few rows at a time.
        rows = np.empty(node.shape[::-1], dtype=node.dtype)
        step = max(BLOCK_BYTES // max(rows[:1].nbytes, 1), 1)
        for start in range(0, len(rows), step):
            rows[start : start + step] = node[:, start : start + step].T
        return rows


def _vector_hdf5(path: Path, name: str) -> Any:
    import h5py

    with h5py.File(path, "r") as file:
        node = file[name]
        if node.attrs.get("MATLAB_class") == b"char":
            return [_letters(row).rstrip() for row in node[()].T]
        found = np.ravel(node[()])
        # A cell array of words: each is a reference to the codes of its letters.
        return [_letters(file[cell][()]) for cell in found] if found.dtype == object else found


def _letters(codes: Any) -> str:
    return "".join(map(chr, np.ravel(codes)))
