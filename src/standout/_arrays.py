"""What the rest of the library needs to know of array libraries, in one place.

Inside the library a dataset is *rows*: a NumPy array, a SciPy CSR matrix, or a *foreign* array of another library
(PyTorch, CuPy ...; see `_namespaces`), of any real dtype, never copied as a whole. Everything that must look inside one
(its blocks, its precision, its density) asks here. What is made of foreign rows is foreign, too, and on their device.

Large products go through SciPy's BLAS, not through ``@``. NumPy and SciPy each bring a BLAS with threads of its own.
A small factorisation by SciPy right after a product by NumPy was seen to take 20 times as long on two cores as it does
alone, presumably because both sets of threads want the cores. Factorisations are SciPy's, so products are as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse

from standout import _namespaces
from standout._namespaces import DEVICE_BLOCK_BYTES, is_foreign, namespace
from standout._threads import are_side_by_side

Array: TypeAlias = npt.NDArray[Any]
Float: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = Any
"""A NumPy array, a SciPy CSR matrix or a foreign array, two-dimensional."""

# A block is what is converted, centred and multiplied at a time: large enough for the product to run at full speed,
# small enough that a copy of it is no burden. What needs no copy is taken in larger blocks.
BLOCK_BYTES = 8 * 2**20
UNCOPIED_BYTES = 128 * 2**20

# The share of non-zeros up to which a sparse product beats the dense one: SciPy multiplies sparse matrices on one
# core at about 1/500 of what BLAS does per stored number, and the work goes with the square of the density.
SPARSE_DENSITY = 0.03


# OpenBLAS 0.3 with several threads can crash on a symmetric product of 17,500 columns or more. Beyond this size the
# product is made in panels, as a general one.
SAFE_SYMMETRIC = 16384


def is_sparse(rows: Rows) -> bool:
    """Tell whether the rows are a SciPy sparse matrix or array."""
    return bool(sparse.issparse(rows))


def is_thin(rows: Rows) -> bool:
    """Tell whether the rows are sparse enough for sparse products to pay."""
    return is_sparse(rows) and rows.nnz <= SPARSE_DENSITY * rows.shape[0] * max(rows.shape[1], 1)


def is_single(rows: Rows) -> bool:
    """Tell whether the rows hold single-precision numbers."""
    return bool(rows.dtype == (namespace(rows).float32 if is_foreign(rows) else np.float32))


def dense(block: Rows) -> Array:
    """Make a (small) block dense; what is dense already comes back as it is."""
    if is_foreign(block):
        return block
    return np.asarray(block.toarray()) if is_sparse(block) else np.asarray(block)


def double(rows: Rows) -> Rows:
    """Give the rows as float64, without a copy where they are so already."""
    if is_foreign(rows):
        xp = namespace(rows)
        return xp.astype(rows, xp.float64, copy=False)
    return rows.astype(np.float64, copy=False)


def is_plain(rows: Rows) -> bool:
    """Tell whether blocks of the rows can be multiplied in float64 as they are, without any copy."""
    if is_foreign(rows):
        return bool(rows.dtype == namespace(rows).float64)
    if is_sparse(rows) or rows.dtype != np.float64:
        return False
    # Blocks of rows of a matrix in Fortran order have to be copied, unless the matrix is one block.
    return bool(rows.flags.c_contiguous or (rows.flags.f_contiguous and rows.nbytes <= UNCOPIED_BYTES))


def squared_lengths(rows: Rows) -> Float:
    """Sum the squares in each row."""
    if is_foreign(rows):
        xp = namespace(rows)
        return stacked([xp.linalg.vector_norm(block, axis=1) ** 2 for block in row_blocks(rows)])
    if is_sparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    lengths: Float = np.einsum("ij,ij->i", rows, rows)
    return lengths


def weighted_sum(weights: Float, rows: Rows) -> Float:
    """Sum the rows with weights."""
    if is_foreign(rows):
        # By matrices: a product with a vector leaves most of a device idle, and so do CuPy's sums over rows.
        row = _namespaces.like(weights, rows)[None, :]
        return product(row, rows)[0, :]
    if not is_sparse(rows) and rows.flags.f_contiguous and not rows.flags.c_contiguous:
        return product(rows.T, weights[:, np.newaxis])[:, 0]
    # For a tall array by rows NumPy's own loop is twice as fast as BLAS's matrix-vector product.
    total: Float = rows.T @ weights if is_sparse(rows) else np.einsum("i,ij->j", weights, rows)
    return total


def self_product(rows: Rows) -> Float:
    """Multiply the transposed rows with the rows."""
    n_features = rows.shape[1]
    if is_sparse(rows) or is_foreign(rows):
        return dense(rows.T @ rows)
    if n_features <= SAFE_SYMMETRIC and are_side_by_side():
        # The same product as below, but of NumPy, which lets other threads go on meanwhile; SciPy does not.
        return rows.T @ rows
    if n_features <= SAFE_SYMMETRIC:
        syrk = linalg.get_blas_funcs("syrk", (rows,))
        matrix, is_transpose = _layout(rows)
        lower = syrk(1.0, matrix, trans=not is_transpose, lower=True)
        mirror(lower)
        return lower.T
    whole = np.empty((n_features, n_features), dtype=rows.dtype)
    for start in range(0, n_features, SAFE_SYMMETRIC // 4):
        columns = slice(start, start + SAFE_SYMMETRIC // 4)
        whole[:, columns] = product(rows.T, rows[:, columns])
    return whole


def product(first: Rows, second: Array) -> Array:
    """Multiply two matrices."""
    if is_sparse(first) or is_sparse(second) or is_foreign(first):
        return dense(first @ second)
    if are_side_by_side():
        return first @ second
    if second.shape[1] == 1 and first.size:
        matrix, is_transpose = _layout(first)
        gemv = linalg.get_blas_funcs("gemv", (first, second))
        column: Array = gemv(1.0, matrix, second[:, 0], trans=is_transpose)
        return column[:, np.newaxis]
    gemm = linalg.get_blas_funcs("gemm", (first, second))
    one, other = _layout(first), _layout(second)
    result: Array = gemm(1.0, one[0], other[0], trans_a=one[1], trans_b=other[1])
    return result


def inner(first: Float, second: Float) -> float:
    """Multiply two vectors; without BLAS, whose threads are not worth waking for it."""
    if is_foreign(first):
        return float(namespace(first).sum(first * second))
    return float(np.einsum("i,i->", first, second))


def sum_of_squares(numbers: Array) -> float:
    """Sum the squares of all numbers."""
    if is_foreign(numbers):
        return inner(numbers, numbers)
    flat = np.ravel(numbers, order="K")
    return inner(flat, flat)


def leading_eigenvectors(matrix: Float, count: int) -> tuple[Float, Float]:
    """Give the largest eigenvalues of a symmetric matrix, in descending order, and their vectors.

    LAPACK's search for some of them can come back with fewer than it was asked for where many are equal. Then all are
    found, by a way that has no such trouble.
    """
    if is_foreign(matrix):
        xp = namespace(matrix)
        values, vectors = xp.linalg.eigh(matrix)
        first = matrix.shape[0] - count
        return xp.flip(values[first:], axis=0), xp.flip(vectors[:, first:], axis=1)
    size = len(matrix)
    values, vectors = linalg.eigh(matrix, lower=True, subset_by_index=[size - count, size - 1], check_finite=False)
    if len(values) < count or vectors.shape[1] < count:
        values, vectors = linalg.eigh(matrix, lower=True, driver="evd", check_finite=False)
        values, vectors = values[size - count :], vectors[:, size - count :]
    return values[::-1], vectors[:, ::-1]


def _layout(matrix: Array) -> tuple[Array, bool]:
    """Give the matrix in BLAS's column-major order, or its transpose and the word that it is one."""
    return (matrix, False) if matrix.flags.f_contiguous else (matrix.T, True)


