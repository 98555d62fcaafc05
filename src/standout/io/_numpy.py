"""NumPy's own files: .npy and .npz, and the sparse matrices that SciPy keeps in the latter."""

from __future__ import annotations

import zipfile
from abc import abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from standout._arrays import Array, Rows, dense
from standout.io._reader import (
    Form,
    Head,
    Part,
    Reader,
    Wanted,
    as_csr,
    as_values,
    form_of_matrix,
    is_all,
    words_of_array,
)


class WholeReader(Reader):
    """One array that is read as a whole; vectors beside it can be ids, labels and groups."""

    takes_variable = True

    @abstractmethod
    def _array(self) -> Rows:
        """Read the array."""

    @abstractmethod
    def _vector(self, name: str) -> Any:
        """Read a vector beside it."""

    def batches(self, wanted: Wanted, form: Form, n_rows: int, start: int) -> Generator[Part]:
        """Read the array, and give it in batches."""
        array, beside, words = self._array(), self.head().beside, {}
        for role, name in wanted.words.items():
            if name in beside:
                words[role] = self.attempt(lambda name=name: words_of_array(self._vector(name)))  # type: ignore[misc]
                self.check_length(len(words[role]), array.shape[0], name)
            else:
                words[role] = words_of_array(dense(array[:, [int(name.removeprefix("x"))]]).ravel())
        for first in range(start, array.shape[0], n_rows):
            some = slice(first, first + n_rows)
            yield as_values(array[some], wanted.features), {role: values[some] for role, values in words.items()}


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

    kind = "npy"

    def head(self) -> Head:
        """Read the header."""
        stored = self._stored()
        return Head(None, stored.shape[1], stored.shape[0])

    def form(self, features: Sequence[int]) -> Form:
        """Look at the type in the header."""
        return form_of_matrix(self._stored().dtype, len(features))

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
        shape, by_columns, dtype, offset = self.attempt(lambda: _header_of_file(self.path))
        self.check_array_form(shape, dtype)
        expected, found = offset + shape[0] * shape[1] * dtype.itemsize, self.path.stat().st_size
        if found < expected:
            problem = "it ends after {found} bytes, but an array of shape {shape} takes {limit}"
            self.refuse(problem, "Write the file again.", found=found, shape=shape, limit=expected)
        return _Stored(shape, by_columns, dtype, offset)


@dataclass(frozen=True)
class NpzReader(WholeReader):
    """One array, dense or sparse, in an .npz file."""

    kind = "npz"

    def head(self) -> Head:
        """Look at the shapes of the arrays."""
        forms, name = self._chosen()
        shape, dtype = forms[name]
        self.check_array_form(shape, dtype)
        vectors = [other for other, (sizes, _) in forms.items() if len(sizes) == 1]
        return Head(None, shape[1], shape[0], beside=tuple(vectors) if name else ())

    def form(self, features: Sequence[int]) -> Form:
        """Look at the type of the array."""
        forms, name = self._chosen()
        (n_rows, _), dtype = forms[name]
        return form_of_matrix(dtype, len(features), n_rows=n_rows, n_stored=None if name else forms["data"][0][0])

    def _array(self) -> Rows:
        _, name = self._chosen()
        return self.attempt(lambda: self._vector(name) if name else as_csr(sparse.load_npz(self.path)))

    def _vector(self, name: str) -> Any:
        # Opened here, because NumPy leaves a file open whose archive turns out to be damaged.
        with self.path.open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
            return np.asarray(stored[name])

    def _chosen(self) -> tuple[dict[str, tuple[tuple[int, ...], Any]], str]:
        """Give the forms of all arrays, and the name of the one that is meant: "" for the sparse one that they make."""
        forms = self.attempt(lambda: _forms(self.path))
        if {"format", "shape", "data"} <= set(forms) and self.variable is None:
            shape = self.attempt(lambda: tuple(int(size) for size in self._vector("shape")))
            return {"": (shape, forms["data"][1]), **forms}, ""
        tables = [name for name, (shape, dtype) in forms.items() if len(shape) == 2 and dtype.kind in "biuf"]
        return forms, self.choose_variable(tables, list(forms))


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
