"""The lock of an archive: one process writes it at a time."""

import os
from contextlib import ExitStack

from zarrdask.errors import StoreError
from zarrdask.runtime.system import IS_WINDOWS
from zarrdask.storage.local.open_file import READ


def lock_archive(path: str, stack: ExitStack) -> bool:
    """Keep other processes from writing an archive, and return whether there is one.

    The file itself is locked, so that nothing is left if the process is killed. Windows
    would keep readers from a file that is locked: there, another file beside it is locked. Closing
    the stack releases the lock; a process that is forked from this one does not close it.

    Raises
    ------
    StoreError
        If another process is writing the archive.
    """
    if not os.path.exists(path):
        return False
    if IS_WINDOWS:
        _lock_beside(path, stack)
    else:
        _lock_file(path, stack)
    return True


def _lock_beside(path: str, stack: ExitStack) -> None:
    from filelock import FileLock, Timeout

    folder, name = os.path.split(path)
    lock = FileLock(os.path.join(folder, f".{name}.lock"), thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise _is_being_written(path) from error
    stack.callback(lock.release)


def _lock_file(path: str, stack: ExitStack) -> None:
    import fcntl

    file = stack.enter_context(os.fdopen(os.open(path, READ), "rb"))
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise _is_being_written(path) from error
    # A process that was forked since then has the descriptor, too: closing is not enough.
    stack.callback(fcntl.flock, file, fcntl.LOCK_UN)
    if not os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
        raise _is_being_written(path)  # another process replaced it after it was opened here


def _is_being_written(path: str) -> StoreError:
    return StoreError(
        "another process is writing this zip archive, which has one writer at a time; wait until "
        "it has ended, or let several processes write a directory, and zarrdask.copy it into an "
        "archive",
        key=path,
    )
