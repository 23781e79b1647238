"""Work done by several threads of this process, which all calls share."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import Any, TypeVar

from zarrdask import config
from zarrdask.indexing.projection import Projection
from zarrdask.storage.system import after_fork, cpu_count

T = TypeVar("T")

#: In threads of a pool: how many pools wait for it.
_HERE = threading.local()


def in_parts(work: Callable[[Projection], T], cuts: Projection, threads: int | None) -> list[T]:
    """Do the work on all units: here, or in parts by several threads (as configured, if None)."""
    count = len(cuts.indices)
    if threads == 1 or count <= 1:
        return [work(cuts)]
    threads = _number(threads)
    # A few parts a thread, so that they end together though units differ.
    size = max(1, -(-count // (threads * 4)))
    pieces = [cuts.some(start, start + size) for start in range(0, count, size)]
    return on_each(work, pieces, threads)


def on_each(work: Callable[[Any], T], items: Iterable[Any], threads: int | None) -> list[T]:
    """Do the work on each item, by several threads (as configured, if None), or here by one."""
    if threads == 1:
        return [work(item) for item in items]
    # Work that is itself done by such threads must not wait for the very same ones.
    pool = _pool(_number(threads), getattr(_HERE, "level", 0))
    futures = [pool.submit(work, item) for item in items]
    # All of them, also if one fails: nothing may go on behind the caller's back.
    wait(futures)
    return [future.result() for future in futures]


def _number(threads: int | None) -> int:
    return threads or config.get("threads") or cpu_count()


@cache
def _pool(threads: int, level: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, "zarrdask", _enter, (level + 1,))


def _enter(level: int) -> None:
    _HERE.level = level


# A forked process has none of its parent's threads.
after_fork(_pool.cache_clear)
