"""Datasets of the host whose batches are worked on by a device, such as a GPU."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from importlib import import_module
from itertools import count
from typing import Any, Self

import numpy as np

from standout._arrays import Array, Rows, dense, row_slice
from standout._checks import check_whole, require_finite_rows
from standout._messages import InvalidTypeError, InvalidValueError
from standout._xp import is_on_host, library_named, looks_foreign, place, to_host
from standout.sources._base import Batch, Source
from standout.sources._dask import open_dataset

# What a device gets at a time. Smaller batches would leave it waiting for the calls, larger ones take memory.
BATCH_BYTES = 256 * 2**20
# Types of numbers that are sent as they are: every library has them.
SENT_TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "float32", "float64")
# Threads that copy a batch into memory that the device can read by itself: one alone is slower than the device.
COPIERS = min(14, os.cpu_count() or 1)
# Batches that are sent at a time, each in memory of its own.
LANES = 2


class OnDevice(Source):
    """A dataset of the host whose batches are given as arrays on a device.

    Attributes
    ----------
    host : Source
        The dataset.
    xp : module
        The functions of the device's array library.
    device : object
        The device, as the library names it.
    batch_rows : int or None
        Rows of a batch; None for as many as make `BATCH_BYTES`.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.io import on_device
    >>> rows = on_device(np.ones((5, 2)), "cpu", library="numpy", batch_rows=2)
    >>> type(rows).__name__, [batch.shape for batch in rows.parts()]
    ('OnDevice', [(2, 2), (2, 2), (1, 2)])
    """

    def __init__(self, host: Source, xp: Any, device: Any, specimen: Any, batch_rows: int | None) -> None:
        self.host, self.xp, self.device, self.specimen, self.batch_rows = host, xp, device, specimen, batch_rows
        self.columns, self.width, self.n_rows, self.again = host.columns, host.width, host.n_rows, host.again

    def called(self, name: str, min_rows: int) -> Self:
        """Give the same dataset under the name that messages are to use."""
        named = super().called(name, min_rows)
        named.host = self.host.called(name, named.min_rows)
        return named

    def expect(self, width: int, reference: str) -> None:
        """Hold the batches to the number of columns of a reference."""
        self.host.expect(width, reference)

    def first(self, count: int) -> Any:
        """Give the first rows, on the device; they stay to be read."""
        return next(copies(iter([_as_sent(self.host.first(count))]), self.xp, self.device))

    def batches(self) -> Iterator[Batch]:
        """Give one batch after the other, on the device."""
        overlapped = getattr(self.specimen, "is_cuda", False)
        sent = map(_as_sent, self._on_host())
        arrived = overlapped_copies(sent, self.device) if overlapped else copies(sent, self.xp, self.device)
        start = 0
        for number, rows in enumerate(arrived, start=1):
            require_finite_rows(rows, f"batch {number} of {self.name}")
            yield Batch(rows, start)
            start += rows.shape[0]
        # Known only once the first batch of an iterator has been read.
        self.columns, self.width = self.host.columns, self.host.width

    def summed(self, part: Callable[[Batch], Any]) -> Any:
        """Add up what a function makes of each batch, without waiting for each if the function knows how."""
        found = None
        if self.again and self.xp is not np and hasattr(part, "over_batches"):
            found = part.over_batches(self.batches())
        if found is None:
            return super().summed(part)
        self._require_rows(found.count)
        return found

    def _on_host(self) -> Iterator[Rows]:
        """Cut the dataset into batches on the host."""
        for part in self.host.parts():
            size = self.batch_rows or max(BATCH_BYTES // (part.dtype.itemsize * max(part.shape[1], 1)), 1)
            for start in range(0, part.shape[0], size):
                yield row_slice(part, start, start + size)


def on_device(X: Any, device: Any, *, library: str = "torch", batch_rows: int | None = None) -> OnDevice:
    """How do I fit on a GPU what does not fit into its memory?

    Gives a dataset that `fit` and `transform` take like any other: it is read in batches, which are copied to the
    device and worked on there. On a CUDA device of PyTorch the next batch is sent while the present one is multiplied,
    through page-locked memory and on a stream of its own. The fitted attributes are on the device.

    Parameters
    ----------
    X : array-like, memory map, sparse matrix, frame, dataset that is read in parts, or iterator of batches
        The dataset, in the host's memory or to be read into it. An iterator can be read only once. Rows of a sparse
        matrix are made dense, a batch at a time.
    device : object
        The device, as the library names it: ``"cuda"``, ``"cuda:1"``, ``"cpu"``.
    library : {"torch", "cupy", "numpy"} or name of another array library, default="torch"
        Whose arrays the batches become.
    batch_rows : int, default=None
        Number of rows of a batch. None means as many as make 256 MB. An iterator's own batches are cut where they are
        larger.

    Returns
    -------
    Source

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA
    >>> from standout.io import on_device
    >>> target, background = np.random.default_rng(0).normal(size=(2, 1000, 5))
    >>> dpca = DiscriminativePCA(1)
    >>> dpca.fit(on_device(target, "cuda"), background=on_device(background, "cuda"))  # doctest: +SKIP
    >>> [rows.shape for rows in on_device(target, "cpu", library="numpy", batch_rows=400).parts()]
    [(400, 5), (400, 5), (200, 5)]
    """
    xp, specimen = _opened_device(library, device)
    if looks_foreign(X):
        if not is_on_host(X):
            on, where = place(X)
            problem, advice = "the data are of {library} on {device} already", "Give them to fit as they are."
            raise InvalidTypeError(problem, library=on, device=where, advice=advice)
        X = to_host(X)
    rows = None if batch_rows is None else check_whole(batch_rows, "batch_rows")
    return OnDevice(open_dataset(X, "the data", min_rows=1), xp, device, specimen, rows)


def _opened_device(library: Any, device: Any) -> tuple[Any, Any]:
    """Check an array library and a device of it: give its functions, and an empty array on the device."""
    if not isinstance(library, str):
        raise InvalidTypeError(
            "is not a name", parameter="library", value=library, advice="Give one, for example {v.torch} or {v.cupy}."
        )
    if library == "numpy":
        return np, np.zeros((0, 1))
    try:
        xp = library_named(library)
    except ImportError as error:
        raise ImportError(f"library={library!r} cannot be imported: {error}. Install it, or use another.") from None
    try:
        return xp, xp.asarray(np.zeros((0, 1)), device=device)
    except Exception as error:
        # Every library has exceptions of its own for this.
        problem, advice = "cannot be used by {library}: {reason}", "Give a device that it has."
        facts = {"library": library, "reason": str(error).splitlines()[0] if str(error) else type(error).__name__}
        raise InvalidValueError(problem, parameter="device", value=device, advice=advice, **facts) from None


def _as_sent(batch: Rows) -> Array:
    """Give a batch as a dense array of numbers that every library has."""
    numbers = to_host(dense(batch))
    if numbers.dtype.name in SENT_TYPES and numbers.dtype.isnative:
        return numbers
    return numbers.astype(numbers.dtype.newbyteorder("=") if numbers.dtype.name in SENT_TYPES else np.float64)


def copies(batches: Iterator[Array], xp: Any, device: Any) -> Iterator[Any]:
    """Give a copy of each batch on a device, one after the other."""
    for batch in batches:
        yield np.array(batch) if xp is np else xp.asarray(np.array(batch), device=device)


def overlapped_copies(batches: Iterator[Array], device: Any) -> Iterator[Any]:
    """Give a copy of each batch on a CUDA device of PyTorch, while the next one is being sent.

    A thread of its own copies a batch into page-locked memory and starts the transfer on a stream of its own. The
    caller's stream waits for the arrival, and no thread does.
    """
    torch = import_module("torch")
    device = torch.empty(0, device=device).device
    lanes = [_Lane(torch, device, torch.cuda.Stream(device)) for _ in range(LANES)]
    try:
        with ThreadPoolExecutor(1) as sender, ThreadPoolExecutor(COPIERS) as copiers:
            waiting = sender.submit(_send_next, batches, lanes[0], copiers)
            for number in count(1):
                sent = waiting.result()
                if sent is None:
                    return
                waiting = sender.submit(_send_next, batches, lanes[number % LANES], copiers)
                rows, arrival = sent
                current = torch.cuda.current_stream(device)
                current.wait_event(arrival)
                # The memory was taken on another stream: it must not be given away while this one works on it.
                rows.record_stream(current)
                yield rows
    finally:
        # No memory is given back that a batch is still sent from.
        for lane in lanes:
            lane.wait()


def _send_next(batches: Iterator[Array], lane: _Lane, copiers: Executor) -> tuple[Any, Any] | None:
    batch = next(batches, None)
    return None if batch is None else lane.send(batch, copiers)


class _Lane:
    """Page-locked memory for one batch, and the stream on which it is sent."""

    def __init__(self, torch: Any, device: Any, stream: Any) -> None:
        self._torch, self._device, self._stream = torch, device, stream
        self._memory: Any = None
        self._arrival: Any = None

    def wait(self) -> None:
        """Wait until the memory may be written to again, or given back."""
        if self._arrival is not None:
            self._arrival.synchronize()

    def send(self, batch: Array, copiers: Executor) -> tuple[Any, Any]:
        """Start sending a batch: give its array on the device, and the event of its arrival."""
        torch = self._torch
        self.wait()
        there = self._locked(batch)
        locked = self._staged(batch, copiers) if there is None else there
        with torch.cuda.stream(self._stream):
            rows = torch.empty(batch.shape, dtype=locked.dtype, device=self._device)
            rows.copy_(locked, non_blocking=True)
            self._arrival = torch.cuda.Event()
            self._arrival.record(self._stream)
        if there is not None:
            # The batch is sent from where it lies, and its producer may fill the same memory again.
            self.wait()
        return rows, self._arrival

    def _locked(self, batch: Array) -> Any | None:
        """Give the batch itself where its memory is page-locked already."""
        if not (batch.flags.c_contiguous and batch.flags.writeable):
            return None
        numbers = self._torch.from_numpy(batch)
        return numbers if numbers.is_pinned() else None

    def _staged(self, batch: Array, copiers: Executor) -> Any:
        torch = self._torch
        if self._memory is None or self._memory.numel() < batch.nbytes:
            self._memory = torch.empty(batch.nbytes, dtype=torch.uint8, pin_memory=True)
        staged = self._memory[: batch.nbytes].view(getattr(torch, batch.dtype.name)).view(batch.shape)
        target = staged.numpy()
        edges = np.linspace(0, len(batch), COPIERS + 1).astype(int).tolist()
        list(copiers.map(partial(_copy_rows, target, batch), edges[:-1], edges[1:]))
        return staged


def _copy_rows(target: Array, batch: Array, start: int, stop: int) -> None:
    np.copyto(target[start:stop], batch[start:stop])
