"""The problem as a value, and the only way to an answer: ``solve(moments, problem)``."""

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

# Values of a fold below this share of the largest one are checked.
LEAST_VALUE = 1e-10
# Share of the columns that one step of the search for few columns keeps.
KEPT_SHARE = 2 / 3


@dataclass(frozen=True)
class Problem:
    """The problem that is solved: the paper's problem with every choice that a fit makes.

    Everything that depends on rows (scale, centre, columns, shrinkage by Ledoit and Wolf) is a rule here, computed anew
    from the moments that `solve` receives, so that folds and permutations are the same call with other moments.

    Attributes
    ----------
    n_components : int
        Number of components, d.
    kind : {"ratio", "difference"}
        dPCA maximises a ratio of variances (eqs. 6 and 20), contrastive PCA a difference.
    weights : tuple of float
        ω, one number per background, with sum 1.
    shrinkage : float or "ledoit-wolf"
        s in ``B = Σ ωₖ [(1 - s) Cₖ + s (tr Cₖ / D) I]``. 0 is the paper's formula.
    alpha : float
        α in ``A = Cxx - α Σ ωₖ Cₖ`` of a difference.
    epsilon : float or None
        ε of the kernel methods (eqs. 19 and 23): the ridge ``ε I``. It is the paper's ridge for coordinates that were
        multiplied by a root of their total scatter.
    center : {"own", "background"}
        "own": the target's variance about its mean; "background": its second moments about the backgrounds' mean.
    scale : {None, "pooled", "background"}
        Whether columns are divided by their standard deviation, and which one.
    n_columns : int or None
        Number of columns that components may use.
    smooth : sparse array or None
        γ L, with the Laplacian L of a graph over the columns and a strength γ: ``γ (tr B / D) L`` is added to B.
    n_covariates : int
        Number of trailing columns of the moments that are covariates. Their effect on the others is removed.

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
    """The moments of all datasets of a problem, the target first, and the way from their coordinates to the columns.

    `dimension` is the number of columns. The other fields are for coordinates in the span of wide rows: `lift` and
    `drop` change vectors to the columns and back, `scaled` divided the columns, `some` returns the sums of some
    columns, `variances` are of the columns, `origin` has zero coordinates, `solver` uses products of rows, and `single`
    is whether rows are in single precision.
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
        """Return `Sums` unchanged, and moments of columns as `Sums`."""
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
        # A lifted vector is divided by the scale of the columns, and a point is multiplied with it.
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
        Of the target, then of each background. Without a background, this is PCA (Remark 1).
    problem : Problem
    solver : {"auto", "dense", "iterative"}, default="auto"
    seed : int, default=0
        Start of iterations.

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
    """Solve a problem on all columns; vectors and patterns are in the coordinates of the moments."""
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
    """Return values and vectors of folds without the checks of a solution, which are made for the sums of all rows.

    Vectors are in the coordinates of the moments, or in the columns if they may use only some of these. A fold with a
    singular background is solved in the same way as all rows.
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
            # A direction in which nothing varies has a difference of zero up to rounding.
            least = LEAST_VALUE * max(float(part.variances.max()) for part in posed[place].terms)
        if pair is None or not float(pair[0][-1]) > least:
            solution = solve_inside(sums, problem, seed=seed)
            pair = solution.values, solution.vectors
        solved.append(pair)
    return solved


def lifted(sums: Sums, found: Solution) -> tuple[Solution, Float]:
    """Return a solution in the columns of the data, and the signs that make the largest entry of vectors positive."""
    vectors, patterns = found.vectors, found.patterns
    if sums.lift is not None:
        both = sums.lift(concat([vectors, patterns], axis=1))
        vectors, patterns = both[:, : vectors.shape[1]], both[:, vectors.shape[1] :]
        if sums.scaled is not None:
            # A lifted vector is divided by the scale, and a pattern is multiplied with it.
            patterns = patterns * (sums.scaled**2)[:, None]
    ones = namespace(vectors).ones_like(vectors[0, :])
    signs = namespace(vectors).where(largest_entries(vectors) < 0.0, -ones, ones)
    return replace(found, vectors=vectors * signs, patterns=patterns * signs), signs


def is_sparse_problem(problem: Problem, sums: Sums) -> bool:
    """Tell whether components may use only some of the columns."""
    return problem.n_columns is not None and problem.n_columns < sums.dimension


def center_of(problem: Problem, sums: Sums) -> Float:
    """Return the point from which scores are measured, in the coordinates of the moments, without covariates."""
    mean = sums.moments[0].mean
    if problem.center == "background" and len(sums.moments) > 1:
        mean = mixed(problem.weights, [part.mean for part in sums.moments[1:]])
    return mean[: mean.shape[0] - problem.n_covariates]


def solve_path(folds: Sequence[Sums], problems: Sequence[Problem], *, seed: int = 0) -> Float:
    """Return approximate components of each fold, with all values of a parameter side by side.

    The problems differ only in shrinkage, α or ε, from the least to the most regularised. Vectors are in the
    coordinates of the moments, an array of shape (n_folds, n, n_values * d). They are zero where the background is
    singular.
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
    """Remove the linear effect of the trailing columns on the others, with coefficients from `by` or `moments`."""
    if n_covariates == 0:
        return moments
    size = moments.n_features - n_covariates
    scatter = (by or moments).covariance()
    xp = namespace(scatter)
    slopes = xp.linalg.pinv(scatter[size:, size:]) @ scatter[size:, :size]
    left = moments.mapped(concat([eye(size, scatter), -slopes]))
    if by is not None:
        return left
    # The coefficients use up degrees of freedom.
    free = moments.effective_count / max(moments.effective_count - n_covariates, 1.0)
    return replace(left, scatter=left.scatter * free) if isinstance(left, ScatterMoments) else left


