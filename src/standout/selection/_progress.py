"""A progress bar for what takes its time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from standout._validation import require_extra

Item = TypeVar("Item")


def tracked(items: Iterable[Item], total: int, description: str, progress: bool) -> Iterable[Item]:
    """Give the items, and show on standard error how many have been given, if a bar is wanted."""
    if not progress:
        return items
    require_extra("rich", "progress", "a progress bar")
    from rich.console import Console
    from rich.progress import track

    return track(items, description=description, total=total, console=Console(stderr=True))
