"""A progress bar for a pass over files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from standout._validation import require_extra


@contextmanager
def bar(description: str, total: int, done: int, progress: bool) -> Iterator[Callable[[int], None]]:
    """Show on standard error how much of a total is done, if a bar is wanted; give the function that moves it."""
    if not progress:
        yield lambda step: None
        return
    require_extra("rich", "progress", "a progress bar")
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task(description, total=total, completed=done)
        yield lambda step: shown.advance(task, step)
        # The length of a row of text is that of the first one: the end need not be met exactly.
        shown.update(task, completed=total)
