"""Small algebra on arrays of any library: NumPy's by NumPy and SciPy, foreign ones by their own library.

Each function has one line for NumPy and one for the others. They differ in names, in what may be mixed with plain
numbers, and in what is there at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import linalg

from standout import _namespaces
from standout._arrays import Array
from standout._namespaces import is_foreign, namespace


def total(numbers: Array) -> float:
    """Sum all numbers."""
    return float(namespace(numbers).sum(numbers) if is_foreign(numbers) else np.sum(numbers))


def largest(numbers: Array) -> float:
    """Give the largest of some numbers; 0 where there are none, or none above it."""
    if is_foreign(numbers):
        return max(float(namespace(numbers).max(numbers)), 0.0) if numbers.shape[0] else 0.0
    return float(np.max(numbers, initial=0.0))


def all_true(conditions: Array) -> bool:
    """Tell whether all conditions hold."""
    return bool(namespace(conditions).all(conditions) if is_foreign(conditions) else np.all(conditions))


def count_true(conditions: Array) -> int:
    """Count the conditions that hold."""
    if is_foreign(conditions):
        xp = namespace(conditions)
        return int(xp.sum(xp.astype(conditions, xp.int64)))
    return int(np.sum(conditions))


def at_least(numbers: Array, floor: float) -> Array:
    """Raise numbers that are below a floor to it."""
    if is_foreign(numbers):
        return namespace(numbers).clip(numbers, min=floor)
    return np.maximum(numbers, floor)


def at_most(numbers: Array, ceiling: float) -> Array:
    """Lower numbers that are above a ceiling to it."""
    return namespace(numbers).clip(numbers, max=ceiling) if is_foreign(numbers) else np.minimum(numbers, ceiling)


def descending(numbers: Array) -> Array:
    """Give the positions of numbers from the largest to the smallest, of equal ones in their order."""
    if is_foreign(numbers):
        return namespace(numbers).argsort(-numbers, stable=True)
    return np.argsort(-numbers, kind="stable")


def mirrored(array: Array) -> Array:
    """Give the last axis in reverse order."""
    return namespace(array).flip(array, axis=-1) if is_foreign(array) else array[..., ::-1]


def larger(first: Array, second: Array) -> Array:
    """Give the larger of two arrays, entry by entry."""
    return namespace(first).maximum(first, second) if is_foreign(first) else np.maximum(first, second)


def is_infinite(numbers: Array) -> Array:
    """Tell which numbers are infinite."""
    return namespace(numbers).isinf(numbers) if is_foreign(numbers) else np.isinf(numbers)


def either(conditions: Array, yes: Any, no: Any) -> Array:
    """Choose entry by entry between two arrays; one of them may be a number."""
    if not is_foreign(conditions):
        return np.where(conditions, yes, no)
    xp = namespace(conditions)
    # PyTorch would make single precision of two plain numbers.
    full = {"dtype": xp.float64, "device": _namespaces.device(conditions)}
    yes, no = (xp.full((1,), part, **full) if isinstance(part, float) else part for part in (yes, no))
    return xp.where(conditions, yes, no)


def column_products(first: Array, second: Array) -> Array:
    """Multiply the columns of two matrices, each with its counterpart."""
    if is_foreign(first):
        return namespace(first).sum(first * second, axis=0)
    products: Array = np.einsum("ij,ij->j", first, second)
    return products


def length(vector: Array) -> float:
    """Give the length of a vector."""
    return float(namespace(vector).linalg.vector_norm(vector) if is_foreign(vector) else np.linalg.norm(vector))


def column_lengths(matrix: Array) -> Array:
    """Give the length of each column."""
    if is_foreign(matrix):
        return namespace(matrix).linalg.vector_norm(matrix, axis=0)
    lengths: Array = np.linalg.norm(matrix, axis=0)
    return lengths


def entries(matrix: Array, rows: Array) -> Array:
    """Give one entry of each column, in the row of its number."""
    if not is_foreign(matrix):
        return np.take_along_axis(matrix, rows[np.newaxis], axis=0)[0]
    xp = namespace(matrix)
    numbers = xp.arange(matrix.shape[0], device=_namespaces.device(matrix))
    return xp.sum(either(numbers[:, None] == rows[None, :], matrix, 0.0), axis=0)


def largest_rows(matrix: Array) -> Array:
    """Give the row in which each column has its largest entry; of equal ones the first."""
    return namespace(matrix).argmax(matrix, axis=0) if is_foreign(matrix) else np.argmax(matrix, axis=0)


def largest_entries(matrix: Array) -> Array:
    """Give the entry of largest size of each column, with its sign; of equal ones the first."""
    return entries(matrix, largest_rows(abs(matrix)))


def root(numbers: Array) -> Array:
    """Give square roots."""
    return namespace(numbers).sqrt(numbers) if is_foreign(numbers) else np.sqrt(numbers)


def cosines(angles: Array) -> Array:
    """Give cosines, in the place of the angles where that can be done."""
    return namespace(angles).cos(angles) if is_foreign(angles) else np.cos(angles, out=angles)


def row_means(matrix: Array) -> Array:
    """Give the mean of each row, as a column."""
    if is_foreign(matrix):
        return namespace(matrix).mean(matrix, axis=1, keepdims=True)
    means: Array = matrix.mean(axis=1, keepdims=True)
    return means


def column_means(matrix: Array) -> Array:
    """Give the mean of each column."""
    means: Array = namespace(matrix).mean(matrix, axis=0) if is_foreign(matrix) else np.mean(matrix, axis=0)
    return means


def column_sums(matrix: Array) -> Array:
    """Give the sum of each column."""
    sums: Array = namespace(matrix).sum(matrix, axis=0) if is_foreign(matrix) else matrix.sum(axis=0)
    return sums


def column_deviations(matrix: Array) -> Array:
    """Give the standard deviation of each column."""
    deviations: Array = namespace(matrix).std(matrix, axis=0) if is_foreign(matrix) else np.std(matrix, axis=0)
    return deviations


def ascending_columns(matrix: Array) -> Array:
    """Give each column in ascending order."""
    return namespace(matrix).sort(matrix, axis=0) if is_foreign(matrix) else np.sort(matrix, axis=0)


def running_sums(matrix: Array) -> Array:
    """Give the sum of each column up to every row."""
    if is_foreign(matrix):
        return namespace(matrix).cumulative_sum(matrix, axis=0)
    return np.cumsum(matrix, axis=0)


def outer(first: Array, second: Array) -> Array:
    """Multiply every entry of one vector with every entry of another."""
    return first[:, None] * second[None, :] if is_foreign(first) else np.multiply.outer(first, second)


def diagonal(matrix: Array) -> Array:
    """Give the diagonal of a matrix."""
    return namespace(matrix).linalg.diagonal(matrix) if is_foreign(matrix) else np.diagonal(matrix)


def add_to_diagonal(matrix: Array, value: float) -> Array:
    """Add a number to the diagonal of a matrix, in place where that can be done."""
    if is_foreign(matrix):
        matrix += value * _namespaces.eye(matrix.shape[0], matrix)
    else:
        matrix.flat[:: len(matrix) + 1] += value
    return matrix


def identity(size: int, reference: Array) -> Array:
    """Give the identity matrix, in the library of a reference."""
    return _namespaces.eye(size, reference) if is_foreign(reference) else np.eye(size)


def symmetric_eigen(matrix: Array) -> tuple[Array, Array]:
    """Give all eigenvalues of a symmetric matrix, in ascending order, and their vectors."""
    if is_foreign(matrix):
        values, vectors = namespace(matrix).linalg.eigh(matrix)
        return values, vectors
    return linalg.eigh(matrix, check_finite=False)


def lower_triangle(matrix: Array) -> Array:
    """Give a matrix with zeros above the diagonal."""
    return namespace(matrix).tril(matrix) if is_foreign(matrix) else np.tril(matrix)


def condition(matrix: Array) -> float:
    """Give the condition number of a matrix; for arrays of other libraries one that ends at about 1e7."""
    if not is_foreign(matrix):
        return float(np.linalg.cond(matrix))
    # Eigenvalues come at a fraction of the price of singular values there.
    values = namespace(matrix).linalg.eigvalsh(matrix.T @ matrix)
    return float(values[-1] / namespace(matrix).clip(values, min=float(values[-1]) * 1e-14)[0]) ** 0.5


def lower_factor(matrix: Array) -> Array | None:
    """Give the lower Cholesky factor of a symmetric matrix, which is overwritten; None where there is none.

    What stands above the diagonal has no meaning.
    """
    if is_foreign(matrix):
        return _namespaces.cholesky(matrix)
    # Symmetric: the transpose is the same matrix in LAPACK's order.
    factor, info = linalg.lapack.dpotrf(matrix.T, lower=1, overwrite_a=True, clean=False)
    return factor if info == 0 else None


def whiten(matrix: Array, factor: Array) -> Array:
    """Give ``L⁻¹ A L⁻ᵀ`` for a symmetric A, which is overwritten, and a lower triangular L."""
    if is_foreign(matrix):
        return triangular_solve(factor, triangular_solve(factor, matrix).T)
    whitened, _ = linalg.lapack.dsygst(matrix.T, factor, lower=1, overwrite_a=True)
    return whitened.T


def largest_eigenvalue(matrix: Array) -> float:
    """Give the largest eigenvalue of a symmetric matrix."""
    if is_foreign(matrix):
        return float(namespace(matrix).linalg.eigvalsh(matrix)[-1])
    return float(linalg.eigvalsh(matrix, check_finite=False)[-1])


def largest_ratio(matrix: Array, factor: Array) -> float:
    """Give the largest eigenvalue of ``L⁻¹ A L⁻ᵀ`` for a symmetric A, which is overwritten, and a lower triangular L.

    For NumPy by LAPACK at once: this is for inner loops. What LAPACK cannot find counts as infinite.
    """
    if is_foreign(matrix):
        return largest_eigenvalue(whiten(matrix, factor))
    size = len(matrix)
    # Symmetric: the transpose is the same matrix in LAPACK's order, and needs no copy.
    whitened, _ = linalg.lapack.dsygst(matrix.T, factor, lower=1, overwrite_a=True)
    values, _, _, _, info = linalg.lapack.dsyevr(
        whitened, compute_v=0, range="I", lower=1, il=size, iu=size, overwrite_a=True
    )
    return float(values[0]) if info == 0 else float("inf")


def triangular_solve(factor: Array, right: Array, *, transposed: bool = False, overwrite: bool = False) -> Array:
    """Solve ``L X = right``, or ``Lᵀ X = right``, for a lower triangular L."""
    if is_foreign(factor):
        return _namespaces.solve_triangular(factor, right, transposed=transposed)
    solved: Array = linalg.solve_triangular(
        factor, right, lower=True, trans="T" if transposed else "N", overwrite_b=overwrite, check_finite=False
    )
    return solved


def orthonormal(matrix: Array) -> tuple[Array, Array]:
    """Give the QR decomposition of a matrix, without what is zero in it."""
    q, r = namespace(matrix).linalg.qr(matrix) if is_foreign(matrix) else np.linalg.qr(matrix)
    return q, r


def singular(matrix: Array, *, full: bool = False) -> tuple[Array, Array, Array]:
    """Give the singular value decomposition ``U S Vᵀ`` of a matrix."""
    xp = namespace(matrix) if is_foreign(matrix) else np
    u, s, v = xp.linalg.svd(matrix, full_matrices=full)
    return u, s, v


def take_columns(matrix: Array, chosen: Array) -> Array:
    """Give the columns for which a condition holds, or in the order of their numbers."""
    if not is_foreign(matrix):
        return matrix[:, chosen]
    xp = namespace(matrix)
    if is_foreign(chosen) and xp.isdtype(chosen.dtype, "bool"):
        chosen = xp.nonzero(chosen)[0]
    return xp.take(matrix, _namespaces.indices_like(chosen, matrix), axis=1)


def joined(matrices: Sequence[Array]) -> Array:
    """Put the columns of matrices side by side."""
    if is_foreign(matrices[0]):
        return namespace(matrices[0]).concat(list(matrices), axis=1)
    return np.hstack(matrices)


def as_rows_of(vectors: Array) -> Array:
    """Give columns as rows, in an order of memory that is kind to products with rows."""
    return vectors.T if is_foreign(vectors) else np.ascontiguousarray(vectors.T)


def piled(arrays: Sequence[Array], shape: tuple[int, ...] | None = None) -> Array:
    """Make one array of several of equal shape, of `shape` where there are none."""
    if arrays and is_foreign(arrays[0]):
        return namespace(arrays[0]).stack(list(arrays))
    return np.array(arrays) if arrays or shape is None else np.zeros(shape)
