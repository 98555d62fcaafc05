"""Standard output and standard error, which may be closed, full, or unable to show a letter."""

from __future__ import annotations

import contextlib
import os
import sys

from standout.cli._as_options import as_options
from standout.cli._text import flat, printable


def take_any_character() -> None:
    """Have characters that a stream cannot encode written by their code, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def is_terminal(stream: object) -> bool:
    """Tell whether someone looks at a stream as it is written."""
    try:
        return bool(stream.isatty())  # type: ignore[attr-defined]
    except (AttributeError, ValueError):  # None, if it was closed before we started
        return False


def say_failure(words: str) -> None:
    """Say in one line on standard error what went wrong."""
    # Without standard error there is nobody to tell; print() would turn to standard output.
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(f"standout: {printable(as_options(flat(words)))}", file=sys.stderr, flush=True)


def hang_up() -> None:
    """Write to nowhere from now on, because nobody reads any more: Python would complain when it closes the stream."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
