"""The problem and its answer: a pencil of two quadratic forms, and the record that a solver returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from standout._algebra import (
    add_to_diagonal,
    all_true,
    at_least,
    column_lengths,
    column_products,
    either,
    identity,
    is_infinite,
    larger,
    largest,
    largest_entries,
    root,
)
from standout._arrays import Float, stacked, weighted_sum
from standout._namespaces import is_foreign
from standout.moments import CentredRows, Moments, RowMoments


class NotDefiniteError(Exception):
    """B is singular to working precision: this solver cannot take it, the root solver can."""


@dataclass(frozen=True, eq=False)
class Form:
    """A quadratic form ``u -> Σ cᵢ uᵀCᵢu + ridge uᵀu`` over the covariances of datasets.

    It is kept as a sum so that a solver can ask for it in the shape it needs: as a matrix, as a root, or only applied
    to vectors.

    Attributes
    ----------
    n_features : int
    terms : tuple of (float, Moments)
        The coefficients and the datasets.
    ridge : float
        Multiple of the identity that is added.

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
    ridge: float = 0.0

    @property
    def is_identity(self) -> bool:
        """Whether the matrix is the identity."""
        return not self.terms and self.ridge == 1.0

    @property
    def is_nonnegative(self) -> bool:
        """Whether no dataset is subtracted: then the form is a sum of variances."""
        return all(coefficient >= 0.0 for coefficient, _ in self.terms) and self.ridge >= 0.0

    @property
    def added(self) -> Form:
        """The datasets that are added, without the ridge."""
        return Form(self.n_features, tuple(term for term in self.terms if term[0] > 0.0))

    @property
    def subtracted(self) -> Form:
        """The datasets that are subtracted, with coefficients turned positive."""
        return Form(self.n_features, tuple((-weight, moments) for weight, moments in self.terms if weight < 0.0))

    @property
    def keeps_rows(self) -> bool:
        """Whether every dataset is there with its rows."""
        return all(isinstance(moments, RowMoments | CentredRows) for _, moments in self.terms)

    @property
    def n_rows(self) -> int:
        """Number of rows of all datasets together."""
        return sum(moments.count for _, moments in self.terms)

    @property
    def diagonal(self) -> Float:
        """Diagonal of the matrix."""
        total: Float | float = self.ridge
        for coefficient, moments in self.terms:
            total = total + coefficient * moments.variances
        return np.full(self.n_features, total) if isinstance(total, float) else total

    @property
    def precision(self) -> float:
        """Relative rounding error of the least precise term."""
        return max((moments.precision for _, moments in self.terms), default=float(np.finfo(np.float64).eps))

    @property
    def root_level(self) -> float:
        """Relative rounding error of `root`."""
        return max((moments.root_level for _, moments in self.terms), default=float(np.finfo(np.float64).eps))

    def matrix(self) -> Float:
        """Give the form as a symmetric matrix, the caller's own to overwrite."""
        total: Float | None = None
        for coefficient, moments in self.terms:
            part = moments.covariance()
            if coefficient != 1.0:
                part *= coefficient
            if total is None:
                total = part
            else:
                total += part
        if total is None:
            return self.ridge * np.eye(self.n_features)
        return add_to_diagonal(total, self.ridge) if self.ridge else total

    def root(self) -> Float:
        """Give R with ``RᵀR`` the matrix, the caller's own to overwrite; all coefficients must be non-negative."""
        parts = [
            moments.root() if coefficient == 1.0 else float(np.sqrt(coefficient)) * moments.root()
            for coefficient, moments in self.terms
            if coefficient > 0
        ]
        if self.ridge > 0:
            ones = identity(self.n_features, parts[0]) if parts else np.eye(self.n_features)
            parts.append(float(np.sqrt(self.ridge)) * ones)
        if not parts:
            return np.zeros((0, self.n_features))
        return stacked(parts)

    def apply(self, U: Float) -> Float:
        """Multiply the matrix with the columns of U."""
        total = self.ridge * U
        for coefficient, moments in self.terms:
            total += coefficient * moments.apply(U)
        return total

    def value(self, U: Float) -> Float:
        """Evaluate the form at each column of U."""
        total = self.ridge * column_products(U, U)
        for coefficient, moments in self.terms:
            total += coefficient * moments.variance(U)
        return total


