"""MATLAB's files: up to version 7 by SciPy, version 7.3 (which is HDF5) by h5py. They are read as a whole."""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from standout._arrays import BLOCK_BYTES, Rows, is_sparse
from standout._messages import require_extra
from standout.io._numpy import WholeReader
from standout.io._reader import Form, Head, as_csr, form_of_matrix

NUMERIC = (
    "double",
    "single",
    "logical",
    "sparse",
    *(f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64)),
)
Forms = dict[str, tuple[tuple[int, ...], str]]


@dataclass(frozen=True)
class MatReader(WholeReader):
    """One matrix of a .mat file."""

    kind = "mat"

    def head(self) -> Head:
        """Look at the shapes of the variables, and at the matrix that is meant."""
        forms, name = self._chosen
        shape, kind = forms[name]
        if kind == "sparse":
            # Only reading it tells the shape of a sparse matrix of version 7.3.
            shape = self._matrix.shape
        self.check_array_form(shape, np.dtype(np.float64) if kind in NUMERIC else np.dtype(object))
        return Head(None, shape[1], shape[0], beside=tuple(self._beside(shape[0])))

    def form(self, features: Sequence[int]) -> Form:
        """Look at the type of the matrix."""
        self.check_array_form(self._matrix.shape, self._matrix.dtype)
        return form_of_matrix(self._matrix.dtype, len(features))

    def _array(self) -> Rows:
        return self._matrix

    def _vector(self, name: str) -> Any:
        return _vector_hdf5(self.path, name) if _is_hdf5(self.path) else _vector(self.path, name)

    @cached_property
    def _chosen(self) -> tuple[Forms, str]:
        is_hdf5 = _is_hdf5(self.path)
        if is_hdf5:
            require_extra("h5py", "h5ad", "reading .mat files of version 7.3")
        forms = self.attempt(lambda: _forms_hdf5(self.path) if is_hdf5 else _forms(self.path))
        numeric = [name for name, (shape, kind) in forms.items() if len(shape) == 2 and kind in NUMERIC]
        # Vectors only if there is nothing else.
        candidates = [name for name in numeric if min(forms[name][0]) > 1] or numeric
        return forms, self.choose_variable(candidates, list(forms))

    @cached_property
    def _matrix(self) -> Rows:
        read = _matrix_hdf5 if _is_hdf5(self.path) else _matrix
        array = self.attempt(lambda: read(self.path, self._chosen[1]))
        return self.attempt(lambda: as_csr(array)) if is_sparse(array) else array

    def _beside(self, n_rows: int) -> list[str]:
        """Name the vectors with one value per row: in MATLAB these are matrices, and words can be one of letters."""
        forms, chosen = self._chosen
        return [
            name
            for name, (shape, kind) in forms.items()
            if name != chosen
            and (
                (kind == "char" and shape[:1] == (n_rows,)) or (len(shape) == 2 and n_rows in shape and min(shape) == 1)
            )
        ]

    def __getstate__(self) -> dict[str, Any]:
        # The matrix is not sent to other processes: they read the file.
        return {name: value for name, value in self.__dict__.items() if name in ("path", "source", "variable")}


def _is_hdf5(path: Path) -> bool:
    with path.open("rb") as opened:
        head = opened.read(520)
    # MATLAB writes 512 bytes of its own before; other writers of HDF5 do not.
    return b"\x89HDF" in (head[:4], head[512:516])


# --- up to version 7 -------------------------------------------------------------------------------------------------


def _forms(path: Path) -> Forms:
    from scipy import io

    _check_tags(path)
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


def _check_tags(path: Path) -> None:
    """Raise a ValueError if a part of the file is of an unknown type.

    SciPy looks up the type of each part in a table without checking that it is in there: one wrong byte can end the
    whole program (https://github.com/scipy/scipy/pull/25829, open in SciPy 1.17).
    """
    known = frozenset([1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 14, 16, 17, 18])
    with path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        # Version 4 has no header and no types; anything else is left to SciPy as well.
        if data[126:128] not in (b"IM", b"MI"):
            return
        order = "<" if data[126:128] == b"IM" else ">"
        place = 128
        while place + 8 <= len(data):
            kind, size = struct.unpack(f"{order}II", data[place : place + 8])
            head = data[place : place + 4096]
            if kind == 15:  # compressed
                head = zlib.decompressobj().decompress(data[place + 8 : place + 8 + min(size, 2**16)], 4096)
            kinds = _kinds(head, order)
            if kinds[:1] != [14] or not known.issuperset(kinds):
                raise ValueError(f"the variable at byte {place} has parts of unknown types")
            place += 8 + size


def _kinds(head: bytes, order: str) -> list[int]:
    """Give the types of the parts of a variable: itself, flags, shape, name and numbers."""
    kinds = [struct.unpack(f"{order}I", head[:4])[0]] if len(head) >= 8 else []
    position = 8
    while len(kinds) < 5 and position + 8 <= len(head):
        kind, size = struct.unpack(f"{order}II", head[position : position + 8])
        # Up to four bytes are stored in the tag itself, with their number in its upper half.
        is_short = kind >> 16 != 0
        kinds.append(kind & 0xFFFF if is_short else kind)
        position += 8 if is_short else 8 + -(-size // 8) * 8
    return kinds


# --- version 7.3 -----------------------------------------------------------------------------------------------------


def _forms_hdf5(path: Path) -> Forms:
    import h5py

    forms: Forms = {}
    with h5py.File(path, "r") as file:
        for name in file:
            # A link may lead nowhere.
            node = file.get(name)
            if node is None:
                continue
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
