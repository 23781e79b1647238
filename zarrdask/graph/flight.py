"""Blocks that are being written by threads of this process, so that a write can be stopped.

When a task fails, those that other threads run go on. What they store must not come after what is
done then, be it cleaning up or another attempt.
"""

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from zarrdask.errors import StoreError

_CHANGED = threading.Condition()
_RUNNING: Counter[str] = Counter()
_STOPPED = set[str]()


@contextmanager
def writing(name: str) -> Iterator[None]:
    """Write a block of the write that is called so.

    Raises
    ------
    StoreError
        If that was stopped.
    """
    with _CHANGED:
        if name in _STOPPED:
            raise StoreError("another block could not be written: the rest was given up")
        _RUNNING[name] += 1
    try:
        yield
    finally:
        with _CHANGED:
            _RUNNING[name] -= 1
            if not _RUNNING[name]:
                del _RUNNING[name]
                _CHANGED.notify_all()


def stop(name: str) -> None:
    """Let no block of a write begin any more, and wait for those that have begun."""
    with _CHANGED:
        _STOPPED.add(name)
        _CHANGED.wait_for(lambda: name not in _RUNNING)


def _after_fork() -> None:
    # The threads of the parent write nothing here.
    global _CHANGED  # noqa: PLW0603
    _CHANGED = threading.Condition()
    _RUNNING.clear()


os.register_at_fork(after_in_child=_after_fork)
