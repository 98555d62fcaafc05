"""Pipelines that take the backgrounds through the same steps as the target."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.pipeline import make_pipeline as make_plain_pipeline
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from standout._checks import (
    as_backgrounds,
    check_one_place,
    check_same_columns,
    check_same_keys,
    column_keys,
    is_dispatched,
)
from standout._messages import InvalidTypeError, dataset_names, listed
from standout._xp import looks_foreign
from standout.estimators._base import (
    check_fitted_place,
    unchanged_if_refused,
)
from standout.estimators._facts import (
    FACTS,
    reject_iterator,
    rows_with_labels,
)
from standout.sources import (
    Backgrounds,
    Dataset,
    Source,
    Transformed,
    at_hand,
    check_steps,
    fit_step,
    is_read_in_parts,
    is_step,
    open_dataset,
    step_name,
    takes_parts,
    takes_sources,
    transformed,
)


class BackgroundPipeline(Pipeline):
    """A scikit-learn pipeline that takes the backgrounds through its steps, as it does the target.

    Every step is fitted on the target alone, then applied to the target and to each background alike, so that all
    datasets arrive at the last step in the same units. Build one with `make_pipeline`.

    It is a `sklearn.pipeline.Pipeline` with ``transform_input=["background"]`` and some more: it switches metadata
    routing on for its own calls, takes a list of backgrounds as well as a tuple, transforms the backgrounds in `score`,
    too, takes data that are read in parts through its steps part by part, and is left as it was by a fit that is
    refused.

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

    def fit(self, X: Dataset, y: Any = None, *, background: Backgrounds = None, **params: Any) -> BackgroundPipeline:
        """Fit the steps on the target X, and the last one against the backgrounds that the steps have transformed."""
        backgrounds = as_backgrounds(background, X)
        _check_keys([X, *backgrounds])
        with unchanged_if_refused(self, *self._estimators()):
            self.__dict__.pop("_names", None)
            if any(map(is_read_in_parts, (X, *backgrounds))):
                facts = {name: params.pop(name) for name in FACTS & params.keys()}
                _check_nothing_more(params, "fit")
                return self._fit_in_parts(X, y, backgrounds, facts)
            with config_context(enable_metadata_routing=True):
                self._keep_facts_for_the_last(params)
                super().fit(self._at_hand(X), y, **self._given(backgrounds), **params)
        return self

    def fit_transform(self, X: Dataset, y: Any = None, *, background: Backgrounds = None, **params: Any) -> Any:
        """Fit, and give the scores of X."""
        backgrounds = as_backgrounds(background, X)
        if any(map(is_read_in_parts, (X, *backgrounds))):
            reject_iterator(X, "fit_transform")
            return self.fit(X, y, background=backgrounds or None, **params).transform(X)
        _check_keys([X, *backgrounds])
        with unchanged_if_refused(self, *self._estimators()), config_context(enable_metadata_routing=True):
            self.__dict__.pop("_names", None)
            self._keep_facts_for_the_last(params)
            return super().fit_transform(self._at_hand(X), y, **self._given(backgrounds), **params)

    @available_if(lambda self: self._can_transform())  # type: ignore[untyped-decorator]
    def transform(self, X: Dataset, **params: Any) -> Any:
        """Take rows through all steps: give their scores."""
        if not is_read_in_parts(X):
            return super().transform(self._at_hand(X), **params)
        check_is_fitted(self)
        _check_nothing_more(params, "transform")
        return self._last.transform(self._before_last(X, "the data", "transform", min_rows=1))

    def score(
        self,
        X: Dataset,
        y: Any = None,
        sample_weight: Any = None,
        *,
        background: Backgrounds = None,
        **params: Any,
    ) -> float:
        """Score the last step on X and the backgrounds, after all steps before it."""
        backgrounds = as_backgrounds(background, X)
        if any(map(is_read_in_parts, (X, *backgrounds))):
            check_is_fitted(self)
            _check_nothing_more(params, "score")
            target, *others = (
                self._before_last(data, name, "score")
                for name, data in zip(dataset_names(1 + len(backgrounds)), (X, *backgrounds), strict=True)
            )
            return float(self._last.score(target, y, background=others or None, sample_weight=sample_weight))
        given = self._given(backgrounds)
        if given and len(self.steps) > 1:
            given = {"background": tuple(self[:-1].transform(data) for data in given["background"])}
        with config_context(enable_metadata_routing=True):
            return float(super().score(self._at_hand(X), y, sample_weight=sample_weight, **given, **params))

    @property
    def feature_names_in_(self) -> Any:
        """Names of the fitted columns, if they have any."""
        # Steps learn names from frames. Sparse parts have no frame, so the pipeline keeps their names.
        names = self.__dict__.get("_names")
        return super().feature_names_in_ if names is None else np.asarray(names, dtype=object)

    @property
    def _last(self) -> Any:
        """The last step, which must be one that takes data in parts."""
        name, step = self.steps[-1]
        if not takes_parts(step):
            raise InvalidTypeError(
                "{step} is the last step, and cannot take data that are read in parts",
                step=step_name(name, step),
                advice="End the pipeline with DiscriminativePCA or another class of standout.",
            )
        return step

    def _at_hand(self, data: Any) -> Any:
        """Give data in memory as the first step takes them: a table as it is, or as scikit-learn takes it."""
        return data if takes_sources(self.steps[0][1]) else at_hand(data)

    def _given(self, backgrounds: list[Any]) -> dict[str, Any]:
        """Give the backgrounds as a tuple, whose elements scikit-learn transforms one by one; nothing without any."""
        return {"background": tuple(map(self._at_hand, backgrounds))} if backgrounds else {}

    def _estimators(self) -> list[Any]:
        """Give the steps, and the estimators in them, whose attributes a fit may change."""
        return [thing for thing in self.get_params().values() if hasattr(thing, "fit") and hasattr(thing, "__dict__")]

    def _keep_facts_for_the_last(self, params: dict[str, Any]) -> None:
        """Let steps that do not ask for facts of rows, such as weights, do without them."""
        for _, step in self.steps[:-1]:
            if is_step(step) and hasattr(step, "set_fit_request"):
                requests = get_routing_for_object(step).fit.requests
                unset = {name: False for name in FACTS & params.keys() if requests.get(name, False) is None}
                if unset:
                    step.set_fit_request(**unset)

    def _fit_in_parts(self, X: Any, y: Any, backgrounds: list[Any], facts: dict[str, Any]) -> BackgroundPipeline:
        """Fit one step after the other, with some of the datasets read in parts."""
        self.steps = list(self.steps)
        self._validate_steps()
        datasets = [
            open_dataset(data, name) if is_read_in_parts(data) else self._at_hand(data)
            for name, data in zip(dataset_names(1 + len(backgrounds)), (X, *backgrounds), strict=True)
        ]
        target, *others = datasets
        # Refuse what can be refused before anything is read, which may take hours.
        if getattr(self._last, "target_label", None) is not None:
            rows_with_labels(open_dataset(target, "the target"), "fit with target_label")
        check_steps(self.steps[:-1], target)
        _check_columns(datasets)
        _check_places(datasets)
        for number, (name, step) in enumerate(self.steps[:-1]):
            if is_step(step):
                fitted, target = fit_step(step, target, y, others)
                others = [transformed(data, fitted) for data in others]
                self.steps[number] = (name, fitted)
        self._last.fit(target, y, background=others or None, **facts)
        if isinstance(datasets[0], Source) and not hasattr(self, "feature_names_in_"):
            self._names = datasets[0].columns
        return self

    def _before_last(self, data: Dataset, name: str, method: str, min_rows: int = 2) -> Any:
        """Give a dataset as the steps before the last leave it."""
        if not is_read_in_parts(data):
            return self[:-1].transform(self._at_hand(data)) if len(self.steps) > 1 else data
        reject_iterator(data, method)
        source = open_dataset(data, name, min_rows=min_rows)
        steps = tuple(step for _, step in self.steps[:-1] if is_step(step))
        if not steps:
            return source
        if hasattr(self._last, "components_"):
            check_fitted_place(source, self._last, method)
        if takes_sources(steps[0]):
            # It finds its columns by name.
            source, steps = steps[0].transform(source), steps[1:]
        elif source.width is not None:
            width = getattr(steps[0], "n_features_in_", source.width)
            names = getattr(self, "feature_names_in_", None)
            known = None if names is None else list(names)
            check_same_columns(source.width, source.columns, name, width, known, "the fitted target")
        if not steps:
            return source
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
        As in `sklearn.pipeline.make_pipeline`: print the time that each step took. Nothing is printed for data that
        are read in parts.

    Returns
    -------
    BackgroundPipeline

    Notes
    -----
    Data that are read in parts (`standout.scan`, Dask) are never brought together: each part goes through the steps
    when it is read. Every step must then work row by row. A step is fitted by its ``partial_fit`` on one part of the
    target after the other (`StandardScaler`, `MinMaxScaler`, `MaxAbsScaler`, `IncrementalPCA` ...), or needs no fitting
    (`Normalizer`, `FunctionTransformer` ...), or is fitted already (`sklearn.frozen.FrozenEstimator`). All others are
    refused. The target is read once for each step that is fitted. An iterator of batches, which can be read only once,
    can therefore be a target only if no step is fitted. `memory` does not apply to such data.

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


