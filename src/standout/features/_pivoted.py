"""Pivoted Cholesky: which rows stand for all, found on the way of factorising the kernel matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg

from standout._arrays import Float, Rows, mirror, product
from standout._validation import reject_indefinite
from standout.features._kernels import Kernel


@dataclass(frozen=True, eq=False)
class Pivots:
    """Chosen rows, and the triangular factor of their kernel matrix.

    Attributes
    ----------
    chosen : ndarray of shape (r,)
        Numbers of the rows.
    factor : ndarray of shape (r, r)
        L, lower triangular, with ``L Lᵀ`` the kernel matrix of the chosen rows.
    """

    chosen: npt.NDArray[np.intp]
    factor: Float


def pivoted_cholesky(matrix: Float, tol: float, most: int | None = None) -> tuple[Float | None, npt.NDArray[np.intp]]:
    """Factorise a kernel matrix by LAPACK's pivoted Cholesky, up to a tolerance.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Symmetric. It is worked in, and restored afterwards.
    tol : float
        The factorisation stops where no row has a residual above `tol` times the largest diagonal entry.
    most : int, default=None
        Rank up to which a factor is wanted. A matrix of full rank beyond it gives None in its place.

    Returns
    -------
    factor : ndarray of shape (n, r) or None
        Rows in the order of the matrix: ``factor factorᵀ`` is the matrix up to the tolerance.
    pivots : ndarray of shape (r,)
        The rows it rests on; ``factor[pivots]`` is lower triangular.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import pivoted_cholesky
    >>> factor, pivots = pivoted_cholesky(np.array([[1.0, 2.0], [2.0, 4.0]]), 1e-10)
    >>> factor, pivots
    (array([[1.],
           [2.]]), array([1]))
    """
    matrix = np.ascontiguousarray(matrix)
    size = len(matrix)
    diagonal = np.diagonal(matrix).copy()
    largest = float(np.max(diagonal, initial=0.0))
    if largest <= 0.0:
        return np.empty((size, 0)), np.empty(0, dtype=np.intp)
    # LAPACK works in the upper triangle of the C-ordered matrix, so that the lower one can restore it.
    lower, order, rank, _ = linalg.lapack.dpstrf(matrix.T, tol=tol * largest, lower=1, overwrite_a=True)
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


def random_pivots(kernel: Kernel, rows: Rows, rank: int, rng: np.random.Generator, tol: float) -> Pivots:
    """Choose landmarks by randomly pivoted Cholesky in blocks: kernel columns are computed only when chosen.

    In each round rows are drawn with probability in proportion to their residual; near-copies among them are dropped by
    a pivoted Cholesky of their residual kernel.

    Parameters
    ----------
    kernel : Kernel
    rows : rows of shape (n, n_features)
    rank : int
        Most landmarks.
    rng : numpy.random.Generator
    tol : float
        Fewer landmarks are chosen where they leave out less than this share of the trace.

    Returns
    -------
    Pivots

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import random_pivots, resolve_kernel
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(200, 3))
    >>> random_pivots(resolve_kernel("linear"), rows, 50, rng, 1e-10).factor.shape
    (3, 3)
    """
    n_rows = rows.shape[0]
    residual = kernel.diagonal(rows)
    total, largest = float(residual.sum()), float(np.max(residual, initial=0.0))
    if float(np.min(residual, initial=0.0)) < 0.0:
        reject_indefinite("these rows")
    factor = np.zeros((n_rows, rank), order="F")
    chosen: list[int] = []
    block = max(rank // 10, min(rank, 32))
    while len(chosen) < rank and float(residual.sum()) > tol * total:
        wanted = min(block, rank - len(chosen))
        drawn = np.unique(rng.choice(n_rows, size=wanted, p=residual / residual.sum()))
        done = len(chosen)
        columns = kernel(rows, rows[drawn])
        if done:
            columns -= product(factor[:, :done], factor[drawn, :done].T)
        core, kept = pivoted_cholesky(columns[drawn], 1e-10)
        new = len(kept)
        if core is None or not new:
            break
        fresh = drawn[kept]
        solved = linalg.solve_triangular(core[kept], columns[:, kept].T, lower=True, check_finite=False)
        factor[:, done : done + new] = solved.T
        chosen.extend(fresh.tolist())
        residual = residual - np.einsum("ij,ij->j", solved, solved)
        if float(np.min(residual)) < -1e-6 * largest:
            reject_indefinite("these rows")
        residual = np.maximum(residual, 0.0)
        residual[fresh] = 0.0
    picked = np.array(chosen, dtype=np.intp)
    return Pivots(picked, np.tril(factor[picked, : len(picked)]))
