"""The mixture of backgrounds against which the target stands out least: a semidefinite program, with its proof."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import linalg

from standout._arrays import Float, product
from standout._checks import require_background
from standout._messages import InvalidValueError, warn_user
from standout._params import check_solver
from standout._xp import concat, like, namespace, take, to_host
from standout.pencil import Form, Pencil, Solution, UnconvergedWarning, solve

Pose: TypeAlias = Callable[[Float], Pencil]
"""From weights of the backgrounds, non-negative with sum 1, to a pencil."""

# Relative gap between the two sides of the certificate: what is aimed at, and what is accepted without a warning.
TOLERANCE = 1e-8
ACCEPTABLE = 1e-6
# Rounds of eigenproblems. Ten backgrounds take about ten.
MOST_ROUNDS = 60
# Weight that all backgrounds together keep in the first round.
SHARE_OF_ALL = 1e-3
# The same for the small problem of each round, well below what is aimed at.
INNER_TOLERANCE = 1e-10
# Factor between the barriers of the small problem, and the Newton steps that one of them may take.
BARRIER_CUT = 0.2
MOST_STEPS = 200
# Length of the Newton step, in the metric of the Hessian, at which the next barrier is taken up; and at the last one,
# where rounding of a long step would show in the dual solution.
NEAR = 0.3
CENTRED = 1e-3
# A direction counts as new if this share of its squared length is outside of the known ones.
NEW = 1e-14
# Weights below this are tried as zeros; parts of the mixture below that share of the largest are left out.
NEGLIGIBLE_WEIGHT = 1e-6
NEGLIGIBLE_PART = 1e-9


@dataclass(frozen=True, eq=False)
class WorstCase:
    """The mixture of backgrounds against which the target stands out least, with a proof that none is worse.

    Attributes
    ----------
    weights : ndarray of shape (n_backgrounds,)
        ω, non-negative, with sum 1.
    value : float
        Leading ratio λ against this mixture.
    bound : float
        No weights give a smaller leading ratio than this.
    gap : float
        ``(value - bound) / value``: by how much another mixture could still be worse, at most.
    directions : ndarray of shape (n_features, q)
        The proof. With ``Z`` the product of this matrix with its transpose, ``tr(B_k Z) <= 1`` for every background k
        and ``tr(A Z) = bound``, so that for any weights the leading ratio is at least ``tr(A Z) / tr(B Z) >= bound``.
        Where q is 1, it is the leading direction itself. Several occur where the leading ratio is a multiple one.
    ratios : ndarray of shape (n_backgrounds,)
        ``tr(A Z) / tr(B_k Z)``: how much the target stands out along these directions against each background alone,
        never less than `bound`.
    n_solves : int
        Number of eigenproblems that were solved on the way.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import contrast, moments
    >>> from standout.selection import worst_case_weights
    >>> rng = np.random.default_rng(0)
    >>> target = moments.gather(rng.normal(size=(2000, 3)) * [3, 1, 1])
    >>> backgrounds = [moments.gather(rng.normal(size=(2000, 3)) * scale) for scale in (3, 1)]
    >>> worst = worst_case_weights(lambda w: contrast.discriminative(target, backgrounds, w, [0.0, 0.0]), 2)
    >>> worst.weights.round(2), bool(worst.gap < 1e-6)
    (array([1., 0.]), True)
    """

    weights: Float
    value: float
    bound: float
    gap: float
    directions: Float
    ratios: Float
    n_solves: int


def worst_case_weights(pose: Pose, n_backgrounds: int, *, solver: str = "auto", seed: int = 0) -> WorstCase:
    """Against which mixture of the backgrounds does the target stand out least?

    The weights on the simplex for which the leading ratio λ of ``A u = λ Σ ωₖ Bₖ u`` is smallest. This is a convex
    problem, so there is one smallest value, and the result carries the proof that it has been found.

    Parameters
    ----------
    pose : callable
        From weights to a `Pencil` whose B is linear in them, such as
        ``lambda weights: contrast.discriminative(target, backgrounds, weights, shrinkage)``.
    n_backgrounds : int
    solver : {"auto", "dense", "root", "reduced", "lanczos", "lobpcg"}, default="auto"
        See `standout.pencil.choose_solver`.
    seed : int, default=0
        Start of the iterative solvers.

    Returns
    -------
    WorstCase

    Warns
    -----
    ConvergenceWarning
        Where the gap is still larger than 1e-6.

    Notes
    -----
    With ``v = λ ω`` the problem is a semidefinite program: find the smallest ``Σ vₖ`` with ``v >= 0`` for which
    ``Σ vₖ Bₖ - A`` is positive semidefinite. Its dual: find the largest ``tr(A Z)`` with ``tr(Bₖ Z) <= 1`` for every k
    and Z positive semidefinite. Both are solved within the span of a few directions, by Newton's method with a
    logarithmic barrier. A Z within the span is as good for the full problem, which makes its value a lower bound. The
    leading solutions of the full eigenproblem at the weights found give an upper bound, and are added to the
    directions until the bounds meet: a handful of eigenproblems in all.

    The paper would choose ω together with the components, so as to maximise; see `best_weights` for what that gives.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import contrast, moments
    >>> from standout.selection import worst_case_weights
    >>> rng = np.random.default_rng(0)
    >>> target = moments.gather(rng.normal(size=(2000, 4)) * [9, 9, 3, 1])
    >>> backgrounds = [moments.gather(rng.normal(size=(2000, 4)) * scale) for scale in ([9, 1, 1, 1], [1, 9, 1, 1])]
    >>> worst = worst_case_weights(lambda w: contrast.discriminative(target, backgrounds, w, [0.0, 0.0]), 2)
    >>> np.argmax(np.abs(worst.directions[:, 0])), worst.ratios.round(0), worst.gap < 1e-6
    (np.int64(2), array([9., 9.]), True)
    """
    require_background(n_backgrounds)
    worst = _search(_Problem.of(pose, n_backgrounds, check_solver(solver), seed))
    if worst.gap > ACCEPTABLE:
        warn_user(
            "the worst case is known to a relative gap of {gap:.1e} only, more than {limit:.0e}",
            gap=worst.gap,
            limit=ACCEPTABLE,
            advice="The backgrounds are badly conditioned: use shrinkage, or moments gathered as roots.",
            category=UnconvergedWarning,
        )
    return worst


@dataclass(frozen=True, eq=False)
class _Span:
    """A few directions P, and what the forms look like within their span.

    Of data on a device the directions stay there. The small matrices, whose size depends on the number of backgrounds
    and of rounds and not on that of columns, are the host's, where the semidefinite program is solved.

    Attributes
    ----------
    basis : ndarray of shape (n_features, p)
        P, orthonormal with respect to the equal mixture of the backgrounds. In this metric no background exceeds
        n_backgrounds times the identity, however the columns of the data are scaled.
    target : ndarray of shape (p, p)
        ``PᵀAP``.
    backgrounds : ndarray of shape (n_backgrounds, p, p)
        ``PᵀBₖP``.
    """

    basis: Float
    target: Float
    backgrounds: Float


@dataclass(frozen=True, eq=False)
class _Problem:
    """What the search asks of the full problem."""

    pose: Pose
    solver: str
    seed: int
    equal: Float
    target: Form
    mixture: Form
    backgrounds: tuple[Form, ...]

    @classmethod
    def of(cls, pose: Pose, n_backgrounds: int, solver: str, seed: int) -> _Problem:
        equal = np.full(n_backgrounds, 1.0 / n_backgrounds)
        middle = pose(equal)
        return cls(pose, solver, seed, equal, middle.a, middle.b, tuple(pose(e).b for e in np.eye(n_backgrounds)))

    @property
    def width(self) -> int:
        """How many leading solutions are asked for.

        A leading ratio of multiplicity t is to be expected at the optimum as long as t (t + 1) / 2 is no more than the
        number of backgrounds.
        """
        return min(2 + int(np.ceil(np.sqrt(2.0 * len(self.equal)))), self.target.n_features)

    def solved(self, weights: Float) -> Solution:
        """Find the leading solutions of the full eigenproblem."""
        pencil = self.pose(weights)
        try:
            return solve(pencil, self.width, solver=self.solver, seed=self.seed)
        except ValueError:
            # The data may have fewer directions than that. If they have none at all, this is what to complain of.
            return solve(pencil, 1, solver=self.solver, seed=self.seed)


def _search(problem: _Problem) -> WorstCase:
    """Let a span of directions grow until the bounds from both sides meet."""
    solution, n_solves = problem.solved(problem.equal), 1
    weights, value = problem.equal, float(solution.values[0])
    if np.isinf(value):
        raise InvalidValueError(
            "the target varies in a direction in which no background does: the ratio is infinite whatever the weights",
            advice="Use shrinkage, for example {p.shrinkage:auto}.",
        )
    if value <= 0.0:
        return _certified(problem, weights, 0.0, solution.vectors[:, :0], n_solves)
    scale = value
    span, part, is_growing = _no_span(problem, solution), np.zeros((0, 0)), True
    for _ in range(MOST_ROUNDS):
        larger = _extended(problem, span, solution)
        was_growing, is_growing = is_growing, larger is not span
        if not (was_growing or is_growing):
            break
        span = larger
        levels, part = _small_optimum(span.target / scale, span.backgrounds)
        bound = _small_bound(span, part)
        # In the first rounds the span knows little of the problem. A share of all backgrounds keeps the mixture from
        # being singular where some background is; it vanishes with the square of the gap.
        share = SHARE_OF_ALL * (1.0 - bound / value) ** 2 if is_growing else 0.0
        trial = (1.0 - share) * levels / levels.sum() + share * problem.equal
        solution, n_solves = problem.solved(trial), n_solves + 1
        found = float(solution.values[0])
        if found < value:
            weights, value = trial, found
        # Nothing is gained within rounding, unless this is all that is missing.
        if value - bound <= value * max(TOLERANCE, min(float(solution.rounding[0]), ACCEPTABLE / 10.0)):
            break
    if np.any((weights > 0.0) & (weights < NEGLIGIBLE_WEIGHT)):
        weights, value = _without_negligible(problem, weights, value)
        n_solves += 1
    return _certified(problem, weights, value, product(span.basis, like(_root(part), span.basis)), n_solves)


def _no_span(problem: _Problem, solution: Solution) -> _Span:
    basis = like(np.zeros((problem.target.n_features, 0)), solution.vectors)
    return _Span(basis, np.zeros((0, 0)), np.zeros((len(problem.equal), 0, 0)))


def _extended(problem: _Problem, span: _Span, solution: Solution) -> _Span:
    """Add the vectors of a solution to the span; the same span comes back where they are in it already."""
    lengths = to_host(problem.mixture.value(solution.vectors))
    present = np.flatnonzero(lengths > 0.0)
    vectors = take(solution.vectors, present, axis=1) / like(np.sqrt(lengths[present]), solution.vectors)
    # Twice: what rounding has left after the first time goes the second time.
    for _ in range(2):
        vectors = vectors - product(span.basis, product(span.basis.T, problem.mixture.apply(vectors)))
    gram = to_host(product(vectors.T, problem.mixture.apply(vectors)))
    shares, turn = linalg.eigh((gram + gram.T) / 2.0, check_finite=False)
    is_new = shares > max(NEW, min(10.0 * float(solution.rounding[0]), 1e-6))
    if not np.any(is_new):
        return span
    new = product(vectors, like(turn[:, is_new] / np.sqrt(shares[is_new]), vectors))
    basis = concat([span.basis, new], axis=1)

    def extended(matrix: Float, form: Form) -> Float:
        return _bordered(matrix, to_host(product(basis.T, form.apply(new))))

    backgrounds = [extended(old, form) for old, form in zip(span.backgrounds, problem.backgrounds, strict=True)]
    return _Span(basis, extended(span.target, problem.target), np.array(backgrounds))


def _bordered(matrix: Float, columns: Float) -> Float:
    """Extend a symmetric matrix by the columns that are missing, and by the rows these imply."""
    size = len(matrix)
    result = np.empty((len(columns), len(columns)))
    result[:size, :size] = matrix
    result[:, size:] = columns
    result[size:, :size] = columns[:size].T
    result[size:, size:] = (columns[size:] + columns[size:].T) / 2.0
    return result


def _small_optimum(target: Float, backgrounds: Float) -> tuple[Float, Float]:
    """Solve the semidefinite program of small matrices, with the sum of the backgrounds a multiple of the identity.

    Minimise ``Σ vₖ - μ log det S - μ Σ log vₖ`` with ``S = Σ vₖ Bₖ - A`` for ever smaller μ. Then ``μ S⁻¹`` solves the
    dual problem to within ``μ (p + n_backgrounds)``.

    Parameters
    ----------
    target : ndarray of shape (p, p)
        A, with a leading value of 1 at most against the mean of the backgrounds.
    backgrounds : ndarray of shape (n_backgrounds, p, p)

    Returns
    -------
    levels : ndarray of shape (n_backgrounds,)
        v.
    part : ndarray of shape (p, p)
        The solution of the dual problem, positive definite.
    """
    n_backgrounds, size = backgrounds.shape[:2]
    levels = np.full(n_backgrounds, 2.0 / n_backgrounds)
    barrier = float(levels.sum()) / (size + n_backgrounds)
    found = levels, np.eye(size)
    is_last = False
    while not is_last:
        is_last = barrier * (size + n_backgrounds) <= INNER_TOLERANCE * levels.sum()
        centre = _centred(levels, barrier, target, backgrounds, CENTRED if is_last else NEAR)
        if centre is None:  # as far as rounding allows
            break
        found = levels, _ = centre
        barrier *= BARRIER_CUT
    return found


def _centred(
    levels: Float, barrier: float, target: Float, backgrounds: Float, decrement: float
) -> tuple[Float, Float] | None:
    """Minimise with one barrier by Newton's method; None where rounding does not let it get there."""
    for _ in range(MOST_STEPS):
        try:
            gradient, whitened, inverse_root = _barrier_terms(levels, barrier, target, backgrounds)
        except linalg.LinAlgError:
            return None
        step = _newton_step(gradient, whitened)
        change = np.einsum("k,kij->ij", step, whitened)
        if -float(gradient @ step) < decrement**2:
            # To first order what μ S⁻¹ will be after this step. However S⁻¹ is rounded, it satisfies the equations of
            # the dual problem, and it is positive definite, for the change is smaller than 1.
            inner = product(np.eye(len(change)) - change, inverse_root)
            return levels, barrier * product(inverse_root.T, inner)
        rates = np.concatenate([linalg.eigvalsh(change, check_finite=False), step])
        levels = levels * (1.0 + _step_length(float(levels @ step) / barrier, rates) * step)
    return None


