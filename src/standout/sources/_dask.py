"""Dask arrays and frames, whose blocks are summed on the workers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from importlib import import_module
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from standout._arrays import Rows, stacked
from standout._messages import InvalidTypeError, InvalidValueError
from standout._xp import take
from standout.sources._base import Batch, Source, matched
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
    def _cut(self) -> Any:
        """The data as they are cut into blocks.

        If few of the columns of files are read, Dask joins files when it optimises, and there are fewer blocks than
        before. After a step that changes nothing their number stays.
        """
        if not hasattr(self.data, "expr"):
            return self.data
        return self.data.map_partitions(_same, meta=self.data._meta, enforce_metadata=False).optimize(fuse=False)

    @cached_property
    def _counts(self) -> list[int]:
        """Number of rows of each block; they are counted on the workers if they are not known."""
        if self.n_rows is not None:
            return [int(count) for count in self.data.chunks[0]]
        counts = [int(count) for count in _computed(self._each(_length))]
        self.n_rows = sum(counts)
        return counts

    @property
    def _starts(self) -> list[int]:
        return [0, *accumulate(self._counts)][:-1]

    @property
    def _check(self) -> _Check:
        return _Check(self.name, self.keys, self.width or 0)

    def _each(self, function: Callable[..., Any], *shared: Any, starts: list[int] | None = None) -> list[Any]:
        """Promise what a function makes of each block, its number and the number of its first row.

        A block is made and used in one task, so that it never travels. What is shared is delayed separately: a large
        function is then sent once and not with every block.
        """
        data: Any = self._cut
        in_arrays = hasattr(data, "rechunk")
        n_blocks = data.numblocks[0] if in_arrays else data.npartitions
        places = np.column_stack([np.arange(n_blocks), starts or [0] * n_blocks])
        call = partial(_of_block, function)
        promised = [_delayed(thing, pure=False, traverse=False) for thing in shared]
        if in_arrays:
            each = import_module("dask.array").from_array(places, chunks=(1, 2), name=False)
            made = data.map_blocks(call, each, *promised, dtype=object, meta=np.empty((0, 0), dtype=object))
        else:
            pandas: Any = import_module("pandas")
            frame = pandas.DataFrame(places)
            each = import_module("dask.dataframe").from_pandas(frame, npartitions=n_blocks, sort=True)
            how = {"meta": pandas.Series(dtype=object), "align_dataframes": False, "enforce_metadata": False}
            made = data.map_partitions(call, each, *promised, **how)
        return list(np.ravel(made.to_delayed()))

    def _read(self) -> Iterator[Batch]:
        start = 0
        blocks = np.ravel(self._cut.to_delayed()).tolist()
        for number, block in enumerate(blocks):
            rows = self._check(block.compute(), number)
            yield Batch(rows, start)
            start += rows.shape[0]

    def map_reduce(self, function: Callable[[Batch], T], add: Callable[[T, T], T] = operator.add) -> T:
        """Add what a function makes of each block, in a tree whose order does not depend on the scheduler."""
        starts = self._starts
        self._check_beside(sum(self._counts))
        sums = self._each(_sum_of_block, self._check, function, starts=starts)
        while len(sums) > 1:
            sums = [_delayed(_sum)(add, *sums[start : start + FAN_IN]) for start in range(0, len(sums), FAN_IN)]
        (total,) = _computed(sums)
        if total is None:
            raise InvalidValueError(f"{self.name} has no rows", advice="Give at least 1 row.")
        found: T = total
        return found

    def lazily(self, function: Callable[[Rows], Any], width: int) -> Any:
        """Return a Dask array of what a function makes of the rows of each block; nothing is computed."""
        data = self.data if hasattr(self.data, "rechunk") else self.data.to_dask_array()
        call = partial(_rows_of_block, self._check, function)
        return data.map_blocks(call, dtype=np.float64, chunks=(data.chunks[0], (width,)), meta=np.empty((0, width)))

    def take(self, numbers: npt.ArrayLike) -> Rows:
        """Return some rows by their numbers; only these are brought here."""
        numbers = np.asarray(numbers, dtype=np.intp)
        order = np.argsort(numbers, kind="stable")
        starts = np.array(self._starts)
        by_block = np.split(numbers[order], np.searchsorted(numbers[order], starts[1:]))
        blocks = np.ravel(self._cut.to_delayed()).tolist()
        promised = [
            _delayed(_taken)(block, self._check, number, some - start)
            for number, (block, some, start) in enumerate(zip(blocks, by_block, starts, strict=True))
            if len(some)
        ]
        return take(stacked(_computed(promised)), np.argsort(order, kind="stable"))


@dataclass(frozen=True)
class _Check:
    """The check of a block: finite numbers in the columns of the whole."""

    dataset: str
    keys: list[Any] | None
    width: int

    def __call__(self, block: Any, number: int) -> Rows:
        name, keys = f"block {number + 1} of {self.dataset}", keys_of(block)
        rows = as_rows(block, name, keys=keys, min_rows=0)
        matched(keys, rows.shape[1], name, self.keys if keys is not None else None, self.width, "the whole")
        return rows


def _delayed(function: Any, **options: Any) -> Any:
    return import_module("dask").delayed(function, **options)


def _computed(promises: list[Any]) -> list[Any]:
    return list(import_module("dask").compute(*promises))


def _same(block: Any) -> Any:
    return block


def _of_block(function: Callable[..., Any], block: Any, places: Any, *shared: Any) -> Any:
    number, start = np.asarray(places)[0].tolist()
    return function(block, number, start, *shared)


def _sum_of_block(block: Any, number: int, start: int, check: _Check, function: Callable[[Batch], Any]) -> Any:
    rows = check(block, number)
    return function(Batch(rows, start)) if rows.shape[0] else None


def _rows_of_block(check: _Check, function: Callable[[Rows], Any], block: Any) -> Any:
    return function(check(block, 0))


def _sum(add: Callable[[Any, Any], Any], *parts: Any) -> Any:
    known = [part for part in parts if part is not None]
    return reduce(add, known) if known else None


def _taken(block: Any, check: _Check, number: int, numbers: Any) -> Rows:
    return take(check(block, number), numbers)


def _length(block: Any, *_: Any) -> int:
    return int(block.shape[0])
