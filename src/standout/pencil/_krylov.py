"""Leading eigenvectors of an operator by Lanczos iterations, with a look at whether one was missed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from standout._arrays import Float

# Of the vectors; the values' error goes with the square.
TOLERANCE = 1e-11
# A look at what is left needs a rough answer only, and few vectors.
ROUGH = 1e-2
FEW = 8


def lanczos(
    apply: Callable[[Float], Float], size: int, count: int, start: Float, subspace: int
) -> tuple[Float, Float] | None:
    """Give the largest eigenvalues of a symmetric operator, in descending order, and their vectors.

    None where the iterations fail. They start from one vector, and of several vectors with the same value only one is
    in its reach: see `has_missed`.
    """
    operator = LinearOperator((size, size), matvec=apply, dtype=np.float64)
    try:
        values, vectors = eigsh(
            operator, k=count, which="LA", v0=start, ncv=min(size, max(2 * count + 1, subspace)), tol=TOLERANCE
        )
    except ArpackError:
        return None
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order]


def has_missed(apply: Callable[[Float], Float], size: int, values: Float, vectors: Float) -> bool:
    """Tell whether a larger value than the smallest one found is left outside of the span of the vectors found."""
    try:
        left = _left(apply, size, vectors, float(values[-1]))
    except ArpackError:
        return True
    return bool(left > values[-1] + 1e-9 * np.abs(values).max())


def _left(apply: Callable[[Float], Float], size: int, vectors: Float, floor: float) -> float:
    """Estimate, from below, the largest value outside of the span of vectors."""

    def outside(v: Float) -> Float:
        return v - vectors @ (vectors.T @ v)

    def apply_outside(v: Float) -> Float:
        # Inside the span the values are moved out of the way.
        flat = v.ravel()
        return outside(apply(outside(flat))) + (floor - 1.0 - abs(floor)) * (vectors @ (vectors.T @ flat))

    operator = LinearOperator((size, size), matvec=apply_outside, dtype=np.float64)
    start = outside(np.random.default_rng(1).standard_normal(size))
    few = min(size, FEW)
    return float(eigsh(operator, k=1, which="LA", v0=start, ncv=few, tol=ROUGH, return_eigenvectors=False)[0])
