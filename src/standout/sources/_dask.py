"""The one way in for all datasets; Dask arrays and frames, whose blocks are summed on the workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from importlib import import_module
from itertools import accumulate
from typing import Any

import numpy as np

from standout._arrays import Array, Rows, stacked
from standout._checks import as_rows, check_same_columns, column_keys, column_names
from standout._messages import InvalidTypeError, InvalidValueError, reject_too_few
from standout.sources._base import Batch, Source, added, as_source, drawn

# How many sums are added in one task. With more, fewer half-way sums travel, and a task holds more at once.
FAN_IN = 8


def open_dataset(data: Any, name: str, *, min_rows: int = 2) -> Source:
    """Check one dataset, whatever it comes as, and give it as a source: the one way in.

    Parameters
    ----------
    data : array, frame, sparse matrix, table, Dask array or frame, iterator of batches, or Source
    name : str
        What messages call it.
    min_rows : int, default=2
        Fewer rows are refused.

    Returns
    -------
    Source

    Examples
    --------
    >>> import numpy as np
    >>> from standout.sources import open_dataset
    >>> open_dataset(np.ones((4, 3)), "the target").n_rows
    4
    >>> [rows.shape for rows in open_dataset(iter([np.ones((2, 3)), np.ones((4, 3))]), "the target").parts()]
    [(2, 3), (4, 3)]
    """
    return DaskBlocks(data, name, min_rows) if is_dask(data) else as_source(data, name, min_rows=min_rows)


def is_read_in_parts(data: Any) -> bool:
    """Tell whether a dataset is read in several batches: a scan, an iterator, a Dask array or frame."""
    return isinstance(data, Iterator) or is_dask(data) or (isinstance(data, Source) and not data.in_memory)


def is_dask(data: Any) -> bool:
    """Tell whether the data are a Dask array or frame, without importing Dask."""
    kinds = {kind.__module__.split(".")[0] for kind in type(data).__mro__}
    return bool(kinds & {"dask", "dask_expr"}) and hasattr(data, "to_delayed")


class DaskBlocks(Source):
    """A Dask array or frame, read block by block by whatever scheduler is in use.

    Attributes
    ----------
    data : dask.array.Array or dask.dataframe.DataFrame

    Examples
    --------
    >>> import dask.array as da
    >>> from standout.sources import DaskBlocks
    >>> blocks = DaskBlocks(da.ones((6, 2), chunks=(3, 2)), "the target", min_rows=2)
    >>> blocks.count_rows(), [rows.shape for rows in blocks.parts()]
    (6, [(3, 2), (3, 2)])
    """

    lazy = True

    def __init__(self, data: Any, name: str, min_rows: int) -> None:
        self.name, self.min_rows = name, min_rows
        if hasattr(data, "rechunk"):
            _check_array(data, name)
            # A block must have whole rows.
            self.data = data.rechunk({1: -1}) if len(data.chunks[1]) > 1 else data
            self.n_rows = None if np.isnan(data.shape[0]) else int(data.shape[0])
            self.width = int(data.shape[1])
        elif hasattr(data, "columns"):
            self.data = data
            self.columns, self.keys = column_names(data), column_keys(data)
            self.width = len(data.columns)
        else:
            raise InvalidTypeError(
                "{name} is a Dask {kind}, not a table",
                name=name,
                kind=type(data).__name__,
                advice="Give a Dask array or frame, for example by its to_dataframe().",
            )

    @cached_property
    def _cut(self) -> Any:
        """The data as they are cut into blocks.

        Where few of the columns of files are read, Dask takes files together when it optimises, and there are fewer
        blocks than before. After a step that changes nothing their number stays.
        """
        if not hasattr(self.data, "expr"):
            return self.data
        cut = self.data.map_partitions(_same, meta=self.data._meta, enforce_metadata=False)
        return cut.optimize(fuse=False)

    @cached_property
    def _blocks(self) -> list[Any]:
        """The blocks, delayed."""
        return [block for line in np.reshape(self._cut.to_delayed(), (-1, 1)) for block in line]

    @property
    def _check(self) -> _Check:
        return _Check(self.name, self.columns, self.width or 0)

    @property
    def _checks(self) -> Iterator[_Check]:
        """The check of each block, which knows the number of the block."""
        yield from (self._check.of_block(number) for number in range(len(self._blocks)))

    def batches(self) -> Iterator[Batch]:
        """Bring one block after the other here."""
        start = 0
        for block, check in zip(self._blocks, self._checks, strict=True):
            rows = check(block.compute())
            yield Batch(rows, start)
            start += rows.shape[0]

    def _each(self, function: Callable[..., Any], *shared: Any, starts: list[int] | None = None) -> list[Any]:
        """Promise what a function makes of each block, its number and its first row's number.

        The block is made and used in one task, so that it never travels. What is shared is delayed by itself: a large
        function, one with landmarks, is then sent once and not with every block.
        """
        data: Any = self._cut
        in_arrays = hasattr(data, "rechunk")
        n_blocks = data.numblocks[0] if in_arrays else data.npartitions
        places = np.column_stack([np.arange(n_blocks), starts or [0] * n_blocks])
        call = partial(_of_block, function)
        promised = [_delayed(thing, pure=False, traverse=False) for thing in shared]
        if in_arrays:
            array: Any = import_module("dask.array")
            each = array.from_array(places, chunks=(1, 2), name=False)
            made = data.map_blocks(call, each, *promised, dtype=object, meta=np.empty((0, 0), dtype=object))
        else:
            dataframe: Any = import_module("dask.dataframe")
            pandas: Any = import_module("pandas")
            each = dataframe.from_pandas(pandas.DataFrame(places), npartitions=n_blocks, sort=True)
            how = {"meta": pandas.Series(dtype=object), "align_dataframes": False, "enforce_metadata": False}
            made = data.map_partitions(call, each, *promised, **how)
        return list(np.ravel(made.to_delayed()))

    def first(self, count: int) -> Rows:
        """Give the first rows, of the first block that has any."""
        blocks = zip(self._blocks, self._checks, strict=True)
        heads = (_computed([_delayed(_taken)(block, check, slice(count))])[0] for block, check in blocks)
        found = next((rows for rows in heads if rows.shape[0]), None)
        return reject_too_few(self.name, 0, self.min_rows) if found is None else found

    def summed(self, part: Callable[[Batch], Any]) -> Any:
        """Add up what a function makes of each block, in a tree: the order does not depend on the scheduler."""
        # Row numbers take a pass of their own where the sizes of the blocks are unknown.
        starts = [0, *accumulate(self._counts)][:-1] if getattr(part, "needs_start", False) else None
        sums = self._each(_sum_of_part, self._check, part, starts=starts)
        while len(sums) > 1:
            # Not as a list: Dask looks through the graph of all blocks for each list of promises.
            sums = [_delayed(_sum)(*sums[start : start + FAN_IN]) for start in range(0, len(sums), FAN_IN)]
        (total,) = _computed(sums)
        count = 0 if total is None else total.count
        if starts is not None and count != sum(self._counts) and self._counts != self._read_counts:
            # The files were counted wrongly: with the true numbers of the rows, once more.
            self._counts = self._read_counts
            return self.summed(part)
        if count < self.min_rows:
            reject_too_few(self.name, count, self.min_rows)
        return total

    def folded(self, function: Callable[[Any, Rows], Any], state: Any) -> Any:
        """Take a state through the blocks, one after the other; the state travels, and the blocks stay.

        Of the first blocks as many are taken together as give a row for every column: `IncrementalPCA` starts with
        no fewer.
        """
        blocks = list(zip(self._blocks, self._checks, strict=True))
        n_first = self._n_blocks_with(self.width or 0)
        for some in (blocks[:n_first], *([block] for block in blocks[n_first:])):
            (state,) = _computed([_delayed(_next_state)(_delayed(state, traverse=False), some, function)])
        return state

    def mapped(self, function: Callable[[Rows], Array], n_columns: int) -> Any:
        """Give what a function makes of every row, as a Dask array that is computed when it is asked for."""
        array = self.data if hasattr(self.data, "rechunk") else self.data.to_dask_array()
        dtype = _type_made(function, as_rows(np.ones((1, self.width or 0), dtype=array.dtype), self.name, min_rows=1))
        return array.map_blocks(
            partial(_mapped, self._check, function, n_columns),
            token="scores",
            dtype=dtype,
            chunks=(array.chunks[0], (n_columns,)),
            meta=np.empty((0, 0), dtype=dtype),
        )

    def count_rows(self) -> int:
        """Count the rows on the workers."""
        return sum(self._counts)

    @cached_property
    def _counts(self) -> list[int]:
        """Number of rows of each block."""
        if self.n_rows is not None:
            return [int(count) for count in self.data.chunks[0]]
        return _counts_of_files(self._cut) or self._read_counts

    @cached_property
    def _read_counts(self) -> list[int]:
        """Number of rows of each block, by reading all of them."""
        return [int(count) for count in _computed(self._each(_length))]

    def _n_blocks_with(self, n_rows: int) -> int:
        """Count the first blocks that have so many rows together; all blocks, if there are fewer rows."""
        lengths = (int(_computed([_delayed(_length)(block)])[0]) for block in self._blocks)
        reached = accumulate(lengths if self.n_rows is None else self._counts)
        return next((number for number, found in enumerate(reached, start=1) if found >= n_rows), len(self._blocks))

    def sample(self, count: int, rng: np.random.Generator) -> Rows:
        """Draw `count` rows, or all if there are fewer; only these are brought here."""
        n_rows = self.count_rows()
        chosen = drawn(n_rows, count, rng)
        ends = np.cumsum(self._counts)
        by_block = np.split(chosen, np.searchsorted(chosen, ends[:-1]))
        taken = [
            _delayed(_taken)(block, check, numbers - (end - size))
            for block, check, numbers, end, size in zip(
                self._blocks, self._checks, by_block, ends, self._counts, strict=True
            )
            if len(numbers)
        ]
        return stacked(_computed(taken))


@dataclass(frozen=True)
class _Check:
    """The check of a block: finite numbers in the columns of the whole."""

    dataset: str
    columns: list[str] | None
    width: int
    name: str = "a block"

    def of_block(self, number: int) -> _Check:
        """Give the check that knows the number of its block, counted from 0."""
        return replace(self, name=f"block {number + 1}")

    def __call__(self, block: Any) -> Rows:
        name = f"{self.name} of {self.dataset}"
        rows = as_rows(block, name, min_rows=0, finite=True)
        check_same_columns(rows.shape[1], column_names(block), name, self.width, self.columns, "the whole")
        return rows


def _mapped(check: _Check, function: Callable[[Rows], Array], n_columns: int, block: Any) -> Array:
    rows = check(block)
    return function(rows) if rows.shape[0] else np.zeros((0, n_columns))


def _check_array(data: Any, name: str) -> None:
    """Refuse a Dask array that is no table of real numbers."""
    as_rows(np.zeros((1,) * data.ndim, dtype=data.dtype), name, min_rows=0)
    if np.isnan(data.shape[1]):
        raise InvalidValueError(
            "{name} is a Dask array with an unknown number of columns",
            name=name,
            advice="Call its compute_chunk_sizes() first; an unknown number of rows does no harm.",
        )


def _delayed(function: Any, **options: Any) -> Any:
    from dask.delayed import delayed

    return delayed(function, **options)


def _counts_of_files(cut: Any) -> list[int] | None:
    """Give the number of rows of each block where files have it in their footers: no row is read. None otherwise."""
    try:
        expressions: Any = import_module("dask.dataframe.dask_expr._expr")
        read = cut.expr.frame
        # Dask takes small files together: their numbers, block by block.
        together = getattr(read, "_fusion_buckets", None)
        lengths = expressions.Lengths(read if together is None else read.operand("_expr")).simplify()
        counts = list(map(int, lengths.value)) if isinstance(lengths, expressions.Literal) else []
        if together is not None:
            counts = [sum(counts[number] for number in numbers) for numbers in together]
    # Other versions of Dask know nothing of footers, or keep them elsewhere.
    except (ImportError, AttributeError, IndexError):
        return None
    # Dask 2026.8 counts wrongly where some of the partitions are chosen.
    return counts if len(counts) == cut.npartitions else None


def _computed(promises: list[Any]) -> list[Any]:
    from dask.base import compute

    return list(compute(*promises))  # type: ignore[no-untyped-call]


def _same(block: Any) -> Any:
    return block


def _of_block(function: Callable[..., Any], block: Any, places: Any, *shared: Any) -> Any:
    """Call a function with a block, its number, the number of its first row, and what all blocks share."""
    number, start = np.asarray(places)[0].tolist()
    return function(block, number, start, *shared)


def _sum_of_part(block: Any, number: int, start: int, check: _Check, part: Callable[[Batch], Any]) -> Any:
    rows = check.of_block(number)(block)
    return part(Batch(rows, start)) if rows.shape[0] else None


def _sum(*parts: Any) -> Any:
    return reduce(added, parts)


def _next_state(state: Any, blocks: list[tuple[Any, _Check]], function: Callable[[Any, Rows], Any]) -> Any:
    rows = stacked([check(block) for block, check in blocks])
    return function(state, rows) if rows.shape[0] else state


def _type_made(function: Callable[[Rows], Array], row: Array) -> Any:
    """Give the dtype of what a function makes of rows, found on a row of ones."""
    try:
        with np.errstate(all="ignore"):
            return function(row).dtype
    # A step of a pipeline may refuse the made-up row and take the data.
    except Exception:
        return np.dtype(np.float32 if row.dtype == np.float32 else np.float64)


def _taken(block: Any, check: _Check, numbers: Any) -> Rows:
    return check(block)[numbers]


def _length(block: Any, *_: Any) -> int:
    return int(block.shape[0])
