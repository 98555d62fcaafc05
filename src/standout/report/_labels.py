"""Labels of rows: groups to be coloured one by one, or numbers on a scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import Float
from standout._checks import check_one_each
from standout.report._findings import Numbers

# More colours and shapes than these cannot be told apart.
MOST_GROUPS = 12
MISSING = "(no label)"


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of all rows of the target.

    Attributes
    ----------
    names : tuple of str
        Names of the groups; empty where the labels are numbers on a scale.
    groups : ndarray of shape (n,) or None
        Number of each row's group.
    values : ndarray of shape (n,) or None
        Numbers on a scale.
    given : ndarray of shape (n,)
        The labels as they came.
    """

    names: tuple[str, ...]
    groups: Numbers | None
    values: Float | None
    given: npt.NDArray[Any]

    def named(self, rows: Numbers) -> tuple[str, ...]:
        """Give the labels of some rows in words."""
        return tuple(word(value) for value in self.given[rows])

    @property
    def are_groups(self) -> bool:
        """Whether every name is that of one label: none was put under "other"."""
        return self.groups is not None and len(self.names) >= 2 and not self.names[-1].startswith("other labels")


def read_labels(labels: Any, n_rows: int) -> Labels:
    """Tell groups from numbers on a scale, and number the groups.

    Numbers with many different values are taken as a scale. Of very many groups, the largest keep their name.
    """
    given = np.asarray(labels)
    check_one_each(len(given), n_rows, "labels", "row of the target")
    if given.dtype.kind in "iuf" and len(np.unique(given[np.isfinite(given)])) > MOST_GROUPS:
        return Labels((), None, given.astype(np.float64), given)
    words, places = _different(given)
    if len(words) <= MOST_GROUPS:
        return Labels(tuple(words), places.astype(np.int64), None, given)
    sizes = np.bincount(places)
    largest = np.sort(np.argsort(-sizes, kind="stable")[: MOST_GROUPS - 1])
    number = np.full(len(words), MOST_GROUPS - 1)
    number[largest] = np.arange(len(largest))
    rest = f"other labels ({len(words) - len(largest)})"
    return Labels((*(words[index] for index in largest), rest), number[places], None, given)


def _different(given: npt.NDArray[Any]) -> tuple[list[str], Numbers]:
    """Give the different labels in order, in words, and which of them each row has."""
    if given.dtype.kind in "biuf":
        different, places = np.unique(given, return_inverse=True)
        return [word(value) for value in different], places
    words = [word(value) for value in given.tolist()]
    different_words = sorted(set(words))
    number = {name: index for index, name in enumerate(different_words)}
    return different_words, np.array([number[name] for name in words], dtype=np.int64)


def word(value: Any) -> str:
    """Say a label in words."""
    if value is None or (isinstance(value, float | np.floating) and not np.isfinite(value)):
        return MISSING
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    return str(value)
