"""How large a ratio is by chance alone, whatever the distribution: reshuffle the rows and look."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from math import copysign, sqrt
from time import monotonic
from typing import NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

from standout._arrays import Float, product, squared_lengths, stacked, sum_of_squares, weighted_sum
from standout._messages import InvalidValueError
from standout._params import check_n_components
from standout._writing import progress_bar
from standout._xp import concat, eigh, is_foreign, like, namespace, take, to_host
from standout.moments import CentredRows, KeptRows, RowMoments, in_span
from standout.pencil import solve
from standout.selection._analytic import ComponentTest, concluded, reject_singular_background
from standout.selection._dealing import SAME_WEIGHT, Dealing, Draw, middle_of_few
from standout.selection._pool import Pool, pencil_of, variances_of
from standout.selection._problem import Problem
from standout.selection._spectrum import PooledSpectrum
from standout.sources import Subjects, chosen_subjects

# Steps towards the spatial median: a rough one is good enough.
N_STEPS = 30
# A test ends once this many reshufflings reach the observed value, or as many as rule out significance.
ENOUGH = 10
# From so many coordinates on, the ratios to one background along a path are found without a factor for each.
LEAST_POOLED = 400
# Numbers in all rows up to which a relabeling is for one thread.
SINGLE_THREADED = 2**20
# Reshufflings that find out how the values along a path vary by chance.
N_PILOT = 20

# Told of the component, the reshufflings made, the most that there can be, and the seconds that these would take.
Listener = Callable[[int, int, int, float], None]


def permutation_test(
    target: KeptRows,
    backgrounds: Sequence[KeptRows],
    problem: Problem,
    *,
    n_components: int | None = None,
    level: float = 0.05,
    n_permutations: int = 199,
    seed: int = 0,
    scale: float | None = None,
    n_jobs: int | None = None,
    progress: bool | Listener = False,
    subjects: Sequence[Subjects] | None = None,
) -> ComponentTest:
    """How many components are larger than those of reshuffled rows, or of reshuffled subjects?

    Reshuffling ends as soon as it is clear that a component is not significant: after `ENOUGH` reshufflings that reach
    it (Besag and Clifford, 1991). Where a parameter was chosen by the data, each reshuffling counts with the value of
    the parameter at which it is largest, in units of its spread by chance, so that the p-value holds for every rule of
    choosing. Rows on a device are reshuffled there, by random numbers of the host: equal rows get equal p-values on
    every device.

    Rows of weight zero are left out. Weights that users gave stay at their places while the rows change places. Weights
    that follow from the rows go with them.

    Parameters
    ----------
    target : RowMoments or CentredRows
    backgrounds : sequence of RowMoments or CentredRows
    problem : Problem
    n_components : int or None, default=None
        How many to test; None means until the first that is not significant.
    level : float, default=0.05
    n_permutations : int, default=199
        Most reshufflings for each component.
    seed : int, default=0
    scale : float or None, default=None
        Variance by which the target is divided first, if it is larger in all directions.
    n_jobs : int or None, default=None
        Number of processes, -1 for one per core. None is this process, in which BLAS has its threads if the rows are
        many. The answer does not depend on it.
    progress : bool or callable, default=False
        Show a progress bar on standard error, or call a function after each reshuffling, with the number of the
        component, the reshufflings made, the most that there can be, and the seconds that these would take.
    subjects : sequence of Subjects, optional
        Which rows of each dataset belong together. Whole subjects are then dealt, and each dataset is centred at a
        robust middle of the means of its subjects.

    Returns
    -------
    ComponentTest

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import gather
    >>> from standout.selection._permutation import permutation_test
    >>> from standout.selection._problem import Problem
    >>> rng = np.random.default_rng(0)
    >>> target, background = rng.normal(size=(40, 5)) * [1, 1, 1, 1, 4], rng.normal(size=(60, 5))
    >>> moments = [gather(rows, kind="rows") for rows in (target, background)]
    >>> problem = Problem.of_shrinkage(np.ones(1), np.zeros(1))
    >>> test = permutation_test(moments[0], moments[1:], problem)
    >>> test.n_significant, test.n_permutations
    (1, 209)
    """
    used = problem.weights > 0.0
    if problem.choose_weights is not None:
        used[:] = True
    problem = problem.used(used)
    given = [target, *(background for background, is_used in zip(backgrounds, used, strict=True) if is_used)]
    totals = np.array([dataset.total_variance for dataset in given[1:]])
    parted = [_parted(dataset) for dataset in given]
    datasets, placed = [part.dataset for part in parted], _placed(parted)
    dealing = None
    if subjects is not None:
        named = [own for own, is_used in zip(subjects, [True, *used], strict=True) if is_used]
        dealing = Dealing.of(chosen_subjects(named, [part.chosen for part in parted]), placed)
        dealing.check(level)
    sizes = tuple(dataset.count for dataset in datasets)
    n_features = target.n_features
    ridged = problem.is_ridged
    ridged = ridged or problem.laplacian is not None
    if problem.alphas is None and not ridged and sum(sizes[1:]) - len(sizes) + 1 < n_features:
        reject_singular_background()

    # A direction in which no row varies would have the least value of all.
    spanned = (n_features > sum(sizes) or problem.side != "target") and problem.laplacian is None
    basis, parts = in_span(datasets) if spanned else (None, [dataset.centred_rows() for dataset in datasets])
    if problem.alphas is None and problem.side != "target" and sizes[0] - 1 < parts[0].shape[1]:
        _reject_singular_target()
    # Rows with weights that go with them come times the roots of these.
    each = [_roots_of_weights(dataset, part) for dataset, part in zip(datasets, parts, strict=True)]
    roots = None if all(dataset.row_weights is None for dataset in datasets) else concat(each)
    if dealing is None and roots is None:
        parts = [part - spatial_median(part) for part in parts]
    else:
        if dealing is None:
            middles = [spatial_median(part, own) for part, own in zip(parts, each, strict=True)]
        else:
            means = dealing.means(stacked(parts), roots)
            middles = [middle_of_few(take(means, np.flatnonzero(dealing.homes == home))) for home in range(len(parts))]
        parts = [part - own[:, None] * middle for part, own, middle in zip(parts, each, middles, strict=True)]
    if scale is not None:
        parts[0] = parts[0] / sqrt(scale)
    rows = stacked(parts)
    most = min(rows.shape[1], sizes[0] - 1)
    asked = check_n_components(1 if n_components is None else n_components, n_features, most)
    at_places = None if placed is None else np.sqrt(placed)
    plain_ratio = ridged and problem.alphas is None and problem.choose_weights is None and problem.side == "target"
    plain_ratio = plain_ratio and problem.counts is None and problem.laplacian is None
    by_spectrum = (
        plain_ratio
        and problem.n_values > 1
        and len(datasets) == 2
        and float(problem.weights[0]) == 1.0
        and not is_foreign(rows)
    )
    of_total = problem.of_total and placed is not None
    most_made, n_ways = n_permutations, None
    if dealing is not None and dealing.n_relabelings <= n_permutations + 1:
        n_ways = int(dealing.n_relabelings)
        most_made = n_ways - 1
    answers: list[_Answer] = []
    while len(answers) < (most if n_components is None else asked):
        by_gram = plain_ratio and not of_total and max(sizes[0], sum(sizes[1:])) < rows.shape[1]
        plain = Pool.of(rows, sizes, np.zeros(len(totals)), n_features, by_gram=False, roots=roots, placed=at_places)
        scatters = plain.dealt(np.arange(rows.shape[0]))
        # The ridge is a share of each background's whole variance. What lies along the components already found is
        # no longer exchangeable: it stays as it is, and only the rest goes with the reshuffled rows.
        held = np.maximum(totals - variances_of(scatters[1:], sizes[1:]), 0.0)
        pool = replace(plain, held=held, n_without=sum(dataset.count for dataset in given) - sum(sizes))
        if problem.laplacian is not None:
            turned = None if basis is None else product(basis.T, product(problem.laplacian, basis))
            pool = replace(pool, rough=problem.laplacian if turned is None else turned)
        if problem.counts is not None and basis is not None:
            pool = replace(pool, basis=basis, squares=product(rows, basis.T) ** 2)
        fitted = problem.fitted or problem
        solution = solve(pencil_of(pool, scatters, fitted), 1, side=problem.side)
        value = float(solution.values[0])
        if solution.singular and problem.alphas is None:
            reject_singular_background()
        if solution.n_missing:
            _reject_singular_target()
        if problem.counts is not None:
            value = pool.on_columns(scatters, fitted, np.arange(rows.shape[0]))[0]
        if of_total:
            pool = replace(pool, units=np.array([part.unit for part in parted]))
            squares, turn = eigh(pool.total_scatter(scatters, np.arange(rows.shape[0])))
            pool = replace(pool, metric=product(turn * namespace(turn).sqrt(squares), turn.T))
        if by_gram or dealing is not None:
            dealt = rows if dealing is None else dealing.stretched(rows, roots)
            made = Pool.of(dealt, sizes, held, n_features, by_gram=by_gram, roots=roots)
            pool = replace(pool, rows=made.rows, total=made.total, total_row=made.total_row, gram=made.gram)
            if problem.counts is not None and basis is not None:
                pool = replace(pool, squares=product(dealt, basis.T) ** 2)
        # With fewer rows of the background than columns iterations converge slowly.
        if (
            by_spectrum
            and roots is None
            and placed is None
            and not by_gram
            and LEAST_POOLED <= rows.shape[1] < sizes[1]
        ):
            pool = replace(pool, spectrum=PooledSpectrum.of(pool.rows))
        # Threads of BLAS wait for each other longer than these products take, and far longer on a busy machine.
        threads = 1 if not is_foreign(rows) and rows.size <= SINGLE_THREADED else None
        with _listening(progress, len(answers), most_made) as told, threadpool_limits(threads, user_api="blas"):
            test = _Sequence(pool, problem, value, seed, len(answers), n_jobs, dealing)
            answers.append(test.answer(most_made, level, told))
        if n_components is None and answers[-1].p_value > level:
            break
        # The pattern is that of all columns, also where few are chosen: a filter on few columns leaves more of the same
        # component in others.
        rows = _without(rows, solution.patterns[:, 0])
        if problem.counts is not None or problem.laplacian is not None:
            # The rows of the basis turn as the rows of the data do.
            turned = like(np.eye(n_features), rows) if basis is None else basis
            basis = _without(turned, solution.patterns[:, 0])
            problem = problem.with_fewer_components()
    factor = scale or 1.0
    # Each component has its own side where both are looked at.
    return concluded(
        [factor * answer.value for answer in answers],
        [answer.p_value for answer in answers],
        [factor * problem.value_of(answer.edge, answer.value) for answer in answers],
        "permutation",
        level,
        n_permutations=sum(answer.n_pilot + answer.n_made for answer in answers),
        scale=scale,
        unit="rows" if dealing is None else dealing.kind,
        n_made=[answer.n_made for answer in answers],
        n_ways=n_ways,
    )


def _reject_singular_target() -> NoReturn:
    raise InvalidValueError(
        "the target covariance is singular: its least ratio is 0, and that of reshuffled rows as well",
        advice="Exchange target and background, whose shrinkage makes that ratio finite.",
    )


class _Parted(NamedTuple):
    """The rows of a dataset that have a weight, with the weights that go with them, and those that stay."""

    dataset: KeptRows
    chosen: npt.NDArray[np.bool_]
    placed: Float | None
    unit: float


def _parted(dataset: KeptRows) -> _Parted:
    """Leave out rows of weight zero, and tell weights that go with their rows from those that stay at their places.

    Weights that users give do not depend on the rows. If they went with the rows, two datasets of one distribution, but
    of different weights, would differ more than their reshufflings. Weights that follow from the rows are part of them.
    """
    if dataset.row_weights is None:
        return _Parted(dataset, np.ones(dataset.count, dtype=np.bool_), None, 1.0)
    assert isinstance(dataset, CentredRows)
    weights = to_host(dataset.row_weights)
    learned = np.ones(len(weights)) if dataset.learned is None else to_host(dataset.learned)
    chosen = weights > 0.0
    placed = weights[chosen] / learned[chosen]
    constant = bool(np.ptp(placed) <= SAME_WEIGHT * placed.max())
    rows = dataset.rows if chosen.all() else take(dataset.rows, chosen)
    found: KeptRows = RowMoments(rows, single=False)
    if dataset.learned is not None:
        own = learned[chosen]
        found = CentredRows(rows, like(own, rows) if is_foreign(rows) else own)
    return _Parted(found, chosen, None if constant else placed / placed.mean(), float(placed.mean()))


def _placed(parted: Sequence[_Parted]) -> Float | None:
    """Give the weights that stay at their places, of all datasets; None if they are equal in each."""
    if all(part.placed is None for part in parted):
        return None
    return np.concatenate([np.ones(part.dataset.count) if part.placed is None else part.placed for part in parted])


def _roots_of_weights(dataset: KeptRows, rows: Float) -> Float:
    """Give the roots of the weights of rows."""
    weights = np.ones(dataset.count) if dataset.row_weights is None else to_host(dataset.row_weights)
    return like(np.sqrt(weights), rows)


@dataclass(frozen=True)
class _Answer:
    """What was found for one component."""

    value: float
    p_value: float
    edge: float
    n_made: int
    n_pilot: int


@dataclass(frozen=True, eq=False)
class _Sequence:
    """The test of one component: reshufflings one after the other, until the answer is clear."""

    pool: Pool
    problem: Problem
    observed: float
    seed: int
    number: int
    n_jobs: int | None
    dealing: Dealing | None

    def answer(self, n_permutations: int, level: float, told: Callable[[int], None]) -> _Answer:
        """Reshuffle at most so many times."""
        rng = np.random.default_rng([self.seed, self.number])
        centre, spread = np.zeros(1), np.ones(1)
        # A reshuffling that deals the rows as they were has the same value up to rounding.
        observed = self.problem.extremity(self.observed)
        observed -= 1e-9 * abs(observed)
        n_pilot = 0
        if self.problem.n_values > 1:
            # How values vary by chance along the path. It depends on the pool of rows alone, not on how they are dealt,
            # so that the p-values that follow are exact.
            pilot = self._scaled(np.array(list(islice(self._values(rng, N_PILOT), N_PILOT))))
            n_pilot = len(pilot)
            with np.errstate(invalid="ignore"):
                centre, spread = pilot.mean(axis=0), np.maximum(pilot.std(axis=0), 1e-12 * abs(pilot.mean(axis=0)))
            own = centre[self.problem.position], spread[self.problem.position]
            observed = float((self._scaled(observed) - own[0]) / own[1])
        significant = int(np.sum(np.arange(1, n_permutations + 2) / (n_permutations + 1) <= level))
        enough = max(ENOUGH, significant)
        chance: list[float] = []
        reached = 0
        for values in self._values(rng, n_permutations):
            if self.problem.n_values > 1:
                values = (self._scaled(values) - centre) / spread
            chance.append(float(np.max(values)))
            # What is no number, as where a pilot has an infinite ratio, is no evidence.
            reached += not chance[-1] < observed
            told(len(chance))
            if reached == enough:
                break
        n_made = len(chance)
        stopped = reached == enough and n_made < n_permutations
        p_value = reached / n_made if stopped else (1 + reached) / (n_made + 1)
        ordered = np.sort(chance)
        rank = max(int(np.sum(np.arange(1, n_made + 2) / (n_made + 1) <= level)), 1)
        edge = float(ordered[-rank])
        if self.problem.n_values > 1:
            edge = float(edge * own[1] + own[0])
            edge = edge if self.problem.alphas is not None else float(np.exp(edge))
        return _Answer(self.observed, p_value, edge, n_made, n_pilot)

    def _scaled(self, values: Float | float) -> Float:
        """Ratios are compared by their logarithms."""
        with np.errstate(divide="ignore"):
            return np.asarray(values if self.problem.alphas is not None else np.log(values))

    def _values(self, rng: np.random.Generator, count: int) -> Iterator[Float]:
        """Give the values of one reshuffling after the other; several processes change nothing but the time."""
        n_rows, sizes = self.pool.rows.shape[0], self.pool.sizes
        orders: Iterator[Draw] = ((rng.permutation(n_rows), sizes, None) for _ in range(count))
        if self.dealing is not None:
            orders = self.dealing.draws(rng, count)
        if self.n_jobs in (None, 1):
            for order in orders:
                yield self.pool.values(self.problem, *order)
            return
        with Parallel(n_jobs=self.n_jobs) as work:
            # A few at a time: the first ones may be enough.
            while batch := list(islice(orders, 2 * effective_n_jobs(self.n_jobs))):
                yield from work(delayed(self.pool.values)(self.problem, *order) for order in batch)


@contextmanager
def _listening(progress: bool | Listener, component: int, most: int) -> Iterator[Callable[[int], None]]:
    """Give the function that is told how many reshufflings were made."""
    start = monotonic()
    if callable(progress):
        listener = progress
        yield lambda made: listener(component, made, most, (monotonic() - start) * (most - made) / made)
        return
    with progress_bar(f"component {component + 1}", most, shown=bool(progress)) as advance:
        yield lambda made: advance(1)


def _without(rows: Float, pattern: Float) -> Float:
    """Give the rows in coordinates of the directions orthogonal to a pattern.

    For the pattern ``B u`` of a component these are the directions v with ``vᵀB u = 0``, in which the next component is
    the largest. A Householder reflection turns the pattern into the first coordinate, which is then left out. If
    the component is real, the rows lose what it added, and the target loses one degree of freedom. The reshuffled
    groups lose none, so that the following tests are conservative.
    """
    mirror = pattern / sqrt(sum_of_squares(pattern))
    mirror[0] += copysign(1.0, float(mirror[0]))
    along = product(rows, mirror[:, None])
    step = mirror[1:] * (2.0 / sum_of_squares(mirror))
    return rows[:, 1:] - along * step


def spatial_median(rows: Float, roots: Float | None = None) -> Float:
    """Where is the middle of these rows, for all but a few far ones?

    The point with the least sum of distances to the rows, by Weiszfeld's iteration. Rows are reshuffled about this
    point of their dataset rather than about its mean. An outlier draws the mean towards itself and so leaves a trace in
    all rows of its dataset, which reshuffling then spreads over all groups: with 15 rows of a t-distribution with three
    degrees of freedom that made 7 % of false alarms out of the promised 5 %. The ratios themselves are about means.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    roots : ndarray of shape (n,), optional
        Roots of the weights of the rows, which come times these.

    Returns
    -------
    ndarray of shape (d,)

    Examples
    --------
    >>> import numpy as np
    >>> from standout.selection._permutation import spatial_median
    >>> spatial_median(np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 4.0], [2.0, 999.0]])).round()
    array([2., 3.])
    """
    xp = namespace(rows)
    counts = xp.ones_like(rows[:, 0])
    if roots is not None:
        rows, counts = rows / roots[:, None], roots**2
    middle: Float = xp.mean(rows, axis=0) if roots is None else weighted_sum(counts / xp.sum(counts), rows)
    # A row at the middle itself has weight enough to hold it there, and not an infinite one.
    nearest = 1e-9 * sqrt(float(xp.sum(counts * squared_lengths(rows - middle)) / xp.sum(counts))) or 1.0
    for _ in range(N_STEPS):
        weights = counts / xp.clip(xp.sqrt(squared_lengths(rows - middle)), nearest, None)
        middle = weighted_sum(weights / xp.sum(weights), rows)
    return middle
