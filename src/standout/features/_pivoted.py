"""Pivoted Cholesky: choose rows that represent all others while factorising the kernel matrix."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from scipy import linalg

from standout._arrays import Array, Float, Rows, mirror, product
from standout._messages import InvalidValueError
from standout._xp import (
    column_products,
    concat,
    cumulative_sum,
    device,
    indices_like,
    is_foreign,
    largest,
    like,
    namespace,
    solve_triangular,
    take,
    to_host,
    zeros,
)
from standout.features._kernels import Kernel

# Drawn rows whose residual kernel has no more than this share of the largest residual are copies of others.
COPY_TOL = 1e-10


def reject_indefinite() -> NoReturn:
    """Reject a kernel that is not an inner product."""
    raise InvalidValueError(
        "the kernel is not positive semidefinite on these rows: no coordinates have it as their inner product",
        advice="Use `approximation` 'exact', which leaves out its negative part, or another kernel.",
    )


def pivoted_cholesky(matrix: Float, tol: float) -> tuple[Float, Array]:
    """Factorise a kernel matrix by pivoted Cholesky, up to a tolerance.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Symmetric. LAPACK overwrites it; it is restored afterwards.
    tol : float
        The factorisation stops when no row has a residual above `tol` times the largest diagonal entry.

    Returns
    -------
    factor : ndarray of shape (n, r)
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
        # Pivots come one after the other, and a device would wait for each.
        factor, pivots = pivoted_cholesky(to_host(matrix), tol)
        return like(factor, matrix), indices_like(pivots, matrix)
    matrix = np.ascontiguousarray(matrix)
    size = len(matrix)
    diagonal = np.diagonal(matrix).copy()
    height = largest(diagonal)
    if height <= 0.0:
        return np.empty((size, 0)), np.empty(0, dtype=np.intp)
    # LAPACK works in the upper triangle of the C-ordered matrix. The lower one then restores it.
    lower, order, rank, _ = linalg.lapack.dpstrf(matrix.T, tol=tol * height, lower=1, overwrite_a=True)
    rank, order = int(rank), order.astype(np.intp) - 1
    factor = np.empty((size, rank))
    part = lower[:, :rank].copy()
    part[:rank] = np.tril(part[:rank])
    factor[order] = part
    mirror(matrix)
    np.fill_diagonal(matrix, diagonal)
    return factor, order[:rank]


def random_pivots(
    kernel: Kernel, rows: Rows, rank: int, rng: np.random.Generator, tol: float
) -> tuple[Array, Float, float]:
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
    left : float
        Share of the trace that the landmarks leave out.

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
        reject_indefinite()
    factor = zeros((n_rows, rank), rows)
    chosen: list[Array] = []
    done, block = 0, max(rank // 10, min(rank, 32))
    while done < rank and float(xp.sum(residual)) > tol * total:
        drawn = _drawn(residual, rng.random(min(block, rank - done)))
        columns = kernel(rows, take(rows, drawn))
        if done:
            columns -= product(factor[:, :done], take(factor[:, :done], drawn).T)
        core, kept = pivoted_cholesky(take(columns, drawn), COPY_TOL)
        new = kept.shape[0]
        if not new:
            break
        fresh = take(drawn, kept)
        solved = solve_triangular(xp.tril(take(core, kept)), take(columns, kept, axis=1).T)
        factor[:, done : done + new] = solved.T
        residual = residual - column_products(solved, solved)
        if float(xp.min(residual)) < -1e-6 * height:
            reject_indefinite()
        residual = _without(xp.clip(residual, 0.0, None), fresh)
        chosen.append(fresh)
        done += new
    picked = concat(chosen) if chosen else indices_like(np.zeros(0, dtype=np.intp), rows)
    left = float(xp.sum(residual)) / total if total > 0.0 else 0.0
    return picked, xp.tril(take(factor[:, :done], picked)), left


def _drawn(weights: Float, shots: Float) -> Array:
    """Return positions drawn with probabilities proportional to weights, each once."""
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
