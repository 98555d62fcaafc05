"""What all estimators share: the forms of input, transforming, and scoring against backgrounds."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import wraps
from typing import Any, Self, TypeVar, overload

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from standout._arrays import Array, Float, Rows, double
from standout._checks import (
    as_backgrounds,
    as_seed,
    check_choice,
    check_one_place,
    check_same_columns,
    check_same_keys,
    check_whole,
)
from standout._messages import (
    InvalidValueError,
    MixedArraysError,
    dataset_names,
    warn_user,
)
from standout._params import check_blocks, check_robust
from standout._xp import largest_entries, like, looks_foreign, namespace, place, take, to_host
from standout.estimators._facts import (
    FACTS,
    RowFacts,
    beside,
    check_known_labels,
    check_label_form,
    check_no_labels,
    check_sample_weight,
    reject_iterator,
    rows_with_labels,
)
from standout.moments import Moments, RobustWeights, Weighed, Weighing, dealt_folds, learned_weights, weighed
from standout.pencil import Solution
from standout.selection import HeldOut, alike_message, block_length, likeness_of
from standout.sources import (
    Backgrounds,
    Chosen,
    Dataset,
    Source,
    Table,
    between_subjects,
    in_blocks,
    is_dask,
    open_beside,
    open_dataset,
    with_equal_subjects,
    within_subjects,
    without_columns,
)

# How many units in the last place of the largest score rounding may be: sums of terms that partly cancel lose a few.
SCORE_ROUNDING = 16.0
VARIATIONS = ("all", "within", "between")
SUBJECT_WEIGHTS = ("rows", "equal")
# Rows from whose scores the length of blocks is found, at most.
MOST_SCORED = 20_000

Model = TypeVar("Model")


class BackgroundTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):
    """A transformer that is fitted on a target against backgrounds.

    A subclass has the parameters `target_label` and `random_state`, and sets `components_`, `weights_` and
    `background_variance_` when fitted.
    """

    __metadata_request__fit = dict.fromkeys(("background", *FACTS), True)
    __metadata_request__partial_fit = {"background": True}  # noqa: RUF012
    __metadata_request__score = {"background": True}  # noqa: RUF012

    # For pipelines: its methods take data that are read in parts.
    _takes_parts = True

    components_: Float
    weights_: Float
    target_variance_: Float
    background_variance_: Float
    background_labels_: list[Any]
    feature_names_in_: npt.NDArray[Any]
    target_label: Any
    robust: str | None
    subject_weights: str
    variation: str
    blocks: Any
    random_state: Any
    robust_weights_: list[RobustWeights]

    @abstractmethod
    def fit(
        self,
        X: Dataset,
        y: Any = None,
        *,
        background: Backgrounds = None,
        groups: Any = None,
        background_groups: Any = None,
        sample_weight: Any = None,
        background_sample_weight: Any = None,
        adjust: Any = None,
        background_adjust: Any = None,
    ) -> Any:
        """Find the components of the target X against the backgrounds."""

    @property
    @abstractmethod
    def _projection(self) -> Callable[[Rows], Array]:
        """The function that gives the scores of checked rows."""

    @property
    def _uncentred_projection(self) -> Callable[[Rows], Array]:
        """The same for scores that may have any mean, if that is faster."""
        return self._projection

    def fit_transform(self, X: Dataset, y: Any = None, *, background: Backgrounds = None, **facts: Any) -> Any:
        """Fit, and give the scores of X: the same as ``fit(X, y, background=background, **facts).transform(X)``.

        Parameters
        ----------
        X : dataset
            The target; with `target_label`, the rows of all datasets. In any form that ``fit`` takes, but for an
            iterator, which can be read only once.
        y : array-like of shape (n_samples,), default=None
            Label of each row, with `target_label`.
        background : dataset, or list or tuple of datasets, default=None
            The backgrounds.
        **facts
            What else ``fit`` takes, such as `groups` and `sample_weight`.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        reject_iterator(X, "fit_transform")
        fitted = self.fit(X, y, background=background, **facts)
        return fitted.transform(without_columns(X, RowFacts(**facts).columns))

    @overload
    def transform(self, X: npt.NDArray[Any]) -> npt.NDArray[Any]: ...

    @overload
    def transform(self, X: Dataset) -> Any: ...

    def transform(self, X: Dataset) -> Any:
        """Project rows on the components.

        All rows are centred by the target's mean, those of a background too, so that all datasets can be shown in
        the same axes.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, table, scan, or Dask array or frame
            Rows with the columns of the fitted data, of their library and on their device.

        Returns
        -------
        array or Dask array of shape (n_samples, n_components)
            The scores, in float32 for float32 rows and in float64 otherwise, of the library and on the device of the
            rows; those of a Dask array are computed when they are asked for.
        """
        check_is_fitted(self)
        reject_iterator(X, "transform")
        return self._scores(self._opened(X, "the data", "transform", min_rows=1))

    def score(self, X: Dataset, y: Any = None, *, background: Backgrounds = None, sample_weight: Any = None) -> float:
        """How much more does this target vary than these backgrounds, along the fitted components?

        The ratio of the target's to the backgrounds' (weighted, not shrunken) variance, averaged over the components.
        On rows that were not fitted it tells how much of the contrast is real.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, table, scan, or Dask array or frame
            The target; with `target_label`, the rows of all datasets.
        y : array-like of shape (n_samples,), default=None
            Label of each row, with `target_label`.
        background : dataset, or list or tuple of datasets, default=None
            As many backgrounds as were fitted. None takes the variances of the fitted ones, and a warning says so if
            the target is another one: rows that were fitted vary too little along the components.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row of X.

        Returns
        -------
        float
            ``inf`` if a component does not vary in the backgrounds at all, NaN if it does not vary in the target
            either. Without any background, the target's variance, averaged over the components.
        """
        check_is_fitted(self)
        for data in (X, *as_backgrounds(background, X)):
            reject_iterator(data, "score")
        target = self._opened(X, "the target", "score")
        if self.target_label is not None:
            variances = self._variances_by_label(target, y, background, sample_weight)
        else:
            backgrounds = self._opened_backgrounds(background, target)
            if len(backgrounds) not in (0, self.weights_.shape[0]):
                raise InvalidValueError(
                    "score got {given} background(s), but {limit} were fitted",
                    given=len(backgrounds),
                    limit=self.weights_.shape[0],
                    advice="Give as many, or None.",
                )
            datasets = [target, *backgrounds]
            check_one_place([data.specimen for data in datasets], dataset_names(len(datasets)))
            for data in backgrounds:
                check_fitted_place(data, self, "score")
                data.require_finite()
            variances = [self._variance(target, sample_weight), *(self._variance(data, None) for data in backgrounds)]
        own, *rest = variances
        if not rest:
            rest = list(to_host(self.background_variance_))
        if not rest:
            return float(np.mean(own))
        if sample_weight is None:
            _warn_of_fitted_backgrounds(own, rest, to_host(self.target_variance_), to_host(self.background_variance_))
        against = to_host(self.weights_) @ np.array(rest)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.mean(own / against))

    def weigh(self, X: Dataset, *, dataset: int = 0) -> Any:
        """How much do these rows count, by what was learned with `robust`?

        For rows that are read in parts, whose weights are not kept, and for new rows.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, table, scan, or Dask array or frame
            Rows with the columns of the fitted data.
        dataset : int, default=0
            By which dataset they are weighed: 0 is the target, 1 the first background.

        Returns
        -------
        array or Dask array of shape (n_samples,)
            About 1 for a typical row, and near 0 for one that is far from all others.
        """
        check_is_fitted(self)
        if not self._knows_weights:
            raise InvalidValueError(
                "all rows of this fit count the same", advice="Fit with {p.robust:rows} or {p.robust:cells}."
            )
        number = check_whole(dataset, "dataset", least=0)
        if number >= len(self.robust_weights_):
            raise InvalidValueError(
                "is not the number of a dataset of the fit, which has {limit}",
                parameter="dataset",
                value=dataset,
                limit=len(self.robust_weights_),
                advice="Give 0 for the target, 1 for the first background.",
            )
        reject_iterator(X, "weigh")
        weigh = _OnlyWeights(self._weighing(number))
        return self._opened(X, "the data", "weigh", min_rows=1).mapped(weigh, 1)[:, 0]

    def to_numpy(self) -> Self:
        """Give the same fitted model with NumPy arrays, in the host's memory.

        For a model that was fitted on arrays of another library: to save it, to plot it, or to transform NumPy arrays.

        Returns
        -------
        BackgroundTransformer
            A copy; this model stays as it is.
        """
        check_is_fitted(self)
        return moved(self, to_host)

    def __sklearn_array_api_convert__(self, converter: Callable[[Any], Any]) -> Self:
        """Give the same model with arrays that a function of scikit-learn has moved elsewhere."""
        return moved(self, converter)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn what the estimator takes and gives."""
        tags = super().__sklearn_tags__()
        # Most cells of sparse rows are zero: none of the others is out of place.
        tags.input_tags.sparse = self.robust != "cells"
        tags.array_api_support = True
        tags.target_tags.required = self.target_label is not None
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    @property
    def _known_names(self) -> list[str] | None:
        """Names of the columns, if they have any."""
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else list(names)

    # --- datasets -------------------------------------------------------------------------------------------------

    def _datasets(self, X: Dataset, y: Any, background: Backgrounds, facts: RowFacts) -> list[Source]:
        """Open and check the datasets of a fit, the target first, with what is known of their rows."""
        if self.target_label is not None:
            reject_iterator(X, "fit with target_label")
            X, whole = open_beside(X, "the data", facts.columns)
            is_in_blocks = is_dask(X)
            # The labels of blocks come here, one per row; the rows stay where they are.
            y = y.compute() if is_dask(y) else y
            rows = (
                np.broadcast_to(0.0, (whole.count_rows(), 1))
                if is_in_blocks
                else rows_with_labels(whole, "fit with target_label")
            )
            self._see_columns(X, whole, reset=True)
            labels, self.background_labels_ = check_label_form(y, rows, self.target_label, background)
            named = [f"the data with label {label!r}" for label in (self.target_label, *self.background_labels_)]
            chosen = [labels == label for label in (self.target_label, *self.background_labels_)]
            parts = [
                open_dataset(Chosen(whole, some) if is_in_blocks else take(rows, some), name)
                for some, name in zip(chosen, named, strict=True)
            ]
            return self._with_subjects_kept(facts.beside_labels(whole, parts, [to_host(some) for some in chosen]))
        self._keep_found(background_labels_=None)
        X, target = open_beside(X, "the target", facts.columns)
        check_no_labels(y, target)
        self._see_columns(X, target, reset=True)
        datasets = [target, *self._opened_backgrounds(background, target, X, facts.columns)]
        check_one_place([part.specimen for part in datasets], dataset_names(len(datasets)))
        return self._with_subjects_kept(facts.beside(datasets))

    def _opened_again(self, X: Dataset, background: Backgrounds, facts: RowFacts) -> list[Source]:
        """Open the data of the fit again as the fit did, the target first: the same rows with the same weights."""
        again = copy(self)
        again.target_label, again.blocks = None, getattr(self, "block_length_", None)
        datasets = again._datasets(X, None, background, facts)
        if not self._knows_weights:
            return datasets
        return [weighed(part, self._weighing(number))[0] for number, part in enumerate(datasets)]

    def _with_subjects_kept(self, datasets: list[Source]) -> list[Source]:
        """Keep how many subjects each dataset has, if that was said."""
        datasets = self._as_asked(datasets)
        found = [part.subjects.n_here for part in datasets if part.subjects is not None]
        self._keep_found(n_subjects_=found or None)
        return datasets

    def _weighed(self, datasets: list[Source]) -> list[Source]:
        """Give the datasets with robust weights, if these are asked for, and keep what was learned."""
        self._forget_weights()
        if check_robust(self.robust) is None:
            return datasets
        for dataset in datasets:
            dataset.require_finite()
        found = [self._cleaned(dataset, counts=True) for dataset in datasets]
        self.robust_weights_ = [learned for _, learned, _ in found]
        self._keep_weights([(learned, rows) for _, learned, rows in found])
        if self.robust == "cells":
            self._keep_cells([rows for _, _, rows in found])
        return [dataset for dataset, _, _ in found]

    def _cleaned(self, dataset: Source, *, counts: bool) -> tuple[Source, RobustWeights, Weighed | None]:
        """Learn from a dataset, and give it with weights, or without wild cells only."""
        learned = learned_weights(dataset, cells=self.robust == "cells", seed=self._seed())
        changed, found = weighed(dataset, learned, counts=counts)
        return changed, learned, found

    def _keep_weights(self, found: Sequence[tuple[RobustWeights, Weighed | None]]) -> None:
        """Keep the weights of rows that are in memory, and which rows are outlying; None for those read in parts."""
        weights = [None if rows is None else rows.weights for _, rows in found]
        far = [None if rows is None else to_host(rows.distances > own.limit) for own, rows in found]
        self.row_weights_ = weights
        self.outlying_rows_ = [None if rows is None else np.flatnonzero(rows) for rows in far]

    def _keep_cells(self, found: Sequence[Weighed | None]) -> None:
        """Keep which cells were wild: pairs of row and column."""
        nothing = np.zeros((0, 2), dtype=np.intp)
        self.wild_cells_ = [
            None if rows is None else nothing if rows.wild is None else np.argwhere(to_host(rows.wild))
            for rows in found
        ]

    def _forget_weights(self) -> None:
        names = ("robust_weights_", "robust_cells_", "row_weights_", "outlying_rows_", "wild_cells_")
        self._keep_found(**dict.fromkeys(names))

    @property
    def _knows_weights(self) -> bool:
        """Whether the fit has learned weights of rows; refused if that was lost."""
        if self.robust is not None and not hasattr(self, "robust_weights_"):
            raise InvalidValueError(
                "the model does not know what {p.robust} has learned of rows: it was saved without, or merged",
                advice="Fit it again, and save it with {p.moments:True}.",
            )
        return self.robust is not None

    def _weighing(self, number: int) -> Weighing:
        """Give what weighs rows as those of a dataset."""
        return self.robust_weights_[number]

    def _as_asked(self, datasets: list[Source]) -> list[Source]:
        """Make blocks of neighbouring rows subjects, weigh subjects alike, and take the variation that is asked for."""
        variation = check_choice(self.variation, "variation", VARIATIONS)
        weights = check_choice(self.subject_weights, "subject_weights", SUBJECT_WEIGHTS)
        length = check_blocks(self.blocks)
        self._keep_found(block_length_=None)
        known = datasets[0].subjects is not None
        if length is not None and known:
            raise InvalidValueError(
                "is given together with {p.groups}, which says already which rows belong together",
                parameter="blocks",
                value=self.blocks,
                advice="Leave one of them out.",
            )
        if length is not None:
            self.block_length_ = self._found_length(datasets) if isinstance(length, str) else length
            datasets = in_blocks(datasets, self.block_length_)
        for parameter, value, default in (("variation", variation, "all"), ("subject_weights", weights, "rows")):
            if value != default and not known:
                raise InvalidValueError(
                    "is about subjects, and none are named",
                    parameter=parameter,
                    value=value,
                    advice="Name the subject of each row: {p.groups}.",
                )
        if variation == "within":
            datasets = [within_subjects(part) for part in datasets]
        elif variation == "between":
            return between_subjects(datasets)
        if weights == "equal":
            datasets = [with_equal_subjects(part) for part in datasets]
        return datasets

    def _found_length(self, datasets: list[Source]) -> int:
        """Find how long blocks must be for neighbouring ones to be independent, from the scores of a first fit."""
        for dataset in datasets:
            if not dataset.again:
                in_blocks([dataset], 1)
        rules: dict[str, Any] = dict.fromkeys(("test", "robust", "target_label", "blocks", "held_out"))
        rules |= {"shrinkage": "auto", "epsilon": "scaled", "n_components": 1}
        first = clone(self)
        known = first.get_params(deep=False)
        first.set_params(**{name: value for name, value in rules.items() if name in known})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            first.fit(datasets[0], background=datasets[1:] or None)
        counts = [part.count_rows() for part in datasets]
        scores = [
            to_host(double(found if looks_foreign(found) else np.asarray(found))[: min(count, MOST_SCORED), :])
            for count, found in zip(counts, map(first._scores, datasets), strict=True)
        ]
        return block_length(scores, min(counts))

    def _opened_backgrounds(
        self, background: Backgrounds, target: Source, X: Any = None, beside: Mapping[str, str] | None = None
    ) -> list[Source]:
        """Open the backgrounds, and check each against the columns of the target if these are known already."""
        opened = []
        for number, data in enumerate(as_backgrounds(background, X), start=1):
            _, dataset = open_beside(data, f"background {number}", beside or {})
            if dataset.width is not None and target.width is not None:
                check_same_columns(
                    dataset.width, dataset.columns, dataset.name, target.width, target.columns, "the target"
                )
            check_same_keys(dataset.keys, dataset.name, target.keys, "the target")
            opened.append(dataset)
        return opened

    def _keep_columns(self, datasets: Sequence[Source], n_features: int) -> None:
        """Check and keep what is known of the columns of iterators only after they have been read."""
        known = [data for data in datasets if data.columns is not None]
        for data in known[1:]:
            first = known[0]
            assert data.columns is not None
            assert first.columns is not None
            check_same_columns(
                len(data.columns), data.columns, data.name, len(first.columns), first.columns, first.name
            )
        if not datasets[0].in_memory:
            self._set_columns(n_features, datasets[0].columns)

    def _see_columns(self, X: Any, dataset: Source, *, reset: bool, reference: str = "the fitted target") -> None:
        """Keep the columns of a dataset (`reset`), or compare them with those that were kept, as far as known."""
        if reset:
            self._keep_found(_column_keys=dataset.keys)
        else:
            check_same_keys(dataset.keys, dataset.name, getattr(self, "_column_keys", None), reference)
        if dataset.in_memory and not isinstance(X, Source | Table):
            validate_data(self, X, reset=reset, skip_check_array=True)
        elif dataset.width is not None and reset:
            self._set_columns(dataset.width, dataset.columns)
        elif dataset.width is not None:
            check_same_columns(
                dataset.width, dataset.columns, dataset.name, self.n_features_in_, self._known_names, reference
            )

    def _set_columns(self, n_features: int, columns: list[str] | None) -> None:
        """Keep the number and the names of the columns, as scikit-learn does for arrays and frames."""
        names = None if columns is None else np.asarray(columns, dtype=object)
        self._keep_found(n_features_in_=n_features, feature_names_in_=names)

    def _opened(self, X: Dataset, name: str, method: str, min_rows: int = 2) -> Source:
        """Open and check rows for a method of a fitted estimator."""
        dataset = open_dataset(X, name, min_rows=min_rows)
        check_fitted_place(dataset, self, method)
        dataset.require_finite()
        self._see_columns(X, dataset, reset=False)
        return dataset

    # --- scores ---------------------------------------------------------------------------------------------------

    def _scores(self, dataset: Source) -> Any:
        """Project the rows of a dataset, in the way of the dataset."""
        return dataset.mapped(self._projection, self._n_features_out)

    def _variances_by_label(self, dataset: Source, y: Any, background: Any, sample_weight: Any) -> list[Float]:
        """Give the variances of the scores of the rows with each label, the target's first."""
        rows = rows_with_labels(dataset, "score with target_label")
        weights = like(check_sample_weight(beside(sample_weight, rows), rows.shape[0]), rows)
        labels, others = check_label_form(y, rows, self.target_label, background)
        check_known_labels(others, self.background_labels_)
        variances = []
        for label in (self.target_label, *self.background_labels_):
            some = take(weights, labels == label)
            if float(namespace(some).sum(some)) == 0.0:
                raise InvalidValueError(
                    "all rows with the label {label} have a sample_weight of zero",
                    label=repr(label),
                    advice="Give some a positive one.",
                )
            part = open_dataset(take(rows, labels == label), f"the data with label {label!r}")
            variances.append(self._variance(part, some))
        return variances

    def _variance(self, dataset: Source, sample_weight: Any) -> Float:
        """Variance of the scores along each component."""
        scores = self._scores(dataset)
        if not looks_foreign(scores):
            scores = np.asarray(scores)
        xp = namespace(scores)
        unit = float(xp.finfo(scores.dtype).eps)
        scores = double(scores)
        weights = like(check_sample_weight(beside(sample_weight, scores), scores.shape[0]), scores)
        shares = weights[None, :] / float(xp.sum(weights))
        variance: Float = to_host((shares @ (scores - shares @ scores) ** 2)[0, :])
        # Equal rows have scores that differ by rounding: no more than that is no variance.
        rounding = SCORE_ROUNDING * unit * to_host(largest_entries(scores))
        return np.where(variance > rounding**2, variance, 0.0)

    def _seed(self) -> int:
        """Give a number to start random generators with: a fixed one unless `random_state` is set."""
        return as_seed(self.random_state)

    def _keep_held_out(self, found: HeldOut | None, datasets: Sequence[Any]) -> None:
        """Keep what the components are worth on rows that were not fitted, and which rows are in which fold."""
        if found is None:
            self._keep_found(held_out_=None, held_out_ratio_=None, held_out_ratio_error_=None)
            return
        dealt = [dealt_folds(getattr(part, "subjects", None), found.n_dealt) for part in datasets]
        if all(own is not None for own in dealt) and dealt:
            found = replace(found, dealt=tuple(own.astype(np.int16) for own in dealt if own is not None))
        self.held_out_ = found
        self.held_out_ratio_ = like(found.ratios, found.components)
        self.held_out_ratio_error_ = like(found.standard_errors, found.components)

    def _warn_if_alike(self, datasets: Sequence[Source]) -> None:
        """Warn if neighbouring rows have like scores, and nobody said which rows belong together."""
        if len(datasets) == 1 or any(part.subjects is not None for part in datasets):
            return
        found = likeness_of(datasets, self._uncentred_projection)
        if found > 0.0:
            warn_user(alike_message(found), finding=True)

    def _keep_found(self, **found: Any) -> None:
        """Set attributes to what a fit has found; those of an earlier fit for which there is None now are deleted."""
        for name, value in found.items():
            self.__dict__.pop(name, None)
            if value is not None:
                setattr(self, name, value)

    def _keep(self, solution: Solution, target: Moments, backgrounds: list[Moments], weights: Float) -> None:
        """Keep what every fit has found."""
        self.eigenvalues_ = solution.values
        self.target_variance_ = target.variance(solution.vectors)
        each = [background.variance(solution.vectors) for background in backgrounds]
        nothing = like(np.zeros((0, solution.values.shape[0])), solution.values)
        self.background_variance_ = namespace(solution.values).stack(each) if each else nothing
        self.weights_ = like(weights, solution.values)
        self.solver_ = solution.solver
        self.n_components_ = int(solution.values.shape[0])


