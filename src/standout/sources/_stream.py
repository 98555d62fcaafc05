"""Datasets that are read one part after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from standout._arrays import BLOCK_BYTES, Array, Rows, copied, row_slice, stacked
from standout._validation import Source, reject_too_few
from standout._xp import take


class Stream(Source):
    """A dataset whose parts come one after the other; a subclass gives the parts.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.sources import Stream
    >>> class Halves(Stream):
    ...     name, min_rows = "the target", 2
    ...     def parts(self):
    ...         return iter(np.array_split(np.arange(12.0).reshape(6, 2), 2))
    >>> Halves().count_rows(), Halves().summed(lambda rows: rows.sum(axis=0))
    (6, array([30., 36.]))
    """

    def first(self, count: int) -> Rows:
        """Give the first rows, of the first part that has any."""
        found = next((rows for rows in self.parts() if rows.shape[0]), None)
        return reject_too_few(self.name, 0, self.min_rows) if found is None else row_slice(found, 0, count)

    def summed(self, part: Callable[[Rows], Any]) -> Any:
        """Add up what a function makes of each part."""
        return reduce(add, map(part, regrouped(self.parts())))

    def folded(self, function: Callable[[Any, Rows], Any], state: Any) -> Any:
        """Take a state through the parts, one after the other."""
        return reduce(function, _without_small_end(regrouped(self.parts())), state)

    def mapped(self, function: Callable[[Rows], Array], n_columns: int) -> Any:
        """Give what a function makes of every row, `n_columns` numbers each, in the order of the rows."""
        return stacked(list(map(function, self.parts())) or [np.zeros((0, n_columns))])

    def count_rows(self) -> int:
        """Count the rows, by reading them all where nothing else tells."""
        return sum(rows.shape[0] for rows in self.parts()) if self.n_rows is None else self.n_rows

    def sample(self, count: int, rng: np.random.Generator) -> Rows:
        """Draw `count` rows, or all where there are fewer, in one pass and in the order in which they come."""
        kept: list[Rows] = []
        keys: list[Array] = []
        for rows in self.parts():
            # The rows with the smallest of random keys are a uniform draw, however the rows are cut into parts.
            kept, keys = [*kept, copied(rows)], [*keys, rng.random(rows.shape[0])]
            if sum(map(len, keys)) > 2 * count:
                kept, keys = _smallest(kept, keys, count)
        return _smallest(kept, keys, count)[0][0]


def regrouped(parts: Iterator[Rows]) -> Iterator[Rows]:
    """Hold small parts back until there are enough rows for a product to be worth its merge.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.sources import regrouped
    >>> [rows.shape for rows in regrouped(np.ones((2, 3)) for _ in range(4))]
    [(8, 3)]
    """
    held: list[Rows] = []
    n_held = 0
    for rows in parts:
        if not rows.shape[0]:
            continue
        n_held += rows.shape[0]
        if n_held < max(rows.shape[1], BLOCK_BYTES // (8 * rows.shape[1])):
            # A producer may fill the same buffer again for the next part.
            held.append(copied(rows))
            continue
        yield stacked([*held, rows])
        held, n_held = [], 0
    if held:
        yield stacked(held)


def _without_small_end(parts: Iterator[Rows]) -> Iterator[Rows]:
    """Join a last part that has fewer rows than columns to the one before it: `IncrementalPCA` refuses so few."""
    held: Rows | None = None
    for rows in parts:
        if held is None:
            held = copied(rows)
        elif rows.shape[0] < rows.shape[1]:
            held = stacked([held, rows])
        else:
            yield held
            held = copied(rows)
    if held is not None:
        yield held


def _smallest(kept: list[Rows], keys: list[Array], count: int) -> tuple[list[Rows], list[Array]]:
    """Keep the `count` rows with the smallest keys, in the order in which they came."""
    rows, values = stacked(kept), np.concatenate(keys)
    chosen = np.sort(np.argsort(values, kind="stable")[:count])
    return [take(rows, chosen)], [values[chosen]]