def mirror(lower: Array) -> None:
    """Copy the lower triangle of a matrix to the upper one, in panels that fit the cache."""
    size = len(lower)
    for start in range(0, size, 256):
        stop = min(start + 256, size)
        corner = lower[start:stop, start:stop]
        corner[:] = np.tril(corner) + np.tril(corner, -1).T
        lower[start:stop, stop:] = lower[stop:, start:stop].T


def stacked(blocks: Sequence[Rows]) -> Rows:
    """Put blocks of rows under one another: sparse if all are, dense otherwise."""
    if len(blocks) == 1:
        return blocks[0]
    if is_foreign(blocks[0]):
        return namespace(blocks[0]).concat(list(blocks), axis=0)
    if all(is_sparse(block) for block in blocks):
        return sparse.vstack(list(blocks), format="csr")
    return np.concatenate([dense(block) for block in blocks])


def row_blocks(rows: Rows, at_least: int = 1, n_bytes: int | None = None) -> Iterator[Rows]:
    """Cut the rows into consecutive blocks of about `n_bytes`, but of no fewer than `at_least` rows."""
    size = max(_block_size(rows, n_bytes), at_least)
    for start in range(0, rows.shape[0], size):
        yield row_slice(rows, start, start + size)


def row_slice(rows: Rows, start: int, stop: int) -> Rows:
    """Give consecutive rows, without a copy where they are dense."""
    return rows[start : min(stop, rows.shape[0]), :] if is_foreign(rows) else rows[start:stop]


def _block_size(rows: Rows, n_bytes: int | None = None) -> int:
    """Give the number of rows of a block of about `n_bytes`."""
    # Whatever is not in single precision is worked on in double. On a device single precision is, too.
    n_bytes_row = max(rows.shape[1], 1) * (4 if is_single(rows) and not is_foreign(rows) else 8)
    if n_bytes is None:
        n_bytes = DEVICE_BLOCK_BYTES if is_foreign(rows) else BLOCK_BYTES
    return max(n_bytes // n_bytes_row, 1)


def column_slices(n_rows: int, n_features: int, n_bytes_number: int = 8) -> Iterator[slice]:
    """Cut the columns into consecutive slices so that a block of them has about `BLOCK_BYTES`."""
    size = max(BLOCK_BYTES // (n_bytes_number * max(n_rows, 1)), 64)
    for start in range(0, n_features, size):
        yield slice(start, min(start + size, n_features))


def take_rows(rows: Rows, numbers: Array) -> Rows:
    """Give some rows by their numbers."""
    if not is_foreign(rows):
        return rows[numbers]
    return namespace(rows).take(rows, _namespaces.indices_like(numbers, rows), axis=0)


def rows_where(rows: Rows, conditions: Array) -> Rows:
    """Give the rows for which a condition holds; it may be the host's for rows that are not."""
    if not is_foreign(rows):
        return rows[conditions]
    chosen = namespace(conditions).nonzero(conditions) if is_foreign(conditions) else np.nonzero(conditions)
    return take_rows(rows, chosen[0])


def copied(rows: Rows) -> Rows:
    """Give a copy of the rows."""
    return namespace(rows).asarray(rows, copy=True) if is_foreign(rows) else rows.copy()


def in_type_of(numbers: Array, rows: Rows) -> Array:
    """Give floating-point numbers in the precision of the rows: single or double."""
    if is_foreign(numbers):
        xp = namespace(numbers)
        return xp.astype(numbers, xp.float32 if is_single(rows) else xp.float64, copy=False)
    return numbers.astype(np.float32) if is_single(rows) else numbers
