"""Matrices in AnnData's .h5ad files and in Zarr stores, piece by piece: dense, or sparse by rows.

Both keep arrays in chunks, in groups with attributes, and AnnData writes the same groups into either.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from standout._arrays import Array, Rows
from standout._validation import check_variable, reject_table, require_extra
from standout.io._from_array import as_csr, as_values, check_array_form, precision
from standout.io._h5ad import check_anndata, form_of, index_of, matrices_of
from standout.io._pieces import Form, Head, Pieces
from standout.io._reading import attempt, attempted
from standout.io._words import words_of_array
from standout.io._zarr_chunks import rows_of_zarr


class MatrixPieces(Pieces):
    """A file that holds a matrix, and perhaps names of its columns."""

    takes_variable = True
    kind: ClassVar[str]

    @abstractmethod
    def _matrix(self) -> AbstractContextManager[tuple[Any, list[str] | None]]:
        """Open the file, and give its matrix and the names of its columns."""

    def head(self) -> Head:
        """Look at the shape and read the names."""
        with self._matrix() as (node, names):
            (n_rows, width), dtype = self._shape(node)
            if names is not None and len(names) != width:
                reject_table(self.source, f"it names {len(names)} columns, but has {width}", "Write the file again.")
            return Head(names, width, n_rows)

    def form(self, features: Sequence[int]) -> Form:
        """Look at the type, at how full a sparse matrix is, and at how a dense one is cut into chunks."""
        with self._matrix() as (node, _):
            (n_rows, _), found = self._shape(node)
            dtype = np.dtype(precision(found))
            if not hasattr(node, "shape"):
                stored = attempt(lambda: node["indices"].dtype.itemsize * node["data"].shape[0], self.source, self.kind)
                return Form(dtype, 2 * stored // max(n_rows, 1) + 8)
            chunks = node.chunks
            return Form(dtype, dtype.itemsize * len(features), chunks[0] if chunks else 1)

    def batches(self, features: Sequence[int], form: Form, n_rows: int, start: int) -> Generator[Rows]:
        """Give batches of rows, sparse ones of a sparse matrix."""
        with self._matrix() as (node, _):
            (end, width), _ = self._shape(node)
            read = self._read if hasattr(node, "shape") else partial(self._read_sparse, width)
            found = (
                as_values(read(node, first, min(first + n_rows, end)), features) for first in range(start, end, n_rows)
            )
            yield from attempted(found, self.source, self.kind)

    def _read(self, array: Any, start: int, stop: int) -> Array:
        return np.asarray(array[start:stop])

    def _read_sparse(self, width: int, node: Any, start: int, stop: int) -> Rows:
        ends = self._read(node["indptr"], start, stop + 1)
        first, last = int(ends[0]), int(ends[-1])
        parts = (self._read(node["data"], first, last), self._read(node["indices"], first, last), ends - first)
        return as_csr(sparse.csr_array(parts, shape=(stop - start, width)))

    def _shape(self, node: Any) -> tuple[tuple[int, int], Any]:
        shape, dtype = attempt(lambda: form_of(node), self.source, self.kind)
        check_array_form(shape, dtype, self.source)
        if not hasattr(node, "shape") and node.attrs.get("encoding-type") == "csc_matrix":
            reject_table(
                self.source,
                "its matrix is stored by columns (CSC), so that no row can be read without all others",
                "Write it by rows (CSR), or read it as a whole with read_table.",
            )
        return (int(shape[0]), int(shape[1])), dtype


@dataclass(frozen=True)
class H5adPieces(MatrixPieces):
    """X, a layer or "raw" of an .h5ad file."""

    kind = "h5ad"

    @contextmanager
    def _matrix(self) -> Iterator[tuple[Any, list[str] | None]]:
        require_extra("h5py", "h5ad", "reading .h5ad files")
        import h5py

        with attempt(lambda: h5py.File(self.path, "r"), self.source, self.kind) as file:
            check_anndata(file, self.source)
            matrices = attempt(lambda: matrices_of(file), self.source, self.kind)
            node, var = matrices[check_variable(self.variable or "X", [], list(matrices), self.source)]
            yield node, attempt(lambda: words_of_array(index_of(var)).tolist(), self.source, self.kind)


@dataclass(frozen=True)
class ZarrPieces(MatrixPieces):
    """A Zarr array, or a matrix in a Zarr group: the only one, or the one that is named; AnnData's groups too."""

    kind = "zarr"

    @contextmanager
    def _matrix(self) -> Iterator[tuple[Any, list[str] | None]]:
        require_extra("zarr", "zarr", "reading Zarr stores")
        import zarr

        node = attempt(lambda: zarr.open(str(self.path), mode="r"), self.source, self.kind)
        if hasattr(node, "shape"):
            yield node, None
            return
        matrices = attempt(lambda: _matrices_of_group(node), self.source, self.kind)
        candidates = ["X"] if "X" in matrices else list(matrices)
        found, var = matrices[check_variable(self.variable, candidates, list(matrices), self.source)]
        yield found, None if var is None else attempt(lambda: self._names(var), self.source, self.kind)

    def _read(self, array: Any, start: int, stop: int) -> Array:
        return rows_of_zarr(array, self.path, start, stop)

    def _names(self, var: Any) -> list[str]:
        index = var[var.attrs["_index"]]
        return [str(name) for name in self._read(index, 0, index.shape[0]).tolist()]


def _matrices_of_group(group: Any) -> dict[str, tuple[Any, Any]]:
    """Say which matrices there are, and what names the columns of each, if anything does."""
    if "obs" in group and "var" in group:
        return matrices_of(group)
    return {name: (array, None) for name, array in sorted(group.arrays()) if len(array.shape) == 2}
