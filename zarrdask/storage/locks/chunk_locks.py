"""Per-chunk locks: one read-modify-write of a stored object at a time.

A stored object (chunk or shard) that is written in part is read, changed and stored under a lock.
Whole objects are stored without a lock, which would slow down every write for the sake of a few.
Instead, a writer that has stored a whole object checks whether a partial write of it is under way,
or has ended in between. That partial write may have read the older value, so the writer waits for
the lock and stores the object again (`zarrdask.storage.locks.version_stamps`).

In stores with conditional writes (compare-and-swap), a partial write uses these, and needs no lock
of the cluster: the lock of this machine only avoids retries.

The name of a lock is the location of its object, so that all handles of an array share it. A lock
holds for the threads of this process, and for the processes of this user on this machine unless
only this process can see the store. Workers of a cluster also take a lock of
`zarrdask.parallel.execution.locks`.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from hashlib import blake2b
from typing import NamedTuple
from weakref import WeakValueDictionary

from zarrdask.runtime import measuring
from zarrdask.runtime.system import after_fork, renewed_after_fork
from zarrdask.runtime.thread_counts import THIS_THREAD
from zarrdask.storage.base import Store
from zarrdask.storage.locks.file_locks import file_lock
from zarrdask.storage.locks.lock_files import UnsafeDirectoryError, lock_directory
from zarrdask.storage.locks.version_stamps import ProcessStamps, Stamps, file_stamps

#: A function that returns the lock of a name.
Lock = Callable[[str], AbstractContextManager[object]]

#: The locks that threads of this process hold or wait for, by name.
_THREAD_LOCKS: "WeakValueDictionary[str, threading.Lock]" = WeakValueDictionary()
_MUTEX = renewed_after_fork(threading.Lock())
_STAMPS = ProcessStamps()


class Version(NamedTuple):
    """The lock, by its name or file, and the stamp of an object before all of it is stored."""

    lock: str
    number: int
    stamp: bytes


def canonical_location(store: Store, prefix: str) -> str:
    """Return where keys are stored: the same text for any store and prefix that lead there.

    >>> from zarrdask.storage.local.local_store import LocalStore
    >>> below = canonical_location(LocalStore("/data/g"), "a/")
    >>> below == canonical_location(LocalStore("/data"), "g/a/")
    True
    """
    directory = store.identity.directory
    if directory is None:
        return f"{store.url}/{prefix}"
    return f"{os.path.realpath(f'{directory}/{prefix}')}/"


class ChunkLocks:
    """The locks of the stored objects of a store.

    Parameters
    ----------
    store : Store
        The store of the objects.
    cluster_lock : Lock, optional
        A lock that a partial write also takes, to exclude the other machines of a cluster.
    """

    def __init__(self, store: Store, cluster_lock: Lock | None = None) -> None:
        self._cluster_lock = cluster_lock
        self._directory = lock_directory() if store.capabilities.shared else None
        self._stamps: Stamps = _STAMPS
        self._is_unsafe = False
        if self._directory is not None:
            try:
                self._stamps = file_stamps(self._directory)
            except OSError as error:
                # No process can lock files in this directory.
                self._is_unsafe = isinstance(error, UnsafeDirectoryError)

    @property
    def is_distributed(self) -> bool:
        """Whether a partial write also takes a lock of the cluster."""
        return self._cluster_lock is not None

    def hold(self, name: str) -> AbstractContextManager[object]:
        """Return the lock of an object, to be held while part of the object is changed.

        Raises
        ------
        StoreError
            On entry, if other processes can't be excluded.
        """
        return self._hold_both(name) if self._cluster_lock else self.hold_here(name)

    @contextmanager
    def _hold_both(self, name: str) -> Iterator[None]:
        # The lock of the cluster first: waiting for it must not keep this machine waiting.
        lock = self._cluster_lock(name)  # type: ignore[misc]
        with _measured(lock) if measuring.IS_ACTIVE else lock, self.hold_here(name):
            yield

    def version(self, name: str) -> Version:
        """Return the version of an object, to be compared after all of it was stored."""
        data = name.encode(errors="surrogateescape")
        if self._directory is None:
            lock, number = name, hash(data)
        else:
            digest = blake2b(data, digest_size=16).hexdigest()
            lock, number = f"{self._directory}/{digest}", int(digest[:8], 16)
        return Version(lock, number, self._stamps.read(number))

    def is_outdated(self, version: Version) -> bool:
        """Whether part of an object is being changed, or was since it had this version."""
        if self._directory is None:
            is_held = version.lock in _THREAD_LOCKS
        else:
            # No lock can be held in a directory of another user.
            is_held = not self._is_unsafe and os.path.lexists(version.lock)
        # In this order: a partial write renews the stamp before it gives back the lock.
        return is_held or self._stamps.read(version.number) != version.stamp

    def hold_here(self, name: str) -> AbstractContextManager[object]:
        """Return the lock of an object that excludes the writers on this machine only."""
        version = self.version(name)
        lock: AbstractContextManager[object]
        if self._directory is None:
            lock = _thread_lock(name, version.number)
        else:
            lock = file_lock(version.lock, version.number)
        return _measured(lock) if measuring.IS_ACTIVE else lock


@contextmanager
def _measured(lock: AbstractContextManager[object]) -> Iterator[None]:
    """Hold a lock, and count the seconds until it was acquired."""
    with ExitStack() as stack:
        THIS_THREAD.counts.waited(lambda: stack.enter_context(lock), "locked")
        yield


@contextmanager
def _thread_lock(name: str, number: int) -> Iterator[None]:
    with _MUTEX:
        lock = _THREAD_LOCKS.get(name)
        if lock is None:
            lock = _THREAD_LOCKS[name] = threading.Lock()
    with lock:
        try:
            yield
        finally:
            _STAMPS.renew(number)


# The threads of the parent process that hold these locks do not run in a forked one.
after_fork(_THREAD_LOCKS.clear)
