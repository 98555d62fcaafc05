"""The iterative solver: block Lanczos iterations on formed matrices, or LOBPCG for sparse rows with many columns."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, lobpcg

from standout._arrays import Float, product
from standout._messages import warn_user
from standout._xp import (
    add_to_diagonal,
    cholesky,
    column_products,
    concat,
    diagonal,
    inverse_cholesky,
    is_foreign,
    like,
    namespace,
    nonnegative,
    orthonormal,
    solve_triangular,
    to_host,
)
from standout.pencil._direct import is_weak, solve_dense
from standout.pencil._record import Form, NotDefiniteError, Pencil, Solution, UnconvergedWarning, finish

# Matrices of sparse rows are formed up to this many columns. Two such matrices need 4 GiB.
FORMED_SIZE = 16384
# Lanczos: number of extra vectors in a block (MORE) and in a result (KEPT_MORE), smallest and largest number of
# products (LEAST_STEPS, MOST_STEPS), and number of products between two checks of the residuals (LOOK). Residuals must
# be at most TOLERANCE times the largest eigenvalue.
MORE, KEPT_MORE, LEAST_STEPS, MOST_STEPS, LOOK, TOLERANCE = 2, 6, 6, 100, 4, 1e-12
TINY = float(np.finfo(np.float64).tiny)
# LOBPCG: number of additional vectors, which speed up convergence, and rank of the preconditioner.
GUARD = 6
SKETCH = 64
# LOBPCG: iterations between two checks of the wanted vectors, and largest number of checks.
ROUND = 20
MOST_ROUNDS = 30
# LOBPCG: iterations end at relative residuals below AIMED. After the last round, residuals below ACCEPTABLE are
# accepted. The relative error of a value is about the square of its residual.
AIMED = 1e-6
ACCEPTABLE = 1e-4

Halves = tuple[Callable[[Float], Float], Callable[[Float], Float]]


def solve_iterative(pencil: Pencil, n_components: int, seed: int) -> Solution:
    """Return the leading solutions, found by iterations.

    Raises
    ------
    NotDefiniteError
        If B is singular.
    """
    formed = not pencil.only_applies or pencil.n_features <= FORMED_SIZE
    return (_solve_lanczos if formed else _solve_lobpcg)(pencil, n_components, seed)


def _solve_lanczos(pencil: Pencil, n_components: int, seed: int) -> Solution:
    """Return solutions from the leading eigenvectors of ``L⁻¹ A L⁻ᵀ`` with ``B = L Lᵀ`` (Remark 4).

    For a difference ``A = Cxx - α Cyy``, the wanted eigenvalues are close together at one end of a wide spectrum. The
    iterations then use ``(σI - A)⁻¹``, with σ just above the largest eigenvalue of Cxx. The leading eigenvalues of
    this inverse are well separated. If the iterations fail, the dense solver is used.

    Raises
    ------
    NotDefiniteError
        If B is singular.
    """
    matrix, width = pencil.a.matrix(), n_components + MORE
    n_steps = min(MOST_STEPS, pencil.n_features // (2 * width))
    if n_steps < LEAST_STEPS:
        return solve_dense(pencil, n_components)
    halves: Halves | None = (lambda block: block, lambda block: block)
    if pencil.is_difference:
        top = float(_solve_lanczos(Pencil(pencil.a.added, pencil.b), 1, seed).values[0])
        halves = halves_of(add_to_diagonal(-matrix, 1.001 * top)[None])
    elif not pencil.b.is_identity:
        halves = halves_of(like(pencil.b.matrix(), matrix)[None], pencil.b.precision)
        if halves is None:
            raise NotDefiniteError
    if halves is None:
        return solve_dense(pencil, n_components)
    forward, backward = halves

    def apply(block: Float) -> Float:
        inner = backward(block)
        return forward(inner if pencil.is_difference else product(matrix, inner[0])[None])

    start = random((1, pencil.n_features, width), seed, matrix)
    _, vectors, residual = krylov(apply, start, n_components, n_steps, TOLERANCE, give_up=True)
    if not residual <= TOLERANCE:
        return solve_dense(pencil, n_components)
    vectors = backward(vectors)[0, :, :n_components]
    # Compute the values as Rayleigh quotients ``uᵀAu / uᵀBu``. The eigenvalues of the shifted matrix would have
    # rounding errors relative to the shift σ, which can be much larger than the values.
    images = pencil.a.apply(vectors), pencil.b.apply(vectors)
    values = column_products(vectors, images[0]) / column_products(vectors, images[1])
    if pencil.a.is_nonnegative:
        values = nonnegative(values)
    return finish(pencil, values, vectors, "iterative", images=images)


def krylov(
    apply: Callable[[Float], Float],
    block: Float,
    count: int,
    n_steps: int,
    tolerance: float = 0.0,
    *,
    give_up: bool = False,
) -> tuple[Float, Float, float]:
    """Return the leading eigenvalues (on the host) and eigenvectors of a stack of operators, by block Krylov spaces.

    Eigenvalues are in descending order, and a few more than `count` are returned. Blocks are wider than `count`, so
    that equal eigenvalues are found. The third result is the largest residual of the wanted vectors at the last check,
    relative to the largest eigenvalue. The iterations end early if this residual is below the tolerance. With
    `give_up`, they also end early if the remaining steps are far too few to reach the tolerance.
    """
    xp, (size, width) = namespace(block), block.shape[-2:]
    n_steps, residual = max(min(n_steps, size // width - 1), 1), float("inf")
    basis = block = orthonormal(block)
    images = block[..., :0]
    for step in range(n_steps + 1):
        if step:
            # The residual of a converged vector is only rounding, which differs between array libraries. Add larger
            # random numbers, which are below the tolerance, so that all libraries use similar directions.
            if tolerance:
                noise = random((size, width), step, block, 0.1 * tolerance / size**0.5)
                block = block + xp.sum(block * block, axis=-2, keepdims=True) ** 0.5 * noise
            # Orthogonalise twice: the first result is mostly rounding if the space has all directions of the operator.
            for _ in range(2):
                block = orthonormal(block - basis @ (transposed(basis) @ block), rounds=2)
            basis = concat([basis, block], axis=-1)
        block = apply(block)
        images = concat([images, block], axis=-1)
        if step < n_steps and not (tolerance and (step + 1) % LOOK == 0):
            continue
        inside = to_host(transposed(basis) @ images).astype(np.float64)
        if not np.all(np.isfinite(inside)):
            return np.full((*inside.shape[:-2], count), np.nan), basis[..., :count], residual
        values, turn = np.linalg.eigh(0.5 * (inside + inside.swapaxes(-1, -2)))
        kept = min(count + KEPT_MORE, values.shape[-1])
        values, turn = values[..., ::-1][..., :kept], cast(turn[..., ::-1][..., :kept].copy(), basis)
        vectors = basis @ turn
        if tolerance:
            missed = images @ turn[..., :count] - cast(values[..., None, :count].copy(), basis) * vectors[..., :count]
            # Divide by the largest value before squaring, because squares of very small residuals would be zero.
            missed = missed / cast(np.maximum(np.abs(values[..., :1, None]), TINY), basis)
            before, residual = residual, float(np.max(to_host(xp.sum(missed**2, axis=-2)))) ** 0.5
            # Expect that later residuals decrease at most twice as fast as between the last two checks.
            hope = min(residual / before, 1.0) ** (2.0 * (n_steps - step) / LOOK)
            if residual <= tolerance or (give_up and residual * hope > tolerance):
                break
    return values, vectors, residual


def halves_of(matrices: Float, precision: float = 0.0) -> Halves | None:
    """Return two functions for a stack of matrices ``L Lᵀ``: one multiplies blocks with L⁻¹, the other with L⁻ᵀ.

    Return None if a matrix is not positive definite, up to rounding errors of relative size `precision`. The matrices
    may be overwritten.
    """
    variances = 1.0 * diagonal(matrices)
    if is_foreign(matrices):
        half = inverse_cholesky(matrices)
        if half is None or bool(namespace(half).any(is_weak(1.0 / diagonal(half), variances, precision))):
            return None
        return lambda block: half @ block, lambda block: half.mT @ block
    factors = [factor for part in matrices if (factor := cholesky(part)) is not None]
    if len(factors) < len(matrices) or any(map(is_weak, map(diagonal, factors), variances, [precision] * len(factors))):
        return None

    def solved(block: Float, transposed: bool) -> Float:
        pairs = zip(factors, block, strict=True)
        return np.stack([solve_triangular(factor, part, transposed=transposed) for factor, part in pairs])

    return lambda block: solved(block, False), lambda block: solved(block, True)


def random(shape: tuple[int, ...], seed: int, reference: Float, size: float = 1.0) -> Float:
    """Return normal random numbers, which are the same in every array library."""
    return cast(size * np.random.default_rng(seed).standard_normal(shape), reference)


def cast(numbers: Float, reference: Float) -> Float:
    """Return numbers in the library and the precision of a reference."""
    return like(numbers, reference) if is_foreign(reference) else np.asarray(numbers, dtype=reference.dtype)


def transposed(matrices: Float) -> Float:
    """Return the transpose of each matrix of a stack."""
    return matrices.mT if is_foreign(matrices) else np.swapaxes(matrices, -1, -2)


# --- without matrices ------------------------------------------------------------------------------------------------


def _solve_lobpcg(pencil: Pencil, n_components: int, seed: int) -> Solution:
    """Return the leading solutions by LOBPCG (locally optimal block preconditioned conjugate gradients).

    Raises
    ------
    NotDefiniteError
        If the data have too few rows or columns, or the target does not vary. Also if B is singular or nearly singular
        and has no ridge.

    Warns
    -----
    ConvergenceWarning
        If a residual is still large after the last round of iterations.
    """
    size = pencil.n_features
    n_target, n_background = (sum(moments.count - 1 for _, moments in form.terms) for form in (pencil.a, pencil.b))
    width = n_components + GUARD
    # LOBPCG works in spaces of three times this width, which must fit into the span of the data.
    too_small = 5 * width > min(size, n_target + n_background)
    if too_small or (not pencil.b.has_ridge and n_background < size) or not np.any(pencil.a.added.diagonal):
        raise NotDefiniteError
    # SciPy uses absolute tolerances, so both forms are scaled to size 1.
    size_a, size_b = float(np.mean(pencil.a.added.diagonal)), float(np.mean(pencil.b.diagonal))
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((size, width))
    # Adding the product with A turns the random vectors towards the range of A.
    vectors += pencil.a.added.apply(vectors) / size_a
    # The preconditioner is an approximate inverse of B. For a difference, B is the identity. An approximate inverse of
    # the subtracted part of A, plus a ridge, is used instead.
    penalty = pencil.b if pencil.a.is_nonnegative else replace(pencil.a.subtracted, ridge=size_a)
    preconditioner = _preconditioner(penalty, rng)
    last = np.inf
    for _ in range(MOST_ROUNDS):
        with warnings.catch_warnings():
            # SciPy warns if the additional vectors do not converge, which does not matter. The wanted vectors are
            # checked below.
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
        # If an acceptable residual hardly decreases in a round, it is only the rounding error of the products. More
        # rounds would not reduce it.
        if worst < AIMED or 0.5 * last < worst < ACCEPTABLE:
            return solution
        last = worst
    if not np.all(solution.residuals < ACCEPTABLE):
        problem = f"the iterative solver stopped at residuals of {float(np.max(solution.residuals)):.1e} after "
        problem += f"{MOST_ROUNDS * ROUND} iterations"
        advice = "Use more shrinkage, which makes the problem easier, or another solver."
        warn_user(problem, advice=advice, category=UnconvergedWarning)
    return solution


def _operator(form: Form, size: float) -> LinearOperator:
    """Return a SciPy operator that multiplies with the matrix of a form, divided by `size`."""

    def apply(V: Float) -> Float:
        return form.apply(V.reshape(form.n_features, -1)).reshape(V.shape) / size

    return LinearOperator((form.n_features, form.n_features), matvec=apply, matmat=apply, dtype=np.float64)


def _preconditioner(form: Form, rng: np.random.Generator) -> LinearOperator | None:
    """Return an approximate inverse of a form, from its products with a few random vectors (Nyström)."""
    if not form.terms:
        return None
    size = form.n_features
    test = np.linalg.qr(rng.standard_normal((size, min(SKETCH, size))))[0]
    image = form.apply(test)
    # Without a small shift, the Cholesky factorisation could fail because of rounding errors. The shift is subtracted
    # from the eigenvalues below.
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

    weights = (1.0 / np.maximum(spread, floor) - 1.0 / floor)[:, np.newaxis]

    def apply(V: Float) -> Float:
        columns = V.reshape(size, -1)
        return (columns / floor + basis @ (weights * (basis.T @ columns))).reshape(V.shape)

    return LinearOperator((size, size), matvec=apply, matmat=apply, dtype=np.float64)
