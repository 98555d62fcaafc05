"""Datasets that keep their sums, and rows of them that are chosen by number or by a lasso."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import Float, Rows, in_order
from standout._messages import InvalidValueError
from standout.explorer._question import Mask
from standout.moments import FoldPart, Folds, Moments, Part
from standout.sources import Batch, InMemory, Source, added, drawn

# Rows that are summed up at a time, by one thread.
CHUNK_BYTES = 2**24
# Folds that sums are kept in: those of the estimators' held-out ratios. Wider tables keep as many as are asked for.
N_FOLDS = 10
MOST_FOLDED = 1000


class KeptSums(Source):
    """A dataset that keeps its sums: another fit of the same rows reads nothing again.

    Sums are gathered by folds, with what shrinkage needs, whatever is asked for first: all other sums follow from them.

    Attributes
    ----------
    host : Source
        The dataset whose sums are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA
    >>> from standout.explorer import KeptSums
    >>> from standout.sources import InMemory
    >>> X, Y = np.random.default_rng(0).normal(size=(2, 200, 3))
    >>> kept = KeptSums(InMemory(X)), KeptSums(InMemory(Y))
    >>> first = DiscriminativePCA(1).fit(kept[0], background=kept[1])
    >>> second = DiscriminativePCA(1, shrinkage=0.5).fit(kept[0], background=kept[1])  # reads nothing
    >>> bool(np.allclose(second.components_, DiscriminativePCA(1, shrinkage=0.5).fit(X, background=Y).components_))
    True
    """

    def __init__(self, host: Source) -> None:
        self.host = host
        # Without names of columns: scores are asked for as arrays.
        self.width, self.n_rows = host.width, host.n_rows
        self.again, self.in_memory, self.specimen = host.again, host.in_memory, host.specimen
        self.name, self.min_rows = host.name, host.min_rows
        # Copies under other names, which `called` gives, share what is kept.
        self._kept: dict[tuple[Part, int], Folds[Moments]] = {}
        self._lock = threading.Lock()

    def batches(self) -> Iterator[Batch]:
        """Give the batches of the dataset."""
        return self.host.batches()

    def rows(self) -> Rows:
        """Give all rows."""
        return self.host.rows()

    def first(self, count: int) -> Rows:
        """Give the first rows."""
        return self.host.first(count)

    def require_finite(self) -> None:
        """Refuse NaN and infinity."""
        self.host.require_finite()

    def folded(self, function: Callable[[Any, Rows], Any], state: Any) -> Any:
        """Take a state through the rows."""
        return self.host.folded(function, state)

    def mapped(self, function: Callable[[Rows], Any], n_columns: int) -> Any:
        """Give what a function makes of every row."""
        return self.host.mapped(function, n_columns)

    def sample(self, count: int, rng: np.random.Generator) -> Rows:
        """Draw rows at random."""
        return self.host.sample(count, rng)

    def count_rows(self) -> int:
        """Count the rows."""
        return self.host.count_rows()

    def called(self, name: str, min_rows: int) -> KeptSums:
        """Give the same dataset, with the same sums, under another name."""
        named = super().called(name, min_rows)
        named.host = self.host.called(name, min_rows)
        return named

    def summed(self, part: Callable[[Batch], Any]) -> Any:
        """Give sums that are kept, or add up what a function makes of each batch."""
        wanted = part if isinstance(part, FoldPart) else FoldPart(part, 1, N_FOLDS)
        by_rows = wanted.n_dealt == N_FOLDS and wanted.dealt is None
        if not isinstance(wanted.part, Part) or wanted.part.kind != "scatter" or not by_rows:
            return self.host.summed(part)
        n_kept = N_FOLDS if (self.width or 0) <= MOST_FOLDED else wanted.n_folds
        full = replace(wanted.part, norms=True)
        key = full, n_kept
        with self._lock:
            if key not in self._kept:
                self._kept[key] = self.host.summed(FoldPart(full, n_kept, N_FOLDS))
            folds: Folds[Moments] = self._kept[key]
        return folds.fewer(wanted.n_folds) if part is wanted else folds.total()


class ChosenRows(InMemory):
    """Some rows of a table in memory, which are summed up in several threads without a copy of them all.

    Attributes
    ----------
    numbers : ndarray of int
        Which rows, in ascending order.
    """

    def __init__(self, values: Any, numbers: npt.NDArray[np.intp]) -> None:
        self.numbers = numbers
        self._values = values
        self.n_rows, self.width = len(numbers), int(values.shape[1])
        self.specimen = values[:1]

    def called(self, name: str, min_rows: int) -> ChosenRows:
        """Give the same dataset under the name that messages are to use."""
        named = Source.called(self, name, min_rows)
        named._require_rows(len(self.numbers), min_rows)
        return named

    def batches(self) -> Iterator[Batch]:
        """Give the rows in chunks."""
        return map(self._chunk, self._starts())

    def rows(self) -> Rows:
        """Give the rows."""
        return self._values[self.numbers]

    def first(self, count: int) -> Rows:
        """Give the first rows, at most `count`."""
        return self._values[self.numbers[:count]]

    def require_finite(self) -> None:
        """All rows of the table have been checked."""

    def summed(self, part: Callable[[Batch], Any]) -> Any:
        """Add up what a function makes of each chunk, several at a time."""
        starts = self._starts()
        if len(starts) < 2:
            return part(self._chunk(0))
        return reduce(added, in_order(lambda start: part(self._chunk(start)), starts), None)

    def folded(self, function: Callable[[Any, Rows], Any], state: Any) -> Any:
        """Give the state that a function makes of all rows at once."""
        return function(state, self.rows())

    def mapped(self, function: Callable[[Rows], Any], n_columns: int) -> Any:
        """Give what a function makes of all rows at once."""
        return function(self.rows())

    def sample(self, count: int, rng: np.random.Generator) -> Rows:
        """Draw `count` rows at random, or all if there are fewer, in their order."""
        return self._values[self.numbers[drawn(len(self.numbers), count, rng)]]

    def _starts(self) -> range:
        size = max(CHUNK_BYTES // (8 * max(self.width or 1, 1)), 1)
        return range(0, len(self.numbers), size)

    def _chunk(self, start: int) -> Batch:
        return Batch(self._values[self.numbers[start : start + self._starts().step]], start)


class Joined(Source):
    """Several datasets as one: their sums are added.

    Attributes
    ----------
    members : list of Source
    """

    def __init__(self, members: Sequence[Source]) -> None:
        self.members = list(members)
        first = self.members[0]
        self.width = first.width
        counts = [member.n_rows for member in members]
        self.n_rows = None if None in counts else sum(count for count in counts if count is not None)

    def batches(self) -> Iterator[Batch]:
        """Give the batches of one dataset after the other."""
        n_rows = 0
        for member in self.members:
            for batch in member.batches():
                yield replace(batch, start=n_rows)
                n_rows += batch.n_rows

    def summed(self, part: Callable[[Batch], Any]) -> Any:
        """Add up the sums of the datasets."""
        return reduce(added, (member.summed(part) for member in self.members), None)


# --- lassos -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Plane:
    """Points of a plane in the order of their second coordinate, so that each edge of a lasso meets few of them.

    Attributes
    ----------
    order : ndarray of int
    x, y : ndarray
        Coordinates in that order.
    """

    order: npt.NDArray[np.intp]
    x: Float
    y: Float

    @classmethod
    def of(cls, points: Float) -> Plane:
        """Sort the points."""
        order = np.argsort(points[:, 1], kind="stable")
        return cls(order, points[order, 0].astype(np.float64), points[order, 1].astype(np.float64))

    def inside(self, polygon: Float) -> Mask:
        """Tell of each point whether it is inside: whether a ray to the right crosses an odd number of edges."""
        crossed = np.zeros(len(self.order), dtype=bool)
        for (x, y), (next_x, next_y) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
            if y == next_y:
                continue
            start, end = np.searchsorted(self.y, sorted((y, next_y)))
            at = x + (self.y[start:end] - y) * ((next_x - x) / (next_y - y))
            crossed[start:end] ^= self.x[start:end] < at
        found = np.empty_like(crossed)
        found[self.order] = crossed
        return found


def inside(scores: Any, polygon: Sequence[Sequence[float]]) -> Mask:
    """Which points are inside this lasso?

    Parameters
    ----------
    scores : array of shape (n_rows, 2)
    polygon : sequence of pairs
        Its corners, in order.

    Returns
    -------
    ndarray of bool

    Examples
    --------
    >>> import numpy as np
    >>> from standout.explorer import inside
    >>> inside(np.array([[0.5, 0.5], [2.0, 0.5]]), [(0, 0), (1, 0), (1, 1), (0, 1)])
    array([ True, False])
    """
    points = np.asarray(scores, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2 or len(polygon) < 3:
        raise InvalidValueError(
            "a lasso has at least 3 corners, and lies in a plane: there are {n_corners} corners, and scores of shape "
            "{shape}",
            n_corners=len(polygon),
            shape=points.shape,
            advice="Give two columns of scores, and a polygon.",
        )
    return Plane.of(points).inside(np.asarray(polygon, dtype=np.float64))
