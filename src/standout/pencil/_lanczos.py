"""The Lanczos solver: B factorised, the leading vectors of the whitened operator by Lanczos iterations."""

from __future__ import annotations

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from standout._arrays import Float
from standout.pencil._dense import cholesky_factor, solve_dense
from standout.pencil._record import Pencil, Solution, finish


def solve_lanczos(pencil: Pencil, n_components: int, seed: int) -> Solution:
    """Find the leading eigenvectors of ``L⁻¹ A L⁻ᵀ`` with ``B = L Lᵀ`` (Remark 4), to machine precision.

    Where the iterations fail (values that cannot be told apart, a target without variance), the dense solver takes
    over.

    Raises
    ------
    NotDefiniteError
        Where B is singular.
    """
    size = pencil.n_features
    if n_components >= size - 1:
        return solve_dense(pencil, n_components)  # Lanczos needs room for its own subspace
    factor = cholesky_factor(pencil.b)
    matrix = pencil.a.matrix().T  # symmetric: the transpose is the same matrix in BLAS's order

    def whitened(v: Float) -> Float:
        if factor is None:
            return linalg.blas.dsymv(1.0, matrix, v.ravel(), lower=1)
        inner = linalg.blas.dtrsv(factor, v.ravel(), lower=1, trans=1)
        image = linalg.blas.dsymv(1.0, matrix, inner, lower=1)
        product: Float = linalg.blas.dtrsv(factor, image, lower=1, overwrite_x=True)
        return product

    operator = LinearOperator((size, size), matvec=whitened, dtype=np.float64)
    start = np.random.default_rng(seed).standard_normal(size)
    subspace = min(size, max(2 * n_components + 1, 32))
    try:
        values, vectors = eigsh(operator, k=n_components, which="LA", v0=start, ncv=subspace)
    except ArpackError:
        return solve_dense(pencil, n_components)
    order = np.argsort(-values, kind="stable")
    values, vectors = np.maximum(values[order], 0.0), vectors[:, order]
    if factor is not None:
        vectors = linalg.solve_triangular(factor, vectors, lower=True, trans="T", check_finite=False)
    return finish(pencil, values, vectors, "lanczos")
