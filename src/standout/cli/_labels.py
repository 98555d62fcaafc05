"""Labels of a file, which are words -> what a report colours by: groups, or numbers on a scale."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from standout.io import Table
from standout.report._labels import MOST_GROUPS


def labels_of(table: Table) -> Any:
    """Give the labels of a table: numbers, if they are more different ones than groups can have; None if missing."""
    if table.labels is None:
        return None
    words = table.labels.tolist()
    different = set(words) - {""}
    if len(different) > MOST_GROUPS and all(map(_is_number, different)):
        return np.array([float(word) if word else np.nan for word in words])
    return np.array([word or None for word in words], dtype=object)


def _is_number(word: str) -> bool:
    try:
        return isfinite(float(word))
    except ValueError:
        return False
