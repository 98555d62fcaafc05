"""What users say of rows, beside their numbers: labels, weights, subjects, covariates; checked, and put beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import Float, Rows, double
from standout._checks import as_labels, is_dispatched
from standout._messages import InvalidTypeError, InvalidValueError, listed
from standout._xp import is_foreign, looks_foreign, namespace, place, to_host
from standout.sources import (
    Source,
    adjusted,
    as_words,
    check_covariate_rows,
    column_beside,
    with_subjects,
)
from standout.sources import beside as beside_rows


@dataclass(frozen=True)
class RowFacts:
    """What users give of the rows of all datasets, beside their numbers.

    Attributes
    ----------
    sample_weight : array-like of shape (n_samples,) or None
        Weight of each row of the target; with labels, of all rows.
    background_sample_weight : array-like, list of array-like, or None
        Weights of the rows of the background; of several ones a list, in which None stands for equal weights.
    groups : array-like of shape (n_samples,) or None
        The subject of each row of the target; with labels, of all rows.
    background_groups : array-like, list of array-like, or None
        The subjects of the rows of the background; of several ones a list.
    adjust, background_adjust : list of str, table, or None
        Covariates to be taken out; of several backgrounds a list of tables.
    """

    sample_weight: Any = None
    background_sample_weight: Any = None
    groups: Any = None
    background_groups: Any = None
    adjust: Any = None
    background_adjust: Any = None

    @property
    def columns(self) -> dict[str, str]:
        """Names of the columns of frames that hold facts, each with the parameter that names it."""
        named = {self.groups: "groups"} if isinstance(self.groups, str) else {}
        return {**named, **{name: "adjust" for name in self._names_of_covariates if name not in named}}

    @property
    def _names_of_covariates(self) -> list[str]:
        given = [self.adjust] if isinstance(self.adjust, str) else self.adjust
        several = isinstance(given, list | tuple) and all(isinstance(name, str) for name in given)
        return list(given) if several else []

    def beside(self, datasets: list[Source]) -> list[Source]:
        """Put the facts beside the rows of the datasets, the target first."""
        given, n_backgrounds = self.background_sample_weight, len(datasets) - 1
        weights = [
            self.sample_weight,
            *of_each_background(given, n_backgrounds, "background_sample_weight", "weights", n_dimensions=1),
        ]
        weighted = [
            beside_rows(dataset, weights=checked_weights(own, dataset))
            for dataset, own in zip(datasets, weights, strict=True)
        ]
        named = with_subjects(weighted, self.groups, self.background_groups)
        return self._adjusted(named, [self.adjust, *self._covariates_of_backgrounds(n_backgrounds)])

    def _adjusted(self, datasets: list[Source], covariates: Sequence[Any]) -> list[Source]:
        parameters = ["adjust", *["background_adjust"] * (len(datasets) - 1)]
        return [
            dataset if own is None else adjusted(dataset, own, parameter)
            for dataset, own, parameter in zip(datasets, covariates, parameters, strict=True)
        ]

    def _covariates_of_backgrounds(self, n_backgrounds: int) -> list[Any]:
        if self.background_adjust is None and self._names_of_covariates:
            return [self.adjust] * n_backgrounds
        return of_each_background(
            self.background_adjust, n_backgrounds, "background_adjust", "covariates", n_dimensions=2
        )

    def beside_labels(self, whole: Source, datasets: list[Source], chosen: list[npt.NDArray[np.bool_]]) -> list[Source]:
        """Put the facts beside the rows of datasets that were told apart by labels."""
        for name in ("sample_weight", "groups", "adjust"):
            if getattr(self, f"background_{name}") is not None:
                raise InvalidValueError(
                    "is given, but with {p.target_label} the rows of the backgrounds are in X",
                    parameter=f"background_{name}",
                    advice="Leave it out, and give one entry for each row of X as {name}.",
                    name=name,
                )
        if self.sample_weight is not None:
            weights = to_host(check_sample_weight(self.sample_weight, len(chosen[0])))
            datasets = [
                beside_rows(part, weights=checked_weights(weights[some], part))
                for part, some in zip(datasets, chosen, strict=True)
            ]
        if self._names_of_covariates:
            raise InvalidTypeError(
                "names columns, but {p.target_label} makes the backgrounds of rows of X",
                parameter="adjust",
                value=self.adjust,
                advice="Give the covariates of all rows as a table.",
            )
        if self.adjust is not None:
            check_covariate_rows(len(self.adjust), len(chosen[0]), "the data", "adjust")
            datasets = self._adjusted(datasets, [taken_rows(self.adjust, some) for some in chosen])
        if self.groups is None:
            return datasets
        groups = column_beside(whole, self.groups, "groups") if isinstance(self.groups, str) else self.groups
        words = as_words(groups, len(chosen[0]), "the data", "groups")
        own, *others = (words[some] for some in chosen)
        return with_subjects(datasets, own, others)


FACTS = frozenset(field.name for field in fields(RowFacts))
"""What `fit` takes of rows, beside their numbers."""


def of_each_background(given: Any, n_backgrounds: int, parameter: str, what: str, *, n_dimensions: int) -> list[Any]:
    """Give what is known of the rows of each background: one array or table of the only one, or a list, or nothing."""
    if given is None:
        return [None] * n_backgrounds
    several = isinstance(given, list | tuple) and any(one is None or np.ndim(one) >= n_dimensions for one in given)
    each = list(given) if several else [given]
    if len(each) != n_backgrounds:
        raise InvalidValueError(
            "has {what} for {given} background(s), but there are {limit}",
            parameter=parameter,
            what=what,
            given=len(each),
            limit=n_backgrounds,
            one="an array" if n_dimensions == 1 else "a table",
            advice="Give a list with {one}, or {v.None}, for each background.",
        )
    return each


def taken_rows(data: Any, chosen: Any) -> Any:
    """Give some rows of a dataset, or of what is known of them, by their numbers or by a truth value each."""
    if hasattr(data, "iloc"):
        return data.iloc[chosen]
    return (data if hasattr(data, "shape") else np.asarray(data))[chosen]


def checked_weights(given: Any, dataset: Source) -> Float | None:
    """Check the weights of the rows of a dataset, whose number an iterator does not tell."""
    if given is None:
        return None
    n_rows = dataset.n_rows if dataset.n_rows is not None else len(given)
    weights = to_host(check_sample_weight(given, n_rows))
    if np.count_nonzero(weights) < 2:
        raise InvalidValueError(
            "{name} has {given} row(s) with a weight above zero, but the least is {limit}",
            name=dataset.name,
            given=int(np.count_nonzero(weights)),
            limit=2,
            advice="Give more rows a weight, or leave the weights out.",
        )
    return weights


# --- labels and weights -----------------------------------------------------------------------------------------------


def reject_iterator(data: Any, method: str) -> None:
    """Refuse an iterator where the rows are needed more than once."""
    if isinstance(data, Iterator):
        raise InvalidTypeError(
            "{method} cannot take an iterator of batches, which can be read only once",
            method=method,
            advice="Call fit with the iterator, then transform on each batch.",
        )


def rows_with_labels(dataset: Source, method: str) -> Rows:
    """Give the rows of a dataset in memory; refuse one that is read in parts where rows have labels."""
    if not dataset.in_memory:
        raise InvalidTypeError(
            "{method} tells rows apart by their labels, but {name} is read in parts",
            method=method,
            name=dataset.name,
            advice="Give the target and the backgrounds as datasets of their own, with target_label=None.",
        )
    return dataset.rows()


def check_no_labels(y: Any, target: Source | None) -> None:
    """Refuse a second table in the place of y, which without `target_label` is ignored: the background is meant."""
    if y is None:
        return
    shape = np.asarray(y).shape if hasattr(y, "__array__") and not hasattr(y, "shape") else getattr(y, "shape", None)
    if shape is not None:
        flat = len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)
    else:
        flat = isinstance(y, list | tuple) and not any(isinstance(x, list | tuple) or np.ndim(x) for x in y)
    n_rows = None if target is None else target.n_rows
    if flat and n_rows in (None, len(y) if shape is None else shape[0]):
        return
    raise InvalidValueError(
        "y is given as {what}, but without {p.target_label} it has no meaning",
        what=f"an array of shape {tuple(y.shape)}" if hasattr(y, "shape") else f"an object of type {type(y).__name__}",
        advice="Pass the background by its name: fit(X, background=...). Labels of rows need {p.target_label}.",
    )


def check_label_form(y: Any, rows: Rows, target_label: Any, background: Any) -> tuple[Any, list[Any]]:
    """Check labels as `check_batch_labels` does; the target's label and another one must be among them."""
    labels, others = check_batch_labels(y, rows, target_label, background)
    known = _distinct(labels)
    if np.ndim(target_label) != 0 or target_label not in known:
        raise InvalidValueError(
            "no row has the label {p.target_label} {target_label}; y has {known}",
            target_label=repr(target_label),
            known=listed("label", known),
            advice="Choose one of these. In cross-validation, use stratified folds.",
        )
    if not others:
        raise InvalidValueError(
            "every row has the label {target_label}",
            target_label=repr(target_label),
            advice="Rows with another label are the background. In cross-validation, use stratified folds.",
        )
    return labels, others


