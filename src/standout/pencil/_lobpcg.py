"""The LOBPCG solver: neither matrix is formed, both are applied to a few vectors at a time."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, lobpcg
from sklearn.exceptions import ConvergenceWarning

from standout._arrays import Float
from standout.pencil._record import Form, NotDefiniteError, Pencil, Solution, finish

# Vectors carried beside the wanted ones: they shield these from the rest of the spectrum.
GUARD = 6
# Rank of the low-rank picture of B that preconditions the iterations.
SKETCH = 64
# Iterations between looks at the wanted vectors, and the most looks.
ROUND = 20
MOST_ROUNDS = 30
# Relative residuals: the value's error goes with the square.
TOLERANCE = 1e-6
ACCEPTABLE = 1e-4


def solve_lobpcg(pencil: Pencil, n_components: int, seed: int) -> Solution:
    """Find the leading vectors by locally optimal block preconditioned conjugate gradients.

    Raises
    ------
    NotDefiniteError
        Where B has no ridge, and too few rows or too little spread to do without.

    Warns
    -----
    ConvergenceWarning
        Where the residual is still large after the last round of iterations.
    """
    size = pencil.n_features
    if pencil.b.ridge == 0.0 and sum(moments.count - 1 for _, moments in pencil.b.terms) < size:
        raise NotDefiniteError
    width = min(n_components + GUARD, max(size // 5, n_components))
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((size, width))
    # One application of A turns the random vectors towards its range.
    vectors += pencil.a.apply(vectors) / np.mean(pencil.a.diagonal)
    preconditioner = _preconditioner(pencil.b, rng)
    last = np.inf
    for _ in range(MOST_ROUNDS):
        with warnings.catch_warnings():
            # SciPy warns of the guard vectors, which need not converge; the wanted ones are judged here.
            warnings.simplefilter("ignore")
            values, vectors = lobpcg(
                _operator(pencil.a),
                vectors,
                B=None if _is_identity(pencil.b) else _operator(pencil.b),
                M=preconditioner,
                largest=True,
                tol=0.0,
                maxiter=ROUND,
            )
        order = np.argsort(-values, kind="stable")
        wanted = vectors[:, order[:n_components]]
        solution = finish(pencil, pencil.a.value(wanted) / pencil.b.value(wanted), wanted, "lobpcg")
        worst = float(np.max(solution.residuals))
        # Below what is acceptable, a round that gains little has met the rounding of the products.
        if worst < TOLERANCE or 0.5 * last < worst < ACCEPTABLE:
            return solution
        last = worst
    if not np.all(solution.residuals < ACCEPTABLE):
        warnings.warn(
            f"the lobpcg solver stopped at residuals of {np.max(solution.residuals):.1e} after {MOST_ROUNDS * ROUND} "
            "iterations. Use more shrinkage, which makes the problem easier, or another solver.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return solution


def _operator(form: Form) -> LinearOperator:
    size = form.n_features

    def matvec(v: Float) -> Float:
        return form.apply(v.reshape(size, -1)).reshape(v.shape)

    return LinearOperator((size, size), matvec=matvec, matmat=form.apply, dtype=np.float64)


def _is_identity(form: Form) -> bool:
    return not form.terms and form.ridge == 1.0


def _preconditioner(form: Form, rng: np.random.Generator) -> LinearOperator | None:
    """Approximate the inverse of B from its action on a few random vectors (Nyström)."""
    if not form.terms:
        return None
    size = form.n_features
    test = np.linalg.qr(rng.standard_normal((size, min(SKETCH, size))))[0]
    image = form.apply(test)
    # A small shift keeps the factor real where rounding would not; it is taken off again.
    shift = float(np.finfo(np.float64).eps) * float(np.linalg.norm(image))
    image += shift * test
    core = test.T @ image
    factor = linalg.cholesky(0.5 * (core + core.T), lower=True)
    basis, spread, _ = np.linalg.svd(linalg.solve_triangular(factor, image.T, lower=True).T, full_matrices=False)
    spread = np.maximum(spread**2 - shift, 0.0)
    floor = max(form.ridge, float(spread[-1]))
    if floor <= shift:
        raise NotDefiniteError

    def apply(V: Float) -> Float:
        inside = basis.T @ V
        weights = (1.0 / np.maximum(spread, floor) - 1.0 / floor)[:, np.newaxis]
        return V / floor + basis @ (weights * inside)

    def matvec(v: Float) -> Float:
        return apply(v.reshape(size, -1)).reshape(v.shape)

    return LinearOperator((size, size), matvec=matvec, matmat=apply, dtype=np.float64)
