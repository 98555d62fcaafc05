"""Fitting a batch at a time, and on the rows of several places: sums are kept, and added up."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from itertools import zip_longest
from types import MethodType
from typing import Any, NoReturn, Protocol, Self

from sklearn.utils.validation import check_is_fitted

from standout._checks import as_backgrounds, check_one_place, check_same_columns, check_same_keys
from standout._messages import InvalidTypeError, InvalidValueError, dataset_names
from standout._xp import take
from standout.estimators._base import (
    BackgroundTransformer,
    unchanged_if_refused,
)
from standout.estimators._facts import (
    check_batch_labels,
    check_no_labels,
    rows_with_labels,
)
from standout.sources import Backgrounds, Dataset, Source, added, open_dataset

# What messages call the rows of earlier batches.
BEFORE = "what came before"
# The only values of parameters about single rows and subjects with which sums over the rows are enough.
DEFAULTS_WITHOUT_ROWS = {"robust": None, "subject_weights": "rows", "variation": "all", "blocks": None}


class Sums(Protocol):
    """What a fit needs of a dataset, and can be added up over batches of it."""

    @property
    def mean(self) -> Any:
        """Mean of what was summed up."""

    @property
    def count(self) -> int:
        """Number of rows."""

    @property
    def n_features(self) -> int:
        """Number of columns that were summed over."""

    def __add__(self, other: Any) -> Any:
        """Give the sums over the rows of both."""


class _WherePossible:
    """A method that exists only if sums over the rows are enough for the parameters.

    scikit-learn asks by ``hasattr`` whether an estimator can be fitted by batches. Its own `available_if` would hide
    the reason why it cannot.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, estimator: Any, owner: Any = None) -> Any:
        if estimator is None:
            return self.method
        try:
            check_sums_suffice(estimator)
            if "_sums" not in vars(estimator) and hasattr(estimator, "components_"):
                reject_without_sums("this estimator")
        except (ValueError, TypeError) as error:
            raise AttributeError(f"partial_fit is not possible: {error}") from None
        return MethodType(self.method, estimator)


