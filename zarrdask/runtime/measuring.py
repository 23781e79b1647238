"""Count requests, chunks and seconds where they are spent, for `zarrdask.measured`.

Nothing is counted unless `SINKS` has a function that receives counts: all that is done then is to
compare that variable with None.

An `Operation` is a read or a write of one array in one task. Threads that work for it count apart
from it, and add their counts when they are done, so that counting needs no lock.
"""

import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import Any, NamedTuple, Protocol, TypeVar

T = TypeVar("T")
Item = TypeVar("Item")

#: Numbers by name: requests by kind ("GET"), bytes, chunks and seconds; see `measurement`.
Counts = dict[str, float]


class Labels(NamedTuple):
    """What counts are about: the prefix of a task's name, the path of an array, and a store."""

    task: str
    array: str
    store: str


#: A function that receives counts.
Sink = Callable[[Labels, Counts], None]
#: The functions that receive counts; None if there are none.
SINKS: tuple[Sink, ...] | None = None
_CHANGING = threading.Lock()
_MERGING = threading.Lock()
#: In each thread, the attributes `tally` (of the present operation) and `is_waited_for` (whether
#: another thread waits for the requests of this one, and counts the seconds).
_THREAD = threading.local()


class HasUrl(Protocol):
    """A store, as far as counts need it."""

    @property
    def url(self) -> str: ...


class Tally:
    """The counts of one thread for an operation."""

    __slots__ = ("counts", "is_ended", "labels", "others")

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.counts: Counts = defaultdict(float)
        #: What other threads have counted.
        self.others: Counts = defaultdict(float)
        self.is_ended = False

    def merge(self, counts: Counts) -> None:
        """Add the counts of another thread, also after the operation has ended."""
        with _MERGING:
            if not self.is_ended:
                add(self.others, counts)
                return
        _report(self.labels, counts)

    def end(self) -> Counts:
        """Return all counts; later ones are reported as they come."""
        with _MERGING:
            self.is_ended = True
            add(self.counts, self.others)
        return self.counts


class Operation(AbstractContextManager[None]):
    """A context whose counts belong to one operation: they are reported when it ends."""

    def __init__(self, labels: Labels) -> None:
        self._tally = Tally(labels)

    def __enter__(self) -> None:
        self._outer = current()
        _THREAD.tally = self._tally
        self._span = _started_span(self._tally.labels)
        self._start = perf_counter()

    def __exit__(self, *_: object) -> None:
        seconds = perf_counter() - self._start
        _THREAD.tally = self._outer
        counts = self._tally.end()
        counts["operations"] += 1
        counts["elapsed"] += seconds
        if self._outer is not None:
            self._outer.counts["elapsed"] -= seconds
        if self._span is not None:
            self._span.set_attributes({f"zarrdask.{name}": n for name, n in counts.items()})
            self._span.end()
        _report(self._tally.labels, counts)


#: The context of an operation if nothing is measured.
UNMEASURED = nullcontext()


def current() -> Tally | None:
    """Return the counts of the operation of this thread, if it has one."""
    return getattr(_THREAD, "tally", None)


def begin(sink: Sink) -> None:
    """Have a function receive counts from now on."""
    global SINKS  # noqa: PLW0603
    with _CHANGING:
        SINKS = (*(SINKS or ()), sink)


def end(sink: Sink) -> None:
    """Have a function receive counts no longer."""
    global SINKS  # noqa: PLW0603
    with _CHANGING:
        SINKS = tuple(each for each in SINKS or () if each != sink) or None


def clear() -> None:
    """Have no function receive counts any longer."""
    global SINKS  # noqa: PLW0603
    SINKS = None


# ---- counting; the callers have found that `SINKS` is not None


def count(counts: Counts, store: HasUrl | None = None) -> None:
    """Add counts to the operation; outside of one, to a store."""
    tally = current()
    if tally is None:
        _report(Labels("", "", "" if store is None else store.url), counts)
        return
    add(tally.counts, counts)


def count_since(start: float, name: str, seconds_name: str) -> None:
    """Count one event, and the seconds since it began."""
    seconds, tally = perf_counter() - start, current()
    if tally is None:
        count({name: 1, seconds_name: seconds})
        return
    # Without a dict of its own: small chunks are decoded in a few microseconds.
    counts = tally.counts
    counts[name] += 1
    counts[seconds_name] += seconds


def request(kind: str, store: HasUrl, send: Callable[[], T], stored: int = 0) -> T:
    """Send a request, and count it with the bytes of its result, or those that it stores."""
    start, fetched, before = perf_counter(), 0, _sent()
    try:
        result = send()
        fetched = 0 if kind == "PUT" else nbytes_of(result)
        return result
    finally:
        if _sent() == before:
            seconds = perf_counter() - start
            count_request(kind, store, seconds, fetched=fetched, stored=stored)


