"""Ids, labels and groups: whatever a file calls them, as strings."""

from __future__ import annotations

from typing import Any

import numpy as np

from standout.io._table import Words, as_words


def word(value: Any) -> str:
    """Say one value as a word: a missing one as the empty string, 3.0 as 3."""
    if value is None or value != value:
        return ""
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, float | np.floating) and float(value).is_integer():
        # A column of whole numbers with a gap in it comes as floats from many a writer.
        return str(int(value))
    return str(value)


def words_of_array(values: Any) -> Words:
    """Say the values of a vector as words."""
    array = np.asarray(values)
    if array.dtype.kind in "biuf":
        # Few values are different where they name groups: each is said once.
        distinct, positions = np.unique(array, return_inverse=True)
        return as_words([word(value) for value in distinct.tolist()])[positions]
    return as_words([word(value) for value in array.tolist()])
