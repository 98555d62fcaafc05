"""Chunks of Zarr arrays that end too early.

The decoder of Blosc trusts the length that a chunk states of itself, and reads on in memory behind one that was cut:
by chance that gives an error, other numbers, or even the right ones. Every other codec notices; a shard has a checksum.
"""

from __future__ import annotations

from itertools import product
from math import ceil
from pathlib import Path
from struct import unpack
from typing import Any

import numpy as np

from standout._arrays import Array

# Version, flags and lengths; the last number is the length of the chunk with this header.
_HEADER = "<4B3I"
_HEADER_BYTES = 16


def rows_of_zarr(array: Any, store: Path, start: int, stop: int) -> Array:
    """Read some rows of an array, and raise EOFError where a chunk of them is not whole."""
    if array.shards is None and _written_by_blosc(array):
        last = [ceil(size / chunk) for size, chunk in zip(array.shape[1:], array.chunks[1:], strict=True)]
        touched = range(start // array.chunks[0], ceil(stop / array.chunks[0]))
        for place in product(touched, *map(range, last)):
            _check_whole(store, f"{array.path}/{array.metadata.encode_chunk_key(place)}".lstrip("/"))
    return np.asarray(array[start:stop])


def _written_by_blosc(array: Any) -> bool:
    """Tell whether the bytes of a chunk are Blosc's: another codec after it has a header of its own."""
    codecs = (*array.filters, *array.compressors)
    return bool(codecs) and "blosc" in type(codecs[-1]).__name__.lower()


def _check_whole(store: Path, name: str) -> None:
    try:
        with (store / name).open("rb") as file:
            header = file.read(_HEADER_BYTES)
            found = file.seek(0, 2)
    except FileNotFoundError:
        # A chunk that was never written stands for the fill value.
        return
    stated = unpack(_HEADER, header)[-1] if len(header) == _HEADER_BYTES else _HEADER_BYTES
    if found < stated:
        raise EOFError(f"the chunk {name!r} ends after {found:,} of {stated:,} bytes")
