"""How much of what was found holds on rows that were not fitted, from the moments of folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize

from standout._arrays import Array, Float, Rows, product
from standout._messages import InvalidValueError
from standout._xp import column_products, concat, like, namespace, take, to_host
from standout.moments import Folds, Moments, folds_of_numbers, project
from standout.pencil import Form
from standout.selection._row_folds import LeftOut, SpanFolds

# Larger problems have fewer folds: each fold has a matrix of this size for every dataset, and a solution of its own.
MANY_FOLDS_SIZE, SOME_FOLDS_SIZE, MOST_SIZE = 1000, 5000, 8192
# With so many rows per column, components found without a fifth of the rows are as good as those of all but a tenth.
MANY_ROWS, ENOUGH_FOLDS = 20, 5
# Folds of a path: many solutions for each.
PATH_FOLDS = 5
# A dataset needs so many rows per fold.
ROWS_PER_FOLD = 2
# Components of a fold are scaled by at most this factor to those of the fit.
MOST_SCALED = 3.0
# A held-out variance of the backgrounds below this share of the target's is taken as this share.
LEAST_SHARE = 1e-12


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What the components of a fit are worth on rows that were not fitted.

    Each fold of the rows is left out in turn. Components are found on the other folds, and the variances of the rows of
    the fold are taken along them. The components of each fold are put in the order, and given the signs and the scale,
    of those of the fit.

    Attributes
    ----------
    ratios : ndarray of shape (d,)
        The target's variance by the backgrounds' weighted variance, over all rows, each along components that were
        found without its fold.
    standard_errors : ndarray of shape (d,)
        Of the ratios, by a jackknife over the folds.
    target_variance, background_variance : ndarray of shape (d,)
        The two variances.
    n_folds, n_dealt : int
        Number of folds, and of those that rows were dealt into: rows of fold k of the latter are in fold k modulo
        `n_folds`.
    components : array of shape (n_folds, d, n_features)
        The components that were found without each fold.
    means : array of shape (n_datasets, n_folds, n_features)
        The means of each dataset without each fold.
    shifts : ndarray of shape (n_datasets, d)
        How far the mean of each dataset is from that of the target, along the components of the fit.
    dealt : tuple of ndarray or None
        The fold of each row of each dataset, of `n_dealt`, where whole subjects were left out; None where the fold
        follows from the number of the row.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(2, 40, 30))
    >>> dpca = DiscriminativePCA(1, shrinkage=None).fit(X, background=Y)
    >>> bool(dpca.eigenvalues_[0] > 10), bool(dpca.held_out_.ratios[0] < 3)
    (True, True)
    """

    ratios: Float
    standard_errors: Float
    target_variance: Float
    background_variance: Float
    n_folds: int
    n_dealt: int
    components: Array
    means: Array
    shifts: Float
    dealt: tuple[npt.NDArray[np.intp], ...] | None = None

    def scores(
        self,
        rows: Rows,
        numbers: npt.NDArray[np.intp],
        dataset: int = 0,
        project: Callable[[Rows, Float, Float], Float] = project,
    ) -> Array:
        """Give the scores of rows of the fit, each by the components that were found without its fold.

        Scores of each dataset are centred at its own mean without the fold, and then moved to where its mean is along
        the components of the fit. Their variance is therefore the held-out one.

        Parameters
        ----------
        rows : array of shape (n, n_features)
        numbers : ndarray of int
            The numbers of the rows in their dataset, from 0.
        dataset : int, default=0
            Which dataset they are of: 0 for the target, 1 for the first background.
        project : callable
            From rows, a mean and filters to scores.
        """
        filters = [part.T for part in self.components]
        found = _by_fold(rows, self.fold_of(numbers, dataset), list(self.means[dataset]), filters, project)
        return found + like(self.shifts[dataset], found)

    def fold_of(self, numbers: npt.NDArray[np.intp], dataset: int = 0) -> npt.NDArray[np.intp]:
        """Give the fold of each row by its number in its dataset."""
        dealt = None if self.dealt is None else self.dealt[dataset]
        return folds_of_numbers(numbers, self.n_dealt, dealt) % self.n_folds

    def lifted(self, span: SpanFolds, vectors: Array) -> HeldOut:
        """Give the same in the columns of the data, from the span of wide data; `vectors` are the fit's components."""
        n_folds, d, size = self.components.shape
        n_datasets = self.means.shape[0]
        xp = namespace(self.components)
        flat = xp.reshape(self.components, (n_folds * d, size))
        centres = xp.reshape(self.means, (n_datasets * n_folds, size))
        lifted = span.lifted(concat([flat, centres]).T).T
        components = xp.reshape(lifted[: n_folds * d, :], (n_folds, d, span.n_columns))
        means = xp.reshape(lifted[n_folds * d :, :], (n_datasets, n_folds, span.n_columns))
        own = xp.stack([part.mean for part in span.datasets])
        shifts = to_host(product(own - own[:1, :], vectors))
        return replace(self, components=components, means=means + own[:, None, :], shifts=shifts)


