"""Count requests, chunks and seconds where they are spent, for `zarrdask.measured`.

Nothing is counted unless `IS_ACTIVE`. Each thread adds to counters of its own, one for each task,
array and store, so that counting needs no lock: what a block has measured is the difference between
the sums of all threads at its end and at its beginning.
"""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from operator import attrgetter
from time import perf_counter
from typing import Any, NamedTuple, Protocol, TypeVar

from zarrdask.runtime import spans

T = TypeVar("T")
Item = TypeVar("Item")

#: Numbers by name: requests by kind ("GET"), bytes, chunks and seconds; see `measurement`.
Counts = dict[str, float]

#: The names of all numbers.
NAMES = (
    *("GET", "HEAD", "LIST", "PUT", "DELETE", "refused", "repeated", "fetched", "stored"),
    *("decoded", "encoded", "cache_hits", "waiting", "decoding", "encoding", "locked"),
    *("elapsed", "operations"),
)
#: Returns all numbers of a counter, in the order of the names.
_all_of: Callable[[Any], tuple[float, ...]] = attrgetter(*NAMES)
_MODULES = sys.modules


class Labels(NamedTuple):
    """The subject of counts: the prefix of a task's name, the path of an array, and a store."""

    task: str
    array: str
    store: str


#: A span of OpenTelemetry, and what was counted when it began.
_Span = tuple[Any, Counts]
#: A function that receives what was counted since its last call, when a read or a write ends.
Report = Callable[[Labels, Counts], None]
#: Whether anything is counted.
IS_ACTIVE = False
REPORTS: tuple[Report, ...] = ()
#: The number of blocks that measure.
_blocks = 0
# A finalizer may count for the first time in a thread that holds it.
_CHANGING = threading.RLock()
_HANDING_OVER = threading.Lock()


def add(counts: Counts, others: Counts) -> None:
    """Add other counts to some, which are changed."""
    for name, number in others.items():
        counts[name] = counts.get(name, 0) + number


def total(rows: Iterable[Counts]) -> Counts:
    """Return the sums of counts, by name."""
    summed = Counts()
    for counts in rows:
        add(summed, counts)
    return summed


def difference(later: Counts, earlier: Counts) -> Counts:
    """Return the counts since then, without zeros."""
    added = {name: number - earlier.get(name, 0) for name, number in later.items()}
    return {name: number for name, number in added.items() if number}


class HasUrl(Protocol):
    """A store, as far as counts need it."""

    @property
    def url(self) -> str: ...


class _Numbers:
    """All numbers, in slots, to which it takes least time to add."""

    __slots__ = NAMES

    GET: int
    PUT: int
    decoded: int
    decoding: float
    encoded: int
    encoding: float
    fetched: int
    stored: int
    waiting: float
    elapsed: float
    operations: int

    def add(self, name: str, number: float) -> None:
        """Add to the number with a name."""
        setattr(self, name, getattr(self, name) + number)


class Counter(_Numbers, AbstractContextManager[None]):
    """The counts of one thread for a task, an array and a store.

    It is also the context of a read or a write: what is counted within it belongs to it.
    """

    __slots__ = ("_reported", "labels", "open", "others", "thread")

    def __init__(self, labels: Labels, thread: "ThreadCounts") -> None:
        for name in NAMES:
            setattr(self, name, 0)
        self.labels, self.thread = labels, thread
        #: The number of reads, writes and parts of these that add to it now.
        self.open = 0
        #: The counts of other threads for a read or a write of this one, if that is reported.
        self.others: list[Counts] = []
        self._reported = _all_of(self)

    def __enter__(self) -> None:
        thread = self.thread
        span = self._span() if "opentelemetry.trace" in _MODULES else None
        self.open += 1
        if thread.held is not None and self not in thread.held:
            thread.held.append(self)
            self.open += 1
        thread.stack.append((thread.current, span, perf_counter()))
        thread.current = self

    def __exit__(self, *_: object) -> None:
        thread = self.thread
        outer, span, start = thread.stack.pop()
        seconds = perf_counter() - start
        thread.current = outer
        self.operations += 1
        self.elapsed += seconds
        if outer is not None:
            outer.elapsed -= seconds
        if span is None and (not REPORTS or thread.held is not None):
            self.open -= 1
            return
        others = self.close()
        if span is not None:
            started, before = span
            spans.end_span(started, total([difference(self.counts(), before), others]))
        self.report(others)

    def close(self) -> Counts:
        """End a read or a write, and return what other threads have counted for it."""
        with _HANDING_OVER:
            self.open -= 1
            others, self.others = total(self.others), []
        return others

    def _span(self) -> "_Span":
        return spans.start_span(self.labels.task, self.labels._asdict()), self.counts()

    def counts(self) -> Counts:
        """Return all numbers."""
        return dict(zip(NAMES, _all_of(self), strict=True))

    def unreported(self) -> Counts:
        """Return the counts since the last call."""
        before, self._reported = self._reported, _all_of(self)
        each = zip(NAMES, self._reported, before, strict=True)
        return {name: number - last for name, number, last in each if number != last}

    def report(self, others: Counts | None = None) -> None:
        """Report what was counted since the last report, and counts of other threads."""
        if not REPORTS:
            return
        counts = self.unreported()
        if others:
            add(counts, others)
        for report in REPORTS:
            report(self.labels, counts)

    def end_part(self, outer: "Counter") -> None:
        """End a part of a read or a write of another thread, which reports it if it goes on."""
        if not REPORTS and "opentelemetry.trace" not in _MODULES:
            self.open -= 1
            return
        with _HANDING_OVER:
            self.open -= 1
            if outer.open:
                outer.others.append(self.unreported())
        self.settle()

    def settle(self) -> None:
        """Report what was counted now if no read or write that goes on will report it."""
        if REPORTS and not self.open:
            self.report()


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
        self.stack: list[tuple[Counter | None, _Span | None, float]] = []
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


