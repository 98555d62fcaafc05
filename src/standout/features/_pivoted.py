"""Pivoted Cholesky: choose rows that represent all others while factorising the kernel matrix."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from standout._arrays import Array, Float, Rows, product
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
    zeros,
)
from standout.features._kernels import Kernel
from standout.moments import pivoted_cholesky

# Drawn rows whose residual kernel has no more than this share of the largest residual are copies of others.
COPY_TOL = 1e-10


def reject_indefinite() -> NoReturn:
    """Reject a kernel that is not an inner product."""
    raise InvalidValueError(
        "the kernel is not positive semidefinite on these rows: no coordinates have it as their inner product",
        advice="Use `approximation` 'exact', which leaves out its negative part, or another kernel.",
    )


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
