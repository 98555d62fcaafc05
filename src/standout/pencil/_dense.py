"""The dense solver: both matrices formed, LAPACK for the leading vectors."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from standout._algebra import all_true, at_least, diagonal, lower_factor, triangular_solve, whiten
from standout._arrays import Float, leading_eigenvectors, product, self_product
from standout._namespaces import like
from standout.pencil._record import Form, NotDefiniteError, Pencil, Solution, finish


def solve_dense(pencil: Pencil, n_components: int) -> Solution:
    """Factorise B and find the leading eigenvectors of the whitened A.

    Raises
    ------
    NotDefiniteError
        Where B is singular.
    """
    factor = cholesky_factor(pencil.b)
    by_rows = pencil.a.is_nonnegative and pencil.a.keeps_rows and pencil.a.n_rows < pencil.n_features
    if factor is not None and by_rows:
        solution = _solve_by_rows(pencil, factor, n_components)
        if solution is not None:
            return solution
    whitened = pencil.a.matrix()
    if factor is not None:
        # A B without datasets is the host's.
        factor = like(factor, whitened)
        whitened = whiten(whitened, factor)
    values, vectors = leading_eigenvectors(whitened.T, n_components)  # symmetric, and in LAPACK's order
    if factor is not None:
        vectors = triangular_solve(factor, vectors, transposed=True)
    # Below zero there is only rounding, unless A is a difference.
    return finish(pencil, at_least(values, 0.0) if pencil.a.is_nonnegative else values, vectors, "dense")


def _solve_by_rows(pencil: Pencil, factor: Float, n_components: int) -> Solution | None:
    """Solve with A kept as m rows, fewer than there are columns: its whitened rows have an m x m Gram matrix.

    None where the target has fewer directions than components are wanted.
    """
    whitened = linalg.solve_triangular(factor, pencil.a.root().T, lower=True, overwrite_b=True, check_finite=False)
    gram = self_product(whitened)
    size = len(gram)
    if n_components > size:
        return None
    values, weights = leading_eigenvectors(gram, n_components)
    if values[-1] <= size * np.finfo(np.float64).eps * values[0]:
        return None
    vectors = linalg.solve_triangular(factor, product(whitened, weights), lower=True, trans="T", check_finite=False)
    return finish(pencil, values, vectors, "dense")


def cholesky_factor(form: Form) -> Float | None:
    """Give the lower Cholesky factor of a form's matrix; None where the form is the identity.

    Raises
    ------
    NotDefiniteError
        Where there is no such factor.
    """
    if form.is_identity:
        return None
    factor = lower_factor(form.matrix())
    # A pivot is what a column has beyond the ones before it. Where that is no more than rounding, a direction may be
    # lost in it without any trace in the solutions that are found.
    noise = 100.0 * form.n_features * form.precision
    if factor is None or not all_true(diagonal(factor) ** 2 >= noise * form.diagonal):
        raise NotDefiniteError
    return factor
