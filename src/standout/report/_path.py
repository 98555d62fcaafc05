"""How the view moves: the scores of the shown rows at many values of shrinkage, α or ε."""

from __future__ import annotations

from functools import reduce
from operator import add

import numpy as np

from standout import contrast
from standout._arrays import Float, product
from standout.estimators import EPSILONS, ridge_scale
from standout.moments import Moments, ScatterMoments, gather
from standout.pencil import solve_path
from standout.report._findings import Numbers, ViewPath
from standout.report._subject import Subject
from standout.report._views import aligned_signs, projector, some_scores
from standout.selection import alpha_path, shrinkage_path

# Steps of the slider between the ends. Each costs a fit of the moments, which takes seconds for thousands of columns.
STEPS = {1500: 17, 3000: 7}
FEWEST_STEPS = 3
# Up to this many kernel coordinates a fit takes no more than a second.
MOST_COORDINATES = 1000


def walk(subject: Subject, shown: list[Numbers], own: Float) -> ViewPath | None:
    """Move along the parameter of the method, if it has one that can be moved at little cost.

    Parameters
    ----------
    subject : Subject
    shown : list of ndarray
        The rows of each dataset that are shown.
    own : ndarray of shape (n, k)
        Their scores along the first one or two components of the fit.

    Returns
    -------
    ViewPath or None
        With the fit's own view among the others.
    """
    if len(subject.rows) == 1:
        return None
    k = own.shape[1]
    if subject.is_kernel:
        walked = _candidates(subject, shown, k) if subject.is_contrastive else _along_epsilon(subject, shown, k)
    elif subject.is_formed:
        walked = _along_alpha(subject, shown, k) if subject.is_contrastive else _along_shrinkage(subject, shown, k)
    else:
        walked = None
    if walked is None:
        return None
    values, scores, eigenvalues = walked
    parameter = "alpha" if subject.is_contrastive else "epsilon" if subject.is_kernel else "shrinkage"
    chosen_value = float(np.atleast_1d(getattr(subject.model, f"{parameter}_")) @ _as_mean(subject, parameter))
    return _with_own(
        parameter, values, scores, eigenvalues, chosen_value, own, float(subject.model.eigenvalues_[0]), len(shown[0])
    )


def _as_mean(subject: Subject, parameter: str) -> Float:
    """Give the weights that make one number of the chosen ones: each background has its own shrinkage."""
    weights: Float = subject.model.weights_ if parameter == "shrinkage" else np.ones(1)
    return weights


def _with_own(
    parameter: str,
    values: Float,
    scores: Float,
    eigenvalues: Float,
    chosen_value: float,
    own: Float,
    own_eigenvalue: float,
    n_target: int,
) -> ViewPath:
    """Put the fit's own view in its place among the others, and give all of them its signs."""
    others = np.abs(values - chosen_value) > 1e-6 * np.maximum(np.abs(values), 1e-3)
    chosen = int(np.searchsorted(values[others], chosen_value))
    views = list(scores[others])
    views.insert(chosen, own)
    for step in (1, -1):
        stop = len(views) if step > 0 else -1
        for index in range(chosen + step, stop, step):
            views[index] = views[index] * aligned_signs(views[index][:n_target], views[index - step][:n_target])
    return ViewPath(
        parameter=parameter,
        values=np.insert(values[others], chosen, chosen_value),
        chosen=chosen,
        scores=np.asarray(views, dtype=np.float32),
        eigenvalues=np.insert(eigenvalues[others], chosen, own_eigenvalue),
    )


Walked = tuple[Float, Float, Float]


def _along_shrinkage(subject: Subject, shown: list[Numbers], k: int) -> Walked:
    """From the plain ratio to PCA."""
    ridges = np.geomspace(1e-3, 1e3, _n_steps(subject))
    values = np.concatenate([ridges / (1.0 + ridges), [1.0]])
    # Without enough background rows the plain ratio is infinite in many directions, and says nothing.
    if subject.degrees > subject.rows[0].shape[1]:
        values = np.concatenate([[0.0], values])
    target, *backgrounds = subject.moments

    def walked(values: Float) -> Walked:
        path = shrinkage_path(
            target, backgrounds, shrinkage=values, n_components=k, background_weights=subject.model.weights_
        )
        return values, _projected(subject, shown, path.components), path.eigenvalues[:, 0]

    try:
        return walked(values)
    except ValueError:
        # Dependent columns can leave the plain ratio fewer directions than are asked for.
        return walked(values[values > 0.0])


def _along_alpha(subject: Subject, shown: list[Numbers], k: int) -> Walked:
    """From PCA to what the backgrounds have least of."""
    values = np.concatenate([[0.0], np.geomspace(1e-2, 1e3, _n_steps(subject))])
    target, *backgrounds = subject.moments
    path = alpha_path(target, backgrounds, alpha=values, n_components=k, background_weights=subject.model.weights_)
    return values, _projected(subject, shown, path.components), path.eigenvalues[:, 0]


def _candidates(subject: Subject, shown: list[Numbers], k: int) -> Walked | None:
    """The representatives that the fit has kept."""
    model = subject.model
    if len(model.alphas_) < 2:
        return None
    filters = [components[:k].T for components in model.candidates_]
    chosen = int(np.argmin(np.abs(model.alphas_ - model.alpha_)))
    # Only the chosen one's eigenvalue is kept by the fit.
    eigenvalues = np.full(len(filters), np.nan)
    eigenvalues[chosen] = model.eigenvalues_[0]
    return model.alphas_, _mapped(subject, shown, filters), eigenvalues


def _along_epsilon(subject: Subject, shown: list[Numbers], k: int) -> Walked | None:
    """From a hardly regularised kernel method to kernel PCA."""
    model, mapping = subject.model, subject.model.feature_map_
    if mapping.n_coordinates > MOST_COORDINATES:
        return None
    moments: list[Moments] = [
        reduce(add, (gather(block, kind="scatter") for block in mapping.blocks(rows))) for rows in subject.rows
    ]
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
    return values, _mapped(subject, shown, filters), np.array([solution.values[0] for solution in solutions])


def _n_steps(subject: Subject) -> int:
    return next((steps for most, steps in STEPS.items() if subject.size <= most), FEWEST_STEPS)


def _projected(subject: Subject, shown: list[Numbers], components: Float) -> Float:
    """Scores of the shown rows along filters (g, k, n_features), as (g, n, k)."""
    g, k, n_features = components.shape
    project = projector(subject.model.mean_, components.reshape(g * k, n_features).T)
    scores = np.concatenate([some_scores(project, rows, part) for rows, part in zip(subject.rows, shown, strict=True)])
    return scores.reshape(-1, g, k).swapaxes(0, 1)


def _mapped(subject: Subject, shown: list[Numbers], filters: list[Float]) -> Float:
    """Scores of the shown rows along filters in kernel coordinates, as (g, n, k)."""
    model, together = subject.model, np.column_stack(filters)
    scores = np.concatenate(
        [
            some_scores(lambda block: model.feature_map_.project(block, model.feature_mean_, together), rows, part)
            for rows, part in zip(subject.rows, shown, strict=True)
        ]
    )
    return scores.reshape(len(scores), len(filters), -1).swapaxes(0, 1)
