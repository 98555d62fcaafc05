"""What pictures show: a random sample of rows with their held-out scores, in this view, in PCA's and along the path."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import Float, Rows
from standout._xp import is_foreign, to_host
from standout.sources import Source

# Components whose scores are drawn, and different labels that have a colour each.
MOST_COMPONENTS, MOST_LABELS = 4, 12
# All backgrounds together have as many points as the target: more would only hide each other.
LEAST_POINTS = 200
NO_LABEL = "(no label)"


@dataclass(frozen=True)
class Sample:
    """The rows of a dataset that are looked at.

    Attributes
    ----------
    numbers : ndarray of int
        Their numbers in the dataset, ascending.
    rows : array or CSR array
    """

    numbers: npt.NDArray[np.intp]
    rows: Rows


def samples(datasets: Sequence[Source], n_points: int, seed: int) -> list[Sample]:
    """Draw rows of each dataset at random."""
    draw = np.random.default_rng(seed)
    each = max(n_points // max(len(datasets) - 1, 1), LEAST_POINTS)
    drawn = []
    for place, source in enumerate(datasets):
        count, most = source.count_rows(), each if place else n_points
        numbers = np.sort(draw.choice(count, most, replace=False)) if count > most else np.arange(count)
        rows = source.take(numbers)
        drawn.append(Sample(numbers.astype(np.intp), to_host(rows) if is_foreign(rows) else rows))
    return drawn


def rounded(values: Any, digits: int = 4) -> list[Any]:
    """Return numbers with a few digits, as a list; unknown and infinite ones are None."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim > 1:
        return [rounded(row, digits) for row in array]
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in array.tolist()]


# --- labels ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Labels:
    """The labels of the target's rows: a few words with a colour each, or numbers on a scale.

    Attributes
    ----------
    names : list of str
        The words; empty for numbers.
    counts : list of int
        Rows of each word.
    marks : ndarray
        For each row its place in `names`, or its number.
    separate : bool
        Whether each word is one label, and none stands for many.
    """

    names: list[str]
    counts: list[int]
    marks: npt.NDArray[Any]
    separate: bool

    def of(self, numbers: npt.NDArray[np.intp]) -> list[Any]:
        """Return the marks of some rows, ready for JSON."""
        marks = self.marks[numbers]
        return marks.tolist() if self.names else rounded(marks, 6)


def read_labels(given: Any) -> Labels:
    """Decide whether labels are words or numbers on a scale. Of very many words the most frequent keep their names."""
    labels = np.asarray(given)
    if labels.dtype.kind in "fiu" and len(np.unique(labels[np.isfinite(labels)])) > MOST_LABELS:
        return Labels([], [], labels.astype(np.float64), False)
    words = np.array([_word(label) for label in labels.tolist()], dtype=object)
    different, places, counts = np.unique(words, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")[: MOST_LABELS - 1 if len(different) > MOST_LABELS else MOST_LABELS]
    kept = np.sort(order)
    names, sizes = [str(name) for name in different[kept]], counts[kept].tolist()
    mark_of = np.full(len(different), len(kept))
    mark_of[kept] = np.arange(len(kept))
    if len(kept) < len(different):
        names.append(f"{len(different) - len(kept):,} other labels")
        sizes.append(int(counts.sum()) - sum(sizes))
    return Labels(names, sizes, mark_of[places.ravel()], len(kept) == len(different) > 1)


def _word(label: Any) -> str:
    if isinstance(label, float):
        return f"{label:.6g}" if np.isfinite(label) else NO_LABEL
    return NO_LABEL if label is None else str(label) or NO_LABEL


# --- views along the path --------------------------------------------------------------------------------------------


def aligned(scores: Sequence[Float], reference: Sequence[Float]) -> list[Float]:
    """Return scores with the signs that make the target's agree with a reference."""
    first, second = (part - part.mean(axis=0) for part in (scores[0], reference[0]))
    d = min(first.shape[1], second.shape[1])
    signs = np.ones(first.shape[1])
    signs[:d] = np.where(np.einsum("ij,ij->j", first[:, :d], second[:, :d]) < 0.0, -1.0, 1.0)
    return [part * signs for part in scores]


def packed(views: Sequence[Sequence[Float]]) -> dict[str, Any]:
    """Return views as 16-bit numbers in base64, x of all points and then y, with the scale of each."""
    scales, data = [], []
    for view in views:
        both = np.concatenate([part[:, :2] for part in view]).T
        both = np.nan_to_num(np.vstack([both, np.zeros_like(both)])[:2])
        scale = np.maximum(np.abs(both).max(axis=1), 1e-300) / 32000.0
        whole = np.rint(both / scale[:, np.newaxis]).astype("<i2")
        scales.append([float(value) for value in scale])
        data.append(base64.b64encode(whole.tobytes()).decode())
    return {"scale": scales, "data": data}
