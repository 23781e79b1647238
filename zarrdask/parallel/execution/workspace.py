"""Workspaces of rewriting tasks: memory and threads, which are reused by later tasks."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from math import prod
from queue import SimpleQueue
from typing import Any, TypeVar

import numpy as np

from zarrdask.runtime.system import after_fork, renewed_after_fork
from zarrdask.runtime.threads import on_each

T = TypeVar("T")
R = TypeVar("R")

#: Idle workspaces, by the number of simultaneous tasks and of threads of a task.
_SLOTS: dict[tuple[int, int], "SimpleQueue[Slot]"] = {}
_MUTEX = renewed_after_fork(threading.Lock())


class Slot:
    """The memory and the threads of a task, which a later task uses again."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._memory: dict[str | int, np.ndarray] = {}
        self._pool: ThreadPoolExecutor | None = None

    def array(self, purpose: str | int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        """Return an array, in memory that an earlier task may have used.

        The memory for a purpose, a name in the task, is used by one array at a time.
        """
        if dtype.hasobject:
            return np.empty(shape, dtype)
        size = prod(shape) * dtype.itemsize
        if purpose not in self._memory or len(self._memory[purpose]) < size:
            self._memory.pop(purpose, None)  # release the old memory before allocating more
            self._memory[purpose] = np.empty(size, np.uint8)
        return self._memory[purpose][:size].view(dtype).reshape(shape)

    def each(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Do work on each item. All work has ended when this returns or raises an error."""
        if self._pool is None and self.threads > 1:
            # Its threads end when the workspace is no longer used.
            self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="zarrdask-pass")
        return on_each(work, items, self.threads, self._pool)


def slots(count: int, threads: int) -> "SimpleQueue[Slot]":
    """Return the queue of workspaces for a number of simultaneous tasks, and of their threads."""
    key = count, threads
    with _MUTEX:
        if key not in _SLOTS:
            # The memory of the workspaces of an earlier pass must not be kept.
            _SLOTS.clear()
            _SLOTS[key] = SimpleQueue()
            for _ in range(count):
                _SLOTS[key].put(Slot(threads))
        return _SLOTS[key]


def release() -> None:
    """Release the idle workspaces."""
    with _MUTEX:
        _SLOTS.clear()


# The threads of the parent process, which the workspaces wait for, do not run in a forked one.
after_fork(_SLOTS.clear)
