"""NumPy's own files: .npy and .npz, and the sparse matrices that SciPy keeps in the latter."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from standout._arrays import Array, Rows, is_sparse
from standout.io._reader import (
    Form,
    Head,
    Part,
    Reader,
    Wanted,
    as_csr,
    as_values,
    attempt,
    check_array_form,
    choose_variable,
    is_all,
    precision,
    unusable,
    words_beside,
    words_of_array,
)

# A matrix whose names would fill the memory is no table: a file of a few bytes can claim any width.
MOST_COLUMNS = 10**7


def parts_of_array(
    array: Rows,
    beside: Mapping[str, Callable[[], Any]],
    wanted: Wanted,
    form: Form,
    n_rows: int,
    start: int,
    source: str,
    kind: str,
) -> Generator[Part]:
    """Give batches of an array that was read as a whole, with words from its own columns and from vectors beside it."""
    names = {f"x{number}": number for number in range(array.shape[1])} if wanted.words else {}
    words = {
        role: words_beside(beside[name], name, array.shape[0], source, kind)
        if name in beside
        else words_of_array(_column(array, names[name]))
        for role, name in wanted.words.items()
    }
    for first in range(start, array.shape[0], n_rows):
        some = slice(first, first + n_rows)
        yield as_values(array[some], wanted.features), {role: values[some] for role, values in words.items()}


def form_of_array(array: Any, features: Sequence[int]) -> Form:
    """Say in which form the columns of an array are."""
    dtype = np.dtype(precision(array.dtype))
    size = (array.nnz * (dtype.itemsize + 4)) // max(array.shape[0], 1) + 8 if is_sparse(array) else None
    return Form(dtype, dtype.itemsize * len(features) if size is None else size)


def _column(array: Rows, position: int) -> Array:
    return np.asarray(array[:, [position]].todense()).ravel() if is_sparse(array) else array[:, position]


def check_width(shape: Sequence[int], source: Any) -> None:
    """Refuse a width that no memory has room for, before anything of that size is made."""
    if len(shape) == 2 and shape[1] > MOST_COLUMNS:
        unusable(
            source,
            "it has {width} columns, but the most that are read is {limit}",
            "Give a table, one row per sample.",
            width=shape[1],
            limit=MOST_COLUMNS,
        )


@dataclass(frozen=True)
class _Stored:
    """Where the numbers of an .npy file are: bytes before the first one, and whether column stands after column."""

    shape: tuple[int, int]
    by_columns: bool
    dtype: Any
    offset: int


@dataclass(frozen=True)
class NpyReader(Reader):
    """An array in an .npy file, in C or Fortran order.

    It is read, not mapped: pages of a mapped file count as memory in use, and would seem to grow with the file.
    """

    def head(self) -> Head:
        """Read the header."""
        stored = self._stored()
        return Head(None, stored.shape[1], stored.shape[0])

    def form(self, features: Sequence[int]) -> Form:
        """Look at the type in the header."""
        dtype = np.dtype(precision(self._stored().dtype))
        return Form(dtype, dtype.itemsize * len(features))

    def batches(self, wanted: Wanted, form: Form, n_rows: int, start: int) -> Generator[Part]:
        """Give batches of rows."""
        stored = self._stored()
        read = _by_columns if stored.by_columns else _by_rows
        words = {role: int(name.removeprefix("x")) for role, name in wanted.words.items()}
        needed = list(dict.fromkeys([*wanted.features, *words.values()]))
        n_features = len(wanted.features)
        whole = is_all(needed, stored.shape[1])
        with self.path.open("rb") as file:
            for first in range(start, stored.shape[0], n_rows):
                rows = read(file, stored, first, min(n_rows, stored.shape[0] - first), None if whole else needed)
                said = {role: words_of_array(rows[:, needed.index(place)]) for role, place in words.items()}
                chosen = rows if len(needed) == n_features else rows[:, :n_features]
                yield chosen.astype(form.dtype, order="K", copy=False), said

    def _stored(self) -> _Stored:
        shape, by_columns, dtype, offset = attempt(lambda: _header_of_file(self.path), self.source, "npy")
        check_array_form(shape, dtype, self.source)
        expected = offset + shape[0] * shape[1] * dtype.itemsize
        found = self.path.stat().st_size
        if found < expected:
            unusable(
                self.source,
                "it ends after {found} bytes, but an array of shape {shape} takes {limit}",
                "Write the file again.",
                found=found,
                shape=shape,
                limit=expected,
            )
        return _Stored(shape, by_columns, dtype, offset)


@dataclass(frozen=True)
class NpzReader(Reader):
    """One array, dense or sparse, in an .npz file, read as a whole; vectors beside it can be ids, labels and groups."""

    takes_variable = True

    def head(self) -> Head:
        """Look at the shapes of the arrays."""
        forms, name = self._chosen()
        if name is None:
            shape = attempt(lambda: tuple(int(size) for size in _member(self.path, "shape")), self.source, "npz")
            check_width(shape, self.source)
            dtype = forms["data"][1]
            beside: tuple[str, ...] = ()
        else:
            shape, dtype = forms[name]
            beside = tuple(other for other, (sizes, _) in forms.items() if len(sizes) == 1)
        check_array_form(shape, dtype, self.source)
        return Head(None, shape[1], shape[0], beside=beside)

    def form(self, features: Sequence[int]) -> Form:
        """Look at the type of the array."""
        forms, name = self._chosen()
        shape, found = forms["data" if name is None else name]
        dtype = np.dtype(precision(found))
        if name is None:
            # Of a sparse matrix, each value has the number of its column with it.
            n_rows = attempt(lambda: int(_member(self.path, "shape")[0]), self.source, "npz")
            return Form(dtype, shape[0] * (dtype.itemsize + 4) // max(n_rows, 1) + 8)
        return Form(dtype, dtype.itemsize * len(features))

    def batches(self, wanted: Wanted, form: Form, n_rows: int, start: int) -> Generator[Part]:
        """Read the array, and give it in batches."""
        forms, name = self._chosen()
        if name is None:
            array = attempt(lambda: as_csr(sparse.load_npz(self.path)), self.source, "npz")
        else:
            array = attempt(lambda: _member(self.path, name), self.source, "npz")
        beside = {other: partial(_member, self.path, other) for other, (sizes, _) in forms.items() if len(sizes) == 1}
        yield from parts_of_array(array, beside, wanted, form, n_rows, start, self.source, "npz")

    def _chosen(self) -> tuple[dict[str, tuple[tuple[int, ...], Any]], str | None]:
        """Give the forms of all arrays, and the one that is meant: None for the sparse matrix that they make."""
        forms = attempt(lambda: _forms(self.path), self.source, "npz")
        if {"format", "shape", "data"} <= set(forms) and self.variable is None:
            return forms, None
        tables = [name for name, (shape, dtype) in forms.items() if len(shape) == 2 and dtype.kind in "biuf"]
        return forms, choose_variable(self.variable, tables, list(forms), self.source)


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
                    shape, _, dtype = _header(opened)
                    forms[member.removesuffix(".npy")] = shape, dtype
    return forms


def _header(opened: Any) -> tuple[tuple[int, ...], bool, Any]:
    """Read shape, order (whether that of Fortran) and type of an array, up to where its numbers begin."""
    version = np.lib.format.read_magic(opened)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(opened)


def _header_of_file(path: Path) -> tuple[Any, bool, Any, int]:
    with path.open("rb") as file:
        shape, by_columns, dtype = _header(file)
        return shape, by_columns, dtype, file.tell()


def _by_rows(file: IO[bytes], stored: _Stored, first: int, count: int, features: list[int] | None) -> Array:
    width = stored.shape[1]
    file.seek(stored.offset + first * width * stored.dtype.itemsize)
    rows = np.fromfile(file, stored.dtype, count * width).reshape(count, width)
    return rows if features is None else rows[:, features]


def _by_columns(file: IO[bytes], stored: _Stored, first: int, count: int, features: list[int] | None) -> Array:
    chosen = range(stored.shape[1]) if features is None else features
    columns = np.empty((len(chosen), count), dtype=stored.dtype)
    for position, column in enumerate(chosen):
        file.seek(stored.offset + (column * stored.shape[0] + first) * stored.dtype.itemsize)
        columns[position] = np.fromfile(file, stored.dtype, count)
    return columns.T
