"""Whether the parts of a MATLAB file are what they say.

SciPy looks up the type of each part in a table without checking that it is in there, so that one wrong byte can end the
whole program. What stands before the numbers of each variable is therefore looked at first.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from pathlib import Path

_HEADER = 128
_HEAD = 4096
_MATRIX, _COMPRESSED = 14, 15
_TYPES = frozenset([1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 14, 16, 17, 18])


def check_tags(path: Path) -> None:
    """Raise a ValueError where a part is of a type that there is not."""
    with path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        mark = data[126:128]
        # Version 4 has no header and no types; what is nothing at all is left to SciPy as well.
        if mark not in (b"IM", b"MI"):
            return
        order = "<" if mark == b"IM" else ">"
        place = _HEADER
        while place + 8 <= len(data):
            kind, size = struct.unpack(f"{order}II", data[place : place + 8])
            head = data[place : place + _HEAD]
            if kind == _COMPRESSED:
                head = zlib.decompressobj().decompress(data[place + 8 : place + 8 + min(size, 2**16)], _HEAD)
            _check_head(head, order, place)
            place += 8 + size


def _check_head(head: bytes, order: str, place: int) -> None:
    """Check the tags of one variable: flags, shape and name, and that of the numbers, which come last."""
    position = 8
    kinds = [struct.unpack(f"{order}I", head[:4])[0]] if len(head) >= 8 else []
    while len(kinds) < 5 and position + 8 <= len(head):
        kind, size = struct.unpack(f"{order}II", head[position : position + 8])
        # Up to four bytes are stored in the tag itself, with their number in its upper half.
        is_short = kind >> 16 != 0
        kinds.append(kind & 0xFFFF if is_short else kind)
        position += 8 if is_short else 8 + -(-size // 8) * 8
    if kinds[:1] != [_MATRIX] or not _TYPES.issuperset(kinds):
        raise ValueError(f"the variable at byte {place} has parts of unknown types")