@dataclass(frozen=True, eq=False)
class _OnlyWeights:
    """From rows to their weights, as a column. It can be sent to other processes."""

    weigh: Weighing

    def __call__(self, rows: Rows) -> Float:
        return self.weigh(rows).weights[:, None]


def _lazy_as_it_is(method: Callable[..., Any]) -> Callable[..., Any]:
    """Keep the scores of Dask collections lazy: scikit-learn's containers would compute them."""
    plain: Callable[..., Any] = method.__wrapped__  # type: ignore[attr-defined]

    @wraps(plain)
    def chosen(self: Any, X: Any, *args: Any, **given: Any) -> Any:
        is_lazy = X.lazy if isinstance(X, Source) else is_dask(X)
        return _lazy_output(self, X, plain(self, X, *args, **given)) if is_lazy else method(self, X, *args, **given)

    return chosen


def _lazy_output(model: Any, X: Any, scores: Any) -> Any:
    """Give the scores of a Dask collection in the form that `set_output` asks for, without computing them."""
    wanted = getattr(model, "_sklearn_output_config", {}).get("transform", get_config()["transform_output"])
    if wanted == "default" or hasattr(scores, "columns"):
        return scores
    if wanted != "pandas":
        raise InvalidValueError(
            "set_output(transform={wanted!r}) has no lazy form, and would compute the scores of a Dask collection",
            wanted=wanted,
            advice="Use set_output with {v.pandas}, which gives a Dask frame, or {v.default}, a Dask array.",
        )
    from dask.dataframe import from_dask_array

    index = X.index if hasattr(X, "columns") and hasattr(X, "index") and is_dask(X) else None
    return from_dask_array(scores, columns=list(model.get_feature_names_out()), index=index)


