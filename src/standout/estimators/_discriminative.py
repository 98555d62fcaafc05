"""Discriminative PCA for one or several backgrounds, as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from standout._arrays import Array, dense, double, is_sparse, row_blocks
from standout._validation import as_rows, check_n_scores, check_shrinkage, check_solver, check_weights
from standout.estimators._base import BackgroundTransformer
from standout.estimators._linear import fit_linear, warn_of_trouble


class DiscriminativePCA(BackgroundTransformer):
    """In which directions does the target vary while the backgrounds do not?

    Finds the filters u with the largest ratio of target variance to background variance, ``uᵀCxx u / uᵀB u``, with B
    the weighted and shrunken sum of the backgrounds' covariances: dPCA for one background, MdPCA for several (Algs. 1
    and 3 of [1]_), PCA for none (Remark 1).

    Parameters
    ----------
    n_components : int, default=2
        Number of components, at most the number of features.
    background_weights : array-like of shape (n_backgrounds,), default=None
        Weight of each background's covariance (ω in the paper), scaled to sum 1. None means equal weights, however many
        rows each background has.
    shrinkage : "auto", float in [0, 1] or None, default="auto"
        How far each background covariance C is pulled towards a multiple of the identity,
        ``(1 - s) C + s (tr C / D) I``. "auto" is the Ledoit-Wolf estimate for each background, which vanishes as rows
        are added. None or 0 is the paper's formula; with about as many features as rows, or more, it finds
        directions in which the background varies little by chance alone. At 1, the directions are those of PCA.
    target_label : object, default=None
        With a label here, ``fit(X, y)`` takes the rows with this label as target and the rows of each other label as
        one background, in sorted order.
    solver : {"auto", "dense", "root", "reduced", "lanczos", "lobpcg"}, default="auto"
        How the eigenproblem is solved; all give the same answer where they apply. See
        `standout.pencil.choose_solver` for the rule.
    random_state : int, RandomState instance or None, default=None
        Start of the iterative solvers. The answer depends on it by rounding only, and None is a fixed start too: equal
        input gives equal output.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The filters, as rows: ``(X - mean_) @ components_.T`` are the scores. Scaled to ``uᵀBu = 1``: along each, the
        (shrunken) background has unit variance, and the target's variance is the eigenvalue. (To unit length where
        the eigenvalue is ``inf``.)
    patterns_ : ndarray of shape (n_components, n_features)
        What each component looks like in the data, ``B u``. Look at these to interpret a component: a
        filter also has large entries where it only cancels what is shared.
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
    background_labels_ : list
        Labels of the backgrounds; only with `target_label`.
    solver_ : str
        The solver that was used.
    n_components_ : int
        Number of components.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during fit; only if all are strings.

    See Also
    --------
    standout.make_pipeline : Pipelines that transform the backgrounds as they do the target.
    sklearn.decomposition.PCA : What is left without a background.

    Notes
    -----
    Scaling columns changes the answer only through the shrinkage. If you scale, scale target and backgrounds alike
    (see `standout.make_pipeline`): scaling each dataset by itself wipes out the very difference that is looked for.

    Where the background covariance is singular (without shrinkage, or where Ledoit and Wolf's estimate of it is zero)
    nothing fails: directions in which the target varies and the background does not come first with an eigenvalue of
    ``inf``, ordered by the target's variance, and a warning says so.

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
        n_components: int = 2,
        *,
        background_weights: Any = None,
        shrinkage: Any = "auto",
        target_label: Any = None,
        solver: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.background_weights = background_weights
        self.shrinkage = shrinkage
        self.target_label = target_label
        self.solver = solver
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, background: Any = None) -> DiscriminativePCA:
        """Find the components of the target X against the backgrounds.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, or iterator of such, of shape (n_samples, n_features)
            The target; with `target_label`, the rows of all datasets. An iterator gives one batch of rows after the
            other, and is read once.
        y : array-like of shape (n_samples,), default=None
            Label of each row, with `target_label`; otherwise ignored.
        background : dataset, or list or tuple of datasets, default=None
            One background, or several, each in any form that X may have. None means PCA of the target.

        Returns
        -------
        DiscriminativePCA
            The fitted estimator itself.
        """
        shrinkage = check_shrinkage(self.shrinkage)
        solver = check_solver(self.solver)
        datasets, columns = self._datasets(X, y, background)
        weights = check_weights(self.background_weights, len(datasets) - 1)
        fit = fit_linear(
            datasets,
            n_components=self.n_components,
            weights=weights,
            shrinkage=shrinkage,
            solver=solver,
            seed=self._seed(),
        )
        self._finish_batches(datasets, columns, fit.target.n_features)
        solution = fit.solution
        warn_of_trouble(solution)
        self.mean_ = fit.target.mean
        self.components_ = np.ascontiguousarray(solution.vectors.T)
        self.patterns_ = np.ascontiguousarray(solution.patterns.T)
        self._keep(solution, fit.target, fit.backgrounds, weights)
        self.shrinkage_ = fit.shrinkage
        return self

    def inverse_transform(self, X: Any) -> Array:
        """Map scores back to rows, through the patterns: ``X @ patterns_ + mean_``.

        This is the part of the data that the components carry; what they leave out stays at the mean.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Scores.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        scores = as_rows(X, "the scores", min_rows=1, finite=True)
        check_n_scores(scores.shape[1], self.n_components_)
        rows: Array = scores @ self.patterns_ + self.mean_
        return rows

    def _project(self, rows: Any) -> Array:
        """Centre before multiplying, a block at a time; sparse rows are corrected afterwards."""
        filters = self.components_.T
        if is_sparse(rows):
            scores = dense(rows @ filters) - self.mean_ @ filters
        else:
            scores = np.concatenate([(double(block) - self.mean_) @ filters for block in row_blocks(rows)])
        return scores.astype(np.float32) if rows.dtype == np.float32 else scores