class IncrementalTransformer(BackgroundTransformer):
    """A transformer that can be fitted a batch at a time.

    A subclass sums up a dataset, and solves for the components from sums. The sums, the target's first, stay in
    `_sums`; None stands for a dataset of which no row has come yet.
    """

    n_features_in_: int
    _sums: list[Any]

    @_WherePossible
    def partial_fit(self, X: Dataset | None = None, y: Any = None, *, background: Backgrounds = None) -> Self:
        """Take in more rows of the target, of the backgrounds, or of both.

        The rows may be cut into batches in any way, and the batches come in any order: the answer is that of ``fit``
        on all rows, up to rounding. Only sums over the rows are kept. The components are found again after every
        batch, as soon as every dataset has two rows. To gather first and solve once, add up `standout.moments.gather`
        of the batches (with ``norms=True``), and give the sums to ``from_moments``.

        Parameters
        ----------
        X : dataset, default=None
            More rows of the target, in any form that ``fit`` takes; with `target_label`, rows of all datasets. A table
            without rows adds nothing.
        y : array-like of shape (n_samples,), default=None
            Label of each row, with `target_label`; a batch need not have all labels.
        background : dataset, or list or tuple of datasets, default=None
            More rows of each background, in the same order in every batch. In a list, None stands for a background
            without new rows.

        Returns
        -------
        object
            The estimator itself.
        """
        with unchanged_if_refused(self):
            known = self.__dict__.get("_sums", [])
            if known:
                _check_label_of_sums(self.target_label, getattr(self, "background_labels_", None))
            else:
                self._forget_datasets()
            if self.target_label is not None:
                datasets, labels = self._labelled_batch(X, y, background)
            else:
                datasets, labels = self._batch(X, background), None
                check_no_labels(y, datasets[0])
            if all(dataset is None for dataset in datasets):
                return self
            places = [None if dataset is None else dataset.specimen for dataset in datasets]
            _check_places(known, places, "the new rows")
            if known:
                for dataset in datasets:
                    if dataset is not None:
                        dataset.expect(self.n_features_in_, BEFORE)
            else:
                self._begin(datasets)
            new = [None if dataset is None else self._sum(dataset) for dataset in datasets]
            self._check_widths(datasets, new)
            self._take(new, labels)
        return self

    def merge(self, other: Any) -> Self:
        """Take in all rows that another estimator was fitted to, without seeing them.

        For rows that may not leave the place where they are kept: each place fits an estimator to its own rows, and
        only the estimators are sent. They keep counts, means and sums of products, never rows. The answer is that of
        ``fit`` on the rows of all places, up to rounding. The other estimator stays as it is.

        Parameters
        ----------
        other : estimator
            Of the same class and with the same `target_label`, fitted by ``fit``, ``partial_fit`` or ``merge`` to the
            same features and as many backgrounds. All other parameters are those of this estimator, not of the other.

        Returns
        -------
        object
            The estimator itself.
        """
        _check_mergeable(self, other)
        check_is_fitted(self, "n_features_in_")
        check_is_fitted(other, "n_features_in_")
        for estimator, name in ((self, "this estimator"), (other, "the other estimator")):
            if not estimator.__dict__.get("_sums"):
                reject_without_sums(name)
        check_same_columns(
            other.n_features_in_,
            other._known_names,
            "the other estimator's target",
            self.n_features_in_,
            self._known_names,
            "this one's",
        )
        self._check_incremental()
        _check_places(self._sums, _means(other._sums), "the other estimator")
        self._check_merge(other)
        mine, theirs = len(self._sums) - 1, len(other._sums) - 1
        if self.target_label is None and mine and theirs and mine != theirs:
            raise InvalidValueError(
                "this estimator has {mine} background(s), the other {theirs}",
                mine=mine,
                theirs=theirs,
                advice="Merge estimators with the same backgrounds, in the same order.",
            )
        with unchanged_if_refused(self):
            self._take(other._sums, None if self.target_label is None else other.background_labels_)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether there are components: with few rows there are sums alone."""
        return hasattr(self, "components_")

    @abstractmethod
    def _check_incremental(self) -> None:
        """Refuse parameters with which sums are not enough."""

    @abstractmethod
    def _check_merge(self, other: Any) -> None:
        """Refuse an estimator whose sums are of something else."""

    def _begin(self, datasets: list[Source | None]) -> None:
        """Fix what the first rows decide."""

    @abstractmethod
    def _sum(self, dataset: Source) -> Sums:
        """Sum up a dataset."""

    def _settled(self, sums: Any) -> Any:
        """Give sums in the form in which they are kept."""
        return sums

    @abstractmethod
    def _solve(self, sums: list[Any]) -> None:
        """Find the components from sums, and keep them."""

    @abstractmethod
    def _n_wanted(self) -> int:
        """Number of components that are wanted; 1 where that is still to be found."""

    def _take(self, new: list[Any], labels: list[Any] | None) -> None:
        """Add sums to those that are there, by their place or by their label, and find the components.

        There are none while there are too few rows for any answer.
        """
        known = self.__dict__.get("_sums", [])
        _check_places(known, _means(new), "the new rows")
        # Weights were those of the rows of one fit.
        self._forget_weights()
        if labels is None:
            sums = [added(first, second) for first, second in zip_longest(known, new)]
        else:
            # Labels stay sorted, as in a fit on all rows.
            parts = dict(zip(self.background_labels_, known[1:], strict=True)) if known else {}
            parts |= {label: added(parts.get(label), part) for label, part in zip(labels, new[1:], strict=True)}
            labels = _sorted_labels(parts)
            sums = [added(known[0] if known else None, new[0]), *(parts[label] for label in labels)]
        sums = [None if part is None else self._settled(part) for part in sums]
        enough = all(part is not None and part.count >= 2 for part in sums)
        if enough and sum(part.count - 1 for part in sums) >= self._n_wanted():
            self._solve(sums)
        elif hasattr(self, "components_"):
            del self.components_
        self._sums = sums
        if labels is not None:
            self.background_labels_ = labels

    def _forget_datasets(self) -> None:
        """Forget what a call that was refused has left behind."""
        self._keep_found(n_features_in_=None, feature_names_in_=None, background_labels_=None)

    def _batch(self, X: Any, background: Any) -> list[Source | None]:
        """Open and check the datasets of a batch, the target first; None for one without new rows."""
        given = [] if background is None else background
        several = isinstance(given, list | tuple) and any(part is None for part in given)
        parts = [X, *(given if several else as_backgrounds(background, X))]
        if all(part is None for part in parts):
            raise InvalidValueError(
                "neither the target nor a background has rows in this batch",
                advice="Give rows of one of them at least.",
            )
        n_given, n_known = len(parts) - 1, len(self.__dict__.get("_sums", [None])) - 1
        if n_given and n_known and n_given != n_known:
            raise InvalidValueError(
                "the batch has {given} background(s), but the rows before had {limit}",
                given=n_given,
                limit=n_known,
                advice="Give a list of {limit}, with None for a background without new rows.",
            )
        fresh = not self.__dict__.get("_sums")
        datasets: list[Source | None] = []
        for name, part in zip(dataset_names(len(parts)), parts, strict=True):
            dataset = None if part is None else open_dataset(part, name, min_rows=0 if _is_empty(part) else 1)
            empty = dataset is not None and dataset.n_rows == 0
            datasets.append(None if empty else dataset)
            if dataset is None or (empty and fresh):
                continue
            dataset.require_finite()
            if fresh or name == "the target":
                self._see_columns(part, dataset, reset=fresh, reference=BEFORE)
                # An iterator tells its columns later.
                fresh = fresh and dataset.width is None
            else:
                self._check_columns(dataset.width, dataset.columns, name)
                check_same_keys(dataset.keys, name, getattr(self, "_column_keys", None), BEFORE)
        return datasets

    def _labelled_batch(self, X: Any, y: Any, background: Any) -> tuple[list[Source | None], list[Any]]:
        """Check a batch of rows with labels: a dataset per label, the target first, and the backgrounds' labels."""
        if _is_empty(X):
            return [None], []
        whole = open_dataset(X, "the data", min_rows=1)
        rows = rows_with_labels(whole, "partial_fit with target_label")
        whole.require_finite()
        labels, others = check_batch_labels(y, rows, self.target_label, background)
        self._see_columns(X, whole, reset=not self.__dict__.get("_sums"), reference=BEFORE)
        parts = {label: take(rows, labels == label) for label in (self.target_label, *others)}
        datasets = [
            open_dataset(part, f"the data with label {label!r}", min_rows=1) if part.shape[0] else None
            for label, part in parts.items()
        ]
        return datasets, others

    def _check_columns(self, width: int | None, columns: list[str] | None, name: str) -> None:
        if width is not None:
            check_same_columns(width, columns, name, self.n_features_in_, self._known_names, BEFORE)

    def _check_widths(self, datasets: list[Source | None], sums: list[Any]) -> None:
        """Check what is known of iterators only after they have been read, and keep it if it is the first."""
        for dataset, part in zip(datasets, sums, strict=True):
            if dataset is None or dataset.in_memory:
                continue
            width = dataset.width if dataset.width is not None else part.n_features
            if hasattr(self, "n_features_in_"):
                self._check_columns(width, dataset.columns, dataset.name)
            else:
                self._set_columns(width, dataset.columns)


