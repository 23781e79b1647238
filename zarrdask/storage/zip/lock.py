"""The lock of an archive: one process writes it at a time."""

import os
from contextlib import suppress

from zarrdask.errors import StoreError
from zarrdask.storage.system import IS_WINDOWS, flags

_READ = flags("O_RDONLY", "O_BINARY")


class ArchiveLock:
    """An archive that no other process can write.

    Parameters
    ----------
    fd : int
        The archive, opened for reading.

    Notes
    -----
    The lock is that of the file itself, so that nothing is left if the process is killed. Windows
    would keep readers from a file that is locked, and replaces no file that is open. There, the
    lock is another file (`_LockBeside`).
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def close(self) -> None:
        """Close the archive. Here, the lock ends with that."""
        with suppress(OSError):
            os.close(self.fd)
        self.fd = -1

    def release(self) -> None:
        """Let other processes write the archive."""
        import fcntl

        # A process that was forked meanwhile has the descriptor, too: closing is not enough.
        fcntl.flock(self.fd, fcntl.LOCK_UN)
        self.close()


class _LockBeside(ArchiveLock):
    """The same by a file beside the archive, which is removed afterwards."""

    def __init__(self, path: str) -> None:
        from filelock import FileLock, Timeout

        folder, name = os.path.split(path)
        self._lock = FileLock(os.path.join(folder, f".{name}.lock"), thread_local=False)
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise _is_being_written(path) from error
        try:
            super().__init__(os.open(path, _READ))
        except BaseException:
            self._lock.release()
            raise

    def release(self) -> None:
        self.close()
        self._lock.release()


def lock_archive(path: str) -> ArchiveLock | None:
    """Lock an archive, so that no other process writes it; None if there is no archive.

    Raises
    ------
    StoreError
        If another process is writing it.
    OSError
        If it can't be opened.
    """
    try:
        return _LockBeside(path) if IS_WINDOWS else _lock_file(path)
    except FileNotFoundError:
        return None


def _lock_file(path: str) -> ArchiveLock:
    import fcntl

    while True:
        fd = os.open(path, _READ)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(fd), os.stat(path)):
                return ArchiveLock(fd)
        except BlockingIOError as error:
            os.close(fd)
            raise _is_being_written(path) from error
        except BaseException:
            os.close(fd)
            raise
        # Another process replaced the archive after it was opened here.
        os.close(fd)


def _is_being_written(path: str) -> StoreError:
    return StoreError(
        "another process is writing this zip archive; an archive has one writer", key=path
    )
