"""The root solver: the pencil as two roots, never squared. It settles ill-conditioned and singular problems."""

from __future__ import annotations

import numpy as np

from standout._algebra import (
    at_most,
    column_lengths,
    count_true,
    descending,
    either,
    is_infinite,
    joined,
    mirrored,
    orthonormal,
    root,
    singular,
    take_columns,
)
from standout._arrays import Float, row_slice, stacked, weighted_sum
from standout._namespaces import like
from standout._validation import check_n_components
from standout.pencil._record import Pencil, Solution, finish

# A direction counts as present where its spread is this many times the rounding error of the roots.
MARGIN = 10.0


def solve_root(pencil: Pencil, n_components: int) -> Solution:
    """Solve in the joint range of A and B, by a singular value decomposition of the stacked roots.

    With ``μ = λ / (1 + λ)`` the pencil (A, A + B) has all its values in [0, 1]: a direction that B lacks has μ = 1 and
    λ = ``inf``. These come first, ordered by the variance of A along them at unit length, which is the limit of an
    ever smaller ridge on B. Directions that neither A nor B has are left out.
    """
    root_a = pencil.a.root()
    root_b = like(pencil.b.root(), root_a)
    stack = stacked([root_a, root_b])
    scale = column_lengths(stack)
    scale = either(scale == 0, 1.0, scale)
    left, spread, right = singular(stack / scale)
    level = max(pencil.a.root_level, pencil.b.root_level)
    rank = count_true(spread > MARGIN * level * spread[0])
    check_n_components(n_components, pencil.n_features, rank)
    left, spread, right = left[:, :rank], spread[:rank], right[:rank, :].T
    part_a, part_b = row_slice(left, 0, root_a.shape[0]), row_slice(left, root_a.shape[0], left.shape[0])

    # part_aᵀ part_a + part_bᵀ part_b = I: the cosines of one are the sines of the other.
    cosines, turn = _right_singular(part_b)
    sines = column_lengths(part_a @ turn)
    blur = level * column_lengths(turn / (spread / spread[0])[:, np.newaxis])
    # With a ridge B has every direction, however small its part in it.
    absent = (cosines <= MARGIN * at_most(blur, 1.0 / MARGIN**2)) & (pencil.b.ridge == 0.0)
    n_absent = count_true(absent)

    # Back to the columns of the data, without any part in directions that no dataset has.
    joint = orthonormal(right * scale[:, np.newaxis])[0]
    vectors = joint @ (joint.T @ ((right / spread) @ turn / scale[:, np.newaxis]))

    finite_values = (sines[~absent] / cosines[~absent]) ** 2
    order = descending(finite_values)
    finite = take_columns(take_columns(vectors, ~absent) / cosines[~absent], order)
    infinite = orthonormal(take_columns(vectors, absent))[0]
    if n_absent:
        infinite = infinite @ mirrored(_right_singular(root_a @ infinite)[1])
    # What an infinite component looks like: orthogonal to all finite filters, as in the limit of a ridge.
    looks = infinite - root_b.T @ (root_b @ (finite @ (finite.T @ infinite)))

    ordered = take_columns(finite_values[np.newaxis, :], order)[0, :]
    values = stacked([like(np.full(n_absent, np.inf), ordered), ordered])[:n_components]
    vectors = joined([infinite, finite])[:, :n_components]
    # A root is rounded relative to its own size, not to the square of it.
    noise = level * root(weighted_sum(pencil.a.diagonal + like(pencil.b.diagonal, vectors), vectors**2))
    return finish(
        pencil,
        values,
        vectors,
        "root",
        infinite_patterns=looks[:, : min(n_absent, n_components)],
        rounding=either(is_infinite(values), 0.0, noise),
        n_absent=n_absent,
        singular=n_absent > 0 or rank < pencil.n_features,
        rank=rank if rank < pencil.n_features else None,
    )


def _right_singular(matrix: Float) -> tuple[Float, Float]:
    """Give all right singular vectors of a matrix as columns, and their singular values, ascending."""
    n_columns = matrix.shape[1]
    if matrix.shape[0] > n_columns:
        matrix = orthonormal(matrix)[1]
    _, values, vectors = singular(matrix, full=True)
    padded = stacked([values, like(np.zeros(n_columns - values.shape[0]), values)])
    return mirrored(padded), mirrored(vectors.T)
