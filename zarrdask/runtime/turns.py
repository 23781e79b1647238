"""Let threads take turns when they decode small chunks, which is faster than doing so at once."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from time import perf_counter
from typing import TypeVar

from zarrdask.runtime.system import renewed_after_fork

T = TypeVar("T")

#: Is held by the thread whose turn it is. A small chunk may have smaller ones in it.
TURN = renewed_after_fork(threading.RLock())
#: Whether threads exclude each other while they run Python code: some builds do without a GIL.
_HAS_GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
#: In each thread, the attribute `has_turn`.
_THREAD = threading.local()

#: How many chunks a thread handles in a turn: at first, and if they take little time.
_SHORT_TURN, _LONG_TURN = 8, 64

#: The time in seconds after which a thread no longer waits for its turn: the thread that has it may
#: wait for something that this one holds, such as the lock of a chunk.
PATIENCE = 0.5
#: Whether a thread has waited that long in vain: until the turn ends, no other thread waits for it.
is_stuck = False

#: The size in bytes, decoded, below which a chunk is small.
SMALL_CHUNK_BYTES = 2**16


class Pace:
    """Whether chunks take so long that threads do not take turns."""

    is_slow = False


def has_turn() -> bool:
    """Whether this is the thread whose turn it is: it should not wait for other threads."""
    return getattr(_THREAD, "has_turn", False)


def in_turns(
    work: Callable[[Iterator[T]], int],
    items: Iterator[T],
    *,
    count: int,
    nbytes: int,
    slow: float = 100e-6,
    pace: Pace | None = None,
) -> None:
    """Do work on chunks; one thread at a time handles several if they are small.

    `work` does the work on the chunks of an iterator, and returns their number. `items` has `count`
    chunks of `nbytes` bytes, decoded. If one chunk takes more than `slow` seconds, threads do not
    take turns; `pace` is shared by all that do the same work.
    """
    # To read or write a small chunk takes a few short system calls, and to decode or encode it a
    # short call of a library. Each releases the GIL and must acquire it again, so that threads
    # which do this at the same time are slower than one after the other. But if each chunk takes
    # long, as on a network file system, all threads should wait at once.
    if count == 1 or nbytes >= SMALL_CHUNK_BYTES or not _HAS_GIL:
        work(items)
        return
    step, was_slow, pace = _SHORT_TURN, False, pace or Pace()
    while not pace.is_slow:
        with _turn():
            start = perf_counter()
            done = work(islice(items, step))
            seconds = perf_counter() - start
        if done < step:
            return
        is_slow = seconds > slow * done
        # Twice in a row: a single turn may be slow as it is the first to use some memory.
        if is_slow and was_slow:
            pace.is_slow = True
        step, was_slow = _SHORT_TURN if is_slow else _LONG_TURN, is_slow
    work(items)


@contextmanager
def _turn() -> Iterator[None]:
    """Wait for the turn of this thread, but not for ever."""
    global is_stuck
    turn, had_turn = TURN, has_turn()
    acquired = turn.acquire(timeout=0 if is_stuck else PATIENCE)
    is_stuck, _THREAD.has_turn = not acquired, acquired
    try:
        yield
    finally:
        _THREAD.has_turn = had_turn
        if acquired:
            turn.release()
