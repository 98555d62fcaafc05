"""Which components of a fitted model are more than chance, with all that was chosen by the data allowed for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from standout import contrast
from standout._arrays import Float, double, product
from standout._checks import as_backgrounds, as_seed, check_whole, require_background
from standout._messages import InvalidTypeError, warn_user
from standout._params import check_level
from standout._xp import to_host
from standout.estimators._contrastive import ContrastivePCA, alphas_to_try, in_units
from standout.estimators._discriminative import DiscriminativePCA
from standout.estimators._facts import FACTS, RowFacts
from standout.estimators._kernel_base import KernelTransformer
from standout.estimators._kernel_contrastive import KernelContrastivePCA
from standout.estimators._kernel_discriminative import KernelDiscriminativePCA
from standout.features import KernelValueMap, exact_coordinates
from standout.moments import KeptRows, Moments, ScatterMoments, gather
from standout.selection import (
    ComponentTest,
    Opened,
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
from standout.sources import InMemory, beside

# By so large a share of the first value no rounding changes it.
OTHER_DATA = 1e-3
# About how many values of a list of α each permutation looks at.
SOME_ALPHAS = 8


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
    sample_weight: Any = None,
    background_sample_weight: Any = None,
    adjust: Any = None,
    background_adjust: Any = None,
) -> ComponentTest:
    """Which components of this fitted model are more than chance?

    The p-values belong to the fit: to its weights and its shrinkage, ε or α, and to its `variation`, `subject_weights`,
    `blocks` and `robust`. Where weights, shrinkage, ε or α were chosen by the data, the choice is allowed for in each
    permutation. Contrastive and kernel methods are tested by permutation, in coordinates of which the kernel is the
    inner product.

    Parameters
    ----------
    model : DiscriminativePCA, ContrastivePCA, KernelDiscriminativePCA or KernelContrastivePCA
        Fitted to these data.
    X, background : datasets
        The data of the fit; for a model with `target_label`, the rows of each label as a dataset of its own.
    n_components : int or None, default=None
        How many components to test. None means until the first that is not significant.
    method, level, n_permutations, random_state, n_jobs, progress
        As in `standout.selection.component_test`.
    groups, background_groups, sample_weight, background_sample_weight, adjust, background_adjust
        What was given to ``fit``. A warning says so if the first value is not that of the fit: then something is
        missing here, or the data are others.

    Returns
    -------
    ComponentTest
        For contrastive methods the ratios and edges are differences of variances. The first ratio of a permutation test
        is the first eigenvalue of the fit. Later ones are, too, unless a rule chose the weights of the backgrounds:
        each component then has weights of its own, chosen from what the components before it leave.

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
    if not isinstance(model, DiscriminativePCA | ContrastivePCA | KernelTransformer):
        raise InvalidTypeError(
            "{kind} has no test of its components", kind=type(model).__name__, advice="Give one of the four estimators."
        )
    check_is_fitted(model)
    level = check_level(level, "the chance of a false alarm", 0.05)
    n_permutations = check_whole(n_permutations, "n_permutations", least=1, advice="Give a number such as 199.")
    facts = RowFacts(sample_weight, background_sample_weight, groups, background_groups, adjust, background_adjust)
    datasets = _opened(model, X, background, facts)
    options: dict[str, Any] = {"n_components": n_components, "level": level, "n_permutations": n_permutations}
    options |= {"seed": as_seed(random_state), "n_jobs": n_jobs, "progress": progress}
    found = _tested(model, datasets, method, options)
    _warn_of_other_data(model, found)
    return found


def _opened(model: Any, X: Any, background: Any, facts: RowFacts) -> list[Opened]:
    """Open the data of a fit as the fit did; moments are taken as they are."""
    parts = [X, *as_backgrounds(background, X)]
    require_background(len(parts) - 1)
    if not any(isinstance(part, Moments) for part in parts):
        return [*model._opened_again(X, background, facts)]
    datasets = open_datasets(X, background)
    if any(getattr(facts, name) is not None for name in FACTS):
        require_rows(datasets, "what is said of rows (subjects, weights, covariates)")
    return datasets


def _tested(model: Any, datasets: list[Opened], method: str, options: dict[str, Any]) -> ComponentTest:
    """Test the components of a model whose data were opened as those of the fit."""
    weights, seed = to_host(model.weights_), options["seed"]
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
    options = {**options, "subjects": subjects_of(datasets)}
    parts: Sequence[Any] = datasets
    if isinstance(model, KernelTransformer):
        rows, own = _coordinates(model, datasets), [facts_of(part) for part in datasets]
        parts = [beside(InMemory(part), **some) for part, some in zip(rows, own, strict=True)]
    if isinstance(model, KernelDiscriminativePCA) and not model.feature_map_.plain_ridge:
        moments = [gather(part, kind="scatter", single=False) for part in parts]
        root = contrast.total_root([part for part in moments if isinstance(part, ScatterMoments)])
        turned = [product(part, root.T) for part in rows]
        parts = [beside(InMemory(part), **some) for part, some in zip(turned, own, strict=True)]
    gathered = [gather(part, kind="rows", single=False) for part in parts]
    target, *backgrounds = [part for part in gathered if isinstance(part, KeptRows)]
    if isinstance(model, KernelDiscriminativePCA):
        problem = replace(model.tested_problem(weights, seed), of_total=not model.feature_map_.plain_ridge)
    else:
        problem = _difference(model, target, backgrounds, weights)
    return permutation_test(target, backgrounds, problem, **options)


def _coordinates(model: KernelTransformer, datasets: Sequence[Opened]) -> list[Float]:
    """Give the rows of datasets in coordinates of which the kernel is the inner product, or as kernel rows."""
    mapping, rows = model.feature_map_, [rows_of(part) for part in datasets]
    if not isinstance(mapping, KernelValueMap):
        return [double(mapping.transform(part)) for part in rows]
    # The fit had such coordinates, as many as rows, and has not kept them.
    columns = np.arange(sum(part.shape[0] for part in rows))
    return exact_coordinates(mapping.kernel, rows, columns, model.tol, model.rank, kernel_rows=False)[1]


def _difference(
    model: ContrastivePCA | KernelContrastivePCA, target: Moments, backgrounds: Sequence[Moments], weights: Float
) -> Problem:
    """Pose the difference of variances, with a path if α was chosen by the data."""
    path = alphas_to_try(model.alpha, model.n_representatives)
    if isinstance(model.alpha, str):
        path = in_units(path, target, backgrounds, weights)
    path = path[:: max(len(path) // SOME_ALPHAS, 1)]
    problem = Problem.of_difference(weights, float(model.alpha_), path if len(path) > 1 else None).of_side(model.side)
    few = model.few_columns if isinstance(model, ContrastivePCA) else None
    return problem if few is None else problem.of_columns(len(few.columns), few.numbers, model.n_components_)


def _warn_of_other_data(model: Any, found: ComponentTest) -> None:
    """Warn if the first value that was tested is not that of the fit."""
    own, tested = float(to_host(model.eigenvalues_)[0]), float(found.ratios[0])
    size = float(to_host(model.target_variance_)[0])
    # The formula judges shrunken components by their plain ratios.
    if found.method == "permutation" and np.isfinite(own) and not abs(tested - own) <= OTHER_DATA * size:
        warn_user(
            "the first value of these data is {tested:.4g}, but that of the fit is {own:.4g}: these are not the "
            "p-values of the fit",
            tested=tested,
            own=own,
            advice="Give the data of the fit, with the same {p.groups}, {p.sample_weight} and {p.adjust}.",
        )
