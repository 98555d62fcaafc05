"""Matrices in AnnData's .h5ad files and in Zarr stores, dense or sparse; and a backed AnnData in memory.

Both formats keep arrays in chunks, in groups with attributes, and AnnData writes the same groups into either. Only what
is asked for is read, and a sparse matrix stays one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import ceil
from pathlib import Path
from struct import unpack
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from standout._arrays import Array, Rows, dense, is_sparse
from standout._checks import as_rows
from standout._messages import InvalidValueError, require_extra
from standout.io._reader import (
    Form,
    Head,
    Part,
    Reader,
    Wanted,
    ahead,
    as_csr,
    as_values,
    as_words,
    form_of_matrix,
    precision,
    words_of_array,
)
from standout.sources import Batch, Source

Slices = Callable[[int, int], Any]
"""A function that reads the values of consecutive rows."""
# How full a sparse matrix of a backed AnnData is taken to be when its rows are cut into batches.
FULLNESS = 0.1


@dataclass(frozen=True)
class _Opened:
    """An open file: the matrix that is meant, and AnnData's groups that describe its columns and rows, if any."""

    matrix: Any
    var: Any = None
    obs: Any = None


class MatrixReader(Reader):
    """A file that holds a matrix, and perhaps names of its columns and vectors beside its rows."""

    takes_variable = True
    kind: ClassVar[str]

    @abstractmethod
    def _opened(self) -> AbstractContextManager[_Opened]:
        """Open the file."""

    def head(self) -> Head:
        """Look at the shape and read the names of the columns."""
        with self._opened() as file:
            (n_rows, width), _ = self._shape(file.matrix)
            if file.var is None:
                return Head(None, width, n_rows)
            names = self.attempt(lambda: self._names(file.var))
            if len(names) != width:
                problem = "it names {n_names} columns, but has {limit}"
                self.refuse(problem, "Write the file again.", n_names=len(names), limit=width)
            beside = self.attempt(lambda: tuple(str(name) for name in file.obs.keys()))  # noqa: SIM118
            return Head(names, width, n_rows, beside=beside, has_ids=True)

    def form(self, features: Sequence[int]) -> Form:
        """Look at the type, at how full a sparse matrix is, and at how a dense one is cut into chunks."""
        with self._opened() as file:
            node = file.matrix
            (n_rows, _), dtype = self._shape(node)
            if not hasattr(node, "shape"):
                return form_of_matrix(dtype, len(features), n_rows=n_rows, n_stored=node["data"].shape[0])
            return form_of_matrix(dtype, len(features), chunk_rows=node.chunks[0] if node.chunks else 1)

    def check_in_parts(self) -> None:
        """Refuse a sparse matrix that is stored by columns."""
        with self._opened() as file:
            if _is_by_columns(file.matrix):
                self.refuse(
                    "its matrix is stored by columns (CSC), so that no row can be read without all others",
                    "Write it by rows (CSR), or read it as a whole with read_table.",
                )

    def batches(self, wanted: Wanted, form: Form, n_rows: int, start: int) -> Generator[Part]:
        """Give batches of rows, sparse ones of a sparse matrix."""
        with self._opened() as file:
            (end, width), _ = self._shape(file.matrix)
            columns = {role: self._words(file, name, end) for role, name in wanted.words.items()}
            read: Slices = _no_columns
            if wanted.features:
                read = self.attempt(lambda: self._row_reader(file.matrix, width))

            def part(first: int) -> Part:
                last = min(first + n_rows, end)
                words = {role: words_of_array(of_rows(first, last)) for role, of_rows in columns.items()}
                return as_values(read(first, last), wanted.features), words

            yield from self.attempted(map(part, range(start, end, n_rows)))

    def _row_reader(self, node: Any, width: int) -> Slices:
        """Give the function that reads consecutive rows of a matrix."""
        if hasattr(node, "shape"):
            return partial(self._read, node)
        if _is_by_columns(node):
            parts = tuple(self._read(node[name], 0, node[name].shape[0]) for name in ("data", "indices", "indptr"))
            whole = as_csr(sparse.csc_array(parts, shape=tuple(node.attrs["shape"])))
            return lambda start, stop: whole[start:stop]
        return partial(self._read_csr, node, width)

    def _read(self, array: Any, start: int, stop: int) -> Array:
        return np.asarray(array[start:stop])

    def _read_csr(self, node: Any, width: int, start: int, stop: int) -> Rows:
        ends = self._read(node["indptr"], start, stop + 1)
        first, last = int(ends[0]), int(ends[-1])
        parts = (self._read(node["data"], first, last), self._read(node["indices"], first, last), ends - first)
        return as_csr(sparse.csr_array(parts, shape=(stop - start, width)))

    def _shape(self, node: Any) -> tuple[tuple[int, int], Any]:
        shape, dtype = self.attempt(lambda: _form_of(node))
        self.check_array_form(shape, dtype)
        return (int(shape[0]), int(shape[1])), dtype

    def _words(self, file: _Opened, name: str, n_rows: int) -> Slices:
        """Find the words of the rows: names of rows, a column of obs, or a column of the matrix."""
        if file.obs is not None and name == "":
            node = self.attempt(lambda: file.obs[file.obs.attrs["_index"]])
        elif file.obs is not None and name in file.obs:
            node = file.obs[name]
        else:
            place = int(name.removeprefix("x")) if file.var is None else self._names(file.var).index(name)
            (_, width), _ = self._shape(file.matrix)
            return partial(_column, self._row_reader(file.matrix, width), place)
        found, length = self.attempt(lambda: self._vector(node))
        self.check_length(length, n_rows, name or "obs_names")
        return found

    def _names(self, var: Any) -> list[str]:
        """Read the names of the columns."""
        found, length = self._vector(var[var.attrs["_index"]])
        return words_of_array(found(0, length)).tolist()

    def _vector(self, node: Any) -> tuple[Slices, int]:
        """Give a function that reads a slice of a column of obs or var, whatever its encoding, and its length."""
        if hasattr(node, "shape"):
            # HDF5 has strings as bytes, Zarr as strings.
            is_text = hasattr(node, "asstr") and node.dtype.kind in "OS"
            return partial(self._read, node.asstr() if is_text else node), int(node.shape[0])
        if "codes" in node:
            found, length = self._vector(node["categories"])
            # The last one stands for a missing value, whose code is -1.
            known = as_words([*words_of_array(found(0, length)), ""])
            codes, n_rows = self._vector(node["codes"])
            return lambda first, last: known[codes(first, last)], n_rows
        values, n_rows = self._vector(node["values"])
        masks, _ = self._vector(node["mask"])

        def masked(first: int, last: int) -> Any:
            words = words_of_array(values(first, last))
            words[np.asarray(masks(first, last), dtype=bool)] = ""
            return words

        return masked, n_rows