def _is_empty(data: Any) -> bool:
    """Tell whether a table in memory has columns and no rows, as a partition of a larger table may have."""
    shape = getattr(data, "shape", None)
    return isinstance(shape, tuple) and len(shape) == 2 and shape[0] == 0


def check_sums_suffice(estimator: Any) -> None:
    """Refuse parameters that need the rows themselves, and not only sums over them."""
    estimator._check_incremental()
    for name, default in DEFAULTS_WITHOUT_ROWS.items():
        if getattr(estimator, name) != default:
            reject_rows_needed(name, getattr(estimator, name), f"Use {{p.{name}:{default}}}")


def reject_rows_needed(parameter: str, value: Any, advice: str) -> NoReturn:
    """Refuse a choice that needs rows, where only sums over them are available."""
    raise InvalidValueError(
        "needs the rows of the data, but only sums over the rows are available",
        parameter=parameter,
        value=value,
        advice=advice + ", or fit on all rows at once.",
    )


def reject_without_sums(name: str) -> NoReturn:
    """Say why an estimator has no sums that can be added to."""
    raise InvalidValueError(
        "{name} keeps no sums over its rows: it was fitted with fewer rows than columns, with exact kernel "
        "coordinates, or was saved without its moments",
        name=name,
        advice="Fit it with partial_fit, and save it with moments=True.",
    )


def _check_mergeable(first: Any, second: Any) -> None:
    """Check that two estimators are of one class, and both have labels or neither has."""
    if type(first) is not type(second):
        raise InvalidTypeError(
            "a {first} cannot be merged with an object of type {second}",
            first=type(first).__name__,
            second=type(second).__name__,
            advice="Give an estimator of the same class.",
        )
    if first.target_label != second.target_label:
        raise InvalidValueError(
            "one estimator has {p.target_label} {first}, the other {second}, so that their targets are not the same",
            first=repr(first.target_label),
            second=repr(second.target_label),
            advice="Fit both with the same label, or both with backgrounds.",
        )


def _check_label_of_sums(target_label: Any, labels: list[Any] | None) -> None:
    """Check that new rows are told apart as those before: `labels` are the labels of the backgrounds so far."""
    if (target_label is None) == (labels is None) and (labels is None or target_label not in labels):
        return
    raise InvalidValueError(
        "is not what it was for the rows before, which had {labels}",
        parameter="target_label",
        value=target_label,
        labels="no labels" if labels is None else f"the background labels {labels}",
        advice="Set {p.target_label} as it was, or start with a new estimator.",
    )


def _sorted_labels(labels: Any) -> list[Any]:
    """Sort the labels of several batches, and refuse labels that cannot be sorted."""
    try:
        return sorted(labels)
    except TypeError:
        raise InvalidTypeError(
            "the background labels of the rows before and of the new ones cannot be sorted together: {labels}",
            labels=list(labels),
            advice="Give all strings or all integers.",
        ) from None


def _means(sums: Sequence[Any]) -> list[Any]:
    return [None if part is None else part.mean for part in sums]


def _check_places(known: Sequence[Any], new: Sequence[Any], name: str) -> None:
    """Refuse arrays of other libraries or devices than those that have been summed up."""
    check_one_place([*_means(known), *new], [*(["what is there"] * len(known)), *([name] * len(new))])
