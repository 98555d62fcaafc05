"""The problem and its answer: a pencil of two quadratic forms, and the record that a solver returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from standout._arrays import Float, weighted_sum
from standout.moments import Moments, RowMoments


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
        return all(isinstance(moments, RowMoments) for _, moments in self.terms)

    @property
    def n_rows(self) -> int:
        """Number of rows of all datasets together."""
        return sum(moments.count for _, moments in self.terms)

    @property
    def diagonal(self) -> Float:
        """Diagonal of the matrix."""
        total = np.full(self.n_features, self.ridge)
        for coefficient, moments in self.terms:
            total += coefficient * moments.variances
        return total

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
            total = part if total is None else np.add(total, part, out=total)
        if total is None:
            return self.ridge * np.eye(self.n_features)
        if self.ridge:
            total.flat[:: self.n_features + 1] += self.ridge
        return total

    def root(self) -> Float:
        """Give R with ``RᵀR`` the matrix, the caller's own to overwrite; all coefficients must be non-negative."""
        parts = [
            moments.root() if coefficient == 1.0 else np.sqrt(coefficient) * moments.root()
            for coefficient, moments in self.terms
            if coefficient > 0
        ]
        if self.ridge > 0:
            parts.append(np.sqrt(self.ridge) * np.eye(self.n_features))
        if not parts:
            return np.zeros((0, self.n_features))
        return parts[0] if len(parts) == 1 else np.vstack(parts)

    def apply(self, U: Float) -> Float:
        """Multiply the matrix with the columns of U."""
        total = self.ridge * U
        for coefficient, moments in self.terms:
            total += coefficient * moments.apply(U)
        return total

    def value(self, U: Float) -> Float:
        """Evaluate the form at each column of U."""
        total = self.ridge * np.einsum("ij,ij->j", U, U)
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
        return bool(np.all(self.rounding <= np.sqrt(self.rounding_unit)))


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
    infinite = np.isinf(values)
    a_vectors, b_vectors = images if images is not None else (pencil.a.apply(vectors), pencil.b.apply(vectors))
    lengths = np.einsum("ij,ij->j", vectors, np.where(infinite, vectors, b_vectors))
    largest = np.argmax(np.abs(vectors), axis=0)
    signs = np.where(np.take_along_axis(vectors, largest[np.newaxis], axis=0)[0] < 0, -1.0, 1.0)
    # Where B is singular and its rounding has passed for more than that, a length can come out negative. The NaN it
    # makes counts as no accuracy at all.
    with np.errstate(invalid="ignore"):
        scale = signs / np.sqrt(lengths)
    vectors, a_vectors, b_vectors = vectors * scale, a_vectors * scale, b_vectors * scale
    finite_values = np.where(infinite, 0.0, values)
    difference = np.where(infinite, b_vectors, a_vectors - finite_values * b_vectors)
    # Beside the leading value a value of zero is never exact: its residual is judged at the leading value's size.
    leading = float(np.max(finite_values, initial=0.0)) * np.sqrt(np.finfo(np.float64).eps)
    size = np.maximum(np.linalg.norm(a_vectors, axis=0), leading * np.linalg.norm(b_vectors, axis=0))
    if not pencil.a.is_nonnegative:
        # A difference can cancel: the equation is judged at the size of what is subtracted from.
        size = np.maximum(size, np.linalg.norm(pencil.a.added.apply(vectors), axis=0))
    residuals = np.linalg.norm(difference, axis=0) / np.where(size > 0, size, 1.0)
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
        target = np.maximum(pencil.a.added.value(vectors), np.finfo(np.float64).tiny)
        if not np.any(pencil.a.added.diagonal):
            return np.zeros(len(values))  # nothing to be wrong about
        with np.errstate(over="ignore"):
            return pencil.a.precision * weighted_sum(sizes, squares) / target
    target = np.maximum(np.einsum("ij,ij->j", vectors, a_vectors), np.finfo(np.float64).tiny)
    share_a = pencil.a.precision * weighted_sum(pencil.a.diagonal, squares) / target
    share_b = pencil.b.precision * weighted_sum(pencil.b.diagonal, squares)
    # A value of zero has no relative error, and an infinite one no background to be wrong about.
    share_a = np.where(values > np.finfo(np.float64).eps * np.max(values, initial=0.0), share_a, 0.0)
    return np.where(np.isinf(values), 0.0, share_a + share_b)
