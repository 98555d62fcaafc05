"""Which components of a fitted model are more than chance, with all that was chosen by the data allowed for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from standout._arrays import Float, double, product
from standout._checks import as_seed, check_whole
from standout._messages import InvalidTypeError
from standout._params import check_level
from standout._xp import to_host
from standout.estimators._contrastive import ContrastivePCA
from standout.estimators._discriminative import DiscriminativePCA
from standout.estimators._kernel_base import KernelTransformer
from standout.estimators._kernel_contrastive import KernelContrastivePCA
from standout.estimators._kernel_discriminative import KernelDiscriminativePCA, rooted
from standout.moments import CentredRows, Moments, RowMoments, gather, weighed
from standout.selection import (
    ALPHAS,
    ComponentTest,
    Problem,
    facts_of,
    gather_all,
    open_datasets,
    permutation_test,
    require_rows,
    rows_of,
    subjects_of,
    test_components,
)
from standout.sources import InMemory, Source, beside, in_blocks


def fitted_test(
    model: Any,
    X: Any,
    background: Any,
    *,
    n_components: int | None = None,
    method: str = "auto",
    level: float = 0.05,
    n_permutations: int = 199,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: Any = False,
    groups: Any = None,
    background_groups: Any = None,
) -> ComponentTest:
    """Which components of this fitted model are more than chance?

    The p-values belong to the fit: to its weights and its shrinkage, ε or α. Where one of these was chosen by the data,
    the choice is allowed for in each permutation. Contrastive and kernel methods are tested by permutation, in the
    kernel coordinates of the model.

    Parameters
    ----------
    model : DiscriminativePCA, ContrastivePCA, KernelDiscriminativePCA or KernelContrastivePCA
        Fitted to these data.
    X, background : datasets
        The data of the fit.
    n_components : int or None, default=None
        How many components to test. None means until the first that is not significant.
    method, level, n_permutations, random_state, n_jobs, progress, groups, background_groups
        As in `standout.selection.component_test`.

    Returns
    -------
    ComponentTest
        For contrastive methods the ratios and edges are differences of variances.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import ContrastivePCA
    >>> from standout.estimators import fitted_test
    >>> rng = np.random.default_rng(0)
    >>> target, background = rng.normal(size=(60, 5)) * [3, 1, 1, 1, 1], rng.normal(size=(60, 5))
    >>> cpca = ContrastivePCA(1).fit(target, background=background)
    >>> fitted_test(cpca, target, background).n_significant
    1
    """
    check_is_fitted(model)
    level = check_level(level, "the chance of a false alarm", 0.05)
    n_permutations = check_whole(n_permutations, "n_permutations", least=1, advice="Give a number such as 199.")
    datasets = open_datasets(X, background, groups, background_groups)
    if groups is None and hasattr(model, "block_length_"):
        # Rows are dealt in the blocks of the fit.
        datasets = [*in_blocks([part for part in datasets if isinstance(part, Source)], model.block_length_)]
    if hasattr(model, "robust_weights_"):
        # Rows keep the weights of the fit.
        datasets = [weighed(part, model._weighing(k))[0] for k, part in enumerate(datasets) if isinstance(part, Source)]
    weights, seed = to_host(model.weights_), as_seed(random_state)
    options: dict[str, Any] = {"n_components": n_components, "level": level, "n_permutations": n_permutations}
    options |= {"seed": seed, "n_jobs": n_jobs, "progress": progress}
    if isinstance(model, DiscriminativePCA):
        chosen = hasattr(model, "held_out_path_")
        problem = model.tested_problem(
            weights,
            to_host(model.shrinkage_),
            chosen,
            seed,
            model.few_columns,
            model.n_components_,
            model.fitted_smooth,
        )
        return test_components(datasets, gather_all(datasets), problem, method=method, **options)
    require_rows(datasets, "the permutation test")
    options["subjects"] = subjects_of(datasets)
    if isinstance(model, ContrastivePCA):
        return _permuted(datasets, _difference(model, weights), **options)
    if not isinstance(model, KernelTransformer):
        raise InvalidTypeError(
            "{kind} has no test of its components", kind=type(model).__name__, advice="Give one of the four estimators."
        )
    rows = [double(model.feature_map_.transform(rows_of(part))) for part in datasets]
    own = [facts_of(part) for part in datasets]
    coordinates = [beside(InMemory(part), **some) for part, some in zip(rows, own, strict=True)]
    if isinstance(model, KernelContrastivePCA):
        return _permuted(coordinates, _difference(model, weights), **options)
    assert isinstance(model, KernelDiscriminativePCA)
    moments: list[Moments] = [gather(part, kind="scatter", single=False) for part in coordinates]
    root, _, _ = rooted(moments, model.feature_map_.plain_ridge)
    if root is not None:
        turned = [product(part, root.T) for part in rows]
        coordinates = [beside(InMemory(part), **some) for part, some in zip(turned, own, strict=True)]
    path = model.held_out_path_.parameters[::2] if hasattr(model, "held_out_path_") else None
    return _permuted(coordinates, Problem.of_ridge(weights, model.epsilon_, path).of_side(model.side), **options)


def _permuted(datasets: Sequence[Any], problem: Problem, **options: Any) -> ComponentTest:
    kept = [gather(part, kind="rows", single=False) for part in datasets]
    with_rows = [part for part in kept if isinstance(part, RowMoments | CentredRows)]
    return permutation_test(with_rows[0], with_rows[1:], problem, **options)


def _difference(model: ContrastivePCA | KernelContrastivePCA, weights: Float) -> Problem:
    """Pose the difference of variances, with a path if α was chosen by the data."""
    given = not isinstance(model.alpha, str) and np.ndim(model.alpha) == 0
    problem = Problem.of_difference(weights, float(model.alpha_), None if given else ALPHAS[::5]).of_side(model.side)
    few = model.few_columns if isinstance(model, ContrastivePCA) else None
    return problem if few is None else problem.of_columns(len(few.columns), few.numbers, model.n_components_)
