"""What all estimators share: the forms of input, transforming, and scoring against backgrounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from standout._arrays import Array, Float, double
from standout._validation import (
    Batches,
    as_backgrounds,
    as_rows,
    check_known_labels,
    check_label_form,
    check_n_backgrounds,
    check_same_columns,
    check_sample_weight,
    check_weights,
    column_names,
    open_dataset,
    reject_iterator,
)
from standout.moments import Moments
from standout.pencil import Solution


class BackgroundTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """A transformer that is fitted on a target against backgrounds.

    A subclass has the parameters `target_label` and `random_state`, and sets `components_`, `weights_` and
    `background_variance_` when fitted.
    """

    __metadata_request__fit = {"background": True}  # noqa: RUF012
    __metadata_request__score = {"background": True}  # noqa: RUF012

    components_: Float
    weights_: Float
    background_variance_: Float
    background_labels_: list[Any]
    target_label: Any
    random_state: Any

    @abstractmethod
    def fit(self, X: Any, y: Any = None, *, background: Any = None) -> Any:
        """Find the components of the target X against the backgrounds."""

    @abstractmethod
    def _project(self, rows: Any) -> Array:
        """Give the scores of checked rows."""

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
        """Project rows on the components.

        All rows are centred by the target's mean, those of a background too, so that all datasets can be shown in
        the same axes.

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

    def _seed(self) -> int:
        """Give a number to start random generators with: a fixed one unless `random_state` is set."""
        return 0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31))

    def _keep(self, solution: Solution, target: Moments, backgrounds: list[Moments], weights: Float) -> None:
        """Keep what every fit has found."""
        self.eigenvalues_ = solution.values
        self.target_variance_ = target.variance(solution.vectors)
        self.background_variance_ = np.array(
            [background.variance(solution.vectors) for background in backgrounds]
        ).reshape(len(backgrounds), len(solution.values))
        self.weights_ = weights
        self.solver_ = solution.solver
        self.n_components_ = len(solution.values)
