"""What is said while it goes on, and at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from standout.cli._signals import SIGNALS
from standout.cli._streams import hang_up, is_terminal
from standout.cli._text import printable


class Display:
    """Stages while it goes on, and words at the end; nothing if quiet.

    In a terminal the stages move, on standard error. Elsewhere they are plain lines among the words on standard output:
    standard error is for what goes wrong.

    Attributes
    ----------
    quiet : bool
    seconds : dict of str
        How long each stage took.
    """

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet or sys.stdout is None
        self.seconds: dict[str, float] = {}
        self._moves = not quiet and is_terminal(sys.stderr)
        self._progress: Any = None
        self._task: Any = None
        self._stage: tuple[str, float] | None = None

    @contextmanager
    def working(self) -> Iterator[None]:
        """Show stages while it goes on."""
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
        elif not self._moves:
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

    @contextmanager
    def stepping_aside(self) -> Iterator[bool]:
        """Make room for a bar of someone else, and tell whether there is someone to look at it."""
        self._stop()
        try:
            yield self._moves
        finally:
            # Anew: the old one would go up as many lines as it had, and wipe out those of the other.
            self._start()

    def say(self, words: str = "") -> None:
        """Say something at the end, in a line of its own."""
        shown = printable(words)
        if not is_terminal(sys.stdout):
            self._print(shown)
        elif not self.quiet:
            from rich.console import Console
            from rich.text import Text

            # A text, unlike a string, has no markup in it, and no names of pictograms.
            Console().print(Text(shown))

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show a table at the end."""
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
        if not self._moves:
            return
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        # Names in the words are no markup.
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._progress.start()

    def _stop(self) -> None:
        if self._progress is not None:
            self._progress.stop()
        self._progress = self._task = None

    def _print(self, words: str) -> None:
        """Write a plain line; where nobody reads any more, the work goes on without words."""
        if self.quiet:
            return
        try:
            print(words, flush=True)
        except BrokenPipeError:
            self.quiet = True
            hang_up()
