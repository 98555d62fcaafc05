"""The problem and its solution: a pencil of two quadratic forms, and the record that a solver returns."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from standout._arrays import Array, Float, stacked, weighted_sum
from standout._messages import CautionWarning
from standout._xp import (
    add_to_diagonal,
    column_norms,
    column_products,
    eye,
    is_foreign,
    largest,
    largest_entries,
    namespace,
)
from standout.moments import KeptRows, Moments


class NotDefiniteError(Exception):
    """B is singular to working precision. This solver cannot solve the problem, but the root solver can."""


class UnconvergedWarning(CautionWarning, ConvergenceWarning):
    """An iteration stopped before its result was as accurate as it should be."""


@dataclass(frozen=True, eq=False)
class Form:
    """A quadratic form ``u -> Σ cᵢ uᵀCᵢu + ridge uᵀu`` over the covariances of datasets.

    It is stored as a sum, so that each solver can use it in the way it needs: as a matrix, as a root, or only by its
    action on vectors.

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
        """Whether no dataset is subtracted, so that the form is a sum of variances."""
        return all(coefficient >= 0.0 for coefficient, _ in self.terms) and self.ridge >= 0.0

    @property
    def added(self) -> Form:
        """The datasets that are added, without the ridge."""
        return Form(self.n_features, tuple(term for term in self.terms if term[0] > 0.0))

    @property
    def subtracted(self) -> Form:
        """The datasets that are subtracted, with positive coefficients."""
        return Form(self.n_features, tuple((-weight, moments) for weight, moments in self.terms if weight < 0.0))

    @property
    def keeps_rows(self) -> bool:
        """Whether the moments of every dataset have its rows."""
        return all(isinstance(moments, KeptRows) for _, moments in self.terms)

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

    def taken(self, columns: npt.NDArray[np.intp]) -> Form:
        """Give the form of vectors that are zero but for some columns, as a form of these columns."""
        return replace(
            self, n_features=len(columns), terms=tuple((weight, part.taken(columns)) for weight, part in self.terms)
        )

    def scaled(self, factor: float) -> Form:
        """Give the form multiplied by a number."""
        terms = tuple((factor * coefficient, moments) for coefficient, moments in self.terms)
        return Form(self.n_features, terms, factor * self.ridge)

    def matrix(self) -> Float:
        """Give the form as a symmetric matrix, which the caller may overwrite."""
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
        """Give R with ``RᵀR`` the matrix, which the caller may overwrite; coefficients must be non-negative."""
        parts = [
            moments.root() if coefficient == 1.0 else float(np.sqrt(coefficient)) * moments.root()
            for coefficient, moments in self.terms
            if coefficient > 0
        ]
        if self.ridge > 0:
            identity = eye(self.n_features, parts[0]) if parts else np.eye(self.n_features)
            parts.append(float(np.sqrt(self.ridge)) * identity)
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
        What should be large, and what it is compared with.
    mirrored : bool
        Whether it stands for another pencil, whose least values are wanted: the background is A then.

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
    mirrored: bool = False

    def taken(self, columns: npt.NDArray[np.intp]) -> Pencil:
        """Give the same problem for vectors that are zero but for some columns, by their numbers."""
        return replace(self, a=self.a.taken(columns), b=self.b.taken(columns))

    @property
    def n_features(self) -> int:
        """Number of columns of the data."""
        return self.a.n_features

    @property
    def keeps_rows(self) -> bool:
        """Whether the moments of every dataset have its rows."""
        return self.a.keeps_rows and self.b.keeps_rows

    @property
    def on_device(self) -> bool:
        """Whether the datasets are arrays of another library than NumPy."""
        return any(is_foreign(moments.mean) for form in (self.a, self.b) for _, moments in form.terms)

    @property
    def is_difference(self) -> bool:
        """Whether A is a difference of variances, and B the identity."""
        return self.b.is_identity and not self.a.is_nonnegative

    @property
    def needs_range(self) -> bool:
        """Whether a direction in which no dataset varies could be taken for a solution."""
        only_added = self.a.ridge > 0.0 or not all(part.is_dataset for _, part in self.a.terms)
        return self.is_difference or (self.mirrored and only_added)


