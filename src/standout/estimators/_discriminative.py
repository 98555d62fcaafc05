"""Discriminative PCA for one or several backgrounds, as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from standout import contrast
from standout._arrays import Float
from standout._checks import require_background
from standout._messages import warn_user
from standout._params import (
    check_n_components,
    check_shrinkage,
    check_solver,
    check_test,
    check_weight_rule,
    check_weights,
    is_auto,
)
from standout._xp import like
from standout.estimators._base import unchanged_if_refused
from standout.estimators._incremental import reject_rows_needed
from standout.estimators._linear import LinearFit, LinearTransformer, fit_linear, warn_of_trouble
from standout.moments import Moments, ledoit_wolf
from standout.pencil import Pencil, solve
from standout.private import PrivateMoments
from standout.selection import (
    ComponentTest,
    GroupSearch,
    choose_weights,
    require_rows,
    search_shrinkage,
    test_components,
)
from standout.sources import Backgrounds, Dataset, Source

SHRINKAGE_RULES = ("auto", "clusters")
# Number of components that the choice of a solver assumes while it is not known.
PERHAPS = 10


@dataclass(frozen=True, eq=False)
class DiscriminativeFit(LinearFit):
    """What a discriminative fit found and chose.

    Attributes
    ----------
    shrinkage : ndarray of shape (n_backgrounds,)
    groups : GroupSearch or None
        How clearly each shrinkage showed groups, if that was looked at.
    test : ComponentTest or None
        Which components are real, if that was tested.
    solver : str
        The solver that was asked to solve.
    """

    shrinkage: Float
    groups: GroupSearch | None
    test: ComponentTest | None
    solver: str


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
        p-values do not account for that choice. "spectral" takes the view that depends least on the weights (the
        paper's option (i)). See `standout.selection`.
    shrinkage : "auto", "clusters", float in [0, 1] or None, default="auto"
        How far each background covariance C is pulled towards a multiple of the identity,
        ``(1 - s) C + s (tr C / D) I``. "auto" is the Ledoit-Wolf estimate for each background, which vanishes as rows
        are added. "clusters" chooses, without any label, the view that shows groups most clearly: of 27 values from 0
        to 1 the one at which a split into two groups explains the largest share of the first score's variance. If no
        view does so better than one Gaussian group would, a warning says so and "auto" is used. An even spread, as of a
        gradient, counts as groups, too: see `standout.selection.GroupSearch`, and look at the picture. None or 0 is the
        paper's formula. With about as many features as rows, or more, it finds directions in which the background
        varies little by chance alone. At 1, the directions are those of PCA.
    test : {"analytic", "permutation"} or None, default=None
        Test which components are real, for `p_values_`: see `standout.selection.component_test`. With
        ``n_components="auto"``, None means "permutation" if the data are small and there is some shrinkage, or if the
        backgrounds have no more rows than features (it can then take minutes, and `verbose` shows the progress).
        Otherwise it means "analytic", which assumes Gaussian rows. With shrinkage, the analytic test judges the fitted
        components by their unshrunken ratios, which is conservative.
    target_label : object, default=None
        With a label here, ``fit(X, y)`` takes the rows with this label as target and the rows of each other label as
        one background, in sorted order.
    solver : {"auto", "dense", "root", "reduced", "lanczos", "lobpcg"}, default="auto"
        How the eigenproblem is solved. All solvers that apply give the same answer. See
        `standout.pencil.choose_solver` for the rule.
    random_state : int, RandomState instance or None, default=None
        Seed of permutations, and start of the iterative solvers, whose answer depends on it only by rounding. None is a
        fixed seed, too: equal input gives equal output.
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
        Ratio of the target's to the (shrunken) background variance along each component, in descending order; ``inf``
        along a direction that the background does not have at all.
    target_variance_ : ndarray of shape (n_components,)
        Variance of the target's scores.
    background_variance_ : ndarray of shape (n_backgrounds, n_components)
        Variance of each background's scores.
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
    background_labels_ : list
        Labels of the backgrounds; only with `target_label`.
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
        target_label: Any = None,
        solver: str = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.background_weights = background_weights
        self.shrinkage = shrinkage
        self.test = test
        self.target_label = target_label
        self.solver = solver
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Dataset, y: Any = None, *, background: Backgrounds = None) -> DiscriminativePCA:
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

        Returns
        -------
        DiscriminativePCA
            The fitted estimator itself.
        """
        check_shrinkage(self.shrinkage, rules=SHRINKAGE_RULES)
        solver = check_solver(self.solver)
        with unchanged_if_refused(self):
            datasets = self._datasets(X, y, background)
            self._check_choices(datasets)
            seed = self._seed()
            fit = fit_linear(
                datasets,
                lambda moments, solver: self._answer(datasets, moments, solver, seed),
                n_components=int(self.n_components) if isinstance(self.n_components, int | np.integer) else PERHAPS,
                solver=solver,
                norms=isinstance(self.shrinkage, str),
            )
            self._keep_columns(datasets, fit.target.n_features)
            self._keep_fit(datasets, fit, seed)
        return self

    def _keep_fit(self, datasets: Sequence[Source | Moments], fit: DiscriminativeFit, seed: int) -> None:
        """Test the components if asked to, warn of trouble, and keep the results."""
        if self.test is not None or is_auto(self.n_components):
            fit = self._tested(datasets, fit, seed)
        warn_of_trouble(fit.solution)
        _warn_of_choices(fit, chosen=is_auto(self.n_components))
        self._keep_linear(fit)
        self.shrinkage_ = like(fit.shrinkage, self.mean_)
        for name in ("p_values_", "component_test_", "group_search_"):
            self.__dict__.pop(name, None)
        if fit.test is not None:
            self.component_test_ = fit.test
            self.p_values_ = like(fit.test.p_values[: self.n_components_], self.mean_)
        if fit.groups is not None:
            self.group_search_ = fit.groups

    def _check_incremental(self) -> None:
        check_shrinkage(self.shrinkage, rules=SHRINKAGE_RULES)
        check_solver(self.solver)
        if self._looks_for_groups:
            reject_rows_needed("shrinkage", "clusters", "Use {p.shrinkage:auto} or a number")
        if check_test(self.test) == "permutation":
            reject_rows_needed("test", "permutation", "Use {p.test:analytic}")

    def _solve(self, sums: list[Any]) -> None:
        seed = self._seed()
        if len(sums) > 1:
            self._check_choices(sums)
        self._keep_fit(sums, self._answer(sums, sums, self.solver, seed), seed)

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

    def _answer(
        self, datasets: Sequence[Source | Moments], moments: list[Moments], solver: str, seed: int
    ) -> DiscriminativeFit:
        """Choose shrinkage and weights, and solve: for one component, if their number is not known yet."""
        target, *backgrounds = moments
        n_directions = sum(dataset.count - 1 for dataset in moments)
        auto = is_auto(self.n_components)
        n_components = 1 if auto else check_n_components(self.n_components, target.n_features, n_directions)
        if not backgrounds:
            solution = solve(contrast.principal(target), n_components, solver=solver, seed=seed)
            return DiscriminativeFit(target, [], np.zeros(0), solution, np.zeros(0), None, None, solver)
        shrinkage = check_shrinkage(self.shrinkage, rules=SHRINKAGE_RULES)
        shares = (
            np.array([_found_shrinkage(background) for background in backgrounds])
            if shrinkage is None
            else np.full(len(backgrounds), shrinkage)
        )
        weights = self._weights(target, backgrounds, shares, solver, n_components, seed)
        groups = None
        if self._looks_for_groups:
            # Sums alone have been refused by now.
            assert isinstance(datasets[0], Source)
            groups = search_shrinkage(datasets[0], target, backgrounds, weights, solver=solver, seed=seed)
            if groups.chosen is not None:
                shares = np.full(len(backgrounds), groups.parameters[groups.chosen])
                # The weights were chosen for another shrinkage.
                weights = self._weights(target, backgrounds, shares, solver, n_components, seed)
        problem = contrast.discriminative(target, backgrounds, weights, shares)
        solution = solve(problem, n_components, solver=solver, seed=seed)
        return DiscriminativeFit(target, backgrounds, weights, solution, shares, groups, None, solver)

    def _tested(self, datasets: Sequence[Source | Moments], fit: DiscriminativeFit, seed: int) -> DiscriminativeFit:
        """Test which components are real, and keep these if their number was to be found."""
        auto = is_auto(self.n_components)
        test = test_components(
            datasets,
            [fit.target, *fit.backgrounds],
            fit.weights,
            fit.shrinkage,
            method=self.test,
            n_components=None if auto else fit.solution.values.shape[0],
            seed=seed,
            progress=bool(self.verbose),
        )
        solution = fit.solution
        if auto and test.n_significant > 1:
            problem = contrast.discriminative(fit.target, fit.backgrounds, fit.weights, fit.shrinkage)
            solution = solve(problem, test.n_significant, solver=fit.solver, seed=seed)
        return replace(fit, test=test, solution=solution)

    def _weights(
        self, target: Moments, backgrounds: list[Moments], shares: Float, solver: str, n_components: int, seed: int
    ) -> Float:
        if not isinstance(self.background_weights, str):
            return check_weights(self.background_weights, len(backgrounds))

        def pose(weights: Float) -> Pencil:
            return contrast.discriminative(target, backgrounds, weights, shares)

        return choose_weights(self.background_weights, pose, len(backgrounds), n_components, solver=solver, seed=seed)


def _found_shrinkage(background: Moments) -> float:
    """Give the shrinkage by the rule of Ledoit and Wolf, or that which the known noise of private sums asks for."""
    return background.shrinkage if isinstance(background, PrivateMoments) else ledoit_wolf(background)


def _warn_of_choices(fit: DiscriminativeFit, *, chosen: bool) -> None:
    """Warn if neither groups nor a real component were found."""
    if fit.groups is not None and fit.groups.chosen is None:
        warn_user(
            "no shrinkage shows more than one group: {verdict}",
            verdict=fit.groups.verdict,
            advice="{p.shrinkage:auto} is used.",
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