@dataclass(frozen=True)
class H5adReader(MatrixReader):
    """X, a layer or "raw" of an .h5ad file; obs has ids, labels and groups."""

    kind = "h5ad"

    @contextmanager
    def _opened(self) -> Iterator[_Opened]:
        require_extra("h5py", "h5ad", "reading .h5ad files")
        import h5py

        with self.attempt(lambda: h5py.File(self.path, "r")) as file:
            has_groups = lambda: all(hasattr(file.get(part), "keys") for part in ("obs", "var"))  # noqa: E731
            if not self.attempt(has_groups):
                self.refuse(
                    "it has no groups 'obs' and 'var', as AnnData writes them since version 0.7",
                    "Write it again with a newer version of anndata.",
                )
            matrices = self.attempt(lambda: _anndata_matrices(file))
            matrix, var = matrices[self.choose_variable([name for name in matrices if name == "X"], list(matrices))]
            yield _Opened(matrix, var, file["obs"])


@dataclass(frozen=True)
class ZarrReader(MatrixReader):
    """A Zarr array, or a matrix in a Zarr group: the only one, or the one that is named; AnnData's groups too."""

    kind = "zarr"

    @contextmanager
    def _opened(self) -> Iterator[_Opened]:
        require_extra("zarr", "zarr", "reading Zarr stores")
        import zarr

        node = self.attempt(lambda: zarr.open(str(self.path), mode="r"))
        if hasattr(node, "shape"):
            yield _Opened(node)
            return
        is_anndata = self.attempt(lambda: "obs" in node and "var" in node)
        matrices = self.attempt(lambda: _anndata_matrices(node) if is_anndata else _arrays_of(node))
        candidates = ["X"] if "X" in matrices else list(matrices)
        matrix, var = matrices[self.choose_variable(candidates, list(matrices))]
        yield _Opened(matrix, var, node["obs"] if is_anndata else None)

    def _read(self, array: Any, start: int, stop: int) -> Array:
        _check_blosc_chunks(array, self.path, start, stop)
        return np.asarray(array[start:stop])


def _column(read: Slices, place: int, first: int, last: int) -> Any:
    """Give a column of consecutive rows."""
    return dense(read(first, last)[:, [place]]).ravel()


def _no_columns(first: int, last: int) -> Array:
    """Stand for rows of which no column is wanted."""
    return np.empty((last - first, 0))


