"""The threads that make the requests of this process.

A `Future` of the standard library takes about a fifth of the CPU time of a request for a small
chunk. Less is needed here: one caller waits for each request, and takes its result once.
"""

import atexit
import threading
from _thread import allocate_lock
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from queue import SimpleQueue
from typing import Generic, TypeVar

from zarrdask.runtime.system import after_fork

T = TypeVar("T")

_THREAD = threading.local()


class Call(Generic[T]):
    """A call that makes a request in a thread of the pool, and whose result is taken once.

    Parameters
    ----------
    call : callable
        Makes the request.
    abandoned : threading.Event
        Is set when the result is no longer needed.

    Attributes
    ----------
    abandoned : threading.Event
        The same.
    is_cancelled : bool
        Whether the request is not to be made if that has not begun.
    """

    __slots__ = ("_call", "_error", "_pending", "_result", "abandoned", "is_cancelled")

    def __init__(self, call: Callable[[], T], abandoned: threading.Event) -> None:
        self._call, self.abandoned, self.is_cancelled = call, abandoned, False
        self._result: T | None = None
        self._error: BaseException | None = None
        #: Held until the request is done.
        self._pending = allocate_lock()
        self._pending.acquire()

    def make(self) -> None:
        """Make the request in this thread."""
        if not self.is_cancelled:
            try:
                self._result = self._call()
            except BaseException as error:  # noqa: BLE001 - it is raised where the result is taken
                self._error = error
        self._pending.release()

    def is_done(self) -> bool:
        """Whether the result can be taken without waiting."""
        return not self._pending.locked()

    def wait(self) -> None:
        """Wait until the request is done."""
        with self._pending:
            pass

    def take(self) -> T:
        """Wait for the result, and return it, or raise the error of the request."""
        self.wait()
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # it refers to the frame of this call
        return self._result  # type: ignore[return-value]


class RequestThreads:
    """Up to `size` threads; one is started when there are more requests than threads."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._queue: SimpleQueue[Call[object] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        #: How many requests wait, or are being made.
        self._unfinished = 0

    def send(self, request: Call[T]) -> None:
        """Have a request made as soon as a thread is free; if there is none, make it here."""
        with self._lock:
            count = len(self._threads)
            if count < self._size and count <= self._unfinished:
                # As a daemon it does not keep the process from ending; see `finish`.
                thread = threading.Thread(
                    target=self._work, name=f"zarrdask-request_{count}", daemon=True
                )
                with suppress(RuntimeError):  # the system has no more threads, or Python ends
                    thread.start()
                    self._threads.append(thread)
            if self._threads:
                self._unfinished += 1
                self._queue.put(request)  # type: ignore[arg-type]
                return
        request.make()

    def _work(self) -> None:
        _THREAD.is_request = True
        while (request := self._queue.get()) is not None:
            # Requests that this one makes itself, in this thread, are abandoned with it.
            _THREAD.abandoned = request.abandoned
            request.make()
            del request  # and with it the result, which may be large
            with self._lock:
                self._unfinished -= 1

    def finish(self) -> None:
        """Wait until all requests are done: a thread must not be within one as Python ends.

        Later requests, such as by other functions that run at the end, have no threads.
        """
        with self._lock:
            threads, self._threads, self._size = self._threads, [], 0
            for _ in threads:
                self._queue.put(None)
        for thread in threads:
            thread.join()


@cache
def request_threads(size: int) -> RequestThreads:
    """Return the pool of this process for a setting of ``zarrdask.requests``."""
    threads = RequestThreads(size)
    atexit.register(threads.finish)
    return threads


def is_request_thread() -> bool:
    """Whether this thread makes requests."""
    return getattr(_THREAD, "is_request", False)


def abandoned_event() -> threading.Event | None:
    """Return the event that is set when the request of this thread is no longer needed."""
    return getattr(_THREAD, "abandoned", None)


# A forked process has none of its parent's threads and requests.
after_fork(request_threads.cache_clear)
