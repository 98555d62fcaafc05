"""What the rest of the library needs to know of array libraries, in one place.

Inside the library a dataset is *rows*: a NumPy array or a SciPy CSR matrix, of any real dtype, never copied as a
whole. Everything that must look inside one (its blocks, its precision, its density) asks here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

Array: TypeAlias = npt.NDArray[Any]
Float: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = Any
"""A NumPy array or a SciPy CSR matrix, two-dimensional."""

# A block is what is converted, centred and multiplied at a time: large enough for the product to run at full speed,
# small enough that a copy of it is no burden. What needs no copy is taken in larger blocks.
BLOCK_BYTES = 8 * 2**20
UNCOPIED_BYTES = 128 * 2**20

# The share of non-zeros up to which a sparse product beats the dense one: SciPy multiplies sparse matrices on one
# core at about 1/500 of what BLAS does per stored number, and the work goes with the square of the density.
SPARSE_DENSITY = 0.03


# NumPy gives `X.T @ X` to BLAS as a symmetric product, and OpenBLAS 0.3 with several threads can crash on one of
# 17,500 columns or more. Beyond this size the product is made in panels, as a general one.
SAFE_SYMMETRIC = 16384


def is_sparse(rows: Rows) -> bool:
    """Tell whether the rows are a SciPy sparse matrix or array."""
    return bool(sparse.issparse(rows))


def is_thin(rows: Rows) -> bool:
    """Tell whether the rows are sparse enough for sparse products to pay."""
    return is_sparse(rows) and rows.nnz <= SPARSE_DENSITY * rows.shape[0] * max(rows.shape[1], 1)


def is_single(rows: Rows) -> bool:
    """Tell whether the rows hold single-precision numbers."""
    return bool(rows.dtype == np.float32)


def dense(block: Rows) -> Array:
    """Make a (small) block dense; what is dense already comes back as it is."""
    return np.asarray(block.toarray()) if is_sparse(block) else np.asarray(block)


def double(rows: Rows) -> Rows:
    """Give the rows as float64, without a copy where they are so already."""
    return rows.astype(np.float64, copy=False)


def is_plain(rows: Rows) -> bool:
    """Tell whether the rows can be multiplied in float64 as they are."""
    return not is_sparse(rows) and rows.dtype == np.float64


def squared_lengths(rows: Rows) -> Float:
    """Sum the squares in each row."""
    if is_sparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    lengths: Float = np.einsum("ij,ij->i", rows, rows)
    return lengths


def weighted_sum(weights: Float, rows: Rows) -> Float:
    """Sum the rows with weights."""
    # For a tall array NumPy's own loop is twice as fast as BLAS's matrix-vector product.
    total: Float = rows.T @ weights if is_sparse(rows) else np.einsum("i,ij->j", weights, rows)
    return total


def self_product(rows: Rows) -> Float:
    """Multiply the transposed rows with the rows."""
    n_features = rows.shape[1]
    if is_sparse(rows) or n_features <= SAFE_SYMMETRIC:
        return dense(rows.T @ rows)
    product = np.empty((n_features, n_features), dtype=rows.dtype)
    for start in range(0, n_features, SAFE_SYMMETRIC // 4):
        columns = slice(start, start + SAFE_SYMMETRIC // 4)
        product[:, columns] = rows.T @ rows[:, columns]
    return product


def row_blocks(rows: Rows, at_least: int = 1, n_bytes: int | None = None) -> Iterator[Rows]:
    """Cut the rows into consecutive blocks of about `n_bytes` in float64, but of no fewer than `at_least` rows."""
    n_rows, n_features = rows.shape
    size = max((n_bytes or BLOCK_BYTES) // (8 * max(n_features, 1)), at_least, 1)
    for start in range(0, n_rows, size):
        yield rows[start : start + size]


def column_slices(n_rows: int, n_features: int) -> Iterator[slice]:
    """Cut the columns into consecutive slices so that a block of them has about `BLOCK_BYTES`."""
    size = max(BLOCK_BYTES // (8 * max(n_rows, 1)), 64)
    for start in range(0, n_features, size):
        yield slice(start, min(start + size, n_features))
