"""Readers of files can raise nearly anything: here it becomes one clear error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from standout._validation import reject_unfinished

Result = TypeVar("Result")


def attempt(read: Callable[[], Result], source: str, kind: str) -> Result:
    """Read something, and say of a file that it is damaged if that fails.

    Nothing that rejects input itself belongs into `read`: its message would be told as that of a reader.
    """
    try:
        return read()
    # A damaged file can make a reader ask for memory that is not there, look for keys that are not there, and so on.
    except Exception as error:
        reject_unfinished(source, kind, error)


def attempted(items: Iterator[Result], source: str, kind: str) -> Iterator[Result]:
    """Give one item after the other, and say of the file that it is damaged where that fails."""
    while (item := attempt(lambda: next(items, None), source, kind)) is not None:
        yield item
