"""Pivoted Cholesky: choose rows that represent all others while factorising the kernel matrix."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from standout._arrays import Array, Float, Rows, copied, mirror, product
from standout._xp import (
    cholesky,
    column_products,
    concat,
    cumulative_sum,
    device,
    diagonal,
    indices_like,
    is_foreign,
    largest,
    like,
    namespace,
    solve_triangular,
    take,
    zeros,
)
from standout.features._kernels import Kernel, reject_indefinite

# Drawn rows whose residual kernel has no more than this share of the largest residual are copies of others.
COPY_TOL = 1e-10
# Pivots that are this many times larger show that no row repeats another, in whatever order they come.
SURE = 1e4


def pivoted_cholesky(matrix: Float, tol: float, most: int | None = None) -> tuple[Float | None, Array]:
    """Factorise a kernel matrix by pivoted Cholesky, up to a tolerance.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Symmetric. LAPACK overwrites it; it is restored afterwards.
    tol : float
        The factorisation stops when no row has a residual above `tol` times the largest diagonal entry.
    most : int, default=None
        The largest rank for which a factor is wanted. If the matrix has a larger rank, the factor can be None: on the
        host if the matrix has full rank, on a device always.

    Returns
    -------
    factor : ndarray of shape (n, r) or None
        Rows in the order of the matrix: ``factor factorᵀ`` is the matrix up to the tolerance.
    pivots : ndarray of shape (r,)
        The chosen rows; ``factor[pivots]`` is lower triangular.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features._pivoted import pivoted_cholesky
    >>> factor, pivots = pivoted_cholesky(np.array([[1.0, 2.0], [2.0, 4.0]]), 1e-10)
    >>> factor, pivots
    (array([[1.],
           [2.]]), array([1]))
    """
    if is_foreign(matrix):
        return _pivot_on_device(matrix, tol, most)
    matrix = np.ascontiguousarray(matrix)
    size = len(matrix)
    diagonal = np.diagonal(matrix).copy()
    height = largest(diagonal)
    if height <= 0.0:
        return np.empty((size, 0)), np.empty(0, dtype=np.intp)
    # LAPACK works in the upper triangle of the C-ordered matrix. The lower one then restores it.
    lower, order, rank, _ = linalg.lapack.dpstrf(matrix.T, tol=tol * height, lower=1, overwrite_a=True)
    rank, order = int(rank), order.astype(np.intp) - 1
    factor: Float | None = None
    if most is None or rank <= most or rank < size:
        factor = np.empty((size, rank))
        part = lower[:, :rank].copy()
        part[:rank] = np.tril(part[:rank])
        factor[order] = part
    mirror(matrix)
    np.fill_diagonal(matrix, diagonal)
    return factor, order[:rank]


def _pivot_on_device(matrix: Float, tol: float, most: int | None) -> tuple[Float | None, Array]:
    """Factorise one column after the other, with the functions that every array library has.

    It stops as soon as the rank is larger than `most`.
    """
    xp, size = namespace(matrix), matrix.shape[0]
    residual = copied(xp.linalg.diagonal(matrix))
    threshold = tol * largest(residual)
    steps = size if most is None else min(size, most + 1)
    factor = zeros((size, steps), matrix)
    pivots: list[int] = []
    while len(pivots) < steps:
        pivot = int(xp.argmax(residual))
        height = float(residual[pivot])
        if height <= threshold:
            break
        rank = len(pivots)
        column = matrix[:, pivot]
        if rank:
            column = column - factor[:, :rank] @ factor[pivot, :rank]
        column = column / height**0.5
        factor[:, rank] = column
        residual = residual - column**2
        residual[pivot] = 0.0
        pivots.append(pivot)
    rank = len(pivots)
    beyond = most is not None and rank > most
    return None if beyond else factor[:, :rank], indices_like(np.array(pivots, dtype=np.int64), matrix)


def random_pivots(kernel: Kernel, rows: Rows, rank: int, rng: np.random.Generator, tol: float) -> tuple[Array, Float]:
    """Choose landmarks by randomly pivoted Cholesky in blocks. Kernel columns are computed only for chosen rows.

    In each round, rows are drawn with probabilities proportional to their residuals. A pivoted Cholesky of their
    residual kernel removes rows that nearly repeat others.

    Parameters
    ----------
    kernel : Kernel
    rows : rows of shape (n, n_features)
    rank : int
        Most landmarks.
    rng : numpy.random.Generator
    tol : float
        No more landmarks are chosen once they leave out less than this share of the trace.

    Returns
    -------
    chosen : ndarray of shape (r,)
        Numbers of the rows.
    factor : ndarray of shape (r, r)
        L, lower triangular, with ``L Lᵀ`` the kernel matrix of the chosen rows.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import resolve_kernel
    >>> from standout.features._pivoted import random_pivots
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(200, 3))
    >>> random_pivots(resolve_kernel("linear"), rows, 50, rng, 1e-10)[1].shape
    (3, 3)
    """
    xp, n_rows = namespace(rows), rows.shape[0]
    residual = kernel.diagonal(rows)
    total, height = float(xp.sum(residual)), largest(residual)
    if float(xp.min(residual)) < 0.0:
        reject_indefinite("these rows")
    factor = zeros((n_rows, rank), rows)
    chosen: list[Array] = []
    done, block = 0, max(rank // 10, min(rank, 32))
    while done < rank and float(xp.sum(residual)) > tol * total:
        drawn = _drawn(residual, rng.random(min(block, rank - done)))
        columns = kernel(rows, take(rows, drawn))
        if done:
            columns -= product(factor[:, :done], take(factor[:, :done], drawn).T)
        core, kept = _core_of(take(columns, drawn))
        new = kept.shape[0]
        if core is None or not new:
            break
        fresh = take(drawn, kept)
        solved = solve_triangular(xp.tril(take(core, kept)), take(columns, kept, axis=1).T)
        factor[:, done : done + new] = solved.T
        residual = residual - column_products(solved, solved)
        if float(xp.min(residual)) < -1e-6 * height:
            reject_indefinite("these rows")
        residual = _without(xp.clip(residual, 0.0, None), fresh)
        chosen.append(fresh)
        done += new
    picked = concat(chosen) if chosen else indices_like(np.zeros(0, dtype=np.intp), rows)
    return picked, xp.tril(take(factor[:, :done], picked))


def _core_of(matrix: Float) -> tuple[Float | None, Array]:
    """Factorise the residual kernel of drawn rows: by pivots only if that is needed, as a device waits for each."""
    factor = cholesky(1.0 * matrix)
    if factor is not None:
        xp = namespace(factor)
        if float(xp.min(diagonal(factor))) ** 2 > SURE * COPY_TOL * largest(diagonal(matrix)):
            return xp.tril(factor), indices_like(np.arange(matrix.shape[0]), matrix)
    return pivoted_cholesky(matrix, COPY_TOL)


def _drawn(weights: Float, shots: Float) -> Array:
    """Give the positions, each once, that uniform random numbers choose with probabilities proportional to weights."""
    xp = namespace(weights)
    heights = cumulative_sum(weights)
    found = xp.searchsorted(heights / heights[-1], like(shots, weights), side="right")
    return xp.unique_values(found) if is_foreign(found) else np.unique(found)


def _without(numbers: Float, positions: Array) -> Float:
    """Set the numbers at some positions to zero."""
    if not is_foreign(numbers):
        numbers[positions] = 0.0
        return numbers
    xp = namespace(numbers)
    every = xp.arange(numbers.shape[0], device=device(numbers))
    return numbers * xp.astype(~xp.any(every[:, None] == positions[None, :], axis=1), xp.float64)
