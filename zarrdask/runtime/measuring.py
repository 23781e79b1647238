"""Count requests, chunks and seconds where they are spent, for `zarrdask.measured`.

Nothing is counted unless `IS_ACTIVE`. Each thread adds to counters of its own, one for each task,
array and store, so that counting needs no lock: what a block has measured is the difference between
the sums of all threads at its end and at its beginning.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import TypeVar

from zarrdask.runtime import counters, thread_counts
from zarrdask.runtime.counters import Counter, Counts, Labels, Report, add
from zarrdask.runtime.thread_counts import ENDED, THIS_THREAD, THREADS, ThreadCounts, keep_ended

T = TypeVar("T")
Item = TypeVar("Item")

#: Whether anything is counted.
IS_ACTIVE = False
#: The number of blocks that measure.
_blocks = 0

#: The context of a read or a write if nothing is measured.
UNMEASURED = nullcontext()


# ---- what is measured, and for whom


def begin(report: Report | None = None) -> None:
    """Count from now on, for a block or for a function that receives counts."""
    global _blocks  # noqa: PLW0603
    with thread_counts.CHANGING:
        if report is None:
            _blocks += 1
        else:
            for counter in _counters():
                counter.unreported()
            counters.REPORTS = (*counters.REPORTS, report)
        _update()


def end(report: Report | None = None) -> None:
    """End what `begin` has begun."""
    global _blocks  # noqa: PLW0603
    with thread_counts.CHANGING:
        if report is None:
            _blocks -= 1
        else:
            counters.REPORTS = tuple(each for each in counters.REPORTS if each != report)
        _update()


def clear() -> None:
    """Stop counting, and forget what was counted, as in a forked process."""
    global _blocks  # noqa: PLW0603
    thread_counts.CHANGING = threading.RLock()
    counters.renew()
    _blocks = 0
    ENDED.clear()
    THIS_THREAD.counts = ThreadCounts()
    THREADS[:] = [THIS_THREAD.counts]
    _update()


def _update() -> None:
    global IS_ACTIVE  # noqa: PLW0603
    IS_ACTIVE = bool(_blocks or counters.REPORTS)
    if not IS_ACTIVE:
        ENDED.clear()
        for thread in THREADS:
            if thread.current is None:
                thread.counters.clear()
                thread.latest = None


def totals() -> dict[Labels, Counts]:
    """Return the counts of all threads so far."""
    with thread_counts.CHANGING:
        keep_ended()
        rows = {labels: dict(counts) for labels, counts in ENDED.items()}
        for counter in _counters():
            add(rows.setdefault(counter.labels, {}), counter.counts())
    return rows


def _counters() -> Iterator[Counter]:
    for thread in THREADS:
        yield from [*thread.counters.values()]


# ---- other threads


def carried(work: Callable[[], T], *, is_waited_for: bool = False) -> Callable[[], T]:
    """Return work for another thread, which counts for what goes on in this thread.

    `is_waited_for` says whether this thread waits for the work, which consists of requests.
    """
    if not IS_ACTIVE:
        return work
    return partial(_carry, THIS_THREAD.counts.current, work, is_waited_for=is_waited_for)


def carried_on_each(work: Callable[[Item], T]) -> Callable[[Item], T]:
    """Return work on items for other threads, which counts for what goes on in this thread."""
    if not IS_ACTIVE or (outer := THIS_THREAD.counts.current) is None:
        return work
    return lambda item: _carry(outer, partial(work, item), is_waited_for=False)


def _carry(outer: Counter | None, work: Callable[[], T], *, is_waited_for: bool) -> T:
    thread = THIS_THREAD.counts
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
