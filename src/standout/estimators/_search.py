"""Choose parameters by cross-validation that also leaves out rows of the backgrounds."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import GridSearchCV, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from standout._messages import InvalidTypeError, InvalidValueError, dataset_names
from standout.estimators._pipeline import background_step
from standout.estimators._scores import DOC_LINK, keep_parameters
from standout.sources import as_backgrounds, keys_of, open_dataset
from standout.sources._open import for_each

Numbers = npt.NDArray[np.intp]


class BackgroundSearchCV(TransformerMixin, BaseEstimator):
    """Which parameters lead to components that generalise to new rows?

    ``GridSearchCV(estimator, grid).fit(X, background=Y)`` splits X into folds but not Y, so that held-out rows of X are
    compared with background rows that were fitted. This search splits every dataset into folds. Each fold is
    held out in turn. The fit uses the other folds of all datasets, and is scored on the held-out rows of all datasets.

    Parameters
    ----------
    estimator : estimator or pipeline
        An estimator of standout, or `make_pipeline` with one. The steps are fitted within each fold.
    param_grid : dict, list of dict, or iterable of dict
        The parameters to try, as in `sklearn.model_selection.GridSearchCV`, or a
        `sklearn.model_selection.ParameterSampler`.
    scoring : callable or None, default=None
        ``scoring(estimator, X, y, background=...)`` returns a number that is larger for better parameters. None is the
        estimator's ``score``.
    refit : bool or callable, default=True
        Whether to fit the estimator with the best parameters to all rows. A callable gets `cv_results_`, and returns
        the index of the best parameters.
    cv : int or splitter, default=5
        Number of folds, or a splitter of scikit-learn, which splits each dataset separately. With groups, the datasets
        are split together, and all rows of a group are in one fold.
    error_score : "raise" or float, default=nan
        Score of a fit that fails.
    n_jobs : int, default=None
        Number of fits that run at the same time.
    random_state : int or None, default=None
        Seed of the folds.

    Attributes
    ----------
    best_params_ : dict
        The parameters with the largest score.
    best_score_ : float
        Mean score of the best parameters over the folds, by default the mean log ratio.
    best_index_ : int
        Index of the best parameters in `cv_results_`.
    best_estimator_ : estimator
        The estimator with the best parameters, fitted to all rows.
    cv_results_ : dict of arrays
        ``params``, ``param_...``, ``split0_test_score`` ..., ``mean_test_score``, ``std_test_score`` and
        ``rank_test_score``, as in scikit-learn.
    n_splits_, n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from standout import BackgroundSearchCV, DiscriminativePCA
    >>> rng = np.random.default_rng(0)
    >>> target, background = rng.normal(size=(2, 60, 40))
    >>> target[:, 7] *= 3
    >>> search = BackgroundSearchCV(DiscriminativePCA(1, cv=None), {"shrinkage": [0.0, 0.1, 0.5, 0.9]})
    >>> search.fit(target, background=background).best_params_["shrinkage"] > 0.1
    True
    """

    _doc_link_module = "standout"
    _doc_link_template = DOC_LINK

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Callable[..., float] | None = None,
        refit: Any = True,
        cv: Any = 5,
        error_score: Any = np.nan,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        keep_parameters(self, locals())

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        background: Any = None,
        groups: Any = None,
        background_groups: Any = None,
        **rows: Any,
    ) -> BackgroundSearchCV:
        """Try all parameters on folds of all datasets, and fit the best ones to all rows.

        Parameters
        ----------
        X : array-like, sparse matrix or frame
            The target; with the estimator's `target_label`, the rows of all datasets.
        y : array-like of shape (n_samples,), default=None
            Label of each row, with `target_label`.
        background : dataset, or list or tuple of datasets, default=None
        groups, background_groups : array-like, default=None
            The subject of each row; for several backgrounds a list. All rows of a subject are held out together.
        **rows
            Further values for each row, as in ``fit`` of the estimator. Names with the prefix ``background_`` are for
            rows of the backgrounds, other names for rows of X.

        Returns
        -------
        BackgroundSearchCV
            The search itself.
        """
        datasets = [X, *as_backgrounds(background, X)]
        counts = [_count(data, name) for data, name in zip(datasets, dataset_names(len(datasets)), strict=True)]
        beside = {"groups": groups, "background_groups": background_groups, **rows}
        given = _Given(counts, {"X": datasets, "y": [None if y is None else np.asarray(y)], **_listed(beside, counts)})
        grid = self.param_grid
        if not isinstance(grid, Mapping | list):
            grid = [{name: [value] for name, value in params.items()} for params in grid]
        settings = {"n_jobs": self.n_jobs, "refit": self.refit, "error_score": self.error_score}
        settings["cv"] = _splits(given, self.cv, self.random_state)
        search = GridSearchCV(_OfNumbers(self.estimator, given, self.scoring), grid, **settings)
        search.fit(np.arange(sum(counts)))
        self.cv_results_, self.n_splits_ = search.cv_results_, search.n_splits_
        means = self.cv_results_["mean_test_score"]
        if not np.isfinite(means).any():
            advice = 'See the reason with error_score="raise".'
            raise InvalidValueError("no parameters have a finite score", advice=advice)
        self.best_index_, self.best_params_ = search.best_index_, search.best_params_
        self.best_score_ = float(means[self.best_index_])
        self.n_features_in_ = int(np.shape(X)[1])
        keys = keys_of(X)
        if keys is not None and all(isinstance(key, str) for key in keys):
            self.feature_names_in_ = np.array(keys, dtype=object)
        if self.refit:
            self.best_estimator_ = search.best_estimator_.estimator
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether the best parameters were fitted to all rows."""
        return hasattr(self, "best_estimator_")

    def _best(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_

    def transform(self, X: Any) -> Any:
        """Return the scores of rows along the components of `best_estimator_`."""
        return self._best().transform(X)

    def inverse_transform(self, X: Any) -> Any:
        """Map scores back to rows with `best_estimator_`."""
        return self._best().inverse_transform(X)

    def score(self, X: Any, y: Any = None, *, background: Any = None) -> float:
        """Return the score of `best_estimator_` on new rows, in the units of `best_score_`."""
        return _score(self._best(), self.scoring, X, y, **({} if background is None else {"background": background}))

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the components."""
        return self._best().get_feature_names_out(input_features)


def _score(estimator: Any, scoring: Any, X: Any, y: Any, **given: Any) -> float:
    return float(estimator.score(X, y, **given) if scoring is None else scoring(estimator, X, y, **given))


@dataclass(frozen=True, eq=False)
class _Given:
    """The arguments of a fit by name, each as a list over the datasets.

    Rows have consecutive numbers over all datasets.
    """

    counts: list[int]
    values: dict[str, list[Any]]

    def some(self, rows: Numbers, known: Container[str] = ("X", "y")) -> dict[str, Any]:
        """Return the arguments for some of the rows, for a method that accepts the names in `known`."""
        starts = np.cumsum([0, *self.counts])
        parts = np.split(np.sort(rows), np.searchsorted(np.sort(rows), starts[1:-1]))
        numbers = [part - start for part, start in zip(parts, starts, strict=False)]
        found: dict[str, Any] = {}
        for name in [name for name in self.values if name in known]:
            # `y` has an entry for the target only, so the lists can differ in length.
            pairs = zip(self.values[name], numbers, strict=False)
            found[name], *others = (None if part is None else _safe_indexing(part, own) for part, own in pairs)
            if others:
                found["background" if name == "X" else f"background_{name}"] = others
        return found


class _OfNumbers(BaseEstimator):
    """An estimator that is fitted and scored with row numbers, so that scikit-learn can split all datasets."""

    def __init__(self, estimator: Any, given: _Given, scoring: Any) -> None:
        keep_parameters(self, locals())

    def __sklearn_clone__(self) -> _OfNumbers:
        return _OfNumbers(clone(self.estimator), self.given, self.scoring)

    def set_params(self, **params: Any) -> _OfNumbers:
        self.estimator.set_params(**params)
        return self

    def fit(self, rows: Numbers, y: None = None) -> _OfNumbers:
        known = {"X", "y", *signature(background_step(self.estimator).fit).parameters}
        self.estimator.fit(**self.given.some(rows, known))
        return self

    def score(self, rows: Numbers, y: None = None) -> float:
        found = _score(self.estimator, self.scoring, **self.given.some(rows))
        # The score is infinite if the background rows do not vary. With NaN, the parameters cannot become the best.
        return found if np.isfinite(found) else float("nan")


def _listed(given: dict[str, Any], counts: list[int]) -> dict[str, list[Any]]:
    """Return arguments with one value per row, such as groups and weights, as lists over the datasets."""
    found: dict[str, list[Any]] = {}
    for name in dict.fromkeys(name.removeprefix("background_") for name, value in given.items() if value is not None):
        each = for_each(given.get(name), given.get(f"background_{name}"), name, len(counts))
        for (value, parameter), count in zip(each, counts, strict=True):
            if value is not None and (isinstance(value, str) or len(value) != count):
                problem = f"has {len(value)} entries, but the dataset has {count} rows"
                raise InvalidValueError(problem, parameter=parameter, advice="Give one entry per row.")
        found[name] = [value for value, _ in each]
    return found


def _splits(given: _Given, cv: Any, random_state: Any) -> list[tuple[Numbers, Numbers]]:
    """Return the numbers of the fitted and the held-out rows of each split."""
    counts, groups = given.counts, given.values.get("groups")
    labels = None if len(counts) > 1 else given.values["y"][0]
    settings = {"shuffle": True, "random_state": 0 if random_state is None else random_state}
    owner = np.repeat(np.arange(len(counts)), counts)
    kind: Any = StratifiedGroupKFold if groups is not None else KFold if labels is None else StratifiedKFold
    splitter = kind(cv, **settings) if isinstance(cv, int) else cv
    if groups is None:
        # Each dataset is split separately, so that every fold has rows of every dataset.
        cut = [
            [[own[part] for part in split] for split in splitter.split(own, own if labels is None else labels)]
            for own in np.split(np.arange(len(owner)), np.cumsum(counts)[:-1])
        ]
        both = ([np.concatenate(parts) for parts in zip(*split, strict=True)] for split in zip(*cut, strict=True))
        splits = [(fitted, left) for fitted, left in both]
    else:
        every = np.concatenate([np.asarray(part).astype(str) for part in groups])
        splits = list(splitter.split(every, owner if labels is None else labels, every))
    if min(np.bincount(owner[left], minlength=len(counts)).min() for _, left in splits) < 2:
        problem = "leaves out fewer than 2 rows of a dataset"
        raise InvalidValueError(problem, parameter="cv", value=cv, advice="Use fewer folds.")
    return splits


def _count(data: Any, name: str) -> int:
    """Return the number of rows of a dataset in memory."""
    source = open_dataset(data, name)
    if source.rows is None:
        problem = f"{name} is read in batches, but a search selects rows of it again and again"
        raise InvalidTypeError(problem, advice='Use `shrinkage`, `alpha` or `epsilon` "auto", which read it once.')
    return int(source.rows.shape[0])
