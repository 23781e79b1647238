"""Count requests, chunks and waits; callers check first whether anything is measured.

The hot paths count in batches and time only some values of each; all else is counted one by one.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from time import perf_counter
from typing import Any, TypeVar

from zarrdask.runtime.measuring import LOCAL, Counter, HasUrl

T = TypeVar("T")
Item = TypeVar("Item")

#: One chunk is timed per so many decoded bytes: a small chunk takes about as long as reading a
#: clock a few times.
_TIMED_BYTES = 2**20
#: One in so many small values that are read from a local disk is timed.
_VALUES_PER_CLOCK = 32
_END: Any = object()


def count(name: str, number: int = 1, store: HasUrl | None = None) -> None:
    """Add to a count of the current read or write; outside of both, of a store."""
    counter = LOCAL.counts.current_for(store)
    counter.add(name, number)
    counter.settle()


def count_decoded(number: int, seconds: float) -> None:
    """Count chunks that were decoded."""
    thread = LOCAL.counts
    counter = thread.current or thread.current_for(None)
    counter.decoded += number
    counter.decoding += seconds
    if not counter.open:
        counter.settle()


def count_encoded(seconds: float) -> None:
    """Count a chunk that was encoded."""
    thread = LOCAL.counts
    counter = thread.current or thread.current_for(None)
    counter.encoded += 1
    counter.encoding += seconds
    if not counter.open:
        counter.settle()


def leave_out(number: int) -> None:
    """Do not count some chunks of a batch as decoded."""
    LOCAL.counts.left_out += number


def decode_batch(work: Callable[[Iterator[Item]], int], items: Iterator[Item], nbytes: int) -> int:
    """Do work that decodes chunks of `nbytes` bytes, and count them; return their number.

    Only some small chunks are timed, and the others are assumed to take as long.
    """
    stride = _TIMED_BYTES // (nbytes or 1) or 1
    thread, number, seconds = LOCAL.counts, 0, 0.0
    before = thread.left_out
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
            decoded = number - (thread.left_out - before)
            count_decoded(decoded, seconds if decoded == number else seconds * decoded / number)
    return number


def decode_one(work: Callable[[Iterator[Item]], int], items: Iterator[Item]) -> None:
    """Do work that waits for one chunk and decodes it, and count it."""
    thread = LOCAL.counts
    counter = thread.current or thread.current_for(None)
    before, waited, start = thread.left_out, counter.waiting, perf_counter()
    work(items)
    if thread.left_out == before:
        counter.decoded += 1
        # The chunk may have been requested when it was needed.
        counter.decoding += perf_counter() - start - (counter.waiting - waited)
        if not counter.open:
            counter.settle()


def request(kind: str, store: HasUrl, send: Callable[[], T], stored: int = 0) -> T:
    """Send a request, and count it with the bytes of its result, or those that it stores."""
    thread, fetched = LOCAL.counts, 0
    before, start = thread.sent, perf_counter()
    try:
        result = send()
        if kind == "GET":
            fetched = nbytes_of(result)
        return result
    finally:
        if thread.sent == before:
            seconds = perf_counter() - start
            thread.sent += 1
            counter = thread.current or thread.current_for(store)
            if kind == "PUT":  # The only kind that small operations send often, besides GET.
                counter.PUT += 1
                counter.stored += stored
            else:
                counter.add(kind, 1)
                counter.fetched += fetched
            if not thread.is_waited_for:
                counter.waiting += seconds
            if not counter.open:
                counter.settle()


def requests(kind: str, store: HasUrl, values: Iterator[T]) -> Iterator[T]:
    """Yield values, each of which is the result of a request that is sent when it is needed.

    Requests that an inner store has counted are not counted again.
    """
    thread, number, fetched, seconds = LOCAL.counts, 0, 0, 0.0
    counter, end_of_values = thread.current_for(store), object()
    try:
        while True:
            before, start = thread.sent, perf_counter()
            value = next(values, end_of_values)
            if value is end_of_values:
                return
            if thread.sent == before:
                seconds += perf_counter() - start
                fetched += nbytes_of(value)
                number += 1
                thread.sent += 1
            yield value  # type: ignore[misc]
    finally:
        if number:
            counter = _here(counter)
            counter.add(kind, number)
            counter.fetched += fetched
            if not counter.thread.is_waited_for:
                counter.waiting += seconds
            if not counter.open:
                counter.settle()


def reads(store: HasUrl, values: Iterator[Any]) -> Iterator[Any]:
    """Yield values that are read from a local disk, one by one; some of them are timed."""
    thread, number, timed, fetched, seconds = LOCAL.counts, 0, 0, 0, 0.0
    counter = thread.current or thread.current_for(store)
    try:
        while True:
            start = perf_counter()
            value = next(values, _END)
            if value is _END:
                return
            seconds += perf_counter() - start
            timed += 1
            number += 1
            thread.sent += 1
            if value is not None:
                fetched += len(value)
            yield value
            for value in islice(values, _VALUES_PER_CLOCK - 1):
                number += 1
                thread.sent += 1
                if value is not None:
                    fetched += len(value)
                yield value
    finally:
        if number:
            if counter.thread is not LOCAL.counts:
                counter = _here(counter)
            counter.GET += number
            counter.fetched += fetched
            if not counter.thread.is_waited_for:
                counter.waiting += seconds if timed == number else seconds * number / timed
            if not counter.open:
                counter.settle()


def read_one(store: HasUrl, values: Iterator[Any]) -> Iterator[Any]:
    """Return the only value, which is read from a local disk now."""
    thread, start = LOCAL.counts, perf_counter()
    value = next(values)
    counter = thread.current or thread.current_for(store)
    if not thread.is_waited_for:
        counter.waiting += perf_counter() - start
    thread.sent += 1
    counter.GET += 1
    if value is not None:
        counter.fetched += len(value)
    if not counter.open:
        counter.settle()
    return iter((value,))


def count_reads(store: HasUrl, number: int, seconds: float, fetched: int) -> None:
    """Count reads of parts of a file."""
    thread = LOCAL.counts
    thread.sent += number
    counter = thread.current or thread.current_for(store)
    counter.GET += number
    counter.fetched += fetched
    if not thread.is_waited_for:
        counter.waiting += seconds
    if not counter.open:
        counter.settle()


def _here(counter: Counter) -> Counter:
    """Return a counter, or the one of this thread with the same labels."""
    thread = LOCAL.counts
    return counter if counter.thread is thread else thread.counter(counter.labels)


def waited(wait: Callable[[], object], name: str = "waiting") -> None:
    """Wait for requests of other threads, or for a lock, and count the seconds."""
    thread, start = LOCAL.counts, perf_counter()
    try:
        wait()
    finally:
        if not thread.is_waited_for:
            counter = thread.current_for(None)
            counter.add(name, perf_counter() - start)
            counter.settle()


def nbytes_of(result: Any) -> int:
    """Return the size of a value, or of the `value` of an answer; 0 for another result."""
    value = getattr(result, "value", result)
    return len(value) if isinstance(value, bytes | bytearray | memoryview) else 0
