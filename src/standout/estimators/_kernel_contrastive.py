"""Kernel contrastive PCA for one or several backgrounds, as a scikit-learn transformer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from standout import contrast
from standout._arrays import Float
from standout._params import check_side
from standout._xp import columns_as_rows, like, namespace
from standout.estimators._base import (
    unchanged_if_refused,
)
from standout.estimators._contrastive import alphas_to_try, chooses_by_folds, held_out_alphas, in_units
from standout.estimators._facts import (
    RowFacts,
)
from standout.estimators._incremental import reject_rows_needed
from standout.estimators._kernel_base import Gathered, KernelTransformer
from standout.features import KernelValueMap, LandmarkMap
from standout.moments import Moments, RobustWeights
from standout.pencil import solve
from standout.selection import HeldOut, LeftOut, choose_alpha, judge
from standout.sources import Backgrounds, Dataset

# Up to this many coordinates LAPACK finds the leading vectors as fast as iterations do.
DENSE_COORDINATES = 500


class KernelContrastivePCA(KernelTransformer):
    """In which nonlinear views does the target vary more than α times the backgrounds?

    Contrastive PCA [1]_ in the feature space of a kernel, for one or several backgrounds: the orthonormal directions u
    of that space with the largest ``uᵀ(Cxx - α Σ ωₖ Cₖ)u`` (KcPCA, a baseline of [2]_). Kernel PCA for no background,
    or for α = 0. New rows can be projected, and large data are handled through landmarks.

    Parameters
    ----------
    n_components : int, default=2
        Number of components.
    alpha : float, array-like, "auto" or "held-out", default="auto"
        How much the backgrounds count: a number, or a list to find representatives of, as in `ContrastivePCA`. "auto"
        is 0 and 40 values from 1e-3 to 1e3 (times a power of ten, where the variances of target and backgrounds differ
        that much). "held-out" chooses by rows that were not fitted.
    n_representatives : int, default=4
        How many α are to represent the list; fewer are given if fewer subspaces differ.
    kernel : str, callable, or list of such, default="rbf"
        The kernel, or several to be summed, as in `KernelDiscriminativePCA`. It must be positive semidefinite.
    gamma : float, default=None
        Parameter of "rbf", "poly", "laplacian", "sigmoid" and "chi2"; None means scikit-learn's default, which is
        1 for "chi2" and ``1 / n_features`` for the rest.
    degree : float, default=3
        Degree of the polynomial kernels.
    coef0 : float, default=1
        Constant of the polynomial and sigmoid kernels.
    kernel_params : dict, default=None
        Other parameters of the kernel, such as ``{"bandwidth": 5.0}`` for "gaussian" or those of a callable.
    background_weights : array-like of shape (n_backgrounds,), default=None
        Weight of each background, scaled to sum 1. None means equal weights.
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
        Number of coordinates, as in `KernelDiscriminativePCA`.
    tol : float, default=None
        Relative tolerance up to which the kernel matrix is factorised, as in `KernelDiscriminativePCA`.
    approximation : {"auto", "exact", "pivoted", "fourier"} or array of shape (r, n_features), default="auto"
        How rows become coordinates, as in `KernelDiscriminativePCA`.
    kernel_weights : array-like of shape (n_kernels,), "learn" or None, default=None
        Weights of a list of kernels, as in `KernelDiscriminativePCA` ("learn" judges by its ratio of variances).
    held_out : int or None, default=10
        Number of folds for `held_out_ratio_`: each is left out in turn, and the components that are found without it
        are judged on its rows. Fewer are used where a dataset has few rows, where there are many rows per column
        (20 or more: 5 folds) or more than 1,000 coordinates, and none beyond 8,192. None leaves them out.
    side : {"target", "background", "both"}, default="target"
        "background" finds what the backgrounds have and the target lacks: the directions with the least difference, in
        ascending order. "both" finds the most extreme of the two ends, by the size of the difference.
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
    components_ : ndarray of shape (n_components, n_coordinates)
        The components in the coordinates of `feature_map_`; in the feature space they are orthonormal. The target's
        mean has the larger score, the backgrounds' the smaller one.
    eigenvalues_ : ndarray of shape (n_components,)
        Difference of the target's and α times the backgrounds' variance along each component, in descending order.
    target_variance_ : ndarray of shape (n_components,)
        Variance of the target's scores.
    background_variance_ : ndarray of shape (n_backgrounds, n_components)
        Variance of each background's scores.
    alpha_ : float
        The α of `components_`. If it was not given: of the representatives, the one whose components have the largest
        ratios of variances on rows that were not fitted (the mean of their logarithms). Without folds
        (``held_out=None``, `partial_fit`), the one that holds the largest share of the target's variance beyond the
        share of the backgrounds' that it holds.
    alphas_ : ndarray of shape (n_representatives,)
        The representatives, in ascending order.
    candidates_ : ndarray of shape (n_representatives, n_components, n_coordinates)
        The components of each.
    feature_map_ : FeatureMap
        The map from rows to coordinates.
    feature_mean_ : ndarray of shape (n_coordinates,)
        Mean of the target's coordinates, which is taken off all rows before projecting.
    residual_ : float
        Share of the kernel's trace that the coordinates leave out; NaN for random Fourier features.
    kernel_weights_ : ndarray of shape (n_kernels,)
        Weights of the kernels.
    weights_ : ndarray of shape (n_backgrounds,)
        Weights of the backgrounds, with sum 1.
    held_out_ratio_ : ndarray of shape (n_components,)
        The target's variance by the backgrounds' weighted variance along each component, on rows that were not fitted:
        what new rows can be expected to show. Absent without a background, with ``held_out=None``, after
        ``partial_fit`` and ``merge``, and if there are too few rows.
    held_out_ratio_error_ : ndarray of shape (n_components,)
        Standard error of `held_out_ratio_`, by a jackknife over the folds.
    held_out_ : HeldOut
        The components and means without each fold, and the variances; there if `held_out_ratio_` is.
    held_out_path_ : HeldOutPath
        How each α fares on rows that were not fitted; only with ``alpha="held-out"``.
    bandwidth_ : float
        The bandwidth of the kernel "gaussian", if none was given: the median distance between two of 500 random rows.
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
    KernelDiscriminativePCA : The ratio of variances, without α.
    ContrastivePCA : The linear method.

    References
    ----------
    .. [1] A. Abid, M. J. Zhang, V. K. Bagaria, J. Zou, "Exploring patterns enriched in a dataset with contrastive
       principal component analysis", Nature Communications 9, 2134, 2018.
    .. [2] J. Chen, G. Wang, G. B. Giannakis, "Nonlinear Dimensionality Reduction for Discriminative Analytics of
       Multiple Datasets", IEEE Transactions on Signal Processing 67(3), 2019.

    Examples
    --------
    >>> from standout import KernelContrastivePCA
    >>> from standout.datasets import make_circles_one_background
    >>> data = make_circles_one_background()
    >>> kcpca = KernelContrastivePCA(kernel="homogeneous_polynomial", degree=2, alpha=2.0)
    >>> kcpca.fit_transform(data.target, background=data.backgrounds).shape
    (300, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        alpha: Any = "auto",
        n_representatives: int = 4,
        kernel: Any = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
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
        self.alpha = alpha
        self.n_representatives = n_representatives
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
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
    ) -> KernelContrastivePCA:
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
        KernelContrastivePCA
            The fitted estimator itself.
        """
        alphas_to_try(self.alpha, self.n_representatives)
        check_side(self.side)
        with unchanged_if_refused(self):
            seed = self._seed()
            self._check_numbers()
            facts = RowFacts(
                sample_weight, background_sample_weight, groups, background_groups, adjust, background_adjust
            )
            datasets = self._datasets(X, y, background, facts)
            rng = np.random.default_rng(seed)
            gathered = self._gather(datasets, y, self.background_weights, rng, kernel_rows=False)
            self._answer(gathered, seed)
            self._warn_if_alike(datasets)
        return self

    def _answer(self, gathered: Gathered, seed: int) -> None:
        alphas = alphas_to_try(self.alpha, self.n_representatives)
        (target, *backgrounds), weights = gathered.moments, gathered.weights
        path = None
        alphas = in_units(alphas, target, backgrounds, weights) if isinstance(self.alpha, str) else alphas
        if self._chooses_by_folds and gathered.folds is not None and backgrounds:
            path = held_out_alphas(gathered.folds, weights, alphas[::2], self.n_components, seed, self.side)
            alphas = alphas if path is None else path.parameters[[path.chosen]]
        iterative = target.n_features > DENSE_COORDINATES and 10 * self.n_components <= target.n_features
        choice = choose_alpha(
            lambda alpha: contrast.contrastive(target, backgrounds, weights, alpha),
            target,
            backgrounds,
            weights,
            alphas,
            n_components=self.n_components,
            n_representatives=self.n_representatives,
            solver="reduced" if gathered.keeps_rows else "lanczos" if iterative else "dense",
            seed=seed,
            side=self.side,
        )
        if len(choice.alphas) > 1 and gathered.folds is not None:
            judged = held_out_alphas(gathered.folds, weights, choice.alphas, self.n_components, seed, self.side)
            choice = choice.judged(judged)
        candidates = [solution.vectors * gathered.signs(solution.vectors) for solution in choice.solutions]

        self._keep(choice.solution, target, backgrounds, weights)
        self._keep_coordinates(gathered)

        def solve_others(target: Moments, backgrounds: list[Moments], _: LeftOut) -> Float:
            problem = contrast.contrastive(target, backgrounds, weights, choice.alpha)
            solver = "lanczos" if iterative else "dense"
            return solve(problem, self.n_components, solver=solver, side=self.side, rank=False).vectors

        found = None
        if gathered.folds is not None and self.held_out is not None:
            found = judge(solve_others, gathered.folds, weights, candidates[choice.chosen], self.side)
        mapping = self.feature_map_
        if isinstance(mapping, LandmarkMap) and gathered.found.nearly_full:
            # Nothing of the size of the kernel matrix is kept beyond the fit.
            candidates = [mapping.dual_filters(vectors) for vectors in candidates]
            self.feature_map_ = KernelValueMap(mapping.kernel, mapping.landmarks)
            self.feature_mean_ = mapping.dual_means(self.feature_mean_[None, :])[0, :]
            found = None if found is None else _in_kernel_values(found, mapping)
            if hasattr(self, "robust_weights_"):
                self.robust_weights_ = [_weights_in_kernel_values(own, mapping) for own in self.robust_weights_]
        self._keep_held_out(found, gathered.found.parts)
        self._keep_found(held_out_path_=path)
        self.components_ = columns_as_rows(candidates[choice.chosen])
        self.alphas_ = like(choice.alphas, self.components_)
        self.alpha_ = choice.alpha
        self.candidates_ = namespace(self.components_).stack([vectors.T for vectors in candidates])

    def _check_incremental(self) -> None:
        super()._check_incremental()
        check_side(self.side)
        alphas_to_try(self.alpha, self.n_representatives)
        if self._chooses_by_folds:
            reject_rows_needed("alpha", self.alpha, "Use {p.alpha:auto} or a number")

    @property
    def _chooses_by_folds(self) -> bool:
        return chooses_by_folds(self.alpha)


def _in_kernel_values(found: HeldOut, mapping: LandmarkMap) -> HeldOut:
    """Give what was found without each fold in the coordinates of a `KernelValueMap`."""
    xp = namespace(found.components)
    filters = [mapping.dual_filters(found.components[fold, :, :].T).T for fold in range(found.n_folds)]
    means = [mapping.dual_means(found.means[number, :, :]) for number in range(found.means.shape[0])]
    return replace(found, components=xp.stack(filters), means=xp.stack(means))


def _weights_in_kernel_values(learned: RobustWeights, mapping: LandmarkMap) -> RobustWeights:
    """Give robust weights of coordinates as those of a `KernelValueMap`."""
    centre = mapping.dual_means(learned.centre[None, :])[0, :]
    groups = None if learned.groups is None else mapping.dual_means(learned.groups)
    return replace(learned, centre=centre, root=mapping.dual_filters(learned.root), groups=groups)
