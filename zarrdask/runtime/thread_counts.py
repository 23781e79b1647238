"""What a thread counts: requests, chunks and waits. Callers check whether anything is measured.

The hot paths count in batches and time only some values of each; all else is counted one by one.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from time import perf_counter
from typing import Any, Protocol, TypeVar

from zarrdask.runtime import counters
from zarrdask.runtime.counters import Counter, Counts, Labels, Span, add

T = TypeVar("T")
Item = TypeVar("Item")

#: One chunk is timed per so many decoded bytes: a small chunk takes about as long as reading a
#: clock a few times.
_TIMED_BYTES = 2**20
#: One in so many small values that are read from a local disk is timed.
_VALUES_PER_CLOCK = 32
_END: Any = object()


class HasUrl(Protocol):
    """A store, as far as counts need it."""

    @property
    def url(self) -> str: ...


class ThreadCounts:
    """The counters of one thread, and what it is doing."""

    __slots__ = (
        "counters",
        "current",
        "held",
        "is_waited_for",
        "latest",
        "left_out",
        "sent",
        "stack",
        "thread",
    )

    def __init__(self) -> None:
        self.thread = threading.current_thread()
        self.counters = dict[Labels, Counter]()
        #: The counter of the latest read or write, and what it was found by.
        self.latest: tuple[Any, str, Any, Counter] | None = None
        #: The counter of the read or write that goes on; with those around it, in the stack.
        self.current: Counter | None = None
        self.stack: list[tuple[Counter | None, Span | None, float]] = []
        #: The counters that are reported together when a task ends; None outside of such a task.
        self.held: list[Counter] | None = None
        #: How many requests were counted, so that the stores around one that sends a request can
        #: see that it was counted.
        self.sent = 0
        #: How many chunks of batches were not decoded: missing chunks, and chunks in a cache.
        self.left_out = 0
        #: Whether another thread waits for the requests of this one, and counts the seconds.
        self.is_waited_for = False

    def counter(self, labels: Labels) -> Counter:
        """Return the counter of a task, an array and a store."""
        found = self.counters.get(labels)
        if found is None:
            found = self.counters[labels] = Counter(labels, self)
        return found

    def current_for(self, store: HasUrl | None) -> Counter:
        """Return the counter of the current read or write; outside of one, the store's."""
        if self.current is not None:
            return self.current
        labels = "", "", "" if store is None else store.url
        return self.counters.get(labels) or self.counter(Labels(*labels))  # type: ignore[call-overload]

    def operation(
        self, array: Any, verb: str, task: Any, labels: Callable[[str, Any], Labels]
    ) -> Counter:
        """Return a context whose counts belong to a read or a write of an array in a task.

        Few objects stand for the array, so that these and the task are compared by identity.
        """
        latest = self.latest
        if latest is not None and latest[0] is array and latest[2] is task and latest[1] == verb:
            return latest[3]
        counter = self.counter(labels(verb, task))
        self.latest = array, verb, task, counter
        return counter

    @contextmanager
    def reported_together(self) -> Iterator[None]:
        """Report the counts of this thread once, at the end of a task, not for each access."""
        if not counters.REPORTS or self.held is not None:
            yield
            return
        held = self.held = []
        try:
            yield
        finally:
            self.held = None
            for counter in held:
                counter.report(counter.close())

    def count(self, name: str, number: int = 1, store: HasUrl | None = None) -> None:
        """Add to a count of the current read or write; outside of both, of a store."""
        counter = self.current_for(store)
        counter.numbers[name] += number
        counter.settle()

    # ---- chunks

    def count_decoded(self, number: int, seconds: float) -> None:
        """Count chunks that were decoded."""
        counter = self.current or self.current_for(None)
        counter.numbers["decoded"] += number
        counter.numbers["decoding"] += seconds
        counter.settle()

    def count_encoded(self, seconds: float) -> None:
        """Count a chunk that was encoded."""
        counter = self.current or self.current_for(None)
        counter.numbers["encoded"] += 1
        counter.numbers["encoding"] += seconds
        counter.settle()

    def decode_batch(
        self, work: Callable[[Iterator[Item]], int], items: Iterator[Item], nbytes: int
    ) -> int:
        """Do work that decodes chunks of `nbytes` bytes, and count them; return their number.

        Only some small chunks are timed, and the others are assumed to take as long.
        """
        stride = _TIMED_BYTES // (nbytes or 1) or 1
        number, seconds, before = 0, 0.0, self.left_out
        try:
            for item in items:
                start = perf_counter()
                work(iter((item,)))
                timed = perf_counter() - start
                rest = work(islice(items, stride - 1)) if stride > 1 else 0
                number += 1 + rest
                seconds += timed * (1 + rest)
                if rest < stride - 1:
                    break
        finally:
            if number:
                decoded = number - (self.left_out - before)
                self.count_decoded(
                    decoded, seconds if decoded == number else seconds * decoded / number
                )
        return number

    def decode_one(self, work: Callable[[Iterator[Item]], int], items: Iterator[Item]) -> None:
        """Do work that waits for one chunk and decodes it, and count it."""
        counter = self.current or self.current_for(None)
        numbers = counter.numbers
        before, waited, start = self.left_out, numbers["waiting"], perf_counter()
        work(items)
        if self.left_out == before:
            numbers["decoded"] += 1
            # The chunk may have been requested when it was needed.
            numbers["decoding"] += perf_counter() - start - (numbers["waiting"] - waited)
            counter.settle()

    # ---- requests

    def request(self, kind: str, store: HasUrl, send: Callable[[], T], stored: int = 0) -> T:
        """Send a request, and count it with the bytes of its result, or those that it stores."""
        fetched, before, start = 0, self.sent, perf_counter()
        try:
            result = send()
            if kind == "GET":
                fetched = nbytes_of(result)
            return result
        finally:
            if self.sent == before:
                seconds = perf_counter() - start
                self.sent += 1
                counter = self.current or self.current_for(store)
                counter.numbers["stored"] += stored
                counter.sent(kind, 1, fetched, seconds)

    def requests(self, store: HasUrl, values: Iterator[T]) -> Iterator[T]:
        """Yield values, each of which is the result of a request that is sent when it is needed.

        Requests that an inner store has counted are not counted again.
        """
        number, fetched, seconds = 0, 0, 0.0
        counter = self.current_for(store)
        try:
            while True:
                before, start = self.sent, perf_counter()
                value = next(values, _END)
                if value is _END:
                    return
                if self.sent == before:
                    seconds += perf_counter() - start
                    fetched += nbytes_of(value)
                    number += 1
                    self.sent += 1
                yield value
        finally:
            if number:
                _here(counter).sent("GET", number, fetched, seconds)

    def reads(self, store: HasUrl, values: Iterator[Any]) -> Iterator[Any]:
        """Yield values that are read from a local disk, one by one; some of them are timed."""
        number, timed, fetched, seconds = 0, 0, 0, 0.0
        counter = self.current or self.current_for(store)
        try:
            while True:
                start = perf_counter()
                value = next(values, _END)
                if value is _END:
                    return
                seconds += perf_counter() - start
                timed += 1
                number += 1
                self.sent += 1
                if value is not None:
                    fetched += len(value)
                yield value
                for value in islice(values, _VALUES_PER_CLOCK - 1):
                    number += 1
                    self.sent += 1
                    if value is not None:
                        fetched += len(value)
                    yield value
        finally:
            if number:
                seconds = seconds if timed == number else seconds * number / timed
                _here(counter).sent("GET", number, fetched, seconds)

    def read_one(self, store: HasUrl, values: Iterator[Any]) -> Iterator[Any]:
        """Return the only value, which is read from a local disk now."""
        start = perf_counter()
        value = next(values)
        self.count_read(store, perf_counter() - start, 0 if value is None else len(value))
        return iter((value,))

    def count_read(self, store: HasUrl, seconds: float, fetched: int) -> None:
        """Count a read of a value, or of a part of a file."""
        self.sent += 1
        (self.current or self.current_for(store)).sent("GET", 1, fetched, seconds)

    def waited(self, wait: Callable[[], object], name: str = "waiting") -> None:
        """Wait for requests of other threads, or for a lock, and count the seconds."""
        start = perf_counter()
        try:
            wait()
        finally:
            if not self.is_waited_for:
                counter = self.current_for(None)
                counter.numbers[name] += perf_counter() - start
                counter.settle()


