"""Fit a method to one dataset, time it, and judge what it shows by the labels."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.cluster import KMeans

from experiments._record import CLUSTER_SCATTER, ERROR, SCATTER, Method
from standout.datasets import Contrast
from standout.metrics import clustering_error, scatter_ratio

# What the paper's figures show; run times are those of a fit of as many components.
SHOWN = 2
# A fit quicker than this is timed five times, and the quickest counts: others waited for something, or for another
# process.
QUICK = 0.1

Figures = dict[str, dict[int, float]]


@dataclass(frozen=True, eq=False)
class Measurement:
    """One method on one dataset.

    Attributes
    ----------
    scores : ndarray of shape (m, 2)
    figures : dict
        Quantity, then number of components, then value.
    representatives : dict
        α to scores and figures, for each α that represents a list that was searched.
    seconds : float
        Time of a fit of two components.
    facts : dict
        What the fit chose.
    warnings : list of str
    """

    scores: npt.NDArray[Any]
    figures: Figures
    representatives: dict[float, tuple[npt.NDArray[Any], Figures]]
    seconds: float
    facts: dict[str, Any]
    warnings: list[str]


def measure(method: Method, contrast: Contrast, seed: int, dimensions: tuple[int, ...]) -> Measurement:
    """Fit and time a method, and judge its clusters at each number of components that the data allow."""
    background = method.against(contrast)
    largest = _most_components(contrast, background)
    n_components = max((d for d in dimensions if d <= largest), default=SHOWN)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = clone(method.estimator).set_params(n_components=SHOWN, random_state=seed)
        seconds = _time(model, contrast, background)
        # α is chosen for the two components that are shown, and kept for more: a list is searched once.
        alphas = [float(alpha) for alpha in getattr(model, "alphas_", ())]
        searched = {"alpha": model.alpha_} if len(alphas) > 1 else {}
        scores = _scores(model, contrast, background, n_components, searched)
        representatives = {}
        for alpha in alphas if len(alphas) > 1 else []:
            view = _scores(model, contrast, background, n_components, {"alpha": alpha})
            representatives[alpha] = (view[:, :SHOWN], _figures(view, contrast.labels, seed, dimensions))
    return Measurement(
        scores=scores[:, :SHOWN],
        figures=_figures(scores, contrast.labels, seed, dimensions),
        representatives=representatives,
        seconds=seconds,
        facts=_facts(model, searched=len(alphas) > 1, alone=background is None),
        warnings=list(dict.fromkeys(str(warning.message) for warning in caught)),
    )


def _time(model: Any, contrast: Contrast, background: Any) -> float:
    """Fit a model, and give the time that it takes."""
    seconds: list[float] = []
    while not seconds or (seconds[0] < QUICK and len(seconds) < 5):
        start = time.perf_counter()
        model.fit(contrast.target, background=background)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _facts(model: Any, *, searched: bool, alone: bool) -> dict[str, Any]:
    """Give the eigenvalues, and what the fit chose by itself."""
    facts = {"eigenvalues": model.eigenvalues_.tolist()}
    if searched:
        facts |= {"α": model.alpha_, "representative α": model.alphas_.tolist()}
    for name, fitted in (("shrinkage", "shrinkage_"), ("epsilon", "epsilon_")):
        if isinstance(getattr(model, name, None), str) and not alone:
            facts[name] = np.asarray(getattr(model, fitted)).tolist()
    return facts


def _scores(
    model: Any, contrast: Contrast, background: Any, n_components: int, changes: dict[str, float]
) -> npt.NDArray[Any]:
    """Give the target's scores, fitted again where more components or another α are wanted."""
    if n_components != SHOWN or changes:
        model = clone(model).set_params(n_components=n_components, **changes)
        model.fit(contrast.target, background=background)
    scores: npt.NDArray[Any] = model.transform(contrast.target)
    return scores


def _figures(scores: npt.NDArray[Any], labels: npt.NDArray[Any], seed: int, dimensions: tuple[int, ...]) -> Figures:
    figures: Figures = {ERROR: {}, SCATTER: {}, CLUSTER_SCATTER: {}}
    for d in dimensions:
        if d <= scores.shape[1]:
            some = scores[:, :d]
            clusters = KMeans(n_clusters=2, n_init=10, random_state=seed).fit_predict(some)
            figures[ERROR][d] = clustering_error(some, labels, random_state=seed)
            figures[SCATTER][d] = scatter_ratio(some, labels)
            figures[CLUSTER_SCATTER][d] = scatter_ratio(some, clusters)
    return figures


def _most_components(contrast: Contrast, background: Any) -> int:
    """Count the directions that the centred rows of all datasets span at most."""
    backgrounds = background if isinstance(background, list) else [] if background is None else [background]
    n_directions = sum(len(rows) - 1 for rows in (contrast.target, *backgrounds))
    return min(n_directions, int(contrast.target.shape[1]))
