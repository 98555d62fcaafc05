"""The direct solvers: LAPACK on the matrices A and B, or on their roots if B is singular or ill-conditioned.

A root of a matrix M is any R with ``RᵀR = M``.
"""

from __future__ import annotations

import numpy as np

from standout._arrays import Array, Float, all_finite, row_slice, stacked
from standout._xp import (
    cholesky,
    column_norms,
    concat,
    diagonal,
    leading_eigenvectors,
    like,
    namespace,
    nonnegative,
    solve_triangular,
    take,
    whiten,
)
from standout.pencil._record import NotDefiniteError, Pencil, Solution, check_directions, finish

# A direction is kept if its spread is more than this many times the rounding error of the roots.
MARGIN = 10.0


def solve_dense(pencil: Pencil, n_components: int) -> Solution:
    """Return the leading solutions from a Cholesky factor L of B and the eigenvectors of ``L⁻¹ A L⁻ᵀ``.

    Raises
    ------
    NotDefiniteError
        If B is singular.
    """
    a = pencil.a.matrix()
    # If B has no datasets, its matrix is a NumPy array even if A is an array of another library.
    b = None if pencil.b.is_identity else like(pencil.b.matrix(), a)
    factor = None
    if b is not None:
        variances = 1.0 * diagonal(b)
        factor = cholesky(b)
        if factor is None or is_weak(diagonal(factor), variances, pencil.b.precision):
            raise NotDefiniteError
        a = whiten(a, factor)
        if not all_finite(a):
            raise NotDefiniteError
    # Transposing the symmetric matrix gives LAPACK's memory order without a copy.
    values, vectors = leading_eigenvectors(a.T, n_components)
    if factor is not None:
        vectors = solve_triangular(factor, vectors, transposed=True)
    if pencil.a.is_nonnegative:
        values = nonnegative(values)
    return finish(pencil, values, vectors, "dense")


def is_weak(roots: Float, variances: Float, precision: float) -> Array:
    """Return whether a pivot of a Cholesky factor is as small as a rounding error.

    For a stack of factors, return one answer for each factor.

    `roots` is the diagonal of the factor, and `variances` the diagonal of the matrix. A pivot is a squared entry of
    `roots`: the variance of a column that the columns before it do not explain. If a pivot is as small as a rounding
    error, the matrix may be singular, and the solutions would not show this. The rounding errors of n entries add up to
    about √n times the error of one entry.
    """
    return namespace(roots).any(roots**2 < 100.0 * variances.shape[-1] ** 0.5 * precision * variances, axis=-1)


def solve_root(pencil: Pencil, n_components: int) -> Solution:
    """Return the leading solutions in the joint range of A and B, by a singular value decomposition of stacked roots.

    The pencil (A, A + B) has the same vectors, and its values ``μ = λ / (1 + λ)`` are all in [0, 1]. A direction in
    which B is zero has μ = 1 and λ = ``inf``. Such directions come first. They have unit length and are ordered by the
    variance of A along them, which is the order in the limit of a vanishing ridge on B. Directions in which both A and
    B are zero are left out.
    """
    root_a = pencil.a.root()
    root_b = like(pencil.b.root(), root_a)
    xp = namespace(root_a)
    stack = stacked([root_a, root_b])
    scale = column_norms(stack)
    safe = xp.where(scale > 0.0, scale, 1.0)
    left, spread, right = xp.linalg.svd(stack / safe, full_matrices=False)
    # A and B contain squares of the data, and their relative rounding error is `precision`. Their roots then have a
    # relative error of up to the square root of `precision`.
    level = float(np.sqrt(pencil.n_features * max(pencil.a.precision, pencil.b.precision)))
    rank = int(xp.count_nonzero(spread > MARGIN * level * spread[0]))
    check_directions(n_components, rank)
    left, spread, right = left[:, :rank], spread[:rank], right[:rank, :].T
    part_a, part_b = row_slice(left, 0, root_a.shape[0]), row_slice(left, root_a.shape[0], left.shape[0])

    cosines, sines, turn = _angles(part_a, part_b)
    blur = level * column_norms(turn / (spread / spread[0])[:, None])
    # With a ridge, B is positive in every direction, even if the ridge is very small.
    absent = (cosines <= MARGIN * xp.clip(blur, None, 1.0 / MARGIN**2)) & (not pencil.b.has_ridge)
    n_absent = int(xp.count_nonzero(absent))

    # Convert the directions in `turn` to vectors in the columns of the data. The projection on `joint` makes the
    # vectors zero along directions in which no dataset varies.
    joint = xp.linalg.qr(right * scale[:, None])[0]
    vectors = joint @ (joint.T @ ((right / spread) @ turn / safe[:, None]))

    finite_values = (sines[~absent] / cosines[~absent]) ** 2
    order = xp.flip(xp.argsort(finite_values), axis=0)
    finite = take(take(vectors, ~absent, axis=1) / cosines[~absent], order, axis=1)
    infinite = xp.linalg.qr(take(vectors, absent, axis=1))[0]
    if n_absent:
        infinite = infinite @ xp.flip(_right_singular(root_a @ infinite)[1], axis=-1)
    # Patterns of components with λ = inf are orthogonal to the vectors of all finite λ, as in the limit of a vanishing
    # ridge.
    infinite_patterns = infinite - root_b.T @ (root_b @ (finite @ (finite.T @ infinite)))

    values = stacked([like(np.full(n_absent, np.inf), root_a), take(finite_values, order)])[:n_components]
    # Loadings of constant columns are rounding errors. Set them to zero, because they can be larger than the loadings
    # of columns with large variances.
    vectors = xp.where(scale[:, None] > 0.0, concat([infinite, finite], axis=1)[:, :n_components], 0.0)
    return finish(
        pencil,
        values,
        vectors,
        "root",
        infinite_patterns=infinite_patterns[:, : min(n_absent, n_components)],
        n_absent=n_absent,
        singular=n_absent > 0 or rank < pencil.n_features,
        rank=rank if rank < pencil.n_features else None,
    )


def _angles(part_a: Float, part_b: Float) -> tuple[Float, Float, Float]:
    """Return the singular values of part_b (cosines) and part_a (sines), and their common right singular vectors.

    The vectors are common because ``part_aᵀ part_a + part_bᵀ part_b = I``.
    """
    xp, rank = namespace(part_a), part_a.shape[1]
    cosines, turn = _right_singular(part_b)
    # Cosines near one are too similar to separate directions. For these directions, use singular vectors of part_a.
    n_turned = int(xp.count_nonzero(cosines > 0.7))
    if n_turned:
        first, second = turn[:, : rank - n_turned], turn[:, rank - n_turned :]
        second = second @ xp.flip(_right_singular(part_a @ second)[1], axis=-1)
        turn = concat([first, second], axis=1)
        cosines = stacked([cosines[: rank - n_turned], column_norms(part_b @ second)])
    return cosines, column_norms(part_a @ turn), turn


def _right_singular(matrix: Float) -> tuple[Float, Float]:
    """Return the singular values of a matrix in ascending order, and all right singular vectors as columns."""
    xp, n_columns = namespace(matrix), matrix.shape[1]
    if matrix.shape[0] > n_columns:
        matrix = xp.linalg.qr(matrix)[1]
    _, values, vectors = xp.linalg.svd(matrix, full_matrices=True)
    padded = stacked([values, like(np.zeros(n_columns - values.shape[0]), values)])
    return xp.flip(padded, axis=-1), xp.flip(vectors.T, axis=-1)
