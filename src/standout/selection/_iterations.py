"""Largest eigenvalues by Lanczos iterations: for one value of a large matrix LAPACK does far more than is needed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg

from standout._arrays import Float, product
from standout._xp import add_to_diagonal, cholesky

# From so many dimensions on, iterations take less time than LAPACK.
LEAST_ITERATED = 256
# Iterations end if the values have changed by less than this share in so many steps. Values gain two digits or more in
# as many steps, so that they are known to nine or ten then.
TOLERANCE, CHECKED = 1e-7, 4
# Largest residual of the vectors, as a share of the values.
RESIDUAL = 1e-4
# Changes of this share of the largest entry on the way are rounding.
ROUNDING = 1e-15
# Twenty to forty are the rule. LAPACK is the faster one where so many are not enough, as for a large α.
MOST_STEPS = 80

trsv = linalg.blas.dtrsv


def largest_values(
    applied: Callable[[Float], Float], size: int, count: int, most: int = MOST_STEPS
) -> tuple[Float, bool]:
    """Give the largest eigenvalue of several symmetric matrices of one size, which are applied to one vector each.

    Lanczos iterations in lock step. Vectors are not made orthogonal again: the largest value needs no more.

    Returns
    -------
    values : ndarray of shape (count,)
        Lower bounds if the iterations did not converge.
    converged : bool
    """
    vectors = np.repeat(np.random.default_rng(0).standard_normal((size, 1)), count, axis=1)
    vectors /= np.linalg.norm(vectors, axis=0)
    before, lengths = np.zeros_like(vectors), np.zeros(count)
    own: list[Float] = []
    beside: list[Float] = []
    found, scale, unit = np.zeros(count), np.zeros(count), np.ones(count)
    for step in range(1, most + 1):
        images = applied(vectors)
        if step == 1:
            # In units of the first images: squares of their lengths could leave the range of numbers.
            sizes = np.max(np.abs(images), axis=0)
            unit = np.where((sizes > 0.0) & np.isfinite(sizes), sizes, 1.0)
        images = images / unit - lengths * before
        own.append(np.einsum("ij,ij->j", vectors, images))
        images -= own[-1] * vectors
        lengths = np.sqrt(np.einsum("ij,ij->j", images, images))
        scale = np.maximum(scale, np.maximum(np.abs(own[-1]), lengths))
        done = bool(np.all(lengths <= np.finfo(np.float64).eps * scale * size))
        if step % CHECKED == 0 or done or step == most:
            last, (found, ends) = found, _tops(np.array(own), np.array(beside).reshape(-1, count))
            small = TOLERANCE * np.abs(found) + ROUNDING * scale
            # Where values are close to each other, they change slowly long before the vectors are any good.
            exact = np.all(lengths * ends <= RESIDUAL * np.abs(found) + ROUNDING * scale)
            if done or (exact and step > CHECKED and np.all(found - last <= small)):
                return found * unit, True
        beside.append(lengths)
        before, vectors = vectors, images / np.where(lengths > 0.0, lengths, 1.0)
    return found * unit, False


def largest_ratio(matrix: Float, factor: Float) -> float | None:
    """Give the largest eigenvalue of ``L⁻¹ A L⁻ᵀ``, or None if the iterations do not converge."""

    def applied(vectors: Float) -> Float:
        turned = trsv(factor, vectors[:, 0], lower=1, trans=1)
        image: Float = trsv(factor, product(matrix, turned[:, np.newaxis])[:, 0], lower=1, overwrite_x=True)
        return image[:, np.newaxis]

    values, converged = largest_values(applied, len(matrix), 1)
    return float(values[0]) if converged else None


def largest_eigenvalue(matrix: Float) -> float | None:
    """Give the largest eigenvalue of a symmetric matrix, or None if the iterations do not converge."""
    values, converged = largest_values(lambda vectors: product(matrix, vectors), len(matrix), 1)
    return float(values[0]) if converged else None


def ratios_of_inner_products(own: Float, across: Float, other: Float, factors: Float, ridges: Float) -> Float | None:
    """Give the largest ratio at each factor κ and ridge ρ from the inner products of rows, all centred.

    With X the n rows of the target and Z the m rows of the backgrounds, the ratios of ``XᵀX`` to ``κ ZᵀZ + ρ I`` are
    the eigenvalues of ``[X Xᵀ - κ X Zᵀ (κ Z Zᵀ + ρ I)⁻¹ Z Xᵀ] / ρ``. One ridge needs a Cholesky factor. For several,
    ``Z Zᵀ`` is diagonalised once.

    Parameters
    ----------
    own : ndarray of shape (n, n)
        ``X Xᵀ``.
    across : ndarray of shape (m, n)
        ``Z Xᵀ``.
    other : ndarray of shape (m, m)
        ``Z Zᵀ``.
    factors, ridges : ndarray of shape (g,)

    Returns
    -------
    ndarray of shape (g,) or None
        Infinite where nothing is left of the background; None if the iterations do not converge.
    """
    if len(factors) == 1:
        factor = cholesky(add_to_diagonal(factors[0] * other, float(ridges[0])))
        if factor is None:
            return np.full(1, np.inf)

        def solved(vectors: Float) -> Float:
            half = trsv(factor, vectors[:, 0], lower=1)
            whole: Float = trsv(factor, half, lower=1, trans=1, overwrite_x=True)
            return whole[:, np.newaxis]

    else:
        values, turn = linalg.eigh(other, check_finite=False, driver="evd")
        across = product(turn.T, across)
        diagonal = factors * np.maximum(values, 0.0)[:, np.newaxis] + ridges

        def solved(vectors: Float) -> Float:
            return vectors / np.where(diagonal > 0.0, diagonal, 1.0)

    def applied(vectors: Float) -> Float:
        image: Float = product(own, vectors) - product(across.T, factors * solved(product(across, vectors)))
        return image

    found, converged = largest_values(applied, len(own), len(factors))
    if not converged:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(ridges > 0.0, found / ridges, np.inf)


def _tops(own: Float, beside: Float) -> tuple[Float, Float]:
    """Give the largest eigenvalue of each tridiagonal matrix, whose entries are columns, and the end of its vector."""
    last = (len(own) - 1, len(own) - 1)
    pairs = [
        linalg.eigh_tridiagonal(*entries, select="i", select_range=last)
        for entries in zip(own.T, beside.T, strict=True)
    ]
    return np.array([values[0] for values, _ in pairs]), np.array([abs(vectors[-1, 0]) for _, vectors in pairs])
