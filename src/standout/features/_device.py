"""Pivoted Cholesky on a device: column by column, by what every array library has."""

from __future__ import annotations

import numpy as np

from standout._algebra import at_least, column_products, largest, lower_triangle, take_columns, total, triangular_solve
from standout._arrays import Array, Float, Rows, copied, product, take_rows
from standout._namespaces import device, indices_like, like, namespace, zeros
from standout._validation import reject_indefinite
from standout.features._kernels import Kernel


def pivot_on_device(matrix: Float, tol: float, most: int | None = None) -> tuple[Float | None, Array]:
    """Factorise a kernel matrix up to a tolerance, as `pivoted_cholesky` does on the host.

    It stops as soon as the rank is known to be beyond `most`, and then gives None in place of a factor.
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


def random_pivots_on_device(
    kernel: Kernel, rows: Rows, rank: int, rng: np.random.Generator, tol: float
) -> tuple[Array, Float]:
    """Choose landmarks by randomly pivoted Cholesky, as `random_pivots` does on the host, with the same random numbers.

    The numbers of the chosen rows, and the lower triangular factor of their kernel matrix. The random numbers are the
    host's, and all else stays on the device.
    """
    xp = namespace(rows)
    n_rows = rows.shape[0]
    residual = kernel.diagonal(rows)
    whole, most = total(residual), largest(residual)
    if float(xp.min(residual)) < 0.0:
        reject_indefinite("these rows")
    factor = zeros((n_rows, rank), rows)
    numbers = xp.arange(n_rows, device=device(rows))
    chosen: list[Array] = []
    done, block = 0, max(rank // 10, min(rank, 32))
    while done < rank and total(residual) > tol * whole:
        heights = xp.cumulative_sum(residual)
        shots = like(rng.random(min(block, rank - done)), residual)
        drawn = xp.unique_values(xp.searchsorted(heights / heights[-1], shots, side="right"))
        columns = kernel(rows, take_rows(rows, drawn))
        if done:
            columns -= product(factor[:, :done], take_rows(factor, drawn)[:, :done].T)
        core, kept = pivot_on_device(take_rows(columns, drawn), 1e-10)
        new = kept.shape[0]
        if core is None or not new:
            break
        fresh = xp.take(drawn, kept)
        solved = triangular_solve(lower_triangle(take_rows(core, kept)), take_columns(columns, kept).T)
        factor[:, done : done + new] = solved.T
        chosen.append(fresh)
        residual = residual - column_products(solved, solved)
        if float(xp.min(residual)) < -1e-6 * most:
            reject_indefinite("these rows")
        taken = xp.any(numbers[:, None] == fresh[None, :], axis=1)
        residual = at_least(residual, 0.0) * xp.astype(~taken, xp.float64)
        done += new
    picked = xp.concat(chosen) if chosen else numbers[:0]
    return picked, lower_triangle(take_rows(factor, picked)[:, :done])
