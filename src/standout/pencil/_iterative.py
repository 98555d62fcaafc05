"""The iterative solver: Lanczos iterations on formed matrices, LOBPCG for sparse rows that only apply."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh, lobpcg

from standout._arrays import Float
from standout._messages import warn_user
from standout._xp import argsort_descending, cholesky, column_products, solve_triangular
from standout.pencil._direct import cholesky_factor, solve_dense
from standout.pencil._record import Form, NotDefiniteError, Pencil, Solution, UnconvergedWarning, finish

# Up to this many columns matrices are formed. Two of them need 4 GiB.
FORMED_SIZE = 16384
# Number of vectors in a Lanczos run; shifted iterations converge fast and need fewer.
SUBSPACE = 48
SHIFTED_SUBSPACE = 12
# Iterations that take longer than LAPACK for the whole problem are stopped: after so many restarts, or so many
# products per column.
MOST_RESTARTS, MOST_PER_COLUMN = 20, 0.5
# Tolerance of the vectors. The error of the values is its square.
TOLERANCE = 1e-11
# The check for missed values needs only a rough answer, and few vectors.
ROUGH = 1e-2
FEW = 8
# LOBPCG: additional vectors, which speed up convergence; rank of the approximation of B that preconditions.
GUARD = 6
SKETCH = 64
# LOBPCG: iterations between two checks of the wanted vectors, and the most checks.
ROUND = 20
MOST_ROUNDS = 30
# LOBPCG: relative residuals to reach, and to accept. The error of a value is the square of its residual.
AIMED = 1e-6
ACCEPTABLE = 1e-4


def solve_iterative(pencil: Pencil, n_components: int, seed: int, start: Float | None = None) -> Solution:
    """Find the leading vectors by iterations.

    Raises
    ------
    NotDefiniteError
        If B is singular.
    """
    if pencil.only_applies and pencil.n_features > FORMED_SIZE:
        return _solve_lobpcg(pencil, n_components, seed, start)
    return _solve_lanczos(pencil, n_components, seed)


def _solve_lanczos(pencil: Pencil, n_components: int, seed: int) -> Solution:
    """Find the leading eigenvectors of ``L⁻¹ A L⁻ᵀ`` with ``B = L Lᵀ`` (Remark 4).

    A difference ``A = Cxx - α Cyy`` is solved by `_solve_shifted`. If the iterations fail (because values are equal, or
    the target has no variance), the dense solver takes over.

    Raises
    ------
    NotDefiniteError
        If B is singular.
    """
    size = pencil.n_features
    if n_components >= size - 1:
        return solve_dense(pencil, n_components)  # Lanczos needs more dimensions than components
    if pencil.is_difference:
        # The wanted values are close together at one end of a wide spectrum: plain iterations would converge slowly.
        above = _solve_lanczos(Pencil(pencil.a.added, pencil.b), 1, seed)
        return _solve_shifted(pencil, n_components, above)
    factor = cholesky_factor(pencil.b)
    # The transpose of a symmetric matrix is the same matrix, mostly in BLAS's order of memory.
    matrix = np.asfortranarray(pencil.a.matrix().T)

    def apply(v: Float) -> Float:
        return linalg.blas.dsymv(1.0, matrix, v, lower=1)

    def whitened(v: Float) -> Float:
        if factor is None:
            return apply(v.ravel())
        inner = linalg.blas.dtrsv(factor, v.ravel(), lower=1, trans=1)
        return linalg.blas.dtrsv(factor, apply(inner), lower=1, overwrite_x=True)

    found = _iterated(whitened, size, n_components, np.random.default_rng(seed).standard_normal(size), SUBSPACE)
    if found is None or _has_missed(whitened, size, *found):
        return solve_dense(pencil, n_components)
    values, vectors = np.maximum(found[0], 0.0), found[1]
    if factor is not None:
        vectors = solve_triangular(factor, vectors, transposed=True)
    return finish(pencil, values, vectors, "iterative")


def _solve_shifted(pencil: Pencil, n_components: int, above: Solution) -> Solution:
    """Find the leading eigenvectors of a difference ``A = Cxx - α Cyy`` by iterations on ``(σI - A)⁻¹``.

    `above` is the solution of a problem whose A is at least this one's in every direction, such as the same problem
    with a smaller α. Its leading value is a bound for this one's, so that σ can be chosen just above all values, and
    the iterations start from its vectors. With a large α the wanted values are close together at one end of a wide
    spectrum. After the inversion they are well separated for every α.

    If the bound does not hold, or the iterations fail or miss one of several equal values, the dense solver takes over.
    """
    size = pencil.n_features
    if n_components >= size - 1:
        return solve_dense(pencil, n_components)
    top, spread = float(above.values[0]), float(above.values[0] - above.values[-1])
    shift = top + 0.1 * spread + 1e-3 * abs(top)
    shifted = pencil.a.matrix()
    np.negative(shifted, out=shifted)
    shifted.flat[:: size + 1] += shift
    factor = cholesky(shifted)
    if factor is None:
        return solve_dense(pencil, n_components)

    def inverse(v: Float) -> Float:
        half = linalg.blas.dtrsv(factor, v.ravel(), lower=1)
        return linalg.blas.dtrsv(factor, half, lower=1, trans=1, overwrite_x=True)

    found = _iterated(inverse, size, n_components, _start(above), SHIFTED_SUBSPACE)
    if found is None or _has_missed(inverse, size, *found):
        return solve_dense(pencil, n_components)
    vectors = found[1]
    images = pencil.a.apply(vectors)
    # Rayleigh quotients: values computed from the shift would be rounded at the size of the shift.
    values = column_products(vectors, images)
    return finish(pencil, values, vectors, "iterative", images=(images, vectors))


def _iterated(
    apply: Callable[[Float], Float], size: int, count: int, start: Float, subspace: int
) -> tuple[Float, Float] | None:
    """Return the largest eigenvalues of a symmetric operator, in descending order, and their vectors.

    None if the iterations fail. They start from one vector, so that of several vectors with the same value they can
    find only one: see `_has_missed`.
    """
    operator = LinearOperator((size, size), matvec=apply, dtype=np.float64)
    subspace = min(size, max(2 * count + 1, subspace))
    most = max(MOST_RESTARTS, int(MOST_PER_COLUMN * size / subspace))
    try:
        values, vectors = eigsh(operator, k=count, which="LA", v0=start, ncv=subspace, tol=TOLERANCE, maxiter=most)
    except ArpackError:
        return None
    order = argsort_descending(values)
    return values[order], vectors[:, order]


def _has_missed(apply: Callable[[Float], Float], size: int, values: Float, vectors: Float) -> bool:
    """Tell whether there is a larger value than the smallest one found, outside of the span of the vectors found."""

    def outside(v: Float) -> Float:
        return v - vectors @ (vectors.T @ v)

    floor = float(values[-1])

    def apply_outside(v: Float) -> Float:
        # Inside the span, all values are moved below the floor.
        flat = v.ravel()
        return outside(apply(outside(flat))) + (floor - 1.0 - abs(floor)) * (vectors @ (vectors.T @ flat))

    operator = LinearOperator((size, size), matvec=apply_outside, dtype=np.float64)
    start = outside(np.random.default_rng(1).standard_normal(size))
    few = min(size, FEW)
    try:
        left = eigsh(operator, k=1, which="LA", v0=start, ncv=few, tol=ROUGH, return_eigenvectors=False)[0]
    except ArpackError:
        return True
    return bool(left > values[-1] + 1e-9 * np.abs(values).max())


def _start(above: Solution) -> Float:
    """Return a start vector with a part in every wanted direction, and in all others."""
    blur = np.random.default_rng(0).standard_normal(len(above.vectors))
    start: Float = above.vectors.sum(axis=1) + 0.1 * blur / np.linalg.norm(blur)
    return start


# --- without matrices ------------------------------------------------------------------------------------------------


def _solve_lobpcg(pencil: Pencil, n_components: int, seed: int, start: Float | None = None) -> Solution:
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
    if too_small or (not pencil.b.has_ridge and n_background < size) or not np.any(pencil.a.added.diagonal):
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
        solution = finish(pencil, pencil.a.value(wanted) / pencil.b.value(wanted), wanted, "iterative")
        worst = float(np.max(solution.residuals))
        # An acceptable residual that hardly gets smaller in a round has reached the rounding of the products.
        if worst < AIMED or 0.5 * last < worst < ACCEPTABLE:
            return solution
        last = worst
    if not np.all(solution.residuals < ACCEPTABLE):
        warn_user(
            f"the iterative solver stopped at residuals of {float(np.max(solution.residuals)):.1e} after "
            f"{MOST_ROUNDS * ROUND} iterations",
            advice="Use more shrinkage, which makes the problem easier, or another solver.",
            category=UnconvergedWarning,
        )
    return solution


def _penalty(pencil: Pencil, size: float) -> Form:
    """Return the form that limits the size of vectors: B, or for a difference the part that is subtracted."""
    if pencil.a.is_nonnegative:
        return pencil.b
    return replace(pencil.a.subtracted, ridge=size)


def _operator(form: Form, size: float) -> LinearOperator:
    """Return the operator of a form, divided by its size."""

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
    floor = max(float(np.min(form.ridge)), float(spread[-1]))
    if floor <= shift:
        raise NotDefiniteError

    def apply(V: Float) -> Float:
        inside = basis.T @ V
        weights = (1.0 / np.maximum(spread, floor) - 1.0 / floor)[:, np.newaxis]
        return V / floor + basis @ (weights * inside)

    def matvec(v: Float) -> Float:
        return apply(v.reshape(size, -1)).reshape(v.shape)

    return LinearOperator((size, size), matvec=matvec, matmat=apply, dtype=np.float64)
