"""The eigenproblem as a pencil of two quadratic forms, and the solution that a solver returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from standout._arrays import Array, Float, product, stacked
from standout._messages import CautionWarning, InvalidValueError
from standout._xp import (
    add_to_diagonal,
    column_norms,
    column_products,
    eigh,
    eye,
    is_foreign,
    largest,
    largest_entries,
    like,
    namespace,
    nonnegative,
    take,
)
from standout.moments import Moments, RowMoments

# Largest accepted relative difference between a value and the ratio of the forms along its vector.
TOLERANCE = 1e-6


class NotDefiniteError(Exception):
    """B is singular to working precision. The solver that raises this error has failed, but `solve_root` works."""


class UnconvergedWarning(CautionWarning, ConvergenceWarning):
    """An iteration stopped before its result was accurate enough."""


@dataclass(frozen=True, eq=False)
class Form:
    """A quadratic form ``u -> Σ cᵢ uᵀCᵢu + Σ ridgeⱼ uⱼ²``, with covariances Cᵢ of datasets and coefficients cᵢ.

    The terms are stored separately. So a solver can form the matrix or its root, or only multiply it with vectors.

    Attributes
    ----------
    n_features : int
    terms : tuple of (float, Moments)
        The coefficients and the datasets.
    ridge : float or ndarray of shape (n_features,)
        A number is added to every diagonal entry of the matrix. An array is added to the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import gather
    >>> from standout.pencil import Form
    >>> X = np.array([[1.0, 0.0], [-1.0, 0.0]])
    >>> Form(2, ((1.0, gather(X)),), ridge=0.5).matrix()
    array([[1.5, 0. ],
           [0. , 0.5]])
    """

    n_features: int
    terms: tuple[tuple[float, Moments], ...]
    ridge: float | Float = 0.0

    @property
    def is_identity(self) -> bool:
        """Whether the matrix is the identity."""
        return not self.terms and isinstance(self.ridge, float) and self.ridge == 1.0

    @property
    def is_nonnegative(self) -> bool:
        """Whether no dataset is subtracted, so that the form is a sum of variances."""
        return all(coefficient >= 0.0 for coefficient, _ in self.terms)

    @property
    def has_ridge(self) -> bool:
        """Whether a diagonal is added."""
        return not isinstance(self.ridge, float | int) or self.ridge > 0.0

    @property
    def added(self) -> Form:
        """The form of the datasets with positive coefficients, without the ridge."""
        return Form(self.n_features, tuple(term for term in self.terms if term[0] > 0.0))

    @property
    def subtracted(self) -> Form:
        """The form of the datasets that are subtracted, with their coefficients made positive."""
        return Form(self.n_features, tuple((-weight, moments) for weight, moments in self.terms if weight < 0.0))

    @cached_property
    def diagonal(self) -> Float:
        """The diagonal of the matrix."""
        if not self.terms:
            return self.ridge + np.zeros(self.n_features)
        total: Any = sum(coefficient * moments.variances for coefficient, moments in self.terms)
        return total + self.ridge

    @property
    def precision(self) -> float:
        """Relative rounding error of the least precise term."""
        return max((moments.precision for _, moments in self.terms), default=float(np.finfo(np.float64).eps))

    def in_units(self, scale: Float) -> Form:
        """Return the form for columns that are multiplied by `scale`.

        The new form has at ``u / scale`` the value that the old form has at u.
        """
        terms = tuple((weight, part.mapped(like(scale, part.mean))) for weight, part in self.terms)
        return Form(self.n_features, terms, self.ridge * scale**2 if self.has_ridge else 0.0)

    def scaled(self, factor: float) -> Form:
        """Return the form multiplied by a number."""
        terms = tuple((factor * coefficient, moments) for coefficient, moments in self.terms)
        return Form(self.n_features, terms, factor * self.ridge)

    def matrix(self) -> Float:
        """Return the form as a symmetric matrix, which the caller may overwrite."""
        if not self.terms:
            return self.ridge * np.eye(self.n_features)
        (coefficient, first), *others = self.terms
        total = first.covariance()
        if coefficient != 1.0:
            total *= coefficient
        for coefficient, moments in others:
            total += coefficient * moments.covariance()
        if type(total) is not np.ndarray:
            return add_to_diagonal(total, self.ridge)
        total.flat[:: self.n_features + 1] += self.ridge
        return total

    def root(self) -> Float:
        """Return a matrix R such that ``RᵀR`` is the matrix of the form. The caller may overwrite R.

        No coefficient may be negative.
        """
        bare, parts = replace(self, ridge=0.0), []
        if self.terms:
            xp = namespace(bare.diagonal)
            scale = xp.sqrt(bare.diagonal)
            safe = xp.where(scale > 0.0, scale, 1.0)
            values, vectors = eigh(bare.matrix() / (safe[:, None] * safe))
            parts.append(xp.sqrt(nonnegative(values))[:, None] * vectors.T * scale)
        if self.has_ridge or not parts:
            parts.append(self.ridge**0.5 * eye(self.n_features, parts[0] if parts else np.zeros(0)))
        return stacked(parts)

    def apply(self, U: Float) -> Float:
        """Multiply the matrix with the columns of U."""
        total = (self.ridge if isinstance(self.ridge, float | int) else self.ridge[:, None]) * U
        for coefficient, moments in self.terms:
            total = total + coefficient * moments.apply(U)
        return total

    def value(self, U: Float) -> Float:
        """Evaluate the form at each column of U."""
        return column_products(U, self.apply(U))


@dataclass(frozen=True, eq=False)
class Pencil:
    """The generalized eigenproblem ``A u = λ B u``.

    Attributes
    ----------
    a, b : Form
        The form that is maximised, and the form to which it is compared.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import gather
    >>> from standout.pencil import Form, Pencil, solve
    >>> X = np.array([[2.0, 0.0], [-2.0, 0.0]])
    >>> pencil = Pencil(Form(2, ((1.0, gather(X)),)), Form(2, (), ridge=1.0))
    >>> solve(pencil, 1).values
    array([4.])
    """

    a: Form
    b: Form

    @property
    def n_features(self) -> int:
        """Number of columns of the data."""
        return self.a.n_features

    @property
    def on_device(self) -> bool:
        """Whether the datasets are arrays of another library than NumPy."""
        return any(is_foreign(moments.mean) for form in (self.a, self.b) for _, moments in form.terms)

    @property
    def only_applies(self) -> bool:
        """Whether a dataset is stored as rows (`RowMoments`), and not as a matrix."""
        return any(isinstance(moments, RowMoments) for form in (self.a, self.b) for _, moments in form.terms)

    @property
    def is_difference(self) -> bool:
        """Whether A is a difference of variances, and B the identity."""
        return self.b.is_identity and not self.a.is_nonnegative


@dataclass(frozen=True, eq=False)
class Solution:
    """The leading solutions of a pencil, in descending order.

    Attributes
    ----------
    values : ndarray of shape (d,)
        λ. A value is ``inf`` if B is zero along the direction, and negative only if A is a difference.
    vectors : ndarray of shape (n_features, d)
        Scaled to ``uᵀBu = 1``, or to unit length if λ is ``inf``. The largest entry of each vector is positive.
    patterns : ndarray of shape (n_features, d)
        ``B u``: how the component shows in the data. If λ is ``inf``, the pattern is the limit for a vanishing ridge on
        B. ``patternsᵀ vectors`` is always the identity.
    residuals : ndarray of shape (d,)
        ``|A u - λ B u| / |A u|``: how well the equation holds.
    rounding : ndarray of shape (d,)
        Estimated relative error of each value, from the rounding of A and B.
    solver : str
        The solver that was used.
    n_absent : int
        Number of directions in which the data vary but B does not.
    singular : bool
        Whether B was found to be singular.
    rank : int or None
        Number of directions in which the data vary, if it is less than the number of columns; otherwise None.
    rounding_unit : float
        Relative rounding error of the numbers in A and B.
    n_lost : int
        Number of values that are not larger than their rounding error, although the target has enough rows and varying
        columns for all of them. Such a value may be zero, or it may be lost in the rounding errors of much larger
        variances.
    consistent : bool
        Whether the ratio of the forms along each vector equals its value.
    shrinkage : tuple of float
        The shrinkage of each background; `standout.problem.solve` sets it.
    columns : ndarray or None
        Numbers of the columns that components may use; None means all columns.
    scale : ndarray of shape (n_features,) or None
        The numbers by which the columns were divided, if they were scaled.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import gather
    >>> from standout.pencil import Form, Pencil, solve
    >>> X = np.random.default_rng(0).normal(size=(500, 3)) * [3, 1, 1]
    >>> solution = solve(Pencil(Form(3, ((1.0, gather(X)),)), Form(3, (), ridge=1.0)), 2)
    >>> solution.values.round(1), solution.solver, solution.accurate
    (array([8.6, 1. ]), 'dense', True)
    """

    values: Float
    vectors: Float
    patterns: Float
    residuals: Float
    rounding: Float
    solver: str
    n_absent: int = 0
    singular: bool = False
    rank: int | None = None
    rounding_unit: float = float(np.finfo(np.float64).eps)
    n_lost: int = 0
    consistent: bool = True
    shrinkage: tuple[float, ...] = ()
    columns: npt.NDArray[np.intp] | None = None
    scale: Float | None = None

    def taken(self, order: npt.NDArray[np.intp]) -> Solution:
        """Return the components in another order."""
        rows = {name: take(getattr(self, name), order) for name in ("values", "residuals", "rounding")}
        columns = {name: take(getattr(self, name), order, axis=1) for name in ("vectors", "patterns")}
        return replace(self, **rows, **columns)

    @property
    def accurate(self) -> bool:
        """Whether at least half of the digits are free of rounding errors.

        In single precision, the solution also counts as not accurate if the data do not vary in all directions:
        rounding errors can hide directions in which the data vary.
        """
        within = bool(namespace(self.rounding).all(self.rounding <= float(np.sqrt(self.rounding_unit))))
        hidden = self.rank is not None and self.rounding_unit > np.finfo(np.float64).eps
        return within and not self.n_lost and self.consistent and not hidden


# Overflow makes the estimated rounding error NaN. `Solution.accurate` is then False.
@np.errstate(over="ignore", invalid="ignore")
def finish(
    pencil: Pencil,
    values: Float,
    vectors: Float,
    solver: str,
    *,
    images: tuple[Float, Float] | None = None,
    infinite_patterns: Float | None = None,
    n_absent: int = 0,
    singular: bool = False,
    rank: int | None = None,
) -> Solution:
    """Return the solution for the sorted values and the vectors of a solver: set lengths and signs, and check accuracy.

    All solvers call this function. A solver that already has ``A U`` and ``B U`` passes them as `images`.
    """
    xp = namespace(vectors)
    infinite = xp.isinf(values)
    a_vectors, b_vectors = images if images is not None else (pencil.a.apply(vectors), pencil.b.apply(vectors))
    lengths = column_products(vectors, xp.where(infinite, vectors, b_vectors))
    ones = xp.ones_like(lengths)
    signs = xp.where(largest_entries(vectors) < 0, -ones, ones)
    # If rounding hides that B is singular, a length can be negative. The vector is then NaN, and `Solution.accurate` is
    # False.
    scale = signs / xp.sqrt(lengths)
    vectors, a_vectors, b_vectors = vectors * scale, a_vectors * scale, b_vectors * scale
    finite_values = xp.where(infinite, 0.0, values)
    difference = xp.where(infinite, b_vectors, a_vectors - finite_values * b_vectors)
    # If a value is zero, ``A u`` is also zero. The residual of such a value is relative to the leading value.
    leading = largest(finite_values) * float(np.sqrt(np.finfo(np.float64).eps))
    # If A is a difference, the added and the subtracted part of ``A u`` can cancel. So residuals are relative to the
    # added part.
    added = a_vectors if pencil.a.is_nonnegative else pencil.a.added.apply(vectors)
    size = xp.maximum(column_norms(added), leading * column_norms(b_vectors))
    residuals = column_norms(difference) / xp.where(size > 0, size, 1.0)
    patterns = b_vectors
    if infinite_patterns is not None:
        n_infinite = infinite_patterns.shape[1]
        patterns[:, :n_infinite] = infinite_patterns * signs[:n_infinite]
    rounding, lost = _rounding(pencil, values, vectors, a_vectors)
    n_lost = 0
    if lost is not None:
        # The target varies in at most as many directions as it has rows (minus one) or varying columns. Other values
        # are not counted as lost.
        most = sum(max(moments.count - 1, 0) for _, moments in pencil.a.terms)
        most = min(most, int(xp.count_nonzero(pencil.a.diagonal > 0.0)), lost.shape[0])
        n_lost = int(xp.count_nonzero(lost[:most]))
        # A value of zero has no relative error.
        rounding = xp.where(lost, 0.0, rounding)
    mistake = abs(column_products(vectors, a_vectors - finite_values * b_vectors))
    reference = xp.clip(abs(column_products(vectors, added)), leading, None)
    consistent = infinite | (mistake <= (TOLERANCE + 10.0 * rounding) * reference)
    return Solution(
        values=values,
        vectors=vectors,
        patterns=patterns,
        residuals=residuals,
        rounding=rounding,
        solver=solver,
        n_absent=n_absent,
        singular=singular,
        rank=rank,
        rounding_unit=max(pencil.a.precision, pencil.b.precision),
        n_lost=n_lost,
        consistent=bool(xp.all(consistent)),
    )


def check_directions(n_components: int, n_directions: int) -> None:
    """Raise an error if there are more components than directions in which the data vary."""
    if n_directions == 0:
        problem = "no dataset varies: all rows of each are equal, or differ by so little that the square of it is 0"
        raise InvalidValueError(problem, advice="Give rows that differ, or rescale them.")
    if n_components > n_directions:
        problem = f"is more than {n_directions}, the number of directions in which the data vary"
        advice = f"Choose at most {n_directions}, or give more rows."
        raise InvalidValueError(problem, parameter="n_components", value=n_components, advice=advice)


def _rounding(pencil: Pencil, values: Float, vectors: Float, a_vectors: Float) -> tuple[Float, Array | None]:
    """Return the estimated relative error of each value from rounding errors in the entries of A and B, to first order.

    The error of the entry (i, j) of A is about ``precision * sqrt(Aii Ajj)``, so the error of ``uᵀAu`` is about
    ``precision * Σ uᵢ² Aii``. The estimate does not change when columns are rescaled. Solvers cause a further error,
    which is relative to the largest value. The second result shows which values are not larger than their errors from A
    and the solver. Such values are zero, or lost in these errors. For a difference, the second result is None.
    """
    xp, squares = namespace(vectors), vectors**2
    unit, tiny = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)
    if not pencil.a.is_nonnegative:
        # In a difference, variances can cancel. So the error is relative to the variance of the target.
        whole = Form(pencil.n_features, tuple((abs(weight), moments) for weight, moments in pencil.a.terms))
        target = xp.clip(pencil.a.added.value(vectors), tiny, None)
        of_entries = pencil.a.precision * product(whole.diagonal[None, :], squares)[0, :]
        return (of_entries + unit * largest(whole.diagonal)) / target, None
    target = xp.clip(column_products(vectors, a_vectors), tiny, None)
    infinite = xp.isinf(values)
    finite = xp.where(infinite, 0.0, values)
    share_a = pencil.a.precision * product(pencil.a.diagonal[None, :], squares)[0, :] / target
    of_solver = unit * largest(finite) / xp.clip(finite, tiny, None)
    share_b = pencil.b.precision * product(like(pencil.b.diagonal, squares)[None, :], squares)[0, :]
    # An infinite value has no error from B.
    lost = ~infinite & (share_a + of_solver >= 1.0)
    return xp.where(infinite, 0.0, share_a + share_b + of_solver), lost
