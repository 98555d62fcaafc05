"""Pipelines that apply the same steps to target and backgrounds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from inspect import signature
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.pipeline import make_pipeline as make_plain_pipeline
from sklearn.utils.metaestimators import available_if

from standout._arrays import is_sparse
from standout._messages import InvalidTypeError, InvalidValueError, dataset_names, warn_user
from standout._xp import is_foreign
from standout.estimators._scores import DOC_LINK
from standout.sources import DaskBlocks, Source, as_backgrounds, frame_columns, keys_of, open_dataset, transformed

# Packages whose functions can be called between a pipeline or search of scikit-learn and our ``fit``.
_PASSED = ("standout", "sklearn", "joblib")


def _last_transforms(pipeline: Any) -> bool:
    last = pipeline.steps[-1][1]
    return not is_step(last) or hasattr(last, "transform")


class BackgroundPipeline(Pipeline):
    """A scikit-learn pipeline that transforms the backgrounds in the same way as the target.

    Each step is fitted to the target alone, and then applied to the target and to each background. All datasets
    therefore reach the estimator in the same units. Use `make_pipeline` to build a pipeline. Steps after the estimator
    receive the scores of the target.

    Parameters
    ----------
    steps : list of tuple
        Names and transformers, as in `sklearn.pipeline.Pipeline`.
    transform_input, memory, verbose
        Not used: all backgrounds are transformed, and nothing is stored or printed.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from standout import BackgroundPipeline, DiscriminativePCA
    >>> BackgroundPipeline([("scale", StandardScaler()), ("dpca", DiscriminativePCA(1))]).steps[-1][0]
    'dpca'
    """

    steps: list[Any]

    _doc_link_module = "standout"
    _doc_link_template = DOC_LINK

    def fit(self, X: Any, y: Any = None, *, background: Any = None, **rows: Any) -> BackgroundPipeline:
        """Fit the steps to the target, transform all datasets, and fit the estimator to them.

        Parameters
        ----------
        X : dataset
            The target.
        y : array-like, default=None
            Labels of rows, if the estimator has a `target_label`.
        background : dataset, or list or tuple of datasets, default=None
        **rows
            Weights, groups and covariates of rows, as in ``fit`` of the estimator.

        Returns
        -------
        BackgroundPipeline
            The pipeline itself.
        """
        self.steps = list(self.steps)
        self._validate_steps()
        datasets = self._opened([X, *as_backgrounds(background, X)])
        for number, name, step in self._iter():
            if takes_background(step):
                step.fit(datasets[0], y, background=datasets[1:] or None, **rows)
                datasets, rows = datasets[:1], {}
            else:
                self.steps[number] = (name, _fitted_step(name, step, datasets[0], y))
            if number < len(self.steps) - 1:
                datasets = [_after(data, self.steps[number][1]) for data in datasets]
        return self

    def fit_transform(self, X: Any, y: Any = None, *, background: Any = None, **rows: Any) -> Any:
        """Fit, and return the scores of the target's rows."""
        return self.fit(X, y, background=background, **rows).transform(X)

    @available_if(_last_transforms)  # type: ignore[untyped-decorator]
    def transform(self, X: Any) -> Any:
        """Return the scores of rows, after all steps.

        Parameters
        ----------
        X : dataset

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        (data,) = self._opened([X], "the rows")
        if isinstance(data, DaskBlocks):
            return data.lazily(self.transform, self.steps[-1][1].n_components_)
        last = self.steps[-1][1]
        data = self._before_last(data)
        return last.transform(data) if is_step(last) else data

    def score(self, X: Any, y: Any = None, *, background: Any = None, **params: Any) -> float:
        """Return the score of the last step, for data that are transformed by all other steps.

        Parameters
        ----------
        X, y, background
            Held-out rows, in the form of ``fit``.
        **params
            Further parameters of the last step's ``score``.

        Returns
        -------
        float
        """
        target, *others = map(self._before_last, self._opened([X, *as_backgrounds(background, X)]))
        given = {"background": others} if others else {}
        return float(self.steps[-1][1].score(target, y, **given, **params))

    def _opened(self, datasets: list[Any], name: str | None = None) -> list[Any]:
        """Return the datasets. Data that are read in batches become sources. Tables get the target's column order."""
        keys = keys_of(datasets[0])
        found = []
        for data, own in zip(datasets, dataset_names(len(datasets)), strict=True):
            theirs = keys_of(data)
            if isinstance(data, Source | Iterator) or hasattr(data, "to_delayed"):
                data = open_dataset(data, name or own)
            elif keys is not None and theirs is not None and keys != theirs and set(keys) == set(theirs):
                data = frame_columns(data, keys)
            found.append(data)
        return found

    def _before_last(self, data: Any) -> Any:
        """Return a dataset transformed by all steps except the last."""
        for _, _, step in self._iter(with_final=False):
            data = _after(data, step)
        return data


