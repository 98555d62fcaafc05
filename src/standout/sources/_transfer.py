"""How batches travel from the host's memory to a device."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from importlib import import_module
from itertools import count
from typing import Any

import numpy as np

from standout._arrays import Array

# Threads that copy a batch into memory that the device can read by itself: one alone is slower than the device.
COPIERS = min(14, os.cpu_count() or 1)
# Batches on their way at a time, each in memory of its own.
LANES = 2


def copies(batches: Iterator[Array], xp: Any, device: Any) -> Iterator[Any]:
    """Give a copy of each batch on a device, one after the other."""
    for batch in batches:
        yield np.array(batch) if xp is np else xp.asarray(np.array(batch), device=device)


def overlapped_copies(batches: Iterator[Array], device: Any) -> Iterator[Any]:
    """Give a copy of each batch on a CUDA device of PyTorch, with the next one on its way meanwhile.

    A thread of its own brings a batch into page-locked memory and starts its journey on a stream of its own. The
    stream of whoever asks for the batch waits for its arrival, and no thread does.
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
    """Page-locked memory for one batch, and the stream on which it travels."""

    def __init__(self, torch: Any, device: Any, stream: Any) -> None:
        self._torch, self._device, self._stream = torch, device, stream
        self._memory: Any = None
        self._arrival: Any = None

    def wait(self) -> None:
        """Wait until the memory may be written to again, or given back."""
        if self._arrival is not None:
            self._arrival.synchronize()

    def send(self, batch: Array, copiers: Executor) -> tuple[Any, Any]:
        """Start the journey of a batch: its place on the device, and the event of its arrival."""
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