# scikit-learn has wrapped these, so that they give what `set_output` asks for.
BackgroundTransformer.transform = _lazy_as_it_is(BackgroundTransformer.transform)  # type: ignore[method-assign]
BackgroundTransformer.fit_transform = _lazy_as_it_is(BackgroundTransformer.fit_transform)  # type: ignore[method-assign]


@contextmanager
def unchanged_if_refused(*estimators: Any) -> Iterator[None]:
    """Leave estimators as they were if a fit is refused: never components of one fit with columns of another."""
    before = [dict(vars(estimator)) for estimator in estimators]
    try:
        yield
    except BaseException:
        for estimator, attributes in zip(estimators, before, strict=True):
            vars(estimator).clear()
            vars(estimator).update(attributes)
        raise


# --- checks ----------------------------------------------------------------------------------------------------------


def _warn_of_fitted_backgrounds(own: Float, rest: Sequence[Float], fitted: Float, background: Float) -> None:
    """Warn if a new target is compared with the very rows of the backgrounds that were fitted."""
    if np.allclose(rest, background, rtol=1e-6) and not np.allclose(own, fitted, rtol=1e-6):
        warn_user(
            "a new target is scored against the rows of the backgrounds that were fitted: along components that were "
            "fitted to them they vary too little, so that the ratio is too large. Cross-validation that leaves the "
            "backgrounds whole prefers parameters that overfit",
            advice="Give new rows of the backgrounds as well. To choose parameters, use standout.BackgroundSearchCV, "
            "or {p.target_label} with stratified folds.",
        )