def _anndata_matrices(file: Any) -> dict[str, tuple[Any, Any]]:
    """Name the matrices that there are, each with the group that names its columns."""
    found = {"X": (file["X"], file["var"])} if "X" in file else {}
    layers = file.get("layers", {})
    # By keys, which groups of HDF5 and of Zarr both have.
    found |= {str(name): (layers[name], file["var"]) for name in layers.keys()}  # noqa: SIM118
    return found | ({"raw": (file["raw/X"], file["raw/var"])} if "raw/X" in file else {})


def _arrays_of(group: Any) -> dict[str, tuple[Any, Any]]:
    return {name: (array, None) for name, array in sorted(group.arrays()) if len(array.shape) == 2}


def _form_of(node: Any) -> tuple[tuple[int, ...], Any]:
    """Give shape and type of a matrix, dense or sparse."""
    if hasattr(node, "shape"):
        return node.shape, node.dtype
    return tuple(int(size) for size in node.attrs["shape"]), node["data"].dtype


def _is_by_columns(node: Any) -> bool:
    return not hasattr(node, "shape") and node.attrs.get("encoding-type") == "csc_matrix"


def _check_blosc_chunks(array: Any, store: Path, start: int, stop: int) -> None:
    """Raise EOFError if a chunk that is about to be read was cut short.

    The decoder of Blosc trusts the length that a chunk states of itself and reads on in memory behind its end: it then
    gives wrong numbers without a word (https://github.com/zarr-developers/numcodecs/issues/228, open in numcodecs 0.16;
    https://github.com/zarr-developers/numcodecs/pull/854 mends it). Other codecs notice, and a shard has a checksum.
    """
    codecs = (*array.filters, *array.compressors)
    if array.shards is not None or not codecs or "blosc" not in type(codecs[-1]).__name__.lower():
        return
    last = [ceil(size / chunk) for size, chunk in zip(array.shape[1:], array.chunks[1:], strict=True)]
    touched = range(start // array.chunks[0], ceil(stop / array.chunks[0]))
    for place in product(touched, *map(range, last)):
        chunk = store / f"{array.path}/{array.metadata.encode_chunk_key(place)}".lstrip("/")
        # A chunk that was never written stands for the fill value.
        if chunk.is_file():
            with chunk.open("rb") as file:
                header, found = file.read(16), file.seek(0, 2)
            # The last number of the header is the length of the chunk, header included.
            stated = unpack("<4B3I", header)[-1] if len(header) == 16 else 16
            if found < stated:
                raise EOFError(f"the chunk {chunk.name!r} ends after {found:,} of {stated:,} bytes")


class BackedRows(Source):
    """Some rows and columns of the matrix of a backed AnnData, read in slices of rows and never as a whole."""

    def __init__(self, matrix: Any, rows: npt.NDArray[np.bool_] | None, columns: npt.NDArray[np.bool_] | None) -> None:
        if getattr(matrix, "format", "csr") == "csc":
            raise InvalidValueError(
                "adata.X is backed by a file that has it by columns (CSC), so that no row can be read without all "
                "others",
                advice="Write it by rows (CSR), or load it with adata.to_memory().",
            )
        self._matrix = matrix
        self._rows = np.ones(matrix.shape[0], dtype=bool) if rows is None else rows
        self._columns = None if columns is None else np.flatnonzero(columns)
        self.n_rows = int(self._rows.sum())
        self.width = matrix.shape[1] if self._columns is None else len(self._columns)

    def batches(self) -> Iterator[Batch]:
        """Give one batch after the other, each checked."""
        start = 0
        with closing(self._slices()) as slices:
            for number, found in enumerate(ahead(slices), start=1):
                rows = as_rows(found, f"batch {number} of {self.name}", min_rows=0, finite=True)
                yield Batch(rows, start)
                start += rows.shape[0]

    def _slices(self) -> Generator[Rows]:
        step = self._step()
        for start in range(0, len(self._rows), step):
            wanted = self._rows[start : start + step]
            # Cells of a group often stand together: slices without any of them are not read.
            if not wanted.any():
                continue
            found = self._matrix[start : start + step]
            found = found if wanted.all() else found[np.flatnonzero(wanted)]
            found = found if self._columns is None else found[:, self._columns]
            yield found if is_sparse(found) else np.ascontiguousarray(found, dtype=precision(found.dtype))

    def _step(self) -> int:
        dtype, width = self._matrix.dtype, self._matrix.shape[1]
        if hasattr(self._matrix, "format"):
            return form_of_matrix(dtype, width, n_stored=int(FULLNESS * width)).batch_rows()
        chunks = getattr(self._matrix, "chunks", None)
        return form_of_matrix(dtype, width, chunk_rows=chunks[0] if chunks else 1).batch_rows()
