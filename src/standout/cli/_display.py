"""How a command runs: its messages, its result, its failures, and signals that interrupt it."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

# Seconds between two lines on the progress, if standard error is not a terminal.
INTERVAL = 10.0
FAILED = 2
# Further signals are ignored for this many seconds: a closing terminal, or a user who presses Ctrl-C twice, sends
# several.
PATIENCE = 5.0


class Signals:
    """Turn SIGINT, SIGTERM and SIGHUP into interruptions.

    Attributes
    ----------
    came : int or None
        The signal that was received, if any.
    held : int
        Number of running blocks that hold interruptions back. While it is not 0, interruptions wait.
    """

    came: int | None = None
    held = 0
    _at = 0.0

    @contextlib.contextmanager
    def as_interruptions(self) -> Iterator[None]:
        """Raise KeyboardInterrupt when a signal comes."""
        self.came, self._at, self.held = None, 0.0, 0
        numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
        before = {}
        # Only the main thread can receive signals. In other threads Python raises a ValueError.
        with contextlib.suppress(ValueError):
            for number in numbers:
                # An ignored signal stays ignored: nohup ignores SIGHUP, the signal of a closed terminal.
                if signal.getsignal(number) is not signal.SIG_IGN:
                    before[number] = signal.signal(number, self._receive)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def check(self) -> None:
        """Raise the interruption again if it was lost: Python drops exceptions that are raised in callbacks."""
        if self.came is not None and not self.held:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def held_back(self) -> Iterator[None]:
        """Let the code in this block finish before an interruption is raised."""
        self.held += 1
        came_before = self.came
        try:
            yield
        finally:
            self.held -= 1
        if self.came != came_before and not self.held:
            raise KeyboardInterrupt

    def _receive(self, number: int, _frame: object) -> None:
        now = time.monotonic()
        again = self.came is not None and now - self._at < PATIENCE
        if self.came is None:
            self.came, self._at = number, now
        if not self.held and not again:
            raise KeyboardInterrupt


SIGNALS = Signals()


class Display:
    """Show the stages while the command works, and the result at the end. Print nothing if quiet.

    If standard error is a terminal, it shows the current stage with a bar and the time left. Otherwise stages are plain
    lines on standard output, with a further line every ten seconds in a long stage, and standard error is for failures.

    Attributes
    ----------
    quiet : bool
    moves : bool
        Whether standard error is a terminal, on which a progress bar can be shown.
    """

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet or sys.stdout is None
        # A stream that was closed before the start is None.
        self.moves = not quiet and sys.stderr is not None and sys.stderr.isatty()
        # A progress bar of rich, with the time left. It is drawn only on a terminal.
        self._bar: Any = None
        self._stage = ""
        # The work of each part of the stage: how much is done, and how much there is. Files are read at the same time.
        self._parts: dict[str, tuple[float, float]] = {}

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Show stages within this block."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        from standout._writing import progress_to

        words = TextColumn("{task.description}", markup=False)
        columns = (words, BarColumn(20), TextColumn("left"), TimeRemainingColumn())
        self._bar, ended = Progress(*columns, console=Console(stderr=True), transient=True), threading.Event()
        if not self.moves and not self.quiet:
            threading.Thread(target=self._tell, args=[ended], daemon=True).start()
        try:
            with self._bar if self.moves else contextlib.nullcontext(), progress_to(self.progress):
                yield
        finally:
            ended.set()

    def stage(self, words: str) -> None:
        """Begin the next stage."""
        SIGNALS.check()
        self._stage, self._parts = printable(words), {}
        for task in self._bar.task_ids:
            self._bar.remove_task(task)
        self._bar.add_task(self._stage, total=None)
        if not self.moves:
            self.say(self._stage)

    def progress(self, what: str, done: float, total: float) -> None:
        """Show how much of a stage is done."""
        SIGNALS.check()
        if what not in self._parts:
            # Parts that have ended do not belong to the new part. The amount of work can be unknown (0).
            self._parts = {name: part for name, part in self._parts.items() if part[0] < part[1] or not part[1]}
        self._parts[what] = done, total
        dones, totals = zip(*list(self._parts.values()), strict=True)
        numbers = {"completed": sum(dones), "total": sum(totals) * all(totals)}
        for task in self._bar.task_ids:
            self._bar.update(task, **numbers, description=f"{self._stage}: {what}")

    def say(self, words: str = "") -> None:
        """Print a line of the result; if the reader has closed the pipe, go on without printing."""
        if self.quiet:
            return
        try:
            print(printable(words), flush=True)
        except BrokenPipeError:
            self.quiet = True
            close_output()

    def cautions(self, messages: Iterable[object]) -> None:
        """Print cautions."""
        for words in map(phrased, messages):
            self.say(f"! {words[:1].upper()}{words[1:]}")

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table of the result, with a line for each row."""
        cells = [[printable(words) for words in row] for row in (head, *rows)]
        widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
        for row in cells:
            self.say("  ".join(map(str.ljust, row, widths)).rstrip())

    def _tell(self, ended: threading.Event) -> None:
        """Print a line every ten seconds."""
        while not ended.wait(INTERVAL):
            for task in self._bar.tasks:
                share, left = f"{task.percentage:.0f} %", task.time_remaining
                if task.elapsed > INTERVAL / 2:
                    known = f", {share}, about {left:.0f} s left" if left else ""
                    self.say(f"{task.description}, {task.elapsed:.0f} s{known}")


