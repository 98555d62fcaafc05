"""How far the experiments are: a bar on a terminal, a line per experiment elsewhere."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Progress:
    """Tells what is going on; this one says a line when an experiment is done."""

    def start(self, name: str, n_steps: int) -> None:
        """Begin an experiment of so many steps."""

    def step(self, what: str) -> None:
        """Say what the next step is."""

    def done(self, line: str) -> None:
        """End an experiment."""
        print(line, flush=True)


class Bar(Progress):
    """A progress bar over all steps of all experiments."""

    def __init__(self, bar: Any, n_steps: int) -> None:
        self._bar = bar
        self._task = bar.add_task("starting", total=n_steps)
        self._finished = 0
        self._current = 0

    def start(self, name: str, n_steps: int) -> None:
        """Begin an experiment of so many steps."""
        self._current = n_steps
        self._bar.update(self._task, description=name, completed=self._finished)

    def step(self, what: str) -> None:
        """Say what the next step is."""
        self._bar.update(self._task, description=what, advance=1)

    def done(self, line: str) -> None:
        """End an experiment, whether or not all of its steps were taken."""
        self._finished += self._current
        self._bar.update(self._task, completed=self._finished)
        self._bar.console.print(line, highlight=False, markup=False)


@contextmanager
def progress(n_steps: int) -> Iterator[Progress]:
    """Show progress in the way that suits the place where it is shown."""
    if not sys.stderr.isatty() or importlib.util.find_spec("rich") is None:
        yield Progress()
        return
    from rich import progress as rich_progress
    from rich.console import Console

    columns = (
        rich_progress.TextColumn("{task.description}", markup=False),
        rich_progress.BarColumn(),
        rich_progress.TaskProgressColumn(),
        rich_progress.TimeElapsedColumn(),
    )
    with rich_progress.Progress(*columns, console=Console(stderr=True)) as bar:
        yield Bar(bar, n_steps)
