"""Labels of the target's rows: groups, or numbers on a scale."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from standout.report._findings import Numbers
from standout.sources import Batch

# More colours and shapes than these cannot be told apart.
MOST_GROUPS = 12
# Different labels that are told apart while the rows pass. Nobody has so many groups.
MOST_LABELS = 100_000
NO_LABEL = "(no label)"


@dataclass(frozen=True, eq=False)
class LabelGroups:
    """What the labels of all rows turned out to be.

    Attributes
    ----------
    names : tuple of str
        Names of the groups; empty if the labels are numbers on a scale.
    n_others : int
        How many labels the last group stands for, if there are too many for a group each; else 0.
    group_of : ndarray of int
        The group of each number that `Labels.numbers` has given, with that of -1 at the end.
    """

    names: tuple[str, ...]
    n_others: int
    group_of: Numbers

    @property
    def are_separate(self) -> bool:
        """Whether there are several groups, and each is that of one label."""
        return len(self.names) >= 2 and self.n_others == 0


class Labels:
    """The labels of the target's rows, numbered in the order in which they are met.

    Parameters
    ----------
    given : array-like of shape (n,), optional
        The labels of all rows. None takes those that come with the rows, which are words; an empty one is missing.
    """

    def __init__(self, given: Any = None) -> None:
        self._given: npt.NDArray[Any] | None = None if given is None else np.asarray(given)
        self._numbers: dict[Any, int] = {}
        self._sizes = np.zeros(MOST_LABELS + 1, dtype=np.int64)

    def of(self, batch: Batch) -> npt.NDArray[Any] | None:
        """Give the labels of the rows of a batch; None if they have none."""
        return batch.labels if self._given is None else self._given[batch.start : batch.start + batch.n_rows]

    def numbers(self, labels: npt.NDArray[Any]) -> Numbers:
        """Give the number of each label; -1 for new ones once there are `MOST_LABELS`."""
        if labels.dtype.kind in "biuf":
            different, places = np.unique(labels, return_inverse=True)
            keys = [label if np.isfinite(label) else NO_LABEL for label in different.tolist()]
            numbers = np.array([self._number(key) for key in keys], dtype=np.int64)[places.ravel()]
        else:
            every = labels.tolist()
            known = {label: self._number(as_word(label)) for label in dict.fromkeys(every)}
            numbers = np.array([known[label] for label in every], dtype=np.int64)
        self._sizes += np.bincount(numbers % len(self._sizes), minlength=len(self._sizes))
        return numbers

    def _number(self, label: Any) -> int:
        if len(self._numbers) < MOST_LABELS:
            return self._numbers.setdefault(label, len(self._numbers))
        return self._numbers.get(label, -1)

    def settled(self) -> LabelGroups:
        """Decide, once all rows have passed, what is a group and what is a number on a scale.

        Numbers with many different values are a scale. Of very many groups, the largest keep their names.
        """
        group_of = np.zeros(len(self._numbers) + 1, dtype=np.int64)
        known = [label for label in self._numbers if label != NO_LABEL]
        if len(known) > MOST_GROUPS and all(np.isfinite(as_number(label)) for label in known):
            return LabelGroups((), 0, group_of)
        ordered = sorted(self._numbers, key=natural)
        if len(ordered) <= MOST_GROUPS:
            group_of[[self._numbers[label] for label in ordered]] = np.arange(len(ordered))
            return LabelGroups(tuple(as_word(label) for label in ordered), 0, group_of)
        sizes = self._sizes[[self._numbers[label] for label in ordered]]
        largest = [ordered[place] for place in np.sort(np.argsort(-sizes, kind="stable")[: MOST_GROUPS - 1])]
        group_of[:] = MOST_GROUPS - 1
        group_of[[self._numbers[label] for label in largest]] = np.arange(MOST_GROUPS - 1)
        n_others = len(ordered) - len(largest)
        more = " or more" if self._sizes[-1] else ""
        return LabelGroups((*map(as_word, largest), f"other labels ({n_others:,}{more})"), n_others, group_of)


def natural(label: Any) -> tuple[bool, Any]:
    """Give a key that sorts numbers before words, and words with numbers in them as people do: obj3 before obj19."""
    if not isinstance(label, str):
        return False, label
    parts = re.split(r"([0-9]+)", label)
    return True, [(part.lower(), 0) if place % 2 == 0 else ("", int(part)) for place, part in enumerate(parts)]


def as_word(label: Any) -> str:
    """Give a label as a word."""
    if isinstance(label, float | np.floating):
        return f"{label:.6g}" if np.isfinite(label) else NO_LABEL
    return NO_LABEL if label is None else str(label) or NO_LABEL


def as_number(label: Any) -> float:
    """Give a label as a number; NaN if it is none."""
    try:
        return float(label)
    except (TypeError, ValueError):
        return float("nan")
