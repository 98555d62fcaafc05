"""Fitting by batches, and merging."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn


def reject_no_batch() -> NoReturn:
    """Refuse a batch without any rows."""
    raise ValueError("neither the target nor a background has rows in this batch. Give rows of one of them at least.")


def reject_rows_needed(parameter: str, value: Any, instead: str) -> NoReturn:
    """Refuse a choice that is made by looking at rows, where only sums over them are kept."""
    raise ValueError(
        f"{parameter}={value!r} looks at rows, but partial_fit and merge keep sums over the rows only. "
        f"Use {instead}, or fit on all rows at once."
    )


def check_mergeable(first: Any, second: Any) -> None:
    """Check that two estimators are of one class, and both have labels or neither has."""
    if type(first) is not type(second):
        raise TypeError(
            f"a {type(first).__name__} cannot be merged with an object of type {type(second).__name__}. "
            "Give an estimator of the same class."
        )
    if first.target_label != second.target_label:
        raise ValueError(
            f"one estimator has target_label={first.target_label!r}, the other {second.target_label!r}, so that their "
            "targets are not the same. Fit both with the same label, or both with backgrounds."
        )


def check_label_of_sums(target_label: Any, labels: list[Any] | None) -> None:
    """Check that new rows are told apart as those were that have been summed up: `labels` are the backgrounds' so far.

    None stands for rows that came without labels.
    """
    remedy = "Set target_label as it was, or start with a new estimator."
    if (target_label is None) != (labels is None):
        had = "no labels" if labels is None else f"labels, {labels} among them"
        raise ValueError(f"target_label is {target_label!r} now, but the rows before had {had}. {remedy}")
    if labels is not None and target_label in labels:
        raise ValueError(f"target_label is {target_label!r} now, but was a background's in the rows before. {remedy}")


def sorted_labels(labels: Iterable[Any]) -> list[Any]:
    """Sort the labels of several batches, and refuse such as cannot be sorted."""
    labels = list(labels)
    try:
        return sorted(labels)
    except TypeError:
        raise TypeError(
            f"the background labels of the rows before and of the new ones cannot be sorted together: {labels}. "
            "Give all strings or all integers."
        ) from None


def check_n_backgrounds_of_batch(given: int, known: int) -> None:
    """Check that a batch has all backgrounds or none, so that it is clear which rows belong to which."""
    if given and known and given != known:
        raise ValueError(
            f"the batch has {given} background(s), but the rows before had {known}. Give a list of {known}, with None "
            "for a background without new rows."
        )


def check_merged_backgrounds(mine: int, theirs: int) -> None:
    """Check that two estimators know the same number of backgrounds; one of them may know none yet."""
    if mine and theirs and mine != theirs:
        raise ValueError(
            f"this estimator has {mine} background(s), the other {theirs}. Merge estimators with the same "
            "backgrounds, in the same order."
        )


def check_same_coordinates(same: bool) -> None:
    """Refuse to add up sums of different kernel coordinates."""
    if not same:
        raise ValueError(
            "the two estimators have different kernel coordinates. Fit both with the same kernel, and with the same "
            "array of landmarks or the same random_state."
        )


def reject_kept_nothing(name: str) -> NoReturn:
    """Say why an estimator has nothing that can be added to."""
    raise ValueError(
        f"{name} keeps no sums over its rows: it was fitted with fewer rows than columns, with exact kernel "
        "coordinates, was saved without its moments, or its last fit was refused. Fit it with partial_fit, and save it "
        "with moments=True."
    )


def reject_sums_alone() -> NoReturn:
    """Refuse to save a model without the only thing that it has so far."""
    raise ValueError(
        "the model has no components yet, only sums over the rows that came so far. Save it with moments=True, or give "
        "it more rows first."
    )


def check_no_learning(kernel_weights: Any) -> None:
    """Refuse to learn weights of kernels from a batch."""
    if isinstance(kernel_weights, str) and kernel_weights == "learn":
        reject_rows_needed("kernel_weights", "learn", "one number per kernel")


def check_fixed_coordinates(approximation: Any) -> None:
    """Refuse coordinates that depend on all rows where these come in batches."""
    if isinstance(approximation, str) and approximation != "fourier":
        raise ValueError(
            f"approximation={approximation!r} chooses its coordinates from all rows, but partial_fit sees a batch at "
            "a time. Use approximation='fourier', or an array of landmarks."
        )
