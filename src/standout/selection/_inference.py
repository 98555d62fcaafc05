"""Which components are distinguishable from chance: permutation tests of fitted models."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.utils.validation import check_is_fitted, check_random_state

from standout._arrays import Float, one_blas_thread
from standout._messages import InvalidValueError, warn_user
from standout._writing import tracked
from standout._xp import to_host
from standout.moments import learn_weights
from standout.problem import Problem
from standout.selection._leading import Statistic
from standout.selection._resample import centred, make_deck
from standout.sources import Mapped, Source, open_datasets, transformed

# A test can end early once ENOUGH draws reach the observed value. If the statistic uses several values of a path, the
# test has at least FIRST draws, because the spread of each value over the draws must be estimated.
ENOUGH, FIRST = 10, 19
# Values are equal up to rounding if their relative difference is less than this.
ROUNDING = 1e-7
# Maximum number of components to test, and number of components with all draws. Later components have fewer draws,
# because testing many real components would take minutes.
MOST_COMPONENTS, FIRST_COMPONENTS = 20, 3
# Fitted attributes of transformers that do not depend on the values of the data.
STATELESS = {"n_features_in_", "feature_names_in_", "_sklearn_output_config"}


@dataclass(frozen=True, eq=False)
class PermutationTest:
    """How many components are distinguishable from chance?

    Attributes
    ----------
    n_components : int
        Number of significant components. The chance that this number is too large is at most `level`.
    p_values : ndarray of shape (k,)
        The p-value of each tested component: the share of draws with at least the observed statistic. A p-value is
        never smaller than the p-value of the component before, because a component is significant only if all
        components before it are significant.
    statistics : ndarray of shape (k,)
        The statistic of the observed data, for each tested component. With a given shrinkage, α or ε, it is the
        logarithm of the leading ratio, or the leading difference of contrastive PCA. If the parameter was chosen by the
        data, it is the largest of the standardised values of the path.
    draws : list of ndarray
        The statistic of each draw, for each tested component.
    n_draws : tuple of int
        Number of draws for each p-value.
    level : float
    reason : str
        Why the test ended.
    unit : {"rows", "blocks", "subjects"}
        The units that are permuted, and assumed to be independent.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA, permutation_test
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(80, 5)) * [3, 1, 1, 1, 1], rng.normal(size=(90, 5))
    >>> test = permutation_test(DiscriminativePCA(2).fit(X, background=Y), X, background=Y)
    >>> test.n_components, test.p_values[0], test.unit
    (1, np.float64(0.005), 'rows')
    """

    n_components: int
    p_values: Float
    statistics: Float
    draws: list[Float] = field(repr=False)
    n_draws: tuple[int, ...]
    level: float
    reason: str
    unit: str


def permutation_test(
    model: Any,
    X: Any,
    *,
    background: Any = None,
    n_draws: int = 199,
    level: float = 0.05,
    n_components: int | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    progress: bool = False,
    **rows: Any,
) -> PermutationTest:
    """Which components of a model are distinguishable from chance?

    Even if two datasets have the same distribution, their leading ratio is well above 1, because it is the largest over
    all directions. In each draw of this test, the rows of all datasets are assigned to the datasets at random. The
    leading ratio of the data is compared with the leading ratios of the draws. Components are tested one after the
    other. Each component is removed before the next one is tested. The test ends at the first component that chance
    explains.

    Parameters
    ----------
    model : estimator or pipeline
        A fitted estimator of this package, or a pipeline with one as its last step.
    X : dataset
        The target, as in ``fit``.
    background : dataset, or list or tuple of datasets
        The backgrounds, as in ``fit``.
    n_draws : int, default=199
        Maximum number of draws per component; from the fourth component on at most ``2 / level - 1``. A test ends early
        if a component is clearly not significant. If there are fewer possible permutations, each is used once.
    level : float, default=0.05
        Chance that `n_components` of the result is too large.
    n_components : int or None, default=None
        Maximum number of components to test. None is the number of components of the model.
    n_jobs : int or None, default=None
        Number of threads. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws. None is a fixed seed.
    progress : bool, default=False
        Show a progress bar.
    **rows
        Further data of each row, as in ``fit``: y, groups, background_groups, sample_weight, background_sample_weight,
        adjust, background_adjust. With groups, whole subjects are permuted. For a subject in several datasets, its rows
        are swapped between these datasets. Weights stay in place when rows are permuted. Robust weights move with
        their rows.

    Returns
    -------
    PermutationTest

    Notes
    -----
    The null hypothesis is that all datasets have the same distribution. With ``center="own"``, their means may differ.
    Rows, or subjects if `groups` are given, must be independent. Repeated measurements of one subject are not
    independent.

    The test allows for all choices of the fit. Scales, columns and centres are computed anew in every draw. If
    shrinkage, α or ε was chosen by the data, the statistic is the largest over several values of the path, each
    standardised over the draws.

    Subjects with different numbers of rows are thinned to the same number of rows, in the observed data and in every
    draw. The statistic is averaged over up to five thinnings. With more than 4,000 rows and at most 1,024 columns, or
    if the rows are not in memory, random blocks of rows are permuted. At most 128 blocks in total have nearly the same
    power as single rows, and the time of a draw does not depend on the number of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA, permutation_test
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(2, 60, 8))
    >>> permutation_test(DiscriminativePCA(1).fit(X, background=Y), X, background=Y).n_components
    0
    """
    if not 0.0 < level < 1.0:
        raise InvalidValueError("is not between 0 and 1", parameter="level", value=level, advice="Use 0.05.")
    if 1.0 / (n_draws + 1) > level:
        problem = f"is too few for level={level:g}: the smallest p-value is 1 / (n_draws + 1)"
        advice = f"Use at least {int(np.ceil(1.0 / level)) - 1}, and better ten times as many."
        raise InvalidValueError(problem, parameter="n_draws", value=n_draws, advice=advice)
    estimator, sources, learned, posed = opened(model, X, background, rows)
    if isinstance(estimator.background_weights, str):
        # Use equal weights, because a rule for weights would have to be repeated in every draw.
        posed = replace(posed, weights=(1.0 / len(posed.weights),) * len(posed.weights))
    chosen = any(isinstance(getattr(estimator, name, None), str) for name in ("shrinkage", "alpha", "epsilon"))
    given: dict[str, Any] = {"level": level, "n_draws": n_draws, "n_jobs": n_jobs, "progress": progress}
    most = estimator.n_components_ if n_components is None else n_components
    given |= {"most": most, "seed": seed_of(random_state), "learned": learned}
    columns_chosen = isinstance(getattr(estimator, "n_columns", None), str)
    return count_components(sources, posed, chosen=chosen, columns_chosen=columns_chosen, **given)


def opened(
    model: Any, X: Any, background: Any, rows: dict[str, Any]
) -> tuple[Any, list[Source], list[Any] | None, Problem]:
    """Return the fitted estimator, the datasets and the problem, as draws need them.

    Returns
    -------
    estimator : estimator
        The model itself, or the estimator in a pipeline.
    sources : list of Source
        The datasets in the coordinates of the problem, after the earlier steps of a pipeline.
    learned : list of ndarray, or None
        The robust weights of each dataset. The weights in `sources` are already multiplied by them.
    problem : Problem
        The problem of the fit, with the chosen numbers.
    """
    # Use the best model of a search.
    model = getattr(model, "best_estimator_", model)
    steps = [step for _, step in getattr(model, "steps", [("", model)]) if hasattr(step, "transform")]
    place = next((number for number, step in enumerate(steps) if hasattr(step, "problem_")), len(steps) - 1)
    estimator = steps[place]
    check_is_fitted(estimator)
    sources = open_datasets(X, background, target_label=estimator.target_label, **rows)
    if len(sources) < 2:
        raise InvalidValueError("there is nothing to compare with", advice="Give `background`.")
    if sources[0].subjects is None and getattr(estimator, "_n_subjects", None) is not None:
        advice = "Pass `groups` and `background_groups` as in the fit."
        warn_user("the model was fitted with subjects, but single rows are permuted here", advice=advice)
    sources = [source if source.again else source.loaded() for source in sources]
    if place:
        if any(set(vars(step)) - set(step.get_params()) - STATELESS for step in steps[:place]):
            problem = "steps of the pipeline were fitted to the data, and are not fitted again in every draw"
            warn_user(problem, advice="To scale columns, use the parameter `scale` of the estimator.")
        sources = [transformed(source, steps[:place]).at_once() for source in sources]
    sources = [estimator._open(source, source.name) for source in sources]
    learned = None
    if estimator.robust is not None:
        # Use a copy, so that the model does not change.
        other = copy(estimator)
        if estimator.robust == "cells":
            sources = other._weighed(sources)
        learned = other.row_weights_
        for source, own in zip(sources, other.row_weights_, strict=True):
            if len(own) != source.count_rows():
                problem = f"{source.name} has {source.count_rows()} rows, but the fit had {len(own)}"
                raise InvalidValueError(problem, advice="Give the datasets of the fit: robust weights belong to rows.")
            if estimator.robust == "rows":
                source.weights = own if source.weights is None else own * source.weights
    if hasattr(estimator, "kernel"):
        estimator, mapping = copy(estimator), estimator.feature_map_
        if getattr(mapping, "counts", ()):
            # Subtract one mean over the rows of all datasets from the kernel values of a row. If the mean over each
            # dataset were subtracted separately, differences between the means of the datasets would be lost.
            estimator.feature_map_ = replace(mapping, counts=(sum(mapping.counts),))
        sources = [Mapped(source, estimator._coordinates, None).at_once() for source in sources]
    posed = estimator.problem_
    # Use the shrinkage of the fit as a number. The rule of Ledoit and Wolf needs sums that draws do not have.
    numeric = replace(posed, shrinkage=estimator.shrinkage_) if isinstance(posed.shrinkage, str) else posed
    return estimator, sources, learned, numeric


def seed_of(random_state: Any) -> int:
    """Return the seed of draws."""
    return 0 if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))


# --- one component after the other -----------------------------------------------------------------------------------


def count_components(
    sources: list[Source],
    problem: Problem,
    *,
    chosen: bool = False,
    columns_chosen: bool = False,
    learned: list[Any] | None = None,
    most: int = MOST_COMPONENTS,
    level: float = 0.05,
    n_draws: int = 199,
    n_jobs: int | None = None,
    seed: int = 0,
    progress: bool = False,
) -> PermutationTest:
    """How many components of these datasets are distinguishable from chance?

    Parameters
    ----------
    sources : list of Source
        The target first, in the coordinates of the problem.
    problem : Problem
        The problem after all choices, with numbers for shrinkage, α and ε.
    chosen, columns_chosen : bool
        Whether the regularisation, or the number of columns, was chosen by the data.
    learned : list of ndarray or None
        The robust weights of each dataset. The weights in `sources` are already multiplied by them.
    most : int
        Maximum number of components to test.
    level, n_draws, n_jobs, seed, progress
        As in `permutation_test`.

    Returns
    -------
    PermutationTest
    """
    learned = learned or [None] * len(sources)
    # Draws need all columns if they scale or choose columns.
    spanned = not columns_chosen and problem.scale is None and problem.n_columns is None
    deck = make_deck(sources, learned, problem, np.random.default_rng([seed, 1]), spanned, thinned=True)
    deck.plan.check(level)
    deck = centred(deck, problem.center == "own")
    if deck.scatters is None and any(own is not None for own in learned):
        # Learn the weights again from all rows together. Weights that were learned from the few rows of one dataset fit
        # these rows better than the rows of a deal.
        deck = replace(deck, weights=to_host(learn_weights(deck.rows)(deck.rows).weights))
    statistic = Statistic(deck, replace(problem, n_covariates=0), chosen, columns_chosen)
    most = min(most, deck.rows.shape[1], sources[0].count_rows() - 1)
    found: list[tuple[float, Float]] = []
    reason = f"all {most} components were tested"
    # For small products, threads of BLAS mostly wait for each other.
    with one_blas_thread(deck.rows.shape[1] ** 3):
        for number in range(most):
            if number == FIRST_COMPONENTS:
                n_draws = min(n_draws, int(np.ceil(2.0 / level - 1e-9)) - 1)
            shown = partial(tracked, total=n_draws, description=f"component {number + 1}", shown=progress)
            p_value, values = _component(statistic, n_draws, level, [seed, 2, number], n_jobs, shown)
            values = standardised(values)
            found.append((p_value, values.max(axis=1)))
            if p_value > level:
                reason = f"component {number + 1} is not distinguishable from chance"
                break
            if number + 1 < most:
                # Remove the component, at the value of the path with the largest observed statistic.
                statistic = statistic.without_leading(int(np.argmax(values[0])))
    # A component is significant only if all components before it are significant.
    p_values = np.maximum.accumulate([p_value for p_value, _ in found] or np.zeros(0))
    statistics, draws = np.array([values[0] for _, values in found]), [values[1:] for _, values in found]
    count, counts = int(np.sum(p_values <= level)), tuple(map(len, draws))
    return PermutationTest(count, p_values, statistics, draws, counts, level, reason, deck.plan.kind)


def _component(
    statistic: Statistic, n_draws: int, level: float, seed: list[int], n_jobs: int | None, shown: Any
) -> tuple[float, Float]:
    """Return the p-value of the leading component, and the values of the observed data and of the draws."""
    plan, every = statistic.deck.plan, statistic.deck.placed is None
    n_draws = int(min(n_draws, plan.n_ways - 1)) if every else n_draws
    # If more draws than this reach the observed value, the test with all draws would not be significant.
    allowed = int(np.floor(level * (n_draws + 1) + 1e-9)) - 1
    values = [statistic.values(np.arange(len(plan.homes)))]
    reached = 0
    deals = plan.deals(np.random.default_rng(seed), n_draws, every=every)
    work, size = Parallel(n_jobs=n_jobs or 1, prefer="threads"), 2 * effective_n_jobs(n_jobs or 1)
    # Compute a few draws at a time: the first draws may be enough, and joblib warns about unused results.
    batches = iter(lambda: list(islice(deals, size)), [])
    found = chain.from_iterable(work(delayed(statistic.values)(at) for at in batch) for batch in batches)
    for drawn in shown(found):
        values.append(drawn)
        if len(values) > min(FIRST, n_draws) or len(drawn) == 1:
            compared = standardised(np.array(values)).max(axis=1)
            reached = int(np.sum(compared[1:] >= compared[0] - ROUNDING * abs(compared[0])))
            if reached >= max(ENOUGH, allowed + 1) and len(values) <= n_draws:
                # Sequential test of Besag and Clifford (1991).
                return reached / (len(values) - 1), np.array(values)
    return (1 + reached) / len(values), np.array(values)


def standardised(values: Float) -> Float:
    """Return the values of a path, standardised over all draws. A path with one value is not changed.

    The statistic is the largest standardised value. The observed data and the draws are treated in the same way, so
    that the p-value is exact.

    Parameters
    ----------
    values : ndarray of shape (1 + n_draws, n_values)
        Values of the observed data, then of the draws.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.selection._inference import standardised
    >>> standardised(np.array([[4.0, 1.0], [1.0, 2.0], [1.0, 3.0]])).max(axis=1).round(2)
    array([1.41, 0.  , 1.22])
    """
    if values.shape[1] == 1:
        return values
    spread = values.std(axis=0)
    z: Float = (values - values.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    return z