def _check_nothing_more(params: dict[str, Any], method: str) -> None:
    """Refuse metadata of rows, which steps that see parts of the rows cannot use."""
    if params:
        raise InvalidTypeError(
            "{method} of a pipeline got {parameters} for its steps, but some data are read in parts, whose rows cannot "
            "be told apart",
            method=method,
            parameters=listed("parameter", list(params)),
            advice="Leave such parameters out.",
        )


def _check_columns(datasets: list[Any]) -> None:
    """Compare the columns of data that are read in parts, as far as they are known; steps compare those in memory."""
    target, *others = datasets
    for number, data in enumerate(others, start=1):
        both = isinstance(target, Source) and isinstance(data, Source)
        if both and target.width is not None and data.width is not None:
            name = f"background {number}"
            check_same_columns(data.width, data.columns, name, target.width, target.columns, "the target")


def _check_keys(datasets: list[Any]) -> None:
    """Compare column names that are no strings; steps compare those that are."""
    target, *others = (part.keys if isinstance(part, Source) else column_keys(part) for part in datasets)
    for number, keys in enumerate(others, start=1):
        check_same_keys(keys, f"background {number}", target, "the target")


def _check_places(datasets: list[Any]) -> None:
    """Refuse datasets of several libraries or devices, as far as these are known. No step can take both."""
    found = [_some_row(data) for data in datasets]
    if any(looks_foreign(row) for row in found):
        rows = [data.first(1) if row is None else row for data, row in zip(datasets, found, strict=True)]
        check_one_place(rows, dataset_names(len(rows)))


def _some_row(data: Any) -> Any:
    """Give an array that is where a dataset is; None if files would have to be read for it."""
    if not isinstance(data, Source):
        # Frames and the like become arrays of the host.
        return data if is_dispatched(data) else np.empty(0)
    return data.specimen if data.again else data.first(1)
