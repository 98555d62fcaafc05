"""Datasets of the host whose parts are worked on by a device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from standout._arrays import Array, Rows, dense, row_slice
from standout._validation import Source, reject_too_few, require_finite_rows
from standout._xp import to_host
from standout.sources._stream import Stream
from standout.sources._transfer import copies, overlapped_copies

# What a device gets at a time. Smaller batches would leave it waiting for the calls, larger ones take memory.
BATCH_BYTES = 256 * 2**20
# Types of numbers that travel as they are: every library has them.
TRAVELLING = ("bool", "int8", "int16", "int32", "int64", "uint8", "float32", "float64")


class OnDevice(Stream):
    """A dataset in the host's memory, or read in parts there, whose parts are given as arrays on a device.

    Attributes
    ----------
    host : rows or Source
        The dataset.
    xp : module
        The functions of the device's array library.
    device : object
        The device, as the library names it.
    batch_rows : int or None
        Rows of a batch; None for as many as make `BATCH_BYTES`.
    columns : list of str or None
        Names of the columns of rows; a source has names of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.io import on_device
    >>> rows = on_device(np.ones((5, 2)), "cpu", library="numpy", batch_rows=2)
    >>> type(rows).__name__, [batch.shape for batch in rows.parts()]
    ('OnDevice', [(2, 2), (2, 2), (1, 2)])
    """

    def __init__(
        self,
        host: Rows | Source,
        xp: Any,
        device: Any,
        specimen: Any,
        batch_rows: int | None,
        columns: list[str] | None = None,
    ) -> None:
        self.host = host
        self.xp = xp
        self.device = device
        self.specimen = specimen
        self.batch_rows = batch_rows
        if isinstance(host, Source):
            self.columns, self.width, self.n_rows, self.again = host.columns, host.width, host.n_rows, host.again
        else:
            self.columns, (self.n_rows, self.width) = columns, host.shape

    def called(self, name: str, min_rows: int) -> Self:
        """Give the same dataset under the name that messages are to use."""
        named = super().called(name, min_rows)
        if isinstance(named.host, Source):
            named.host = named.host.called(name, min_rows)
        elif named.host.shape[0] < named.min_rows:
            reject_too_few(name, named.host.shape[0], named.min_rows)
        return named

    def expect(self, width: int, reference: str) -> None:
        """Hold the parts to a number of columns, that of a reference, where theirs is known only when they come."""
        if isinstance(self.host, Source):
            self.host.expect(width, reference)

    def first(self, count: int) -> Any:
        """Give the first rows, on the device; they stay to be read."""
        rows = self.host.first(count) if isinstance(self.host, Source) else row_slice(self.host, 0, count)
        return next(copies(iter([_travelling(rows)]), self.xp, self.device))

    def parts(self) -> Iterator[Any]:
        """Give one batch after the other, on the device."""
        overlapped = getattr(self.specimen, "is_cuda", False)
        batches = map(_travelling, self._batches())
        arrived = overlapped_copies(batches, self.device) if overlapped else copies(batches, self.xp, self.device)
        for number, rows in enumerate(arrived, start=1):
            require_finite_rows(rows, f"batch {number} of {self.name}")
            yield rows
        if isinstance(self.host, Source):
            # Known only once the first batch has been read.
            self.columns, self.width = self.host.columns, self.host.width

    def _batches(self) -> Iterator[Rows]:
        """Cut the dataset into batches on the host."""
        for part in self.host.parts() if isinstance(self.host, Source) else [self.host]:
            size = self.batch_rows or max(BATCH_BYTES // (part.dtype.itemsize * max(part.shape[1], 1)), 1)
            for start in range(0, part.shape[0], size):
                yield row_slice(part, start, start + size)


def _travelling(batch: Rows) -> Array:
    """Give a batch as a dense array of numbers that every library has."""
    numbers = to_host(dense(batch))
    if numbers.dtype.name in TRAVELLING and numbers.dtype.isnative:
        return numbers
    return numbers.astype(numbers.dtype.newbyteorder("=") if numbers.dtype.name in TRAVELLING else np.float64)