@dataclass(frozen=True, eq=False)
class Solution:
    """Some solutions of a pencil: the leading ones in descending order, unless another side was asked for.

    Attributes
    ----------
    values : ndarray of shape (d,)
        λ. It is ``inf`` if B is zero along the direction, and negative only if A is a difference.
    vectors : ndarray of shape (n_features, d)
        Scaled to ``uᵀBu = 1``, or to unit length if λ is ``inf``. The largest entry of each is positive.
    patterns : ndarray of shape (n_features, d)
        ``B u``: how the component shows in the data. For a λ of ``inf`` it is the limit of a vanishing ridge.
        ``patternsᵀ vectors`` is always the identity.
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
        Number of values that are no larger than the rounding error of the largest one, although the target has enough
        rows and varying columns for more. Either they are zero, or they are drowned by a few huge entries.
    n_missing : int
        Number of directions in which B varies but A does not, if the least values were asked for.

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
    n_lost: int = 0
    n_missing: int = 0

    @property
    def accurate(self) -> bool:
        """Whether rounding has left at least half of the digits."""
        within = bool(namespace(self.rounding).all(self.rounding <= float(np.sqrt(self.rounding_unit))))
        return within and not self.n_lost


# What overflows becomes a rounding error that is no number, and is told of.
@np.errstate(over="ignore", invalid="ignore")
def finish(
    pencil: Pencil,
    values: Float,
    vectors: Float,
    solver: str,
    *,
    images: tuple[Float, Float] | None = None,
    infinite_patterns: Float | None = None,
    rounding: Float | None = None,
    lost: Array | None = None,
    n_absent: int = 0,
    n_lost: int = 0,
    singular: bool = False,
    rank: int | None = None,
) -> Solution:
    """Scale, sign and certify what a solver found, given in descending order. No other function does this.

    A solver that already has ``A U`` and ``B U`` passes them as `images`. A solver with a better estimate of the error
    of its values than the rounding of the matrices passes it as `rounding`, and tells by `lost` which values are no
    more than rounding errors. A solution that was certified before has them counted as `n_lost`.
    """
    xp = namespace(vectors)
    infinite = xp.isinf(values)
    a_vectors, b_vectors = images if images is not None else (pencil.a.apply(vectors), pencil.b.apply(vectors))
    lengths = column_products(vectors, xp.where(infinite, vectors, b_vectors))
    ones = xp.ones_like(lengths)
    signs = xp.where(largest_entries(vectors) < 0, -ones, ones)
    # If B is singular but rounding hides that, a length can be negative. The NaN that results means no accuracy at all.
    with np.errstate(invalid="ignore"):
        scale = signs / xp.sqrt(lengths)
    vectors, a_vectors, b_vectors = vectors * scale, a_vectors * scale, b_vectors * scale
    finite_values = xp.where(infinite, 0.0, values)
    difference = xp.where(infinite, b_vectors, a_vectors - finite_values * b_vectors)
    # A value of zero is never exact compared with the leading value, so its residual is relative to the latter.
    leading = largest(finite_values) * float(np.sqrt(np.finfo(np.float64).eps))
    size = xp.maximum(column_norms(a_vectors), leading * column_norms(b_vectors))
    if not pencil.a.is_nonnegative:
        # A difference can cancel, so residuals are relative to the part that is added.
        size = xp.maximum(size, column_norms(pencil.a.added.apply(vectors)))
    residuals = column_norms(difference) / xp.where(size > 0, size, 1.0)
    patterns = b_vectors
    if infinite_patterns is not None:
        n_infinite = infinite_patterns.shape[1]
        patterns[:, :n_infinite] = infinite_patterns * signs[:n_infinite]
    if rounding is None:
        rounding, lost = _rounding(pencil, values, vectors, a_vectors)
    if lost is not None:
        n_lost = int(xp.count_nonzero(lost[: min(most_directions(pencil.a), lost.shape[0])]))
        # A value of zero has no relative error.
        rounding = xp.where(lost, 0.0, rounding)
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
    )


def most_directions(form: Form) -> int:
    """Bound the number of directions in which a form is not zero, by its rows and by the columns that vary."""
    if form.ridge:
        return form.n_features
    diagonal = form.diagonal
    varying = int(namespace(diagonal).count_nonzero(diagonal > 0.0))
    return min(varying, sum(max(moments.count - 1, 0) for _, moments in form.terms))


def _rounding(pencil: Pencil, values: Float, vectors: Float, a_vectors: Float) -> tuple[Float, Array | None]:
    """Estimate, to first order, the effect on each value of relative errors in the entries of A and B.

    The error of an entry (i, j) is about ``precision * sqrt(Aii Ajj)``, so that of ``uᵀAu`` is about
    ``precision * Σ uᵢ² Aii``. The estimate does not change when columns are rescaled. Solvers add an error of their
    own, relative to the largest value. A value that is no larger than the error from A is zero or lost: which are, is
    given as well.
    """
    xp, squares = namespace(vectors), vectors**2
    tiny = float(np.finfo(np.float64).tiny)
    if not pencil.a.is_nonnegative:
        # A difference has no relative error of its own. The error is relative to the target's variance; where the
        # least differences are wanted, this may be small, and it is relative to all that varies.
        whole = Form(pencil.n_features, tuple((abs(weight), moments) for weight, moments in pencil.a.terms))
        sizes, relative = whole.diagonal, whole if pencil.mirrored else pencil.a.added
        target = xp.clip(relative.value(vectors), tiny, None)
        if not largest(relative.diagonal):
            return 0.0 * target, None
        unit = float(np.finfo(np.float64).eps)
        with np.errstate(over="ignore"):
            return (pencil.a.precision * weighted_sum(sizes, squares) + unit * largest(sizes)) / target, None
    target = xp.clip(column_products(vectors, a_vectors), tiny, None)
    unit = float(np.finfo(np.float64).eps)
    infinite = xp.isinf(values)
    finite = xp.where(infinite, 0.0, values)
    with np.errstate(over="ignore"):
        share_a = pencil.a.precision * weighted_sum(pencil.a.diagonal, squares) / target
        of_solver = unit * largest(finite) / xp.clip(finite, tiny, None)
    share_b = pencil.b.precision * weighted_sum(pencil.b.diagonal, squares)
    # An infinite value has no error from B.
    lost = ~infinite & (share_a + of_solver >= 1.0)
    return xp.where(infinite, 0.0, share_a + share_b + of_solver), lost
