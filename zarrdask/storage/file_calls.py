"""System calls on files that not every platform has, with substitutes for those that lack them.

Where the platform has a call, the name here is that call, so that it costs nothing. macOS has no
``copy_file_range``, and older releases have no ``preadv``. Windows lacks all of these calls, and a
file that is open there can be neither replaced nor removed.
"""

import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from errno import EINVAL, EISDIR, EMLINK, ENOSYS, EOPNOTSUPP, EPERM, EXDEV
from typing import Any, TypeVar

from zarrdask.runtime.system import IS_WINDOWS

T = TypeVar("T")

#: Seconds for which Windows is asked again to change a file that is open elsewhere, and the pause
#: between two attempts.
PATIENCE, _PAUSE = 5.0, 0.005

#: The errors of file systems in which a file can't have a second name.
NO_LINKS = frozenset({EMLINK, ENOSYS, EOPNOTSUPP, EPERM})
#: The errors by which the kernel says that it can't copy between two files.
NO_COPY = frozenset({EINVAL, ENOSYS, EOPNOTSUPP, EPERM, EXDEV})

#: Locks for the positions of open files, by descriptor: reading moves the position.
_POSITION_LOCKS = [threading.Lock() for _ in range(64)]


def flags(*names: str) -> int:
    """Return the flags of ``os.open`` with these names, leaving out those the platform lacks.

    >>> flags("O_RDONLY", "O_NO_PLATFORM_HAS_THIS") == os.O_RDONLY
    True
    """
    combined = 0
    for name in names:
        combined |= getattr(os, name, 0)
    return combined


# ---- reading and writing at a position


def seek_and_read(fd: int, size: int, start: int) -> bytes:
    """Read like `os.pread`."""
    with _POSITION_LOCKS[fd % len(_POSITION_LOCKS)]:
        os.lseek(fd, start, os.SEEK_SET)
        return os.read(fd, size)


def seek_and_read_into(fd: int, views: Sequence[Any], start: int) -> int:
    """Read like `os.preadv`."""
    count = 0
    for view in views:
        data = pread(fd, len(view), start + count)
        view[: len(data)] = data
        count += len(data)
        if len(data) < len(view):
            break
    return count


def seek_and_write(fd: int, data: Any, start: int) -> int:
    """Write like `os.pwrite`."""
    with _POSITION_LOCKS[fd % len(_POSITION_LOCKS)]:
        os.lseek(fd, start, os.SEEK_SET)
        return os.write(fd, data)


#: As in `os`: read or write an open file at a position, independent of other threads.
pread: Callable[[int, int, int], bytes] = getattr(os, "pread", seek_and_read)
preadv: Callable[[int, Sequence[Any], int], int] = getattr(os, "preadv", seek_and_read_into)
pwrite: Callable[[int, Any, int], int] = getattr(os, "pwrite", seek_and_write)


def fill(fd: int, view: memoryview, start: int) -> int:
    """Fill a buffer from a position of a file, and return the number of bytes that were read."""
    count = 0
    # Linux returns at most 2 GiB from one call.
    while count < len(view):
        size = preadv(fd, (view[count:],), start + count)
        if not size:
            break
        count += size
    return count


# ---- names of files


def path_of_url(path: str) -> str:
    """Return the path of a file for the rest of its URL, where "/" precedes the drive of Windows.

    >>> path_of_url("/data/a.zarr"), path_of_url("localhost/data/a.zarr")
    ('/data/a.zarr', '/data/a.zarr')
    """
    path = path.removeprefix("localhost") if path.startswith("localhost/") else path
    return path.lstrip("/") if IS_WINDOWS and re.match(r"/+[A-Za-z]:", path) else path


def _patiently(call: Callable[[], T]) -> T:
    """Call a function again as long as a file is open elsewhere, for a limited time."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return call()
        except PermissionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE)


def _open_on_windows(path: str, flags: int, mode: int = 0o777) -> int:
    try:
        return os.open(path, flags, mode)
    except PermissionError as error:
        # Other platforms open a directory, and reading from it is what fails.
        if os.path.isdir(path):
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR), path) from error
    # The file is being replaced at this moment.
    return _patiently(lambda: os.open(path, flags, mode))


open_file: Callable[..., int] = _open_on_windows if IS_WINDOWS else os.open
"""Open a file, as ``os.open``; a directory raises `IsADirectoryError` at the latest when read."""


def replace(source: str, target: str) -> None:
    """Rename a file, replacing the target if it exists, or a directory, whose target must not.

    Windows does not replace a file while someone reads it: there, this waits for the readers.
    """
    if IS_WINDOWS:
        _patiently(lambda: os.replace(source, target))
    else:
        os.replace(source, target)
