"""Choosing parameters by cross-validation that leaves rows out of the backgrounds, too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import ParameterGrid, StratifiedGroupKFold
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from standout._checks import as_backgrounds, as_labels, as_seed, check_whole
from standout._messages import InvalidTypeError, InvalidValueError, dataset_names
from standout.estimators._facts import FACTS, of_each_background, taken_rows
from standout.estimators._pipeline import BackgroundPipeline
from standout.sources import Backgrounds, Dataset, open_dataset

Numbers = npt.NDArray[np.intp]


class BackgroundSearchCV(TransformerMixin, BaseEstimator):
    """Which parameters give the contrast that holds best on new rows?

    ``GridSearchCV(estimator, grid).fit(T, background=B)`` cuts T into folds and leaves B whole, so that each fold is
    scored against rows of the background that were fitted. Along components that were fitted to them they vary too
    little, the more so the less is regularised, and the search ends at no shrinkage at all. This search cuts every
    dataset into folds: each fit sees the other folds of all datasets, and is scored on rows that it has not seen.

    Parameters
    ----------
    estimator : estimator or pipeline
        One that is fitted by ``fit(X, background=...)``, or, with its `target_label`, by ``fit(X, y)``: an estimator
        of standout, or `make_pipeline` of steps and one. The steps are fitted within each fold, too.
    param_grid : dict, list of dict, or iterable of dict
        The parameters to try, as in `sklearn.model_selection.GridSearchCV`; a
        `sklearn.model_selection.ParameterSampler` draws some at random.
    cv : int, default=5
        Number of folds. Rows are dealt into them at random; with `groups`, all rows of a group into one.
    n_jobs : int, default=None
        Number of fits at the same time, as in scikit-learn.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds. None is a fixed seed, too.

    Attributes
    ----------
    best_params_ : dict
        The parameters with the largest score.
    best_estimator_ : estimator
        The estimator with these, fitted to all rows.
    best_score_ : float
        Mean over the folds of the logarithm of the ratio of variances (`score` of the estimator).
    best_index_ : int
        Its place in `cv_results_`.
    cv_results_ : dict of arrays
        ``params``, a ``param_...`` for each of them, ``split0_test_score`` ..., ``mean_test_score``,
        ``std_test_score`` and ``rank_test_score``, as in scikit-learn. ``pandas.DataFrame`` shows it.
    n_splits_ : int
        Number of folds.

    See Also
    --------
    DiscriminativePCA : Its ``shrinkage="held-out"`` chooses from sums of folds, in one pass over the data, also for
        data that are read in parts. For one parameter that is the faster way.

    Notes
    -----
    A class of its own, and no splitter for `GridSearchCV`: scikit-learn cuts only what has a row for each row of X, so
    that a background of another length always stays whole. The logarithm is taken because ratios are skewed: one
    fold with a large ratio would outweigh the others.

    Examples
    --------
    With about as many columns as rows, some shrinkage holds better on new rows than none.

    >>> import numpy as np
    >>> from standout import BackgroundSearchCV, DiscriminativePCA
    >>> rng = np.random.default_rng(0)
    >>> target, background = rng.normal(size=(2, 60, 40))
    >>> target[:, 7] *= 3
    >>> search = BackgroundSearchCV(DiscriminativePCA(1), {"shrinkage": [0.0, 0.1, 0.5, 0.9]})
    >>> search.fit(target, background=background).best_params_
    {'shrinkage': 0.9}
    >>> search.transform(target).shape
    (60, 1)
    """

    __metadata_request__fit = dict.fromkeys(("background", *FACTS), True)
    __metadata_request__score = {"background": True}  # noqa: RUF012

    def __init__(
        self, estimator: Any, param_grid: Any, *, cv: int = 5, n_jobs: int | None = None, random_state: Any = None
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.cv = cv
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Dataset,
        y: Any = None,
        *,
        background: Backgrounds = None,
        groups: Any = None,
        background_groups: Any = None,
        **rows: Any,
    ) -> BackgroundSearchCV:
        """Try all parameters on folds of all datasets, and fit the best ones to all rows.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or table
            The target; with the estimator's `target_label`, the rows of all datasets.
        y : array-like of shape (n_samples,), default=None
            Label of each row, with `target_label`.
        background : dataset, or list or tuple of datasets, default=None
            The backgrounds.
        groups : array-like of shape (n_samples,), default=None
            Group of each row of X, such as the subject it is of. Rows of a group are never divided between folds.
        background_groups : array-like, or list or tuple of array-likes, default=None
            Groups of the rows of each background. A group that occurs in several datasets is left out of all at once.
        **rows
            Whatever else ``fit`` of the estimator takes for each row of X or, with the prefix ``background_``, for each
            row of the backgrounds. It is cut as the rows are.

        Returns
        -------
        BackgroundSearchCV
            The fitted search itself.
        """
        datasets = [X, *as_backgrounds(background, X)]
        parts, counts = _in_memory(datasets)
        beside = {"groups": groups, "background_groups": background_groups, **rows}
        given = _Given(parts, y, _beside_rows(beside, counts))
        self.n_splits_ = check_whole(self.cv, "cv", least=2)
        dealt = _dealt(given, counts, self.n_splits_, as_seed(self.random_state))
        candidates = _candidates(self.param_grid)
        scores = Parallel(n_jobs=self.n_jobs)(
            delayed(_fold_score)(clone(self.estimator).set_params(**params), given, dealt, fold)
            for params in candidates
            for fold in range(self.n_splits_)
        )
        self._keep(candidates, np.reshape(scores, (len(candidates), self.n_splits_)))
        best = clone(self.estimator).set_params(**self.best_params_)
        self.best_estimator_ = given.fitted(best, [np.arange(count) for count in counts])
        return self

    def transform(self, X: Dataset) -> Any:
        """Project rows on the components of `best_estimator_`."""
        check_is_fitted(self)
        return self.best_estimator_.transform(X)

    def fit_transform(self, X: Dataset, y: Any = None, **given: Any) -> Any:
        """Fit, and give the scores of X; see `fit`."""
        return self.fit(X, y, **given).transform(X)

    def score(self, X: Dataset, y: Any = None, *, background: Backgrounds = None, sample_weight: Any = None) -> float:
        """Give the ratio of variances along the components of `best_estimator_`: its ``score``."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y, background=background, sample_weight=sample_weight))

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether the best estimator is there."""
        return hasattr(self, "best_estimator_")

    def _keep(self, candidates: list[dict[str, Any]], scores: npt.NDArray[np.float64]) -> None:
        """Keep the scores of all parameters, and the best of these."""
        # An infinite ratio in a fold is a background without variance there: nothing that can be compared.
        usable = np.where(np.all(np.isfinite(scores), axis=1), scores.mean(axis=1), -np.inf)
        if not np.any(np.isfinite(usable)):
            raise InvalidValueError(
                "no parameters give a finite ratio in every fold", advice="Use some shrinkage, or fewer components."
            )
        results: dict[str, Any] = {"params": candidates}
        for name in sorted({name for params in candidates for name in params}):
            column = np.ma.MaskedArray(np.empty(len(candidates), dtype=object), mask=True)
            for place, params in enumerate(candidates):
                if name in params:
                    column[place] = params[name]
            results[f"param_{name}"] = column
        results |= {f"split{fold}_test_score": column for fold, column in enumerate(scores.T)}
        results |= {"mean_test_score": usable, "std_test_score": scores.std(axis=1)}
        results["rank_test_score"] = stats.rankdata(-usable, method="min").astype(np.int32)
        self.cv_results_ = results
        self.best_index_ = int(np.argmax(usable))
        self.best_score_ = float(usable[self.best_index_])
        self.best_params_ = candidates[self.best_index_]


@dataclass(frozen=True, eq=False)
class _Given:
    """What a fit was given: the target, then the backgrounds, the labels of rows, and what else is known of rows.

    `beside` has one entry for the target under each name, and one for each background under ``background_...``.
    """

    datasets: list[Any]
    y: Any
    beside: dict[str, list[Any]]

    def fitted(self, estimator: Any, numbers: list[Numbers]) -> Any:
        """Fit an estimator to some rows of each dataset."""
        # Groups that the estimator does not ask for make folds alone.
        known = signature(_last(estimator).fit).parameters
        taken = {
            name: self._beside(name, numbers) for name in self.beside if name in known or not name.endswith("groups")
        }
        return estimator.fit(*self._rows(numbers), **self._backgrounds(numbers), **taken)

    def score(self, estimator: Any, numbers: list[Numbers]) -> float:
        """Score a fitted estimator on some rows of each dataset."""
        return float(estimator.score(*self._rows(numbers), **self._backgrounds(numbers)))

    def _rows(self, numbers: list[Numbers]) -> tuple[Any, Any]:
        y = None if self.y is None else np.asarray(self.y)[numbers[0]]
        return taken_rows(self.datasets[0], numbers[0]), y

    def _backgrounds(self, numbers: list[Numbers]) -> dict[str, Any]:
        parts = [taken_rows(data, some) for data, some in zip(self.datasets[1:], numbers[1:], strict=True)]
        return {"background": parts} if parts else {}

    def _beside(self, name: str, numbers: list[Numbers]) -> Any:
        of_backgrounds = name.startswith("background_")
        some = numbers[1:] if of_backgrounds else numbers[:1]
        taken = [
            None if part is None else taken_rows(part, own) for part, own in zip(self.beside[name], some, strict=True)
        ]
        return taken if of_backgrounds else taken[0]


def _last(estimator: Any) -> Any:
    """Give the step of a pipeline that takes what is known of rows: its last one."""
    return _last(estimator.steps[-1][1]) if isinstance(estimator, BackgroundPipeline) else estimator


def _beside_rows(given: dict[str, Any], counts: list[int]) -> dict[str, list[Any]]:
    """Check what is given beside the rows, and list it by datasets: one entry for each row."""
    names, found = dataset_names(len(counts)), {}
    for parameter, value in given.items():
        if value is None:
            continue
        if parameter.startswith("background_"):
            n_dimensions = 2 if parameter == "background_adjust" else 1
            each = of_each_background(value, len(counts) - 1, parameter, "entries", n_dimensions=n_dimensions)
            first = 1
        else:
            each, first = [value], 0
        for number, part in enumerate(each, start=first):
            shape = (counts[number],) if part is None else np.shape(part)
            if shape[:1] != (counts[number],):
                raise InvalidValueError(
                    "has shape {shape}, but {name} has {limit} rows",
                    parameter=parameter,
                    shape=shape,
                    name=names[number],
                    limit=counts[number],
                    advice="Give an entry for each row. A search does not take the name of a column.",
                )
        found[parameter] = each
    return found


def _fold_score(estimator: Any, given: _Given, dealt: list[Numbers], fold: int) -> float:
    """Fit without a fold of every dataset, and give the logarithm of the ratio of variances on its rows."""
    fitted = given.fitted(estimator, [np.flatnonzero(folds != fold) for folds in dealt])
    ratio = given.score(fitted, [np.flatnonzero(folds == fold) for folds in dealt])
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.log(ratio))


def _dealt(given: _Given, counts: list[int], n_folds: int, seed: int) -> list[Numbers]:
    """Give the fold of each row of each dataset: equally many rows of each label, all rows of a group in one."""
    groups, others = given.beside.get("groups"), given.beside.get("background_groups")
    labels = None if given.y is None or len(counts) > 1 else as_labels(given.y, counts[0], "y")
    if groups is None and others is None:
        rng = np.random.default_rng(seed)
        strata = [np.zeros(count, dtype=np.intp) for count in counts]
        if labels is not None:
            strata = [np.unique(labels, return_inverse=True)[1]]
        dealt = [_shuffled(stratum, n_folds, rng) for stratum in strata]
    else:
        missing = "are needed for every dataset, or for none"
        given_groups = [*(groups or [None]), *(others or [None] * (len(counts) - 1))]
        if any(part is None for part in given_groups):
            raise InvalidValueError(missing, parameter="groups", advice="Give {p.background_groups}, too.")
        each = [as_labels(part, count, "groups") for part, count in zip(given_groups, counts, strict=True)]
        strata_of_rows = np.repeat(np.arange(len(counts)), counts) if labels is None else labels
        every = np.concatenate(each)
        splitter = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed % 2**32)
        folds = np.zeros(len(every), dtype=np.intp)
        for fold, (_, left) in enumerate(splitter.split(every, strata_of_rows, every)):
            folds[left] = fold
        dealt = np.split(folds, np.cumsum(counts)[:-1])
    for name, folds in zip(dataset_names(len(counts)), dealt, strict=True):
        if np.bincount(folds, minlength=n_folds).min() < 2:
            problem = "{name} has fewer than 2 rows in one of {limit} folds"
            raise InvalidValueError(problem, name=name, limit=n_folds, advice="Use a smaller {p.cv}.")
    return dealt


def _shuffled(strata: Numbers, n_folds: int, rng: np.random.Generator) -> Numbers:
    """Deal rows into folds at random, those of each stratum evenly."""
    folds = np.zeros(len(strata), dtype=np.intp)
    for stratum in np.unique(strata):
        rows = np.flatnonzero(strata == stratum)
        folds[rng.permutation(rows)] = np.arange(len(rows)) % n_folds
    return folds


def _in_memory(datasets: list[Any]) -> tuple[list[Any], list[int]]:
    """Check the datasets, and give each as something that rows can be taken of, with their number."""
    parts, counts = [], []
    for data, name in zip(datasets, dataset_names(len(datasets)), strict=True):
        opened = open_dataset(data, name)
        if not opened.in_memory or opened.n_rows is None:
            raise InvalidTypeError(
                "{name} is read in parts, but a search takes rows out of it again and again",
                name=name,
                advice="Use {p.shrinkage:held-out}, {p.epsilon:held-out} or {p.alpha:held-out}, which read it once.",
            )
        # A frame stays one: a step may find its columns by name.
        parts.append(data if hasattr(data, "columns") and hasattr(data, "dtypes") else opened.rows())
        counts.append(opened.n_rows)
    return parts, counts


def _candidates(grid: Any) -> list[dict[str, Any]]:
    """List the parameters to try."""
    candidates = list(ParameterGrid(grid) if isinstance(grid, Mapping | list) else grid)
    if not candidates:
        raise InvalidValueError("is empty", parameter="param_grid", advice="Give at least one value to try.")
    return candidates