def nbytes_of(result: Any) -> int:
    """Return the size of a value, or of the `value` of an answer; 0 for another result."""
    value = getattr(result, "value", result)
    return len(value) if isinstance(value, bytes | bytearray | memoryview) else 0


def _here(counter: Counter) -> Counter:
    """Return a counter, or the one of this thread with the same labels."""
    thread = THIS_THREAD.counts
    return counter if counter.thread is thread else thread.counter(counter.labels)


#: Guards the list of threads. A finalizer may count for the first time in a thread that holds it.
CHANGING = threading.RLock()
THREADS: list[ThreadCounts] = []
#: The counts of threads that have ended.
ENDED: dict[Labels, Counts] = {}


def keep_ended() -> None:
    """Keep the counts of threads that have ended, but not their counters."""
    ended = [thread for thread in THREADS if not thread.thread.is_alive()]
    for thread in ended:
        THREADS.remove(thread)
        for labels, counter in thread.counters.items():
            add(ENDED.setdefault(labels, {}), counter.counts())


class _Local(threading.local):
    """The counts of each thread, which are registered when they are first needed."""

    def __init__(self) -> None:
        self.counts = ThreadCounts()
        with CHANGING:
            keep_ended()
            THREADS.append(self.counts)


THIS_THREAD = _Local()
