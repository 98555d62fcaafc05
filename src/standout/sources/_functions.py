"""Compute differences, blocks of time and rows within subjects; sources for pipeline steps, devices and Dask."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial, reduce
from importlib import import_module
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn import config_context, get_config

from standout._arrays import Array, Float, Rows, copied, dense, double, is_sparse, row_slice
from standout._messages import InvalidTypeError, InvalidValueError
from standout._xp import is_foreign, is_on_host, library_named, looks_foreign, place
from standout.sources._base import Batch, Mapped, Source, add_known, checked_part
from standout.sources._form import Keys, as_rows, as_words, column_names, keys_of, on_host


def differences(before: Any, after: Any) -> Float:
    """What has changed in each subject between two measurements?

    Row i of both tables is the same subject. Properties of a subject that are in both measurements cancel. Differences
    are divided by √2. Differences of two replicates then have the variance of one measurement about the subject's mean.

    In a study of before and after, use differences of the two states as the target. Use differences of two measurements
    of the same state as the background.

    Parameters
    ----------
    before, after : array-like or frame of shape (n_subjects, n_features)

    Returns
    -------
    ndarray of shape (n_subjects, n_features)

    Examples
    --------
    >>> import standout
    >>> standout.differences([[1.0, 5.0], [10.0, 0.0]], [[2.0, 5.0], [14.0, 0.0]]) * 2**0.5
    array([[1., 0.],
           [4., 0.]])
    """
    first, second = (_in_double(data, name) for data, name in ((before, "`before`"), (after, "`after`")))
    keys, others = keys_of(before), keys_of(after)
    if first.shape != second.shape or (keys is not None and others is not None and keys != others):
        problem = f"`before` has shape {first.shape} and `after` has shape {second.shape}, or other columns"
        raise InvalidValueError(problem, advice="Give the same subjects and columns in both, in the same order.")
    return (second - first) / np.sqrt(2.0)


def blocks(n_rows: int, length: int, name: str) -> npt.NDArray[np.str_]:
    """Which rows of a recording belong together?

    Neighbouring rows of a time series are similar. Blocks of them are used as `groups`, so that folds and permutations
    keep neighbours together. The last block has 0.5 to 1.5 times `length` rows.

    Parameters
    ----------
    n_rows : int
        Number of rows, in the order of time.
    length : int
        Number of rows of a block. A block should be longer than the time over which rows depend on each other.
    name : str
        Beginning of the names of the blocks. Use a different beginning for each dataset, because blocks of the same
        name are one subject.

    Returns
    -------
    ndarray of str of shape (n_rows,)

    Examples
    --------
    >>> import standout
    >>> standout.blocks(7, 3, "day")
    array(['day 0', 'day 0', 'day 0', 'day 1', 'day 1', 'day 1', 'day 1'], dtype='<U5')
    """
    if not 1 <= length <= n_rows:
        raise InvalidValueError(f"is outside [1, {n_rows}]", parameter="length", value=length)
    numbers = np.minimum(np.arange(n_rows) // length, max(round(n_rows / length), 1) - 1)
    return np.array([f"{name} {number}" for number in numbers.tolist()])


def within(X: Any, groups: Any) -> Float:
    """What varies within subjects, apart from differences between them?

    Subtract from each row the mean of its subject, and multiply the result by √(n / (n - k)), for n rows of k subjects.
    The factor restores the variance that is lost because the means are estimated.

    Parameters
    ----------
    X : array-like or frame of shape (n_rows, n_features)
    groups : array-like of shape (n_rows,)
        The subject of each row.

    Returns
    -------
    ndarray of shape (n_rows, n_features)

    Examples
    --------
    >>> import standout
    >>> standout.within([[1.0], [3.0], [10.0], [14.0]], ["a", "a", "b", "b"]) / 2**0.5
    array([[-1.],
           [ 1.],
           [-2.],
           [ 2.]])
    """
    rows = _in_double(X, "X")
    names, codes = np.unique(as_words(groups, len(rows), "X", "groups"), return_inverse=True)
    if len(names) == len(rows):
        problem, advice = "names every subject once, so that nothing varies within", "Use the rows as they are."
        raise InvalidValueError(problem, parameter="groups", advice=advice)
    sums = np.zeros((len(names), rows.shape[1]))
    np.add.at(sums, codes, rows)
    left = rows - (sums / np.bincount(codes)[:, None])[codes]
    return left * np.sqrt(len(rows) / (len(rows) - len(names)))


def _in_double(data: Any, name: str) -> Float:
    return np.asarray(double(dense(as_rows(data, name, keys=keys_of(data)))))


# --- steps of a pipeline ----------------------------------------------------------------------------------------------


def transformed(source: Source, steps: Sequence[Any]) -> Mapped:
    """Return a source whose batches go through fitted transformers of scikit-learn when read.

    The transformers must work row by row.
    """
    # scikit-learn's settings are separate in each thread. Keep the current settings for threads that process batches.
    settings, name = get_config(), f"{source.name} after the steps before the last"
    columns = source.keys if source.columns and hasattr(steps[0], "feature_names_in_") else None

    def after(rows: Rows) -> Any:
        data: Any = copied(rows)
        if columns is not None and not is_sparse(rows) and not is_foreign(rows):
            data = import_module("pandas").DataFrame(data, columns=columns, copy=False)
        with config_context(**settings):
            for step in steps:
                data = step.transform(data)
        if data.shape[0] != rows.shape[0]:
            problem = f"there are {data.shape[0]} row(s) in {name}, but {rows.shape[0]} before the steps"
            raise InvalidValueError(problem, advice="Data that are read in batches need steps that work row by row.")
        return data

    made = after(source.first_row())
    keys = keys_of(made)
    return Mapped(source, lambda rows: as_rows(after(rows), name, keys=keys), keys, int(made.shape[1]))


# --- devices ----------------------------------------------------------------------------------------------------------

# Number of partial sums that one Dask task adds. With a larger number, workers send fewer sums to each other, but a
# task needs more memory.
FAN_IN = 8
# Size of a batch for a device. With smaller batches, the device would often wait for the next call of a function.
# Larger batches need more memory.
BATCH_BYTES = 256 * 2**20
T = TypeVar("T")


class OnDevice(Mapped):
    """A dataset of the host whose batches are arrays on a device."""

    def __init__(self, host: Source, xp: Any, device: Any, specimen: Any, batch_rows: int | None) -> None:
        super().__init__(host, copied, host.keys, host.width)
        self._xp, self._device, self._specimen, self._batch_rows = xp, device, specimen, batch_rows
        self.place = place(specimen)

    def _read(self) -> Iterator[Rows]:
        if getattr(self._specimen, "is_cuda", False):
            return overlapped_copies(self._on_host(), self._device)
        return (self._xp.asarray(np.array(batch), device=self._device) for batch in self._on_host())

    # Use `Source.map_reduce`, which gets batches on the device from `_read`. `Mapped.map_reduce` would use batches on
    # the host.
    map_reduce = Source.map_reduce

    def _on_host(self) -> Iterator[Array]:
        for batch in self.host.batches():
            size = self._batch_rows or max(BATCH_BYTES // (8 * max(batch.rows.shape[1], 1)), 1)
            for start in range(0, batch.n_rows, size):
                yield dense(row_slice(batch.rows, start, start + size))


def on_device(X: Any, device: Any, *, library: str = "torch", batch_rows: int | None = None) -> OnDevice:
    """How do I fit data on a GPU if they are larger than its memory?

    The batches of the dataset are copied to the device and processed there. On a CUDA device of PyTorch the next batch
    is sent while the current batch is multiplied. Fitted attributes are arrays on the device.

    Parameters
    ----------
    X : dataset
        Data in the host's memory, or read into it in batches. Sparse rows are made dense, a batch at a time.
    device : object
        The device, as the library names it: ``"cuda"``, ``"cuda:1"``, ``"cpu"``.
    library : {"torch", "cupy", "numpy"} or name of another array library, default="torch"
    batch_rows : int, default=None
        Rows of a batch. None chooses about 256 MB.

    Returns
    -------
    Source

    Examples
    --------
    >>> import numpy as np
    >>> from standout.io import on_device
    >>> rows = on_device(np.ones((5, 2)), "cpu", library="numpy", batch_rows=2)
    >>> [batch.rows.shape for batch in rows.batches()]
    [(2, 2), (2, 2), (1, 2)]
    """
    from standout.sources._open import open_dataset

    if batch_rows is not None and not (isinstance(batch_rows, int) and batch_rows >= 1):
        raise InvalidValueError("is not a whole number of at least 1", parameter="batch_rows", value=batch_rows)
    xp, specimen = _opened_device(library, device)
    if looks_foreign(X) and not is_on_host(X):
        advice = "Give them to fit as they are."
        raise InvalidTypeError(f"the data are of {' on '.join(place(X))} already", advice=advice)
    return OnDevice(open_dataset(on_host(X)), xp, device, specimen, batch_rows)


def _opened_device(library: Any, device: Any) -> tuple[Any, Any]:
    """Return the functions of an array library, and an empty array on the device."""
    try:
        xp = library_named(library)
    except (ImportError, AttributeError, TypeError) as error:
        raise ImportError(f"library={library!r} cannot be imported: {error}. Install it, or use another.") from None
    try:
        return xp, xp.asarray(np.zeros((0, 1)), device=device)
    except Exception as error:  # the type of the exception depends on the library
        reason = (str(error) or type(error).__name__).splitlines()[0]
        problem = f"cannot be used by {library}: {reason}"
        raise InvalidValueError(problem, parameter="device", value=device, advice="Give another device.") from None


def overlapped_copies(batches: Iterator[Array], device: Any) -> Iterator[Any]:
    """Copy each batch to a CUDA device of PyTorch while the previous one is processed.

    A separate thread copies a batch into page-locked memory, which PyTorch reuses, and starts the transfer on a
    separate stream. Only the caller's CUDA stream waits for the end of the transfer. No thread waits.
    """
    torch = import_module("torch")
    device = torch.empty(0, device=device).device
    stream = torch.cuda.Stream(device)

    def send() -> tuple[Any, Any] | None:
        batch = next(batches, None)
        if batch is None:
            return None
        with torch.cuda.stream(stream):
            pinned = torch.from_numpy(np.require(batch, requirements=["C", "W"])).pin_memory()
            return pinned.to(device, non_blocking=True), stream.record_event()

    with ThreadPoolExecutor(1) as sender:
        waiting = sender.submit(send)
        while (sent := waiting.result()) is not None:
            waiting = sender.submit(send)
            rows, arrival = sent
            current = torch.cuda.current_stream(device)
            current.wait_event(arrival)
            # The memory of `rows` belongs to the sender's stream. It must not be reused while the caller's stream works
            # on `rows`.
            rows.record_stream(current)
            yield rows


# --- Dask -------------------------------------------------------------------------------------------------------------


def is_dask(data: Any) -> bool:
    """Return whether the data are a Dask array or frame, without importing Dask."""
    return hasattr(data, "to_delayed") and any(
        kind.__module__.partition(".")[0] in ("dask", "dask_expr") for kind in type(data).__mro__
    )


class DaskBlocks(Source):
    """A Dask array or frame. Workers apply a function to each block, and sum the results."""

    def __init__(self, data: Any, name: str, keys: Keys = None) -> None:
        self.name = name
        if hasattr(data, "rechunk"):
            as_rows(np.zeros((1,) * data.ndim, dtype=data.dtype), name)
            if np.isnan(data.shape[1]):
                advice = "Call its compute_chunk_sizes() first."
                raise InvalidValueError(f"{name} is a Dask array with an unknown number of columns", advice=advice)
            # A block must have all columns.
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
        """The delayed blocks, made once, so that all steps use the same blocks.

        When Dask optimises, it may join files into larger blocks.
        """
        return list(np.ravel(self.data.to_delayed()))

    @property
    def _check(self) -> Callable[[Any, int], Rows]:
        # The returned function must not refer to `self`, because Dask would send all data to every worker.
        name, keys, width = self.name, self.keys, self.width or 0
        return lambda block, number: checked_part(block, f"block {number + 1} of {name}", keys, width, "the whole")

    def _read(self) -> Iterator[Rows]:
        return (self._check(block.compute(), number) for number, block in enumerate(self._blocks))

    def map_reduce(self, function: Callable[[Batch], T], add: Callable[[T, T], T] = operator.add) -> T:
        """Sum the results of a function over the blocks. The order of additions does not depend on Dask's scheduler."""
        dask = import_module("dask")
        known = hasattr(self.data, "chunks") and not np.isnan(self.data.shape[0])
        counts = self.data.chunks[0] if known else dask.compute(*(dask.delayed(len)(block) for block in self._blocks))
        starts = np.cumsum([0, *counts]).tolist()
        self.n_rows = starts[-1]
        self._check_beside(starts[-1])
        check = self._check

        def of_block(block: Any, number: int, start: int) -> T | None:
            rows = check(block, number)
            return function(Batch(rows, start)) if rows.shape[0] else None

        # A delayed function is sent only once, not with every block. This saves time if the function holds large
        # arrays.
        shared = dask.delayed(of_block, pure=False, traverse=False)
        sums = [shared(block, number, starts[number]) for number, block in enumerate(self._blocks)]
        while len(sums) > 1:
            groups = [sums[start : start + FAN_IN] for start in range(0, len(sums), FAN_IN)]
            sums = [dask.delayed(reduce)(partial(add_known, add), group) for group in groups]
        (total,) = dask.compute(*sums)
        if total is None:
            raise InvalidValueError(f"{self.name} has no rows", advice="Give at least 1 row.")
        return total

    def lazily(self, function: Callable[[Rows], Any], width: int) -> Any:
        """Return a lazy Dask array: the results of a function of the rows of each block."""
        data = self.data if hasattr(self.data, "rechunk") else self.data.to_dask_array()
        check = self._check
        chunks, meta = (data.chunks[0], (width,)), np.empty((0, width))
        return data.map_blocks(lambda block: function(check(block, 0)), chunks=chunks, meta=meta)