def check_batch_labels(y: Any, rows: Rows, target_label: Any, background: Any) -> tuple[Any, list[Any]]:
    """Check the labels that tell target from background; give them, and those of the backgrounds, sorted."""
    if background is not None:
        raise InvalidValueError(
            "both {p.target_label} and a background are given",
            advice="Set {p.target_label:None} to pass the background itself, or pass labels y alone.",
        )
    if y is None:
        # scikit-learn's own wording, which its checks look for.
        raise InvalidValueError(
            "requires y to be passed, but the target y is None",
            advice="With {p.target_label}, fit needs one label per row.",
        )
    labels = as_labels(beside(y, rows), rows.shape[0], "y")
    return labels, [label for label in _distinct(labels) if label != target_label]


def check_known_labels(labels: list[Any], fitted: list[Any]) -> None:
    """Check that every background that was fitted has rows, and that there are no others."""
    unknown = [label for label in labels if label not in fitted]
    missing = [label for label in fitted if label not in labels]
    if unknown:
        raise InvalidValueError(
            "the label {label} was not there when the model was fitted",
            label=repr(unknown[0]),
            advice="Give rows of the fitted labels only.",
        )
    if missing:
        raise InvalidValueError(
            "no row has the background label {label}",
            label=repr(missing[0]),
            advice="Give rows of every fitted label, for example by stratified folds.",
        )