def mixed(weights: Sequence[float], arrays: Sequence[Float]) -> Float:
    """Return the weighted mean of arrays of the backgrounds. The mean of equal arrays is exact."""
    first, *others = arrays
    return first + sum(weight * (part - first) for weight, part in zip(weights[1:], others, strict=True))


def column_scale(variances: Sequence[Float], problem: Problem) -> Float:
    """Return the standard deviation of each column; "pooled" does not depend on row numbers."""
    own, *others = variances
    xp = namespace(own)
    back = mixed(problem.weights, others) if others else own
    squares = back if problem.scale == "background" else 0.5 * (own + back)
    squares = xp.where(squares > 0.0, squares, own)
    # Constant columns get the largest scale, because their loadings are rounding errors and have to stay small.
    squares = xp.where(squares > 0.0, squares, xp.max(squares))
    return xp.sqrt(xp.where(squares > 0.0, squares, xp.ones_like(squares)))


def about(moments: Moments, point: Any) -> Moments:
    """Return moments whose second moments are about a point instead of the mean."""
    step = moments.mean - point
    scatter = moments.total_weight * moments.covariance()
    scatter += moments.total_weight * step[:, None] * step[None, :]
    return ScatterMoments(moments.count, moments.mean, scatter, moments.precision, weights=moments.weights)


def pose(sums: Sums, problems: Sequence[Problem]) -> Posed:
    """Pose the pencils ``A u = λ B u`` of problems that differ in shrinkage, α or ε alone.

    Covariates are removed, columns scaled, and the target's centre is moved.
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
        # KdPCA and KMdPCA (eqs. 19 and 23), with the weights that the paper leaves out of its equation.
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
            # In units of its `scale`, a private release has equal noise along all directions.
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
    # With a shrinkage of 1 the background is kept, because its rows still span directions.
    b = () if problem.kind == "difference" else tuple(zip(second, posed.terms, strict=True))[1:]
    return Pencil(Form(size, a), Form(size, b, ridge=float(posed.ridges[place])))


# --- few columns -----------------------------------------------------------------------------------------------------


def rank_columns(patterns: Array, spreads: Array) -> npt.NDArray[np.intp]:
    """Order columns by their pattern, in units of the background's spread. The best rank over components decides.

    >>> import numpy as np
    >>> rank_columns(np.array([[3.0, 0.0], [4.0, 1.0], [1.0, 2.0]]), np.array([1.0, 10.0, 1.0]))
    array([0, 2, 1])
    """
    sizes, spreads = np.abs(to_host(patterns)), to_host(spreads)[:, None]
    shown = np.divide(sizes, spreads, out=np.zeros_like(sizes), where=(sizes > 0.0) & (spreads > 0.0))
    ranks = np.argsort(np.argsort(-shown, axis=0, kind="stable"), axis=0)
    return np.lexsort((-shown.max(axis=1), ranks.min(axis=1)))


def _solve_few(sums: Sums, problem: Problem, solver: str, seed: int) -> Solution:
    """Leave out the columns with the smallest patterns step by step, and solve the same problem on the others."""
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
    """Return the root of the diagonal of B in the columns of the data."""
    every = sums.variances or tuple(part.variances[: sums.dimension] for part in sums.moments)
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
