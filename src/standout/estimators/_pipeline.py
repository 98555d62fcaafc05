"""Pipelines that take the backgrounds through the same steps as the target."""

from __future__ import annotations

from typing import Any

from sklearn import config_context
from sklearn.base import TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.pipeline import make_pipeline as make_plain_pipeline

from standout._validation import as_backgrounds, reject_iterator, reject_source_in_pipeline


class BackgroundPipeline(Pipeline):
    """A scikit-learn pipeline that takes the backgrounds through its steps, as it does the target.

    Every step is fitted on the target alone, then applied to the target and to each background alike, so that all
    datasets arrive at the last step in the same units. Build one with `make_pipeline`.

    It is a `sklearn.pipeline.Pipeline` with ``transform_input=["background"]`` that does three things by itself:
    it switches metadata routing on for its own calls, takes a list of backgrounds as well as a tuple, and transforms
    the backgrounds in `score` too.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from standout import DiscriminativePCA, make_pipeline
    >>> make_pipeline(StandardScaler(), DiscriminativePCA()).transform_input
    ['background']
    """

    def fit(self, X: Any, y: Any = None, *, background: Any = None, **params: Any) -> BackgroundPipeline:
        """Fit the steps on the target X, and the last one against the backgrounds as the steps before leave them."""
        with config_context(enable_metadata_routing=True):
            super().fit(X, y, **_given(self.steps, X, background), **params)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, background: Any = None, **params: Any) -> Any:
        """Fit, and give the scores of X."""
        with config_context(enable_metadata_routing=True):
            return super().fit_transform(X, y, **_given(self.steps, X, background), **params)

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, background: Any = None, **params: Any
    ) -> float:
        """Score the last step on X and the backgrounds, all taken through the steps before it."""
        given = _given(self.steps, X, background)
        if given and len(self.steps) > 1:
            given = {"background": tuple(self[:-1].transform(data) for data in given["background"])}
        with config_context(enable_metadata_routing=True):
            return float(super().score(X, y, sample_weight=sample_weight, **given, **params))


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
    The steps see whole datasets: what is read in parts (`standout.scan`) is refused, and scikit-learn's own
    transformers load a Dask array into memory.

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


def _given(steps: list[Any], X: Any, background: Any) -> dict[str, Any]:
    """Give the backgrounds as a tuple, whose elements scikit-learn transforms one by one; nothing if there are none."""
    backgrounds = tuple(as_backgrounds(background, X))
    for data in (X, *backgrounds):
        reject_iterator(data, "a pipeline")
        if len(steps) > 1:
            reject_source_in_pipeline(data)
    return {"background": backgrounds} if backgrounds else {}
