"""Methods of a fitted model: scores, held-out scores, and hooks of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import reduce
from html import escape
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import _check_feature_names, _get_feature_names, check_is_fitted

from standout._arrays import Array, Float, Rows, stacked
from standout._messages import InvalidValueError, require_extra
from standout._xp import is_foreign, namespace, to_host
from standout.moments import RobustWeights
from standout.problem import Problem
from standout.selection import HeldOut, Path
from standout.sources import DaskBlocks, Source, keys_of, open_dataset, open_datasets

DOC_LINK = "https://github.com/standout-pca/standout/tree/main/docs/api/index.rst"
# The regularisation parameter of each method.
CHOSEN = {"dpca": "shrinkage", "cpca": "alpha", "kdpca": "epsilon", "kcpca": "alpha"}


def keep_parameters(model: Any, given: dict[str, Any]) -> None:
    """Store the arguments of ``__init__`` as attributes. Each class has its own signature, which scikit-learn reads."""
    for name, value in given.items():
        if name != "self":
            setattr(model, name, value)


class FittedTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """The methods of an estimator that was fitted to a target and its backgrounds."""

    # Name of the attribute with the point from which scores are measured.
    _origin: ClassVar[str] = "mean_"
    method: ClassVar[str]
    n_components: int | str | None
    cv: int | None
    center: str
    background_weights: Any
    robust: str | None
    target_label: Any
    random_state: Any

    components_: Float
    eigenvalues_: Float
    ratio_: Float
    ratio_error_: Float
    ratio_interval_: Float
    spread_: Float
    spread_error_: Float
    shift_: Float
    shift_error_: Float
    correlations_: Float
    mean_: Float
    background_weights_: Float
    problem_: Problem
    n_components_: int
    n_features_in_: int
    n_samples_: int
    background_n_samples_: list[int]
    n_folds_: int
    held_out_: HeldOut | None
    path_: Path | None
    # The first entry is for the target and is 0. The further entries are the scores of the mean of each background.
    shifts_: Float
    # Set only with `target_label`, names of columns or `robust`.
    classes_: npt.NDArray[Any]
    background_labels_: list[Any]
    feature_names_in_: npt.NDArray[np.object_]
    row_weights_: list[Float]
    outlying_rows_: list[npt.NDArray[np.intp]]
    robust_weights_: list[RobustWeights]

    # scikit-learn's diagram of a model shows tooltips only if the model has a link to its documentation.
    _doc_link_module = "standout"
    _doc_link_template = DOC_LINK

    def _open(self, X: Any, name: str = "the rows") -> Source:
        """Return rows as a source, and check that they have the columns of the fit."""
        # scikit-learn finds column names only in frames of pandas and polars. `open_dataset` checks other frames.
        if not isinstance(X, Source) and (_get_feature_names(X) is not None or keys_of(X) is None):
            _check_feature_names(self, X, reset=False)
        source = open_dataset(X, name, columns=getattr(self, "feature_names_in_", None))
        if source.width is not None and source.width != self.n_features_in_:
            expected = f"{type(self).__name__} is expecting {self.n_features_in_} features as input"
            problem = f"X has {source.width} features, but {expected}"
            raise InvalidValueError(problem, advice="Give the columns of the fit.")
        return source

    def _scores(self, rows: Rows) -> Array:
        raise NotImplementedError

    def transform(self, X: Any) -> Array:
        """Return the scores of rows, in units of the background's standard deviation.

        Parameters
        ----------
        X : dataset
            Rows with the columns of the fit.

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        source = self._open(X)
        if source.rows is not None:
            return self._new_scores(source.rows)
        if isinstance(source, DaskBlocks):
            return source.lazily(self._new_scores, self.n_components_)
        return stacked([self._new_scores(batch.rows) for batch in source.batches()])

    def held_out_scores(
        self, X: Any, *, background: Any = None, adjust: Any = None, background_adjust: Any = None
    ) -> list[Float]:
        """Return held-out scores of the fitted rows. The components for a row are found without the fold of this row.

        The variance of the backgrounds' scores is 1. The variance of the target's scores is `ratio_`. With
        ``center="background"``, the mean square of the target's scores is `ratio_`.

        Parameters
        ----------
        X : dataset
            The rows of the target, as in ``fit``, in the same order.
        background : dataset, or list or tuple of datasets
            The rows of the backgrounds, as in ``fit``.
        adjust, background_adjust : array-like or list of str, default=None
            The covariates of the fit.

        Returns
        -------
        list of ndarray of shape (n_samples, n_components)
            Scores of the target, then of each background.
        """
        check_is_fitted(self)
        if self.held_out_ is None:
            raise InvalidValueError("the model has no held-out components", advice="Fit it with `cv` and a background.")
        sources = open_datasets(X, background, adjust=adjust, background_adjust=background_adjust)
        sources = [source if source.again else source.loaded() for source in sources]
        self._check_rows(sources)
        found = []
        for number, source in enumerate(sources):
            parts = ((batch.rows, np.arange(batch.start, batch.start + batch.n_rows)) for batch in source.batches())
            found.append(np.concatenate([self._held_out_scores(*part, number, source.covariates) for part in parts]))
        return found

    def _check_rows(self, sources: Sequence[Source]) -> None:
        """Raise an error if the datasets have other numbers of rows than the datasets of the fit."""
        counts = [self.n_samples_, *self.background_n_samples_]
        given = [source.count_rows() for source in sources]
        if given != counts:
            problem = f"the datasets have {given} rows, but the fit had {counts}"
            raise InvalidValueError(problem, advice="Give the datasets of the fit.")

    def _held_out_scores(self, rows: Rows, numbers: Any, dataset: int, covariates: Float | None) -> Float:
        """Return the held-out scores of fitted rows. `numbers` are the positions of the rows in the dataset."""
        assert self.held_out_ is not None
        if self.robust == "cells":
            # Outlying cells are replaced as in the fit.
            rows = self.robust_weights_[dataset].cleaned(rows)
        beside = None if covariates is None else covariates[numbers]
        scores = self.held_out_.scores(self._coordinates(rows), numbers, dataset, getattr(self, self._origin), beside)
        return scores + self.shifts_[dataset]

    def _new_scores(self, rows: Rows) -> Array:
        """Return the scores of new rows.

        With ``robust="cells"``, cells that would be outlying in every dataset of the fit are first set to the limit.
        """
        if self.robust == "cells":
            xp = namespace(rows)
            lows, highs = ([getattr(part, side) for part in self.robust_weights_] for side in ("low", "high"))
            rows = xp.clip(rows, reduce(xp.minimum, lows), reduce(xp.maximum, highs))
        return self._scores(rows)

    def _coordinates(self, rows: Rows) -> Rows:
        return rows

    def score(self, X: Any, y: Any = None, *, background: Any = None) -> float:
        """Return the log ratio of the target's variance to the background's variance, averaged over the components.

        Parameters
        ----------
        X : dataset
            Held-out rows of the target.
        y : None
            Ignored.
        background : dataset, or list or tuple of datasets, default=None
            Held-out rows of the backgrounds. Without them, the variance of the background is assumed to be 1, because
            scores are in units of the background's standard deviation.

        Returns
        -------
        float
        """
        sources = open_datasets(X, background)
        parts = [to_host(self.transform(source)) for source in sources]
        own = parts[0].var(axis=0)
        if self.center == "background":
            own = own + parts[0].mean(axis=0) ** 2
        against: Any = 1.0
        if len(parts) > 1:
            weights = self.background_weights_ if len(self.background_weights_) == len(parts) - 1 else None
            against = np.average([part.var(axis=0) for part in parts[1:]], axis=0, weights=weights)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.mean(np.log(own / against)))

    def to_numpy(self) -> Self:
        """Return a copy of the model with all arrays in the host's memory."""
        model = copy(self)
        for name, value in vars(self).items():
            if is_foreign(value) and hasattr(value, "shape"):
                setattr(model, name, to_host(value))
        if self.held_out_ is not None:
            model.held_out_ = replace(self.held_out_, vectors=to_host(self.held_out_.vectors))
        return model

    def summary(self) -> Any:
        """Return one row per component: ratio with interval, spread, shift, and the leading columns.

        Returns
        -------
        pandas.DataFrame
        """
        check_is_fitted(self)
        require_extra("pandas", "frames", "summary()")
        import pandas as pd

        return pd.DataFrame(_table(self), index=[f"component {number + 1}" for number in range(self.n_components_)])

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there are components. After ``partial_fit`` with too few rows there are none."""
        return hasattr(self, "problem_")

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text: str = super().__repr__(N_CHAR_MAX)
        return f"{text}\n{described(self)}" if self.__sklearn_is_fitted__() else text

    def _repr_html_inner(self) -> str:
        """Return scikit-learn's diagram, with the findings of a fit below it."""
        diagram: str = estimator_html_repr(self)
        return diagram + (described_in_html(self) if self.__sklearn_is_fitted__() else "")

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return bundle | ({"text/html": self._repr_html_inner()} if "text/html" in bundle else {})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.robust != "cells"
        tags.array_api_support = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_components_


