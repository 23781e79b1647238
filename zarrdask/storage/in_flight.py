"""Requests in flight: one limit for a process, shared by all its tasks and threads.

A store with latency answers many requests at once as fast as one. Each request runs in a thread of
one pool, which sleeps while it waits, so that as many are in flight as ``zarrdask.requests`` says,
whichever task they belong to.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache, partial
from typing import Any, Generic, TypeVar

from zarrdask import config
from zarrdask.storage.system import after_fork

T = TypeVar("T")
Item = TypeVar("Item")

#: The largest number of encoded bytes that all requests in flight in this process hold, and results
#: that are not used yet. A call always has one request in flight, however large it is.
MAX_BYTES_IN_FLIGHT = 2**28

_THREAD = threading.local()
#: How many requests of a call are begun or wait in the pool, for each that may be in flight, if
#: their sizes are known: so a thread of the pool has its next request before the caller has taken
#: the result of the last one.
_AHEAD = 2


class _Bytes:
    """The number of bytes that requests in flight hold, in all threads of this process."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin without any request."""
        self._lock = threading.Lock()
        self._held = 0

    def take(self, size: int, *, must: bool) -> bool:
        """Take a share of `MAX_BYTES_IN_FLIGHT`, and return whether it was left, or `must` be."""
        with self._lock:
            is_taken = must or self._held + size <= MAX_BYTES_IN_FLIGHT
            self._held += size if is_taken else 0
            return is_taken

    def release(self, size: int) -> None:
        """Give back a share."""
        with self._lock:
            self._held -= size


_BYTES = _Bytes()


class _Pending(Generic[T]):
    """The requests of one call that were started, and whose results were not taken.

    Parameters
    ----------
    requests : int
        The setting ``zarrdask.requests``.
    limit : int
        How many requests may be started, or wait in the pool, at once.
    """

    def __init__(self, requests: int, limit: int) -> None:
        self._requests, self._limit = requests, limit
        self._started: deque[tuple[Future[T], int]] = deque()
        self._abandoned = threading.Event()

    def __len__(self) -> int:
        return len(self._started)

    def start(self, call: Callable[[], T], size: int) -> bool:
        """Start a request that holds `size` bytes, and return whether there was room for it."""
        if len(self._started) >= self._limit:
            return False
        if size and not _BYTES.take(size, must=not self._started):
            return False
        try:
            future = _submit(call, self._abandoned, self._requests)
        except BaseException:
            _BYTES.release(size)  # no thread could be started
            raise
        self._started.append((future, size))
        return True

    def is_first_done(self) -> bool:
        """Whether the result of the earliest request can be taken without waiting."""
        return bool(self._started) and self._started[0][0].done()

    def take_first(self) -> T:
        """Wait for the earliest request, and return its result."""
        future, size = self._started.popleft()
        try:
            return future.result()
        finally:
            if size:
                _BYTES.release(size)

    def abandon(self) -> None:
        """Wait for requests, the results of which nobody asks for; they are not repeated."""
        self._abandoned.set()
        futures = [future for future, _ in self._started]
        for future in futures:
            future.cancel()
        try:
            wait(futures)
        finally:
            _BYTES.release(sum(size for _, size in self._started))


class Requests:
    """Requests of one call: started one after another, up to ``zarrdask.requests`` in flight.

    Leaving the block waits for all of them, also after an error, so that nothing goes on behind
    the caller's back. The first error is raised then.

    Attributes
    ----------
    error : BaseException or None
        What a request raised, as soon as it is raised here.
    """

    def __init__(self) -> None:
        requests = config.get("requests")
        self.error: BaseException | None = None
        self._pending = _Pending[Any](requests, _AHEAD * requests)

    def send(self, call: Callable[[], Any], size: int = 0) -> None:
        """Start a request that holds `size` bytes until it is done.

        Raises
        ------
        Exception
            What an earlier request raised.
        """
        while self._pending.is_first_done():
            self._finish_first()
        while not self._pending.start(call, size):
            self._finish_first()

    def _finish_first(self) -> None:
        try:
            self._pending.take_first()
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
            self._pending.abandon()


def window(
    call: Callable[[Item], T],
    items: Iterable[Item],
    *,
    size: Callable[[Item], int] | None = None,
) -> Iterator[T]:
    """Yield the result of a request for each item in turn, with later ones already in flight.

    A window slides over the items: while the caller works on one result, others are on their way.
    If the items are themselves made from results of `window`, both windows slide together.

    Parameters
    ----------
    call : callable
        Makes the request for an item.
    items : iterable
        The items. The request for the only item of a list is made in this thread.
    size : callable, optional
        Returns how many bytes the result for an item has at most.
    """
    if isinstance(items, list) and len(items) == 1:
        yield call(items[0])  # another thread would make it no sooner
        return
    requests = config.get("requests")
    pending = _Pending[T](requests, requests * (1 if size is None else _AHEAD))
    try:
        for item in items:
            request, nbytes = partial(call, item), 0 if size is None else size(item)
            while not pending.start(request, nbytes):
                yield pending.take_first()
        while pending:
            yield pending.take_first()
    finally:
        pending.abandon()


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


# A forked process has none of its parent's threads and requests.
after_fork(_pool.cache_clear)
after_fork(_BYTES.reset)
