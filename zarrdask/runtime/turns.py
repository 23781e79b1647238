"""Threads that take turns with small pieces of work, as they are faster one after another."""

import threading
from collections.abc import Callable, Iterator
from itertools import islice
from time import perf_counter
from typing import TypeVar

from zarrdask.storage.system import after_fork

T = TypeVar("T")

#: Is held by the thread whose turn it is. A small chunk may have smaller ones in it.
_TURN = threading.RLock()

#: How many items a thread handles in a turn: at first, and if they take little time.
_FIRST_TURN, _LATER_TURN = 16, 256

#: The time in seconds for one item above which threads do not take turns.
_SLOW_SECONDS = 150e-6


def in_turns(work: Callable[[Iterator[T]], int], items: Iterator[T]) -> None:
    """Do work on items; one thread at a time handles several, unless that is slow.

    Parameters
    ----------
    work : callable
        Does the work on the items of an iterator, and returns their number.
    items : iterator
        The items.
    """
    # Reading a small chunk is a few short system calls, and decoding it a short call of a library.
    # Each releases the GIL and must acquire it again, so that threads which do this at the same
    # time are slower than one after the other. But if each chunk takes long, as on a network file
    # system, all threads should wait at once.
    step = _FIRST_TURN
    while True:
        with _TURN:
            start = perf_counter()
            count = work(islice(items, step))
            seconds = perf_counter() - start
        if count < step:
            return
        if seconds > _SLOW_SECONDS * count:
            work(items)
            return
        step = _LATER_TURN


def _after_fork() -> None:
    # The thread that held the lock does not exist in the forked process: it would never release it.
    global _TURN  # noqa: PLW0603
    _TURN = threading.RLock()


after_fork(_after_fork)