@dataclass(frozen=True, eq=False)
class HeldOutPath:
    """How the leading component fares on rows that were not fitted, at each of several values of a parameter.

    Attributes
    ----------
    parameters : ndarray of shape (g,)
    log_ratios : ndarray of shape (g,)
        Logarithm of the held-out ratio.
    standard_errors : ndarray of shape (g,)
        Of the difference to the largest one.
    best : int
        The value with the largest ratio.
    chosen : int
        The value farthest from `best` towards more regularisation, with all values between, whose ratio is within one
        standard error of the largest.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA
    >>> rng = np.random.default_rng(0)
    >>> shared = rng.normal(size=(10, 40))
    >>> X, Y = (rng.normal(size=(80, 40)) + 3 * rng.normal(size=(80, 10)) @ shared for _ in range(2))
    >>> X[:, 0] += 5 * rng.normal(size=80)
    >>> path = DiscriminativePCA(1, shrinkage="held-out").fit(X, background=Y).held_out_path_
    >>> bool(0 < path.parameters[path.best] <= path.parameters[path.chosen] < 0.9)
    True
    """

    parameters: Float
    log_ratios: Float
    standard_errors: Float
    best: int
    chosen: int


@dataclass(frozen=True, eq=False)
class PathViews:
    """The leading components without each fold, at each value of a parameter.

    Attributes
    ----------
    filters : list of array of shape (n_features, g)
        For each fold, the leading filters that were found without it.
    means : list of list of array of shape (n_features,)
        For each dataset and fold, the mean of the dataset without the fold.
    n_dealt : int
        Number of folds that rows were dealt into: rows of fold k of them are in fold k modulo the number of `filters`.
    """

    filters: list[Array]
    means: list[list[Array]]
    n_dealt: int

    def scores(
        self,
        rows: Rows,
        numbers: npt.NDArray[np.intp],
        dataset: int,
        project: Callable[[Rows, Float, Float], Float] = project,
        dealt: npt.NDArray[np.intp] | None = None,
    ) -> Array:
        """Give the first scores of rows, by their numbers in a dataset, at each value: by the fold without each row.

        `dealt` has the fold of every row of the dataset, if whole subjects were dealt.
        """
        folds = folds_of_numbers(numbers, self.n_dealt, dealt) % len(self.filters)
        return _by_fold(rows, folds, self.means[dataset], self.filters, project)

    def lifted(self, span: SpanFolds) -> PathViews:
        """Give the same in the columns of the data, if the filters are in coordinates of the span of wide data."""
        filters = [span.lifted(part) for part in self.filters]
        means = [
            [part.mean + span.lifted(mean[:, None])[:, 0] for mean in own]
            for part, own in zip(span.datasets, self.means, strict=True)
        ]
        return replace(self, filters=filters, means=means)


def _by_fold(
    rows: Rows,
    folds: npt.NDArray[np.intp],
    means: Sequence[Array],
    filters: Sequence[Array],
    project: Callable[[Rows, Float, Float], Float],
) -> Array:
    """Give the scores of rows, each by the mean and the filters of its fold, in the order of the rows."""
    order = np.argsort(folds, kind="stable")
    parts = [
        project(take(rows, np.flatnonzero(folds == fold)), means[fold], filters[fold])
        for fold in np.unique(folds).tolist()
    ]
    return take(concat(parts), np.argsort(order, kind="stable"))


