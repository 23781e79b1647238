"""Run work in threads of pools that all calls in this process share."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import Any, NamedTuple, TypeVar

from zarrdask import config
from zarrdask.indexing.projection import Projection
from zarrdask.runtime.progress import Show, progress
from zarrdask.storage.system import after_fork, cpu_count

T = TypeVar("T")

#: The number of parts for each thread if the progress is shown: so many steps has a bar at least.
_SHOWN_PARTS = 16
#: In the threads of a pool, the attribute `level`: the number of pools that wait for this pool.
_THREAD = threading.local()


def in_parts(
    work: Callable[[Projection], T], cuts: Projection, threads: int | None, *, per_thread: int = 4
) -> list[T]:
    """Do work on stored objects, divided among threads.

    Parameters
    ----------
    work : callable
        Does the work on part of the cuts.
    cuts : Projection
        The stored objects and their requested parts.
    threads : int, optional
        The number of threads; by default that of the setting ``zarrdask.threads``.
    per_thread : int, optional
        The number of parts for each thread. With several, all threads end at about the same time.
        With 1, requests to a store with latency are not held up by the end of a part.

    Returns
    -------
    list
        The results of all parts.
    """
    count = len(cuts.indices)
    if threads == 1 or count <= 1:
        return [work(cuts)]
    threads = _number(threads)
    size = max(1, -(-count // (threads * per_thread)))
    pieces = [cuts.some(start, start + size) for start in range(0, count, size)]
    return on_each(work, pieces, threads)


class Watched(NamedTuple):
    """Work whose progress is shown: a word for it, where it is shown, and its size in bytes."""

    label: str
    show: Show
    nbytes: int


def in_shown_parts(
    work: Callable[[Projection], T], cuts: Projection, threads: int | None, watched: Watched
) -> list[T]:
    """Do work on stored objects as `in_parts` does, and show the progress."""
    label, show, nbytes = watched
    count = len(cuts.indices)
    with progress(count, label, show, nbytes=nbytes, leave=False) as shown:

        def counted(part: Projection) -> T:
            result = work(part)
            shown.advance(len(part.indices))
            return result

        return in_parts(counted, cuts, threads, per_thread=_SHOWN_PARTS)


def on_each(work: Callable[[Any], T], items: Iterable[Any], threads: int | None) -> list[T]:
    """Do work on each item, in threads.

    Parameters
    ----------
    work : callable
        Does the work on an item.
    items : iterable
        The items.
    threads : int, optional
        The number of threads; by default that of the setting ``zarrdask.threads``.

    Returns
    -------
    list
        The results in the order of the items.
    """
    if threads == 1:
        return [work(item) for item in items]
    # A thread of a pool that waited for work in the same pool could wait forever.
    pool = _pool(_number(threads), getattr(_THREAD, "level", 0))
    futures = [pool.submit(work, item) for item in items]
    # Wait for all of them, even if one fails: no work may go on after this function returns.
    wait(futures)
    return [future.result() for future in futures]


def _number(threads: int | None) -> int:
    return threads or config.get("threads") or cpu_count()


@cache
def _pool(threads: int, level: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, "zarrdask", _enter, (level + 1,))


def _enter(level: int) -> None:
    _THREAD.level = level


# The threads of the parent process do not run in a forked process.
after_fork(_pool.cache_clear)