def _barrier_terms(levels: Float, barrier: float, target: Float, backgrounds: Float) -> tuple[Float, Float, Float]:
    """Differentiate ``Σ vₖ / μ - log det S - Σ log vₖ`` with respect to relative changes of v.

    Returns the gradient, ``Wₖ = vₖ L⁻¹ Bₖ L⁻ᵀ`` with ``S = L Lᵀ``, and ``L⁻¹``. The Hessian is ``tr(Wₖ Wₗ)`` plus the
    identity.

    Raises
    ------
    LinAlgError
        Where S is not positive definite.
    """
    n_backgrounds, size = backgrounds.shape[:2]
    slack = np.einsum("k,kij->ij", levels, backgrounds) - target
    factor = linalg.cholesky(slack, lower=True, check_finite=False)
    inverse_root = linalg.solve_triangular(factor, np.eye(size), lower=True, check_finite=False)
    half = product(backgrounds.reshape(-1, size), inverse_root.T).reshape(n_backgrounds, size, size)
    # Symmetric backgrounds: the other side is multiplied with the transposes.
    whole = product(half.transpose(0, 2, 1).reshape(-1, size), inverse_root.T)
    whitened = levels[:, np.newaxis, np.newaxis] * whole.reshape(n_backgrounds, size, size)
    gradient = levels / barrier - np.trace(whitened, axis1=1, axis2=2) - 1.0
    return gradient, whitened, inverse_root


