"""Locks that exclude other processes of a user on this machine.

A lock is a file that exists as long as someone holds the lock or waits for it, so that others can
see it without asking for it.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from zarrdask.errors import StoreError
from zarrdask.runtime.system import IS_WINDOWS
from zarrdask.storage.locks.lock_files import check_lock_file, is_at, open_lock_file
from zarrdask.storage.locks.version_stamps import FileStamps, file_stamps

#: Seconds between two attempts to get a lock, on platforms that can't wait for it.
_POLL_INTERVAL = 0.005


def file_lock(path: str, number: int) -> AbstractContextManager[None]:
    """Return a context that holds the lock of a file, and renews a version stamp at its end.

    `number` identifies the object that is changed under the lock; see `file_stamps`. If the file
    can't be created or locked, a `StoreError` is raised.
    """
    return _polled_lock(path, number) if IS_WINDOWS else _waiting_lock(path, number)


@contextmanager
def _waiting_lock(path: str, number: int) -> Iterator[None]:
    from fcntl import LOCK_UN, flock

    fd, stamps = _locked(path)
    try:
        yield
    finally:
        try:
            with suppress(OSError):
                # If no stamp can be left, the file stays: it says the same.
                stamps.renew(number)
                os.unlink(path)
        finally:
            # A process forked in between has the descriptor, too: closing is not enough.
            flock(fd, LOCK_UN)
            os.close(fd)


def _locked(path: str) -> tuple[int, FileStamps]:
    from fcntl import LOCK_EX, flock

    while True:
        try:
            # A descriptor of its own, so that threads exclude each other, too.
            fd = open_lock_file(*os.path.split(path))
            try:
                flock(fd, LOCK_EX)
                if is_at(fd, path):
                    return fd, file_stamps(os.path.dirname(path))
            except BaseException:
                os.close(fd)
                raise
        except OSError as error:
            raise _failed(path, error) from error
        # The previous holder of the lock removed the file.
        os.close(fd)


@contextmanager
def _polled_lock(path: str, number: int) -> Iterator[None]:
    """Hold a lock where files can't be removed while they are open."""
    from filelock import FileLock

    # One for each use: threads exclude each other, too.
    lock = FileLock(path, thread_local=False, poll_interval=_POLL_INTERVAL)
    try:
        check_lock_file(path)
        stamps = file_stamps(os.path.dirname(path))
        lock.acquire()
    except OSError as error:
        raise _failed(path, error) from error
    try:
        yield
    finally:
        with suppress(OSError):
            stamps.renew(number)
        # This also removes the file, unless another process waits for the lock.
        lock.release()


def _failed(path: str, error: OSError) -> StoreError:
    return StoreError(
        f"cannot lock this against other processes: {error.strerror or error}; set "
        "zarrdask.lock-directory, in all processes that write, to a directory on a local disk "
        "that only you may write to",
        key=path,
        found=type(error).__name__,
    )