def check_fitted_place(dataset: Source, fitted: Any, method: str) -> None:
    """Refuse a dataset of another library or device than those of the fit; one that does not tell gives a row."""
    array = dataset.specimen
    if array is None and looks_foreign(fitted.components_):
        array = dataset.first(1)
    if array is not None:
        check_same_place(array, fitted, method)


def check_same_place(array: Any, fitted: Any, method: str) -> None:
    """Refuse an array of another library or device than those of the fit."""
    given, own = place(array), place(fitted.components_)
    if given != own:
        # The first sentence is scikit-learn's own, which its checks look for.
        raise MixedArraysError(
            "Inputs passed to {estimator}.{method}() must use the same namespace and the same device as those passed "
            "to fit(). The fit was of {own_library} on {own_device}, the data are of {library} on {device}",
            estimator=type(fitted).__name__,
            method=method,
            own_library=own[0],
            own_device=own[1],
            library=given[0],
            device=given[1],
            advice="Give arrays like those of the fit (with sklearn.set_config(array_api_dispatch=True), if they are "
            "not NumPy's), or take to_numpy() of the fitted model.",
        )


# --- fitted models from one array library to another -----------------------------------------------------------------


def moved(model: Model, convert: Callable[[Any], Any]) -> Model:
    """Give a copy of a model in which every array is what `convert` makes of it."""
    result = copy(model)
    for name, value in vars(model).items():
        setattr(result, name, _converted(value, convert))
    return result


def foreign_attributes(model: Any) -> Iterator[str]:
    """Name the attributes of a model, and of the steps of a pipeline, that hold arrays of other libraries."""
    for name, value in vars(model).items():
        found: list[Any] = []
        _converted(value, found.append)
        if any(looks_foreign(array) for array in found):
            yield name
    for _, step in getattr(model, "steps", []):
        if hasattr(step, "__dict__"):
            yield from foreign_attributes(step)


def _converted(value: Any, convert: Callable[[Any], Any]) -> Any:
    if isinstance(value, np.ndarray) or looks_foreign(value):
        return convert(value)
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return type(value)(_converted(part, convert) for part in value)
    if is_dataclass(value) and not isinstance(value, type) and not sparse.issparse(value):
        parts = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        return replace(value, **{name: _converted(part, convert) for name, part in parts.items()})
    return value
