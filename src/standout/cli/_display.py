"""What the command prints: stages while it works, the result at the end, one line when it fails."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
from collections.abc import Iterator, Sequence

from standout.cli._signals import SIGNALS

# As in typing, which would take longer to load than all other modules that are loaded before Ctrl-C is handled.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LONGEST_NAME = 30


class Display:
    """Stages while the command works, and the result at the end; nothing if quiet.

    In a terminal the present stage is shown on standard error, with a clock. Elsewhere stages are plain lines among the
    others on standard output: standard error is for failures.

    Attributes
    ----------
    quiet : bool
    moves : bool
        Whether standard error is a terminal, on which a progress bar can be shown.
    seconds : dict of str
        How long each stage took.
    """

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet or sys.stdout is None
        self.moves = not quiet and is_terminal(sys.stderr)
        self.seconds: dict[str, float] = {}
        self._progress: Any = None
        self._task: Any = None
        self._stage: tuple[str, float] | None = None

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Show stages within this block."""
        self._start()
        try:
            yield
        finally:
            self.done()
            self._stop()

    def stage(self, words: str) -> None:
        """Begin the next stage."""
        SIGNALS.check()
        self.done()
        self._stage = (words, time.perf_counter())
        if self._progress is not None:
            self._task = self._progress.add_task(printable(words), total=1)
        elif not self.moves:
            self._print(printable(words))

    def done(self) -> None:
        """End the stage."""
        if self._stage is not None:
            words, start = self._stage
            self.seconds[words] = self.seconds.get(words, 0.0) + time.perf_counter() - start
            self._stage = None
        if self._task is not None:
            self._progress.update(self._task, completed=1)
            self._task = None

    @contextlib.contextmanager
    def making_room(self) -> Iterator[None]:
        """Stop the clock within this block, so that a library can show a progress bar of its own."""
        if self._stage is not None and self.moves:
            print(printable(self._stage[0]), file=sys.stderr, flush=True)
        self._stop()
        try:
            yield
        finally:
            # A new one: the old one would move up as many lines as it had, and erase those of the bar.
            self._start()

    def say(self, words: str = "") -> None:
        """Print a line of the result."""
        shown = printable(words)
        if not is_terminal(sys.stdout):
            self._print(shown)
        elif not self.quiet:
            from rich.console import Console
            from rich.text import Text

            # A Text has no markup, and no names of emoji.
            Console().print(Text(shown))

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table of the result."""
        cells = [[printable(words) for words in row] for row in (head, *rows)]
        if not is_terminal(sys.stdout):
            widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
            for row in cells:
                self._print("  ".join(map(str.ljust, row, widths)).rstrip())
        elif not self.quiet:
            from rich.console import Console
            from rich.table import Table
            from rich.text import Text

            shown = Table(box=None, pad_edge=False, header_style="bold")
            for words in cells[0]:
                shown.add_column(Text(words))
            for row in cells[1:]:
                shown.add_row(*map(Text, row))
            Console().print(shown)

    def _start(self) -> None:
        if not self.moves:
            return
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._progress.start()

    def _stop(self) -> None:
        if self._progress is not None:
            self._progress.stop()
        self._progress = self._task = None

    def _print(self, words: str) -> None:
        """Print a plain line; if the reader has closed the pipe, go on without printing."""
        if self.quiet:
            return
        try:
            print(words, flush=True)
        except BrokenPipeError:
            self.quiet = True
            close_output()


# --- streams ----------------------------------------------------------------------------------------------------------


def accept_any_character() -> None:
    """Have characters that a stream cannot encode written by their code, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def is_terminal(stream: object) -> bool:
    """Tell whether a stream is a terminal."""
    try:
        return bool(stream.isatty())  # type: ignore[attr-defined]
    except (AttributeError, ValueError):  # None, if it was closed before the start
        return False


def print_failure(words: str) -> None:
    """Print in one line on standard error what went wrong."""
    # Without standard error nothing is printed: print() would use standard output instead.
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(f"standout: {printable(flat(words))}", file=sys.stderr, flush=True)


def close_output() -> None:
    """Send standard output to nowhere, because nobody reads it: Python would complain when it closes the stream."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


# --- text -------------------------------------------------------------------------------------------------------------


def flat(words: object) -> str:
    """Put text into one line."""
    return " ".join(str(words).split())


def printable(words: object) -> str:
    """Show control characters by their code: names come from files, and could move the cursor or reverse the line."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in str(words)
    )


def capitalised(sentence: str) -> str:
    """Begin a sentence with a capital letter."""
    return sentence[:1].upper() + sentence[1:]


def shortened(name: str) -> str:
    """Cut a long name, and put it into one line."""
    words = printable(flat(name)) or "(empty name)"
    return words if len(words) <= LONGEST_NAME else f"{words[: LONGEST_NAME - 1]}…"


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """Load packages without looking for garbage meanwhile: they make many objects, and nearly all of these stay."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
