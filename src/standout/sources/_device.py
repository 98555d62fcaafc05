"""Datasets of the host whose batches are sent to a device, such as a GPU."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from importlib import import_module
from itertools import count, pairwise
from typing import Any, TypeVar

import numpy as np

from standout._arrays import Array, Rows, dense, row_slice
from standout._messages import InvalidTypeError, InvalidValueError
from standout._xp import is_on_host, library_named, looks_foreign, place, to_host
from standout.sources._base import Batch, Source
from standout.sources._open import open_dataset

# What a device gets at a time. Smaller batches would leave it waiting for the calls, larger ones take memory.
BATCH_BYTES = 256 * 2**20
# Threads that copy a batch into page-locked memory: one alone is slower than the device.
COPIERS = min(14, os.cpu_count() or 1)
# Batches that are sent at a time, each in memory of its own.
LANES = 2
T = TypeVar("T")


class OnDevice(Source):
    """A dataset of the host whose batches are arrays on a device."""

    def __init__(self, host: Source, xp: Any, device: Any, specimen: Any, batch_rows: int | None) -> None:
        self.host, self.name, self.again, self.n_rows = host, host.name, host.again, host.n_rows
        self.columns, self.keys, self.width = host.columns, host.keys, host.width
        self._xp, self._device, self._specimen, self._batch_rows = xp, device, specimen, batch_rows
        self.place = place(specimen)
        self._beside(host)

    def _read(self) -> Iterator[Batch]:
        overlapped = getattr(self._specimen, "is_cuda", False)
        sent = overlapped_copies(self._on_host(), self._device) if overlapped else self._copies()
        start = 0
        for rows in sent:
            yield Batch(rows, start)
            start += rows.shape[0]

    def map_reduce(self, function: Callable[[Batch], T], add: Callable[[T, T], T] = operator.add) -> T:
        """Add what a function makes of each batch, without waiting for each if the function can sum all batches."""
        over_batches = getattr(function, "over_batches", None)
        found: T | None = over_batches(self.batches()) if over_batches is not None and self.again else None
        return super().map_reduce(function, add) if found is None else found

    def _copies(self) -> Iterator[Rows]:
        for batch in self._on_host():
            yield np.array(batch) if self._xp is np else self._xp.asarray(np.array(batch), device=self._device)

    def _on_host(self) -> Iterator[Array]:
        for batch in self.host.batches():
            size = self._batch_rows or max(BATCH_BYTES // (8 * max(batch.rows.shape[1], 1)), 1)
            for start in range(0, batch.n_rows, size):
                yield dense(row_slice(batch.rows, start, start + size))


def on_device(X: Any, device: Any, *, library: str = "torch", batch_rows: int | None = None) -> OnDevice:
    """How do I fit data on a GPU that do not fit into its memory?

    The batches of the dataset are copied to the device and worked on there. On a CUDA device of PyTorch the next batch
    is sent while the present one is multiplied. The fitted attributes are on the device.

    Parameters
    ----------
    X : dataset
        In the host's memory, or read into it in batches. Sparse rows are made dense, a batch at a time.
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
    if batch_rows is not None and not (isinstance(batch_rows, int) and batch_rows >= 1):
        raise InvalidValueError("is not a whole number of at least 1", parameter="batch_rows", value=batch_rows)
    xp, specimen = _opened_device(library, device)
    if looks_foreign(X):
        if not is_on_host(X):
            advice = "Give them to fit as they are."
            raise InvalidTypeError(f"the data are of {' on '.join(place(X))} already", advice=advice)
        X = to_host(X)
    return OnDevice(open_dataset(X), xp, device, specimen, batch_rows)


def _opened_device(library: Any, device: Any) -> tuple[Any, Any]:
    """Return the functions of an array library, and an empty array on the device."""
    if library == "numpy":
        return np, np.zeros((0, 1))
    try:
        xp = library_named(library)
    except (ImportError, AttributeError, TypeError) as error:
        raise ImportError(f"library={library!r} cannot be imported: {error}. Install it, or use another.") from None
    try:
        return xp, xp.asarray(np.zeros((0, 1)), device=device)
    except Exception as error:  # every library has exceptions of its own for this
        reason = (str(error) or type(error).__name__).splitlines()[0]
        problem = f"cannot be used by {library}: {reason}"
        raise InvalidValueError(problem, parameter="device", value=device, advice="Give another device.") from None


def overlapped_copies(batches: Iterator[Array], device: Any) -> Iterator[Any]:
    """Copy each batch to a CUDA device of PyTorch while the next one is being sent.

    A separate thread copies a batch into page-locked memory and starts the transfer on a separate stream. The
    caller's stream waits for the arrival, and no thread does.
    """
    torch = import_module("torch")
    device = torch.empty(0, device=device).device
    lanes = [_Lane(torch, device) for _ in range(LANES)]
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
                # The memory is from another stream: it must not be given away while this one works on it.
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

    def __init__(self, torch: Any, device: Any) -> None:
        self._torch, self._device, self._stream = torch, device, torch.cuda.Stream(device)
        self._memory: Any = None
        self._arrival: Any = None

    def wait(self) -> None:
        """Wait until the memory may be written to again, or given back."""
        if self._arrival is not None:
            self._arrival.synchronize()

    def send(self, batch: Array, copiers: Executor) -> tuple[Any, Any]:
        """Start sending a batch; return its array on the device, and the event of its arrival."""
        torch = self._torch
        self.wait()
        if self._memory is None or self._memory.numel() < batch.nbytes:
            self._memory = torch.empty(batch.nbytes, dtype=torch.uint8, pin_memory=True)
        staged = self._memory[: batch.nbytes].view(getattr(torch, batch.dtype.name)).view(batch.shape)
        edges = np.linspace(0, len(batch), COPIERS + 1).astype(int).tolist()
        parts = [(staged.numpy()[start:stop], batch[start:stop]) for start, stop in pairwise(edges)]
        list(copiers.map(np.copyto, *zip(*parts, strict=True)))
        with torch.cuda.stream(self._stream):
            rows = torch.empty(batch.shape, dtype=staged.dtype, device=self._device)
            rows.copy_(staged, non_blocking=True)
            self._arrival = torch.cuda.Event()
            self._arrival.record(self._stream)
        return rows, self._arrival
