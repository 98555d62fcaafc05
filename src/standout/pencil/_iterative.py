"""The iterative solver: block Lanczos iterations on formed matrices, LOBPCG for sparse rows that only apply."""

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
    column_norms,
    column_products,
    largest,
    like,
    namespace,
    solve_triangular,
    whiten,
    zeros,
)
from standout.pencil._direct import cholesky_factor, solve_dense
from standout.pencil._record import Form, NotDefiniteError, Pencil, Solution, UnconvergedWarning, finish

# Up to this many columns matrices are formed. Two of them need 4 GiB.
FORMED_SIZE = 16384
# Lanczos: extra vectors in a block, most blocks, and blocks between two checks of the result.
BLOCK_MORE, BLOCK_STEPS, BLOCK_LOOK = 2, 40, 6
# The largest degree and growth of the polynomials, and the largest error of an eigenvector's equation.
BLOCK_DEGREE, BLOCK_GROWTH, BLOCK_TOLERANCE = 4, 1e8, 1e-12
# LOBPCG: additional vectors, which speed up convergence; rank of the approximation of B that preconditions.
GUARD = 6
SKETCH = 64
# LOBPCG: iterations between two checks of the wanted vectors, and the most checks.
ROUND = 20
MOST_ROUNDS = 30
# LOBPCG: relative residuals to reach, and to accept. The error of a value is the square of its residual.
AIMED = 1e-6
ACCEPTABLE = 1e-4


def solve_iterative(pencil: Pencil, n_components: int, seed: int) -> Solution:
    """Find the leading vectors by iterations.

    Raises
    ------
    NotDefiniteError
        If B is singular.
    """
    formed = not pencil.only_applies or pencil.n_features <= FORMED_SIZE
    return (_solve_lanczos if formed else _solve_lobpcg)(pencil, n_components, seed)


def _solve_lanczos(pencil: Pencil, n_components: int, seed: int) -> Solution:
    """Find the leading eigenvectors of ``L⁻¹ A L⁻ᵀ`` with ``B = L Lᵀ`` (Remark 4).

    The wanted values of a difference ``A = Cxx - α Cyy`` are close together at one end of a wide spectrum. They are
    well separated for ``(σI - A)⁻¹``, with σ just above the largest value of Cxx. If the iterations fail, the dense
    solver takes over.

    Raises
    ------
    NotDefiniteError
        If B is singular.
    """
    matrix = pencil.a.matrix()
    if pencil.is_difference:
        top = float(_solve_lanczos(Pencil(pencil.a.added, pencil.b), 1, seed).values[0])
        shifted = cholesky(add_to_diagonal(-matrix, 1.001 * top))
        if shifted is None:
            return solve_dense(pencil, n_components)
        factor, apply = None, _Whitened(None, shifted)
    else:
        factor = None if pencil.b.is_identity else cholesky_factor(pencil.b)
        if factor is None and not pencil.b.is_identity:
            raise NotDefiniteError
        if factor is not None and pencil.on_device:
            # On a device, products are faster than triangular systems.
            matrix = whiten(matrix, like(factor, matrix))
        apply = _Whitened(matrix, None if pencil.on_device else factor)
    start = np.random.default_rng(seed).standard_normal((pencil.n_features, n_components + BLOCK_MORE))
    vectors = _block_lanczos(apply, like(start, matrix), n_components)
    if vectors is None:
        return solve_dense(pencil, n_components)
    if factor is not None:
        vectors = solve_triangular(like(factor, vectors), vectors, transposed=True)
    # Rayleigh quotients: values computed from a shift would be rounded at the size of the shift.
    images = pencil.a.apply(vectors), pencil.b.apply(vectors)
    values = column_products(vectors, images[0]) / column_products(vectors, images[1])
    if pencil.a.is_nonnegative:
        values = namespace(values).clip(values, 0.0, None)
    return finish(pencil, values, vectors, "iterative", images=images)


class _Whitened:
    """The operator ``L⁻¹ A L⁻ᵀ``, or without A the inverse of ``L Lᵀ``."""

    def __init__(self, matrix: Float | None, factor: Float | None) -> None:
        self.matrix, self.factor = matrix, factor

    def __call__(self, block: Float) -> Float:
        if self.factor is None:
            return product(self.matrix, block)
        if self.matrix is None:
            return solve_triangular(self.factor, solve_triangular(self.factor, block), transposed=True)
        inner = solve_triangular(self.factor, block, transposed=True)
        return solve_triangular(self.factor, product(self.matrix, inner))