# --- streams ----------------------------------------------------------------------------------------------------------


def close_output() -> None:
    """Discard further output, because the reader has closed the pipe. Python would print an error on exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


# --- text -------------------------------------------------------------------------------------------------------------


def phrased(message: object) -> str:
    """Return an error or a warning as a sentence that names options instead of parameters."""
    from standout._options import OPTION_NAMES

    return str(message.phrased(OPTION_NAMES)) if hasattr(message, "phrased") else str(message)


def printable(words: object) -> str:
    """Return text with control characters as codes: in names from files they could move the cursor or reverse text."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in str(words))


# --- a command, from its words to its exit code -----------------------------------------------------------------------


def run(words: list[str]) -> int:
    """Run a command line, given as words, and return its exit code."""
    with SIGNALS.as_interruptions(), _silent_libraries():
        try:
            import click

            from standout.cli._app import app

            code = 0 if words else FAILED
            if words:
                # app.main would handle interruptions and closed pipes differently.
                with contextlib.suppress(click.exceptions.Exit):
                    app.invoke(app.make_context("standout", words, obj=words))
            else:
                print(app.get_help(click.Context(app, info_name="standout", **app.context_settings)))
            if sys.stdout is not None:
                sys.stdout.flush()
            return code
        except BrokenPipeError:
            # The reader of our output has closed the pipe. This is not a failure: the result has been written.
            close_output()
            return 0
        except (Exception, KeyboardInterrupt) as error:
            # Further interruptions wait until the message is printed.
            SIGNALS.held += 1
            # Libraries that read files turn an interruption into other errors: check the signal.
            stopped = SIGNALS.came is not None or isinstance(error, KeyboardInterrupt)
            # Print nothing if standard error is None: print() would use standard output instead.
            if sys.stderr is not None:
                with contextlib.suppress(OSError, ValueError):
                    told = "interrupted." if stopped else " ".join(_failure(error).split())
                    print(f"standout: {printable(told)}", file=sys.stderr, flush=True)
            return 128 + (SIGNALS.came or signal.SIGINT) if stopped else FAILED


def _failure(error: BaseException) -> str:
    """Return the failure as a sentence."""
    words = phrased(error)
    if hasattr(error, "format_message"):
        return str(error.format_message())
    if isinstance(error, ImportError):
        advice = "Install all packages of the command line: pip install 'standout[cli]'."
        return words if "pip install" in words else f"a package is missing ({words}). {advice}"
    if isinstance(error, MemoryError):
        return "there is not enough memory. Read the files in parts (--stream), or use fewer columns (--columns)."
    if isinstance(error, OSError) and error.strerror is not None:
        where = f"{str(error.filename)!r} cannot be read or written" if error.filename is not None else "it stopped"
        return f"{where}: {error.strerror}. Check the name, the permissions and the free space."
    if isinstance(error, ValueError | TypeError | OSError) and words:
        return words
    return f"an unforeseen error occurred ({type(error).__name__}: {words}). Please report it."


@contextlib.contextmanager
def _silent_libraries() -> Iterator[None]:
    """Keep Python and libraries from printing; commands collect and show the warnings that matter."""
    before = sys.unraisablehook
    # On a full disk, a file fails when it is closed, and again when Python deletes it. Do not print the second error.
    sys.unraisablehook = lambda _: None
    # Without a handler, Python prints the log messages of libraries, such as matplotlib's on its list of fonts.
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    for stream in (sys.stdout, sys.stderr):
        # Characters that a stream cannot encode are written as codes.
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.getLogger().removeHandler(handler)
        sys.unraisablehook = before
