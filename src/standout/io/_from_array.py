"""Arrays and sparse matrices from files that have no notion of a table -> a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from standout._arrays import Array, Rows, is_sparse
from standout._validation import check_rows_of_file, reject_table
from standout.io._choice import Wanted, choose
from standout.io._reading import attempt
from standout.io._table import Table, Words, made_up_names, make_table
from standout.io._words import words_of_array

Vectors = Mapping[str, Callable[[], Any]]
"""Vectors with one value per row that a file keeps beside its table, each read only if it is asked for."""


def table_from_array(array: Any, wanted: Wanted, source: str, kind: str, beside: Vectors | None = None) -> Table:
    """Make a table of a two-dimensional array of numbers whose columns have no names."""
    check_array_form(array.shape, array.dtype, source)
    if is_sparse(array):
        array = attempt(lambda: as_csr(array), source, kind)
    beside = beside or {}
    names = made_up_names(array.shape[1])
    choice = choose(names, wanted, source, list(beside))
    words = {
        role: words_beside(beside[name], name, array.shape[0], source, kind)
        if name in beside
        else words_of_array(_column(array, names.index(name)))
        for role, name in choice.roles.items()
    }
    values = attempt(lambda: as_values(array, choice.features), source, kind)
    return make_table(values, [names[place] for place in choice.features], words, source, has_names=False)


def check_array_form(shape: Sequence[int], dtype: Any, source: str) -> None:
    """Refuse what is not rows and columns of real numbers."""
    if len(shape) != 2:
        reject_table(
            source, f"it holds an array of shape {tuple(shape)}, but rows and columns are needed", "Reshape it."
        )
    if dtype.kind not in "biuf":
        what = "complex numbers" if dtype.kind == "c" else f"values of type {str(dtype)[:40]}"
        reject_table(source, f"it holds {what}, but real numbers are needed", "Turn them into numbers.")
    check_rows_of_file(shape[0], source)


def as_csr(matrix: Any) -> Rows:
    """Give a sparse matrix by rows, once it is known to be one."""
    if matrix.format in ("csr", "csc", "bsr"):
        # Indices that point outside make SciPy read and write where it should not.
        matrix.check_format(full_check=True)
    rows = sparse.csr_array(matrix)
    rows.sum_duplicates()
    return rows


def as_values(array: Rows, features: Sequence[int]) -> Rows:
    """Give the columns that are data: C-contiguous or CSR, in double precision unless they are in single already."""
    dtype = precision(array.dtype)
    whole = list(features) == list(range(array.shape[1]))
    if is_sparse(array):
        return (array if whole else array[:, list(features)]).astype(dtype, copy=False)
    return np.ascontiguousarray(array if whole else array[:, list(features)], dtype=dtype)


def precision(dtype: Any) -> npt.DTypeLike:
    """Stay in single precision, and take everything else as double."""
    return np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64


def words_beside(read: Callable[[], Any], name: str, n_rows: int, source: str, kind: str) -> Words:
    """Read one vector that a file keeps beside its table, as words."""
    values = attempt(lambda: words_of_array(read()), source, kind)
    if len(values) != n_rows:
        reject_table(
            source,
            f"it has {n_rows} rows, but {len(values)} values in {name!r}",
            "Choose another vector.",
        )
    return values


def _column(array: Rows, position: int) -> Array:
    return np.asarray(array[:, [position]].todense()).ravel() if is_sparse(array) else array[:, position]