def check_sample_weight(sample_weight: Any, n_rows: int) -> Float:
    """Check the weights of rows; None means equal weights."""
    if sample_weight is None:
        return np.ones(n_rows)
    dispatched = is_dispatched(sample_weight)
    weights = double(sample_weight) if dispatched else np.asarray(sample_weight, dtype=np.float64)
    xp = namespace(weights)
    if tuple(weights.shape) != (n_rows,):
        raise InvalidValueError(
            "has shape {shape}, but there are {limit} rows",
            parameter="sample_weight",
            shape=tuple(weights.shape),
            limit=n_rows,
            advice="Give one per row.",
        )
    total = float(xp.sum(weights))
    if not np.isfinite(total) or not bool(xp.all(weights >= 0)) or total == 0:
        raise InvalidValueError(
            "must be non-negative, finite and not all zero",
            parameter="sample_weight",
            advice="Give such weights, or {v.None}.",
        )
    return weights


def beside(y: Any, rows: Rows) -> Any:
    """Give labels or weights as they are beside the rows; those of another library or device are read on the host."""
    if y is None or not looks_foreign(y) or place(y) == place(rows):
        return y
    return to_host(y)


def _distinct(labels: Any) -> list[Any]:
    """Give the labels that there are, sorted."""
    found = to_host(namespace(labels).unique_values(labels)) if is_foreign(labels) else np.unique(labels)
    return list(found.tolist())
