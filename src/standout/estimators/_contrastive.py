"""Contrastive PCA for one or several backgrounds, as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from standout import contrast
from standout._arrays import Float
from standout._messages import warn_user
from standout._params import (
    check_alpha,
    check_held_out,
    check_n_columns,
    check_n_components,
    check_n_representatives,
    check_side,
    check_solver,
    check_weights,
)
from standout._xp import largest, like, namespace
from standout.estimators._base import (
    unchanged_if_refused,
)
from standout.estimators._facts import (
    RowFacts,
)
from standout.estimators._incremental import reject_rows_needed
from standout.estimators._linear import LinearFit, LinearSums, LinearTransformer, fit_linear
from standout.moments import Folds, Moments
from standout.pencil import solve_path
from standout.selection import ALPHAS, PATH_FOLDS, AlphaChoice, HeldOutPath, LeftOut, choose_alpha, few_of, judge_views
from standout.sources import Backgrounds, Dataset

# Share of the target's variance from which on an error of rounding is worth a warning.
VISIBLE = 1e-4


@dataclass(frozen=True, eq=False)
class ContrastiveFit(LinearFit):
    """What a contrastive fit found and chose.

    Attributes
    ----------
    choice : AlphaChoice
    path : HeldOutPath or None
        How each α fares on rows that were not fitted, if one was chosen by that.
    """

    choice: AlphaChoice
    path: HeldOutPath | None = None

    @property
    def accurate(self) -> bool:
        """Whether rounding has left enough digits at every α."""
        return self.choice.accurate


class ContrastivePCA(LinearTransformer):
    """In which directions does the target vary more than α times the backgrounds?

    Finds the orthonormal directions u with the largest difference of variances, ``uᵀ(Cxx - α Σ ωₖ Cₖ)u``: contrastive
    PCA [1]_, for one or several backgrounds; PCA for none, or for α = 0. What is found depends on α, which has no
    natural value. `DiscriminativePCA`, the ratio of variances, needs none.

    Parameters
    ----------
    n_components : int, default=2
        Number of components, at most the number of features.
    alpha : float, array-like, "auto" or "held-out", default="auto"
        How much the backgrounds count. "auto" looks at 0 and 40 values from 1e-3 to 1e3 (times a power of ten, where
        the variances of target and backgrounds differ that much), and finds a few that represent the rest: the
        subspaces of all are clustered by their principal angles, and the medoid of each cluster is kept in
        `candidates_`. Look at them all; `components_` are those of one of them (see `alpha_`). An increasing list of
        numbers is searched in the same way. "held-out" takes the smallest α whose ratio of variances on rows that were
        not fitted (the mean of the components' logarithms) is within one standard error of the largest; with too few
        rows, or too many columns for folds, it is "auto".
    n_representatives : int, default=4
        How many α are to represent the list; fewer are given if fewer subspaces differ.
    background_weights : array-like of shape (n_backgrounds,), default=None
        Weight of each background's covariance, scaled to sum 1. None means equal weights, independent of the number of
        rows.
    held_out : int or None, default=10
        Number of folds for `held_out_ratio_`: each is left out in turn, and the components that are found without it
        are judged on its rows. Fewer are used where a dataset has few rows, where there are many rows per column
        (20 or more: 5 folds) or more than 1,000 columns, and none beyond 8,192. A fit with folds takes about 1.5 times
        as long as one without where there are many rows, and 2 to 6 times where there are few. None leaves them out.
    n_columns : int, "auto" or None, default=None
        Number of columns that the components may use; all others have zeros in `components_`. Columns are ranked by the
        size of their entries in the components, ``|uⱼ|``, each by its best rank in any component; the last third is
        left out, the same problem is solved on the others, and so on to this number. "auto" is the fewest
        columns whose held-out ratio (the mean of the components' logarithms) is within one standard error of the best,
        over 5 folds that choose columns of their own; where there are more columns than rows, it is all columns or at
        most half the number of rows. None is all columns.
    side : {"target", "background", "both"}, default="target"
        "background" finds what the backgrounds have and the target lacks: the directions with the least difference, in
        ascending order. "both" finds the most extreme of the two ends, by the size of the difference.
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
    solver : {"auto", "dense", "reduced", "lanczos", "lobpcg"}, default="auto"
        How the eigenproblem is solved. All solvers that apply give the same answer. See
        `standout.pencil.choose_solver` for the rule.
    random_state : int, RandomState instance or None, default=None
        Seed of the sample that `robust` learns from, and start of the iterative solvers, whose answer depends on it
        only by rounding. None is a fixed seed, too: equal input gives equal output.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The directions, orthonormal rows: ``(X - mean_) @ components_.T`` are the scores.
    patterns_ : ndarray of shape (n_components, n_features)
        The same, as the components are orthonormal.
    eigenvalues_ : ndarray of shape (n_components,)
        Difference of the target's and α times the backgrounds' variance along each component, in descending order (see
        `side`). They can be negative.
    target_variance_ : ndarray of shape (n_components,)
        Variance of the target's scores.
    background_variance_ : ndarray of shape (n_backgrounds, n_components)
        Variance of each background's scores.
    alpha_ : float
        The α of `components_`. If it was not given: of the representatives, the one whose components have the largest
        ratios of variances on rows that were not fitted (the mean of their logarithms). Without folds
        (``held_out=None``, `partial_fit`, `from_moments`), the one that holds the largest share of the target's
        variance beyond the share of the backgrounds' that it holds.
    alphas_ : ndarray of shape (n_representatives,)
        The representatives, in ascending order.
    candidates_ : ndarray of shape (n_representatives, n_components, n_features)
        The components of each.
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
    columns_ : ndarray of int
        The numbers of the columns that the components use, ascending; only with `n_columns`. See `get_support`.
    column_frequency_ : ndarray of shape (n_features,)
        In which share of the folds each column is chosen: sets of columns vary more than views do. Only with
        `n_columns`, if there are folds.
    columns_path_ : HeldOutPath
        How each number of columns fares on rows that were not fitted; only with ``n_columns="auto"``.
    mean_ : ndarray of shape (n_features,)
        Mean of the target.
    weights_ : ndarray of shape (n_backgrounds,)
        Weights of the backgrounds, with sum 1.
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
    DiscriminativePCA : The ratio of variances, without α.
    standout.selection.alpha_path : All components along α.

    Notes
    -----
    Unlike a ratio, a difference of variances depends on the units of the features. Bring them to one scale, target and
    backgrounds alike (see `standout.make_pipeline`).

    Covariances are divided by the number of rows n, as in the paper. Packages that divide by n - 1 (``numpy.cov`` and
    `contrastive`, for example) have the same directions at another α: with m rows of the target and n of the
    background, α here is theirs times ``(m - 1) / m · n / (n - 1)``.

    With α equal to the leading eigenvalue of `DiscriminativePCA` without shrinkage, the leading direction is the same
    (Theorem 2 of [2]_); no larger α has a positive eigenvalue.

    References
    ----------
    .. [1] A. Abid, M. J. Zhang, V. K. Bagaria, J. Zou, "Exploring patterns enriched in a dataset with contrastive
       principal component analysis", Nature Communications 9, 2134, 2018.
    .. [2] J. Chen, G. Wang, G. B. Giannakis, "Nonlinear Dimensionality Reduction for Discriminative Analytics of
       Multiple Datasets", IEEE Transactions on Signal Processing 67(3), 2019.

    Examples
    --------
    Both datasets vary most along the first feature; the target alone varies along the last.

    >>> import numpy as np
    >>> from standout import ContrastivePCA
    >>> rng = np.random.default_rng(0)
    >>> background = rng.normal(size=(500, 4)) * [10, 1, 1, 1]
    >>> target = rng.normal(size=(500, 4)) * [10, 1, 1, 3]
    >>> cpca = ContrastivePCA(n_components=1, alpha=2.0).fit(target, background=background)
    >>> np.argmax(np.abs(cpca.components_))
    np.int64(3)
    >>> cpca = ContrastivePCA(n_components=1).fit(target, background=background)
    >>> np.abs(cpca.candidates_[:, 0]).argmax(axis=1)  # from PCA to what the background has least of
    array([0, 3, 3, 1])
    >>> np.argmax(np.abs(cpca.components_))
    np.int64(3)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        alpha: Any = "auto",
        n_representatives: int = 4,
        background_weights: Any = None,
        held_out: int | None = 10,
        n_columns: Any = None,
        side: str = "target",
        robust: str | None = None,
        subject_weights: str = "rows",
        variation: str = "all",
        blocks: int | str | None = None,
        target_label: Any = None,
        solver: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.n_representatives = n_representatives
        self.background_weights = background_weights
        self.held_out = held_out
        self.n_columns = n_columns
        self.side = side
        self.robust = robust
        self.subject_weights = subject_weights
        self.variation = variation
        self.blocks = blocks
        self.target_label = target_label
        self.solver = solver
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
    ) -> ContrastivePCA:
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
        ContrastivePCA
            The fitted estimator itself.
        """
        alphas = alphas_to_try(self.alpha, self.n_representatives)
        check_side(self.side)
        check_n_columns(self.n_columns)
        solver = check_solver(self.solver, without=("root",))
        with unchanged_if_refused(self):
            facts = RowFacts(
                sample_weight, background_sample_weight, groups, background_groups, adjust, background_adjust
            )
            datasets = self._weighed(self._datasets(X, y, background, facts))
            check_weights(self.background_weights, len(datasets) - 1)
            seed = self._seed()
            fit = fit_linear(
                datasets,
                lambda sums, solver: self._answer(sums, solver, alphas, seed),
                n_components=self.n_components if isinstance(self.n_components, int | np.integer) else 1,
                solver=solver,
                n_folds=check_held_out(self.held_out)
                or (PATH_FOLDS if chooses_by_folds(self.alpha) or self._finds_n_columns else None),
                roots=False,
            )
            self._keep_columns(datasets, fit.target.n_features)
            self._keep_fit(fit, datasets)
            self._warn_if_alike(datasets)
        return self

    def _answer(self, sums: LinearSums, solver: str, alphas: Float, seed: int) -> ContrastiveFit:
        """Solve for every α, and choose among them."""
        target, *backgrounds = moments = sums.moments
        weights = check_weights(self.background_weights, len(backgrounds))
        n_directions = sum(dataset.count - 1 for dataset in moments)
        n_components = check_n_components(self.n_components, target.n_features, n_directions)
        path = None
        alphas = in_units(alphas, target, backgrounds, weights) if isinstance(self.alpha, str) else alphas
        if chooses_by_folds(self.alpha) and sums.folds is not None and backgrounds:
            path = held_out_alphas(sums.folds, weights, alphas[::2], n_components, seed, self.side)
            alphas = alphas if path is None else path.parameters[[path.chosen]]
        choice = choose_alpha(
            lambda alpha: contrast.contrastive(target, backgrounds, weights, alpha),
            target,
            backgrounds,
            weights,
            alphas,
            n_components=n_components,
            n_representatives=self.n_representatives,
            solver=solver,
            seed=seed,
            side=self.side,
        )
        if len(choice.alphas) > 1 and sums.folds is not None:
            choice = choice.judged(held_out_alphas(sums.folds, weights, choice.alphas, n_components, seed, self.side))

        solution, few, held_out = self._on_few_columns(
            contrast.contrastive(target, backgrounds, weights, choice.alpha),
            choice.solution,
            sums,
            lambda target, backgrounds: contrast.contrastive(target, backgrounds, weights, choice.alpha),
            weights,
            solver=solver,
            seed=seed,
            dense_size=target.n_features,
        )
        if few is not None:
            # Each representative has columns of its own.
            problems = [contrast.contrastive(target, backgrounds, weights, alpha) for alpha in choice.alphas.tolist()]
            views = [
                few_of(problem, found, len(few.columns), side=self.side, solver=solver, seed=seed)[0]
                for problem, found in zip(problems, choice.solutions, strict=True)
            ]
            choice = replace(choice, solutions=views)
        return ContrastiveFit(target, backgrounds, weights, solution, choice, path, held_out=held_out, few=few)

    def _keep_fit(self, fit: ContrastiveFit, datasets: Sequence[Any]) -> None:
        """Warn of rounding, and keep the results."""
        _warn_of_rounding(fit)
        self._keep_linear(fit, datasets)
        self._keep_found(held_out_path_=fit.path)
        self.alphas_ = like(fit.choice.alphas, self.mean_)
        self.alpha_ = fit.choice.alpha
        self.candidates_ = namespace(self.mean_).stack([solution.vectors.T for solution in fit.choice.solutions])

    def _check_incremental(self) -> None:
        check_side(self.side)
        check_n_columns(self.n_columns)
        if self._finds_n_columns:
            reject_rows_needed("n_columns", self.n_columns, "Give {p.n_columns} as a number")
        alphas_to_try(self.alpha, self.n_representatives)
        if chooses_by_folds(self.alpha):
            reject_rows_needed("alpha", self.alpha, "Use {p.alpha:auto} or a number")
        check_solver(self.solver, without=("root",))

    def _solve(self, sums: list[Any]) -> None:
        alphas = alphas_to_try(self.alpha, self.n_representatives)
        self._keep_fit(self._answer(LinearSums(sums), self.solver, alphas, self._seed()), [])

    def _n_wanted(self) -> int:
        return self.n_components


def _warn_of_rounding(fit: ContrastiveFit) -> None:
    """Warn if directions are missing that the data may have, or if a value is not reliable."""
    solution, datasets = fit.solution, [fit.target, *fit.backgrounds]
    variances = sum((dataset.variances for dataset in datasets[1:]), start=fit.target.variances)
    varying = int(namespace(variances).count_nonzero(variances > 0.0))
    many_rows = sum(dataset.count - 1 for dataset in datasets) >= fit.target.n_features
    if many_rows and solution.rank is not None and solution.rank < varying:
        warn_user(
            "{n_missing} direction(s) occur in no dataset, as far as double precision can tell, and are left out: "
            "columns depend on each other, or are of very different size",
            n_missing=varying - solution.rank,
            advice="Drop columns that depend on others, and scale columns of different size.",
        )
    elif not largest(solution.rounding) <= max(VISIBLE, float(np.sqrt(solution.rounding_unit))):
        warn_user(
            "rounding may have changed a value by {share} of the target's variance along it: a dataset varies so much "
            "more in other directions",
            share=f"{largest(solution.rounding):.0e}",
            advice="Look for entries that stand for missing values, such as -999999999. Scale the columns alike, or "
            "use a smaller {p.alpha}.",
        )


def chooses_by_folds(alpha: Any) -> bool:
    """Tell whether α is chosen by rows that were not fitted."""
    return isinstance(alpha, str) and alpha == "held-out"


def held_out_alphas(
    folds: Sequence[Folds[Moments]], weights: Float, alphas: Float, n_components: int, seed: int, side: str = "target"
) -> HeldOutPath | None:
    """Find out how the components at each α fare on rows that were not fitted, from the largest α to the least."""

    def without(target: Moments, backgrounds: list[Moments], _: LeftOut) -> list[Float]:
        pencils = [contrast.contrastive(target, backgrounds, weights, alpha) for alpha in alphas.tolist()]
        found = solve_path(pencils, n_components, solver="dense", seed=seed, side=side)
        return [solution.vectors for solution in found][::-1]

    return judge_views(without, alphas[::-1], folds, weights, side)


def in_units(alphas: Float, target: Moments, backgrounds: Sequence[Moments], weights: Float) -> Float:
    """Give a list of α for a target in other units than the backgrounds: times their ratio, to a power of ten."""
    against = sum(float(weight) * part.total_variance for weight, part in zip(weights, backgrounds, strict=True))
    if not backgrounds or not target.total_variance > 0.0 or not against > 0.0:
        return alphas
    power = round(float(np.log10(target.total_variance) - np.log10(against)))
    return alphas if power == 0 else alphas * 10.0**power


def alphas_to_try(alpha: Any, n_representatives: Any) -> Float:
    """Check α and how many are to represent the list, and give the list; one number is a list of its own."""
    given = check_alpha(alpha)
    if isinstance(given, float):
        check_n_representatives(n_representatives, n_representatives)
        return np.array([given])
    alphas = ALPHAS if given is None else given
    check_n_representatives(n_representatives, len(alphas))
    return alphas
