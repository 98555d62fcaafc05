"""Fitting a batch at a time, and on the rows of several places: sums are kept, and added up."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from itertools import zip_longest
from types import MethodType
from typing import Any, Protocol, Self

from sklearn.utils.validation import check_is_fitted, validate_data

from standout._validation import (
    as_backgrounds,
    as_rows_at_hand,
    check_batch_labels,
    check_label_of_sums,
    check_mergeable,
    check_merged_backgrounds,
    check_n_backgrounds_of_batch,
    check_one_place,
    check_same_columns,
    dataset_names,
    reject_kept_nothing,
    reject_no_batch,
    require_finite_rows,
    sorted_labels,
    specimen,
)
from standout._xp import take
from standout.estimators._base import BackgroundTransformer, beside, columns_of
from standout.sources import Source, added, open_dataset


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
    """A method that is there only where `_check_incremental` has nothing against it.

    scikit-learn, as it does elsewhere, asks by ``hasattr`` whether an estimator can be fitted by batches. Its own
    `available_if` would hide why it cannot.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, estimator: Any, owner: Any = None) -> Any:
        if estimator is None:
            return self.method
        try:
            estimator._check_incremental()
            if "_sums" not in vars(estimator) and hasattr(estimator, "components_"):
                reject_kept_nothing("this estimator")
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
    def partial_fit(self, X: Any = None, y: Any = None, *, background: Any = None) -> Self:
        """Take in more rows of the target, of the backgrounds, or of both.

        The rows may be cut into batches in any way, and the batches come in any order: the answer is that of ``fit``
        on all rows, up to rounding. Only sums over the rows are kept. The components are found again after every
        batch, as soon as every dataset has two rows.

        Parameters
        ----------
        X : dataset, default=None
            More rows of the target, in any form that ``fit`` takes; with `target_label`, rows of all datasets.
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
        known = self.__dict__.get("_sums", [])
        if known:
            check_label_of_sums(self.target_label, getattr(self, "background_labels_", None))
        else:
            self._forget_datasets()
        if self.target_label is not None:
            datasets, labels = self._labelled_batch(X, y, background)
        else:
            datasets, labels = self._batch(X, background), None
        _check_places(known, [specimen(dataset) for dataset in datasets], "the new rows")
        if known:
            for dataset in datasets:
                if isinstance(dataset, Source):
                    dataset.expect(self.n_features_in_, "what came before")
        else:
            self._begin(datasets)
        names = dataset_names(len(datasets))
        new = [
            None if dataset is None else self._sum(dataset, name) for name, dataset in zip(names, datasets, strict=True)
        ]
        self._check_widths(datasets, new, names)
        self._take(new, labels)
        return self

    def merge(self, other: Any) -> Self:
        """Take in all rows that another estimator was fitted to, without seeing them.

        Where rows may not leave the place they are kept at, each place fits an estimator to its own rows, and only the
        estimators travel: what they keep are counts, means and sums of products, never rows. The answer is that of
        ``fit`` on the rows of all places, up to rounding. The other estimator stays as it is.

        Parameters
        ----------
        other : estimator
            Of the same class and with the same `target_label`, fitted by ``fit``, ``partial_fit`` or ``merge`` to the
            same features and as many backgrounds. All other parameters of this estimator count, not those of the
            other.

        Returns
        -------
        object
            The estimator itself.
        """
        check_mergeable(self, other)
        check_is_fitted(self, "n_features_in_")
        check_is_fitted(other, "n_features_in_")
        for estimator, name in ((self, "this estimator"), (other, "the other estimator")):
            if not estimator.__dict__.get("_sums"):
                reject_kept_nothing(name)
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
        if self.target_label is None:
            check_merged_backgrounds(len(self._sums) - 1, len(other._sums) - 1)
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

    def _begin(self, datasets: list[Any]) -> None:
        """See to what the first rows decide."""

    @abstractmethod
    def _sum(self, dataset: Any, name: str) -> Sums:
        """Sum up a dataset."""

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
        if labels is None:
            sums = [added(first, second) for first, second in zip_longest(known, new)]
        else:
            # Labels stay sorted, as in a fit on all rows.
            parts = dict(zip(self.background_labels_, known[1:], strict=True)) if known else {}
            parts |= {label: added(parts.get(label), part) for label, part in zip(labels, new[1:], strict=True)}
            labels = sorted_labels(parts)
            sums = [added(known[0] if known else None, new[0]), *(parts[label] for label in labels)]
        enough = all(part is not None and part.count >= 2 for part in sums)
        if enough and sum(part.count - 1 for part in sums) >= self._n_wanted():
            self._solve(sums)
        elif hasattr(self, "components_"):
            del self.components_
        self._sums = sums
        if labels is not None:
            self.background_labels_ = labels

    def _datasets(self, X: Any, y: Any, background: Any) -> tuple[list[Any], list[list[str] | None]]:
        # A fit that is refused must not leave sums of one fit beside columns and labels of another.
        self._keep_sums(None)
        return super()._datasets(X, y, background)

    def _keep_sums(self, sums: Sequence[Any] | None) -> None:
        """Keep the sums of a fit for batches to come; None where it has none."""
        self.__dict__.pop("_sums", None)
        if sums is not None:
            self._sums = list(sums)

    def _forget_datasets(self) -> None:
        """Forget what a call that was refused has left behind."""
        for name in ("n_features_in_", "feature_names_in_", "background_labels_"):
            self.__dict__.pop(name, None)

    def _batch(self, X: Any, background: Any) -> list[Any]:
        """Check the datasets of a batch, the target first."""
        given = [] if background is None else background
        several = isinstance(given, list | tuple) and any(part is None for part in given)
        parts = [X, *(given if several else as_backgrounds(background, X))]
        if all(part is None for part in parts):
            reject_no_batch()
        check_n_backgrounds_of_batch(len(parts) - 1, len(self.__dict__.get("_sums", [None])) - 1)
        fresh = not self.__dict__.get("_sums")
        datasets: list[Any] = []
        for name, part in zip(dataset_names(len(parts)), parts, strict=True):
            dataset = None if part is None else open_dataset(part, name, min_rows=1)
            datasets.append(dataset)
            if dataset is None:
                continue
            if isinstance(dataset, Source):
                # What comes in batches tells its columns later; all else is not read for nothing.
                if dataset.width is not None and fresh:
                    self._keep_columns(dataset.width, dataset.columns)
                    fresh = False
                else:
                    self._check_columns(dataset.width, dataset.columns, name)
                continue
            require_finite_rows(dataset, name)
            if fresh or name == "the target":
                validate_data(self, part, reset=fresh, skip_check_array=True)
                fresh = False
            else:
                self._check_columns(*columns_of(dataset, part), name)
        return datasets

    def _labelled_batch(self, X: Any, y: Any, background: Any) -> tuple[list[Any], list[Any]]:
        """Check a batch of rows with labels: a dataset per label, the target first, and the backgrounds' labels."""
        rows = as_rows_at_hand(open_dataset(X, "the data", min_rows=1), "partial_fit with target_label")
        require_finite_rows(rows, "the data")
        labels, others = check_batch_labels(beside(y, rows), rows.shape[0], self.target_label, background)
        validate_data(self, X, reset=not self.__dict__.get("_sums"), skip_check_array=True)
        parts = [take(rows, labels == label) for label in (self.target_label, *others)]
        return [part if part.shape[0] else None for part in parts], others

    def _check_columns(self, width: int | None, columns: list[str] | None, name: str) -> None:
        if width is not None:
            check_same_columns(width, columns, name, self.n_features_in_, self._known_names, "what came before")

    def _check_widths(self, datasets: list[Any], sums: list[Any], names: list[str]) -> None:
        """Check what is known of sources only after they have been read, and keep it where it is the first."""
        for name, dataset, part in zip(names, datasets, sums, strict=True):
            if not isinstance(dataset, Source):
                continue
            width = dataset.width if dataset.width is not None else part.n_features
            if hasattr(self, "n_features_in_"):
                self._check_columns(width, dataset.columns, name)
            else:
                self._keep_columns(width, dataset.columns)


def _means(sums: Sequence[Any]) -> list[Any]:
    return [None if part is None else part.mean for part in sums]


def _check_places(known: Sequence[Any], new: Sequence[Any], name: str) -> None:
    """Refuse arrays of other libraries or devices than those that have been summed up."""
    check_one_place([*_means(known), *new], [*(["what is there"] * len(known)), *([name] * len(new))])
