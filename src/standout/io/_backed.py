"""Rows of a matrix that stays in its file: what a backed AnnData has for X."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import Rows, is_sparse
from standout._validation import as_rows, reject_by_columns
from standout.io._ahead import ahead
from standout.io._from_array import precision
from standout.io._pieces import Form
from standout.sources import Stream

# How full a sparse matrix is taken to be when its rows are cut into batches.
FULLNESS = 0.1


class BackedRows(Stream):
    """Some rows and columns of a matrix on disk, read in slices of rows and never as a whole.

    Parameters
    ----------
    matrix : h5py.Dataset or sparse dataset of anndata
        Whatever has a shape and a dtype and can be sliced by rows.
    rows : ndarray of bool, or None for all
    columns : ndarray of bool, or None for all
    """

    def __init__(self, matrix: Any, rows: npt.NDArray[np.bool_] | None, columns: npt.NDArray[np.bool_] | None) -> None:
        reject_by_columns(getattr(matrix, "format", "csr"))
        self._matrix = matrix
        self._rows = np.ones(matrix.shape[0], dtype=bool) if rows is None else rows
        self._columns = None if columns is None else np.flatnonzero(columns)
        self.n_rows = int(self._rows.sum())
        self.width = matrix.shape[1] if self._columns is None else len(self._columns)

    def parts(self) -> Iterator[Rows]:
        """Give one batch after the other, each checked."""
        with closing(self._slices()) as slices:
            for number, rows in enumerate(ahead(slices), start=1):
                yield as_rows(rows, f"batch {number} of {self.name}", min_rows=0, finite=True)

    def _slices(self) -> Generator[Rows]:
        step = self._step()
        for start in range(0, len(self._rows), step):
            wanted = self._rows[start : start + step]
            # Cells of a group often stand together: what has none of them is not read.
            if not wanted.any():
                continue
            found = self._matrix[start : start + step]
            found = found if wanted.all() else found[np.flatnonzero(wanted)]
            found = found if self._columns is None else found[:, self._columns]
            yield found if is_sparse(found) else np.ascontiguousarray(found, dtype=precision(found.dtype))

    def _step(self) -> int:
        dtype, width = np.dtype(precision(self._matrix.dtype)), self._matrix.shape[1]
        if hasattr(self._matrix, "format"):
            return Form(dtype, int(FULLNESS * width * (dtype.itemsize + 4)) + 8).batch_rows(None)
        chunks = getattr(self._matrix, "chunks", None)
        return Form(dtype, dtype.itemsize * width, chunks[0] if chunks else 1).batch_rows(None)
