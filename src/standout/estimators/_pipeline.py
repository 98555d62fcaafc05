"""Pipelines that take the backgrounds through the same steps as the target."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.pipeline import make_pipeline as make_plain_pipeline
from sklearn.utils._user_interface import _print_elapsed_time
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from standout._validation import (
    as_backgrounds,
    as_rows_at_hand,
    check_last_step,
    check_nothing_more,
    check_one_place,
    check_same_columns,
    dataset_names,
    dispatches,
    reject_iterator,
)
from standout._xp import looks_foreign
from standout.estimators._base import check_place
from standout.estimators._steps import check_steps, fit_step, is_step, named, takes_parts, transformed
from standout.sources import Source, Transformed, is_read_in_parts, open_dataset


class BackgroundPipeline(Pipeline):
    """A scikit-learn pipeline that takes the backgrounds through its steps, as it does the target.

    Every step is fitted on the target alone, then applied to the target and to each background alike, so that all
    datasets arrive at the last step in the same units. Build one with `make_pipeline`.

    It is a `sklearn.pipeline.Pipeline` with ``transform_input=["background"]`` that does four things by itself:
    it switches metadata routing on for its own calls, takes a list of backgrounds as well as a tuple, transforms
    the backgrounds in `score` too, and takes data that are read in parts through its steps part by part.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from standout import DiscriminativePCA, make_pipeline
    >>> make_pipeline(StandardScaler(), DiscriminativePCA()).transform_input
    ['background']
    """

    # For pipelines that this one is a step of.
    _takes_parts = True

    steps: list[Any]

    def fit(self, X: Any, y: Any = None, *, background: Any = None, **params: Any) -> BackgroundPipeline:
        """Fit the steps on the target X, and the last one against the backgrounds as the steps before leave them."""
        backgrounds = as_backgrounds(background, X)
        self.__dict__.pop("_names", None)
        if any(map(is_read_in_parts, (X, *backgrounds))):
            check_nothing_more(params, "fit")
            return self._fit_in_parts(X, y, backgrounds)
        with config_context(enable_metadata_routing=True):
            super().fit(X, y, **_given(backgrounds), **params)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, background: Any = None, **params: Any) -> Any:
        """Fit, and give the scores of X."""
        backgrounds = as_backgrounds(background, X)
        if any(map(is_read_in_parts, (X, *backgrounds))):
            reject_iterator(X, "fit_transform")
            return self.fit(X, y, background=backgrounds or None, **params).transform(X)
        self.__dict__.pop("_names", None)
        with config_context(enable_metadata_routing=True):
            return super().fit_transform(X, y, **_given(backgrounds), **params)

    @available_if(lambda self: self._can_transform())  # type: ignore[untyped-decorator]
    def transform(self, X: Any, **params: Any) -> Any:
        """Take rows through all steps: give their scores."""
        if not is_read_in_parts(X):
            return super().transform(X, **params)
        check_is_fitted(self)
        check_nothing_more(params, "transform")
        return self._last.transform(self._before_last(X, "the data", "transform", min_rows=1))

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, background: Any = None, **params: Any
    ) -> float:
        """Score the last step on X and the backgrounds, all taken through the steps before it."""
        backgrounds = as_backgrounds(background, X)
        if any(map(is_read_in_parts, (X, *backgrounds))):
            check_is_fitted(self)
            check_nothing_more(params, "score")
            target, *others = (
                self._before_last(data, name, "score")
                for name, data in zip(dataset_names(1 + len(backgrounds)), (X, *backgrounds), strict=True)
            )
            return float(self._last.score(target, y, background=others or None, sample_weight=sample_weight))
        given = _given(backgrounds)
        if given and len(self.steps) > 1:
            given = {"background": tuple(self[:-1].transform(data) for data in backgrounds)}
        with config_context(enable_metadata_routing=True):
            return float(super().score(X, y, sample_weight=sample_weight, **given, **params))

    @property
    def feature_names_in_(self) -> Any:
        """Names of the columns that were fitted, where they have any."""
        # Sparse parts have no frame to tell a step their names with.
        names = self.__dict__.get("_names")
        return super().feature_names_in_ if names is None else np.asarray(names, dtype=object)

    @property
    def _last(self) -> Any:
        """The last step, which must be one that takes data in parts."""
        name, step = self.steps[-1]
        check_last_step(takes_parts(step), named(name, step))
        return step

    def _fit_in_parts(self, X: Any, y: Any, backgrounds: list[Any]) -> BackgroundPipeline:
        """Fit one step after the other where some of the datasets are read in parts."""
        self.steps = list(self.steps)
        self._validate_steps()
        datasets = [
            open_dataset(data, name) if is_read_in_parts(data) else data
            for name, data in zip(dataset_names(1 + len(backgrounds)), (X, *backgrounds), strict=True)
        ]
        target, *others = datasets
        # What can be refused is refused before anything is read, which may take hours.
        if getattr(self._last, "target_label", None) is not None:
            as_rows_at_hand(target, "fit with target_label")
        check_steps(self.steps[:-1], target)
        _check_columns(datasets)
        _check_places(datasets)
        for number, (name, step) in enumerate(self.steps[:-1]):
            if is_step(step):
                with _print_elapsed_time("Pipeline", self._log_message(number)):
                    fitted, target = fit_step(step, target, y, others)
                    others = [transformed(data, fitted) for data in others]
                self.steps[number] = (name, fitted)
        with _print_elapsed_time("Pipeline", self._log_message(len(self.steps) - 1)):
            self._last.fit(target, y, background=others or None)
        if isinstance(datasets[0], Source) and not hasattr(self, "feature_names_in_"):
            self._names = datasets[0].columns
        return self

    def _before_last(self, data: Any, name: str, method: str, min_rows: int = 2) -> Any:
        """Give a dataset as the last step is to see it."""
        if not is_read_in_parts(data):
            return self[:-1].transform(data) if len(self.steps) > 1 else data
        reject_iterator(data, method)
        source: Any = open_dataset(data, name, min_rows=min_rows)
        steps = tuple(step for _, step in self.steps[:-1] if is_step(step))
        if not steps:
            return source
        if hasattr(self._last, "components_"):
            check_place(source, self._last, method)
        width = getattr(steps[0], "n_features_in_", source.width)
        if source.width is not None:
            names = getattr(self, "feature_names_in_", None)
            known = None if names is None else list(names)
            check_same_columns(source.width, source.columns, name, width, known, "the fitted target")
        prepared = Transformed(source, steps)
        prepared.expect(self._last.n_features_in_, "the fitted target")
        return prepared


def make_pipeline(*steps: TransformerMixin, memory: Any = None, verbose: bool = False) -> BackgroundPipeline:
    """How do I scale the background just as the target?

    Builds a pipeline whose ``fit(X, background=...)`` takes every background through the same fitted steps as the
    target. (A plain scikit-learn pipeline hands the backgrounds to the last step untouched.)

    Parameters
    ----------
    *steps : estimators
        Transformers, and `DiscriminativePCA` as the last.
    memory : str or joblib.Memory, default=None
        As in `sklearn.pipeline.make_pipeline`.
    verbose : bool, default=False
        As in `sklearn.pipeline.make_pipeline`.

    Returns
    -------
    BackgroundPipeline

    Notes
    -----
    Data that are read in parts (`standout.scan`, Dask) stay so: each part goes through the steps when it is read. Every
    step must then work row by row. A step is fitted by its ``partial_fit`` on one part of the target after the other
    (`StandardScaler`, `MinMaxScaler`, `MaxAbsScaler`, `IncrementalPCA` ...), or needs no fitting (`Normalizer`,
    `FunctionTransformer` ...), or is fitted already (`sklearn.frozen.FrozenEstimator`); all others are refused. So the
    target is read once for each step that is fitted, and an iterator of batches, which can be read only once, can be a
    target only where none is. `memory` keeps nothing of such steps.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from standout import DiscriminativePCA, make_pipeline
    >>> rng = np.random.default_rng(0)
    >>> target, background = rng.normal(size=(200, 3)) * [1, 1, 3], rng.normal(size=(200, 3))
    >>> model = make_pipeline(StandardScaler(), DiscriminativePCA(1))
    >>> model.fit_transform(target, background=[background]).shape
    (200, 1)
    """
    plain = make_plain_pipeline(*steps)
    return BackgroundPipeline(plain.steps, transform_input=["background"], memory=memory, verbose=verbose)


def _given(backgrounds: list[Any]) -> dict[str, Any]:
    """Give the backgrounds as a tuple, whose elements scikit-learn transforms one by one; nothing if there are none."""
    return {"background": tuple(backgrounds)} if backgrounds else {}


def _check_columns(datasets: list[Any]) -> None:
    """Compare the columns of what is read in parts, as far as they are known; of rows at hand, the steps do."""
    target, *others = datasets
    for number, data in enumerate(others, start=1):
        both = isinstance(target, Source) and isinstance(data, Source)
        if both and target.width is not None and data.width is not None:
            name = f"background {number}"
            check_same_columns(data.width, data.columns, name, target.width, target.columns, "the target")


def _check_places(datasets: list[Any]) -> None:
    """Refuse datasets of several libraries or devices, as far as these are known: no step can take both."""
    found = [_some_row(data) for data in datasets]
    if any(looks_foreign(row) for row in found):
        rows = [data.first(1) if row is None else row for data, row in zip(datasets, found, strict=True)]
        check_one_place(rows, dataset_names(len(rows)))


def _some_row(data: Any) -> Any:
    """Give an array that is where a dataset is; None where that would take a reading of files."""
    if not isinstance(data, Source):
        # What is no array, such as a frame, becomes one of the host.
        return data if dispatches(data) else np.empty(0)
    return data.specimen if data.again else data.first(1)
