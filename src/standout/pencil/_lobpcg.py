"""The LOBPCG solver: no matrix is formed, both are applied to a few vectors at a time."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, lobpcg

from standout._arrays import Float
from standout._messages import warn_user
from standout.pencil._record import Form, NotDefiniteError, Pencil, Solution, UnconvergedWarning, finish

# Number of vectors in addition to the wanted ones. They speed up convergence of the wanted ones.
GUARD = 6
# Rank of the approximation of B that preconditions the iterations.
SKETCH = 64
# Iterations between two checks of the wanted vectors, and the most checks.
ROUND = 20
MOST_ROUNDS = 30
# Relative residuals: aimed at, and accepted. The error of a value is the square of its residual.
TOLERANCE = 1e-6
ACCEPTABLE = 1e-4


def solve_lobpcg(pencil: Pencil, n_components: int, seed: int, start: Float | None = None) -> Solution:
    """Find the leading vectors by locally optimal block preconditioned conjugate gradients.

    The iterations start from the columns of `start`, if it is given.

    Raises
    ------
    NotDefiniteError
        If the data are too small, or B has no ridge and is singular or nearly so.

    Warns
    -----
    ConvergenceWarning
        If a residual is still large after the last round of iterations.
    """
    size = pencil.n_features
    n_target, n_background = (sum(moments.count - 1 for _, moments in form.terms) for form in (pencil.a, pencil.b))
    width = n_components + GUARD
    # The iterations work in spaces of three times this width, which must fit into the span of the data.
    too_small = 5 * width > min(size, n_target + n_background)
    if too_small or (pencil.b.ridge == 0.0 and n_background < size) or not np.any(pencil.a.added.diagonal):
        raise NotDefiniteError
    # SciPy uses absolute tolerances, so both forms are scaled to size 1.
    added = pencil.a.added
    size_a, size_b = float(np.mean(added.diagonal)), float(np.mean(pencil.b.diagonal))
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((size, width))
    # Applying A once turns the random vectors towards its range.
    vectors += added.apply(vectors) / size_a
    if start is not None:
        vectors[:, : start.shape[1]] = start[:, :width]
    preconditioner = _preconditioner(_penalty(pencil, size_a), rng)
    last = np.inf
    for _ in range(MOST_ROUNDS):
        with warnings.catch_warnings():
            # SciPy warns if the additional vectors do not converge, which does not matter. The others are checked here.
            warnings.simplefilter("ignore")
            values, vectors = lobpcg(
                _operator(pencil.a, size_a),
                vectors,
                B=None if pencil.b.is_identity else _operator(pencil.b, size_b),
                M=preconditioner,
                largest=True,
                tol=0.0,
                maxiter=ROUND,
            )
        order = np.argsort(-values, kind="stable")
        wanted = vectors[:, order[:n_components]]
        solution = finish(pencil, pencil.a.value(wanted) / pencil.b.value(wanted), wanted, "lobpcg")
        worst = float(np.max(solution.residuals))
        # An acceptable residual that hardly gets smaller in a round has reached the rounding of the products.
        if worst < TOLERANCE or 0.5 * last < worst < ACCEPTABLE:
            return solution
        last = worst
    if not np.all(solution.residuals < ACCEPTABLE):
        warn_user(
            "the lobpcg solver stopped at residuals of {residual:.1e} after {n_iterations} iterations",
            residual=float(np.max(solution.residuals)),
            n_iterations=MOST_ROUNDS * ROUND,
            limit=ACCEPTABLE,
            advice="Use more shrinkage, which makes the problem easier, or another solver.",
            category=UnconvergedWarning,
        )
    return solution


def _penalty(pencil: Pencil, size: float) -> Form:
    """Give the form that limits the size of vectors: B, or for a difference the part that is subtracted."""
    if pencil.a.is_nonnegative:
        return pencil.b
    return replace(pencil.a.subtracted, ridge=size)


def _operator(form: Form, size: float) -> LinearOperator:
    """Give the operator of a form, divided by its size."""

    def apply(V: Float) -> Float:
        return form.apply(V.reshape(form.n_features, -1)).reshape(V.shape) / size

    return LinearOperator((form.n_features, form.n_features), matvec=apply, matmat=apply, dtype=np.float64)


def _preconditioner(form: Form, rng: np.random.Generator) -> LinearOperator | None:
    """Approximate the inverse of B from its action on a few random vectors (Nyström)."""
    if not form.terms:
        return None
    size = form.n_features
    test = np.linalg.qr(rng.standard_normal((size, min(SKETCH, size))))[0]
    image = form.apply(test)
    # A small shift keeps the factorisation stable against rounding. It is subtracted again afterwards.
    shift = float(np.finfo(np.float64).eps) * float(np.linalg.norm(image))
    image += shift * test
    core = test.T @ image
    try:
        factor = linalg.cholesky(0.5 * (core + core.T), lower=True)
    except linalg.LinAlgError:
        raise NotDefiniteError from None
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
