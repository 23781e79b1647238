"""The file of a zip archive, which is read in parts: the protocol, and files on a local disk."""

import os
import stat
from typing import Protocol
from weakref import finalize

from zarrdask.errors import StoreError
from zarrdask.formats.byte_ranges import Value
from zarrdask.runtime.scratch import Scratch
from zarrdask.runtime.system import IS_WINDOWS
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.local.open_file import NOT_REGULAR, READ, OpenFile
from zarrdask.storage.value_parts import StoredValue


class ArchiveFile(Protocol):
    """The file of an archive. Several threads may read it at the same time.

    `name` is its name in errors, `size` its length in bytes, and `is_local` says that reads have no
    latency.
    """

    name: str
    size: int
    is_local: bool

    def value(self, scratch: Scratch) -> Value:
        """Return the bytes of the file, to be read in parts; `scratch` is the buffer for them."""


class LocalFile:
    """A file on a local disk. It is kept open, so that another file may replace it.

    Windows can't replace an open file: there, it is opened for each read, and must not be replaced.
    `may_change` says that the file may be changed while it is read.
    """

    is_local = True

    def __init__(self, path: str, *, may_change: bool = False) -> None:
        self.name = path
        self._may_change = may_change
        self._fd = -1
        if not IS_WINDOWS:
            self._fd = os.open(path, READ)
            finalize(self, os.close, self._fd)
        status = self._status()
        if not stat.S_ISREG(status.st_mode) and path != os.devnull:
            raise StoreError(NOT_REGULAR, key=path)
        self.size, self.stamp = status.st_size, stamp_of(status)

    def _status(self) -> os.stat_result:
        return os.stat(self.name) if self._fd < 0 else os.fstat(self._fd)

    def value(self, scratch: Scratch) -> Value:
        """Return the bytes of the file.

        Raises
        ------
        StoreError
            If the file was changed since it was opened.
        """
        status = self._status()
        if not self._may_change and stamp_of(status) != self.stamp:
            raise StoreError(
                "the zip archive was changed while it was read; open it again", key=self.name
            )
        if self._fd < 0:
            folder, name = os.path.split(self.name)
            return StoredValue(LocalStore(folder), name, scratch)
        return OpenFile(self._fd, status.st_size, scratch)


def stamp_of(status: os.stat_result) -> str:
    """Return a text that changes when a file is changed, or replaced by another one."""
    return f"{status.st_size:x}-{status.st_mtime_ns:x}-{status.st_ino:x}"


def file_of(stamp: str) -> str:
    """Return the part of a stamp that stays the same while a file is modified, but not replaced."""
    return stamp.rpartition("-")[2]
