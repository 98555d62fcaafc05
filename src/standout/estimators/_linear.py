"""How the linear estimators come from datasets to components: gather, contrast, solve, and look whether it held."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from standout import contrast
from standout._arrays import Float, is_single
from standout._validation import Batches, check_n_components, check_same_columns
from standout.moments import Kind, Moments, gather, ledoit_wolf
from standout.pencil import Solution, choose_solver, solve

KIND_FOR_SOLVER: dict[str, Kind] = {
    "auto": "auto",
    "dense": "scatter",
    "lanczos": "scatter",
    "root": "root",
    "reduced": "rows",
    "lobpcg": "rows",
}


@dataclass(frozen=True, eq=False)
class LinearFit:
    """What a linear fit found.

    Attributes
    ----------
    target : Moments
    backgrounds : list of Moments
    shrinkage : ndarray of shape (n_backgrounds,)
        The shrinkage of each background.
    solution : Solution
    """

    target: Moments
    backgrounds: list[Moments]
    shrinkage: Float
    solution: Solution


def fit_linear(
    datasets: Sequence[Any],
    *,
    n_components: Any,
    weights: Float,
    shrinkage: float | None,
    solver: str,
    seed: int,
) -> LinearFit:
    """Fit the target, `datasets[0]`, against the backgrounds, the rest.

    The data are read once. They are read again, where they can be, if the solution shows that rounding has cost more
    than half of the digits: single-precision data then in double precision, and data too ill-conditioned for a
    covariance matrix as QR roots.
    """
    names = ["the target", *(f"background {number}" for number in range(1, len(datasets)))]
    streams = any(isinstance(dataset, Batches) for dataset in datasets)
    chosen = solver
    if solver == "auto" and not streams:
        wanted = int(n_components) if isinstance(n_components, int | np.integer) else 1
        n_rows, n_features = sum(dataset.shape[0] for dataset in datasets), datasets[0].shape[1]
        chosen = choose_solver(n_rows, n_features, wanted)

    def attempt(solver: str, single: bool) -> LinearFit:
        kind = KIND_FOR_SOLVER[solver]
        moments = [
            gather(dataset, kind=kind, norms=shrinkage is None and number > 0, single=single, name=name)
            for number, (name, dataset) in enumerate(zip(names, datasets, strict=True))
        ]
        return _contrast_and_solve(moments, names, n_components, weights, shrinkage, solver, seed)

    # Batches cannot be read again: they are multiplied in double precision at once.
    fit = attempt(chosen, single=not streams)
    if streams:
        return fit
    if any(is_single(dataset) for dataset in datasets) and _lost(fit.solution, chosen):
        fit = attempt(chosen, single=False)
    by_matrix = chosen in ("dense", "lanczos")
    if by_matrix and (fit.solution.solver == "root" or (solver == "auto" and not fit.solution.accurate)):
        fit = attempt("root", single=False)
    return fit


def _lost(solution: Solution, chosen: str) -> bool:
    """Tell whether a solution has lost too many digits, or its solver has had to give up."""
    return not solution.accurate or (solution.solver == "root" and chosen != "root")


def _contrast_and_solve(
    moments: list[Moments],
    names: list[str],
    n_components: Any,
    weights: Float,
    shrinkage: float | None,
    solver: str,
    seed: int,
) -> LinearFit:
    target, *backgrounds = moments
    for name, background in zip(names[1:], backgrounds, strict=True):
        check_same_columns(background.n_features, None, name, target.n_features, None, "the target")
    n_directions = sum(dataset.count - 1 for dataset in moments)
    n_components = check_n_components(n_components, target.n_features, n_directions)
    if shrinkage is None:
        shares = np.array([ledoit_wolf(background) for background in backgrounds])
    else:
        shares = np.full(len(backgrounds), shrinkage)
    problem = (
        contrast.discriminative(target, backgrounds, weights, shares) if backgrounds else contrast.principal(target)
    )
    return LinearFit(target, backgrounds, shares, solve(problem, n_components, solver=solver, seed=seed))


def warn_of_trouble(solution: Solution) -> None:
    """Say in one sentence what a singular or badly conditioned background means for the answer."""
    if solution.singular and solution.n_absent:
        text = (
            f"the background covariance is singular: {solution.n_absent} direction(s) in which the target varies do "
            "not occur in the background at all. Their ratio is inf; they come first, ordered by the target's "
            "variance. Shrinkage, for example shrinkage=0.1, gives every direction a finite ratio."
        )
    elif solution.singular:
        text = (
            "the background covariance is singular: some directions occur in no dataset at all (constant or dependent "
            "columns). They are left out. Shrinkage, for example shrinkage=0.1, takes them in."
        )
    elif not solution.accurate:
        text = (
            f"the background covariance is badly conditioned: rounding may have changed a ratio by a share of "
            f"{np.max(solution.rounding):.0e}. Use shrinkage, or solver='root', which loses fewer digits."
        )
    else:
        return
    warnings.warn(text, UserWarning, stacklevel=4)
