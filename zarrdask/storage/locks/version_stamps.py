"""Version stamps: detect a concurrent partial write of a stored object without locking.

A partial write renews the stamp of its object, with a random value, before it gives back the lock.
If a writer of a whole object sees the same stamp before and after it stores the object, and then
no lock, no partial write has read the older value and stored it afterwards. Objects share 4096
stamps; a stamp that another object renewed costs at most an unnecessary second write.
"""

import os
from secrets import token_bytes
from typing import Protocol
from weakref import finalize

from zarrdask.storage.file_calls import pread, pwrite
from zarrdask.storage.locks.lock_files import is_at, open_lock_file

_STAMP_COUNT = 4096
_STAMP_BYTES = 8
#: The name of the file of stamps. Processes that use another name do not see each other's stamps.
_FILE_NAME = "traces"


class Stamps(Protocol):
    """The version stamps of stored objects, by the numbers of the objects."""

    def read(self, number: int) -> bytes:
        """Return the stamp of an object."""

    def renew(self, number: int) -> None:
        """Replace the stamp of an object by another one.

        Raises
        ------
        OSError
            If that is not possible.
        """


class ProcessStamps:
    """Version stamps that the threads of this process share."""

    def __init__(self) -> None:
        self._stamps = [b""] * _STAMP_COUNT

    def read(self, number: int) -> bytes:
        return self._stamps[number % _STAMP_COUNT]

    def renew(self, number: int) -> None:
        self._stamps[number % _STAMP_COUNT] = token_bytes(_STAMP_BYTES)


class FileStamps:
    """Version stamps that all processes with one directory of lock files share.

    They are in an open file, which is closed when this object is no longer used.
    """

    # The file is not mapped to memory: if it is truncated, or the disk is full, the process would
    # be killed.

    def __init__(self, fd: int) -> None:
        self.fd = fd
        finalize(self, os.close, fd)

    def read(self, number: int) -> bytes:
        return pread(self.fd, _STAMP_BYTES, number % _STAMP_COUNT * _STAMP_BYTES)

    def renew(self, number: int) -> None:
        pwrite(self.fd, token_bytes(_STAMP_BYTES), number % _STAMP_COUNT * _STAMP_BYTES)


_OPEN: dict[str, FileStamps] = {}


def file_stamps(directory: str) -> FileStamps:
    """Return the stamps in a directory of lock files, creating both if necessary."""
    path = f"{directory}/{_FILE_NAME}"
    stamps = _OPEN.get(path)
    if stamps is None or not is_at(stamps.fd, path):  # a clean-up may have removed the file
        stamps = _OPEN[path] = FileStamps(open_lock_file(directory, _FILE_NAME))
    return stamps
