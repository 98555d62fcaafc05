"""Which shrinkage shows groups, and which ridge ε of a kernel method does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from standout import contrast
from standout._arrays import Float
from standout._xp import column_norms, concat
from standout.moments import Moments, project
from standout.pencil import Pencil, solve_path
from standout.selection._groups import GroupSearch, rows_to_look_at, search_groups
from standout.selection._paths import SHRINKAGES


def search_shrinkage(
    dataset: Any, target: Moments, backgrounds: list[Moments], weights: Float, *, solver: str, seed: int
) -> GroupSearch:
    """Find the shrinkage at which the first score of the target shows groups most clearly.

    The filters of all shrinkages come from the moments; the target's rows are read once for all scores.
    """

    def pose(share: float) -> Pencil:
        return contrast.discriminative(target, backgrounds, weights, np.full(len(backgrounds), share))

    def scores(filters: Float) -> Float:
        return project(rows_to_look_at(dataset, seed), target.mean, filters)

    return search_path(SHRINKAGES, pose, scores, solver=solver, seed=seed)


def search_path(
    parameters: Float,
    pose: Callable[[float], Pencil],
    scores: Callable[[Float], Float],
    *,
    solver: str,
    seed: int,
) -> GroupSearch:
    """Find the value of a parameter at which the first score shows groups most clearly.

    `pose` gives the pencil at a value, `scores` the target's scores along the leading vectors of all values at once.
    """
    path = solve_path([pose(float(parameter)) for parameter in parameters], 1, solver=solver, seed=seed)
    filters = concat([solution.vectors[:, :1] for solution in path], axis=1)
    # Filters of very different length would lose digits in nothing but the scores of the longest.
    filters /= column_norms(filters)
    return search_groups(parameters, scores(filters))
