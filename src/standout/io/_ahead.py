"""Reading ahead by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def ahead(items: Iterable[Item]) -> Iterator[Item]:
    """Have the next item made, in a thread of its own, while this one is worked on; never more than that one.

    What goes wrong in the thread is raised here, at its item. Whoever stops early (an error, Ctrl-C) waits for the item
    that is being made and no other.
    """
    waiting = iter(items)
    end = object()
    with ThreadPoolExecutor(1) as worker:
        following = worker.submit(next, waiting, end)
        while (item := following.result()) is not end:
            following = worker.submit(next, waiting, end)
            yield item  # type: ignore[misc]
            # Held on to, it would be in memory together with the next two.
            del item
