"""What all estimators share: the forms of input, transforming, and scoring against backgrounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from standout._arrays import Array, Float, Rows, double
from standout._validation import (
    as_backgrounds,
    as_rows,
    as_rows_at_hand,
    as_seed,
    check_columns_of_batches,
    check_fitted_place,
    check_group_weight,
    check_known_labels,
    check_label_form,
    check_n_backgrounds,
    check_one_place,
    check_same_columns,
    check_sample_weight,
    column_names,
    dataset_names,
    reject_iterator,
    require_finite,
    require_finite_rows,
    specimen,
)
from standout._xp import largest_entries, like, looks_foreign, namespace, place, take, to_host
from standout.estimators._moving import moved
from standout.moments import Moments
from standout.pencil import Solution
from standout.sources import Source, open_dataset

# How many units in the last place of the largest score rounding may be: sums of terms that partly cancel lose a few.
SCORE_ROUNDING = 16.0


class BackgroundTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """A transformer that is fitted on a target against backgrounds.

    A subclass has the parameters `target_label` and `random_state`, and sets `components_`, `weights_` and
    `background_variance_` when fitted.
    """

    __metadata_request__fit = {"background": True}  # noqa: RUF012
    __metadata_request__partial_fit = {"background": True}  # noqa: RUF012
    __metadata_request__score = {"background": True}  # noqa: RUF012

    # For pipelines: its methods take data that are read in parts.
    _takes_parts = True

    components_: Float
    weights_: Float
    background_variance_: Float
    background_labels_: list[Any]
    feature_names_in_: npt.NDArray[Any]
    target_label: Any
    random_state: Any

    @abstractmethod
    def fit(self, X: Any, y: Any = None, *, background: Any = None) -> Any:
        """Find the components of the target X against the backgrounds."""

    @property
    @abstractmethod
    def _projection(self) -> Callable[[Rows], Array]:
        """The function that gives the scores of checked rows."""

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
        X : array-like, sparse matrix, frame, or Dask array or frame, of shape (n_samples, n_features)
            Of the library and on the device of the fitted data.

        Returns
        -------
        array or Dask array of shape (n_samples, n_components)
            The scores, in float32 for float32 rows and in float64 otherwise, and of the rows' library and device; those
            of Dask's rows are computed when they are asked for.
        """
        check_is_fitted(self)
        reject_iterator(X, "transform")
        return self._scores(self._opened(X, "the data", "transform", min_rows=1))

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
            ``inf`` where a component does not vary in the backgrounds at all, NaN where it does not vary in the target
            either. Without any background, the target's variance, averaged over the components.
        """
        check_is_fitted(self)
        for data in (X, *as_backgrounds(background, X)):
            reject_iterator(data, "score")
        target_rows = self._opened(X, "the target", "score")
        if self.target_label is not None:
            rows = as_rows_at_hand(target_rows, "score with target_label")
            row_weights = like(check_sample_weight(beside(sample_weight, rows), rows.shape[0]), rows)
            labels, others = check_label_form(beside(y, rows), rows.shape[0], self.target_label, background)
            check_known_labels(others, self.background_labels_)
            target, *rest = (
                self._variance_of_label(label, take(rows, labels == label), take(row_weights, labels == label))
                for label in (self.target_label, *self.background_labels_)
            )
        else:
            target = self._variance(target_rows, sample_weight)
            backgrounds, _ = self._checked_backgrounds(background, *columns_of(target_rows, X))
            check_n_backgrounds(len(backgrounds), self.weights_.shape[0])
            parts = [target_rows, *backgrounds]
            check_one_place([specimen(part) for part in parts], dataset_names(len(parts)))
            for data in backgrounds:
                check_place(data, self, "score")
            require_finite(parts)
            rest = [self._variance(data, None) for data in backgrounds]
        if not rest:
            rest = list(to_host(self.background_variance_))
        if not rest:
            return float(np.mean(target))
        against = to_host(self.weights_) @ np.array(rest)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.mean(target / against))

    def to_numpy(self) -> Self:
        """Give the same fitted model with NumPy arrays, in the host's memory.

        For a model that was fitted on arrays of another library: to save it, to plot it, or to transform NumPy arrays.

        Returns
        -------
        BackgroundTransformer
            A copy; this model stays as it is.
        """
        check_is_fitted(self)
        return moved(self, to_host)

    def __sklearn_array_api_convert__(self, converter: Callable[[Any], Any]) -> Self:
        """Give the same model with arrays that a function of scikit-learn has moved elsewhere."""
        return moved(self, converter)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what the estimator takes and gives."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = True
        tags.target_tags.required = self.target_label is not None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    @property
    def _known_names(self) -> list[str] | None:
        """Names of the columns, where they have any."""
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else list(names)

    def _datasets(self, X: Any, y: Any, background: Any) -> tuple[list[Any], list[list[str] | None]]:
        """Check the datasets, the target first, and give their column names as far as they are known."""
        if self.target_label is not None:
            reject_iterator(X, "fit with target_label")
            rows = as_rows_at_hand(open_dataset(X, "the data"), "fit with target_label")
            validate_data(self, X, skip_check_array=True)
            labels, self.background_labels_ = check_label_form(
                beside(y, rows), rows.shape[0], self.target_label, background
            )
            parts = [
                as_rows(take(rows, labels == label), f"the data with label {label!r}")
                for label in (self.target_label, *self.background_labels_)
            ]
            return parts, [None] * len(parts)
        if hasattr(self, "background_labels_"):
            del self.background_labels_
        target = open_dataset(X, "the target")
        width, names = columns_of(target, X)
        if not isinstance(target, Source):
            validate_data(self, X, skip_check_array=True)
        backgrounds, columns = self._checked_backgrounds(background, width, names, X)
        check_one_place([specimen(part) for part in (target, *backgrounds)], dataset_names(1 + len(backgrounds)))
        return [target, *backgrounds], [names, *columns]

    def _checked_backgrounds(
        self, background: Any, width: int | None, names: list[str] | None, X: Any = None
    ) -> tuple[list[Any], list[list[str] | None]]:
        """Check the backgrounds, each against the columns of the target where these are known already."""
        checked, columns = [], []
        for number, data in enumerate(as_backgrounds(background, X), start=1):
            name = f"background {number}"
            dataset = open_dataset(data, name)
            its_width, found = columns_of(dataset, data)
            if its_width is not None and width is not None:
                check_same_columns(its_width, found, name, width, names, "the target")
            checked.append(dataset)
            columns.append(found)
        return checked, columns

    def _finish_batches(self, datasets: list[Any], columns: list[list[str] | None], n_features: int) -> None:
        """Check and keep what is known of batches only after they have been read."""
        check_columns_of_batches(datasets, columns)
        if isinstance(datasets[0], Source):
            self._keep_columns(n_features, datasets[0].columns)

    def _keep_columns(self, n_features: int, columns: list[str] | None) -> None:
        """Keep what is known of the columns, as scikit-learn does for arrays and frames."""
        self.n_features_in_ = n_features
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if columns is not None:
            self.feature_names_in_ = np.asarray(columns, dtype=object)

    def _variance_of_label(self, label: Any, rows: Any, row_weights: Float) -> Float:
        """Variance of the scores of the rows with a label."""
        check_group_weight(float(namespace(row_weights).sum(row_weights)), label)
        return self._variance(as_rows(rows, f"the data with label {label!r}"), row_weights)

    def _opened(self, X: Any, name: str, method: str, min_rows: int = 2) -> Any:
        """Check rows, or a source of rows, for a method of a fitted estimator."""
        dataset = open_dataset(X, name, min_rows=min_rows)
        check_place(dataset, self, method)
        if not isinstance(dataset, Source):
            require_finite_rows(dataset, name)
            validate_data(self, X, reset=False, skip_check_array=True)
        elif dataset.width is not None:
            check_same_columns(
                dataset.width, dataset.columns, name, self.n_features_in_, self._known_names, "the fitted target"
            )
        return dataset

    def _scores(self, dataset: Any) -> Any:
        """Project checked rows; those of a source in the way of the source."""
        if isinstance(dataset, Source):
            return dataset.mapped(self._projection, self._n_features_out)
        return self._projection(dataset)

    def _variance(self, dataset: Any, sample_weight: Any) -> Float:
        """Variance of the scores along each component."""
        scores = self._scores(dataset)
        on_device = looks_foreign(scores)
        if not on_device:
            scores = np.asarray(scores)
        unit = float((namespace(scores) if on_device else np).finfo(scores.dtype).eps)
        scores = double(scores)
        variance = (_variance_on_device if on_device else _variance_at_hand)(scores, sample_weight)
        # Equal rows have scores that differ by rounding: what is no more than that is no variance.
        rounding = SCORE_ROUNDING * unit * to_host(largest_entries(scores))
        return np.where(variance > rounding**2, variance, 0.0)

    def _seed(self) -> int:
        """Give a number to start random generators with: a fixed one unless `random_state` is set."""
        return as_seed(self.random_state)

    def _keep(self, solution: Solution, target: Moments, backgrounds: list[Moments], weights: Float) -> None:
        """Keep what every fit has found."""
        self.eigenvalues_ = solution.values
        self.target_variance_ = target.variance(solution.vectors)
        variances = [background.variance(solution.vectors) for background in backgrounds]
        none = like(np.zeros((0, solution.values.shape[0])), solution.values)
        self.background_variance_ = namespace(none).stack(variances) if variances else none
        self.weights_ = like(weights, solution.values)
        self.solver_ = solution.solver
        self.n_components_ = int(solution.values.shape[0])


def columns_of(dataset: Any, data: Any) -> tuple[int | None, list[str] | None]:
    """Give the number and the names of the columns, as far as they are known before the dataset is read."""
    if isinstance(dataset, Source):
        return dataset.width, dataset.columns
    return dataset.shape[1], column_names(data)


def check_place(dataset: Any, fitted: Any, method: str) -> None:
    """Refuse a dataset that is not where an estimator was fitted; a source that does not tell gives a row."""
    array = specimen(dataset)
    if array is None and looks_foreign(fitted.components_):
        array = dataset.first(1)
    if array is not None:
        check_fitted_place(array, fitted.components_, type(fitted).__name__, method)


def _variance_at_hand(scores: Float, sample_weight: Any) -> Float:
    """Variance of each column of scores."""
    row_weights = check_sample_weight(beside(sample_weight, scores), len(scores))
    centred = scores - np.average(scores, axis=0, weights=row_weights)
    variance: Float = np.average(centred**2, axis=0, weights=row_weights)
    return variance


def _variance_on_device(scores: Array, sample_weight: Any) -> Float:
    """Variance of each column of foreign scores; the few numbers come to the host."""
    row_weights = like(check_sample_weight(beside(sample_weight, scores), scores.shape[0]), scores)
    shares = row_weights[None, :] / namespace(row_weights).sum(row_weights)
    variance: Float = to_host((shares @ (scores - shares @ scores) ** 2)[0, :])
    return variance


def beside(y: Any, rows: Rows) -> Any:
    """Give labels or weights as they are beside the rows; those of another library or device are read on the host."""
    if y is None or not looks_foreign(y) or place(y) == place(rows):
        return y
    return to_host(y)
