"""How many components are real: one question, two ways to answer it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from standout import contrast
from standout._arrays import Float, dense, double
from standout._checks import as_seed, check_whole, is_number
from standout._messages import InvalidTypeError, InvalidValueError, dataset_names
from standout._params import check_level, check_shrinkage, check_test, check_weights
from standout._xp import all_ratios, cholesky, to_host
from standout.moments import KeptRows, Moments, gather, ledoit_wolf
from standout.pencil import solve
from standout.selection._analytic import ComponentTest, analytic_test, chance_law, survival
from standout.selection._dealing import subjects_of
from standout.selection._inputs import (
    Given,
    GivenBackgrounds,
    Opened,
    gather_all,
    keeps_rows,
    open_datasets,
    require_rows,
)
from standout.selection._permutation import Listener, permutation_test
from standout.selection._problem import Problem
from standout.sources import Source, Subjects

# Rows times columns squared beyond which a permutation takes more than about a second.
QUICKLY_PERMUTED = 4e10
# Bytes of all rows up to which data that are read in parts are brought into memory.
MOST_KEPT = 2**28
# Shrinkage up to this share is as good as none.
HARDLY_SHRUNKEN = 0.01
# With fewer rows tails cannot be told.
ENOUGH_ROWS = 100
# Rows whose tails are looked at, at most.
TAIL_ROWS = 2000
# Mean fourth power of standardised columns (3 for a Gaussian), and variance of the rows' squared lengths in units of a
# Gaussian's, beyond which tails are heavy.
HEAVY_COLUMNS, HEAVY_LENGTHS = 3.5, 1.5
# Chance of taking a target for larger in all directions.
SCALE_LEVEL = 0.01
# Up to this many columns all ratios are looked at.
MOST_RATIOS = 2000


def component_test(
    X: Given,
    background: GivenBackgrounds,
    *,
    method: str = "auto",
    n_components: int | None = None,
    background_weights: Any = None,
    shrinkage: Any = None,
    level: float = 0.05,
    n_permutations: int = 199,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: bool | Listener = False,
    groups: Any = None,
    background_groups: Any = None,
) -> ComponentTest:
    """How many components of the target are more than chance?

    Even where the target and the backgrounds are drawn from one and the same distribution, the largest ratio of their
    variances is well above 1: it is the largest over all directions. This test knows how far above 1, and takes one
    component after the other until the first that chance explains.

    Parameters
    ----------
    X : array-like, sparse matrix, frame, array of another library, iterator of such, or Moments
        The target. Arrays of other libraries (PyTorch, CuPy ...) are worked on where they lie, as in
        `standout.DiscriminativePCA`; the answer, a few numbers, is the host's.
    background : dataset, or list or tuple of datasets
        One background, or several, each in any form that X may have.
    method : {"auto", "analytic", "permutation"}, default="auto"
        "auto": "analytic" where it is exact (no shrinkage, more background rows than features, no dataset with heavier
        tails than the Gaussian's) or where the rows cannot be reshuffled, "permutation" elsewhere.
        "analytic": by formula, for Gaussian rows and more background rows than features. Takes about as long as a fit,
        and reads moments and iterators of batches too. Rows with heavier tails than the Gaussian's, as measurements
        often have, make it find components that are not there.
        "permutation": by reshuffling rows among the datasets, each centred first, whatever the distribution that
        they share. Needs the rows, which are copied, and a fit for each reshuffling; goes with shrinkage, and thus
        with more features than rows.
    n_components : int or None, default=None
        How many components to test. None means until the first that is not significant, which is tested too.
    background_weights : array-like of shape (n_backgrounds,), default=None
        Weight of each background's covariance, scaled to sum 1. None means equal weights.
    shrinkage : None, float in [0, 1], "auto", or array-like of shape (n_backgrounds,), default=None
        Shrinkage of the backgrounds' covariances, as in `standout.DiscriminativePCA`; for "permutation" only. "auto" is
        found from the backgrounds as given, and kept for the reshuffled ones. Where the background rows are not many
        times the features, shrinkage finds weaker components than the plain ratio can.
    level : float, default=0.05
        The chance of a false alarm: of counting a component too many.
    n_permutations : int, default=199
        Most reshufflings for each component. They end earlier where a component is clearly not significant.
    random_state : int, RandomState instance or None, default=None
        Start of the reshuffling. None is a fixed start too: equal input gives equal output.
    n_jobs : int or None, default=None
        Number of processes that reshuffle, -1 for one per core. None is this process, in which BLAS has its threads if
        the rows are many. The answer does not depend on it.
    progress : bool or callable, default=False
        Show a progress bar on standard error while reshuffling (needs the extra "progress"), or call a function after
        each reshuffling, with the number of the component, the reshufflings made, the most that there can be, and the
        seconds that these would take.
    groups, background_groups : array-like of shape (n_samples,), default=None
        The subject of each row of X and of the background, as in `standout.DiscriminativePCA.fit`. Whole
        subjects are then reshuffled, always by "permutation". A subject in several datasets is swapped within itself.

    Returns
    -------
    ComponentTest
        With the ratios, their p-values, the edges beyond which they are significant, and how many of them are.

    Notes
    -----
    What is tested. The null hypothesis of the first component is that the target and all backgrounds share one
    covariance matrix. To reject it says: there is a direction in which the target varies more, relative to the
    backgrounds, than chance explains. The test of each following component takes the ones before it as real, and asks
    the same of what they leave.

    "permutation" takes all datasets to share one *distribution*, up to their means, and not their covariance alone:
    where the background has much heavier tails than the target, or the other way round, it finds components too often
    (of a Gaussian target against a background with tails of Student's t of 3 degrees and the same covariance, in 30 %
    at a level of 5 %).

    What is not tested:

    - Whether rows are independent. They must be, unless `groups` says which belong together: repeated measurements of
      the same mouse or successive seconds are not, and then p-values by rows are far too small.
    - Whether weights depend on the rows. Weights that were given stay at their places while rows change places. That is
      right for weights that any other rows would have been given as well. Weights that follow from the rows (robust
      ones, equal subjects) go with them. Rows of weight zero are left out.
    - Whether there are groups. A direction of larger variance may hold two clusters, or one that is wider.
    - Whether means differ: every dataset is centred by its own.
    - Whether a component is large enough to matter. With many rows small ratios become significant.
    - What was tried before. Columns, scalings, backgrounds or weights that were chosen because of their answer have
      been given more than one chance, and p-values do not know of it.
    - Which background the target differs from. If several backgrounds have different covariances, the null
      hypothesis is false already, and p-values are a guide only.

    "analytic": the logarithm of the largest ratio is, under the null hypothesis, a Tracy-Widom variable of order 1 up
    to a location and a scale, which for one background are those of Johnstone [1]_, with an error of second order; for
    several, of any weights, their generalisation is used. In simulations of Gaussian datasets without any component, 4
    to 5.5 % are found to have one at the level of 5 %; fewer, down to 2 %, where the backgrounds have hardly more
    rows than there are features.

    With subjects, whole subjects are dealt to the datasets, each of which is centred at a middle of the means of its
    subjects in which one that is far off hardly counts. The means are then stretched so that dealing them leaves, on
    average, the scatter that the datasets have: with few subjects, centring takes a good part of it away. A subject
    takes the weights of the place that it comes to; if it has another number of rows, in the same order along its rows.
    If there are no more relabelings than `n_permutations`, each is made once. A level needs 1 / level of them: at 0.05,
    three subjects in each of two datasets, or five that are in both.

    "permutation": a p-value is one plus the number of reshufflings with at least the observed ratio, by one plus the
    number of reshufflings. It can be no smaller than ``1 / (n_permutations + 1)``. As soon as so many reshufflings have
    reached the ratio that it cannot be significant, and ten at least, no more are made, and the p-value is their share
    (Besag and Clifford [2]_).

    Scale. Where every ratio of the datasets is above 1, the target varies more in all directions, and each of them
    would be significant. Then the target is divided by the median of the ratios first, and the answer says so in
    `scale`: a component is a direction that varies even more than the others. This needs more rows than features in
    every dataset.

    References
    ----------
    .. [1] I. M. Johnstone, "Multivariate analysis and Jacobi ensembles: largest eigenvalue, Tracy-Widom limits and
       rates of convergence", Annals of Statistics 36(6), 2008.
    .. [2] J. Besag, P. Clifford, "Sequential Monte Carlo p-values", Biometrika 78(2), 1991.

    Examples
    --------
    The target has one direction of its own, in which its variance is four times that of the background. The second
    ratio is above 1, too, but no more than chance makes it.

    >>> import numpy as np
    >>> from standout.selection import component_test
    >>> rng = np.random.default_rng(0)
    >>> background = rng.normal(size=(400, 10))
    >>> target = rng.normal(size=(200, 10)) * [2, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    >>> answer = component_test(target, background)
    >>> answer.n_significant
    1
    >>> answer.ratios.round(2), answer.edges.round(2)
    (array([4.2 , 1.56]), array([1.77, 1.72]))
    """
    check_test(method, "method", optional=False)
    level = check_level(level, "the chance of a false alarm", 0.05)
    datasets = open_datasets(X, background, groups, background_groups)
    subjects = subjects_of(datasets)
    if subjects is not None:
        method = check_not_by_formula(method, "method")
    weights = check_weights(background_weights, len(datasets) - 1)
    shares = _check_shares(shrinkage, len(datasets) - 1)
    shrunken = shares is None or bool(np.any(shares > 0.0))
    if method == "analytic" and shrunken:
        raise InvalidValueError(
            "does not go with the analytic test, which knows how plain ratios vary by chance",
            parameter="shrinkage",
            value=shrinkage,
            advice="Leave {p.shrinkage} out, or use {p.method:permutation}.",
        )
    n_permutations = _check_n_permutations(n_permutations, level)
    moments = [] if method == "permutation" else gather_all(datasets)
    if method == "auto":
        permuted = shrunken or (all(map(keeps_rows, datasets)) and not _is_exact(datasets, moments, weights))
        method = "permutation" if permuted else "analytic"
    if method == "analytic":
        target, *backgrounds = moments
        scale = common_scale(moments, weights)
        return analytic_test(target, backgrounds, weights, n_components=n_components, level=level, scale=scale)
    kept, *kept_backgrounds = _with_rows(datasets)
    if shares is None:
        shares = np.array([ledoit_wolf(part) for part in kept_backgrounds])
    return permutation_test(
        kept,
        kept_backgrounds,
        Problem.of_shrinkage(weights, shares),
        n_components=n_components,
        level=level,
        n_permutations=n_permutations,
        seed=as_seed(random_state),
        scale=common_scale([kept, *kept_backgrounds], weights, subjects),
        n_jobs=n_jobs,
        progress=progress,
        subjects=subjects,
    )


def check_not_by_formula(method: str | None, parameter: str) -> str:
    """Refuse the formula for rows that belong together; give the test that there is for them."""
    if method == "analytic":
        raise InvalidValueError(
            "is a formula for independent rows, but {p.groups} says which rows belong together",
            parameter=parameter,
            value=method,
            advice="Use {v.auto} or {v.permutation}, which deal whole subjects.",
        )
    return "permutation"


def test_components(
    datasets: Sequence[Opened],
    moments: Sequence[Moments],
    problem: Problem,
    *,
    method: str | None,
    n_components: int | None,
    seed: int,
    progress: bool | Listener,
    level: float,
    n_permutations: int,
    n_jobs: int | None,
) -> ComponentTest:
    """Test the components of datasets, the target first, whose moments a fit has gathered already.

    Without a `method`, or with "auto", the analytic test is taken where it is exact, and the permutation test elsewhere
    if all rows are in memory and not very many. Others are tested by the formula, too, if there are enough.
    """
    target, *backgrounds = moments
    fitted = problem.fitted or problem
    weights, shares = fitted.weights, fitted.shares[0]
    plain = problem.fitted is None and np.all(shares <= HARDLY_SHRUNKEN) and problem.choose_weights is None
    plain = plain and problem.counts is None and problem.laplacian is None
    own_side = problem.side == "target"
    permuted = False
    subjects = subjects_of(datasets)
    if method in (None, "auto") or subjects is not None:
        n_rows, n_features = sum(part.count for part in moments), target.n_features
        exact = plain and own_side and subjects is None and _is_exact(datasets, moments, weights)
        quick = n_rows * n_features * min(n_rows, n_features) <= QUICKLY_PERMUTED
        small = 8 * n_rows * n_features <= MOST_KEPT
        permuted = quick and all(keeps_rows(part) or (small and _is_read_again(part)) for part in datasets)
        possible = _degrees(backgrounds, weights) > n_features
        if subjects is not None:
            method = check_not_by_formula(method, "test")
        else:
            method = "analytic" if own_side and (exact or (possible and not permuted)) else "permutation"
    scale = common_scale(moments, weights, subjects) if own_side else None
    if method == "analytic":
        unshrunken = not np.any(shares > 0.0)
        return analytic_test(
            target,
            backgrounds,
            weights,
            None if unshrunken else shares,
            n_components=n_components,
            level=level,
            scale=scale,
        )
    kept, *kept_backgrounds = _with_rows(datasets, read_again=permuted)
    return permutation_test(
        kept,
        kept_backgrounds,
        problem,
        n_components=n_components,
        level=level,
        n_permutations=n_permutations,
        seed=seed,
        scale=scale,
        n_jobs=n_jobs,
        progress=progress,
        subjects=subjects,
    )


def _degrees(backgrounds: Sequence[Moments], weights: Float) -> int:
    used = (part.effective_count - 1.0 for part, weight in zip(backgrounds, weights, strict=True) if weight > 0.0)
    return int(sum(used))


def _is_exact(datasets: Sequence[Opened], moments: Sequence[Moments], weights: Float) -> bool:
    """Tell whether the analytic test of plain ratios is exact: enough rows, and no tails beyond the Gaussian's.

    Columns that depend on others count as exact: without shrinkage only the analytic test knows what to do with them.
    """
    if _degrees(moments[1:], weights) <= moments[0].n_features or any(part.weights is not None for part in moments):
        return False
    plain = contrast.discriminative(moments[0], moments[1:], weights, np.zeros(len(moments) - 1))
    if solve(plain, 1).singular:
        return True
    if min(part.count for part in moments) < ENOUGH_ROWS:
        return False
    return not any(has_heavy_tails(dataset) for dataset in datasets)


def has_heavy_tails(dataset: Opened) -> bool:
    """Tell, from some of the rows, whether a dataset has heavier tails than a Gaussian.

    Either the columns have, or the lengths of the rows, as where single rows are far off in many columns at once.
    False where there are no rows to look at.
    """
    if isinstance(dataset, Source) and dataset.again:
        rows = dataset.sample(TAIL_ROWS, np.random.default_rng(0))
    elif isinstance(dataset, KeptRows):
        rows = dataset.centred_rows()[:TAIL_ROWS]
    else:
        return False
    numbers = to_host(double(dense(rows)))
    centred = numbers - numbers.mean(axis=0)
    squares = centred**2
    variances = squares.mean(axis=0)
    varying = variances > 0.0
    if len(centred) < 2 or not varying.any():
        return False
    columns = np.mean(squares[:, varying] ** 2, axis=0) / variances[varying] ** 2
    lengths = squares.sum(axis=1)
    # Of Gaussian rows the lengths have a variance of twice the sum of the squared covariances.
    inner = centred @ centred.T if len(centred) < centred.shape[1] else centred.T @ centred
    spread = np.var(lengths) / (2.0 * np.sum(inner**2) / len(centred) ** 2)
    # In the worst case, one direction with nearly all of the variance, the spread has this standard error.
    surely = max(HEAVY_LENGTHS, 1.0 + 3.0 * np.sqrt(14.0 / len(centred)))
    return bool(np.mean(columns) > HEAVY_COLUMNS or spread > surely)


def common_scale(
    moments: Sequence[Moments], weights: Float, subjects: Sequence[Subjects] | None = None
) -> float | None:
    """Give the median of all ratios if every one of them is above 1, and None otherwise.

    None, too, if a dataset has too few rows, or too few subjects, for all ratios to mean something.
    """
    target, *backgrounds = moments
    n_features = target.n_features
    # Rows, or subjects, of unequal weights are worth as many of equal weights as Kish counts.
    counts = [part.effective_count for part in moments]
    if subjects is not None:
        counts = [own.n_here * part.effective_count / part.count for own, part in zip(subjects, moments, strict=True)]
    used = [count for count, weight in zip(counts[1:], weights, strict=True) if weight > 0.0]
    degrees = min(counts[0] - 1, sum(used) - len(used))
    if not 2 <= n_features <= MOST_RATIOS or degrees <= n_features:
        return None
    if target.total_variance <= float(np.dot(weights, [part.total_variance for part in backgrounds])):
        return None
    problem = contrast.discriminative(target, backgrounds, weights, np.zeros(len(backgrounds)))
    factor = cholesky(problem.b.matrix())
    if factor is None:
        return None
    ratios = all_ratios(problem.a.matrix(), factor)
    if ratios[0] <= 1.0:
        return None
    # With few columns all ratios may be above 1 by chance. The largest ratio of the background to the target, which is
    # the inverse of the smallest one, must be smaller than chance makes it, even if half of the directions are real
    # components.
    freedom, scales = np.array([counts[0] - 1.0]), np.array([sum(used) / counts[0]])
    centre, spread = chance_law(max(n_features // 2, 1), sum(used) - len(used), freedom, scales)
    if survival((-np.log(ratios[0]) - centre) / spread) < 1.0 - SCALE_LEVEL:
        return None
    return float(np.median(ratios))


def _is_read_again(dataset: Opened) -> bool:
    return isinstance(dataset, Source) and dataset.again


def _with_rows(datasets: Sequence[Opened], *, read_again: bool = False) -> list[KeptRows]:
    """Gather moments that keep the rows, of data that are read in parts only if `read_again`."""
    if not read_again:
        require_rows(datasets, "the permutation test")
    names = dataset_names(len(datasets))
    kept = [
        dataset if isinstance(dataset, Moments) else gather(dataset, kind="rows", single=False, name=name)
        for name, dataset in zip(names, datasets, strict=True)
    ]
    return [moments for moments in kept if isinstance(moments, KeptRows)]


def _check_n_permutations(n_permutations: Any, level: float) -> int:
    """Check that there are enough permutations for a p-value to reach the level."""
    n_permutations = check_whole(n_permutations, "n_permutations", least=0, advice="Give a number such as 199.")
    # The quotient is compared, as p-values are: a product with the level would be rounded differently.
    if 1.0 / (n_permutations + 1) > level:
        raise InvalidValueError(
            "is too few for {p.level} {level}: the smallest p-value is one by the number of permutations plus one",
            parameter="n_permutations",
            value=n_permutations,
            level=level,
            limit=max(int(np.ceil(1.0 / level)) - 1, 1),
            advice="Give at least {limit}, and better ten times as many.",
        )
    return n_permutations


def _check_shares(shrinkage: Any, n_backgrounds: int) -> Float | None:
    """Check a shrinkage for all backgrounds, or one for each; None comes back for "auto"."""
    if shrinkage is None or isinstance(shrinkage, str) or is_number(shrinkage):
        share = check_shrinkage(shrinkage)
        return None if share is None else np.full(n_backgrounds, share)
    advice = "Use {v.auto}, {v.None}, a number from 0 to 1, or one for each background."
    try:
        shares = np.asarray(shrinkage, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidTypeError(
            "is not a number, nor a list of numbers", parameter="shrinkage", value=shrinkage, advice=advice
        ) from None
    if shares.shape != (n_backgrounds,):
        raise InvalidValueError(
            "has shape {shape}, but the number of backgrounds is {limit}",
            parameter="shrinkage",
            shape=shares.shape,
            limit=n_backgrounds,
            advice=advice,
        )
    if not np.all((shares >= 0.0) & (shares <= 1.0)):
        raise InvalidValueError(
            "has a number outside [0, 1]", parameter="shrinkage", value=shares.tolist(), limit=(0, 1), advice=advice
        )
    return shares