def make_pipeline(*steps: Any) -> BackgroundPipeline:
    """How can the background be preprocessed in the same way as the target?

    Returns a pipeline. Its ``fit(X, background=...)`` fits the steps to the target, and applies them to all datasets. A
    plain scikit-learn pipeline would pass the backgrounds to the estimator without these steps. If columns only need to
    be scaled, use the estimator's `scale`, which is computed again in every fold and permutation.

    Parameters
    ----------
    *steps : estimators
        Transformers, and an estimator of standout.

    Returns
    -------
    BackgroundPipeline

    Notes
    -----
    Data that are read in batches (`standout.scan`, Dask) go through the steps one batch at a time. Each step must then
    need no fitting, or have a ``partial_fit``. The pipeline calls ``partial_fit`` with each batch of the target.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from standout import DiscriminativePCA, make_pipeline
    >>> rng = np.random.default_rng(0)
    >>> target, background = rng.normal(size=(200, 3)) * [1, 1, 3], rng.normal(size=(200, 3))
    >>> model = make_pipeline(StandardScaler(), DiscriminativePCA(1)).fit(target, background=background)
    >>> model.transform(target).shape
    (200, 1)
    """
    return BackgroundPipeline(make_plain_pipeline(*steps).steps)


def is_step(step: Any) -> bool:
    """Return whether a step of a pipeline is used. None and strings such as "passthrough" are skipped."""
    return step is not None and not isinstance(step, str)


def takes_background(step: Any) -> bool:
    """Return whether the ``fit`` of a step has the parameter `background`."""
    return is_step(step) and "background" in signature(step.fit).parameters


def background_step(estimator: Any) -> Any:
    """Return the step of a pipeline that is fitted against backgrounds, or the estimator itself."""
    steps = [step for _, step in getattr(estimator, "steps", ())]
    return next((background_step(step) for step in steps if takes_background(step)), estimator)


def _after(data: Any, step: Any) -> Any:
    """Return a dataset transformed by a fitted step."""
    return transformed(data, [step]) if isinstance(data, Source) else step.transform(data)


def _fitted_step(name: str, step: Any, data: Any, y: Any) -> Any:
    """Return a step fitted to the target. If the target is read in batches, fit one batch after the other."""
    if not isinstance(data, Source):
        return step.fit(data, y)
    if not step.__sklearn_tags__().requires_fit or type(step).__name__ == "FrozenEstimator":
        return step
    if not data.again:
        problem = f"step {name!r} cannot be fitted to an iterator of batches, which can be read only once"
        raise InvalidTypeError(problem, advice="Give a file or an array, or a step that needs no fitting.")
    if not hasattr(step, "partial_fit"):
        problem = f"step {name!r} cannot be fitted to data that are read in batches: it has no partial_fit"
        raise InvalidTypeError(problem, advice="Use a step such as StandardScaler, or one that needs no fitting.")
    fresh = clone(step)
    for batch in data.batches():
        rows: Any = batch.rows
        if data.columns is not None and not is_sparse(rows) and not is_foreign(rows):
            import pandas as pd

            rows = pd.DataFrame(rows, columns=list(data.columns))
        fresh.partial_fit(rows)
    return fresh


# --- callers of scikit-learn that would lead to wrong results ---------------------------------------------------------


def check_caller(background: Any) -> None:
    """Raise an error or warn if scikit-learn has treated target and background differently before it calls ``fit``.

    In a plain pipeline, the target goes through all steps, but the background reaches the last step unchanged. A plain
    search splits a background into the folds of the target if background and target have the same number of rows.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _PASSED:
        if frame.f_globals["__name__"] == "sklearn.pipeline":
            _check_pipeline(frame.f_locals.get("self"))
        elif frame.f_code.co_name == "_fit_and_score":
            _check_search(frame.f_locals.get("train"), background)
            return
        frame = frame.f_back


def _check_pipeline(pipeline: Any) -> None:
    steps = [step for _, step in getattr(pipeline, "steps", ()) if is_step(step)]
    if len(steps) > 1 and "background" not in (pipeline.transform_input or ()):
        problem = "a plain scikit-learn Pipeline takes the target through its steps, but not the background"
        raise InvalidValueError(problem, advice="Use standout.make_pipeline(...).fit(X, background=...).")


def _check_search(train: Any, background: Any) -> None:
    if train is not None and getattr(background, "shape", (None,))[0] == len(train):
        problem = "scikit-learn has cut the background into the folds of X, because both have the same number of rows"
        advice = "Use standout.BackgroundSearchCV, or pass the background in a list: background=[...]."
        warn_user(problem, advice=advice)
