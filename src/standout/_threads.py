"""Several parts of the data at once: a thread for each, and none of BLAS's own."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

from threadpoolctl import threadpool_limits

Item = TypeVar("Item")
Result = TypeVar("Result")

# Parts that are worked on at a time are all in memory.
MOST_WORKERS = 4

_lock = Lock()
_n_running = 0


def are_side_by_side() -> bool:
    """Tell whether parts are being worked on in several threads: then a product must let the others go on."""
    return _n_running > 0


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
    with _without_blas_threads(), ThreadPoolExecutor(n_workers, thread_name_prefix="standout-parts") as pool:
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


@contextmanager
def _without_blas_threads() -> Iterator[None]:
    global _n_running
    with threadpool_limits(1, user_api="blas"):
        with _lock:
            _n_running += 1
        try:
            yield
        finally:
            with _lock:
                _n_running -= 1


def _n_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
