"""Numbers that were given."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_number(value: Any) -> bool:
    """Tell whether a value is a number; True and False are none."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def check_whole(value: Any, name: str, *, least: int = 1, remedy: str = "Give a number of at least 1.") -> int:
    """Check a whole number that may not be too small."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name}={value!r} is not a whole number. {remedy}")
    if value < least:
        raise ValueError(f"{name}={value} is less than {least}. {remedy}")
    return int(value)
