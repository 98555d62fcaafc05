"""Contrastive PCA for one or several backgrounds, as a scikit-learn transformer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from standout import contrast
from standout._arrays import Float
from standout._messages import warn_user
from standout._params import check_alpha, check_n_components, check_n_representatives, check_solver, check_weights
from standout._xp import largest, like, namespace
from standout.estimators._base import unchanged_if_refused
from standout.estimators._linear import LinearFit, LinearTransformer, fit_linear
from standout.moments import Moments
from standout.selection import ALPHAS, AlphaChoice, choose_alpha
from standout.sources import Backgrounds, Dataset

# Share of the target's variance from which on an error of rounding is worth a warning.
VISIBLE = 1e-4


@dataclass(frozen=True, eq=False)
class ContrastiveFit(LinearFit):
    """What a contrastive fit found and chose.

    Attributes
    ----------
    choice : AlphaChoice
    """

    choice: AlphaChoice

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
    alpha : float, array-like or "auto", default="auto"
        How much the backgrounds count. "auto" looks at 0 and 40 values from 1e-3 to 1e3, and finds a few that represent
        the rest: the subspaces of all are clustered by their principal angles, and the medoid of each cluster is kept
        in `candidates_`. Look at them all; `components_` are those of one of them (see `alpha_`). An increasing list
        of numbers is searched in the same way.
    n_representatives : int, default=4
        How many α are to represent the list; fewer are given if fewer subspaces differ.
    background_weights : array-like of shape (n_backgrounds,), default=None
        Weight of each background's covariance, scaled to sum 1. None means equal weights, independent of the number of
        rows.
    target_label : object, default=None
        With a label here, ``fit(X, y)`` takes the rows with this label as target and the rows of each other label as
        one background, in sorted order.
    solver : {"auto", "dense", "reduced", "lanczos", "lobpcg"}, default="auto"
        How the eigenproblem is solved. All solvers that apply give the same answer. See
        `standout.pencil.choose_solver` for the rule.
    random_state : int, RandomState instance or None, default=None
        Start of the iterative solvers, whose answer depends on it only by rounding. None is a fixed start, too.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The directions, orthonormal rows: ``(X - mean_) @ components_.T`` are the scores.
    patterns_ : ndarray of shape (n_components, n_features)
        The same, as the components are orthonormal.
    eigenvalues_ : ndarray of shape (n_components,)
        Difference of the target's and α times the backgrounds' variance along each component, in descending order. They
        can be negative.
    target_variance_ : ndarray of shape (n_components,)
        Variance of the target's scores.
    background_variance_ : ndarray of shape (n_backgrounds, n_components)
        Variance of each background's scores.
    alpha_ : float
        The α of `components_`. If it was not given: of the representatives, the one that holds the largest share of the
        target's variance beyond the share of the backgrounds' variance that it holds.
    alphas_ : ndarray of shape (n_representatives,)
        The representatives, in ascending order.
    candidates_ : ndarray of shape (n_representatives, n_components, n_features)
        The components of each.
    mean_ : ndarray of shape (n_features,)
        Mean of the target.
    weights_ : ndarray of shape (n_backgrounds,)
        Weights of the backgrounds, with sum 1.
    background_labels_ : list
        Labels of the backgrounds; only with `target_label`.
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
        target_label: Any = None,
        solver: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.n_representatives = n_representatives
        self.background_weights = background_weights
        self.target_label = target_label
        self.solver = solver
        self.random_state = random_state

    def fit(self, X: Dataset, y: Any = None, *, background: Backgrounds = None) -> ContrastivePCA:
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
        ContrastivePCA
            The fitted estimator itself.
        """
        alphas = alphas_to_try(self.alpha, self.n_representatives)
        solver = check_solver(self.solver, without=("root",))
        with unchanged_if_refused(self):
            datasets = self._datasets(X, y, background)
            check_weights(self.background_weights, len(datasets) - 1)
            seed = self._seed()
            fit = fit_linear(
                datasets,
                lambda moments, solver: self._answer(moments, solver, alphas, seed),
                n_components=self.n_components if isinstance(self.n_components, int | np.integer) else 1,
                solver=solver,
                roots=False,
            )
            self._keep_columns(datasets, fit.target.n_features)
            self._keep_fit(fit)
        return self

    def _answer(self, moments: list[Moments], solver: str, alphas: Float, seed: int) -> ContrastiveFit:
        """Solve for every α, and choose among them."""
        target, *backgrounds = moments
        weights = check_weights(self.background_weights, len(backgrounds))
        n_directions = sum(dataset.count - 1 for dataset in moments)
        n_components = check_n_components(self.n_components, target.n_features, n_directions)
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
        )
        return ContrastiveFit(target, backgrounds, weights, choice.solution, choice)

    def _keep_fit(self, fit: ContrastiveFit) -> None:
        """Warn of rounding, and keep the results."""
        _warn_of_rounding(fit)
        self._keep_linear(fit)
        self.alphas_ = like(fit.choice.alphas, self.mean_)
        self.alpha_ = fit.choice.alpha
        self.candidates_ = namespace(self.mean_).stack([solution.vectors.T for solution in fit.choice.solutions])

    def _check_incremental(self) -> None:
        alphas_to_try(self.alpha, self.n_representatives)
        check_solver(self.solver, without=("root",))

    def _solve(self, sums: list[Any]) -> None:
        alphas = alphas_to_try(self.alpha, self.n_representatives)
        self._keep_fit(self._answer(sums, self.solver, alphas, self._seed()))

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


def alphas_to_try(alpha: Any, n_representatives: Any) -> Float:
    """Check α and how many are to represent the list, and give the list; one number is a list of its own."""
    given = check_alpha(alpha)
    if isinstance(given, float):
        check_n_representatives(n_representatives, n_representatives)
        return np.array([given])
    alphas = ALPHAS if given is None else given
    check_n_representatives(n_representatives, len(alphas))
    return alphas
