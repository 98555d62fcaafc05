"""Whether other rows from the same source would have given the same components."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from standout import contrast
from standout._arrays import (
    BLOCK_BYTES,
    UNCOPIED_BYTES,
    Float,
    Rows,
    column_slices,
    double,
    in_order,
    is_sparse,
    is_thin,
    product,
    row_blocks,
    sum_of_squares,
)
from standout._checks import as_seed, check_whole
from standout._params import check_level, check_n_columns, check_n_components, check_shrinkage, check_weights
from standout._writing import tracked
from standout.moments import (
    KeptRows,
    Kind,
    Moments,
    Part,
    gather,
    in_span,
    ledoit_wolf,
    project,
)
from standout.pencil import Pencil, Solution, solve
from standout.selection._columns import FewColumns, few_of
from standout.selection._dealing import drawn_subjects, subjects_of
from standout.selection._inputs import (
    Given,
    GivenBackgrounds,
    Opened,
    gather_all,
    open_host_datasets,
    require_rows,
    rows_of,
    weights_of,
    with_robust_weights,
    without_weightless,
)
from standout.sources import Batch, Subjects

# How often each row of a dataset was drawn.
Counts = npt.NDArray[np.intp]

# Which moments and which solver, in the order in which they are tried: QR roots only where matrices lose the digits.
TALL: tuple[tuple[Kind, str], ...] = (("scatter", "auto"), ("root", "root"))
WIDE: tuple[tuple[Kind, str], ...] = (("rows", "reduced"),)

# Numbers in all rows up to which draws are made in several threads.
MOST_SIDE_BY_SIDE = 2**21


@dataclass(frozen=True, eq=False)
class Stability:
    """How far the components of a fit move when the rows are drawn again.

    Attributes
    ----------
    angles : ndarray of shape (n_bootstrap, n_components)
        Angle in radians, from 0 to π/2, between each filter of a draw and the same filter of the fit on all rows.
    mean_angle : ndarray of shape (n_components,)
        Mean of the angles of each component.
    components : ndarray of shape (n_components, n_features)
        Filters of the fit on all rows: `components_` of `DiscriminativePCA`.
    patterns : ndarray of shape (n_components, n_features)
        Patterns of the fit on all rows: `patterns_`.
    ratios : ndarray of shape (n_components,)
        Ratios of the fit on all rows: `eigenvalues_`.
    held_out_ratios : ndarray of shape (n_components,)
        Ratios of rows that were not drawn along the filters of each draw: the median of all draws. NaN if every draw
        has all rows of a dataset.
    components_interval : ndarray of shape (2, n_components, n_features)
        Lower and upper end of the interval of each loading.
    patterns_interval : ndarray of shape (2, n_components, n_features)
        The same for the patterns.
    ratios_interval : ndarray of shape (2, n_components)
        The same for the held-out ratios. In-sample ratios, and with them `ratios`, can lie far above it.
    level : float
        Share of the draws inside each interval.
    column_frequency : ndarray of shape (n_features,) or None
        In which share of the draws each column is chosen; None without `n_columns`.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.selection import stability
    >>> rng = np.random.default_rng(0)
    >>> target, background = rng.normal(size=(300, 3)) * [1, 1, 3], rng.normal(size=(300, 3))
    >>> found = stability(target, background, n_components=1, n_bootstrap=50)
    >>> found.angles.shape, bool(found.mean_angle[0] < 0.1), found.components_interval.shape
    ((50, 1), True, (2, 1, 3))
    """

    angles: Float
    mean_angle: Float
    components: Float
    patterns: Float
    ratios: Float
    held_out_ratios: Float
    components_interval: Float
    patterns_interval: Float
    ratios_interval: Float
    level: float
    column_frequency: Float | None = None


def stability(
    X: Given,
    background: GivenBackgrounds,
    *,
    n_components: int = 2,
    background_weights: Any = None,
    shrinkage: Any = "auto",
    n_columns: int | None = None,
    robust: str | None = None,
    n_bootstrap: int = 100,
    level: float = 0.95,
    random_state: Any = None,
    progress: bool = False,
    groups: Any = None,
    background_groups: Any = None,
) -> Stability:
    """Would other rows from the same source have given the same components?

    The bootstrap: the rows of the target and of each background are drawn again with replacement, as many as there are
    and each dataset by itself; dPCA is fitted on the drawn rows; and each component is compared with the same component
    of the fit on all rows. A component whose angles are small, and a loading whose interval does not hold zero, do not
    hang on a few rows.

    Parameters
    ----------
    X : array-like, sparse matrix or frame of shape (n_samples, n_features)
        The target. It may be memory-mapped: it is read a block of rows at a time, once for every draw.
    background : dataset, or list or tuple of datasets
        One background, or several, each in any form that X may have.
    n_components : int, default=2
        Number of components.
    background_weights : array-like of shape (n_backgrounds,), default=None
        Weight of each background, as in `DiscriminativePCA`.
    shrinkage : "auto", float in [0, 1] or None, default="auto"
        As in `DiscriminativePCA`. "auto" is the Ledoit-Wolf estimate from all rows, kept for all draws.
    n_columns : int or None, default=None
        Number of columns of the components, as in `DiscriminativePCA`; every draw chooses columns of its own.
    robust : {None, "rows", "cells"}, default=None
        As in `DiscriminativePCA`. Weights are learned once, from all rows, and kept for all draws.
    n_bootstrap : int, default=100
        Number of draws. The ends of a 95 % interval are themselves steadier with 1,000.
    level : float, default=0.95
        Share of the draws inside each interval, between 0 and 1.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws. None is a fixed one, too: equal input gives equal output.
    progress : bool, default=False
        Show a progress bar on standard error (needs the package rich).
    groups, background_groups : array-like of shape (n_samples,), default=None
        The subject of each row of X and of the background, as in `standout.DiscriminativePCA.fit`. Whole
        subjects are then drawn, and "rows that were not drawn" are those of the other subjects. A subject in several
        datasets is drawn for all of them at once.

    Returns
    -------
    Stability

    See Also
    --------
    standout.metrics.principal_angles : Compare the subspaces of two fits, whatever the order of their components.

    Notes
    -----
    **Intervals** are percentile intervals: between the (1 - level)/2 and the (1 + level)/2 quantile of the draws. The
    filters and patterns of a draw are given the sign that brings the filter closer to that of all rows. Draws scatter
    about the fit on all rows as this does about the truth.

    **Ratios.** In-sample ratios are too large, and those of draws are larger still. So the interval of a ratio is that
    of the rows that were not drawn, about a third of all, along the filter of the draw. It is an interval for the ratio
    of new rows along the component. In simulations intervals of 90 % hold it in 81 to 97 % (40 rows of 10 columns to
    1,000 rows, 40 rows of 100 columns), and hold 1 where nothing stands out.

    **Ties.** Components are compared number by number. Two with nearly the same ratio change places or mix from draw
    to draw: their angles are large although the plane of both may be stable.

    **Angles** are those between filters as vectors, and go with the units of the columns as the filters do.

    **Shrinkage is kept** because in drawn rows, many of them there twice or more, it would be underestimated. Sampling
    noise enters a draw twice, first in the rows and then in drawing them; Ledoit and Wolf's estimate knows of one, and
    takes the other for structure. For 100 rows of 50 columns it may be 0.4 in the draws instead of 0.6.

    **Singular draws.** Without shrinkage, drawn backgrounds may lack a direction that the target has: its ratio is
    ``inf`` then, as in `DiscriminativePCA`, and its filter has unit length. Where the drawn rows have fewer directions
    than there are components, those that are missing count with a right angle and zeros for filter, pattern and ratio.

    **Memory and time.** No drawn copy of a dataset is made: a draw is a count for each row, and blocks of rows go into
    the moments with their counts as weights. What is kept for the quantiles is 16 bytes x n_bootstrap x n_components x
    the smaller of n_features and the number of rows. With fewer rows than columns in all, the rows are brought to an
    orthonormal basis of their span once (two dense copies in float64), and draws never see the columns again. Small
    datasets are drawn in several threads.

    Examples
    --------
    The target varies along the last feature as the background does not; nothing else stands out.

    >>> import numpy as np
    >>> from standout.selection import stability
    >>> rng = np.random.default_rng(0)
    >>> background = rng.normal(size=(500, 4)) * [10, 1, 1, 1]
    >>> target = rng.normal(size=(500, 4)) * [10, 1, 1, 3]
    >>> found = stability(target, background, n_bootstrap=50)
    >>> np.degrees(found.mean_angle).round()
    array([ 3., 28.])
    >>> lower, upper = found.components_interval[:, 0]
    >>> (lower > 0) | (upper < 0)
    array([False, False, False,  True])
    """
    few = "Give at least {limit}; 100 or more for an interval."
    n_bootstrap = check_whole(n_bootstrap, "n_bootstrap", least=2, advice=few)
    level, share = check_level(level, "a share of the draws", 0.95), check_shrinkage(shrinkage)
    draws = tracked(range(n_bootstrap), n_bootstrap, "drawing rows", progress)
    datasets = open_host_datasets(X, background, groups, background_groups)
    datasets = with_robust_weights(datasets, robust, as_seed(random_state))
    require_rows(datasets, "every draw")
    datasets = without_weightless(datasets)
    weights = check_weights(background_weights, len(datasets) - 1)
    seed = as_seed(random_state)

    refit, basis = _prepare(datasets, n_components, weights, share, seed, n_columns)
    full, _ = refit.solve([np.ones(rows.shape[0], dtype=np.intp) for rows in refit.datasets])
    check_n_components(n_components, refit.n_columns, 0 if full is None else len(full.values))
    assert full is not None
    if full.solver == "root":
        # If all rows are too ill-conditioned for a matrix, so are draws of them.
        refit = replace(refit, attempts=refit.attempts[-1:])

    angles, ratios, filters, patterns, seen = _fit_draws(refit, full, draws, n_bootstrap, subjects_of(datasets))
    components, looks = _lift(full.vectors.T, basis), _lift(full.patterns.T, basis)
    # The rule for signs is about the columns of the data, not about the coordinates of a basis.
    largest = np.take_along_axis(components, np.argmax(np.abs(components), axis=1)[:, np.newaxis], axis=1)
    signs = np.where(largest < 0, -1.0, 1.0)
    filters *= signs
    patterns *= signs
    return Stability(
        angles=angles,
        mean_angle=angles.mean(axis=0),
        components=components * signs,
        patterns=looks * signs,
        ratios=full.values,
        held_out_ratios=_medians(ratios),
        components_interval=_intervals(filters, basis, level),
        patterns_interval=_intervals(patterns, basis, level),
        ratios_interval=_interval_of_ratios(ratios, level),
        level=level,
        column_frequency=FewColumns(np.zeros(0, dtype=np.intp)).seen(seen, refit.n_columns).frequency,
    )


@dataclass(frozen=True, eq=False)
class _Refit:
    """A fit that can be made again with every row counted as often as it was drawn."""

    datasets: list[Rows]
    row_weights: list[Float | None]
    weights: Float
    shares: Float
    n_columns: int
    n_components: int
    seed: int
    attempts: tuple[tuple[Kind, str], ...]
    n_used: int | None = None

    def solve(self, counts: Sequence[Counts]) -> tuple[Solution | None, Counts | None]:
        """Solve for as many components as there are directions, or as are wanted; None where no row differs.

        With the solution come its columns, if few are wanted.
        """
        solution: Solution | None = None
        columns: Counts | None = None
        for kind, solver in self.attempts:
            # A nearly singular matrix may pass as definite. It then gives NaN, which does not count as accurate.
            with np.errstate(invalid="ignore", divide="ignore"):
                problem = self._pose(counts, kind)
                solution = _leading(problem, self.n_components, solver, self.seed)
                if solution is not None and self.n_used is not None:
                    solution, columns = few_of(problem, solution, self.n_used, solver=solver, seed=self.seed)
            if solution is None or (solution.accurate and solution.solver != "root"):
                break
        return solution, columns

    def left_out_ratios(self, counts: Sequence[Counts], filters: Float) -> Float:
        """Give the ratios along filters of the rows that were not drawn."""
        variances = []
        for rows, own, times in zip(self.datasets, self.row_weights, counts, strict=True):
            left = np.flatnonzero(times == 0)
            if len(left) < 2:
                return np.full(filters.shape[1], np.nan)
            # A large common offset would cost digits; sparse rows have none.
            origin = np.zeros(rows.shape[1]) if is_sparse(rows) else double(rows[:1])[0]
            scores = project(rows[left], origin, filters)
            variances.append(scores.var(axis=0, ddof=1) if own is None else _weighted_variance(scores, own[left]))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios: Float = variances[0] / (self.weights @ np.array(variances[1:]))
        return ratios

    def _pose(self, counts: Sequence[Counts], kind: Kind) -> Pencil:
        target, *backgrounds = (
            _drawn_moments(rows, times, kind, own)
            for rows, own, times in zip(self.datasets, self.row_weights, counts, strict=True)
        )
        problem = contrast.discriminative(target, backgrounds, self.weights, self.shares)
        # The ridge is a share of the variance per column of the data; a basis of their rows has fewer.
        ridge = problem.b.ridge * (problem.n_features / self.n_columns)
        return replace(problem, b=replace(problem.b, ridge=ridge))


def _prepare(
    datasets: list[Opened],
    n_components: int,
    weights: Float,
    share: float | None,
    seed: int,
    n_used: int | None,
) -> tuple[_Refit, Float | None]:
    """Look at all rows once: find the shrinkage, and bring wide data to a basis of their rows."""
    moments = gather_all(datasets, norms=share is None)
    n_columns = moments[0].n_features
    n_components = check_n_components(n_components, n_columns, sum(part.count - 1 for part in moments))
    n_used = check_n_columns(n_used, n_columns, n_components)
    shares = np.array([ledoit_wolf(part) if share is None else share for part in moments[1:]])
    kept = [part for part in moments if isinstance(part, KeptRows)]
    own = [weights_of(dataset) for dataset in datasets]
    if len(kept) < len(moments) or n_used is not None:
        # Columns are chosen among those of the data.
        attempts = TALL if len(kept) < len(moments) else WIDE
        rows = [rows_of(dataset) for dataset in datasets]
        return _Refit(rows, own, weights, shares, n_columns, n_components, seed, attempts, n_used), None
    basis, coordinates = in_span(kept)
    # Rows of low rank are many for the coordinates that they need.
    many = sum(len(rows) for rows in coordinates) > 2 * basis.shape[1]
    # Rows with weights come times the roots of these.
    coordinates = [
        rows if some is None else rows / np.sqrt(some)[:, np.newaxis]
        for rows, some in zip(coordinates, own, strict=True)
    ]
    return _Refit(coordinates, own, weights, shares, n_columns, n_components, seed, TALL if many else WIDE), basis


def _fit_draws(
    refit: _Refit, full: Solution, draws: Iterable[int], n_bootstrap: int, subjects: Sequence[Subjects] | None
) -> tuple[Float, Float, Float, Float, list[Counts]]:
    """Fit one draw after the other: angles, ratios, filters and patterns with the signs of the full fit, columns."""
    size, n_components = full.vectors.shape
    angles = np.full((n_bootstrap, n_components), np.pi / 2)
    ratios = np.full((n_bootstrap, n_components), np.nan)
    filters = np.zeros((n_bootstrap, n_components, size))
    patterns = np.zeros((n_bootstrap, n_components, size))
    seen: list[Counts] = []
    rng = np.random.default_rng(refit.seed)

    def drawn() -> Iterator[tuple[int, list[Counts]]]:
        for number in draws:
            if subjects is None:
                yield number, [_draw(rng, rows.shape[0]) for rows in refit.datasets]
            else:
                yield number, drawn_subjects(subjects, rng)

    def fitted(draw: tuple[int, list[Counts]]) -> tuple[int, Solution | None, Counts | None, Float]:
        number, counts = draw
        found, columns = refit.solve(counts)
        left_out = np.zeros(0) if found is None else refit.left_out_ratios(counts, found.vectors)
        return number, found, columns, left_out

    # Small draws are made side by side. Large ones have the memory, and the threads of BLAS, for themselves.
    side_by_side = sum(rows.shape[0] * rows.shape[1] for rows in refit.datasets) <= MOST_SIDE_BY_SIDE
    for number, found, columns, left_out in (in_order if side_by_side else map)(fitted, drawn()):
        if found is None:
            continue
        seen += [] if columns is None else [columns]
        n_found = len(found.values)
        turned, signs = _compare(found.vectors, full.vectors[:, :n_found])
        angles[number, :n_found] = turned
        ratios[number, :n_found] = left_out
        filters[number, :n_found] = (found.vectors * signs).T
        patterns[number, :n_found] = (found.patterns * signs).T
    return angles, ratios, filters, patterns, seen


def _draw(rng: np.random.Generator, n_rows: int) -> Counts:
    """Draw as many rows as there are, and tell how often each came up."""
    return np.bincount(rng.integers(n_rows, size=n_rows), minlength=n_rows)


def _leading(problem: Pencil, n_components: int, solver: str, seed: int) -> Solution | None:
    """Give the leading components, fewer than wanted where there are no more; None where nothing varies."""
    if not np.any(problem.a.diagonal) and not np.any(problem.b.diagonal):
        return None
    for wanted in range(n_components, 1, -1):
        try:
            return solve(problem, wanted, solver=solver, seed=seed)
        except ValueError:
            # How many directions drawn rows have is known only to the solver that looks for them.
            continue
    return solve(problem, 1, solver=solver, seed=seed)


def _weighted_variance(scores: Float, weights: Float) -> Float:
    """Give the variance of scores with weights, corrected for their effective number."""
    shares = weights / np.sum(weights)
    variance: Float = shares @ (scores - shares @ scores) ** 2 / (1.0 - sum_of_squares(shares))
    return variance


def _drawn_moments(rows: Rows, counts: Counts, kind: Kind, weights: Float | None = None) -> Moments:
    """Gather the moments of the rows, each as often as it was drawn, a block at a time."""
    stay_sparse = kind == "scatter" and is_thin(rows) and weights is None
    total: Moments | None = None
    start = 0
    # Drawn rows are copied twice: once as drawn, once weighted.
    n_bytes = UNCOPIED_BYTES if stay_sparse else BLOCK_BYTES // 2
    for block in row_blocks(rows, at_least=2 * rows.shape[1], n_bytes=n_bytes):
        times = counts[start : start + block.shape[0]]
        own = None if weights is None else weights[start : start + block.shape[0]]
        start += block.shape[0]
        if times.any() and (own is None or np.any(times * own)):
            part = _repeated(block, times) if stay_sparse else _weighted(block, times, own, kind)
            total = part if total is None else total + part
    assert total is not None
    return total


def _repeated(block: Rows, times: Counts) -> Moments:
    """Repeat the rows: sparse ones cannot be centred, and stay sparse so."""
    return gather(block[np.repeat(np.arange(len(times)), times)], kind="scatter", single=False)


def _weighted(block: Rows, times: Counts, own: Float | None, kind: Kind) -> Moments:
    """Weigh the rows: one drawn several times is multiplied once, which leaves two thirds of the work."""
    drawn = np.flatnonzero(times)
    weights = times[drawn] * (np.ones(len(drawn)) if own is None else own[drawn])
    part: Moments = Part(kind, norms=False, single=False)(Batch(block[drawn], weights=weights))
    return part


def _compare(vectors: Float, reference: Float) -> tuple[Float, Float]:
    """Give the angle between each column and that of the reference, and the sign that makes it the smaller one."""
    signs = np.where(np.einsum("ij,ij->j", vectors, reference) < 0, -1.0, 1.0)
    one = vectors * (signs / np.linalg.norm(vectors, axis=0))
    other = reference / np.linalg.norm(reference, axis=0)
    # The arc cosine would know a small angle to eight digits only.
    angles = 2.0 * np.arctan2(np.linalg.norm(one - other, axis=0), np.linalg.norm(one + other, axis=0))
    return angles, signs


def _lift(coordinates: Float, basis: Float | None) -> Float:
    """Give directions, as rows, in the columns of the data."""
    return np.ascontiguousarray(coordinates) if basis is None else np.ascontiguousarray(product(coordinates, basis.T))


def _intervals(draws: Float, basis: Float | None, level: float) -> Float:
    """Give the interval of each loading, a slice of columns at a time."""
    n_draws, n_components, size = draws.shape
    flat = draws.reshape(-1, size)
    n_columns = size if basis is None else basis.shape[0]
    ends = np.empty((2, n_components, n_columns))
    for columns in column_slices(len(flat), n_columns):
        part = flat[:, columns] if basis is None else product(flat, basis[columns].T)
        ends[:, :, columns] = np.quantile(part.reshape(n_draws, n_components, -1), _tails(level), axis=0)
    return ends


def _interval_of_ratios(ratios: Float, level: float) -> Float:
    """Give the interval of each ratio from those of rows that were not drawn."""
    ends = np.empty((2, ratios.shape[1]))
    for number, column in enumerate(ratios.T):
        with np.errstate(divide="ignore"):
            logs = np.log(column[~np.isnan(column)])
        if not len(logs):
            ends[:, number] = np.nan
            continue
        lower, upper = _tails(level)
        # Next to an infinite ratio there is nothing to interpolate, and draws are taken.
        ends[:, number] = np.exp([np.quantile(logs, lower, method="lower"), np.quantile(logs, upper, method="higher")])
    return ends


def _medians(ratios: Float) -> Float:
    """Give the median of each column, without NaN."""
    return np.array(
        [np.median(column[~np.isnan(column)]) if not np.isnan(column).all() else np.nan for column in ratios.T]
    )


def _tails(level: float) -> tuple[float, float]:
    return (1.0 - level) / 2.0, (1.0 + level) / 2.0
