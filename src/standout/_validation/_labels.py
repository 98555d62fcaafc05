"""Labels and weights of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import Float, double
from standout._validation._devices import dispatches
from standout._validation._words import listed
from standout._xp import is_foreign, namespace, to_host


def check_batch_labels(y: Any, n_rows: int, target_label: Any, background: Any) -> tuple[Any, Any]:
    """Check the labels that tell target from background; give them, and those of the backgrounds, sorted."""
    if background is not None:
        raise ValueError(
            f"both target_label={target_label!r} and a background are given. Set target_label=None to pass the "
            "background itself, or pass labels y alone."
        )
    if y is None:
        # scikit-learn's own wording, which its checks look for.
        raise ValueError(
            f"requires y to be passed, but the target y is None. With target_label={target_label!r}, "
            "fit needs one label per row."
        )
    labels = _as_labels(y, n_rows, "y")
    return labels, [label for label in _distinct(labels) if label != target_label]


def check_label_form(y: Any, n_rows: int, target_label: Any, background: Any) -> tuple[Any, Any]:
    """Check labels as `check_batch_labels` does; the target's label and another one must be among them."""
    labels, others = check_batch_labels(y, n_rows, target_label, background)
    known = _distinct(labels)
    advice = "In cross-validation, use stratified folds."
    if np.ndim(target_label) != 0 or target_label not in known:
        raise ValueError(
            f"no row has the label target_label={target_label!r}; y has {listed('label', known)}. "
            f"Choose one of these. {advice}"
        )
    if not others:
        raise ValueError(
            f"every row has the label {target_label!r}. Rows with another label are the background. {advice}"
        )
    return labels, others


def check_known_labels(labels: list[Any], fitted: list[Any]) -> None:
    """Check that every background that was fitted has rows."""
    unknown = [label for label in labels if label not in fitted]
    if unknown:
        raise ValueError(
            f"the label {unknown[0]!r} was not there when the model was fitted. Give rows of the fitted labels only."
        )
    missing = [label for label in fitted if label not in labels]
    if missing:
        raise ValueError(
            f"no row has the background label {missing[0]!r}. Give rows of every fitted label, for example by "
            "stratified folds."
        )


def check_group_weight(weight: float, label: Any) -> None:
    """Refuse weights that leave a group without rows."""
    if weight == 0.0:
        raise ValueError(f"all rows with the label {label!r} have a sample_weight of zero. Give some a positive one.")


def check_sample_weight(sample_weight: Any, n_rows: int) -> Float:
    """Check the weights of rows; None means equal weights."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = double(sample_weight) if dispatches(sample_weight) else np.asarray(sample_weight, dtype=np.float64)
    if tuple(weights.shape) != (n_rows,):
        raise ValueError(f"sample_weight has shape {weights.shape}, but there are {n_rows} rows. Give one per row.")
    xp = namespace(weights)
    total = float(xp.sum(weights))
    if not np.isfinite(total) or not bool(xp.all(weights >= 0)) or total == 0:
        raise ValueError("sample_weight must be non-negative, finite and not all zero. Give such weights, or None.")
    return weights


def check_groups(labels: Any, n_rows: int) -> npt.NDArray[np.intp]:
    """Check a partition of rows, and give group numbers 0, 1, ... in place of its labels."""
    _, groups = np.unique(_as_labels(labels, n_rows, "labels"), return_inverse=True)
    return groups


def _distinct(labels: Any) -> list[Any]:
    """Give the labels that there are, sorted."""
    found = to_host(namespace(labels).unique_values(labels)) if is_foreign(labels) else np.unique(labels)
    return list(found.tolist())


def _as_labels(labels: Any, n_rows: int, name: str) -> npt.NDArray[Any]:
    """Check labels of rows: one each, none missing, all of one sort."""
    if dispatches(labels):
        if labels.ndim != 1 or labels.shape[0] != n_rows:
            raise ValueError(f"{name} has shape {tuple(labels.shape)}, but there are {n_rows} rows. Give one per row.")
        if not bool(namespace(labels).all(labels == labels)):
            raise ValueError(f"{name} has missing values, but every row must belong to a group. Drop those rows.")
        return labels
    values = np.asarray(labels)
    if values.ndim != 1 or values.size != n_rows:
        raise ValueError(f"{name} has shape {values.shape}, but there are {n_rows} rows. Give one label per row.")
    given = list(labels)
    if any(value is None or not _equals_itself(value) for value in given):
        raise ValueError(f"{name} has missing values, but every row must belong to a group. Drop those rows.")
    if values.dtype.kind in "US" and not all(isinstance(value, str | bytes) for value in given):
        # NumPy would turn the numbers among them into strings.
        values = np.array(given, dtype=object)
    try:
        np.unique(values)
    except TypeError:
        raise TypeError(f"{name} mixes types that cannot be sorted. Give all strings or all integers.") from None
    return values


def _equals_itself(value: Any) -> bool:
    """Tell whether a value is neither NaN nor a missing value of a data frame."""
    try:
        return bool(value == value)
    except TypeError:
        return False
