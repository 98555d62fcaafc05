"""Discriminative PCA for one or several backgrounds, as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from standout import contrast
from standout._arrays import Float
from standout._checks import require_background
from standout._messages import InvalidTypeError, InvalidValueError, warn_user
from standout._params import (
    SHRINKAGE_RULES,
    check_held_out,
    check_n_columns,
    check_n_components,
    check_shrinkage,
    check_side,
    check_solver,
    check_test,
    check_weight_rule,
    check_weights,
    is_auto,
)
from standout._xp import concat, like
from standout.estimators._base import unchanged_if_refused
from standout.estimators._facts import RowFacts
from standout.estimators._incremental import reject_rows_needed
from standout.estimators._linear import LinearFit, LinearSums, LinearTransformer, fit_linear, warn_of_trouble
from standout.graphs import Smooth, check_smooth, check_smoothness, column_graph
from standout.moments import Moments, ledoit_wolf
from standout.pencil import Pencil, Solution, solve, solve_path
from standout.private import PrivateMoments
from standout.selection import (
    PATH_FOLDS,
    SHRINKAGES,
    ComponentTest,
    FewColumns,
    GroupSearch,
    HeldOut,
    HeldOutPath,
    Problem,
    choose_weights,
    judge_path,
    require_rows,
    sampled_scores,
    search_groups,
    test_components,
)
from standout.sources import Backgrounds, Dataset, Source

# The shrinkages among which the last two rules choose: every second one of a path.
CHOICES = SHRINKAGES[::2]
# Beyond this shrinkage the backgrounds hardly count, and that is said.
NEARLY_PCA = 0.9
# Number of components that the choice of a solver assumes while it is not known.
PERHAPS = 10
# The strengths of smoothing among which the rule "held-out" chooses.
SMOOTHNESS = np.array([0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0])
# From this size on, iterations find a few vectors of a full matrix faster than LAPACK does.
LARGE = 1000
# Up to this size LAPACK finds a few vectors without a fold as fast as iterations do.
FEW = 600


@dataclass(frozen=True, eq=False)
class DiscriminativeFit(LinearFit):
    """What a discriminative fit found and chose.

    Attributes
    ----------
    shrinkage : ndarray of shape (n_backgrounds,)
    path : HeldOutPath or None
        How each shrinkage fares on rows that were not fitted, if one was chosen by that.
    groups : GroupSearch or None
        How clearly each shrinkage showed groups, if that was looked at.
    smooth : Smooth or None
        What is added for rough components.
    smoothness_path : HeldOutPath or None
        How each γ fares on rows that were not fitted, if one was chosen by that.
    test : ComponentTest or None
        Which components are real, if that was tested.
    solve_for : callable or None
        Gives the solution, its columns and its held-out ratios for a number of components that a test has found, if it
        is to be found. The second argument are the columns of the first component.
    """

    shrinkage: Float
    path: HeldOutPath | None = None
    groups: GroupSearch | None = None
    smooth: Smooth | None = None
    smoothness_path: HeldOutPath | None = None
    test: ComponentTest | None = None
    solve_for: Callable[[int, FewColumns | None], tuple[Solution, FewColumns | None, HeldOut | None]] | None = None


class DiscriminativePCA(LinearTransformer):
    """In which directions does the target vary while the backgrounds do not?

    Finds the filters u with the largest ratio of target variance to background variance, ``uᵀCxx u / uᵀB u``, with B
    the weighted and shrunken sum of the backgrounds' covariances: dPCA for one background, MdPCA for several (Algs. 1
    and 3 of [1]_), PCA for none (Remark 1).

    Parameters
    ----------
    n_components : int or "auto", default=2
        Number of components, at most the number of features. "auto" tests one component after the other, and keeps
        those before the first that is not real (see `test`). At least one is kept, with a warning if none is real.
    background_weights : array-like of shape (n_backgrounds,), str or None, default=None
        Weight of each background's covariance (ω in the paper), scaled to sum 1. None means equal weights, independent
        of the number of rows. "worst-case" takes the mixture with the smallest leading ratio. "best" takes the
        background with the largest one: the paper's joint maximisation, which always ends at a single background.
        "spectral" takes the view that depends least on the weights (the
        paper's option (i)). See `standout.selection`.
    shrinkage : "auto", "held-out", "clusters", float in [0, 1] or None, default="auto"
        How far each background covariance C is pulled towards a multiple of the identity,
        ``(1 - s) C + s (tr C / D) I``. "auto" is the Ledoit-Wolf estimate for each background, which vanishes as rows
        are added. "held-out" looks at 14 values from 0 to 1, and takes the largest one whose first component has, on
        rows that were not fitted, a ratio within one standard error of the largest. "clusters" chooses, without any
        label, a view that shows groups of the target which the backgrounds do not have: of the values at least as large
        as the best by "held-out" that keep half of its logarithmic ratio, the one at which a split into two explains
        most of the target's first score, beyond what it explains of the backgrounds'. If no groups are sure, it is
        "held-out". An even spread, as of a gradient, counts as groups, too: see `standout.selection.GroupSearch`, and
        look at the picture. A warning says so if a rule chooses more than 0.9, which is nearly PCA; where there are too
        few rows, or more than 8,192 columns and rows, for folds, both rules are "auto". None or 0 is the paper's
        formula. With about as many features as rows, or more, it finds directions in which the background
        varies little by chance alone. At 1, the directions are those of PCA.
    test : {"auto", "analytic", "permutation"} or None, default=None
        Test which components are real, for `p_values_`: see `standout.selection.component_test`. "auto", and None with
        ``n_components="auto"``, is "analytic" where that is exact, without shrinkage for Gaussian rows, and
        "permutation" elsewhere, which can take minutes (`verbose` shows the progress). Data that are read in parts, or
        very large, are tested by "analytic", which judges shrunken components by their unshrunken ratios and is
        conservative. A shrinkage that was chosen by rows or groups, and weights chosen by a rule, are allowed for in
        each permutation.
    held_out : int or None, default=10
        Number of folds for `held_out_ratio_`: each is left out in turn, and the components that are found without it
        are judged on its rows. Fewer are used where a dataset has few rows, where there are many rows per column
        (20 or more: 5 folds) or more than 1,000 columns, and none beyond 8,192. A fit with folds takes about 1.5 times
        as long as one without where there are many rows, and 2 to 6 times where there are few. None leaves them out.
    n_columns : int, "auto" or None, default=None
        Number of columns that the components may use; all others have zeros in `components_`. Columns are ranked by the
        pattern in units of the backgrounds' spread, ``|(B u)ⱼ| / √Bⱼⱼ``, each by its best rank in any component; the
        last third is left out, the same problem is solved on the others, and so on to this number. "auto" is the fewest
        columns whose held-out ratio (the mean of the components' logarithms) is within one standard error of the best,
        over 5 folds that choose columns of their own; where there are more columns than rows, it is all columns or at
        most half the number of rows. None is all columns.
    smooth : "chain", (height, width), sparse matrix or None, default=None
        Which columns are neighbours: each with the next one, pixels of an image, or a symmetric matrix of weights such
        as those of `standout.graphs`. ``γ (tr B / D) L`` is added to B, with L the graph's Laplacian, so that rough
        components count for less. It helps where the shared variation is rough, what stands out is smooth, and rows are
        few; elsewhere it does nothing. Up to 8,192 columns. With `n_columns` it weakens what is found: a component on
        few columns is rough where they end.
    smoothness : float or "held-out", default=1.0
        γ, with `smooth`. "held-out" looks at 0 and 9 values from 0.01 to 100, and takes the one whose first component
        has the largest ratio on rows that were not fitted.
    side : {"target", "background", "both"}, default="target"
        "background" finds what the backgrounds have and the target lacks: the directions with the least ratio, in
        ascending order. "both" finds the most extreme of the two ends, by the size of the logarithm of the ratio. The
        target itself is not shrunken: where it has fewer rows than there are columns, directions that it lacks
        altogether have a ratio of 0 and come first, in the order of the backgrounds' variance. Exchange the datasets
        for a regularised answer.
    robust : {None, "rows", "cells"}, default=None
        What to do about rows and numbers that are out of place. "rows": rows far from all others count less, by weights
        of a Student-t distribution. "cells": single numbers far from the others of their column are first replaced by
        what the rest of their row lets expect. Each dataset is weighed by itself. Weights are learned from all rows, or
        from a random sample of 5,000 (of an iterator, the first 5,000), and then kept: folds and tests use the same.
        What lies apart but close together, a rare group, keeps its weight. ``transform`` takes rows as they are.
    subject_weights : {"rows", "equal"}, default="rows"
        With `groups`: whether every row counts the same, or every subject, so that one with ten times the rows does not
        decide alone.
    variation : {"all", "within", "between"}, default="all"
        With `groups`: "within" takes off each subject's mean, and looks at what varies inside of subjects; "between"
        looks at the subjects' means alone. `transform` takes rows as they are.
    blocks : int, "auto" or None, default=None
        For rows in the order of time, where no subjects are named: so many neighbouring rows are taken as one subject.
        "auto" is 8 autocorrelation times of the leading scores, and at most a twelfth of the rows.
    target_label : object, default=None
        With a label here, ``fit(X, y)`` takes the rows with this label as target and the rows of each other label as
        one background, in sorted order.
    solver : {"auto", "dense", "root", "reduced", "lanczos", "lobpcg"}, default="auto"
        How the eigenproblem is solved. All solvers that apply give the same answer. See
        `standout.pencil.choose_solver` for the rule.
    random_state : int, RandomState instance or None, default=None
        Seed of permutations and of the sample that `robust` learns from, and start of the iterative solvers, whose
        answer depends on it only by rounding. None is a fixed seed, too: equal input gives equal output.
    verbose : bool, default=False
        Show a progress bar while rows are permuted (needs ``standout[progress]``).

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The filters, as rows: ``(X - mean_) @ components_.T`` are the scores. They are scaled to ``uᵀBu = 1``: along
        each, the (shrunken) background has unit variance, and the target's variance is the eigenvalue. Filters with an
        eigenvalue of ``inf`` have unit length.
    patterns_ : ndarray of shape (n_components, n_features)
        What each component looks like in the data, ``B u``. Look at these to interpret a component: a filter also has
        large entries for features that only cancel shared variation.
    eigenvalues_ : ndarray of shape (n_components,)
        Ratio of the target's to the (shrunken) background variance along each component, in descending order (see
        `side`); ``inf`` along a direction that the background does not have at all.
    target_variance_ : ndarray of shape (n_components,)
        Variance of the target's scores.
    background_variance_ : ndarray of shape (n_backgrounds, n_components)
        Variance of each background's scores.
    held_out_ratio_ : ndarray of shape (n_components,)
        The target's variance by the backgrounds' weighted variance along each component, on rows that were not fitted:
        what new rows can be expected to show. Absent without a background, with ``held_out=None``, after
        ``partial_fit`` and ``merge``, and if there are too few rows.
    held_out_ratio_error_ : ndarray of shape (n_components,)
        Standard error of `held_out_ratio_`, by a jackknife over the folds.
    held_out_ : HeldOut
        The components and means without each fold, and the variances; there if `held_out_ratio_` is.
    columns_ : ndarray of int
        The numbers of the columns that the components use, ascending; only with `n_columns`. See `get_support`.
    column_frequency_ : ndarray of shape (n_features,)
        In which share of the folds each column is chosen: sets of columns vary more than views do. Only with
        `n_columns`, if there are folds.
    smoothness_ : float
        γ; only with `smooth`.
    smoothness_path_ : HeldOutPath
        How each γ fares on rows that were not fitted; only with ``smoothness="held-out"``.
    columns_path_ : HeldOutPath
        How each number of columns fares on rows that were not fitted; only with ``n_columns="auto"``.
    mean_ : ndarray of shape (n_features,)
        Mean of the target.
    weights_ : ndarray of shape (n_backgrounds,)
        Weights of the backgrounds, with sum 1.
    shrinkage_ : ndarray of shape (n_backgrounds,)
        Shrinkage of each background.
    p_values_ : ndarray of shape (n_components,)
        p-value of each component; only with `test` or ``n_components="auto"``.
    component_test_ : ComponentTest
        All that the test found; only with `test` or ``n_components="auto"``.
    group_search_ : GroupSearch
        How clearly each shrinkage showed groups; only with ``shrinkage="clusters"``.
    held_out_path_ : HeldOutPath
        How each shrinkage fares on rows that were not fitted; only with ``shrinkage="held-out"`` or "clusters".
    background_labels_ : list
        Labels of the backgrounds; only with `target_label`.
    n_subjects_ : list of int
        Number of subjects of each dataset, the target first; only with `groups` or `blocks`.
    block_length_ : int
        Number of neighbouring rows that make a block; only with `blocks`.
    row_weights_ : list of ndarray of shape (n_samples,) or None
        With `robust`: how much each row of each dataset counts, the target first. A typical row has about 1. None for
        data that are read in parts: see `weigh`.
    outlying_rows_ : list of ndarray of int or None
        With `robust`: numbers of the rows of each dataset that lie far from all others.
    wild_cells_ : list of ndarray of shape (n_cells, 2) or None
        With ``robust="cells"``: row and column of each number that was replaced, for each dataset.
    robust_weights_ : list of RobustWeights
        With `robust`: what was learned of each dataset, its centre and scatter.
    solver_ : str
        The solver that was used.
    n_components_ : int
        Number of components.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features seen during fit; only if all are strings.

    See Also
    --------
    ContrastivePCA : The difference of variances in place of the ratio.
    KernelDiscriminativePCA : The same in the feature space of a kernel.
    standout.make_pipeline : Pipelines that transform the backgrounds as they do the target.
    sklearn.decomposition.PCA : The same without a background.

    Notes
    -----
    Scaling columns changes the answer only through the shrinkage. If you scale, scale target and backgrounds alike
    (see `standout.make_pipeline`): scaling each dataset by itself removes the difference between them.

    Arrays of other libraries (PyTorch, CuPy ...) are worked on their own device if scikit-learn's dispatch is on:
    ``sklearn.set_config(array_api_dispatch=True)``, with ``SCIPY_ARRAY_API=1`` in the environment. All datasets must
    then be of one library and on one device, and so are the fitted attributes (`to_numpy` copies a model to the host).
    Everything is computed in double precision, and all choices are made as for NumPy arrays. The solvers "lanczos" and
    "lobpcg" need NumPy arrays. `standout.io.on_device` is for data that are larger than the device.

    A singular background covariance (without shrinkage, or with a Ledoit-Wolf estimate of zero) is no error. Directions
    in which the target varies and the background does not come first, with an eigenvalue of ``inf``, ordered by the
    target's variance, and a warning says so.

    References
    ----------
    .. [1] J. Chen, G. Wang, G. B. Giannakis, "Nonlinear Dimensionality Reduction for Discriminative Analytics of
       Multiple Datasets", IEEE Transactions on Signal Processing 67(3), 2019.

    Examples
    --------
    Both datasets vary most along the first feature; the target alone varies along the last.

    >>> import numpy as np
    >>> from standout import DiscriminativePCA
    >>> rng = np.random.default_rng(0)
    >>> background = rng.normal(size=(500, 4)) * [10, 1, 1, 1]
    >>> target = rng.normal(size=(500, 4)) * [10, 1, 1, 3]
    >>> dpca = DiscriminativePCA(n_components=1).fit(target, background=background)
    >>> np.argmax(np.abs(dpca.components_))
    np.int64(3)
    >>> dpca.eigenvalues_.round(1)
    array([8.1])
    """

    def __init__(
        self,
        n_components: Any = 2,
        *,
        background_weights: Any = None,
        shrinkage: Any = "auto",
        test: str | None = None,
        held_out: int | None = 10,
        n_columns: Any = None,
        smooth: Any = None,
        smoothness: Any = 1.0,
        side: str = "target",
        robust: str | None = None,
        subject_weights: str = "rows",
        variation: str = "all",
        blocks: int | str | None = None,
        target_label: Any = None,
        solver: str = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.background_weights = background_weights
        self.shrinkage = shrinkage
        self.test = test
        self.held_out = held_out
        self.n_columns = n_columns
        self.smooth = smooth
        self.smoothness = smoothness
        self.side = side
        self.robust = robust
        self.subject_weights = subject_weights
        self.variation = variation
        self.blocks = blocks
        self.target_label = target_label
        self.solver = solver
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Dataset,
        y: Any = None,
        *,
        background: Backgrounds = None,
        groups: Any = None,
        background_groups: Any = None,
        sample_weight: Any = None,
        background_sample_weight: Any = None,
        adjust: Any = None,
        background_adjust: Any = None,
    ) -> DiscriminativePCA:
        """Find the components of the target X against the backgrounds.

        Parameters
        ----------
        X : dataset
            The target; with `target_label`, the rows of all datasets. An array (of NumPy or another library), a sparse
            matrix, a frame or a table is in memory. A scan of files (`standout.scan`), a Dask array or frame, and an
            iterator of batches are read in parts. An iterator is read once. Dask sums up its blocks where they are.
        y : array-like of shape (n_samples,), default=None
            Label of each row, with `target_label`; otherwise ignored.
        background : dataset, or list or tuple of datasets, default=None
            One background, or several, each in any form that X may have. None means PCA of the target.
        groups, background_groups : array-like of shape (n_samples,), default=None
            The subject (mouse, donor, recording) of each row of X and of the background; for several backgrounds a list
            with one for each. Rows of a subject belong together: folds and permutations take whole subjects. A subject
            may be in several datasets. With `target_label`, `groups` is for the rows of all datasets.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row of X counts. Means, covariances and shrinkage are weighted ones.
            They must not be computed from the rows themselves: permutations leave them at their places.
        background_sample_weight : array-like, or list of array-like, default=None
            The same for the background; for several ones a list, in which None stands for equal weights.
        adjust, background_adjust : list of str, or table of shape (n_samples, n_covariates), default=None
            Covariates such as age, batch or depth, whose linear effect is taken out of each dataset first: names of
            columns (of frames, or kept beside the rows of tables and scans), or tables; for several backgrounds a list
            of tables. Words are categories. `transform` takes rows as they are.

        Returns
        -------
        DiscriminativePCA
            The fitted estimator itself.
        """
        self._check_rules()
        solver = check_solver(self.solver, without=() if self.smooth is None else ("reduced", "lobpcg"))
        with unchanged_if_refused(self):
            facts = RowFacts(
                sample_weight, background_sample_weight, groups, background_groups, adjust, background_adjust
            )
            datasets = self._weighed(self._datasets(X, y, background, facts))
            self._check_choices(datasets)
            if self.smooth is not None and datasets[0].width is not None:
                # Before matrices of columns by columns are gathered.
                column_graph(self.smooth, datasets[0].width)
            seed = self._seed()
            fit = fit_linear(
                datasets,
                lambda sums, solver: self._answer(datasets, sums, solver, seed),
                n_components=int(self.n_components) if isinstance(self.n_components, int | np.integer) else PERHAPS,
                solver=self._filled_solver(datasets) if self.smooth is not None and solver == "auto" else solver,
                n_folds=check_held_out(self.held_out)
                or (PATH_FOLDS if self._chooses_by_folds or self._finds_n_columns or self._finds_smoothness else None),
                norms=isinstance(self.shrinkage, str),
            )
            self._keep_columns(datasets, fit.target.n_features)
            self._keep_fit(datasets, fit, seed)
            self._warn_if_alike(datasets)
        return self

    def _filled_solver(self, datasets: Sequence[Source]) -> str:
        """Choose a solver for a background whose matrix is full."""
        return "lanczos" if (datasets[0].width or 0) > LARGE and not datasets[0].on_device else "dense"

    def _keep_fit(self, datasets: Sequence[Source | Moments], fit: DiscriminativeFit, seed: int) -> None:
        """Test the components if asked to, warn of trouble, and keep the results."""
        if self.test is not None or is_auto(self.n_components):
            try:
                fit = self._tested(datasets, fit, seed)
            except (InvalidValueError, InvalidTypeError) as error:
                # "auto" tests where it can.
                if self.test != "auto" or is_auto(self.n_components):
                    raise
                reason = error.message
                problem = "the components were not tested: " + reason.problem
                warn_user(problem, finding=True, advice=reason.advice, limit=reason.limit, **reason.facts)
        warn_of_trouble(fit.solution)
        _warn_of_choices(fit, chosen=is_auto(self.n_components))
        self._keep_linear(fit, datasets)
        self.shrinkage_ = like(fit.shrinkage, self.mean_)
        self._keep_found(
            smoothness_=None if fit.smooth is None else fit.smooth.strength,
            smoothness_path_=fit.smoothness_path,
            component_test_=fit.test,
            p_values_=None if fit.test is None else like(fit.test.p_values[: self.n_components_], self.mean_),
            held_out_path_=fit.path,
            group_search_=fit.groups,
        )

    def _check_rules(self) -> None:
        """Check the rules that need no data to be checked."""
        check_shrinkage(self.shrinkage, rules=SHRINKAGE_RULES)
        chosen = {"shrinkage": "clusters"} if self._looks_for_groups else {}
        if isinstance(self.background_weights, str):
            chosen["background_weights"] = self.background_weights
        if self.test == "analytic":
            chosen["test"] = self.test
        check_side(self.side, **chosen)
        check_n_columns(self.n_columns)
        check_smooth(self.smooth, self.background_weights)
        check_smoothness(self.smoothness)

    def _check_incremental(self) -> None:
        self._check_rules()
        check_solver(self.solver)
        if self._finds_smoothness:
            reject_rows_needed("smoothness", self.smoothness, "Give {p.smoothness} as a number")
        if self._finds_n_columns:
            reject_rows_needed("n_columns", self.n_columns, "Give {p.n_columns} as a number")
        if self._chooses_by_folds:
            reject_rows_needed("shrinkage", self.shrinkage, "Use {p.shrinkage:auto} or a number")
        if check_test(self.test) == "permutation":
            reject_rows_needed("test", "permutation", "Use {p.test:analytic}")

    def _solve(self, sums: list[Any]) -> None:
        seed = self._seed()
        if len(sums) > 1:
            self._check_choices(sums)
        self._keep_fit(sums, self._answer([], LinearSums(sums), self.solver, seed), seed)

    def _n_wanted(self) -> int:
        return 1 if is_auto(self.n_components) else self.n_components

    def _check_choices(self, datasets: Sequence[Source | Moments]) -> None:
        """Refuse, before anything is read, what these datasets cannot be asked."""
        test, n_backgrounds = check_test(self.test), len(datasets) - 1
        if isinstance(self.background_weights, str):
            check_weight_rule(self.background_weights)
        else:
            check_weights(self.background_weights, n_backgrounds)
        if is_auto(self.n_components) or test is not None:
            require_background(n_backgrounds)
        if self._looks_for_groups and n_backgrounds:
            require_rows(datasets[:1], "shrinkage='clusters'", sampled=True)
        if test == "permutation":
            require_rows(datasets, "test='permutation'")

    @property
    def _looks_for_groups(self) -> bool:
        return isinstance(self.shrinkage, str) and self.shrinkage == "clusters"

    @property
    def _chooses_by_folds(self) -> bool:
        return isinstance(self.shrinkage, str) and self.shrinkage in ("held-out", "clusters")

    def _answer(self, datasets: Sequence[Source], sums: LinearSums, solver: str, seed: int) -> DiscriminativeFit:
        """Choose what is to be chosen, and solve; where the number of components is still to be found, for one."""
        target, *backgrounds = moments = sums.moments
        n_directions = sum(dataset.count - 1 for dataset in moments)
        auto = is_auto(self.n_components)
        n_components = 1 if auto else check_n_components(self.n_components, target.n_features, n_directions)
        smooth = self._smooth(target)
        if not backgrounds:
            alone = contrast.principal(target, smooth)
            solution = solve(alone, n_components, solver=solver, seed=seed, side=self.side)
            solution, few, _ = self._on_few_columns(
                alone,
                solution,
                sums,
                lambda target, _: contrast.principal(target, smooth),
                np.zeros(0),
                solver=solver,
                seed=seed,
                dense_size=FEW,
            )
            return DiscriminativeFit(target, [], np.zeros(0), solution, np.zeros(0), few=few, smooth=smooth)
        shrinkage = check_shrinkage(self.shrinkage, rules=SHRINKAGE_RULES)
        shares = (
            np.array([_found_shrinkage(background) for background in backgrounds])
            if shrinkage is None
            else np.full(len(backgrounds), shrinkage)
        )
        weights = self._weights(target, backgrounds, shares, solver, n_components, seed)
        path, groups = self._searched(datasets, sums, weights, seed, smooth)
        if path is not None:
            place = groups.view if groups is not None and groups.found else path.chosen
            shares = np.full(len(backgrounds), path.parameters[place])
            # What was chosen for another shrinkage is chosen again for this one.
            weights = self._weights(target, backgrounds, shares, solver, n_components, seed)
        smooth, rough_path = self._smoothed(sums, weights, shares, smooth, seed)
        problem = contrast.discriminative(target, backgrounds, weights, shares, smooth=smooth)

        def pose(target: Moments, backgrounds: list[Moments]) -> Pencil:
            """Pose the same problem without a fold; shrinkage by Ledoit and Wolf is that of the other folds."""
            own = shares
            if self.shrinkage == "auto":
                own = np.array([ledoit_wolf(background, sums.n_columns) for background in backgrounds])
            return contrast.discriminative(target, backgrounds, weights, own, n_columns=sums.n_columns, smooth=smooth)

        def solve_for(
            n_components: int, known: FewColumns | None = None
        ) -> tuple[Solution, FewColumns | None, HeldOut | None]:
            return self._on_few_columns(
                problem,
                solve(problem, n_components, solver=solver, seed=seed, side=self.side),
                sums,
                pose,
                weights,
                solver=solver,
                seed=seed,
                dense_size=FEW,
                known=known,
            )

        solution, few, held_out = solve_for(n_components)
        return DiscriminativeFit(
            target,
            backgrounds,
            weights,
            solution,
            shares,
            path=path,
            groups=groups,
            held_out=held_out,
            few=few,
            smooth=smooth,
            smoothness_path=rough_path,
            solve_for=solve_for if auto else None,
        )

    @property
    def fitted_smooth(self) -> Smooth | None:
        """What the fit has added for rough components."""
        if self.smooth is None:
            return None
        return Smooth(column_graph(self.smooth, self.n_features_in_, self.mean_), self.smoothness_)

    def _smooth(self, target: Moments) -> Smooth | None:
        """Give what is added for rough components; where that is still to be chosen, for the weakest."""
        if self.smooth is None:
            return None
        graph = column_graph(self.smooth, target.n_features, target.mean)
        return Smooth(graph, check_smoothness(self.smoothness) or 0.0)

    @property
    def _finds_smoothness(self) -> bool:
        return self.smooth is not None and isinstance(self.smoothness, str)

    def _smoothed(
        self, sums: LinearSums, weights: Float, shares: Float, smooth: Smooth | None, seed: int
    ) -> tuple[Smooth | None, HeldOutPath | None]:
        """Choose how strongly components are smoothed, if that is to be chosen, by rows that were not fitted."""
        if smooth is None or not self._finds_smoothness or sums.folds is None:
            return smooth, None

        def solve_path_of(target: Moments, backgrounds: list[Moments], values: Float) -> Float:
            own = shares
            if self.shrinkage == "auto":
                own = np.array([ledoit_wolf(background) for background in backgrounds])
            pencils = [
                contrast.discriminative(target, backgrounds, weights, own, smooth=replace(smooth, strength=value))
                for value in values.tolist()
            ]
            path = solve_path(pencils, 1, solver="dense", seed=seed, side=self.side)
            return concat([found.vectors[:, :1] for found in path], axis=1)

        judged = judge_path(solve_path_of, SMOOTHNESS, sums.folds, weights, side=self.side)
        if judged is None:
            return smooth, None
        # The largest one within a standard error would smooth far too much where rows are few.
        path = replace(judged[0], chosen=judged[0].best)
        return replace(smooth, strength=float(path.parameters[path.chosen])), path

    def _searched(
        self, datasets: Sequence[Source], sums: LinearSums, weights: Float, seed: int, smooth: Smooth | None
    ) -> tuple[HeldOutPath | None, GroupSearch | None]:
        """Look at all shrinkages, if one of them is to be chosen by rows that were not fitted."""
        if not self._chooses_by_folds or sums.folds is None:
            return None, None

        def solve_path_of(target: Moments, backgrounds: list[Moments], values: Float) -> Float:
            pencils = [
                contrast.discriminative(
                    target,
                    backgrounds,
                    weights,
                    np.full(len(backgrounds), share),
                    n_columns=sums.n_columns,
                    smooth=smooth,
                )
                for share in values
            ]
            path = solve_path(pencils, 1, solver="dense", seed=seed, side=self.side)
            return concat([found.vectors[:, :1] for found in path], axis=1)

        degrees = sum(part.count - 1 for part, weight in zip(sums.moments[1:], weights, strict=True) if weight > 0.0)
        # Without any shrinkage a background with fewer rows than columns has directions without variance.
        allowed = (CHOICES > 0.0) | (degrees * (PATH_FOLDS - 1) / PATH_FOLDS > sums.n_columns)
        judged = judge_path(solve_path_of, CHOICES, sums.folds, weights, allowed=allowed, side=self.side)
        if judged is None:
            return None, None
        path, views = judged
        if not self._looks_for_groups:
            return path, None
        if sums.span is not None:
            views = views.lifted(sums.span)
        target, backgrounds = sampled_scores(views, datasets, [part.count for part in sums.moments], seed)
        return path, search_groups(path, target, backgrounds, allowed)

    def _tested(self, datasets: Sequence[Source | Moments], fit: DiscriminativeFit, seed: int) -> DiscriminativeFit:
        """Test which components are real, and keep these if their number was to be found."""
        auto = is_auto(self.n_components)
        test = test_components(
            datasets,
            [fit.target, *fit.backgrounds],
            self.tested_problem(
                fit.weights,
                fit.shrinkage,
                fit.path is not None,
                seed,
                fit.few,
                fit.solution.values.shape[0],
                fit.smooth,
            ),
            method=self.test,
            n_components=None if auto else fit.solution.values.shape[0],
            seed=seed,
            progress=bool(self.verbose),
            level=0.05,
            n_permutations=199,
            n_jobs=None,
        )
        if fit.solve_for is not None and test.n_significant > 1:
            solution, few, held_out = fit.solve_for(test.n_significant, fit.few)
            fit = replace(fit, solution=solution, few=few, held_out=held_out)
        return replace(fit, test=test)

    def tested_problem(
        self,
        weights: Float,
        shares: Float,
        chosen: bool,
        seed: int,
        few: FewColumns | None,
        n_components: int,
        smooth: Smooth | None,
    ) -> Problem:
        """Say what a test reshuffles: the fit, what its shrinkage and its columns were chosen from, its weights."""
        # The plain ratio of a background with fewer rows than columns, at the start of the path, is infinite.
        path = CHOICES[1::2] if chosen else None

        def choose(target: Moments, backgrounds: list[Moments], shares: Float, _: float) -> Float:
            # The moments may be those of coordinates in the span of few rows, and later ones have fewer directions.
            n_ranked = min(self._n_wanted(), target.n_features)
            return self._weights(target, backgrounds, shares, "dense", n_ranked, seed, n_columns=self.n_features_in_)

        by_rule = isinstance(self.background_weights, str) and len(weights) > 1
        problem = Problem.of_shrinkage(weights, shares, path, choose if by_rule else None).of_side(self.side)
        if smooth is not None:
            strengths = SMOOTHNESS[::2] if self._finds_smoothness else None
            problem = problem.of_smoothness(smooth.graph.covariance(), smooth.strength, strengths)
        return problem if few is None else problem.of_columns(len(few.columns), few.numbers, n_components)

    def _weights(
        self,
        target: Moments,
        backgrounds: list[Moments],
        shares: Float,
        solver: str,
        n_components: int,
        seed: int,
        n_columns: int | None = None,
    ) -> Float:
        if not isinstance(self.background_weights, str):
            return check_weights(self.background_weights, len(backgrounds))

        def pose(weights: Float) -> Pencil:
            return contrast.discriminative(target, backgrounds, weights, shares, n_columns=n_columns)

        return choose_weights(self.background_weights, pose, len(backgrounds), n_components, solver=solver, seed=seed)


def _found_shrinkage(background: Moments) -> float:
    """Give the shrinkage by the rule of Ledoit and Wolf, or that which the known noise of private sums asks for."""
    return background.shrinkage if isinstance(background, PrivateMoments) else ledoit_wolf(background)


def _warn_of_choices(fit: DiscriminativeFit, *, chosen: bool) -> None:
    """Warn if what was looked for has not been found, or if a choice leaves the backgrounds without effect."""
    if fit.path is not None and float(np.max(fit.shrinkage)) > NEARLY_PCA:
        warn_user(
            "the shrinkage that was chosen is {share:.2f}: the backgrounds hardly count, and the view is nearly PCA's",
            share=float(np.max(fit.shrinkage)),
            advice="No view of the target against these backgrounds holds better on rows that were not fitted.",
            finding=True,
        )
    if chosen and fit.test is not None and fit.test.n_significant == 0:
        warn_user(
            "no component is real at level {level}: the p-value of the first is {p_value:.2g}",
            level=fit.test.level,
            p_value=fit.test.p_values[0],
            advice="One is kept.",
            finding=True,
        )