def _newton_step(gradient: Float, whitened: Float) -> Float:
    """Solve with the Hessian of `_barrier_terms`, which is never formed: its identity would be lost in its rounding."""
    triangle = linalg.qr(whitened.reshape(len(whitened), -1).T, mode="r", check_finite=False)[0][: len(whitened)]
    _, spread, turn = linalg.svd(triangle, check_finite=False)
    curvature = np.ones(len(gradient))
    curvature[: len(spread)] += spread**2
    step: Float = -(turn.T @ ((turn @ gradient) / curvature))
    return step


def _step_length(slope: float, rates: Float) -> float:
    """Minimise ``t slope - Σ log(1 + t rate)`` over the t > 0 at which every logarithm exists."""
    end = 1.0 / max(-float(rates.min()), np.finfo(np.float64).tiny)
    length = min(1.0, 0.5 * end)
    for _ in range(20):
        relative = rates / (1.0 + length * rates)
        new = length - (slope - float(relative.sum())) / float(relative @ relative)
        new = min(max(new, 0.1 * length), 0.5 * (length + end))
        if abs(new - length) <= 1e-3 * length:
            break
        length = new
    return length


def _small_bound(span: _Span, part: Float) -> float:
    """Give the lower bound on the leading ratio that a positive definite matrix within the span proves."""
    against = np.einsum("kij,ij->k", span.backgrounds, part)
    return float(np.einsum("ij,ij->", span.target, part) / against.max())


