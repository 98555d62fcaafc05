"""Dask arrays and frames, whose blocks are summed on the workers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial, reduce
from importlib import import_module
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np

from standout._arrays import Rows
from standout._messages import InvalidTypeError, InvalidValueError
from standout.sources._base import Batch, Source, add_known, checked_part
from standout.sources._form import as_rows, column_names, keys_of

# How many sums are added in one task. With more, fewer half-way sums travel, and a task holds more at a time.
FAN_IN = 8
T = TypeVar("T")


def is_dask(data: Any) -> bool:
    """Tell whether the data are a Dask array or frame, without importing Dask."""
    return hasattr(data, "to_delayed") and any(
        kind.__module__.partition(".")[0] in ("dask", "dask_expr") for kind in type(data).__mro__
    )


class DaskBlocks(Source):
    """A Dask array or frame, read block by block by the scheduler in use."""

    def __init__(self, data: Any, name: str, keys: list[Any] | None = None) -> None:
        self.name = name
        if hasattr(data, "rechunk"):
            as_rows(np.zeros((1,) * data.ndim, dtype=data.dtype), name)
            if np.isnan(data.shape[1]):
                advice = "Call its compute_chunk_sizes() first."
                raise InvalidValueError(f"{name} is a Dask array with an unknown number of columns", advice=advice)
            # A block must have whole rows.
            data = data.rechunk({1: -1}) if len(data.chunks[1]) > 1 else data
            self.width, self.keys = int(data.shape[1]), keys
            self.n_rows = None if np.isnan(data.shape[0]) else int(data.shape[0])
        elif hasattr(data, "columns"):
            self.keys, self.width = keys_of(data), len(data.columns)
        else:
            advice = "Give a Dask array or frame, for example by its to_dataframe()."
            raise InvalidTypeError(f"{name} is a Dask {type(data).__name__}, not a table", advice=advice)
        self.columns, self.data = column_names(self.keys, name), data

    def select(self, places: Sequence[int]) -> Source:
        """Return the same rows with some of the columns, by their positions."""
        keys = self.keys and [self.keys[place] for place in places]
        data = self.data[:, list(places)] if hasattr(self.data, "rechunk") else self.data[keys]
        return DaskBlocks(data, self.name, keys)._beside(self)

    @cached_property
    def _blocks(self) -> list[Any]:
        """Promises of the blocks. They are made once: Dask may join files when it optimises."""
        return list(np.ravel(self.data.to_delayed()))

    @cached_property
    def _starts(self) -> list[int]:
        """Number of the first row of each block, and of all rows; they are counted on the workers if not known."""
        known = self.n_rows is not None
        counts = self.data.chunks[0] if known else _computed([_delayed(_length)(block) for block in self._blocks])
        starts = list(accumulate(map(int, counts), initial=0))
        self.n_rows = starts[-1]
        return starts

    def _read(self) -> Iterator[Batch]:
        start = 0
        for number, block in enumerate(self._blocks):
            rows = self._check(block.compute(), number)
            yield Batch(rows, start)
            start += rows.shape[0]

    @property
    def _check(self) -> Callable[[Any, int], Rows]:
        return partial(_checked, self.name, self.keys, self.width or 0)

    def map_reduce(self, function: Callable[[Batch], T], add: Callable[[T, T], T] = operator.add) -> T:
        """Add what a function makes of each block, in a tree whose order does not depend on the scheduler."""
        self._check_beside(self._starts[-1])
        # Delayed, a large function is sent once and not with every block.
        shared = _delayed(partial(_sum_of_block, self._check, function), pure=False, traverse=False)
        numbered = enumerate(zip(self._blocks, self._starts, strict=False))
        sums = [_delayed(_called)(shared, block, number, start) for number, (block, start) in numbered]
        while len(sums) > 1:
            groups = [sums[start : start + FAN_IN] for start in range(0, len(sums), FAN_IN)]
            sums = [_delayed(reduce)(partial(add_known, add), group) for group in groups]
        (total,) = _computed(sums)
        if total is None:
            raise InvalidValueError(f"{self.name} has no rows", advice="Give at least 1 row.")
        return total

    def lazily(self, function: Callable[[Rows], Any], width: int) -> Any:
        """Return a Dask array of what a function makes of the rows of each block; nothing is computed."""
        data = self.data if hasattr(self.data, "rechunk") else self.data.to_dask_array()
        call = partial(_rows_of_block, self._check, function)
        return data.map_blocks(call, dtype=np.float64, chunks=(data.chunks[0], (width,)), meta=np.empty((0, width)))


def _checked(dataset: str, keys: list[Any] | None, width: int, block: Any, number: int) -> Rows:
    return checked_part(block, f"block {number + 1} of {dataset}", keys, width, "the whole")


def _delayed(function: Any, **options: Any) -> Any:
    return import_module("dask").delayed(function, **options)


def _computed(promises: list[Any]) -> list[Any]:
    return list(import_module("dask").compute(*promises))


def _called(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def _sum_of_block(check: Any, function: Callable[[Batch], Any], block: Any, number: int, start: int) -> Any:
    rows = check(block, number)
    return function(Batch(rows, start)) if rows.shape[0] else None


def _rows_of_block(check: Any, function: Callable[[Rows], Any], block: Any) -> Any:
    return function(check(block, 0))


def _length(block: Any) -> int:
    return int(block.shape[0])