def _block_lanczos(apply: Callable[[Float], Float], block: Float, count: int) -> Float | None:
    """Return the eigenvectors of the largest eigenvalues of a symmetric operator; None if this would be slow.

    Blocks are wider than the number of wanted vectors, so that equal values are found. After a first look, the
    iterations go on from the vectors found, and a step is a Chebyshev polynomial of the operator, small over all values
    but the leading ones: products cost less than making a block orthogonal to all before it.
    """
    xp, (size, width) = namespace(block), block.shape
    if 2 * width * BLOCK_LOOK > size:
        return None
    n_steps = min(BLOCK_STEPS, size // (2 * width))
    basis, images = (zeros((size, width * n_steps), block) for _ in range(2))
    polynomial: Callable[[Float, Float], Float] | None = None
    n_blocks = 0
    while n_blocks < n_steps:
        before, end = basis[:, : n_blocks * width], (n_blocks + 1) * width
        # Twice, because the first result may be mostly rounding.
        for _ in range(2):
            block = xp.linalg.qr(block - before @ (before.T @ block))[0]
        image = apply(block)
        basis[:, end - width : end], images[:, end - width : end] = block, image
        n_blocks += 1
        if n_blocks % BLOCK_LOOK == 0:
            inside = basis[:, :end].T @ images[:, :end]
            values, turn = xp.linalg.eigh(0.5 * (inside + inside.T))
            values, turn = xp.flip(values, axis=0), xp.flip(turn, axis=1)[:, :width]
            vectors, turned = basis[:, :end] @ turn, images[:, :end] @ turn
            missed = column_norms(turned - values[:width] * vectors)
            if largest(missed[:count]) <= BLOCK_TOLERANCE * float(abs(values[0])):
                return vectors[:, :count]
            if not float(values[width - 1]) > float(values[-1]):
                return None  # all values are the same, or not finite
            if polynomial is None:
                polynomial = _chebyshev(apply, float(values[-1]), float(values[width - 1]), float(values[0]))
                block, image, n_blocks = vectors, turned, 1
                basis[:, :width], images[:, :width] = block, image
        block = image if polynomial is None else polynomial(block, image)
    return None


def _chebyshev(
    apply: Callable[[Float], Float], lower: float, upper: float, top: float
) -> Callable[[Float, Float], Float]:
    """Apply a polynomial of an operator to a block, given its image. It is small for values between two ends."""
    middle, scale = 0.5 * (lower + upper), 2.0 / (upper - lower)
    # Rounding of the part with the largest value must not hide the rest.
    growth = np.arccosh(max(scale * (top - lower) - 1.0, 1.0 + 1e-3))
    degree = int(np.clip(np.arccosh(BLOCK_GROWTH) / growth, 1, BLOCK_DEGREE))

    def polynomial(block: Float, image: Float) -> Float:
        before, block = block, scale * (image - middle * block)
        for _ in range(1, degree):
            before, block = block, 2.0 * scale * (apply(block) - middle * block) - before
        return block

    return polynomial


# --- without matrices ------------------------------------------------------------------------------------------------


def _solve_lobpcg(pencil: Pencil, n_components: int, seed: int) -> Solution:
    """Find the leading vectors by locally optimal block preconditioned conjugate gradients.

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
    # LOBPCG works in spaces of three times this width, which must fit into the span of the data.
    too_small = 5 * width > min(size, n_target + n_background)
    if too_small or (not pencil.b.has_ridge and n_background < size) or not np.any(pencil.a.added.diagonal):
        raise NotDefiniteError
    # SciPy uses absolute tolerances, so both forms are scaled to size 1.
    size_a, size_b = float(np.mean(pencil.a.added.diagonal)), float(np.mean(pencil.b.diagonal))
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((size, width))
    # Applying A once turns the random vectors towards its range.
    vectors += pencil.a.added.apply(vectors) / size_a
    # The size of vectors is limited by B, or for a difference by the subtracted part.
    penalty = pencil.b if pencil.a.is_nonnegative else replace(pencil.a.subtracted, ridge=size_a)
    preconditioner = _preconditioner(penalty, rng)
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

    weights = (1.0 / np.maximum(spread, floor) - 1.0 / floor)[:, np.newaxis]

    def apply(V: Float) -> Float:
        columns = V.reshape(size, -1)
        return (columns / floor + basis @ (weights * (basis.T @ columns))).reshape(V.shape)

    return LinearOperator((size, size), matvec=apply, matmat=apply, dtype=np.float64)
