"""Choosing parameters by cross-validation that leaves rows out of the backgrounds, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import KFold, ParameterGrid, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from standout._messages import InvalidTypeError, InvalidValueError, dataset_names, warn_user
from standout.estimators._pipeline import background_step
from standout.estimators._scores import DOC_LINK, keep_parameters
from standout.sources import as_backgrounds, keys_of, open_dataset

Numbers = npt.NDArray[np.intp]
REASON = 'See the reason with error_score="raise".'
# Rows that are left out of each dataset, and rows that are fitted.
Split = tuple[list[Numbers], list[Numbers]]


class BackgroundSearchCV(TransformerMixin, BaseEstimator):
    """Which parameters lead to components that hold on new rows?

    ``GridSearchCV(estimator, grid).fit(X, background=Y)`` cuts X into folds and leaves Y whole, so that each fold is
    compared with rows of the background that were fitted. This search cuts every dataset into folds. Each fit uses the
    other folds of all datasets, and is scored on held-out rows of all.

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
        Whether the best parameters are fitted to all rows. A callable returns the index of the best parameters from
        `cv_results_`.
    cv : int or splitter, default=5
        Number of folds, or a splitter of scikit-learn, which cuts each dataset. With groups, the datasets are cut
        together, and all rows of a group are in one fold.
    error_score : "raise" or float, default=nan
        Score of a fit that fails.
    n_jobs : int, default=None
        Number of fits at the same time.
    random_state : int or None, default=None
        Seed of the folds.

    Attributes
    ----------
    best_params_ : dict
        The parameters with the largest score.
    best_score_ : float
        Their mean score over the folds, in the units of ``score``: the mean log ratio.
    best_index_ : int
        Their place in `cv_results_`.
    best_estimator_ : estimator
        Fitted with these to all rows.
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

    cv_results_: dict[str, Any]
    best_params_: dict[str, Any]
    best_score_: float
    best_index_: int
    best_estimator_: Any
    n_splits_: int

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
            The subject of each row; for several backgrounds a list. A subject is left out of all datasets together.
        **rows
            Further values for each row of X or, with the prefix ``background_``, of the backgrounds, as in ``fit`` of
            the estimator.

        Returns
        -------
        BackgroundSearchCV
            The search itself.
        """
        datasets = [X, *as_backgrounds(background, X)]
        counts = [_count(data, name) for data, name in zip(datasets, dataset_names(len(datasets)), strict=True)]
        beside = {"groups": groups, "background_groups": background_groups, **rows}
        given = _Given(datasets, y, _listed(beside, counts))
        splits = _splits(given, counts, self.cv, self.random_state)
        candidates = list(
            ParameterGrid(self.param_grid) if isinstance(self.param_grid, Mapping | list) else self.param_grid
        )
        if not candidates:
            raise InvalidValueError("is empty", parameter="param_grid", advice="Give at least one value to try.")
        scores = Parallel(n_jobs=self.n_jobs)(
            delayed(_split_score)(
                clone(self.estimator).set_params(**params), given, split, self.scoring, self.error_score
            )
            for params in candidates
            for split in splits
        )
        self.n_splits_, self.n_features_in_ = len(splits), int(np.shape(X)[1])
        keys = keys_of(X)
        if keys is not None and all(isinstance(key, str) for key in keys):
            self.feature_names_in_ = np.array(keys, dtype=object)
        self._keep(candidates, np.reshape(scores, (len(candidates), len(splits))))
        if self.refit:
            best = clone(self.estimator).set_params(**self.best_params_)
            self.best_estimator_ = given.fitted(best, [np.arange(count) for count in counts])
        return self

    def _keep(self, candidates: list[dict[str, Any]], scores: npt.NDArray[np.float64]) -> None:
        """Keep the scores of all parameters, and the best of them."""
        failed = ~np.isfinite(scores)
        if failed.all():
            raise InvalidValueError("no parameters have a finite score", advice=REASON)
        if failed.any():
            failures = f"{int(failed.sum())} of {failed.size} fits have failed or have no finite score"
            warn_user(failures, advice=REASON)
        means = scores.mean(axis=1)
        usable = np.where(np.isfinite(means), means, -np.inf)
        results: dict[str, Any] = {"params": candidates}
        for name in sorted({name for params in candidates for name in params}):
            column = np.ma.MaskedArray(np.empty(len(candidates), dtype=object), mask=True)
            for place, params in enumerate(candidates):
                if name in params:
                    column[place] = params[name]
            results[f"param_{name}"] = column
        results |= {f"split{split}_test_score": column for split, column in enumerate(scores.T)}
        results |= {"mean_test_score": means, "std_test_score": scores.std(axis=1)}
        results["rank_test_score"] = stats.rankdata(-usable, method="min").astype(np.int32)
        self.cv_results_ = results
        self.best_index_ = int(self.refit(results)) if callable(self.refit) else int(np.argmax(usable))
        self.best_score_ = float(means[self.best_index_])
        self.best_params_ = candidates[self.best_index_]

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether the best parameters were fitted to all rows."""
        return hasattr(self, "best_estimator_")

    def _best(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_

    def transform(self, X: Any) -> Any:
        """Return the scores of rows along the components of `best_estimator_`."""
        return self._best().transform(X)

    def fit_transform(self, X: Any, y: Any = None, **given: Any) -> Any:
        """Fit, and return the scores of the target's rows."""
        return self.fit(X, y, **given).transform(X)

    def inverse_transform(self, X: Any) -> Any:
        """Map scores back to rows by `best_estimator_`."""
        return self._best().inverse_transform(X)

    def score(self, X: Any, y: Any = None, *, background: Any = None) -> float:
        """Return the score of `best_estimator_` on new rows, in the units of `best_score_`."""
        return float(_score(self._best(), self.scoring, X, y, {} if background is None else {"background": background}))

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the components."""
        return self._best().get_feature_names_out(input_features)


def _score(estimator: Any, scoring: Any, X: Any, y: Any, given: dict[str, Any]) -> float:
    return float(estimator.score(X, y, **given) if scoring is None else scoring(estimator, X, y, **given))


@dataclass(frozen=True, eq=False)
class _Given:
    """The datasets of a fit, the target first, labels of rows, and further values for each row.

    `beside` has one entry for the target under each name, and one for each background under ``background_...``.
    """

    datasets: list[Any]
    y: Any
    beside: dict[str, list[Any]]

    def fitted(self, estimator: Any, numbers: list[Numbers]) -> Any:
        """Fit an estimator to some rows of each dataset."""
        known = signature(background_step(estimator).fit).parameters
        beside = {name: self._beside(name, numbers) for name in self.beside if name in known}
        X, y, given = self.some(numbers)
        return estimator.fit(X, y, **given, **beside)

    def some(self, numbers: list[Numbers]) -> tuple[Any, Any, dict[str, Any]]:
        """Return some rows of the target, their labels, and some rows of the backgrounds."""
        y = None if self.y is None else np.asarray(self.y)[numbers[0]]
        target, *others = (_safe_indexing(data, own) for data, own in zip(self.datasets, numbers, strict=True))
        return target, y, {"background": others} if others else {}

    def _beside(self, name: str, numbers: list[Numbers]) -> Any:
        several = name.startswith("background_")
        each = zip(self.beside[name], numbers[1:] if several else numbers[:1], strict=True)
        found = [None if part is None else _safe_indexing(part, own) for part, own in each]
        return found if several else found[0]


def _listed(given: dict[str, Any], counts: list[int]) -> dict[str, list[Any]]:
    """Return the values beside the rows as lists over the datasets, with one value per row."""
    found: dict[str, list[Any]] = {}
    for parameter, value in given.items():
        if value is None:
            continue
        several = parameter.startswith("background_")
        sizes = counts[1:] if several else counts[:1]
        each = list(value) if several and isinstance(value, list | tuple) and len(value) == len(sizes) else [value]
        lengths = [size if part is None else len(part) for part, size in zip(each, sizes, strict=False)]
        if len(each) != len(sizes) or lengths != sizes or any(isinstance(part, str) for part in each):
            problem = f"has {lengths} entries, but the datasets have {sizes} rows"
            advice = "Give one entry per row, and a list of these for several backgrounds."
            raise InvalidValueError(problem, parameter=parameter, advice=advice)
        found[parameter] = each
    return found


def _split_score(estimator: Any, given: _Given, split: Split, scoring: Any, error_score: Any) -> float:
    """Fit without the rows that are left out, and return the score on them."""
    left, fitted = split
    try:
        X, y, others = given.some(left)
        return _score(given.fitted(estimator, fitted), scoring, X, y, others)
    except Exception:
        if isinstance(error_score, str):
            raise
        return float(error_score)


def _splits(given: _Given, counts: list[int], cv: Any, random_state: Any) -> list[Split]:
    """Return the rows of each dataset that are left out and fitted in each split."""
    labels = None if given.y is None or len(counts) > 1 else np.asarray(given.y)
    groups = [*given.beside.get("groups", [None]), *given.beside.get("background_groups", [None] * (len(counts) - 1))]
    missing = [part is None for part in groups]
    if any(missing) and not all(missing):
        raise InvalidValueError("are needed for every dataset, or for none", parameter="groups", advice="Give all.")
    seed = 0 if random_state is None else random_state
    if not any(missing):
        splitter = StratifiedGroupKFold(cv, shuffle=True, random_state=seed) if isinstance(cv, int) else cv
        strata = np.repeat(np.arange(len(counts)), counts) if labels is None else labels
        every = np.concatenate([np.asarray(part).astype(str) for part in groups])
        starts = np.cumsum([0, *counts])
        tests = [np.sort(test) for _, test in splitter.split(every, strata, every)]
        left = [[test[(test >= a) & (test < b)] - a for a, b in pairwise(starts.tolist())] for test in tests]
    else:
        kind = KFold if labels is None else StratifiedKFold
        splitter = kind(cv, shuffle=True, random_state=seed) if isinstance(cv, int) else cv
        strata_of = [np.zeros(count, dtype=int) if labels is None else labels for count in counts]
        each = [[test for _, test in splitter.split(own, own)] for own in strata_of]
        left = [list(parts) for parts in zip(*each, strict=True)]
    if min(len(part) for parts in left for part in parts) < 2:
        problem = "leaves out fewer than 2 rows of a dataset"
        raise InvalidValueError(problem, parameter="cv", value=cv, advice="Use fewer folds.")
    every_row = [np.arange(count) for count in counts]
    return [(parts, [np.setdiff1d(*pair) for pair in zip(every_row, parts, strict=True)]) for parts in left]


def _count(data: Any, name: str) -> int:
    """Return the number of rows of a dataset in memory."""
    source = open_dataset(data, name)
    if source.rows is None:
        problem = f"{name} is read in batches, but a search selects rows of it again and again"
        raise InvalidTypeError(problem, advice='Use `shrinkage`, `alpha` or `epsilon` "auto", which read it once.')
    return int(source.rows.shape[0])
