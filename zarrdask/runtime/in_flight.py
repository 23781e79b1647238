"""Requests in flight: one limit for a process, shared by all its tasks and threads.

A store with latency answers many requests at once as fast as one. Each request runs in a thread of
one pool, which sleeps while it waits, so that as many are in flight as ``zarrdask.requests`` says,
whichever task they belong to.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Generic, TypeVar

from zarrdask import config
from zarrdask.runtime import measuring
from zarrdask.runtime.request_threads import (
    Call,
    abandoned_event,
    is_request_thread,
    request_threads,
)
from zarrdask.runtime.system import after_fork
from zarrdask.runtime.thread_counts import THIS_THREAD

T = TypeVar("T")
Item = TypeVar("Item")

#: The largest number of encoded bytes that all requests in flight in this process hold, and results
#: that are not used yet. A call always has one request in flight, however large it is.
MAX_BYTES_IN_FLIGHT = 2**28

#: How many requests of a call are begun or wait in the pool, for each that may be in flight: so a
#: thread of the pool has its next request before the caller has taken the result of the last one.
_AHEAD = 2


class BytesInFlight:
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


BYTES_IN_FLIGHT = BytesInFlight()


class _Pending(Generic[T]):
    """The requests of one call that were started, and whose results were not taken."""

    def __init__(self) -> None:
        requests: int = config.get("requests")
        self._threads = request_threads(requests)
        #: How many requests may be started, or wait for a thread, at once.
        self._limit = _AHEAD * requests
        self._started: deque[tuple[Call[T], int]] = deque()
        self._abandoned = threading.Event()
        self._process = os.getpid()

    def __len__(self) -> int:
        return len(self._started)

    def start(self, call: Callable[[], T], size: int) -> bool:
        """Start a request that holds `size` bytes, and return whether there was room for it."""
        if len(self._started) >= self._limit:
            return False
        if size and not BYTES_IN_FLIGHT.take(size, must=not self._started):
            return False
        is_here = is_request_thread()
        if measuring.IS_ACTIVE and not is_here:
            call = measuring.carried(call, is_waited_for=True)
        request = Call(call, self._abandoned)
        try:
            if is_here:
                request.make()  # no other thread may be free
            else:
                self._threads.send(request)
        except BaseException:
            BYTES_IN_FLIGHT.release(size)  # no thread could be started
            raise
        self._started.append((request, size))
        return True

    def is_first_done(self) -> bool:
        """Whether the result of the earliest request can be taken without waiting."""
        return bool(self._started) and self._started[0][0].is_done()

    def take_first(self) -> T:
        """Wait for the earliest request, and return its result."""
        if measuring.IS_ACTIVE:
            THIS_THREAD.counts.waited(self._started[0][0].wait)
        else:
            self._started[0][0].wait()
        request, size = self._started.popleft()
        if size:
            BYTES_IN_FLIGHT.release(size)
        return request.take()

    def abandon(self) -> None:
        """Wait for the requests, and drop their results; failed ones are not repeated."""
        if not self._started or self._process != os.getpid():
            return  # A forked process has no threads that would finish them.
        self._abandoned.set()
        for request, _ in self._started:
            request.is_cancelled = True
        try:
            for request, _ in self._started:
                request.wait()
        finally:
            BYTES_IN_FLIGHT.release(sum(size for _, size in self._started))


class Requests:
    """Requests of one call: started one after another, up to ``zarrdask.requests`` in flight.

    Leaving the block waits for all of them, also after an error, so that no request continues
    unnoticed. The first error is raised then.

    Attributes
    ----------
    error : BaseException or None
        What a request raised, as soon as it is raised here.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self._pending = _Pending[Any]()

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
    pending = _Pending[T]()
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
    """Wait before a request is repeated, and return whether its result is still needed."""
    abandoned = abandoned_event()
    if abandoned is None:
        time.sleep(seconds)
        return True
    return not abandoned.wait(seconds)


# A forked process has none of its parent's requests.
after_fork(BYTES_IN_FLIGHT.reset)