def count_request(
    kind: str, store: HasUrl, seconds: float, *, fetched: int = 0, stored: int = 0
) -> None:
    """Count a request: where it is sent, not by the stores around the one that sends it."""
    _THREAD.sent = _sent() + 1
    count(_request_counts(kind, seconds, fetched=fetched, stored=stored), store)


def _request_counts(
    kind: str, seconds: float, number: int = 1, *, fetched: int = 0, stored: int = 0
) -> Counts:
    """Return the counts of requests of a kind."""
    counts: Counts = {kind: number}
    if fetched:
        counts["fetched"] = fetched
    if stored:
        counts["stored"] = stored
    if not getattr(_THREAD, "is_waited_for", False):
        counts["waiting"] = seconds
    return counts


def _sent() -> int:
    """Return how many requests this thread has counted."""
    return getattr(_THREAD, "sent", 0)


def requests(kind: str, store: HasUrl, values: Iterator[T]) -> Iterator[T]:
    """Yield values, each of which is the result of a request that is sent when it is needed."""
    end_of_values, number, fetched, seconds = object(), 0, 0, 0.0
    tally, _THREAD.sent = current(), _sent()
    try:
        while True:
            before, start = _THREAD.sent, perf_counter()
            value = next(values, end_of_values)
            if value is end_of_values:
                return
            if _THREAD.sent == before:
                seconds += perf_counter() - start
                is_bytes = isinstance(value, memoryview | bytes)
                fetched += len(value) if is_bytes else nbytes_of(value)  # type: ignore[arg-type]
                number += 1
                _THREAD.sent = before + 1
            yield value  # type: ignore[misc]
    finally:
        # All at once: a small file is read in a few microseconds.
        if number:
            counts = _request_counts(kind, seconds, number, fetched=fetched)
            if tally is not None and current() is not tally:
                tally.merge(counts)
            else:
                count(counts, store)


def waited(wait: Callable[[], object], name: str = "waiting") -> None:
    """Wait for requests of other threads, or for a lock, and count the seconds."""
    start = perf_counter()
    try:
        wait()
    finally:
        if not getattr(_THREAD, "is_waited_for", False):
            count({name: perf_counter() - start})


def nbytes_of(result: Any) -> int:
    """Return the size of a value, or of the `value` of an answer; 0 for another result."""
    value = getattr(result, "value", result)
    return len(value) if isinstance(value, bytes | bytearray | memoryview) else 0


# ---- other threads


def carried(work: Callable[[], T], *, is_waited_for: bool = False) -> Callable[[], T]:
    """Return work for another thread, which counts for the operation of this thread.

    `is_waited_for` says whether this thread waits for the work, which consists of requests.
    """
    if SINKS is None:
        return work
    outer = current()

    def measured() -> T:
        before = vars(_THREAD).copy()
        tally = None if outer is None else Tally(outer.labels)
        _THREAD.tally, _THREAD.is_waited_for = tally, is_waited_for
        try:
            return work()
        finally:
            vars(_THREAD).clear()
            vars(_THREAD).update(before)
            if outer is not None and tally is not None:
                outer.merge(tally.end())

    return measured


def carried_on_each(work: Callable[[Item], T]) -> Callable[[Item], T]:
    """Return work on items for other threads, which counts for the operation of this thread."""
    if SINKS is None:
        return work
    outer = current()

    def measured(item: Item) -> T:
        if current() is outer:  # It is done in the same thread.
            return work(item)
        tally = None if outer is None else Tally(outer.labels)
        before, _THREAD.tally = current(), tally
        try:
            return work(item)
        finally:
            _THREAD.tally = before
            if outer is not None and tally is not None:
                outer.merge(tally.end())

    return measured


# ---- reporting


def add(counts: Counts, others: Counts) -> None:
    """Add other counts to some, which are changed."""
    for name, number in others.items():
        counts[name] = counts.get(name, 0) + number


def _report(labels: Labels, counts: Counts) -> None:
    for sink in SINKS or ():
        sink(labels, counts)


def _started_span(labels: Labels) -> Any:
    """Start a span of OpenTelemetry, if the program has loaded its API; else return None."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    names = ("task", "array", "store")
    attributes = {f"zarrdask.{n}": each for n, each in zip(names, labels, strict=True)}
    return trace.get_tracer("zarrdask").start_span(labels.task, attributes=attributes)


def total(rows: Iterable[Counts]) -> Counts:
    """Return the sums of counts, by name."""
    summed: Counts = defaultdict(float)
    for counts in rows:
        add(summed, counts)
    return summed
