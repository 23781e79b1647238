"""Locks of stored units: who changes a part of one does so alone, of all writers that can tell.

A unit of which only a part is written is read, changed and stored; what others store meanwhile
would be lost. Names of locks are places, so all handles of an array have the same ones. They
exclude threads, and the processes of one machine and user; Dask workers on several machines have
another one beside (`zarrdask.graph.locks`).
"""

import fcntl
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from urllib.parse import unquote
from weakref import WeakValueDictionary
from zlib import crc32

from zarrdask import config
from zarrdask.errors import StoreError
from zarrdask.storage.base import Store

#: What locks a unit by name.
Lock = Callable[[str], AbstractContextManager[object]]

#: Names share so many files, so that these need not be removed, which can't be done safely.
_FILES = 1024
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
_MUTEX = threading.Lock()
_HELD: "WeakValueDictionary[str, threading.Lock]" = WeakValueDictionary()


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
        One that only this process sees needs no more than locks of its threads.
    among : Lock, optional
        Another lock, for those who change a part: among machines.

    Raises
    ------
    StoreError
        If the files to lock can't be made.
    """

    def __init__(self, store: Store, among: Lock | None = None) -> None:
        self._among = among
        self._directory = _directory(config.get("lock-directory")) if store.shared else None

    @contextmanager
    def changing(self, name: str) -> Iterator[None]:
        """Be the only writer of a unit."""
        if self._among is None:
            with self._locked(name, fcntl.LOCK_EX):
                yield
        else:
            with self._among(name), self._locked(name, fcntl.LOCK_EX):
                yield

    def replacing(self, name: str) -> AbstractContextManager[None]:
        """Store a unit as a whole while nobody changes a part of it."""
        return self._locked(name, fcntl.LOCK_SH)

    def _locked(self, name: str, mode: int) -> AbstractContextManager[None]:
        if self._directory is None:
            return _thread_lock(name)
        return _file_lock(f"{self._directory}/{stripe(name, _FILES):x}", mode)


def stripe(name: str, count: int) -> int:
    """Return the number of a name, the same one in all processes: several names may share it."""
    return crc32(name.encode(errors="surrogateescape")) % count


@contextmanager
def _thread_lock(name: str) -> Iterator[None]:
    with _MUTEX:
        lock = _HELD.get(name)
        if lock is None:
            lock = _HELD[name] = threading.Lock()
    with lock:
        yield


@contextmanager
def _file_lock(path: str, mode: int) -> Iterator[None]:
    # A descriptor of its own, so that threads exclude each other, too.
    fd = _opened(path)
    try:
        try:
            fcntl.flock(fd, mode)
        except OSError as error:
            raise _unusable(path, error) from error
        yield
    finally:
        # A process that was forked meanwhile has the descriptor, too: closing is not enough.
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)


def _opened(path: str) -> int:
    try:
        try:
            return os.open(path, _FLAGS, 0o600)
        except FileNotFoundError:  # the directory was tidied up
            os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
            return os.open(path, _FLAGS, 0o600)
    except OSError as error:
        raise _unusable(path, error) from error


@lru_cache
def _directory(chosen: str | None) -> str:
    """Return the directory of the files to lock."""
    if chosen:
        return chosen
    try:
        return os.path.join(tempfile.gettempdir(), f"zarrdask-{os.getuid()}")
    except OSError as error:
        raise _unusable("", error) from error


def _unusable(path: str, error: OSError) -> StoreError:
    return StoreError(
        "can't lock a unit against other processes; zarrdask.lock-directory tells where files "
        f"for that may be made: {error.strerror or error}",
        key=path or None,
        found=type(error).__name__,
    )


def _after_fork() -> None:
    # The locks that other threads of the parent held are held by nobody here.
    global _MUTEX  # noqa: PLW0603
    _MUTEX = threading.Lock()
    _HELD.clear()


os.register_at_fork(after_in_child=_after_fork)
