"""What tasks of a rewrite work with: memory that the next one takes over, and threads."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from math import prod
from queue import SimpleQueue
from typing import Any, TypeVar

import numpy as np

from zarrdask.grids.base import Shape

T = TypeVar("T")
R = TypeVar("R")

# What tasks work with, as far as none does now: of so many at a time, with so many threads.
_SLOTS: dict[tuple[int, int], "SimpleQueue[Slot]"] = {}
_MUTEX = threading.Lock()


class Slot:
    """What a task works with; the next one takes it over.

    Parameters
    ----------
    threads : int
        How many work on a task at a time.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._memory: dict[str | int, np.ndarray] = {}
        self._pool: ThreadPoolExecutor | None = None

    def array(self, user: str | int, shape: Shape, dtype: np.dtype[Any]) -> np.ndarray:
        """Return an array in memory that the task before may have used: fresh pages take time.

        Parameters
        ----------
        user : str or int
            Who uses it, in this task.
        """
        if dtype.hasobject:
            return np.empty(shape, dtype)
        size = prod(shape) * dtype.itemsize
        if user not in self._memory or len(self._memory[user]) < size:
            self._memory.pop(user, None)  # before there is more
            self._memory[user] = np.empty(size, np.uint8)
        return self._memory[user][:size].view(dtype).reshape(shape)

    def each(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Do the work on each item; when this returns, or raises, all that was begun has ended."""
        if self.threads == 1:
            return [work(item) for item in items]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="zarrdask-pass")
        futures = [self._pool.submit(work, item) for item in items]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()
            wait(futures)

    def __del__(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False)


def slots(count: int, threads: int) -> "SimpleQueue[Slot]":
    """Return what so many tasks work with."""
    key = count, threads
    with _MUTEX:
        if key not in _SLOTS:
            # What another pass worked with must not stay beside it.
            _SLOTS.clear()
            _SLOTS[key] = SimpleQueue()
            for _ in range(count):
                _SLOTS[key].put(Slot(threads))
        return _SLOTS[key]


def release() -> None:
    """Give back what tasks kept for the next ones."""
    with _MUTEX:
        _SLOTS.clear()