# --- text and tables of a fitted model -------------------------------------------------------------------------------


def described(model: Any) -> str:
    """Return rows, columns, ratio and choice of a fitted model in one line."""
    counts = [f"{count:,}" for count in model.background_n_samples_]
    columns = f"of {model.n_features_in_:,} columns"
    if not counts:
        return f"fitted to {model.n_samples_:,} rows {columns}"
    ratios = ", ".join(
        f"{ratio:.3g} ({low:.3g} to {high:.3g})"
        for ratio, (low, high) in zip(model.ratio_, model.ratio_interval_, strict=True)
        if np.isfinite(ratio)
    )
    found = f"ratio {ratios}" if ratios else "no held-out ratio"
    name, path = CHOSEN[model.method], model.path_
    how = "" if path is None else f" ({path.reason})" if path.reason else " (chosen)"
    rows = f"fitted to {model.n_samples_:,} against {' and '.join(counts)} rows {columns}"
    return f"{rows}; {found}; {name} {getattr(model, f'{name}_'):.3g}{how}"


def described_in_html(model: Any) -> str:
    """Return rows, columns, choice and a table of the components of a fitted model, for notebooks."""
    table = _table(model)
    head = "".join(f"<th>{escape(name)}</th>" for name in table)
    lines = [
        "".join(f"<td>{escape(part if isinstance(part, str) else f'{part:.3g}')}</td>" for part in row)
        for row in zip(*table.values(), strict=True)
    ]
    body = "".join(f"<tr>{line}</tr>" for line in lines[:10])
    table_html = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div class='standout-fit'><p>{escape(described(model))}</p>{table_html}</div>"


def _table(model: Any) -> dict[str, Any]:
    """Return the columns of a table with one row per component."""
    low, high = model.ratio_interval_.T
    table = {"ratio": model.ratio_, "lower": low, "upper": high, "spread": model.spread_, "shift": model.shift_}
    table["eigenvalue"] = to_host(model.eigenvalues_)
    if hasattr(model, "correlations_"):
        table["leading columns"] = [", ".join(names) for names in leading_columns(model)]
    return table


def leading_columns(model: Any, most: int = 3) -> list[list[str]]:
    """Return for each component the columns with the largest correlations, and the signs of these correlations."""
    names = getattr(model, "feature_names_in_", None)
    found = []
    for row in np.nan_to_num(to_host(model.correlations_)):
        order = np.argsort(-np.abs(row), kind="stable")[:most]
        found.append([f"{'-' if row[i] < 0 else '+'}{i if names is None else names[i]}" for i in order])
    return found
