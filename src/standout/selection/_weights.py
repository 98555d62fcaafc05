"""How much each of several backgrounds should count: the weights ω of MdPCA and KMdPCA.

All functions work on a *pose*: a function from weights on the simplex to the pencil that these weights pose. Its B must
be linear in the weights there, as in ``contrast.discriminative`` and ``contrast.kernel_discriminative``; linear and
kernel methods then need no code of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

import numpy as np

from standout._arrays import Float
from standout._checks import require_background
from standout._params import check_n_components, check_n_representatives, check_solver
from standout._xp import namespace
from standout.pencil import solve
from standout.selection._representatives import Indices, comparable, representatives
from standout.selection._worst_case import Pose, worst_case_weights

# The most weights on a grid, and the most steps from one background to another.
GRID_POINTS = 66
GRID_STEPS = 20


@dataclass(frozen=True, eq=False)
class BestCase:
    """The background against which the target stands out most.

    Attributes
    ----------
    weights : ndarray of shape (n_backgrounds,)
        1 for that background, 0 for all others.
    value : float
        Sum of the leading ratios against it.
    values : ndarray of shape (n_backgrounds,)
        Sum of the leading ratios against each background alone.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import contrast, moments
    >>> from standout.selection import best_weights
    >>> rng = np.random.default_rng(0)
    >>> target = moments.gather(rng.normal(size=(2000, 3)) * [3, 1, 1])
    >>> backgrounds = [moments.gather(rng.normal(size=(2000, 3)) * scale) for scale in (3, 1)]
    >>> best = best_weights(lambda w: contrast.discriminative(target, backgrounds, w, [0.0, 0.0]), 2)
    >>> best.values.round(1)
    array([1. , 9.7])
    """

    weights: Float
    value: float
    values: Float


@dataclass(frozen=True, eq=False)
class WeightCandidates:
    """A few weights whose views represent the views of all weights.

    Attributes
    ----------
    weights : ndarray of shape (r, n_backgrounds)
        The candidates, those nearest to equal weights first.
    chosen : int
        The candidate that represents the most weights.
    components : ndarray of shape (r, n_components, n_features)
        What each candidate sees, as rows.
    grid : ndarray of shape (g, n_backgrounds)
        All weights that were looked at.
    labels : ndarray of shape (g,)
        The candidate that represents each of them.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import contrast, moments
    >>> from standout.selection import spectral_weights
    >>> rng = np.random.default_rng(0)
    >>> target = moments.gather(rng.normal(size=(2000, 3)) * [3, 1, 1])
    >>> backgrounds = [moments.gather(rng.normal(size=(2000, 3))) for _ in range(2)]
    >>> found = spectral_weights(lambda w: contrast.discriminative(target, backgrounds, w, [0.0, 0.0]), 2, 1)
    >>> found.weights[found.chosen].sum(), len(found.labels) == len(found.grid)
    (np.float64(1.0), True)
    """

    weights: Float
    chosen: int
    components: Float
    grid: Float
    labels: Indices


def best_weights(
    pose: Pose, n_backgrounds: int, n_components: int = 1, *, solver: str = "auto", seed: int = 0
) -> BestCase:
    """Against which background does the target stand out most?

    The paper's second proposal (Remark on ω, ii) is to choose ω together with the components U so that
    ``tr[(UᵀB(ω)U)⁻¹ UᵀAU]`` is largest. For fixed U this is a convex function of ω, for B is linear in ω and the
    inverse of a matrix is convex; and the largest over U of convex functions is convex. A convex function on the
    simplex is largest in a corner: the best weights are always those of a single background, and only the corners
    need to be looked at. For weights that take all backgrounds into account, see `worst_case_weights`.

    Parameters
    ----------
    pose : callable
        From weights to a `Pencil` whose B is linear in them, such as
        ``lambda weights: contrast.discriminative(target, backgrounds, weights, shrinkage)``.
    n_backgrounds : int
    n_components : int, default=1
        How many of the leading ratios are summed.
    solver : {"auto", "dense", "root", "reduced", "lanczos", "lobpcg"}, default="auto"
        See `standout.pencil.choose_solver`.
    seed : int, default=0
        Start of the iterative solvers.

    Returns
    -------
    BestCase
        Of equals, the first. A background that lacks a direction of the target has a value of ``inf``.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import contrast, moments
    >>> from standout.selection import best_weights
    >>> rng = np.random.default_rng(0)
    >>> target = moments.gather(rng.normal(size=(2000, 3)) * [3, 1, 1])
    >>> backgrounds = [moments.gather(rng.normal(size=(2000, 3)) * scale) for scale in (3, 1)]
    >>> best_weights(lambda w: contrast.discriminative(target, backgrounds, w, [0.0, 0.0]), 2).weights
    array([0., 1.])
    """
    require_background(n_backgrounds)
    check_solver(solver)
    corners = np.eye(n_backgrounds)
    n_features = pose(corners[0]).n_features
    n_components = check_n_components(n_components, n_features, n_features)
    solutions = (solve(pose(corner), n_components, solver=solver, seed=seed) for corner in corners)
    values = np.array([float(namespace(solution.values).sum(solution.values)) for solution in solutions])
    best = int(np.argmax(values))
    return BestCase(corners[best], float(values[best]), values)


def spectral_weights(
    pose: Pose,
    n_backgrounds: int,
    n_components: int,
    *,
    n_representatives: int = 3,
    solver: str = "auto",
    seed: int = 0,
) -> WeightCandidates:
    """Which views of the target are there, depending on how the backgrounds are weighted?

    The paper's first proposal (Remark on ω, i): the subspaces of weights all over the simplex are clustered, and one
    of each cluster is returned. The chosen one represents the most weights, so that it depends least on them; of
    equals, the one nearest to equal weights is chosen.

    Parameters
    ----------
    pose : callable
        From weights to a `Pencil` whose B is linear in them, such as
        ``lambda weights: contrast.discriminative(target, backgrounds, weights, shrinkage)``.
    n_backgrounds : int
    n_components : int
        Number of components of each view.
    n_representatives : int, default=3
        The most candidates; there are fewer where fewer views differ.
    solver : {"auto", "dense", "root", "reduced", "lanczos", "lobpcg"}, default="auto"
        See `standout.pencil.choose_solver`.
    seed : int, default=0
        Start of the iterative solvers.

    Returns
    -------
    WeightCandidates

    See Also
    --------
    representatives : How the candidates are found.

    Notes
    -----
    The grid has equal weights, each background alone, and as fine a division in between as 66 points allow: steps of a
    tenth for three backgrounds, of a half for seven to eleven.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import contrast, moments
    >>> from standout.selection import spectral_weights
    >>> rng = np.random.default_rng(0)
    >>> target = moments.gather(rng.normal(size=(2000, 3)) * [4, 5, 0.1])
    >>> backgrounds = [moments.gather(rng.normal(size=(2000, 3)) * scale) for scale in ([1, 9, 1], [9, 1, 1])]
    >>> views = spectral_weights(
    ...     lambda w: contrast.discriminative(target, backgrounds, w, [0.0, 0.0]), 2, 1, n_representatives=2
    ... )
    >>> np.argmax(np.abs(views.components), axis=2).ravel(), views.weights[views.chosen].round(1)
    (array([1, 0]), array([0.2, 0.8]))
    """
    require_background(n_backgrounds)
    check_solver(solver)
    grid = _simplex_grid(n_backgrounds)
    n_features = pose(grid[0]).n_features
    n_components = check_n_components(n_components, n_features, n_features)
    n_representatives = min(check_n_representatives(n_representatives), len(grid))
    views = [solve(pose(weights), n_components, solver=solver, seed=seed).vectors for weights in grid]
    few = representatives(comparable(views), n_representatives)
    # The grid begins with equal weights, so the first of the largest clusters is the one nearest to these.
    chosen = int(np.argmax(few.sizes))
    components = namespace(views[0]).stack([views[index].T for index in few.indices])
    return WeightCandidates(grid[few.indices], chosen, components, grid, few.labels)


def _simplex_grid(n_backgrounds: int) -> Float:
    """Spread weights evenly over the simplex, those nearest to equal weights first."""
    steps = max(
        (m for m in range(1, GRID_STEPS + 1) if comb(m + n_backgrounds - 1, n_backgrounds - 1) <= GRID_POINTS),
        default=1,
    )
    equal = np.full((1, n_backgrounds), 1.0 / n_backgrounds)
    grid = np.array(list(_compositions(steps, n_backgrounds))) / steps
    distances = np.linalg.norm(grid - equal, axis=1).round(9)
    grid = grid[np.argsort(distances, kind="stable")]
    return grid if distances.min() == 0.0 else np.vstack([equal, grid])


def _compositions(total: int, n_parts: int) -> Iterator[tuple[int, ...]]:
    """Give all ways to write a number as an ordered sum."""
    if n_parts == 1:
        yield (total,)
        return
    for first in range(total, -1, -1):
        yield from ((first, *rest) for rest in _compositions(total - first, n_parts - 1))


def choose_weights(rule: str, pose: Pose, n_backgrounds: int, n_components: int, *, solver: str, seed: int) -> Float:
    """Choose the weights of the backgrounds by a rule: "worst-case", "best" or "spectral"."""
    if rule == "worst-case":
        return worst_case_weights(pose, n_backgrounds, solver=solver, seed=seed).weights
    if rule == "best":
        return best_weights(pose, n_backgrounds, n_components, solver=solver, seed=seed).weights
    views = spectral_weights(pose, n_backgrounds, n_components, solver=solver, seed=seed)
    return views.weights[views.chosen]
