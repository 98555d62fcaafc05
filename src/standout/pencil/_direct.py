"""The direct solvers: LAPACK on both matrices, or on their roots for ill-conditioned and singular problems."""

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

# A direction is kept if its spread is this many times the rounding error of the roots.
MARGIN = 10.0


def solve_dense(pencil: Pencil, n_components: int) -> Solution:
    """Factorise B, and return the leading eigenvectors of the whitened A.

    Raises
    ------
    NotDefiniteError
        If B is singular.
    """
    a = pencil.a.matrix()
    # If B has no datasets, its matrix is a NumPy array even for foreign data.
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
    # The transpose of a symmetric matrix is the same matrix in LAPACK's order of memory.
    values, vectors = leading_eigenvectors(a.T, n_components)
    if factor is not None:
        vectors = solve_triangular(factor, vectors, transposed=True)
    if pencil.a.is_nonnegative:
        values = nonnegative(values)
    return finish(pencil, values, vectors, "dense")


def is_weak(roots: Float, variances: Float, precision: float) -> Array:
    """Tell whether a pivot of a Cholesky factor, or of each of a stack, is as small as rounding; `roots` are diagonals.

    A pivot is the variance of a column that the columns before it do not explain. If it is as small as rounding, a
    direction may be lost, and the solutions would not show that. Errors of n entries add up to about √n of one.
    """
    return namespace(roots).any(roots**2 < 100.0 * variances.shape[-1] ** 0.5 * precision * variances, axis=-1)


def solve_root(pencil: Pencil, n_components: int) -> Solution:
    """Solve in the joint range of A and B, by a singular value decomposition of the stacked roots.

    With ``μ = λ / (1 + λ)`` all values of the pencil (A, A + B) are in [0, 1]. A direction in which B is zero has μ = 1
    and λ = ``inf``. Such directions come first, ordered by the variance of A along them at unit length, which is the
    order in the limit of a vanishing ridge on B. Directions in which both A and B are zero are left out.
    """
    root_a = pencil.a.root()
    root_b = like(pencil.b.root(), root_a)
    xp = namespace(root_a)
    stack = stacked([root_a, root_b])
    scale = column_norms(stack)
    safe = xp.where(scale > 0.0, scale, 1.0)
    left, spread, right = xp.linalg.svd(stack / safe, full_matrices=False)
    # The square root, because squaring the data loses half of the digits.
    level = float(np.sqrt(pencil.n_features * max(pencil.a.precision, pencil.b.precision)))
    rank = int(xp.count_nonzero(spread > MARGIN * level * spread[0]))
    check_directions(n_components, rank)
    left, spread, right = left[:, :rank], spread[:rank], right[:rank, :].T
    part_a, part_b = row_slice(left, 0, root_a.shape[0]), row_slice(left, root_a.shape[0], left.shape[0])

    cosines, sines, turn = _angles(part_a, part_b)
    blur = level * column_norms(turn / (spread / spread[0])[:, None])
    # With a ridge, B is positive in every direction, though it can be very small.
    absent = (cosines <= MARGIN * xp.clip(blur, None, 1.0 / MARGIN**2)) & (not pencil.b.has_ridge)
    n_absent = int(xp.count_nonzero(absent))

    # Back to the columns of the data; components are zero along directions in which no dataset varies.
    joint = xp.linalg.qr(right * scale[:, None])[0]
    vectors = joint @ (joint.T @ ((right / spread) @ turn / safe[:, None]))

    finite_values = (sines[~absent] / cosines[~absent]) ** 2
    order = xp.flip(xp.argsort(finite_values), axis=0)
    finite = take(take(vectors, ~absent, axis=1) / cosines[~absent], order, axis=1)
    infinite = xp.linalg.qr(take(vectors, absent, axis=1))[0]
    if n_absent:
        infinite = infinite @ xp.flip(_right_singular(root_a @ infinite)[1], axis=-1)
    # Patterns of infinite components are orthogonal to all finite filters, as in the limit of a vanishing ridge.
    infinite_patterns = infinite - root_b.T @ (root_b @ (finite @ (finite.T @ infinite)))

    values = stacked([like(np.full(n_absent, np.inf), root_a), take(finite_values, order)])[:n_components]
    # Rounding in the loading of a constant column would count in units that are far larger than the others.
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
    """Return cosines for B, sines for A, and the directions that belong to them.

    ``part_aᵀ part_a + part_bᵀ part_b = I``, so that both have the same singular vectors.
    """
    xp, rank = namespace(part_a), part_a.shape[1]
    cosines, turn = _right_singular(part_b)
    # Cosines near one do not separate directions whose sines differ. These directions are turned by the sines.
    n_turned = int(xp.count_nonzero(cosines > 0.7))
    if n_turned:
        first, second = turn[:, : rank - n_turned], turn[:, rank - n_turned :]
        second = second @ xp.flip(_right_singular(part_a @ second)[1], axis=-1)
        turn = concat([first, second], axis=1)
        cosines = stacked([cosines[: rank - n_turned], column_norms(part_b @ second)])
    return cosines, column_norms(part_a @ turn), turn


def _right_singular(matrix: Float) -> tuple[Float, Float]:
    """Return the singular values of a matrix, ascending, and all right singular vectors as columns."""
    xp, n_columns = namespace(matrix), matrix.shape[1]
    if matrix.shape[0] > n_columns:
        matrix = xp.linalg.qr(matrix)[1]
    _, values, vectors = xp.linalg.svd(matrix, full_matrices=True)
    padded = stacked([values, like(np.zeros(n_columns - values.shape[0]), values)])
    return xp.flip(padded, axis=-1), xp.flip(vectors.T, axis=-1)
