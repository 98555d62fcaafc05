"""Changes of the cells of a table, in place: the arrays belong to whoever calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from standout._arrays import Array, Float, Rows, is_sparse, row_blocks
from standout._validation import reject_cell
from standout.io._statistics import unusual_blocks
from standout.io._table import Table

Blocks: TypeAlias = Iterator[tuple[int, Array]]
Test: TypeAlias = Callable[[Array], Any]


def check_finite(table: Table, name: str) -> None:
    """Refuse infinities, and say where the first one is."""
    _reject_first(
        table,
        name,
        np.isinf,
        unusual_blocks,
        "an infinite value",
        "Mend it, or leave the cell empty if the value is missing.",
    )


def take_logarithms(table: Table, name: str) -> None:
    """Put log(1 + x) in the place of each x; a negative one is refused."""
    _reject_first(
        table,
        name,
        lambda numbers: numbers < 0,
        _negative_blocks,
        "a negative value, of which there is no log1p,",
        "Leave out log1p (--log1p), which is meant for counts, or drop the column.",
    )
    for block in [table.values.data] if is_sparse(table.values) else row_blocks(table.values):
        np.log1p(block, out=block)


def fill_missing(values: Rows, fill: Float) -> None:
    """Put a number for each column in the place of missing values."""
    if is_sparse(values):
        missing = np.isnan(values.data)
        values.data[missing] = fill[values.indices[missing]]
        return
    for block in row_blocks(values):
        rows, columns = np.nonzero(np.isnan(block))
        block[rows, columns] = fill[columns]


def shift_and_scale(values: Rows, centre: Float, scale: Float) -> None:
    """Take a centre from each row and divide by a scale, in double precision whatever the values are kept in.

    A sparse matrix is scaled only: its centre is zero, or it would not stay sparse.
    """
    if is_sparse(values):
        values.data /= scale[values.indices].astype(values.dtype)
        return
    for block in row_blocks(values):
        if block.dtype == np.float64:
            block -= centre
            block /= scale
        else:
            block[:] = (block - centre) / scale


def without_rows(values: Rows, kept: npt.NDArray[np.bool_]) -> Rows:
    """Drop rows; what is left is moved up in the memory that it has."""
    if is_sparse(values):
        return values[kept]
    start = 0
    first = 0
    for block in row_blocks(values):
        left = block[kept[first : first + len(block)]]
        values[start : start + len(left)] = left
        start += len(left)
        first += len(block)
    return values[:start]


def without_columns(values: Rows, kept: npt.NDArray[np.bool_]) -> Rows:
    """Drop columns; what is left is moved together in the memory that it has."""
    if is_sparse(values):
        return values[:, np.flatnonzero(kept)]
    n_kept = int(kept.sum())
    narrow = values.reshape(-1)[: len(values) * n_kept].reshape(len(values), n_kept)
    start = 0
    for block in row_blocks(values):
        # The choice is a copy, and where it goes ends before the next block starts.
        narrow[start : start + len(block)] = block[:, kept]
        start += len(block)
    return narrow


def rows_with_missing(values: Rows) -> npt.NDArray[np.bool_]:
    """Tell which rows have a missing value."""
    found = np.zeros(values.shape[0], dtype=bool)
    if is_sparse(values):
        found[np.repeat(np.arange(values.shape[0]), np.diff(values.indptr))[np.isnan(values.data)]] = True
        return found
    for start, block in unusual_blocks(values):
        found[start : start + len(block)] = np.isnan(block).any(axis=1)
    return found


def first_cell(values: Rows, is_meant: Test, blocks: Callable[[Array], Blocks]) -> tuple[int, int] | None:
    """Find the first cell, row by row, of which something is true, among the blocks in which it can be."""
    if is_sparse(values):
        found = np.flatnonzero(is_meant(values.data))
        if not found.size:
            return None
        row = int(np.searchsorted(values.indptr, found[0], side="right")) - 1
        return row, int(values.indices[found[0]])
    for start, block in blocks(values):
        cells = is_meant(block)
        if cells.any():
            row, column = np.argwhere(cells)[0]
            return start + int(row), int(column)
    return None


def _reject_first(
    table: Table, name: str, is_wrong: Test, blocks: Callable[[Array], Blocks], what: str, remedy: str
) -> None:
    found = first_cell(table.values, is_wrong, blocks)
    if found is not None:
        row, column = found
        row_id = None if table.ids is None else str(table.ids[row])
        reject_cell(what, float(table.values[row, column]), table.columns[column], row + 1, row_id, name, remedy)


def _negative_blocks(values: Array) -> Blocks:
    start = 0
    for block in row_blocks(values):
        # fmin looks past missing values.
        if np.fmin.reduce(block, axis=None) < 0:
            yield start, block
        start += len(block)
