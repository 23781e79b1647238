"""Abort a write: no further block of it is stored once an error has been raised.

When a task fails, other threads of this process are still writing blocks. They must not store
anything after the caller has seen the error, when it may already be cleaning up or trying again.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from zarrdask.errors import StoreError
from zarrdask.runtime.system import after_fork, renewed_after_fork
from zarrdask.runtime.turns import Pace

_CHANGED = renewed_after_fork(threading.Condition())


class Write:
    """The blocks of one write that threads of this process are storing.

    Use `write_named`, so that all tasks of a write share one instance.
    """

    def __init__(self) -> None:
        self._running = 0
        self._aborted = False
        #: The unique names by which its markers and claims in stores say that they are its own.
        self.names = set[str]()
        #: The version stamp of the array's documents, after they were compared with those expected.
        self.compared: str | None = None
        #: When that was, by the clock of this process.
        self.compared_at = 0.0
        #: The pace of the threads that store small blocks.
        self.pace = Pace()

    @contextmanager
    def block(self) -> Iterator[None]:
        """Store a block within this context.

        Raises
        ------
        StoreError
            If the write was aborted.
        """
        with _CHANGED:
            if self._aborted:
                raise StoreError("the write was aborted, as another of its blocks failed")
            self._running += 1
        try:
            yield
        finally:
            with _CHANGED:
                self._running -= 1
                _CHANGED.notify_all()

    @property
    def is_running(self) -> bool:
        """Whether a block is being stored now."""
        return self._running > 0

    def abort(self) -> None:
        """Let no further block begin, and wait for those that are being stored."""
        with _CHANGED:
            self._aborted = True
            _CHANGED.wait_for(lambda: not self._running)


#: Writes by name. A write stays here only as long as one of its tasks does.
_WRITES: WeakValueDictionary[str, Write] = WeakValueDictionary()


def write_named(name: str) -> Write:
    """Return the write of this name: the same one for all its tasks in this process."""
    with _CHANGED:
        write = _WRITES.get(name)
        if write is None:
            write = _WRITES[name] = Write()
        return write


def is_writing(name: str) -> bool:
    """Whether this process stores a block of a write whose markers or claims have a name."""
    with _CHANGED:
        writes = list(_WRITES.values())
    return any(name in write.names and write.is_running for write in writes)


def _after_fork() -> None:
    # The threads of the parent process do not run in this one.
    for write in list(_WRITES.values()):
        write._running = 0


after_fork(_after_fork)
