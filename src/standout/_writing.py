"""Files that are complete or not there at all, and a progress bar."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from standout._messages import FileError, require_extra, shown

Item = TypeVar("Item")


@contextmanager
def whole_file(path: Path, *, draft: str = "") -> Iterator[Path]:
    """Give the path of a draft to write to, which takes its final name once it is complete; an error leaves nothing.

    A device or a pipe, such as /dev/stdout, is written to directly. A link stays a link, to the new file.

    Parameters
    ----------
    path : Path
    draft : str
        Start of the name of the file while it is written.
    """
    try:
        if path.exists() and not path.is_file():
            yield path
            return
        # In the same folder, so that the last step is a rename, which cannot be seen half done.
        final = Path(os.path.realpath(path))
        partial = final.with_name(f"{draft}.{uuid4().hex}.part")
        try:
            yield partial
            with partial.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(partial, final)
        finally:
            with suppress(OSError):
                partial.unlink()
        _sync_folder(final.parent)
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(
            "{path} cannot be written: {reason}",
            path=shown(path),
            reason=error.strerror or str(error),
            advice="Choose another name or folder.",
        ) from error


def write_whole(path: Path, content: bytes | memoryview, *, draft: str = "") -> None:
    """Write a file that appears under its name once it is complete."""
    with whole_file(path, draft=draft) as place, place.open("wb") as file:
        file.write(content)


def _sync_folder(folder: Path) -> None:
    """Bring a new name to disk, where the system lets folders be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def progress_bar(description: str, total: int, *, done: int = 0, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """Show on standard error how much of a total is done; give the function that moves the bar."""
    if not shown:
        yield lambda step: None
        return
    require_extra("rich", "progress", "a progress bar")
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(description, total=total, completed=done)
        yield lambda step: bar.advance(task, step)
        # A total that was only estimated need not be met exactly.
        bar.update(task, completed=total)


def tracked(items: Iterable[Item], total: int, description: str, shown: bool) -> Iterator[Item]:
    """Give the items, and show on standard error how many have been given, if a bar is wanted."""
    with progress_bar(description, total, shown=shown) as advance:
        for item in items:
            yield item
            advance(1)
