"""Rules for the weights of several backgrounds (Remark 7 of the paper)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np
from scipy import optimize

from standout._arrays import Float
from standout._xp import to_host
from standout.pencil import Solution
from standout.problem import Problem, Sums, solve

# Number of steps between 0 and 1 on the grid of weights, and maximum number of its points.
STEPS, MOST_POINTS = 8, 200
# Number of groups of similar views in the rule "spectral".
N_GROUPS = 3


def choose_weights(rule: str, sums: Sums, problem: Problem, *, solver: str = "auto", seed: int = 0) -> Problem:
    """Return the problem with the weights of the backgrounds that a rule chooses.

    Parameters
    ----------
    rule : {"worst-case", "joint", "spectral"}
        "worst-case" chooses the mixture with the smallest leading value, so that components stand out against every
        background. For ratios, this is a convex problem. "joint" maximises the leading value over weights and
        components, as in the paper. Its maximum is always at a single background. "spectral" solves the problem at
        each point of a grid of weights, groups the solutions (views) by spectral clustering, and chooses the weights in
        the middle of the largest group.
    sums : Sums
    problem : Problem
    """
    n_backgrounds = len(sums.moments) - 1

    def solved(weights: Float, n_components: int) -> Solution:
        one = replace(problem, weights=tuple(weights.tolist()), n_components=n_components, n_columns=None)
        return solve(sums, one, solver=solver, seed=seed)

    def leading(weights: Float) -> float:
        return float(solved(weights, 1).values[0])

    if rule == "joint":
        chosen = max(np.eye(n_backgrounds), key=leading)
    elif rule == "worst-case":
        chosen = _worst_case(leading, n_backgrounds)
    else:
        points = simplex_grid(n_backgrounds, STEPS)
        found = [sums.dropped(solved(point, problem.n_components).vectors) for point in points]
        chosen = points[_middle([np.linalg.qr(to_host(vectors))[0] for vectors in found], seed)]
    return replace(problem, weights=tuple(chosen.tolist()))


def _worst_case(leading: Callable[[Float], float], n_backgrounds: int) -> Float:
    """Return the weights with the smallest leading value, by descent from the best point of a coarse grid."""
    start = min(simplex_grid(n_backgrounds, 4), key=leading)

    def value(point: Float) -> float:
        weights = np.maximum(point, 0.0)
        # Divide by the size of the values, because the tolerance of SLSQP is absolute. The size is an absolute value,
        # because differences may be negative.
        return leading(weights / weights.sum()) / size

    size = abs(leading(start)) or 1.0
    found = optimize.minimize(
        value,
        start,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * n_backgrounds,
        constraints={"type": "eq", "fun": lambda point: point.sum() - 1.0},
        options={"maxiter": 100, "ftol": 1e-10},
    )
    best = found.x if value(found.x) <= value(start) else start
    best = np.where(best < 1e-9, 0.0, best)
    return np.asarray(best / best.sum())


def _middle(bases: list[Float], seed: int) -> int:
    """Return the index of the basis in the middle of the largest group of similar bases."""
    from sklearn.cluster import SpectralClustering

    # The similarity of two bases is the product of the cosines of their principal angles.
    cosines = [[abs(np.linalg.det(one.T @ other)) for other in bases] for one in bases]
    # Components that are out of range have the similarity NaN. It becomes 0.
    affinity = np.nan_to_num(cosines)
    n_groups, groups = min(N_GROUPS, len(bases) - 1), np.zeros(len(bases), dtype=int)
    if n_groups > 1 and affinity.min() <= 0.999:
        clusters = SpectralClustering(n_groups, affinity="precomputed", random_state=seed, assign_labels="kmeans")
        groups = clusters.fit_predict(affinity + 1e-12)
    members = np.flatnonzero(groups == np.argmax(np.bincount(groups)))
    return int(members[np.argmax(affinity[np.ix_(members, members)].sum(axis=1))])


def simplex_grid(n_backgrounds: int, steps: int) -> list[Float]:
    """Return a grid of weights that sum to 1 and are multiples of a step. Many backgrounds have a larger step."""
    while steps > 1 and comb(steps + n_backgrounds - 1, n_backgrounds - 1) > MOST_POINTS:
        steps -= 1
    cuts = combinations(range(steps + n_backgrounds - 1), n_backgrounds - 1)
    edges = np.array([(-1, *cut, steps + n_backgrounds - 1) for cut in cuts])
    return list((np.diff(edges, axis=1) - 1) / steps)
