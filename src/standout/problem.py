"""The record that defines a problem, and the function that solves it: ``solve(moments, problem)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from standout._arrays import Array, Float
from standout._xp import concat, eye, largest_entries, like, namespace, to_host
from standout.moments import Moments, ScatterMoments, own_shrinkage
from standout.pencil import Form, Pencil, Posed, Solution, fold_vectors, path_vectors
from standout.pencil import solve as solve_pencil

__all__ = ["Problem", "Sums", "adjusted", "rank_columns", "solve", "solve_path"]

# A fold is solved again with all checks if one of its values is below this share of the largest value.
LEAST_VALUE = 1e-10
# Share of the columns that are kept in each step of the search for few columns.
KEPT_SHARE = 2 / 3


@dataclass(frozen=True)
class Problem:
    """All choices that define the problem of a fit.

    Choices that depend on the rows (scale, centre, columns, shrinkage by Ledoit and Wolf) are stored as rules. `solve`
    computes their values from the moments that it receives. So a fold or a permutation is solved with the same
    `Problem` and other moments.

    Attributes
    ----------
    n_components : int
        Number of components, d.
    kind : {"ratio", "difference"}
        dPCA maximises a ratio of variances (eqs. 6 and 20), contrastive PCA a difference.
    weights : tuple of float
        ω, one number for each background. Their sum is 1.
    shrinkage : float or "ledoit-wolf"
        s in ``B = Σ ωₖ [(1 - s) Cₖ + s (tr Cₖ / D) I]``, with D columns. The paper's formula has s = 0.
    alpha : float
        α in the difference ``A = Cxx - α Σ ωₖ Cₖ``.
    epsilon : float or None
        ε of the kernel methods (eqs. 19 and 23), which add the ridge ``ε I`` to B. ε is the paper's ridge if the
        coordinates were multiplied by a root of their total scatter.
    center : {"own", "background"}
        Point about which the variance of the target is computed: its own mean, or the mean of the backgrounds.
    scale : {None, "pooled", "background"}
        The standard deviation by which columns are divided (see `column_scale`). None means no division.
    n_columns : int or None
        Number of columns that components may use.
    smooth : sparse array or None
        γ L, with a strength γ and the Laplacian L of a graph over the columns. ``γ (tr B / D) L`` is added to B.
    n_covariates : int
        Number of trailing columns of the moments that are covariates. Their effect on the other columns is removed.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import gather
    >>> from standout.problem import Problem, solve
    >>> rng = np.random.default_rng(0)
    >>> target, background = rng.normal(size=(1000, 3)) * [9, 1, 2], rng.normal(size=(1000, 3)) * [9, 1, 1]
    >>> int(np.abs(solve([gather(target), gather(background)], Problem()).vectors).argmax())
    2
    """

    n_components: int = 1
    kind: Literal["ratio", "difference"] = "ratio"
    weights: tuple[float, ...] = (1.0,)
    shrinkage: float | str = 0.0
    alpha: float = 0.0
    epsilon: float | None = None
    center: str = "own"
    scale: str | None = None
    n_columns: int | None = None
    smooth: Any = None
    n_covariates: int = 0


@dataclass(frozen=True, eq=False)
class Sums:
    """The moments of all datasets of a problem, and functions that convert their coordinates to columns of the data.

    Attributes
    ----------
    moments : tuple of Moments
        The target first. For wide data these are moments of coordinates (see `standout.moments.Span`).
    dimension : int
        Number of columns of the data.
    lift, drop : callable or None
        `lift` converts vectors from coordinates to columns, and `drop` from columns to coordinates.
    scaled : ndarray or None
        The numbers by which the columns were divided before the coordinates were computed.
    some : callable or None
        Returns the sums of some of the columns.
    variances : tuple of ndarray
        The variances of the columns of each dataset. They are stored for wide data with `n_columns`.
    origin : ndarray or None
        The point with coordinates of zero, in the columns of the data.
    solver : object or None
        Solves kernel problems from inner products of rows.
    single : bool
        Whether products of the rows are in single precision.
    """

    moments: tuple[Moments, ...]
    dimension: int
    lift: Callable[[Float], Float] | None = None
    drop: Callable[[Float], Float] | None = None
    scaled: Float | None = None
    some: Callable[[npt.NDArray[np.intp]], Sums] | None = None
    variances: tuple[Float, ...] = ()
    origin: Float | None = None
    solver: Any = None
    single: bool = False

    @classmethod
    def of(cls, moments: Sums | Sequence[Moments], n_covariates: int = 0) -> Sums:
        """Return moments of columns as `Sums`. If `moments` are already `Sums`, return them unchanged."""
        if isinstance(moments, Sums):
            return moments
        return cls(tuple(moments), moments[0].n_features - n_covariates)

    def lifted(self, vectors: Float) -> Float:
        """Return vectors in the columns of the data."""
        return vectors if self.lift is None else self.lift(vectors)

    def dropped(self, vectors: Float) -> Float:
        """Return vectors in the coordinates of the moments."""
        return vectors if self.drop is None else self.drop(vectors)

    def point(self, mean: Float) -> Float:
        """Return a point, such as a mean, in the columns of the data."""
        if self.lift is None or self.origin is None:
            return mean
        # `lift` divides each column by its scale, but the columns of a point have to be multiplied by their scale.
        # Multiplying the result of `lift` by the squared scale corrects this.
        lifted = self.lift(mean[:, None])[:, 0]
        return self.origin + (lifted if self.scaled is None else lifted * self.scaled**2)

    def taken(self, columns: npt.NDArray[np.intp], n_covariates: int = 0) -> Sums:
        """Return the sums of some of the columns, with all covariates."""
        if self.some is not None:
            return self.some(columns)
        every = np.concatenate([columns, np.arange(self.dimension, self.dimension + n_covariates)])
        return Sums(tuple(part.taken(every) for part in self.moments), len(columns))


def solve(moments: Sums | Sequence[Moments], problem: Problem, *, solver: str = "auto", seed: int = 0) -> Solution:
    """Which components does this problem have?

    Parameters
    ----------
    moments : sequence of Moments
        The moments of the target, then of each background. Without a background, the problem is PCA (Remark 1).
    problem : Problem
    solver : {"auto", "dense", "iterative"}, default="auto"
    seed : int, default=0
        Seed of the random vectors from which iterations start.

    Returns
    -------
    Solution
        Vectors and patterns are in the columns of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import gather
    >>> from standout.problem import Problem, solve
    >>> X = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> solve([gather(X)], Problem()).values
    array([4.5])
    """
    sums = Sums.of(moments, problem.n_covariates)
    if is_sparse_problem(problem, sums):
        return _solve_few(sums, problem, solver, seed)
    return lifted(sums, solve_inside(sums, problem, solver=solver, seed=seed))[0]


def solve_inside(sums: Sums, problem: Problem, *, solver: str = "auto", seed: int = 0) -> Solution:
    """Return the solution on all columns. Vectors and patterns are in the coordinates of the moments."""
    if sums.solver is not None:
        return sums.solver.solution(problem)
    posed = pose(sums, [problem])
    solution = solve_pencil(pencil_of(posed, problem), problem.n_components, solver=solver, seed=seed)
    scale = posed.scale
    if scale is not None:
        vectors, patterns = solution.vectors / scale[:, None], solution.patterns * scale[:, None]
        solution = replace(solution, vectors=vectors, patterns=patterns)
    shares = tuple(posed.shares[0].tolist())
    return replace(solution, shrinkage=shares, scale=scale if sums.scaled is None else sums.scaled)


def solve_folds(folds: Sequence[Sums], problem: Problem, seed: int = 0) -> list[tuple[Float, Float]]:
    """Return values and vectors of folds, without the accuracy checks that are made for the fit of all rows.

    Vectors are in the coordinates of the moments. If components may use only some of the columns, they are in the
    columns of the data. A fold with a singular background is solved in the same way as the fit of all rows.
    """
    if is_sparse_problem(problem, folds[0]):
        solutions = [solve(one, problem, seed=seed) for one in folds]
        return [(own.values, own.vectors) for own in solutions]
    pairs: list[tuple[Float, Float] | None] = [None] * len(folds)
    posed = [] if folds[0].solver is not None else [pose(one, [problem]) for one in folds]
    if posed:
        pairs = fold_vectors(posed, problem.n_components, folds[0].single)
    solved = []
    for place, (sums, pair) in enumerate(zip(folds, pairs, strict=True)):
        least = LEAST_VALUE * float(0.0 if pair is None else pair[0][0])
        if posed and problem.kind == "difference":
            # Along a direction in which no dataset varies, the difference of variances is only a rounding error. This
            # error is relative to the largest variance.
            least = LEAST_VALUE * max(float(part.variances.max()) for part in posed[place].terms)
        if pair is None or not float(pair[0][-1]) > least:
            solution = solve_inside(sums, problem, seed=seed)
            pair = solution.values, solution.vectors
        solved.append(pair)
    return solved


def lifted(sums: Sums, found: Solution) -> tuple[Solution, Float]:
    """Return a solution in the columns of the data, and the signs by which its vectors were multiplied.

    The signs make the largest entry of each vector positive.
    """
    vectors, patterns = found.vectors, found.patterns
    if sums.lift is not None:
        both = sums.lift(concat([vectors, patterns], axis=1))
        vectors, patterns = both[:, : vectors.shape[1]], both[:, vectors.shape[1] :]
        if sums.scaled is not None:
            # `lift` divides each column by its scale, but the columns of a pattern have to be multiplied by their
            # scale.
            patterns = patterns * (sums.scaled**2)[:, None]
    ones = namespace(vectors).ones_like(vectors[0, :])
    signs = namespace(vectors).where(largest_entries(vectors) < 0.0, -ones, ones)
    return replace(found, vectors=vectors * signs, patterns=patterns * signs), signs


def is_sparse_problem(problem: Problem, sums: Sums) -> bool:
    """Return whether components may use only some of the columns."""
    return problem.n_columns is not None and problem.n_columns < sums.dimension


def center_of(problem: Problem, sums: Sums) -> Float:
    """Return the point from which scores are measured, in the coordinates of the moments, without covariates."""
    mean = sums.moments[0].mean
    if problem.center == "background" and len(sums.moments) > 1:
        mean = mixed(problem.weights, [part.mean for part in sums.moments[1:]])
    return mean[: mean.shape[0] - problem.n_covariates]


def solve_path(folds: Sequence[Sums], problems: Sequence[Problem], *, seed: int = 0) -> Float:
    """Return approximate components of each fold for all problems, side by side.

    The problems differ only in shrinkage, α or ε, and are ordered from the least to the most regularised. Vectors are
    in the coordinates of the moments, in an array of shape (n_folds, n, n_problems * d). They are zero if the
    background is singular.
    """
    if folds[0].solver is not None:
        return np.stack([one.solver.path(problems, seed) for one in folds])
    found = path_vectors([pose(one, problems) for one in folds], problems[0].n_components)
    if found is None:
        every = [[one.dropped(solve(one, problem, seed=seed).vectors) for problem in problems] for one in folds]
        found = namespace(every[0][0]).stack([concat(vectors, axis=1) for vectors in every])
    return found


# --- from moments to a pencil ----------------------------------------------------------------------------------------


def adjusted(moments: Moments, n_covariates: int, by: Moments | None = None) -> Moments:
    """Return the moments of the data columns, after the linear effects of the covariates are removed.

    The covariates are the trailing columns. The coefficients are estimated from `by`. If `by` is None, they are
    estimated from `moments`.
    """
    if n_covariates == 0:
        return moments
    size = moments.n_features - n_covariates
    scatter = (by or moments).covariance()
    xp = namespace(scatter)
    slopes = xp.linalg.pinv(scatter[size:, size:]) @ scatter[size:, :size]
    left = moments.mapped(concat([eye(size, scatter), -slopes]))
    if by is not None:
        return left
    # Correct the variance, because estimating the coefficients uses up degrees of freedom.
    free = moments.effective_count / max(moments.effective_count - n_covariates, 1.0)
    return replace(left, scatter=left.scatter * free) if isinstance(left, ScatterMoments) else left


def mixed(weights: Sequence[float], arrays: Sequence[Float]) -> Float:
    """Return the weighted mean of one array for each background. If the arrays are equal, the mean is exact."""
    # An array with little weight can be so large that differences to it have lost the digits of the other arrays.
    first = arrays[int(np.argmax(weights))]
    return first + sum(weight * (part - first) for weight, part in zip(weights, arrays, strict=True))


def column_scale(variances: Sequence[Float], problem: Problem) -> Float:
    """Return the standard deviation of each column. "pooled" gives the target and the backgrounds equal weights."""
    own, *others = variances
    xp = namespace(own)
    back = mixed(problem.weights, others) if others else own
    squares = back if problem.scale == "background" else 0.5 * (own + back)
    squares = xp.where(squares > 0.0, squares, own)
    # Constant columns get the largest scale, because their loadings are rounding errors and have to stay small.
    squares = xp.where(squares > 0.0, squares, xp.max(squares))
    return xp.sqrt(xp.where(squares > 0.0, squares, xp.ones_like(squares)))


def about(moments: Moments, point: Any) -> Moments:
    """Return moments with the scatter about a point instead of the scatter about the mean."""
    step = moments.mean - point
    scatter = moments.total_weight * moments.covariance()
    scatter += moments.total_weight * step[:, None] * step[None, :]
    return ScatterMoments(moments.count, moments.mean, scatter, moments.precision, weights=moments.weights)


def pose(sums: Sums, problems: Sequence[Problem]) -> Posed:
    """Return the pencils ``A u = λ B u`` of problems that differ only in shrinkage, α or ε.

    First, the effects of covariates are removed, columns are scaled, and the scatter of the target is computed about
    the centre that the problem defines.
    """
    one, dimension, scale = problems[0], sums.dimension, None
    parts = [adjusted(part, one.n_covariates) for part in sums.moments]
    if one.scale is not None and sums.scaled is None:
        scale = column_scale([part.variances for part in parts], one)
        parts = [part.mapped(1.0 / scale) for part in parts]
    if one.center == "background" and len(parts) > 1:
        parts[0] = about(parts[0], mixed(one.weights, [part.mean for part in parts[1:]]))
    target, *backgrounds = parts
    pairs = [(weight, part) for weight, part in zip(one.weights, backgrounds, strict=False) if weight > 0.0]
    weights = np.array([weight for weight, _ in pairs])
    terms: list[Any] = [target, *(part for _, part in pairs)]
    first, second = np.zeros((2, len(problems), len(terms)))
    first[:, 0] = 1.0
    ridges, shares = np.ones(len(problems)), np.zeros((len(problems), 0))
    if one.kind == "difference":
        first[:, 1:] = -np.array([[problem.alpha] for problem in problems]) * weights
    elif one.epsilon is not None:
        # KdPCA and KMdPCA (eqs. 19 and 23), with the weights of the backgrounds, which the paper's equation leaves out.
        second[:, 1:] = weights
        ridges = np.array([problem.epsilon for problem in problems])
    elif backgrounds:
        # Without backgrounds, B is the identity: PCA (eq. 1, Remark 1).
        given: list[Any] = [problem.shrinkage for problem in problems]
        if isinstance(given[0], str):
            given = [[own_shrinkage(part, dimension) for part in backgrounds]]
        shares = np.full((len(problems), len(backgrounds)), np.array(given).reshape(len(problems), -1))
        own = shares[:, [weight > 0.0 for weight in one.weights]] * weights
        second[:, 1:] = weights - own
        traces = np.array([part.total_variance / dimension for _, part in pairs])
        spheres = [getattr(part, "spherical", None) for _, part in pairs]
        if any(sphere is not None for sphere in spheres):
            # A private background is shrunk towards `spherical` instead of the identity. After columns are divided by
            # the `scale` of the release, `spherical` has the same variance in all directions, and so has the noise.
            first, second = np.hstack([first, 0.0 * own]), np.hstack([second, own])
            terms, own = [*terms, *spheres], 0.0 * own
        ridges = own @ traces
    if one.smooth is not None:
        terms.append(ScatterMoments(1, 0.0 * target.mean, like(one.smooth.toarray(), target.mean)))
        mean = sum(weight * part.total_variance for weight, part in pairs) / dimension if pairs else 1.0
        first = np.hstack([first, np.zeros((len(problems), 1))])
        second = np.hstack([second, np.full((len(problems), 1), mean)])
    return Posed(terms, first, second, ridges, shares, scale)


def pencil_of(posed: Posed, problem: Problem, place: int = 0) -> Pencil:
    """Return the pencil of one of the problems that were posed together."""
    first, second, size = posed.first[place].tolist(), posed.second[place].tolist(), posed.terms[0].n_features
    a = tuple((weight, part) for weight, part in zip(first, posed.terms, strict=True) if weight)
    # Keep a background even if its coefficient is 0 (shrinkage 1), because its rows still span directions.
    b = () if problem.kind == "difference" else tuple(zip(second, posed.terms, strict=True))[1:]
    return Pencil(Form(size, a), Form(size, b, ridge=float(posed.ridges[place])))


# --- few columns -----------------------------------------------------------------------------------------------------


def rank_columns(patterns: Array, spreads: Array) -> npt.NDArray[np.intp]:
    """Return the columns, ordered by the size of their patterns in units of the background's spread.

    With several components, the best rank of a column over all components is used.

    >>> import numpy as np
    >>> rank_columns(np.array([[3.0, 0.0], [4.0, 1.0], [1.0, 2.0]]), np.array([1.0, 10.0, 1.0]))
    array([0, 2, 1])
    """
    sizes, spreads = np.abs(to_host(patterns)), to_host(spreads)[:, None]
    shown = np.divide(sizes, spreads, out=np.zeros_like(sizes), where=(sizes > 0.0) & (spreads > 0.0))
    ranks = np.argsort(np.argsort(-shown, axis=0, kind="stable"), axis=0)
    return np.lexsort((-shown.max(axis=1), ranks.min(axis=1)))


def _solve_few(sums: Sums, problem: Problem, solver: str, seed: int) -> Solution:
    """Return a solution on few columns. In each step, the columns with the smallest patterns are left out."""
    assert problem.n_columns is not None
    wanted = max(problem.n_columns, problem.n_components)
    chosen = np.arange(sums.dimension)
    some, whole = sums, replace(problem, n_columns=None)
    solution = solve(some, whole, solver=solver, seed=seed)
    while len(chosen) > wanted:
        order = rank_columns(solution.patterns, _spreads(some, problem, solution.shrinkage, solution.scale))
        kept = np.sort(order[: max(int(KEPT_SHARE * len(chosen)), wanted)])
        chosen = chosen[kept]
        some = sums.taken(chosen, problem.n_covariates)
        if problem.smooth is not None:
            whole = replace(whole, smooth=problem.smooth[chosen][:, chosen])
        solution = solve(some, whole, solver=solver, seed=seed)

    def spread_out(vectors: Float) -> Float:
        # Columns that were left out have zeros.
        whole = np.zeros((sums.dimension, vectors.shape[1]))
        whole[chosen] = to_host(vectors)
        return like(whole, vectors)

    scale = None if solution.scale is None else 1.0 + spread_out(solution.scale[:, None] - 1.0)[:, 0]
    vectors, patterns = spread_out(solution.vectors), spread_out(solution.patterns)
    return replace(solution, vectors=vectors, patterns=patterns, scale=scale, columns=chosen)


def _spreads(sums: Sums, problem: Problem, shares: tuple[float, ...], scale: Float | None) -> Float:
    """Return the spread of each column in the units of the data: the square root of the diagonal of B."""
    every = sums.variances or tuple(adjusted(part, problem.n_covariates).variances for part in sums.moments)
    own, *others = every
    xp = namespace(own)
    if not others or problem.kind == "difference":
        return xp.ones_like(own) if scale is None else scale
    if scale is not None:
        others = [part / scale**2 for part in others]
    total = 0.0 * own
    for weight, share, part in zip(problem.weights, shares or (0.0,) * len(others), others, strict=True):
        total = total + weight * ((1.0 - share) * part + share * float(xp.sum(part)) / sums.dimension)
    return xp.sqrt(total) if scale is None else scale * xp.sqrt(total)
