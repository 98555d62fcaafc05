"""The Lanczos solver: B factorised, the leading vectors of the whitened operator by Lanczos iterations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import linalg

from standout._arrays import Float
from standout.pencil._dense import cholesky_factor, solve_dense
from standout.pencil._krylov import has_missed, lanczos
from standout.pencil._record import Form, Pencil, Solution, finish
from standout.pencil._shifted import solve_shifted

# Vectors of a Lanczos run.
SUBSPACE = 48


def solve_lanczos(pencil: Pencil, n_components: int, seed: int) -> Solution:
    """Find the leading eigenvectors of ``L⁻¹ A L⁻ᵀ`` with ``B = L Lᵀ`` (Remark 4).

    Where the iterations fail (values that cannot be told apart, a target without variance), the dense solver takes
    over. A difference ``A = Cxx - α Cyy`` is left to shifted iterations.

    Raises
    ------
    NotDefiniteError
        Where B is singular.
    """
    size = pencil.n_features
    if n_components >= size - 1:
        return solve_dense(pencil, n_components)  # Lanczos needs room for its own subspace
    if pencil.is_difference:
        # The wanted end of the spectrum is a tiny part of it, where much is subtracted: plain iterations would crawl.
        above = solve_lanczos(Pencil(pencil.a.added, pencil.b), 1, seed)
        return solve_shifted(pencil, n_components, above)
    factor = cholesky_factor(pencil.b)
    apply = _application(pencil.a)

    def whitened(v: Float) -> Float:
        if factor is None:
            return apply(v.ravel())
        inner = linalg.blas.dtrsv(factor, v.ravel(), lower=1, trans=1)
        return linalg.blas.dtrsv(factor, apply(inner), lower=1, overwrite_x=True)

    found = lanczos(whitened, size, n_components, np.random.default_rng(seed).standard_normal(size), SUBSPACE)
    if found is None or has_missed(whitened, size, *found):
        return solve_dense(pencil, n_components)
    values, vectors = np.maximum(found[0], 0.0), found[1]
    if factor is not None:
        vectors = linalg.solve_triangular(factor, vectors, lower=True, trans="T", check_finite=False)
    return finish(pencil, values, vectors, "lanczos")


def _application(form: Form) -> Callable[[Float], Float]:
    """Give a function that applies a form to a vector: through the rows where these are kept, else as a matrix."""
    if form.keeps_rows:
        return lambda v: form.apply(v[:, np.newaxis])[:, 0]
    matrix = form.matrix().T  # symmetric: the transpose is the same matrix in BLAS's order
    return lambda v: linalg.blas.dsymv(1.0, matrix, v, lower=1)