def n_folds_for(wanted: int, size: int, n_rows: int | None) -> int | None:
    """Give the number of folds for matrices of a size: at most `wanted`, fewer where that costs much or adds little.

    `n_rows` is the number of rows of the smallest dataset; None if it is not known yet. None comes back for matrices
    that are too large for any folds, and for too few rows.
    """
    if n_rows is not None:
        wanted = min(wanted, n_rows // ROWS_PER_FOLD)
    if size > MOST_SIZE or wanted < 2:
        return None
    if size > SOME_FOLDS_SIZE:
        return min(wanted, 3)
    many = n_rows is not None and n_rows >= MANY_ROWS * size
    return min(wanted, ENOUGH_FOLDS) if many or size > MANY_FOLDS_SIZE else wanted


# --- judging --------------------------------------------------------------------------------------------------------


def judge(
    solve: Callable[[Moments, list[Moments], LeftOut], Float],
    folds: Sequence[Folds[Moments]],
    weights: Float,
    vectors: Float,
    side: str = "target",
    totals: Sequence[Moments] | None = None,
) -> HeldOut | None:
    """Find out what components are worth on rows that were not fitted.

    Parameters
    ----------
    solve : callable
        Finds the components, as columns, from the moments of a target and of backgrounds without a fold, which is told
        with the number of folds.
    folds : sequence of Folds
        Of the target, then of each background.
    weights : ndarray
        Of the backgrounds.
    vectors : array of shape (n_features, d)
        The components of the fit to all rows.
    side : {"target", "background", "both"}, default="target"
        Which side the components are of: by its variance those of a fold are compared with those of the fit.
    totals : sequence of Moments, optional
        The moments of all rows, if they are known.

    Returns
    -------
    HeldOut or None
        None if there are too few rows for two folds, if the side does not vary along a component, or if there are
        fewer components without one of the folds.
    """
    folds = _with_enough_rows(folds, folds[0].n_folds)
    if not folds:
        return None
    if totals is None:
        totals = [part.total() for part in folds]
    images = _compared_by(side, totals, weights).apply(vectors)
    spreads = column_products(vectors, images)
    xp = namespace(spreads)
    if not bool(xp.all(spreads > float(np.finfo(np.float64).eps) ** 1.5 * xp.max(spreads))):
        # A side that does not vary along its component, but for rounding, has no ratio there.
        return None
    found: list[Array] = []
    means: list[list[Array]] = []
    variances: list[list[Float]] = []
    for number, left in enumerate(_left_in_turn(folds)):
        target, *backgrounds = left
        try:
            solution = solve(target, backgrounds, (number, folds[0].n_folds))
        except InvalidValueError:
            # The other folds have fewer directions than components are wanted.
            return None
        own = _compared_by(side, [target, *backgrounds], weights).value(solution)
        if not bool(namespace(own).all(own > 0.0)):
            # Rounding has left nothing of the variance.
            return None
        found.append(_aligned(solution, own, images, spreads))
        variances.append(_fold_variances(folds, number, found[-1], left))
        means.append([sums.mean for sums in left])
    spread, counts = _by_dataset(variances), _counts(folds)
    own, against = _pooled(spread, counts, weights, None)
    log_ratios = np.array([_log_ratio(*_pooled(spread, counts, weights, fold)) for fold in range(folds[0].n_folds)])
    ratios = np.exp(_log_ratio(own, against))
    xp = namespace(vectors)
    centres = [part.mean for part in totals]
    return HeldOut(
        ratios=ratios,
        standard_errors=ratios * _jackknife_error(log_ratios),
        target_variance=own,
        background_variance=against,
        n_folds=folds[0].n_folds,
        n_dealt=folds[0].n_dealt,
        components=xp.stack([filters.T for filters in found]),
        means=xp.stack([xp.stack(own) for own in zip(*means, strict=True)]),
        shifts=np.array([to_host(product((mean - centres[0])[None, :], vectors)[0, :]) for mean in centres]),
    )


def judge_path(
    solve: Callable[[Moments, list[Moments], Float], Float],
    parameters: Float,
    folds: Sequence[Folds[Moments]],
    weights: Float,
    *,
    allowed: npt.NDArray[np.bool_] | None = None,
    side: str = "target",
) -> tuple[HeldOutPath, PathViews] | None:
    """Find out which value of a parameter gives the most extreme ratio on rows that were not fitted.

    Parameters
    ----------
    solve : callable
        Finds the leading component, as a column, at each value of the parameter, from the moments of a target and of
        backgrounds.
    parameters : ndarray of shape (g,)
        In order of growing regularisation.
    folds, weights
        As in `judge`.
    allowed : ndarray of bool, optional
        The values that may be chosen.
    side : {"target", "background", "both"}, default="target"
        Whether the largest ratio is wanted, the least, or the one whose logarithm is the largest in size.

    Returns
    -------
    (HeldOutPath, PathViews) or None
        None if there are too few rows for two folds.
    """
    folds = _with_enough_rows(folds, PATH_FOLDS)
    if not folds:
        return None
    filters: list[Array] = []
    means: list[list[Array]] = []
    variances: list[list[Float]] = []
    for number, left in enumerate(_left_in_turn(folds)):
        target, *backgrounds = left
        leading = solve(target, backgrounds, parameters)
        # The same scale and sign in every fold: a ratio of sums over folds depends on them.
        xp = namespace(leading)
        compared = _compared_by(side, [target, *backgrounds], weights)
        along = column_products(compared.apply(filters[0] if filters else leading), leading)
        sign = xp.where(along < 0, -xp.ones_like(along), xp.ones_like(along))
        spread = xp.clip(compared.value(leading), float(np.finfo(np.float64).tiny), None)
        filters.append(leading * sign / xp.sqrt(spread))
        variances.append(_fold_variances(folds, number, filters[-1], left))
        means.append([sums.mean for sums in left])
    path = _path_of(parameters, _by_dataset(variances), _counts(folds), weights, 1, side, allowed)
    return path, PathViews(filters, [list(own) for own in zip(*means, strict=True)], folds[0].n_dealt)


def judge_views(
    without: Callable[[Moments, list[Moments], LeftOut], Sequence[Float]],
    parameters: npt.NDArray[Any],
    folds: Sequence[Folds[Moments]],
    weights: Float,
    side: str,
) -> HeldOutPath | None:
    """Find out at which value of a parameter all components together have the most extreme ratios on other rows.

    Parameters
    ----------
    without : callable
        Finds the components, as columns, for each value, from the moments without a fold.
    parameters : ndarray
        The values, such as numbers of columns or α, descending.
    folds, weights, side
        As in `judge_path`, but for the mean of the logarithmic ratios of all components.

    Returns
    -------
    HeldOutPath or None
        None if there are too few rows for two folds, or fewer components without one of them.
    """
    folds = _with_enough_rows(folds, PATH_FOLDS)
    if not folds:
        return None
    variances: list[list[Float]] = []
    for number, left in enumerate(_left_in_turn(folds)):
        target, *backgrounds = left
        try:
            found = concat(list(without(target, backgrounds, (number, folds[0].n_folds))), axis=1)
        except InvalidValueError:
            return None
        # The same scale in every fold: a ratio of sums over folds depends on it.
        spread = _compared_by(side, [target, *backgrounds], weights).value(found)
        xp = namespace(found)
        filters = found / xp.sqrt(xp.clip(spread, float(np.finfo(np.float64).tiny), None))
        variances.append(_fold_variances(folds, number, filters, left))
    n_components = filters.shape[1] // len(parameters)
    values = parameters.astype(np.float64)
    return _path_of(values, _by_dataset(variances), _counts(folds), weights, n_components, side, None)


def _path_of(
    parameters: Float,
    variances: Float,
    counts: Float,
    weights: Float,
    n_components: int,
    side: str,
    allowed: npt.NDArray[np.bool_] | None,
) -> HeldOutPath:
    """Choose a value of a parameter by the mean of the components' logarithmic ratios."""
    worth = {"target": np.positive, "background": np.negative, "both": np.abs}[side]

    def without(fold: int | None) -> tuple[Float, Float]:
        ratios = _log_ratio(*_pooled(variances, counts, weights, fold)).reshape(len(parameters), n_components)
        return ratios.mean(axis=1), worth(ratios).mean(axis=1)

    log_ratios, values = without(None)
    by_fold = np.array([without(fold)[1] for fold in range(counts.shape[1])])
    usable = np.isfinite(log_ratios) if allowed is None else np.isfinite(log_ratios) & allowed
    best = int(np.argmax(np.where(usable, values, -np.inf)))
    errors = _jackknife_error(by_fold - by_fold[:, best : best + 1])
    chosen = best
    while chosen + 1 < len(parameters) and usable[chosen + 1] and _within(values, errors, chosen + 1, best):
        chosen += 1
    return HeldOutPath(parameters, log_ratios, errors, best, chosen)


def _within(values: Float, errors: Float, place: int, best: int) -> bool:
    return bool(values[place] + errors[place] >= values[best])


def _with_enough_rows(folds: Sequence[Folds[Moments]], most: int) -> list[Folds[Moments]]:
    """Give at most so many folds, fewer if a dataset has few rows; none if two folds are too many."""
    most = min(most, min(part.count for part in folds) // ROWS_PER_FOLD)
    if most < 2:
        return []
    fewer = [part.fewer(most) for part in folds]
    # With fewer rows than folds that they were dealt into, all rows of a dataset may have come into one.
    return fewer if all(sum(part is not None for part in one.sums) > 1 for one in fewer) else []


def _left_in_turn(folds: Sequence[Folds[Moments]]) -> Iterator[tuple[Moments, ...]]:
    """Give what is left of all datasets without each fold in turn: all at once would be many matrices."""
    return zip(*(part.others() for part in folds), strict=True)


def _counts(folds: Sequence[Folds[Moments]]) -> Float:
    """Give the weights of all rows of each fold of each dataset."""
    weights = [[0.0 if sums is None else sums.total_weight for sums in part.sums] for part in folds]
    return np.array(weights, dtype=np.float64)


def _by_dataset(by_fold: Sequence[Sequence[Float]]) -> Float:
    """Give what was found for each fold and dataset with the datasets first."""
    return np.swapaxes(np.array(by_fold), 0, 1)


def _compared_by(side: str, moments: Sequence[Moments], weights: Float) -> Form:
    """Give the variance by which components of two fits are compared: that of their side, which is not zero."""
    target, *backgrounds = moments
    against = tuple((float(weight), part) for weight, part in zip(weights, backgrounds, strict=True))
    if side == "target":
        return Form(target.n_features, ((1.0, target),))
    if side == "background":
        return Form(target.n_features, against)
    # Both in units of their size.
    sizes = target.total_variance, sum(weight * part.total_variance for weight, part in against)
    own, other = (1.0 / size if size > 0.0 else 1.0 for size in sizes)
    return Form(target.n_features, ((own, target), *((other * weight, part) for weight, part in against)))


def _aligned(vectors: Float, own: Float, images: Float, spreads: Float) -> Float:
    """Give components in the order, and with the signs and the scale, of those of the fit to all rows.

    `images` are the fit's components times the covariance of their side, `spreads` the variances along them, `own`
    those along `vectors` without the fold.
    """
    xp = namespace(vectors)
    both = to_host(product(images.T, vectors) / (xp.sqrt(spreads)[:, None] * xp.sqrt(own)))
    _, order = optimize.linear_sum_assignment(-np.abs(np.nan_to_num(both)))
    signs = np.where(both[np.arange(len(order)), order] < 0, -1.0, 1.0)
    # A fold with a row far off all others would have components of another size altogether.
    scale = xp.clip(xp.sqrt(spreads / take(own, order)), 1.0 / MOST_SCALED, MOST_SCALED)
    return take(vectors, order, axis=1) * (like(signs, vectors) * scale)


def _fold_variances(
    folds: Sequence[Folds[Moments]], number: int, filters: Array, left: Sequence[Moments]
) -> list[Float]:
    """Give the variances of the rows of a fold of each dataset along filters, about the mean of all other folds.

    The mean of n rows is itself off by 1/n of the variance, which is taken off.
    """
    found: list[Float] = []
    for part, rest in zip((one.sums[number] for one in folds), left, strict=True):
        if part is None:
            found.append(np.zeros(filters.shape[1]))
            continue
        step = product((part.mean - rest.mean)[None, :], filters)[0, :]
        found.append(to_host(part.variance(filters) + step**2) / (1.0 + 1.0 / rest.effective_count))
    return found


def _pooled(variances: Float, counts: Float, weights: Float, left_out: int | None) -> tuple[Float, Float]:
    """Average the variances of folds, all but one, over the rows: the target's, and the backgrounds' by weights."""
    kept = np.arange(counts.shape[1]) != (-1 if left_out is None else left_out)
    shares = counts[:, kept] / counts[:, kept].sum(axis=1, keepdims=True)
    means = np.einsum("ak,akd->ad", shares, variances[:, kept])
    return means[0], weights @ means[1:]


def _log_ratio(own: Float, against: Float) -> Float:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios: Float = np.log(own) - np.log(np.maximum(against, LEAST_SHARE * own))
    return ratios


def _jackknife_error(estimates: Float) -> Float:
    """Give the standard error from the estimates without each fold."""
    n_folds = len(estimates)
    with np.errstate(invalid="ignore"):
        error: Float = np.sqrt((n_folds - 1.0) / n_folds * np.sum((estimates - estimates.mean(axis=0)) ** 2, axis=0))
    return error