@dataclass(frozen=True, eq=False)
class Pencil:
    """The generalized eigenproblem ``A u = λ B u``.

    Attributes
    ----------
    a, b : Form
        What is to be large, and what it is measured by.

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
    def keeps_rows(self) -> bool:
        """Whether every dataset is there with its rows."""
        return self.a.keeps_rows and self.b.keeps_rows

    @property
    def on_device(self) -> bool:
        """Whether the datasets are arrays of another library, on a device of its own."""
        return any(is_foreign(moments.mean) for form in (self.a, self.b) for _, moments in form.terms)

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
        λ. ``inf`` where B has no part in the direction at all; negative only where A is a difference.
    vectors : ndarray of shape (n_features, d)
        Scaled to ``uᵀBu = 1``, or to unit length where λ is ``inf``; the largest entry of each is positive.
    patterns : ndarray of shape (n_features, d)
        ``B u``, what the component looks like in the data; for a λ of ``inf`` the limit of it, ``patternsᵀ vectors``
        being the identity in any case.
    residuals : ndarray of shape (d,)
        ``|A u - λ B u| / |A u|``: how well the equation holds.
    rounding : ndarray of shape (d,)
        Estimated relative error of each value from the rounding of A and B alone.
    solver : str
        The solver that was used.
    n_absent : int
        Number of directions that occur in the data but not in B.
    singular : bool
        Whether B was found to be singular.
    rank : int or None
        Number of directions that occur in the data, where fewer than there are columns; None where all do.
    rounding_unit : float
        Relative rounding error of the numbers in A and B.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import contrast, moments
    >>> from standout.pencil import solve
    >>> rng = np.random.default_rng(0)
    >>> solution = solve(contrast.principal(moments.gather(rng.normal(size=(500, 3)) * [3, 1, 1])), 2)
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

    @property
    def accurate(self) -> bool:
        """Whether rounding has left at least half of the digits."""
        return all_true(self.rounding <= float(np.sqrt(self.rounding_unit)))


def finish(
    pencil: Pencil,
    values: Float,
    vectors: Float,
    solver: str,
    *,
    images: tuple[Float, Float] | None = None,
    infinite_patterns: Float | None = None,
    rounding: Float | None = None,
    n_absent: int = 0,
    singular: bool = False,
    rank: int | None = None,
) -> Solution:
    """Scale, sign and certify what a solver found, given in descending order. The only place that does so.

    A solver that knows ``A U`` and ``B U`` already passes them as `images`; one that knows better than the rounding of
    matrices what has happened to its values passes `rounding`.
    """
    infinite = is_infinite(values)
    a_vectors, b_vectors = images if images is not None else (pencil.a.apply(vectors), pencil.b.apply(vectors))
    lengths = column_products(vectors, either(infinite, vectors, b_vectors))
    signs = either(largest_entries(vectors) < 0, -1.0, 1.0)
    # Where B is singular and its rounding has passed for more than that, a length can come out negative. The NaN it
    # makes counts as no accuracy at all.
    with np.errstate(invalid="ignore"):
        scale = signs / root(lengths)
    vectors, a_vectors, b_vectors = vectors * scale, a_vectors * scale, b_vectors * scale
    finite_values = either(infinite, 0.0, values)
    difference = either(infinite, b_vectors, a_vectors - finite_values * b_vectors)
    # Beside the leading value a value of zero is never exact: its residual is judged at the leading value's size.
    leading = largest(finite_values) * float(np.sqrt(np.finfo(np.float64).eps))
    size = larger(column_lengths(a_vectors), leading * column_lengths(b_vectors))
    if not pencil.a.is_nonnegative:
        # A difference can cancel: the equation is judged at the size of what is subtracted from.
        size = larger(size, column_lengths(pencil.a.added.apply(vectors)))
    residuals = column_lengths(difference) / either(size > 0, size, 1.0)
    patterns = b_vectors
    if infinite_patterns is not None:
        n_infinite = infinite_patterns.shape[1]
        patterns[:, :n_infinite] = infinite_patterns * signs[:n_infinite]
    return Solution(
        values=values,
        vectors=vectors,
        patterns=patterns,
        residuals=residuals,
        rounding=_rounding(pencil, values, vectors, a_vectors) if rounding is None else rounding,
        solver=solver,
        n_absent=n_absent,
        singular=singular,
        rank=rank,
        rounding_unit=max(pencil.a.precision, pencil.b.precision),
    )


def _rounding(pencil: Pencil, values: Float, vectors: Float, a_vectors: Float) -> Float:
    """First-order effect on each value of relative errors in the entries of A and B.

    An entry (i, j) is wrong by about ``precision * sqrt(Aii Ajj)``, so ``uᵀAu`` by ``precision * Σ uᵢ² Aii``. The
    estimate does not change when columns are rescaled.
    """
    squares = vectors**2
    if not pencil.a.is_nonnegative:
        # A difference has no relative error of its own: what counts is the share of the target's variance.
        sizes = pencil.a.added.diagonal + pencil.a.subtracted.diagonal
        target = at_least(pencil.a.added.value(vectors), float(np.finfo(np.float64).tiny))
        if not largest(pencil.a.added.diagonal):
            return 0.0 * target  # nothing to be wrong about
        with np.errstate(over="ignore"):
            return pencil.a.precision * weighted_sum(sizes, squares) / target
    target = at_least(column_products(vectors, a_vectors), float(np.finfo(np.float64).tiny))
    share_a = pencil.a.precision * weighted_sum(pencil.a.diagonal, squares) / target
    share_b = pencil.b.precision * weighted_sum(pencil.b.diagonal, squares)
    # A value of zero has no relative error, and an infinite one no background to be wrong about.
    share_a = either(values > float(np.finfo(np.float64).eps) * largest(values), share_a, 0.0)
    return either(is_infinite(values), 0.0, share_a + share_b)
