"""The held-out ratio: components are found without the rows of a fold, and applied to these rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

from standout._arrays import Array, Float, Rows, product
from standout._xp import column_norms, column_products, concat, like, namespace, take, to_host
from standout.moments import FoldPattern, Moments, project
from standout.problem import Problem, Sums, adjusted, center_of, is_sparse_problem, mixed, solve_folds
from standout.selection._data import Data, Folds, Places, together

# Held-out variances below these shares are only rounding errors. LEAST_HELD is a share of the target's variance in the
# other folds. LEAST_BACKGROUND is the smallest ratio of background to target, and of target to background.
LEAST_HELD, LEAST_BACKGROUND = 1e-9, 1e-12
# The components of several folds are multiplied with the rows together, up to this number of components.
MOST_TOGETHER = 20


def log_ratio(own: Float, against: Float, fitted: Float) -> Float:
    """Return the logarithm of the ratio of two variances; NaN if one of the variances is only a rounding error."""
    usable = (own > 0.0) & (own > LEAST_HELD * fitted) & (against > LEAST_BACKGROUND * own)
    usable &= own > LEAST_BACKGROUND * against
    logs: Float = np.log(np.divide(own, against, out=np.full(own.shape, np.nan), where=usable))
    return logs


# --- variances of held-out rows --------------------------------------------------------------------------------------


class HeldVariances(NamedTuple):
    """Second moments of the rows of each fold, along vectors that were found without this fold.

    Attributes
    ----------
    target : ndarray of shape (n_folds, d)
        Mean square of the target's scores. The scores are measured from `centres` and multiplied by `factors`.
    backgrounds : ndarray of shape (n_folds, n_backgrounds, d)
        Mean square of the scores of each background, measured in the same way.
    steps : ndarray of shape (n_folds, n_datasets, d)
        Mean score of the rows of each dataset, measured from `centres` and multiplied by `factors`.
    apart : ndarray of shape (n_folds, d)
        Mean score of the target's rows in the fold, minus the mean score of the backgrounds in the other folds.
    fitted : ndarray of shape (n_folds, d)
        Variance of the target's scores in the other folds.
    factors : ndarray of shape (n_folds, n_datasets)
        Scores are multiplied by these factors, because their centre is estimated.
    centres : array of shape (n_folds, n_datasets, n_features)
        The point from which the scores of each dataset are measured.
    logs : ndarray of shape (n_folds, d)
        The logarithm of the held-out ratio; NaN if a variance is only rounding.
    """

    target: Float
    backgrounds: Float
    steps: Float
    apart: Float
    fitted: Float
    factors: Float
    centres: Float
    logs: Float


def held_variances(
    problem: Problem, trains: Sequence[Sums], tests: Sequence[Sequence[Moments]], vectors: Float, subjects: bool = False
) -> HeldVariances:
    """Return the second moments of held-out rows along the vectors of each fold.

    The vectors of a fold are in the coordinates of its sums in `trains`. Rows are centred at the mean of their own
    fold, because an outlying row can move the mean of the other folds. If folds have whole subjects, rows are centred
    at the mean of the other folds, because the mean of their own fold would hide differences between subjects.
    """
    xp, q, fitted = namespace(vectors), problem.n_covariates, [train.moments for train in trains]
    if q:
        pairs = zip(tests, fitted, strict=True)
        tests = [[adjusted(part, q, by=own) for part, own in zip(*pair, strict=True)] for pair in pairs]
        fitted = [tuple(adjusted(part, q) for part in parts) for parts in fitted]
    counts = np.array([[part.effective_count for part in parts] for parts in (fitted if subjects else tests)])
    # Subtracting the mean of n other rows makes the variance larger by the factor 1 + 1/n. Subtracting the mean of the
    # same n rows makes it smaller by the factor 1 - 1/n. The limit 0.1 is for weights that leave hardly more than one
    # effective row.
    factors = 1.0 / np.sqrt(1.0 + 1.0 / counts if subjects else np.maximum(1.0 - 1.0 / counts, 0.1))
    n_folds, n_datasets = counts.shape
    means, others = (
        xp.reshape(xp.stack([part.mean for parts in every for part in parts]), (n_folds, n_datasets, -1))
        for every in (tests, fitted)
    )
    middle = mixed(problem.weights, [others[:, place] for place in range(1, n_datasets)])[:, None]
    centres = others if subjects else means
    if problem.center == "background":
        centres = concat([middle, centres[:, 1:]], axis=1)
        factors[:, 0] = 1.0
    steps = to_host(concat([means - centres, means[:, :1] - middle], axis=1) @ vectors)
    every = zip(tests, fitted, vectors, strict=True)
    along = [part.variance(own) for test, fit, own in every for part in (*test, fit[0])]
    spreads = np.reshape(to_host(xp.stack(along)), steps.shape)
    squares = (spreads[:, :-1] + steps[:, :-1] ** 2) * factors[:, :, None] ** 2
    against = problem.weights @ squares[:, 1:]
    logs = log_ratio(squares[:, 0], against, spreads[:, -1])
    own_steps = steps[:, :-1] * factors[:, :, None]
    return HeldVariances(squares[:, 0], squares[:, 1:], own_steps, steps[:, -1], spreads[:, -1], factors, centres, logs)


# Correlations that differ by less than this are ties.
TIED = 1e-6


# --- the held-out ratio ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class HeldOut:
    """How well do the components of a fit separate held-out rows?

    Each fold is left out in turn. Components are found on the other folds, matched to the components of the fit in
    order and sign, and applied to the rows of the fold. The ratio is the variance of the target's scores in all folds,
    divided by the weighted variance of the backgrounds' scores. With ``center="background"``, the mean square of the
    target's scores replaces their variance.

    Attributes
    ----------
    ratio, spread, shift : ndarray of shape (d,)
        The ratio, the variance of the target's scores, and the squared distance of the means. All three are in units of
        the backgrounds' variance. They are NaN if a variance is only rounding.
    log_error : ndarray of shape (d,)
        Standard error of the logarithm of the ratio, by a jackknife over the folds.
    spread_error, shift_error : ndarray of shape (d,)
        Standard errors of `spread` and `shift`.
    unit : ndarray of shape (d,)
        Standard deviation of the backgrounds' held-out scores. `vectors` and `offsets` are already divided by it.
    vectors : array of shape (n_folds, n_features, d)
        The components found without each fold.
    offsets : ndarray of shape (n_datasets, n_folds, d)
        Score of the centre of each dataset and fold, measured from the mean of the fit.
    factors : ndarray of shape (n_datasets, n_folds)
        Scores are multiplied by these factors, because their centre is estimated.
    folds : FoldPattern, Places or list of ndarray
        The map from the number of a row to its fold.
    slopes : list of list of array of shape (n_covariates, d), or None
        Change of the scores per unit of each covariate, for each dataset and fold.
    flat : str
        The dataset that does not vary along a component when a fold is left out, so that the component is arbitrary;
        empty if there is none.
    """

    ratio: Float
    log_error: Float
    spread: Float
    spread_error: Float
    shift: Float
    shift_error: Float
    unit: Float
    vectors: Float
    offsets: Float
    factors: Float
    folds: Folds | Places
    slopes: list[list[Float]] | None = None
    flat: str = ""

    def scores(self, rows: Rows, numbers: Any, dataset: int, mean: Any, covariates: Float | None = None) -> Float:
        """Return the scores of fitted rows. Each row is scored along the components that were found without its fold.

        `numbers` are the positions of the rows in the dataset, and `mean` is the mean of the fit.
        """
        numbers, folds = np.asarray(numbers), self.folds
        if isinstance(folds, FoldPattern):
            own = folds.of(numbers)
        else:
            own = folds.of(dataset, numbers) if isinstance(folds, Places) else folds[dataset][numbers]
        n_folds, _, width = self.vectors.shape
        found = np.empty((len(own), width))
        # With few components, multiplying rows with the vectors of several folds is faster than copying rows by fold.
        step = max(MOST_TOGETHER // width, 1)
        for first in (step * np.unique(own // step)).tolist():
            folds_of_group = range(first, min(first + step, n_folds))
            chosen = slice(None) if step >= n_folds else np.flatnonzero(own // step == first // step)
            vectors = concat([self.vectors[fold, ...] for fold in folds_of_group], axis=1)
            scores = to_host(project(take(rows, chosen), mean, vectors)).reshape((-1, len(folds_of_group), width))
            found[chosen] = scores[np.arange(len(scores)), own[chosen] - first]
        found -= self.offsets[dataset, own]
        if self.slopes is not None and covariates is not None:
            for fold in np.unique(own).tolist():
                found[own == fold] -= covariates[own == fold] @ self.slopes[dataset][fold]
        return found * self.factors[dataset, own][:, None]

    def taken(self, order: Any) -> HeldOut:
        """Return the same results with the components in another order."""
        numbers = ("ratio", "log_error", "spread", "spread_error", "shift", "shift_error", "unit")
        return replace(
            self,
            **{name: getattr(self, name)[order] for name in numbers},
            vectors=take(self.vectors, order, axis=2),
            offsets=self.offsets[:, :, order],
            slopes=None if self.slopes is None else [[part[:, order] for part in own] for own in self.slopes],
        )


def judge(problem: Problem, data: Data, folds: Folds | Places, inner: Float, *, seed: int = 0) -> HeldOut:
    """Return the results of a fit on held-out rows.

    `inner` has the components of the fit, in the coordinates of ``data.sums(problem)``.
    """
    whole = data.sums(problem)
    target = adjusted(whole.moments[0], problem.n_covariates)
    images, centre = target.apply(inner), center_of(problem, whole)
    # If columns are scaled, the coordinates of wide rows depend on the fold.
    moved = whole.lift is not None and problem.scale is not None
    few = problem.n_columns is not None and is_sparse_problem(problem, whole)
    difference, flat = problem.kind == "difference", ""
    vectors, held, offsets, counts, slopes, tops = [], [], [], [], [], []
    for folds_of_group, trains in together(data, problem):
        tests = [data.held_out(problem, fold) for fold in folds_of_group]
        pairs = solve_folds(trains, problem, seed)
        found: Any = [vectors for _, vectors in pairs]
        inside: Any = found
        if few:
            inside = [train.dropped(part) for train, part in zip(trains, found, strict=True)]
        elif moved:
            found = [train.lifted(part) for train, part in zip(trains, inside, strict=True)]
        within = [whole.dropped(part) for part in found] if few or moved else inside
        orders, factors, theirs = aligned(target, inner, images, within)
        values = np.take_along_axis(np.array([to_host(values) for values, _ in pairs]), orders, axis=1)
        endless = np.isinf(values)
        tops.append(np.abs(values).max(axis=1, keepdims=True))
        if endless.any():
            # If the background does not vary along a vector, scale the vector to the target's variance in the fit.
            own, flat = to_host(target.variance(inner)), "the background"
            factors = factors * np.sqrt(np.where(endless & (theirs > 0.0), own / theirs, 1.0))
        # A difference is treated as zero if it is tiny compared with the largest difference of the fold.
        elif np.any(np.abs(values) < LEAST_BACKGROUND * np.maximum(theirs, difference * tops[-1])):
            flat = flat or "the target"
        inside, found = (_arranged(parts, orders, factors) for parts in (inside, found))
        held.append(held_variances(problem, trains, tests, inside, data.subjects))
        vectors += list(found)
        if moved:
            origin: Any = trains[0].origin
            away = held[-1].centres @ inside - ((whole.point(centre) - origin) @ found)[:, None]
        else:
            # Subtract the points before multiplying: the product of a point far from zero would have a large error.
            away = (held[-1].centres - centre) @ inside
        offsets.append(to_host(away))
        counts += [[part.total_weight for part in test] for test in tests]
        if problem.n_covariates:
            every = zip(trains, inside, strict=True)
            slopes += [[_slopes(part, problem.n_covariates, own) for part in train.moments] for train, own in every]
    if not few and not moved and whole.lift is not None:
        # Lift the vectors of all folds in one pass over the rows.
        lifted, width = whole.lift(concat(vectors, axis=1)), inner.shape[1]
        vectors = [lifted[:, fold * width : (fold + 1) * width] for fold in range(data.n_folds)]
    if np.min(np.concatenate(tops)) < LEAST_BACKGROUND * np.max(np.concatenate(tops)):
        flat = flat or "the target"
    ratios = pooled(problem, held, np.array(counts).T)
    unit = ratios["unit"]
    return HeldOut(
        **ratios,
        vectors=namespace(vectors[0]).stack([part / like(unit, part) for part in vectors]),
        offsets=np.swapaxes(np.concatenate(offsets), 0, 1) / unit,
        factors=np.concatenate([part.factors for part in held]).T,
        folds=folds,
        slopes=None if not slopes else [[part / unit for part in own] for own in zip(*slopes, strict=True)],
        flat=flat,
    )


def _arranged(folds: Sequence[Float], orders: Array, factors: Float) -> Float:
    """Return the vectors of each fold, put in the given order and multiplied by the given factors."""
    every = zip(folds, orders, factors, strict=True)
    return namespace(folds[0]).stack([take(part, order, axis=1) * like(by, part) for part, order, by in every])


def _slopes(moments: Moments, q: int, inside: Float) -> Float:
    """Return the change of the scores per unit of each covariate (regression coefficients)."""
    covariance = to_host(moments.covariance())
    size = covariance.shape[0] - q
    return np.linalg.pinv(covariance[size:, size:]) @ covariance[size:, :size] @ to_host(inside)


def aligned(target: Moments, reference: Float, images: Float, folds: Sequence[Float]) -> tuple[Array, Float, Float]:
    """Return the order and the signs that match the components of each fold to the reference components.

    Also return the target's variances along the matched components. Components are matched by the correlation of their
    scores in the target, which does not depend on units. Components with equal correlations, for example if all rows
    lie on one line, are matched by the angles between the vectors. `images` is the target's covariance times the
    reference.
    """
    n_folds, width = len(folds), reference.shape[1]
    every = concat(folds, axis=1)
    theirs = to_host(target.variance(every))
    own = np.sqrt(np.maximum(to_host(column_products(images, reference)), 0.0))
    sizes = own[:, None] * np.sqrt(theirs)
    both = to_host(product(images.T, every))
    both = np.divide(both, sizes, out=np.zeros_like(both), where=sizes > 0.0)
    lengths = to_host(column_norms(reference))[:, None] * to_host(column_norms(every))
    angles = np.divide(to_host(product(reference.T, every)), lengths, out=np.zeros_like(both), where=lengths > 0.0)
    # A correlation of NaN is treated as 0: no match.
    costs = -np.fmax(np.minimum(np.abs(both), 1.0), 0.0) - TIED * np.abs(angles)
    orders = [optimize.linear_sum_assignment(part)[1] for part in np.split(costs, n_folds, axis=1)]
    places = np.array(orders) + width * np.arange(n_folds)[:, None]
    signs = np.where(both[np.arange(width), places] < 0, -1.0, 1.0)
    return np.array(orders), signs, theirs[places]


def pooled(problem: Problem, held: Sequence[HeldVariances], counts: Float) -> dict[str, Float]:
    """Return fields of `HeldOut` from the pooled second moments of all folds, with jackknife errors over the folds.

    `counts`, of shape (n_datasets, n_folds), are the sums of the weights of the rows of each dataset in each fold.
    """
    n_folds = counts.shape[1]
    target, backgrounds, steps, apart, fitted = map(np.concatenate, list(zip(*held, strict=True))[:5])
    # The first entry of `kept` uses all folds. Each further entry leaves one fold out.
    kept = np.vstack([np.ones(n_folds), 1.0 - np.eye(n_folds)]) * counts[:, None, :]
    shares = kept / kept.sum(axis=2, keepdims=True)
    means = np.einsum("ksf,fkd->skd", shares, steps)
    square = shares[0] @ target
    spread, shift = square - means[:, 0] ** 2, (shares[0] @ apart) ** 2
    against = np.einsum("k,ksf,fkd->sd", problem.weights, shares[1:], backgrounds)
    against -= np.einsum("k,skd->sd", problem.weights, means[:, 1:] ** 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = log_ratio(square if problem.center == "background" else spread, against, fitted.mean(axis=0))
        every = np.stack([logs, spread / against, shift / against])
        every[:, :, ~np.isfinite(logs[0])] = np.nan
        without = every[:, 1:] - every[:, 1:].mean(axis=1, keepdims=True)
        errors = np.sqrt((n_folds - 1.0) / n_folds * np.sum(without**2, axis=1))
        unit = np.where(np.isfinite(logs[0]) & (against[0] > 0.0), np.sqrt(np.maximum(against[0], 0.0)), 1.0)
    ratio, spread, shift = np.exp(logs[0]), *every[1:, 0]
    known = dict(zip(("log_error", "spread_error", "shift_error"), errors, strict=True))
    return {"ratio": ratio, "spread": spread, "shift": shift, "unit": unit, **known}
