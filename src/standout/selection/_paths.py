"""Views along a parameter: dPCA from no shrinkage to full, cPCA from no subtraction to much."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from standout import contrast
from standout._arrays import Float
from standout._params import check_increasing, check_n_components, check_solver, check_weights
from standout._xp import column_norms, is_foreign, namespace
from standout.moments import Moments
from standout.pencil import Pencil, Solution, solve_path
from standout.selection._inputs import Given, GivenBackgrounds, gather_all, open_host_datasets

# From the paper's formula to PCA. A ridge of r times the mean variance is a shrinkage of r / (1 + r): equal steps in
# the order of magnitude of the ridge.
_RIDGES = np.geomspace(1e-3, 1e3, 25)
SHRINKAGES: Float = np.concatenate([[0.0], _RIDGES / (1.0 + _RIDGES), [1.0]])
ALPHAS: Float = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 40)])


@dataclass(frozen=True, eq=False)
class ComponentPath:
    """What comes out at each of several values of a parameter.

    Attributes
    ----------
    parameters : ndarray of shape (g,)
        The values of the parameter: shrinkage, or α.
    components : ndarray of shape (g, n_components, n_features)
        The filters at each.
    eigenvalues : ndarray of shape (g, n_components)
        For dPCA the ratio of the target's to the shrunken background variance along each filter, for cPCA the
        difference ``uᵀ(Cxx - α Cyy)u``.
    target_share : ndarray of shape (g,)
        Share of the target's variance that lies in the span of the filters.
    background_share : ndarray of shape (g, n_backgrounds)
        The same of each background.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.selection import shrinkage_path
    >>> rng = np.random.default_rng(0)
    >>> target, background = rng.normal(size=(200, 3)) * [1, 1, 3], rng.normal(size=(200, 3))
    >>> path = shrinkage_path(target, background, shrinkage=[0.0, 0.5, 1.0])
    >>> path.components.shape, path.background_share.shape
    ((3, 2, 3), (3, 1))
    """

    parameters: Float
    components: Float
    eigenvalues: Float
    target_share: Float
    background_share: Float


def shrinkage_path(
    X: Given,
    background: GivenBackgrounds,
    *,
    shrinkage: Any = None,
    n_components: int = 2,
    background_weights: Any = None,
    solver: str = "auto",
) -> ComponentPath:
    """What does dPCA show at each shrinkage, from the paper's formula (0) to PCA (1)?

    The data are read once, and not at all where moments are given.

    Parameters
    ----------
    X : dataset or Moments
        The target.
    background : dataset or Moments, or list or tuple of such
        The backgrounds.
    shrinkage : array-like of shape (g,), default=None
        Numbers in [0, 1], increasing; each is used for all backgrounds. None means 0, 1, and 25 values between whose
        ridges are spaced evenly by order of magnitude.
    n_components : int, default=2
    background_weights : array-like of shape (n_backgrounds,), default=None
        Weight of each background. None means equal weights.
    solver : str, default="auto"
        As in `standout.pencil.solve`.

    Returns
    -------
    ComponentPath

    Examples
    --------
    Without shrinkage the filter is the feature in which the target stands out; with full shrinkage, that of PCA.

    >>> import numpy as np
    >>> from standout.selection import shrinkage_path
    >>> rng = np.random.default_rng(0)
    >>> background = rng.normal(size=(500, 4)) * [10, 1, 1, 1]
    >>> target = rng.normal(size=(500, 4)) * [10, 1, 1, 3]
    >>> path = shrinkage_path(target, background, n_components=1)
    >>> np.abs(path.components[[0, -1], 0]).argmax(axis=1)
    array([3, 0])
    """
    advice = "Give an increasing list of numbers from 0 to 1, or {v.None}."
    shares = SHRINKAGES if shrinkage is None else check_increasing(shrinkage, "shrinkage", advice, 0.0, 1.0)

    def pose(target: Moments, backgrounds: list[Moments], weights: Float, share: float) -> Pencil:
        return contrast.discriminative(target, backgrounds, weights, np.full(len(backgrounds), share))

    return _path(X, background, shares, pose, n_components, background_weights, solver)


def alpha_path(
    X: Given,
    background: GivenBackgrounds,
    *,
    alpha: Any = None,
    n_components: int = 2,
    background_weights: Any = None,
    solver: str = "auto",
) -> ComponentPath:
    """What does contrastive PCA show at each α, from PCA (0) on?

    The data are read once, and not at all where moments are given; each further α costs a small part of that where
    there are many more rows than columns.

    Parameters
    ----------
    X : dataset or Moments
        The target.
    background : dataset or Moments, or list or tuple of such
        The backgrounds.
    alpha : array-like of shape (g,), default=None
        Non-negative numbers, increasing. None means 0 and 40 values from 1e-3 to 1e3.
    n_components : int, default=2
    background_weights : array-like of shape (n_backgrounds,), default=None
        Weight of each background. None means equal weights.
    solver : str, default="auto"
        As in `standout.pencil.solve`.

    Returns
    -------
    ComponentPath

    Examples
    --------
    >>> import numpy as np
    >>> from standout.selection import alpha_path
    >>> rng = np.random.default_rng(0)
    >>> background = rng.normal(size=(500, 4)) * [10, 1, 1, 1]
    >>> target = rng.normal(size=(500, 4)) * [10, 1, 1, 3]
    >>> path = alpha_path(target, background, alpha=[0, 2], n_components=1)
    >>> np.abs(path.components[:, 0]).argmax(axis=1)
    array([0, 3])
    """
    advice = "Give an increasing list of numbers of at least 0, or {v.None}."
    alphas = ALPHAS if alpha is None else check_increasing(alpha, "alpha", advice, 0.0, np.inf)
    check_solver(solver, without=("root",))
    return _path(X, background, alphas, contrast.contrastive, n_components, background_weights, solver)


def _path(
    X: Given,
    background: GivenBackgrounds,
    parameters: Float,
    pose: Callable[[Moments, list[Moments], Float, float], Pencil],
    n_components: Any,
    background_weights: Any,
    solver: str,
) -> ComponentPath:
    check_solver(solver)
    target, *backgrounds = moments = gather_all(open_host_datasets(X, background))
    weights = check_weights(background_weights, len(backgrounds))
    n_components = check_n_components(n_components, target.n_features, sum(part.count - 1 for part in moments))
    pencils = [pose(target, backgrounds, weights, parameter) for parameter in parameters]
    solutions = list(solve_path(pencils, n_components, solver=solver))
    shares = np.array([shares_in_span(solution, moments) for solution in solutions])
    return ComponentPath(
        parameters=parameters,
        components=np.array([solution.vectors.T for solution in solutions]),
        eigenvalues=np.array([solution.values for solution in solutions]),
        target_share=shares[:, 0],
        background_share=shares[:, 1:],
    )


def shares_in_span(solution: Solution, datasets: Sequence[Moments]) -> Float:
    """Give the share of each dataset's variance that lies in the span of the solution's vectors."""
    unit = solution.vectors / column_norms(solution.vectors)
    xp = namespace(unit)
    basis = xp.linalg.qr(unit)[0] if is_foreign(unit) else linalg.orth(unit)
    inside = np.array([float(xp.sum(dataset.variance(basis))) for dataset in datasets])
    totals = np.array([dataset.total_variance for dataset in datasets])
    return np.divide(inside, totals, out=np.zeros_like(inside), where=totals > 0)
