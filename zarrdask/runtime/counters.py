"""Numbers that are counted for a task, an array and a store, and when they are reported."""

import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from zarrdask.runtime import spans

if TYPE_CHECKING:
    from zarrdask.runtime.thread_counts import ThreadCounts

#: Numbers by name: requests by kind ("GET"), bytes, chunks and seconds; see `measurement`.
Counts = dict[str, float]

#: The names of all numbers.
NAMES = (
    *("GET", "HEAD", "LIST", "PUT", "DELETE", "refused", "repeated", "fetched", "stored"),
    *("decoded", "encoded", "cache_hits", "waiting", "decoding", "encoding", "locked"),
    *("elapsed", "operations"),
)
_MODULES = sys.modules


class Labels(NamedTuple):
    """The subject of counts: the prefix of a task's name, the path of an array, and a store."""

    task: str
    array: str
    store: str


#: A span of OpenTelemetry, and what was counted when it began.
Span = tuple[Any, Counts]
#: A function that receives what was counted since its last call, when a read or a write ends.
Report = Callable[[Labels, Counts], None]
#: The functions that receive reports.
REPORTS: tuple[Report, ...] = ()
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


class Counter(AbstractContextManager[None]):
    """The counts of one thread for a task, an array and a store.

    It is also the context of a read or a write: what is counted within it belongs to it.
    """

    __slots__ = ("_reported", "labels", "numbers", "open", "others", "thread")

    def __init__(self, labels: Labels, thread: "ThreadCounts") -> None:
        self.labels, self.thread = labels, thread
        self.numbers: Counts = dict.fromkeys(NAMES, 0)
        #: The number of reads, writes and parts of these that add to it now.
        self.open = 0
        #: The counts of other threads for a read or a write of this one, if that is reported.
        self.others: list[Counts] = []
        self._reported = self.counts()

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
        self.numbers["operations"] += 1
        self.numbers["elapsed"] += seconds
        if outer is not None:
            outer.numbers["elapsed"] -= seconds
        if span is None and (not REPORTS or thread.held is not None):
            self.open -= 1
            return
        others = self.close()
        if span is not None:
            started, before = span
            spans.end_span(started, total([difference(self.counts(), before), others]))
        self.report(others)

    def sent(self, kind: str, number: int, fetched: int, seconds: float) -> None:
        """Count requests of a kind, unless another thread waits for them and counts the seconds."""
        numbers = self.numbers
        numbers[kind] += number
        numbers["fetched"] += fetched
        if not self.thread.is_waited_for:
            numbers["waiting"] += seconds
        self.settle()

    def close(self) -> Counts:
        """End a read or a write, and return what other threads have counted for it."""
        with _HANDING_OVER:
            self.open -= 1
            others, self.others = total(self.others), []
        return others

    def _span(self) -> Span:
        return spans.start_span(self.labels.task, self.labels._asdict()), self.counts()

    def counts(self) -> Counts:
        """Return all numbers."""
        return self.numbers.copy()

    def unreported(self) -> Counts:
        """Return the counts since the last call."""
        before, self._reported = self._reported, self.counts()
        return difference(self._reported, before)

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


def renew() -> None:
    """Report to nobody, as in a forked process."""
    global REPORTS, _HANDING_OVER
    REPORTS, _HANDING_OVER = (), threading.Lock()
