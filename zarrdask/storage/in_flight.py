"""Requests in flight: one limit for a process, shared by all its tasks and threads.

A store with latency answers many requests at once as fast as one. Each request runs in a thread of
one pool, which sleeps while it waits, so that as many are in flight as ``zarrdask.requests`` says,
whichever task they belong to.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache, partial
from typing import Any, TypeVar

from zarrdask import config
from zarrdask.storage.system import after_fork

T = TypeVar("T")
Item = TypeVar("Item")

#: The largest number of encoded bytes that one call has read, or requested, ahead of their use.
MAX_READ_BYTES_IN_FLIGHT = 2**28
#: The largest number of encoded bytes of one task that are on their way to a store with latency:
#: fewer, as the decoded values of a block are in memory, too.
MAX_WRITTEN_BYTES_IN_FLIGHT = 2**26

_THREAD = threading.local()
#: How many requests of a call are begun or wait in the pool, for each that may be in flight, if
#: their sizes are known: so a thread of the pool has its next request before the caller has taken
#: the result of the last one.
_AHEAD = 2


class Requests:
    """Requests of one call: started one after another, up to ``zarrdask.requests`` in flight.

    Leaving the block waits for all of them, also after an error, so that nothing goes on behind
    the caller's back. The first error is raised then.

    Parameters
    ----------
    max_bytes : int
        How many bytes the requests in flight may hold together. A request that holds more is
        sent when it is the only one.

    Attributes
    ----------
    error : BaseException or None
        What a request raised, as soon as it is raised here.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._requests = config.get("requests")
        self.error: BaseException | None = None
        self._held = 0
        self._pending: deque[tuple[Future[Any], int]] = deque()
        self._abandoned = threading.Event()

    def send(self, call: Callable[[], Any], size: int = 0) -> None:
        """Start a request that holds `size` bytes until it is done.

        Raises
        ------
        Exception
            What an earlier request raised.
        """
        while self._pending and (
            self._pending[0][0].done()
            or self._held + size > self.max_bytes
            or len(self._pending) >= _AHEAD * self._requests
        ):
            self._finish_first()
        self._pending.append((_submit(call, self._abandoned, self._requests), size))
        self._held += size

    def _finish_first(self) -> None:
        future, size = self._pending.popleft()
        self._held -= size
        try:
            future.result()
        except BaseException as error:
            self.error = error
            raise

    def __enter__(self) -> "Requests":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            while kind is None and self._pending:
                self._finish_first()
        finally:
            _abandon([future for future, _ in self._pending], self._abandoned)


def in_flight(
    call: Callable[[Item], T],
    items: Iterable[Item],
    *,
    size: Callable[[Item], int] | None = None,
    max_bytes: int = MAX_READ_BYTES_IN_FLIGHT,
) -> Iterator[T]:
    """Yield the result of a request for each item in turn, with later ones already in flight.

    A window slides over the items: while the caller works on one result, others are on their way.
    If the items are themselves made from results of `in_flight`, both windows slide together.

    Parameters
    ----------
    call : callable
        Makes the request for an item.
    items : iterable
        The items. The request for the only item of a list is made in this thread.
    size : callable, optional
        Returns how many bytes the result for an item has at most.
    max_bytes : int
        How many bytes the results in the window may have together. A larger one is alone in it.
    """
    if isinstance(items, list) and len(items) == 1:
        yield call(items[0])  # another thread would make it no sooner
        return
    window: deque[tuple[Future[T], int]] = deque()
    abandoned = threading.Event()
    requests, held = config.get("requests"), 0
    limit = requests * (1 if size is None else _AHEAD)
    try:
        for item in items:
            nbytes = 0 if size is None else size(item)
            while window and (len(window) >= limit or held + nbytes > max_bytes):
                future, of_first = window.popleft()
                held -= of_first
                yield future.result()
            window.append((_submit(partial(call, item), abandoned, requests), nbytes))
            held += nbytes
        while window:
            yield window.popleft()[0].result()
    finally:
        _abandon([future for future, _ in window], abandoned)


def _abandon(futures: Collection["Future[Any]"], abandoned: threading.Event) -> None:
    """Wait for requests, the results of which nobody asks for; they are not repeated."""
    abandoned.set()
    for future in futures:
        future.cancel()
    wait(futures)


def pause(seconds: float) -> bool:
    """Wait before a request is repeated, and return whether its result is still asked for."""
    abandoned: threading.Event | None = getattr(_THREAD, "abandoned", None)
    if abandoned is None:
        time.sleep(seconds)
        return True
    return not abandoned.wait(seconds)


def _submit(call: Callable[[], T], abandoned: threading.Event, requests: int) -> "Future[T]":
    """Start a request; in a thread of the pool itself it is made at once, not waited for.

    Parameters
    ----------
    call : callable
        Makes the request.
    abandoned : threading.Event
        Is set when the result is not asked for any more.
    requests : int
        The setting ``zarrdask.requests``.
    """
    if getattr(_THREAD, "is_request", False):
        done: Future[T] = Future()
        try:
            done.set_result(call())
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is asked for
            done.set_exception(error)
        return done

    def run() -> T:
        _THREAD.abandoned = abandoned
        return call()

    return _pool(requests).submit(run)


@cache
def _pool(size: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(size, "zarrdask-request", _enter)


def _enter() -> None:
    _THREAD.is_request = True


# A forked process has none of its parent's threads.
after_fork(_pool.cache_clear)
