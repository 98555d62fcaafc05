"""How the view changes: the scores of the rows that are drawn, at many values of shrinkage, α or ε."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add

import numpy as np

from standout import contrast
from standout._arrays import Float, product
from standout.estimators import EPSILONS, ridge_scale
from standout.features import CoordinateSums, FeatureMap
from standout.moments import Moments, ScatterMoments, gather, project
from standout.pencil import solve_path
from standout.report._findings import ViewPath
from standout.report._fit import Fit
from standout.report._scores import Projection
from standout.selection import alpha_path, shrinkage_path
from standout.sources import Batch

# Steps of the slider between the ends. Each costs a fit of the moments, which takes seconds for thousands of columns.
STEPS = {1500: 17, 3000: 7}
FEWEST_STEPS = 3
# Up to this many kernel coordinates a fit takes no more than a second.
MOST_COORDINATES = 1000


@dataclass(frozen=True, eq=False)
class Path:
    """The views along the parameter of a method, without any rows yet.

    Attributes
    ----------
    parameter : {"shrinkage", "alpha", "epsilon"}
    values : ndarray of shape (g,)
    eigenvalues : ndarray of shape (g,)
        The leading one at each value.
    project : callable
        From rows to their scores in all views, as (n, g * k).
    chosen_value, own_eigenvalue : float
        Those of the fit.
    """

    parameter: str
    values: Float
    eigenvalues: Float
    project: Projection
    chosen_value: float
    own_eigenvalue: float

    def drawn(self, scores: Float, own: Float, n_target: int) -> ViewPath:
        """Draw rows in all views, with the view of the fit among them; all views get its signs.

        Parameters
        ----------
        scores : ndarray of shape (n, g * k)
            What `project` gave for the rows that are drawn: the target's, then each background's.
        own : ndarray of shape (n, k)
            Their scores along the first one or two components of the fit.
        n_target : int
            How many of them are the target's.
        """
        others = np.abs(self.values - self.chosen_value) > 1e-6 * np.maximum(np.abs(self.values), 1e-3)
        chosen = int(np.searchsorted(self.values[others], self.chosen_value))
        views = list(scores.reshape(len(scores), len(self.values), -1).swapaxes(0, 1)[others])
        views.insert(chosen, own)
        for step in (1, -1):
            stop = len(views) if step > 0 else -1
            for index in range(chosen + step, stop, step):
                views[index] = views[index] * aligned_signs(views[index][:n_target], views[index - step][:n_target])
        return ViewPath(
            parameter=self.parameter,
            values=np.insert(self.values[others], chosen, self.chosen_value),
            chosen=chosen,
            scores=np.asarray(views, dtype=np.float32),
            eigenvalues=np.insert(self.eigenvalues[others], chosen, self.own_eigenvalue),
        )


def aligned_signs(scores: Float, reference: Float) -> Float:
    """Give the sign for each column of the scores that makes it agree with the column of the reference."""
    d = min(scores.shape[1], reference.shape[1])
    first, second = scores[:, :d] - scores[:, :d].mean(axis=0), reference[:, :d] - reference[:, :d].mean(axis=0)
    signs = np.ones(scores.shape[1])
    signs[:d] = np.where(np.einsum("ij,ij->j", first, second) < 0.0, -1.0, 1.0)
    return signs


def find_path(fit: Fit, k: int) -> Path | None:
    """Find the first k components along the parameter of the method; None if that would take too long."""
    if not fit.has_background or not fit.is_plain:
        return None
    if fit.is_kernel:
        found = _candidates(fit, k) if fit.is_contrastive else _along_epsilon(fit, k)
    elif fit.is_formed:
        found = _along_alpha(fit, k) if fit.is_contrastive else _along_shrinkage(fit, k)
    else:
        return None
    if found is None:
        return None
    model = fit.model
    parameter = "alpha" if fit.is_contrastive else "epsilon" if fit.is_kernel else "shrinkage"
    # Each background has its own shrinkage: the path has their mean.
    weights: Float = model.weights_ if parameter == "shrinkage" else np.ones(1)
    chosen_value = float(np.atleast_1d(getattr(model, f"{parameter}_")) @ weights)
    return Path(parameter, *found, chosen_value, float(model.eigenvalues_[0]))


Found = tuple[Float, Float, Projection]


def _along_shrinkage(fit: Fit, k: int) -> Found:
    """From the plain ratio to PCA."""
    ridges = np.geomspace(1e-3, 1e3, _n_steps(fit))
    values = np.concatenate([ridges / (1.0 + ridges), [1.0]])
    # Without enough background rows the plain ratio is infinite in many directions.
    if fit.degrees > fit.n_features:
        values = np.concatenate([[0.0], values])
    target, *backgrounds = fit.moments

    def found(values: Float) -> Found:
        path = shrinkage_path(
            target, backgrounds, shrinkage=values, n_components=k, background_weights=fit.model.weights_
        )
        return values, path.eigenvalues[:, 0], _linear(fit, path.components)

    try:
        return found(values)
    except ValueError:
        # Dependent columns can leave fewer directions to the plain ratio than are asked for.
        return found(values[values > 0.0])


def _along_alpha(fit: Fit, k: int) -> Found:
    """From PCA to the directions in which the backgrounds vary least."""
    values = np.concatenate([[0.0], np.geomspace(1e-2, 1e3, _n_steps(fit))])
    target, *backgrounds = fit.moments
    path = alpha_path(target, backgrounds, alpha=values, n_components=k, background_weights=fit.model.weights_)
    return values, path.eigenvalues[:, 0], _linear(fit, path.components)


def _candidates(fit: Fit, k: int) -> Found | None:
    """The representative values of α that the fit has kept."""
    model = fit.model
    if len(model.alphas_) < 2:
        return None
    chosen = int(np.argmin(np.abs(model.alphas_ - model.alpha_)))
    # The fit keeps only the eigenvalue of the chosen one.
    eigenvalues = np.full(len(model.alphas_), np.nan)
    eigenvalues[chosen] = model.eigenvalues_[0]
    return model.alphas_, eigenvalues, _kernel(fit, [components[:k].T for components in model.candidates_])


def _along_epsilon(fit: Fit, k: int) -> Found | None:
    """From a hardly regularised kernel method to kernel PCA."""
    model, mapping = fit.model, fit.model.feature_map_
    if mapping.n_coordinates > MOST_COORDINATES:
        return None
    kept: list[Moments] = [part.moments for part in model.__dict__.get("_sums", []) if isinstance(part, CoordinateSums)]
    moments = kept or [dataset.summed(_CoordinateMoments(mapping)) for dataset in fit.datasets]
    root = None
    if not mapping.plain_ridge:
        scatters = [part for part in moments if isinstance(part, ScatterMoments)]
        root = contrast.total_root(scatters)
        moments = [part.mapped(root) for part in scatters]
    target, *backgrounds = moments
    values = ridge_scale(target, backgrounds, model.weights_) * EPSILONS[::2]
    pencils = [contrast.kernel_discriminative(target, backgrounds, model.weights_, value) for value in values]
    solutions = list(solve_path(pencils, k, solver="dense"))
    filters = [
        solution.vectors if root is None else product(root.T, np.asfortranarray(solution.vectors))
        for solution in solutions
    ]
    return values, np.array([solution.values[0] for solution in solutions]), _kernel(fit, filters)


@dataclass(frozen=True, eq=False)
class _CoordinateMoments:
    """The function that gathers the moments of one batch's kernel coordinates. It can be sent to other processes."""

    mapping: FeatureMap

    def __call__(self, batch: Batch) -> Moments:
        return reduce(add, (gather(block, kind="scatter") for block in self.mapping.blocks(batch.rows)))


def _n_steps(fit: Fit) -> int:
    return next((steps for most, steps in STEPS.items() if fit.size <= most), FEWEST_STEPS)


def _linear(fit: Fit, components: Float) -> Projection:
    """Project on filters (g, k, n_features)."""
    g, k, n_features = components.shape
    return partial(project, mean=fit.model.mean_, filters=components.reshape(g * k, n_features).T)


def _kernel(fit: Fit, filters: Sequence[Float]) -> Projection:
    """Project on filters in kernel coordinates."""
    return partial(fit.model.feature_map_.project, mean=fit.model.feature_mean_, filters=np.column_stack(filters))