_THREADS: list[ThreadCounts] = []
#: The counts of threads that have ended.
_ENDED: dict[Labels, Counts] = {}


def _keep_ended() -> None:
    """Keep the counts of threads that have ended, but not their counters."""
    ended = [thread for thread in _THREADS if not thread.thread.is_alive()]
    for thread in ended:
        _THREADS.remove(thread)
        for labels, counter in thread.counters.items():
            add(_ENDED.setdefault(labels, {}), counter.counts())


class _Local(threading.local):
    """The counts of each thread, which are registered when they are first needed."""

    def __init__(self) -> None:
        self.counts = ThreadCounts()
        with _CHANGING:
            _keep_ended()
            _THREADS.append(self.counts)


LOCAL = _Local()

#: The context of a read or a write if nothing is measured.
UNMEASURED = nullcontext()


def operation(array: Any, verb: str, task: Any, labels: Callable[[str, Any], Labels]) -> Counter:
    """Return a context whose counts belong to a read or a write of an array in a task.

    Few objects stand for the array, so that these and the task are compared by identity.
    """
    thread = LOCAL.counts
    latest = thread.latest
    if latest is not None and latest[0] is array and latest[2] is task and latest[1] == verb:
        return latest[3]
    counter = thread.counter(labels(verb, task))
    thread.latest = array, verb, task, counter
    return counter


@contextmanager
def reported_together() -> Iterator[None]:
    """Report the counts of this thread once, at the end of a task, instead of for each access."""
    thread = LOCAL.counts
    if not REPORTS or thread.held is not None:
        yield
        return
    held = thread.held = []
    try:
        yield
    finally:
        thread.held = None
        for counter in held:
            counter.report(counter.close())


# ---- what is measured, and for whom


def begin(report: Report | None = None) -> None:
    """Count from now on, for a block or for a function that receives counts."""
    global REPORTS, _blocks  # noqa: PLW0603
    with _CHANGING:
        if report is None:
            _blocks += 1
        else:
            for counter in _counters():
                counter.unreported()
            REPORTS = (*REPORTS, report)
        _update()


def end(report: Report | None = None) -> None:
    """End what `begin` has begun."""
    global REPORTS, _blocks  # noqa: PLW0603
    with _CHANGING:
        if report is None:
            _blocks -= 1
        else:
            REPORTS = tuple(each for each in REPORTS if each != report)
        _update()


def clear() -> None:
    """Stop counting, and forget what was counted, as in a forked process."""
    global REPORTS, _blocks, _CHANGING, _HANDING_OVER
    _CHANGING, _HANDING_OVER = threading.RLock(), threading.Lock()
    REPORTS, _blocks = (), 0
    _ENDED.clear()
    LOCAL.counts = ThreadCounts()
    _THREADS[:] = [LOCAL.counts]
    _update()


def _update() -> None:
    global IS_ACTIVE  # noqa: PLW0603
    IS_ACTIVE = bool(_blocks or REPORTS)
    if not IS_ACTIVE:
        _ENDED.clear()
        for thread in _THREADS:
            if thread.current is None:
                thread.counters.clear()
                thread.latest = None


def totals() -> dict[Labels, Counts]:
    """Return the counts of all threads so far."""
    with _CHANGING:
        _keep_ended()
        rows = {labels: dict(counts) for labels, counts in _ENDED.items()}
        for counter in _counters():
            add(rows.setdefault(counter.labels, {}), counter.counts())
    return rows


def _counters() -> Iterator[Counter]:
    for thread in _THREADS:
        yield from [*thread.counters.values()]


# ---- other threads


def carried(work: Callable[[], T], *, is_waited_for: bool = False) -> Callable[[], T]:
    """Return work for another thread, which counts for what goes on in this thread.

    `is_waited_for` says whether this thread waits for the work, which consists of requests.
    """
    if not IS_ACTIVE:
        return work
    return partial(_carry, LOCAL.counts.current, work, is_waited_for=is_waited_for)


def carried_on_each(work: Callable[[Item], T]) -> Callable[[Item], T]:
    """Return work on items for other threads, which counts for what goes on in this thread."""
    if not IS_ACTIVE or (outer := LOCAL.counts.current) is None:
        return work
    return lambda item: _carry(outer, partial(work, item), is_waited_for=False)


def _carry(outer: Counter | None, work: Callable[[], T], *, is_waited_for: bool) -> T:
    thread = LOCAL.counts
    if outer is not None and outer.thread is thread:
        return work()
    before = thread.current, thread.is_waited_for
    counter = None if outer is None else thread.counter(outer.labels)
    thread.current, thread.is_waited_for = counter, is_waited_for
    if counter is not None:
        counter.open += 1
    try:
        return work()
    finally:
        thread.current, thread.is_waited_for = before
        if outer is not None and counter is not None:
            counter.end_part(outer)
