"""Rules for the weights of several backgrounds (Remark 7 of the paper)."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy import optimize

from standout._arrays import Float
from standout._xp import namespace, to_host
from standout.problem import Problem, Sums, solve

# Steps between 0 and 1 on the grid of weights, and its largest size.
STEPS, MOST_POINTS = 8, 200
# Groups of similar views among which the spectral rule chooses.
N_GROUPS = 3


def choose_weights(rule: str, sums: Sums, problem: Problem, *, solver: str = "auto", seed: int = 0) -> Problem:
    """Return the problem with the weights of the backgrounds that a rule chooses.

    Parameters
    ----------
    rule : {"worst-case", "joint", "spectral"}
        "worst-case" is the mixture with the smallest leading value, a convex problem for ratios: components stand
        out against every background. "joint" maximises over weights and components, as the paper writes it. Its
        maximum is always at a single background. "spectral" groups the views over a grid of weights by spectral
        clustering, and chooses the middle of the largest group.
    sums : Sums
    problem : Problem
    """
    n_backgrounds = len(sums.moments) - 1

    def leading(weights: Float) -> tuple[float, Float]:
        one = replace(problem, weights=tuple(weights.tolist()), n_components=1, n_columns=None)
        solution = solve(sums, one, solver=solver, seed=seed)
        return float(solution.values[0]), solution.vectors

    if rule == "joint":
        values = [leading(corner)[0] for corner in np.eye(n_backgrounds)]
        chosen = np.eye(n_backgrounds)[int(np.argmax(values))]
    elif rule == "worst-case":
        chosen = _worst_case(leading, n_backgrounds)
    else:
        chosen = _spectral(sums, problem, n_backgrounds, solver, seed)
    return replace(problem, weights=tuple(float(weight) for weight in chosen))


def _worst_case(leading, n_backgrounds: int) -> Float:  # type: ignore[no-untyped-def]
    """Minimise the leading value over the simplex: descent from the best point of a coarse grid."""
    start = min(simplex_grid(n_backgrounds, 4), key=lambda point: leading(point)[0])

    def value(point: Float) -> float:
        weights = np.maximum(point, 0.0)
        # Values may have any size, and may be negative for differences.
        return leading(weights / weights.sum())[0] / size

    size = abs(leading(start)[0]) or 1.0
    found = optimize.minimize(
        value,
        start,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * n_backgrounds,
        constraints={"type": "eq", "fun": lambda point: point.sum() - 1.0},
        options={"maxiter": 100, "ftol": 1e-10},
    )
    best = np.maximum(found.x, 0.0) if value(found.x) <= value(start) else start
    best[best < 1e-9] = 0.0
    chosen: Float = best / best.sum()
    return chosen


def _spectral(sums: Sums, problem: Problem, n_backgrounds: int, solver: str, seed: int) -> Float:
    """Return the weights in the middle of the largest group of similar views."""
    from sklearn.cluster import SpectralClustering

    points = simplex_grid(n_backgrounds, STEPS)
    bases = []
    for point in points:
        one = replace(problem, weights=tuple(point.tolist()), n_columns=None)
        vectors = sums.dropped(solve(sums, one, solver=solver, seed=seed).vectors)
        bases.append(to_host(namespace(vectors).linalg.qr(vectors)[0]))
    # The product of the cosines of the principal angles.
    affinity = np.array([[abs(np.linalg.det(one.T @ other)) for other in bases] for one in bases])
    n_groups = min(N_GROUPS, len(points) - 1)
    if n_groups < 2 or affinity.min() > 0.999:
        groups = np.zeros(len(points), dtype=int)
    else:
        clusters = SpectralClustering(n_groups, affinity="precomputed", random_state=seed, assign_labels="kmeans")
        groups = clusters.fit_predict(affinity + 1e-12)
    largest = int(np.argmax(np.bincount(groups)))
    members = np.flatnonzero(groups == largest)
    middle = members[int(np.argmax(affinity[np.ix_(members, members)].sum(axis=1)))]
    return points[middle]


def simplex_grid(n_backgrounds: int, steps: int) -> list[Float]:
    """Return the points of the simplex whose coordinates are multiples of a step."""
    while True:
        cuts = list(combinations(range(steps + n_backgrounds - 1), n_backgrounds - 1))
        if len(cuts) <= MOST_POINTS or steps == 1:
            break
        steps -= 1
    edges = np.array([(-1, *cut, steps + n_backgrounds - 1) for cut in cuts])
    return list((np.diff(edges, axis=1) - 1) / steps)
