"""Shifted iterations for a difference: ``A = Cxx - α Cyy`` against the identity."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from standout._arrays import Float
from standout.pencil._dense import solve_dense
from standout.pencil._krylov import has_missed, lanczos
from standout.pencil._record import Pencil, Solution, finish

# Vectors of a Lanczos run: few iterations are needed with a shift close by.
SUBSPACE = 12
# Product of the cosines between two views from which on they count as the same.
SAME_VIEW = 0.9


def solve_shifted(pencil: Pencil, n_components: int, above: Solution) -> Solution:
    """Find the leading eigenvectors of A by Lanczos iterations on ``(σI - A)⁻¹``, with σ just above all values.

    `above` solves a problem whose A is at least this one's in every direction, such as the same problem with a smaller
    α: its leading value bounds this one's, and its vectors are where the iterations start. With a large α the wanted
    values lie close together at the far end of a wide spectrum; inverted, they stand apart, whatever α is.

    Where the bound does not hold, the iterations fail or miss one of several equal values, the dense solver takes over.
    """
    size = pencil.n_features
    if n_components >= size - 1:
        return solve_dense(pencil, n_components)
    top, spread = float(above.values[0]), float(above.values[0] - above.values[-1])
    shift = top + 0.1 * spread + 1e-3 * abs(top)
    shifted = pencil.a.matrix().T  # symmetric: the transpose is the same matrix in LAPACK's order
    np.negative(shifted, out=shifted)
    shifted.T.flat[:: size + 1] += shift
    factor, info = linalg.lapack.dpotrf(shifted, lower=1, overwrite_a=True, clean=False)
    if info != 0:
        return solve_dense(pencil, n_components)

    def inverse(v: Float) -> Float:
        half = linalg.blas.dtrsv(factor, v.ravel(), lower=1)
        return linalg.blas.dtrsv(factor, half, lower=1, trans=1, overwrite_x=True)

    found = lanczos(inverse, size, n_components, _start(above), SUBSPACE)
    # Where the view has hardly turned, nothing can have come up that was not there before.
    if found is None or (_turned(found[1], above.vectors) and has_missed(inverse, size, *found)):
        return solve_dense(pencil, n_components)
    vectors = found[1]
    images = pencil.a.apply(vectors)
    # Rayleigh quotients: the shift would round the values at its own size.
    values = np.einsum("ij,ij->j", vectors, images)
    return finish(pencil, values, vectors, "lanczos", images=(images, vectors))


def _turned(vectors: Float, before: Float) -> bool:
    """Tell whether a view is another one than before."""
    if vectors.shape != before.shape:
        return True
    return bool(abs(np.linalg.det(vectors.T @ before)) < SAME_VIEW)


def _start(above: Solution) -> Float:
    """Give a vector with a part in every wanted direction, and in all others."""
    blur = np.random.default_rng(0).standard_normal(len(above.vectors))
    start: Float = above.vectors.sum(axis=1) + 0.1 * blur / np.linalg.norm(blur)
    return start
