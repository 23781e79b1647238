"""Per-chunk locks: one read-modify-write of a stored object at a time.

A stored object (chunk or shard) that is written in part is read, changed and stored under a lock.
Whole objects are stored without a lock, which would slow down every write for the sake of a few.
Instead, a writer that has stored a whole object checks whether a partial write of it is under way,
or has ended meanwhile. That partial write may have read the older value, so the writer waits for
the lock and stores the object again (`zarrdask.runtime.version_stamps`).

The name of a lock is the location of its object, so that all handles of an array share it. A lock
holds for the threads of this process, and for the processes of this user on this machine unless
only this process can see the store. Workers of a cluster also take a lock of
`zarrdask.execution.locks`.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from fcntl import LOCK_EX, LOCK_UN, flock
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import unquote
from weakref import WeakValueDictionary

from zarrdask.errors import StoreError
from zarrdask.runtime.lock_files import UnsafeDirectoryError, is_at, lock_directory, open_lock_file
from zarrdask.runtime.version_stamps import FileTraces, HeldTraces, Traces, file_traces
from zarrdask.storage.base import Store

#: What locks a unit by name.
Lock = Callable[[str], AbstractContextManager[object]]

#: The locks that are held, or waited for, in this process.
_HELD: "WeakValueDictionary[str, threading.Lock]" = WeakValueDictionary()
_MUTEX = threading.Lock()
_TRACES = HeldTraces()


class Mark(NamedTuple):
    """What there was of a unit before it was stored: its lock, its number, and the last trace."""

    lock: str
    number: int
    trace: bytes


def place_of(store: Store, prefix: str) -> str:
    """Return where keys are, whatever store and prefix they are reached by.

    >>> from zarrdask.storage.local import LocalStore
    >>> place_of(LocalStore("/data/g"), "a/") == place_of(LocalStore("/data"), "g/a/")
    True
    """
    if store.uri.startswith("file://"):
        root = unquote(store.uri.removeprefix("file://"))
        return f"{os.path.realpath(f'{root}/{prefix}')}/"
    return f"{store.url}/{prefix}"


class UnitLocks:
    """The locks of the units in a store.

    Parameters
    ----------
    store : Store
        Where the units are.
    among : Lock, optional
        Another lock, for those who change a part: among machines.
    """

    def __init__(self, store: Store, among: Lock | None = None) -> None:
        self._among = among
        self._directory = lock_directory() if store.shared else None
        self._traces: Traces | None = _TRACES
        self._is_unsafe = False
        if self._directory is not None:
            try:
                self._traces = file_traces(self._directory)
            except OSError as error:
                # Nobody can lock files there either.
                self._traces = None
                self._is_unsafe = isinstance(error, UnsafeDirectoryError)

    @property
    def is_distributed(self) -> bool:
        """Whether partial writes also take a lock of the cluster."""
        return self._among is not None

    def changing(self, name: str) -> AbstractContextManager[object]:
        """Be the only one who changes a unit.

        Raises
        ------
        StoreError
            When entered, if other processes can't be kept away.
        """
        return self._changing(name) if self._among else self._here(name)

    @contextmanager
    def _changing(self, name: str) -> Iterator[None]:
        with self._among(name) if self._among else nullcontext(), self._here(name):
            yield

    def mark(self, name: str) -> Mark:
        """Return what is to be compared when a whole unit is stored without its lock."""
        data = name.encode(errors="surrogateescape")
        if self._directory is None:
            number = hash(data)
            return Mark(name, number, self._trace(number))
        digest = blake2b(data, digest_size=16)
        number = int.from_bytes(digest.digest()[:4])
        return Mark(f"{self._directory}/{digest.hexdigest()}", number, self._trace(number))

    def is_disturbed(self, mark: Mark) -> bool:
        """Whether someone on this machine is changing a part of a unit, or has since the mark."""
        # In this order: who gives the lock back has left a trace before.
        return self._is_held(mark.lock) or self._trace(mark.number) != mark.trace

    def is_changing(self, name: str) -> bool:
        """Whether someone on this machine is changing a unit, or was when that was cut short."""
        return self._is_held(self.mark(name).lock)

    def _is_held(self, lock: str) -> bool:
        if self._directory is None:
            return lock in _HELD
        # In a directory that is not the user's, nobody holds a lock, whatever is there.
        return not self._is_unsafe and os.path.lexists(lock)

    def _trace(self, number: int) -> bytes:
        return b"" if self._traces is None else self._traces.read(number)

    def _here(self, name: str) -> AbstractContextManager[object]:
        mark = self.mark(name)
        if self._directory is None:
            return _thread_lock(name, mark.number)
        return _file_lock(mark.lock, mark.number)


@contextmanager
def _thread_lock(name: str, number: int) -> Iterator[None]:
    with _MUTEX:
        lock = _HELD.get(name)
        if lock is None:
            lock = _HELD[name] = threading.Lock()
    with lock:
        try:
            yield
        finally:
            _TRACES.leave(number)


@contextmanager
def _file_lock(path: str, number: int) -> Iterator[None]:
    """Hold a file that is there as long as someone has or wants the lock."""
    fd, traces = _locked(path)
    try:
        yield
    finally:
        with suppress(OSError):
            # If no trace can be left, the file stays: it says the same.
            traces.leave(number)
            os.unlink(path)
        # A process that was forked meanwhile has the descriptor, too: closing is not enough.
        flock(fd, LOCK_UN)
        os.close(fd)


def _locked(path: str) -> tuple[int, FileTraces]:
    while True:
        try:
            # A descriptor of its own, so that threads exclude each other, too.
            fd = open_lock_file(*os.path.split(path))
            try:
                flock(fd, LOCK_EX)
                if is_at(fd, path):
                    return fd, file_traces(os.path.dirname(path))
            except BaseException:
                os.close(fd)
                raise
        except OSError as error:
            raise StoreError(
                f"cannot lock this against other processes: {error.strerror or error}; set "
                "zarrdask.lock-directory, in all processes that write, to a directory on a local "
                "disk that only you may write to",
                key=path,
                found=type(error).__name__,
            ) from error
        # Whoever had the lock removed the file.
        os.close(fd)


def _after_fork() -> None:
    # The locks that other threads of the parent held are held by nobody here.
    global _MUTEX  # noqa: PLW0603
    _MUTEX = threading.Lock()
    _HELD.clear()


os.register_at_fork(after_in_child=_after_fork)
