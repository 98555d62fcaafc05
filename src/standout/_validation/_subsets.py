"""Choices of rows from a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from standout._validation._numbers import is_number
from standout._validation._parameters import check_different
from standout._validation._words import listed


def as_choice(choice: Any, known: Sequence[Any], name: str) -> tuple[Any, ...]:
    """Check one or several different groups out of those that there are, and give them as a tuple."""
    several = isinstance(choice, Sequence | np.ndarray) and not isinstance(choice, str)
    values = tuple(choice) if several else (choice,)
    if not values:
        raise ValueError(f"{name} is empty. Give one or several of {_in_words(known)}.")
    check_different(values, name)
    for value in values:
        if value not in known:
            raise ValueError(f"{name} has {value!r}, but the data have {_in_words(known)}. Choose among these.")
    return values


def check_apart(target: Sequence[Any], background: Sequence[Any]) -> None:
    """Refuse a group that is both target and background."""
    both = [value for value in target if value in background]
    if both:
        raise ValueError(f"{both[0]!r} is both in target and in background. Choose different ones.")


def check_fill(missing: Any) -> float | None:
    """Check what stands in for missing values: a number, or None for the mean."""
    if isinstance(missing, str) and missing == "mean":
        return None
    if not is_number(missing) or not np.isfinite(missing):
        raise ValueError(f"missing={missing!r} is neither 'mean' nor a finite number. Use 'mean' or, for example, 0.")
    return float(missing)


def check_filled_columns(empty: Sequence[str]) -> None:
    """Refuse the mean of a column that has no value at all."""
    if empty:
        raise ValueError(
            f"no row used has a value in {listed('column', empty)}, so that there is no mean. "
            "Use missing=0, or a file with more rows."
        )


def _in_words(known: Sequence[Any]) -> str:
    return ", ".join(repr(value) for value in known)