def _root(part: Float) -> Float:
    """Give a matrix whose product with its transpose is `part`, without the columns that do not matter."""
    values, vectors = linalg.eigh(part, check_finite=False)
    keep = values > NEGLIGIBLE_PART * values[-1]
    root: Float = (vectors[:, keep] * np.sqrt(values[keep]))[:, ::-1]
    return root


def _without_negligible(problem: _Problem, weights: Float, value: float) -> tuple[Float, float]:
    """Set weights that are almost zero to zero, if the ratio allows."""
    trial = np.where(weights < NEGLIGIBLE_WEIGHT, 0.0, weights)
    trial /= trial.sum()
    leading = float(problem.solved(trial).values[0])
    return (trial, leading) if leading <= value * (1.0 + TOLERANCE) else (weights, value)


def _certified(problem: _Problem, weights: Float, value: float, directions: Float, n_solves: int) -> WorstCase:
    """Evaluate the proof on the full forms, so that it stands on its own."""
    xp = namespace(directions)
    target = float(xp.sum(problem.target.value(directions)))
    against = np.array([float(xp.sum(form.value(directions))) for form in problem.backgrounds])
    if target <= 0.0:
        return WorstCase(weights, value, 0.0, 0.0, directions, np.zeros(len(weights)), n_solves)
    most = float(against.max())
    bound = target / most
    ratios = np.divide(target, against, out=np.full(len(weights), np.inf), where=against > 0.0)
    # Rounding may let the bounds pass each other.
    gap = max(1.0 - bound / value, 0.0)
    return WorstCase(weights, value, bound, gap, directions / float(np.sqrt(most)), ratios, n_solves)
