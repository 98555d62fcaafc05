"""Which α: the representative views of contrastive PCA, and one of them to begin with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from standout._arrays import Float
from standout.moments import Moments
from standout.pencil import Pencil, Solution, solve, solve_path
from standout.selection._paths import shares_in_span
from standout.selection._representatives import comparable, representatives


@dataclass(frozen=True, eq=False)
class AlphaChoice:
    """The representative α, and what each shows.

    Attributes
    ----------
    alphas : ndarray of shape (r,)
        In ascending order.
    solutions : list of Solution
        What each shows.
    chosen : int
        The one to begin with.
    accurate : bool
        Whether rounding has left enough digits at every α that was looked at.
    """

    alphas: Float
    solutions: list[Solution]
    chosen: int
    accurate: bool

    @property
    def alpha(self) -> float:
        """The α to begin with."""
        return float(self.alphas[self.chosen])

    @property
    def solution(self) -> Solution:
        """What it shows."""
        return self.solutions[self.chosen]


def choose_alpha(
    pose: Callable[[float], Pencil],
    target: Moments,
    backgrounds: list[Moments],
    weights: Float,
    alphas: Float,
    *,
    n_components: int,
    n_representatives: int,
    solver: str,
    seed: int,
) -> AlphaChoice:
    """Find the representative views over a list of α, after Abid et al. (2018).

    The subspaces of all α are clustered by their principal angles, and the medoid of each cluster represents it. To
    begin with, the representative is taken that holds the largest share of the target's variance beyond the share of
    the backgrounds' variance it holds: PCA holds much of both, and a large α little of either.
    """
    if not backgrounds:
        # Nothing is subtracted, whatever α is.
        alphas = alphas[:1]
    if len(alphas) == 1:
        alone = solve(pose(alphas[0]), n_components, solver=solver, seed=seed)
        return AlphaChoice(alphas, [alone], 0, alone.accurate)
    solutions = list(solve_path([pose(alpha) for alpha in alphas], n_components, solver=solver, seed=seed))
    found = representatives(comparable([solution.vectors for solution in solutions]), n_representatives)
    kept = [solutions[index] for index in found.indices]
    shares = np.array([shares_in_span(solution, [target, *backgrounds]) for solution in kept])
    excess = shares[:, 0] - shares[:, 1:] @ weights
    accurate = all(solution.accurate for solution in solutions)
    return AlphaChoice(alphas[found.indices], kept, int(np.argmax(excess)), accurate)
