"""Run work in threads of pools that all calls in this process share."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import cache
from typing import Any, TypeVar

from zarrdask import config
from zarrdask.runtime import measuring
from zarrdask.runtime.system import after_fork, cpu_count
from zarrdask.runtime.turns import has_turn

T = TypeVar("T")

#: In the threads of a pool, the attribute `level`: the number of pools that wait for this pool.
_THREAD = threading.local()


def on_each(
    work: Callable[[Any], T],
    items: Iterable[Any],
    threads: int | None,
    pool: ThreadPoolExecutor | None = None,
) -> list[T]:
    """Do work on each item, in threads; return the results in the order of the items.

    The number of threads is by default the setting ``zarrdask.threads``. They belong to
    `pool`, or by default of a pool that all calls in this process share.
    """
    if threads == 1 or has_turn():
        return [work(item) for item in items]
    pool, work = pool or thread_pool(threads), measuring.carried_on_each(work)
    futures = [pool.submit(work, item) for item in items]
    try:
        return [future.result() for future in futures]
    finally:
        # No work may go on after this function ends, also by an error or Ctrl-C.
        for future in futures:
            future.cancel()
        wait(futures)


def completed(work: Callable[[Any], T], items: deque[Any], threads: int) -> Iterator[T]:
    """Do work on each item, in threads of their own; yield each result as soon as it is there.

    The items are taken from the deque, so that those whose work is done are not kept.
    """
    if threads == 1 or has_turn():
        while items:
            yield work(items.popleft())
        return
    work = measuring.carried_on_each(work)
    pool = ThreadPoolExecutor(threads, "zarrdask-read", _enter, (getattr(_THREAD, "level", 0) + 1,))
    try:
        futures = set[Future[T]]()
        while items:
            futures.add(pool.submit(work, items.popleft()))
        while futures:
            done, futures = wait(futures, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    finally:
        # No work may go on after this function ends, also by an error or Ctrl-C.
        pool.shutdown(cancel_futures=True)


def thread_pool(threads: int | None) -> ThreadPoolExecutor:
    """Return a pool with a number of threads, by default the setting's."""
    # A thread of a pool that waited for work in the same pool could wait forever.
    return _pool(thread_count(threads), getattr(_THREAD, "level", 0))


def thread_count(threads: int | None) -> int:
    """Return a number of threads; for None, the setting ``zarrdask.threads``."""
    return threads or config.get("threads") or cpu_count()


@cache
def _pool(threads: int, level: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, "zarrdask", _enter, (level + 1,))


def _enter(level: int) -> None:
    _THREAD.level = level


# The threads of the parent process do not run in a forked process.
after_fork(_pool.cache_clear)
