"""Discriminative PCA for one or several backgrounds, as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from standout._arrays import Array, Float, dense, double, is_sparse, row_blocks
from standout._validation import (
    Batches,
    as_backgrounds,
    as_rows,
    check_known_labels,
    check_label_form,
    check_n_backgrounds,
    check_same_columns,
    check_sample_weight,
    check_shrinkage,
    check_solver,
    check_weights,
    column_names,
    open_dataset,
    reject_iterator,
)
from standout.estimators._linear import fit_linear, warn_if_singular


class DiscriminativePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
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
        background has unit variance, and the target's variance is the eigenvalue. (To unit length where the
        eigenvalue is ``inf``.)
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

    Where the background covariance is singular (possible without shrinkage only) nothing fails: directions in which the
    target varies and the background does not come first with an eigenvalue of ``inf``, ordered by the target's
    variance, and a warning says so.

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

    __metadata_request__fit = {"background": True}  # noqa: RUF012
    __metadata_request__score = {"background": True}  # noqa: RUF012

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
        seed = 0 if self.random_state is None else check_random_state(self.random_state).randint(2**31)
        datasets = self._datasets(X, y, background)
        weights = check_weights(self.background_weights, len(datasets) - 1)
        fit = fit_linear(
            datasets, n_components=self.n_components, weights=weights, shrinkage=shrinkage, solver=solver, seed=seed
        )
        if isinstance(datasets[0], Batches):
            self._remember_columns(datasets[0], fit.target.n_features)
        solution = fit.solution
        warn_if_singular(solution)
        self.mean_ = fit.target.mean
        self.components_ = np.ascontiguousarray(solution.vectors.T)
        self.patterns_ = np.ascontiguousarray(solution.patterns.T)
        self.eigenvalues_ = solution.values
        self.target_variance_ = fit.target.variance(solution.vectors)
        self.background_variance_ = np.array(
            [background.variance(solution.vectors) for background in fit.backgrounds]
        ).reshape(len(fit.backgrounds), len(solution.values))
        self.weights_ = weights
        self.shrinkage_ = fit.shrinkage
        self.solver_ = solution.solver
        self.n_components_ = len(solution.values)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, background: Any = None) -> Any:
        """Fit, and give the scores of X: the same as ``fit(X, y, background=background).transform(X)``.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            The target; with `target_label`, the rows of all datasets.
        y : array-like of shape (n_samples,), default=None
            Label of each row, with `target_label`.
        background : dataset, or list or tuple of datasets, default=None
            The backgrounds.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        reject_iterator(X, "fit_transform")
        return self.fit(X, y, background=background).transform(X)

    def transform(self, X: Any) -> Any:
        """Project rows on the components: ``(X - mean_) @ components_.T``.

        Rows of a background are centred by the target's mean too, so that all datasets can be shown in the same axes.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            The scores, in float32 for float32 rows and in float64 otherwise.
        """
        check_is_fitted(self)
        reject_iterator(X, "transform")
        rows = as_rows(X, "data", min_rows=1, finite=True)
        validate_data(self, X, reset=False, skip_check_array=True)
        return self._project(rows)

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
        scores = as_rows(X, "scores", min_rows=1, finite=True)
        check_same_columns(scores.shape[1], None, "the scores", self.n_components_, None, "the fitted model")
        rows: Array = scores @ self.patterns_ + self.mean_
        return rows

    def score(self, X: Any, y: Any = None, *, background: Any = None, sample_weight: Any = None) -> float:
        """How much more does this target vary than these backgrounds, along the fitted components?

        The ratio of the target's to the backgrounds' (weighted, not shrunken) variance, averaged over the components.
        On rows that were not fitted it tells how much of the contrast is real.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            The target; with `target_label`, the rows of all datasets.
        y : array-like of shape (n_samples,), default=None
            Label of each row, with `target_label`.
        background : dataset, or list or tuple of datasets, default=None
            As many backgrounds as were fitted. None takes the variances of the fitted ones.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row of X.

        Returns
        -------
        float
            ``inf`` where a component does not vary in the backgrounds at all. Without any background, the
            target's variance, averaged over the components.
        """
        check_is_fitted(self)
        reject_iterator(X, "score")
        rows = as_rows(X, "target", finite=True)
        validate_data(self, X, reset=False, skip_check_array=True)
        row_weights = check_sample_weight(sample_weight, rows.shape[0])
        if self.target_label is not None:
            labels, others = check_label_form(y, rows.shape[0], self.target_label, background)
            check_known_labels(others, self.background_labels_)
            masks = [labels == label for label in (self.target_label, *self.background_labels_)]
            target, *rest = (self._variance(rows[mask], row_weights[mask]) for mask in masks)
        else:
            target = self._variance(rows, row_weights)
            backgrounds = self._checked_backgrounds(background, X)
            check_n_backgrounds(len(backgrounds), len(self.weights_))
            rest = [self._variance(data, np.ones(data.shape[0])) for data in backgrounds]
        if not rest:
            rest = list(self.background_variance_)
        if not rest:
            return float(np.mean(target))
        against = check_weights(self.weights_, len(rest)) @ np.array(rest)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.mean(target / against))

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what the estimator takes and gives."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = self.target_label is not None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def _datasets(self, X: Any, y: Any, background: Any) -> list[Any]:
        """Check the datasets: the target, then the backgrounds."""
        if self.target_label is not None:
            reject_iterator(X, "fit with target_label")
            rows = as_rows(X, "data")
            validate_data(self, X, skip_check_array=True)
            labels, self.background_labels_ = check_label_form(y, rows.shape[0], self.target_label, background)
            return [
                as_rows(rows[labels == label], f"data with label {label!r}")
                for label in (self.target_label, *self.background_labels_)
            ]
        target = open_dataset(X, "target")
        if not isinstance(target, Batches):
            validate_data(self, X, skip_check_array=True)
        return [target, *self._checked_backgrounds(background, X)]

    def _checked_backgrounds(self, background: Any, X: Any) -> list[Any]:
        """Check the backgrounds, each against the columns of the target where these are known already."""
        names = column_names(X)
        checked = []
        for number, data in enumerate(as_backgrounds(background, X), start=1):
            name = f"background {number}"
            dataset = open_dataset(data, name)
            if not isinstance(dataset, Batches) and hasattr(X, "shape"):
                check_same_columns(dataset.shape[1], column_names(data), name, X.shape[1], names, "the target")
            checked.append(dataset)
        return checked

    def _remember_columns(self, target: Batches, n_features: int) -> None:
        self.n_features_in_ = n_features
        if target.columns is not None:
            self.feature_names_in_ = np.asarray(target.columns, dtype=object)

    def _variance(self, rows: Any, row_weights: Float) -> Float:
        """Variance of the rows' scores along each component."""
        scores = double(self._project(rows))
        centred = scores - np.average(scores, axis=0, weights=row_weights)
        variance: Float = np.average(centred**2, axis=0, weights=row_weights)
        return variance

    def _project(self, rows: Any) -> Array:
        """Centre before multiplying, a block at a time; sparse rows are corrected afterwards."""
        filters = self.components_.T
        if is_sparse(rows):
            scores = dense(rows @ filters) - self.mean_ @ filters
        else:
            scores = np.concatenate([(double(block) - self.mean_) @ filters for block in row_blocks(rows)])
        return scores.astype(np.float32) if rows.dtype == np.float32 else scores
