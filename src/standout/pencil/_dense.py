"""The dense solver: both matrices are formed, and LAPACK finds the leading vectors."""

from __future__ import annotations

from standout._arrays import Float
from standout._xp import cholesky, diagonal, leading_eigenvectors, like, namespace, solve_triangular, whiten
from standout.pencil._record import Form, NotDefiniteError, Pencil, Solution, finish


def solve_dense(pencil: Pencil, n_components: int) -> Solution:
    """Factorise B, and find the leading eigenvectors of the whitened A.

    Raises
    ------
    NotDefiniteError
        If B is singular.
    """
    factor = cholesky_factor(pencil.b)
    whitened = pencil.a.matrix()
    if factor is not None:
        # If B has no datasets, its factor is a NumPy array even for foreign data.
        factor = like(factor, whitened)
        whitened = whiten(whitened, factor)
    # The transpose of a symmetric matrix is the same matrix in LAPACK's order of memory.
    values, vectors = leading_eigenvectors(whitened.T, n_components)
    if factor is not None:
        vectors = solve_triangular(factor, vectors, transposed=True)
    if pencil.a.is_nonnegative:
        values = namespace(values).clip(values, 0.0, None)  # negative values are rounding errors
    return finish(pencil, values, vectors, "dense")


def cholesky_factor(form: Form) -> Float | None:
    """Return the lower Cholesky factor of a form's matrix, or None if the form is the identity.

    Raises
    ------
    NotDefiniteError
        If the matrix is singular to working precision.
    """
    if form.is_identity:
        return None
    factor = cholesky(form.matrix())
    if factor is None:
        raise NotDefiniteError
    # A pivot is the variance of a column that the columns before it do not explain. If it is as small as rounding, a
    # direction may be lost, and the solutions would not show that.
    noise = 100.0 * form.n_features * form.precision
    if not bool(namespace(factor).all(diagonal(factor) ** 2 >= noise * form.diagonal)):
        raise NotDefiniteError
    return factor
