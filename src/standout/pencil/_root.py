"""The root solver: the pencil as two roots, never squared. It settles ill-conditioned and singular problems."""

from __future__ import annotations

import numpy as np

from standout._arrays import Float, weighted_sum
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
    root_a, root_b = pencil.a.root(), pencil.b.root()
    stack = np.vstack([root_a, root_b])
    scale = np.linalg.norm(stack, axis=0)
    scale[scale == 0] = 1.0
    left, spread, right = np.linalg.svd(stack / scale, full_matrices=False)
    level = max(pencil.a.root_level, pencil.b.root_level)
    rank = int(np.sum(spread > MARGIN * level * spread[0]))
    check_n_components(n_components, pencil.n_features, rank)
    left, spread, right = left[:, :rank], spread[:rank], right[:rank].T
    part_a, part_b = left[: len(root_a)], left[len(root_a) :]

    # part_aᵀ part_a + part_bᵀ part_b = I: the cosines of one are the sines of the other.
    cosines, turn = _right_singular(part_b)
    sines = np.linalg.norm(part_a @ turn, axis=0)
    blur = level * np.linalg.norm(turn / (spread / spread[0])[:, np.newaxis], axis=0)
    # With a ridge B has every direction, however small its part in it.
    absent = (cosines <= MARGIN * np.minimum(blur, 1.0 / MARGIN**2)) & (pencil.b.ridge == 0.0)
    n_absent = int(absent.sum())

    # Back to the columns of the data, without any part in directions that no dataset has.
    joint = np.linalg.qr(right * scale[:, np.newaxis])[0]
    vectors = joint @ (joint.T @ ((right / spread) @ turn / scale[:, np.newaxis]))

    finite_values = (sines[~absent] / cosines[~absent]) ** 2
    order = np.argsort(-finite_values, kind="stable")
    finite = (vectors[:, ~absent] / cosines[~absent])[:, order]
    infinite = np.linalg.qr(vectors[:, absent])[0]
    if n_absent:
        infinite = infinite @ _right_singular(root_a @ infinite)[1][:, ::-1]
    # What an infinite component looks like: orthogonal to all finite filters, as in the limit of a ridge.
    looks = infinite - root_b.T @ (root_b @ (finite @ (finite.T @ infinite)))

    values = np.concatenate([np.full(n_absent, np.inf), finite_values[order]])[:n_components]
    vectors = np.hstack([infinite, finite])[:, :n_components]
    # A root is rounded relative to its own size, not to the square of it.
    noise = level * np.sqrt(weighted_sum(pencil.a.diagonal + pencil.b.diagonal, vectors**2))
    return finish(
        pencil,
        values,
        vectors,
        "root",
        infinite_patterns=looks[:, :n_components],
        rounding=np.where(np.isinf(values), 0.0, noise),
        n_absent=n_absent,
        singular=n_absent > 0 or rank < pencil.n_features,
        rank=rank if rank < pencil.n_features else None,
    )


def _right_singular(matrix: Float) -> tuple[Float, Float]:
    """Give all right singular vectors of a matrix as columns, and their singular values, ascending."""
    n_columns = matrix.shape[1]
    if matrix.shape[0] > n_columns:
        matrix = np.asarray(np.linalg.qr(matrix, mode="r"))
    _, values, vectors = np.linalg.svd(matrix, full_matrices=True)
    padded = np.zeros(n_columns)
    padded[: len(values)] = values
    return padded[::-1], vectors.T[:, ::-1]
