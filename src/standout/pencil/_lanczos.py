"""The Lanczos solver: leading eigenvectors by iterations on one vector at a time, for ratios and for differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from standout._arrays import Float, product
from standout._xp import (
    argsort_descending,
    cholesky,
    column_products,
    eigh,
    leading_eigenvectors,
    namespace,
    solve_triangular,
)
from standout.moments import Moments
from standout.pencil._dense import cholesky_factor, solve_dense
from standout.pencil._record import Form, NotDefiniteError, Pencil, Solution, finish

# Number of vectors in a Lanczos run; shifted iterations converge fast and need fewer.
SUBSPACE = 48
SHIFTED_SUBSPACE = 12
# Up to this size LAPACK finds the leading vectors of a matrix as fast as iterations do.
DIRECT_SIZE = 400
# Iterations that take longer than LAPACK for the whole problem are given up: after so many restarts, or so many
# products per column.
MOST_RESTARTS, MOST_PER_COLUMN = 20, 0.5
# Tolerance of the vectors. The error of the values is its square.
TOLERANCE = 1e-11
# The check for missed values needs only a rough answer, and few vectors.
ROUGH = 1e-2
FEW = 8
# Two views count as the same if the product of the cosines between them is at least this.
SAME_VIEW = 0.9


@dataclass(frozen=True, eq=False)
class RidgeFamily:
    """Pencils with the same A, and B a multiple of one matrix plus a ridge: all shrinkages, or all ε, of one dataset.

    The matrix is diagonalised once. In its eigenbasis every B of the family is diagonal, and a solution costs a few
    products of A with a vector.

    Attributes
    ----------
    term : tuple of (float, Moments)
        The first dataset of B, with the coefficient to which others are relative.
    values : array of shape (n_features,)
        Eigenvalues of B without its ridge, for the coefficient in `term`.
    basis : array of shape (n_features, n_features)
        The eigenvectors.
    rotated : array of shape (n_features, n_features)
        A in the eigenbasis.
    """

    term: tuple[float, Moments]
    values: Float
    basis: Float
    rotated: Float

    @classmethod
    def of(cls, pencils: Sequence[Pencil]) -> RidgeFamily | None:
        """Diagonalise the common matrix; None if the pencils are no such family."""
        # At full shrinkage the backgrounds have no weight, and any matrix does.
        with_terms = [pencil for pencil in pencils if any(weight != 0.0 for weight, _ in pencil.b.terms)]
        if not with_terms or not all(pencil.a.is_nonnegative and pencil.b.is_nonnegative for pencil in pencils):
            return None
        if any(pencil.b.terms[0][0] == 0.0 for pencil in with_terms):
            # A term that is no dataset stays where backgrounds have no weight.
            return None
        first = with_terms[0]
        shares = _shares(first.b)
        same = all(_same_terms(pencil.a.terms, first.a.terms) and pencil.a.ridge == 0.0 for pencil in pencils)
        if not same or any(_shares(pencil.b) != shares for pencil in with_terms):
            return None
        values, basis = eigh(Form(first.n_features, first.b.terms).matrix())
        rotated = product(basis.T, product(first.a.matrix(), basis))
        return cls(first.b.terms[0], values, basis, rotated)

    def solve(self, pencil: Pencil, n_components: int) -> Solution:
        """Solve one pencil of the family.

        Raises
        ------
        NotDefiniteError
            If B is singular.
        """
        xp = namespace(self.values)
        share = pencil.b.terms[0][0] / self.term[0] if pencil.b.terms else 0.0
        diagonal = share * self.values + pencil.b.ridge
        size = pencil.n_features
        if float(diagonal[0]) <= 100.0 * size * pencil.b.precision * float(diagonal[-1]):
            raise NotDefiniteError
        scale = 1.0 / xp.sqrt(diagonal)
        found = None
        if size > DIRECT_SIZE and not pencil.on_device:
            found = self._iterations(scale, n_components)
        if found is None:
            found = leading_eigenvectors(self.rotated * (scale[:, None] * scale), n_components)
        values, vectors = found
        return finish(pencil, xp.clip(values, 0.0, None), product(self.basis, scale[:, None] * vectors), "dense")

    def _iterations(self, scale: Float, n_components: int) -> tuple[Float, Float] | None:
        size = len(scale)
        if n_components >= size - 1:
            return None
        # In BLAS's order of memory, once: otherwise each product would copy the matrix.
        matrix = np.asfortranarray(self.rotated.T)

        def whitened(v: Float) -> Float:
            return scale * linalg.blas.dsymv(1.0, matrix, scale * v.ravel(), lower=1)

        start = np.random.default_rng(0).standard_normal(size)
        found = _iterated(whitened, size, n_components, start, SUBSPACE)
        return None if found is None or _has_missed(whitened, size, *found) else found


def _shares(form: Form) -> tuple[tuple[int, float], ...]:
    """Give the datasets of a form, each with its coefficient relative to the first, up to rounding."""
    first = form.terms[0][0]
    return tuple((id(moments), round(coefficient / first, 12)) for coefficient, moments in form.terms)


def _same_terms(first: Sequence[tuple[float, Moments]], second: Sequence[tuple[float, Moments]]) -> bool:
    return [(weight, id(part)) for weight, part in first] == [(weight, id(part)) for weight, part in second]


def solve_lanczos(pencil: Pencil, n_components: int, seed: int) -> Solution:
    """Find the leading eigenvectors of ``L⁻¹ A L⁻ᵀ`` with ``B = L Lᵀ`` (Remark 4).

    A difference ``A = Cxx - α Cyy`` is solved by `solve_shifted`. If the iterations fail (because values are equal, or
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
        above = solve_lanczos(Pencil(pencil.a.added, pencil.b), 1, seed)
        return solve_shifted(pencil, n_components, above)
    factor = cholesky_factor(pencil.b)
    apply = _application(pencil.a)

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
    return finish(pencil, values, vectors, "lanczos")


def solve_shifted(pencil: Pencil, n_components: int, above: Solution) -> Solution:
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
    # If the view has hardly changed since the last solution, no new direction can have become a leading one.
    if found is None or (_has_turned(found[1], above.vectors) and _has_missed(inverse, size, *found)):
        return solve_dense(pencil, n_components)
    vectors = found[1]
    images = pencil.a.apply(vectors)
    # Rayleigh quotients: values computed from the shift would be rounded at the size of the shift.
    values = column_products(vectors, images)
    return finish(pencil, values, vectors, "lanczos", images=(images, vectors))


def _application(form: Form) -> Callable[[Float], Float]:
    """Give a function that applies a form to a vector: through the rows if they are kept, otherwise as a matrix."""
    if form.keeps_rows:
        return lambda v: form.apply(v[:, np.newaxis])[:, 0]
    # The transpose of a symmetric matrix is the same matrix, mostly in BLAS's order of memory. If it is not, it is
    # copied here once, and not by each product.
    matrix = np.asfortranarray(form.matrix().T)
    return lambda v: linalg.blas.dsymv(1.0, matrix, v, lower=1)


def _iterated(
    apply: Callable[[Float], Float], size: int, count: int, start: Float, subspace: int
) -> tuple[Float, Float] | None:
    """Give the largest eigenvalues of a symmetric operator, in descending order, and their vectors.

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


def _has_turned(vectors: Float, before: Float) -> bool:
    """Tell whether a view is another one than before."""
    if vectors.shape != before.shape:
        return True
    return bool(abs(np.linalg.det(vectors.T @ before)) < SAME_VIEW)


def _start(above: Solution) -> Float:
    """Give a start vector with a part in every wanted direction, and in all others."""
    blur = np.random.default_rng(0).standard_normal(len(above.vectors))
    start: Float = above.vectors.sum(axis=1) + 0.1 * blur / np.linalg.norm(blur)
    return start
