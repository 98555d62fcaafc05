"""Kernel discriminative PCA for one or several backgrounds, as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any

import numpy as np

from standout import contrast
from standout._arrays import Float, product
from standout._params import check_epsilon, check_side, check_weight_rule
from standout._xp import columns_as_rows, concat
from standout.estimators._base import unchanged_if_refused
from standout.estimators._facts import RowFacts
from standout.estimators._incremental import reject_rows_needed
from standout.estimators._kernel_base import Gathered, KernelTransformer
from standout.estimators._linear import warn_of_missing, warn_of_rounding
from standout.moments import Moments, ScatterMoments
from standout.pencil import Pencil, solve, solve_path
from standout.selection import (
    GroupSearch,
    HeldOutPath,
    LeftOut,
    Problem,
    choose_weights,
    judge,
    judge_path,
    require_rows,
    sampled_scores,
    search_groups,
)
from standout.sources import Backgrounds, Dataset, Source

# As shares of the mean diagonal entry of K Σ ωₖ Kₖ: the "scaled" epsilon, and the candidates of "clusters".
SCALED_EPSILON = 1e-3
EPSILONS = np.geomspace(1e-8, 1e2, 11)


class KernelDiscriminativePCA(KernelTransformer):
    """In which nonlinear views does the target vary while the backgrounds do not?

    Discriminative PCA in the feature space of a kernel: KdPCA for one background, KMdPCA for several (Algs. 2 and 4 of
    [1]_), kernel PCA for none (Remark 6). New rows can be projected, and large data are handled through landmarks.

    Parameters
    ----------
    n_components : int, default=2
        Number of components.
    kernel : str, callable, or list of such, default="rbf"
        A name that `sklearn.metrics.pairwise.pairwise_kernels` knows ("linear", "rbf", "poly", "laplacian", "sigmoid",
        "cosine", "chi2", ...); one of the paper's own, "gaussian" with ``exp(-|x - z|² / (2 bandwidth²))``,
        "homogeneous_polynomial" with ``(x·z)^degree``, "inhomogeneous_polynomial" with ``(x·z + coef0)^degree``;
        "precomputed" (see Notes); a callable of two rows; or a pair of a name and a dict of parameters. A list means
        a weighted sum of kernels (Remark 5).
    gamma : float, default=None
        Parameter of "rbf", "poly", "laplacian", "sigmoid" and "chi2"; None means scikit-learn's default, which is
        1 for "chi2" and ``1 / n_features`` for the rest.
    degree : float, default=3
        Degree of the polynomial kernels.
    coef0 : float, default=1
        Constant of the polynomial and sigmoid kernels.
    kernel_params : dict, default=None
        Other parameters of the kernel, such as ``{"bandwidth": 5.0}`` for "gaussian" or those of a callable. Without a
        bandwidth, "gaussian" takes the median distance between rows (`bandwidth_`).
    epsilon : float, "scaled", "held-out" or "clusters", default="scaled"
        The ridge ε of the paper, which is added to ``K Σ ωₖ Kₖ``. Its effect depends on the size of that matrix.
        "scaled" takes 1e-3 of its mean diagonal entry. "held-out" looks at 11 values from 1e-8 to 1e2 of that mean, and
        takes the largest one whose first component has, on rows that were not fitted, a ratio within one standard error
        of the largest. "clusters" chooses, without any label, a view that shows groups of the target which the
        backgrounds do not have, as in `DiscriminativePCA`. A nonlinear score can have any shape, so such a view is no
        evidence of groups. Where there are too few rows, or too many coordinates, for folds, both rules are "scaled".
    background_weights : array-like of shape (n_backgrounds,), str or None, default=None
        Weight of each background (ω in the paper), scaled to sum 1. None means equal weights; "worst-case", "best" and
        "spectral" are rules that choose them, as in `DiscriminativePCA`.
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
    rank : int, default=None
        Number of coordinates; landmarks of your own have their number. None means as many as `tol` asks for in the
        exact case, and 500 otherwise.
    tol : float, default=None
        Relative tolerance up to which the kernel matrix is factorised. In the exact case the kernel of each row with
        itself is met up to this share of the largest one; with "pivoted", the trace is met up to this share. None means
        1e-9 for kernels with values between 0 and 1 ("rbf", "gaussian", "laplacian"), and rounding error otherwise,
        because small directions can be those that stand out.
    approximation : {"auto", "exact", "pivoted", "fourier"} or array of shape (r, n_features), default="auto"
        "exact" uses the whole kernel matrix. "pivoted" chooses `rank` landmarks among the rows by randomly pivoted
        Cholesky; the kernel matrix never exists. An array holds landmarks of your own (Nyström). "fourier" takes `rank`
        random Fourier features ("rbf", "gaussian" and "laplacian" only). "auto" is "exact" up to 10,000 rows and
        "pivoted" beyond; see `standout.features.choose_approximation`. A kernel that is not positive semidefinite
        needs "exact".
    kernel_weights : array-like of shape (n_kernels,), "learn" or None, default=None
        Weights of a list of kernels: numbers, used as they are; None for equal ones with sum 1; or "learn" for weights
        with sum 1, learned together with the components and judged on rows held out.
    held_out : int or None, default=10
        Number of folds for `held_out_ratio_`: each is left out in turn, and the components that are found without it
        are judged on its rows. Fewer are used where a dataset has few rows, where there are many rows per column
        (20 or more: 5 folds) or more than 1,000 coordinates, and none beyond 8,192. None leaves them out.
    side : {"target", "background", "both"}, default="target"
        "background" finds what the backgrounds have and the target lacks: the directions with the least ratio, in
        ascending order. "both" finds the most extreme of the two ends, by the size of the logarithm of the ratio. The
        target has no ridge: directions that it lacks altogether have a ratio of 0 and come first, in the order of the
        backgrounds' variance. Exchange the datasets for a regularised answer.
    robust : {None, "rows", "cells"}, default=None
        What to do about rows and numbers that are out of place. "rows": rows far from all others, by their kernel
        coordinates, count less, by weights of a Student-t distribution. "cells": single numbers far from the others of
        their column are first replaced by what the rest of their row lets expect. Each dataset is weighed by itself.
        Weights are learned from all rows, or from a random sample of 5,000 (of an iterator, the first 5,000), and then
        kept: folds and tests use the same. What lies apart but close together, a rare group, keeps its weight.
        ``transform`` takes rows as they are.
    random_state : int, RandomState instance or None, default=None
        Seed of random landmarks, features and splits, and of the sample that `robust` learns from. None is a fixed seed
        too: equal input gives equal output.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Ratio of the target's variance to the backgrounds' plus the ridge, in descending order: λ of the paper.
    target_variance_ : ndarray of shape (n_components,)
        Variance of the target's scores; the scale is that of ``aᵀ(K Σ ωₖ Kₖ + ε I)a = 1``.
    background_variance_ : ndarray of shape (n_backgrounds, n_components)
        Variance of each background's scores.
    components_ : ndarray of shape (n_components, n_coordinates)
        The components in the coordinates of `feature_map_`. The target's mean has the larger score, the backgrounds'
        the smaller one.
    feature_map_ : FeatureMap
        The map from rows to coordinates.
    feature_mean_ : ndarray of shape (n_coordinates,)
        Mean of the target's coordinates, which is taken off all rows before projecting.
    residual_ : float
        Share of the kernel's trace that the coordinates leave out: the error certificate of an approximation. NaN
        for random Fourier features, which leave nothing out but are noisy.
    epsilon_ : float
        The ridge.
    held_out_ratio_ : ndarray of shape (n_components,)
        The target's variance by the backgrounds' weighted variance along each component, on rows that were not fitted:
        what new rows can be expected to show. Absent without a background, with ``held_out=None``, after
        ``partial_fit`` and ``merge``, and if there are too few rows.
    held_out_ratio_error_ : ndarray of shape (n_components,)
        Standard error of `held_out_ratio_`, by a jackknife over the folds.
    held_out_ : HeldOut
        The components and means without each fold, and the variances; there if `held_out_ratio_` is.
    group_search_ : GroupSearch
        How clearly each ε showed groups; only with ``epsilon="clusters"``.
    held_out_path_ : HeldOutPath
        How each ε fares on rows that were not fitted; only with ``epsilon="held-out"`` or "clusters".
    bandwidth_ : float
        The bandwidth of the kernel "gaussian", if none was given: the median distance between two of 500 random rows.
    kernel_weights_ : ndarray of shape (n_kernels,)
        Weights of the kernels.
    weights_ : ndarray of shape (n_backgrounds,)
        Weights of the backgrounds, with sum 1.
    approximation_ : str
        The kind of coordinates used: "exact", "pivoted", "landmarks" or "fourier".
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
    n_components_, n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features seen during fit; only if all are strings.

    See Also
    --------
    DiscriminativePCA : The linear method.
    KernelContrastivePCA : The difference of variances in place of the ratio.

    Notes
    -----
    Arrays of other libraries (PyTorch, CuPy ...) are worked on their own device, as in `DiscriminativePCA`, with all
    named kernels except "precomputed", and sums of these with given weights.

    With ``kernel="precomputed"``, ``fit(X, background=[Y1, ...])`` takes kernel values instead of rows: X of shape
    (m, n), each Yₖ of shape (nₖ, n), with ``n = m + n₁ + ...`` columns for all fitted rows, the target's first, then
    each background's. With `target_label`, X of shape (n, n) has rows and columns in the order of y. ``transform``
    takes the kernel of new rows with the same n rows in the same order.

    References
    ----------
    .. [1] J. Chen, G. Wang, G. B. Giannakis, "Nonlinear Dimensionality Reduction for Discriminative Analytics of
       Multiple Datasets", IEEE Transactions on Signal Processing 67(3), 2019.

    Examples
    --------
    Two circles, one inside the other, are hidden beside a third one that the background has, too.

    >>> from standout import KernelDiscriminativePCA
    >>> from standout.datasets import make_circles_one_background
    >>> from standout.metrics import clustering_error
    >>> data = make_circles_one_background()
    >>> kdpca = KernelDiscriminativePCA(kernel="homogeneous_polynomial", degree=2)
    >>> scores = kdpca.fit_transform(data.target, background=data.backgrounds)
    >>> clustering_error(scores, data.labels)
    0.0
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        kernel: Any = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        epsilon: Any = "scaled",
        background_weights: Any = None,
        subject_weights: str = "rows",
        variation: str = "all",
        blocks: int | str | None = None,
        target_label: Any = None,
        rank: int | None = None,
        tol: float | None = None,
        approximation: Any = "auto",
        kernel_weights: Any = None,
        held_out: int | None = 10,
        side: str = "target",
        robust: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.epsilon = epsilon
        self.background_weights = background_weights
        self.subject_weights = subject_weights
        self.variation = variation
        self.blocks = blocks
        self.target_label = target_label
        self.rank = rank
        self.tol = tol
        self.approximation = approximation
        self.kernel_weights = kernel_weights
        self.held_out = held_out
        self.side = side
        self.robust = robust
        self.random_state = random_state

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
    ) -> KernelDiscriminativePCA:
        """Find the components of the target X against the backgrounds.

        Parameters
        ----------
        X : dataset
            The target; with `target_label`, the rows of all datasets. In any form that `DiscriminativePCA.fit` takes.
            An iterator of batches needs coordinates that do not depend on the rows: ``approximation="fourier"`` or
            landmarks. From a scan or from Dask, landmarks are chosen among a random sample of the rows.
        y : array-like of shape (n_samples,), default=None
            Label of each row, with `target_label`; otherwise ignored.
        background : dataset, or list or tuple of datasets, default=None
            One background, or several, each in any form that X may have. None means kernel PCA of the target.
        groups, background_groups : array-like of shape (n_samples,), default=None
            The subject (mouse, donor, recording) of each row of X and of the background; for several backgrounds a list
            with one for each. Rows of a subject belong together: folds and permutations take whole subjects. A subject
            may be in several datasets. With `target_label`, `groups` is for the rows of all datasets.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row of X counts. Means and covariances are weighted ones.
            They must not be computed from the rows themselves: permutations leave them at their places.
        background_sample_weight : array-like, or list of array-like, default=None
            The same for the background; for several ones a list, in which None stands for equal weights.
        adjust, background_adjust : list of str, or table of shape (n_samples, n_covariates), default=None
            Covariates such as age, batch or depth, whose linear effect is taken out of each dataset first: names of
            columns (of frames, or kept beside the rows of tables and scans), or tables; for several backgrounds a list
            of tables. Words are categories. `transform` takes rows as they are.

        Returns
        -------
        KernelDiscriminativePCA
            The fitted estimator itself.
        """
        self._check_rules()
        with unchanged_if_refused(self):
            seed = self._seed()
            # Equal weights until a rule has chosen.
            given = None if isinstance(self.background_weights, str) else self.background_weights
            self._check_numbers()
            facts = RowFacts(
                sample_weight, background_sample_weight, groups, background_groups, adjust, background_adjust
            )
            datasets = self._datasets(X, y, background, facts)
            gathered = self._gather(datasets, y, given, np.random.default_rng(seed), kernel_rows=True)
            self._answer(gathered, seed)
            self._warn_if_alike(datasets)
        return self

    def _check_choices(self, datasets: list[Source]) -> None:
        if self._looks_for_groups and len(datasets) > 1:
            require_rows(datasets[:1], "epsilon='clusters'", sampled=True)

    def _answer(self, gathered: Gathered, seed: int) -> None:
        epsilon = check_epsilon(self.epsilon)
        plain, weights = gathered.found.mapping.plain_ridge, gathered.weights
        root, target, backgrounds = rooted(gathered.moments, plain)
        # The target's kernel rows have a problem of their own number; coordinates one of theirs.
        size = target.count if plain else gathered.found.mapping.n_coordinates
        iterative = size > (2000 if plain else 500) and 10 * self.n_components <= size
        solver = "lanczos" if iterative else "dense"
        if plain and gathered.keeps_rows and self.side == "target" and backgrounds:
            # The inner products of kernel rows: half of the arithmetic that factorising the background's matrix takes.
            solver = "reduced"

        scale = ridge_scale(target, backgrounds, weights)
        path, groups = self._searched(gathered, scale, seed)
        if path is not None:
            epsilon = float(path.parameters[groups.view if groups is not None and groups.found else path.chosen])
        if epsilon is None:
            epsilon = max(SCALED_EPSILON * scale, float(np.finfo(np.float64).tiny))
        if isinstance(self.background_weights, str) and backgrounds:
            weights = self._weights(target, backgrounds, epsilon, solver, self.n_components, seed)
        problem = contrast.kernel_discriminative(target, backgrounds, weights, epsilon)
        solution = solve(problem, self.n_components, solver=solver, seed=seed, side=self.side)
        warn_of_missing(solution)
        warn_of_rounding(solution, "Use a larger {p.epsilon}, for example {p.epsilon:scaled}.")
        vectors = solution.vectors if root is None else product(root.T, solution.vectors)
        vectors = vectors * gathered.signs(vectors)

        def solve_others(target: Moments, backgrounds: list[Moments], _: LeftOut) -> Float:
            root, target, backgrounds = rooted([target, *backgrounds], plain)
            problem = contrast.kernel_discriminative(target, backgrounds, weights, epsilon)
            found = solve(problem, self.n_components, solver=solver, seed=seed, side=self.side).vectors
            return found if root is None else product(root.T, found)

        held_out = None
        if gathered.folds is not None and self.held_out is not None:
            held_out = judge(solve_others, gathered.folds, weights, vectors, self.side, gathered.moments)
        self._keep(solution, target, backgrounds, weights)
        self._keep_coordinates(gathered)
        self._keep_held_out(held_out, gathered.found.parts)
        self.components_ = columns_as_rows(vectors)
        self.epsilon_ = epsilon
        self._keep_found(group_search_=groups, held_out_path_=path)

    def _weights(
        self, target: Moments, backgrounds: list[Moments], epsilon: float, solver: str, n_components: int, seed: int
    ) -> Float:
        """Choose the weights of the backgrounds by the rule that was asked for."""

        def pose(weights: Float) -> Pencil:
            return contrast.kernel_discriminative(target, backgrounds, weights, epsilon)

        return choose_weights(self.background_weights, pose, len(backgrounds), n_components, solver=solver, seed=seed)

    def tested_problem(self, weights: Float, seed: int) -> Problem:
        """Say what a test reshuffles: the fit, what its ε was chosen from, its weights."""
        path = self.held_out_path_.parameters[::2] if hasattr(self, "held_out_path_") else None

        def choose(target: Moments, backgrounds: list[Moments], _: Float, epsilon: float) -> Float:
            # Later components have fewer directions.
            n_ranked = min(self.n_components, target.n_features)
            return self._weights(target, backgrounds, epsilon, "dense", n_ranked, seed)

        by_rule = isinstance(self.background_weights, str) and len(weights) > 1
        return Problem.of_ridge(weights, self.epsilon_, path, choose if by_rule else None).of_side(self.side)

    def _searched(self, gathered: Gathered, scale: float, seed: int) -> tuple[HeldOutPath | None, GroupSearch | None]:
        """Look at several ε, if one of them is to be chosen by rows that were not fitted."""
        if not self._chooses_by_folds or gathered.folds is None:
            return None, None
        plain, weights = gathered.found.mapping.plain_ridge, gathered.weights

        def solve_path_of(target: Moments, backgrounds: list[Moments], values: Float) -> Float:
            root, target, backgrounds = rooted([target, *backgrounds], plain)
            pencils = [contrast.kernel_discriminative(target, backgrounds, weights, value) for value in values.tolist()]
            path = solve_path(pencils, 1, solver="dense", seed=seed, side=self.side)
            filters = concat([found.vectors[:, :1] for found in path], axis=1)
            return filters if root is None else product(root.T, filters)

        judged = judge_path(solve_path_of, scale * EPSILONS, gathered.folds, weights, side=self.side)
        if judged is None:
            return None, None
        path, views = judged
        if not self._looks_for_groups:
            return path, None
        counts = [part.count for part in gathered.moments]
        target, backgrounds = sampled_scores(views, gathered.found.parts, counts, seed, gathered.found.scores)
        return path, search_groups(path, target, backgrounds, np.ones(len(EPSILONS), dtype=bool))

    def _check_rules(self) -> None:
        """Check the rules that need no data to be checked."""
        check_epsilon(self.epsilon)
        chosen = {"epsilon": "clusters"} if self._looks_for_groups else {}
        if isinstance(self.background_weights, str):
            chosen["background_weights"] = check_weight_rule(self.background_weights)
        check_side(self.side, **chosen)

    def _check_incremental(self) -> None:
        super()._check_incremental()
        self._check_rules()
        if self._chooses_by_folds:
            reject_rows_needed("epsilon", self.epsilon, "Use {p.epsilon:scaled} or a number")

    @property
    def _looks_for_groups(self) -> bool:
        return isinstance(self.epsilon, str) and self.epsilon == "clusters"

    @property
    def _chooses_by_folds(self) -> bool:
        return isinstance(self.epsilon, str) and self.epsilon in ("held-out", "clusters")


def rooted(moments: list[Moments], plain_ridge: bool) -> tuple[Float | None, Moments, list[Moments]]:
    """Give the moments in coordinates in which the ridge is a multiple of the identity, and the root that maps them."""
    if plain_ridge:
        return None, moments[0], moments[1:]
    scatters = [part for part in moments if isinstance(part, ScatterMoments)]
    root = contrast.total_root(scatters)
    mapped: list[Moments] = [part.mapped(root) for part in scatters]
    return root, mapped[0], mapped[1:]


def ridge_scale(target: Moments, backgrounds: list[Moments], weights: Float) -> float:
    """Give the mean diagonal entry of ``K Σ ωₖ Kₖ``, or of ``K Kₓ`` where no background varies."""
    n_rows = target.total_weight + sum(background.total_weight for background in backgrounds)
    trace = float(np.dot(weights, [background.total_variance for background in backgrounds])) if backgrounds else 0.0
    return (trace or target.total_variance) / n_rows
