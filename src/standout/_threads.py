"""Several parts of the data at once: a thread for each, and none of BLAS's own."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import local
from typing import TypeVar

from threadpoolctl import threadpool_limits

Item = TypeVar("Item")
Result = TypeVar("Result")

# Parts that are worked on at a time are all in memory.
MOST_WORKERS = 4

_here = local()


def are_side_by_side() -> bool:
    """Tell whether this thread is one of several that work on parts: then a product must let the others go on."""
    return getattr(_here, "is_one_of_several", False)


def _join() -> None:
    _here.is_one_of_several = True


def in_order(function: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result]:
    """Give what a function makes of each item, in the order of the items, with several of them worked on at a time.

    The products of narrow tables gain nothing from BLAS's threads, which need to wait for each other many times. A
    thread per part waits for nobody. Results come in the order of the items, so that sums of them are the same numbers
    whoever is done first. What goes wrong is raised at its item.
    """
    n_workers = min(MOST_WORKERS, _n_cores())
    if n_workers == 1:
        yield from map(function, items)
        return
    waiting: deque[Future[Result]] = deque()
    with (
        threadpool_limits(1, user_api="blas"),
        ThreadPoolExecutor(n_workers, thread_name_prefix="standout-parts", initializer=_join) as pool,
    ):
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                # Held on to, it would be in memory after its turn.
                del item
                if len(waiting) > n_workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _n_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
