"""Traces of those who changed a part of a unit, for those who store it as a whole without a lock.

Whoever changed a part leaves a new random value in the slot of the unit's name, before giving back
the lock. Who sees the same value before and after storing, and no lock held then, knows that no
part was read before and stored after. Names that share a slot are at worst taken for each other.
"""

import os
from secrets import token_bytes
from typing import Protocol
from weakref import finalize

from zarrdask.runtime.lock_files import is_at, open_lock_file

_SLOTS = 4096
_SIZE = 8
_NAME = "traces"


class Traces(Protocol):
    """What is left by those who changed a part."""

    def read(self, number: int) -> bytes:
        """Return what was left last by one whose name has this number."""

    def leave(self, number: int) -> None:
        """Leave another value.

        Raises
        ------
        OSError
            If that can't be done.
        """


class HeldTraces:
    """Those of the threads of this process."""

    def __init__(self) -> None:
        self._slots = [b""] * _SLOTS

    def read(self, number: int) -> bytes:
        return self._slots[number % _SLOTS]

    def leave(self, number: int) -> None:
        self._slots[number % _SLOTS] = token_bytes(_SIZE)


class FileTraces:
    """Those of all processes that lock files in a directory.

    Parameters
    ----------
    fd : int
        The open file, which is closed with the last use of this.
    """

    # Not mapped to memory: a file that is cut off, or a full disk, would end the process.

    def __init__(self, fd: int) -> None:
        self._fd = fd
        finalize(self, os.close, fd)

    def is_at(self, path: str) -> bool:
        """Whether the file is still there: it may have been tidied up."""
        return is_at(self._fd, path)

    def read(self, number: int) -> bytes:
        return os.pread(self._fd, _SIZE, number % _SLOTS * _SIZE)

    def leave(self, number: int) -> None:
        os.pwrite(self._fd, token_bytes(_SIZE), number % _SLOTS * _SIZE)


_OPEN: dict[str, FileTraces] = {}


def file_traces(directory: str) -> FileTraces:
    """Return the traces in a directory; both are made if they aren't there.

    Raises
    ------
    OSError
        If that can't be done.
    """
    path = f"{directory}/{_NAME}"
    found = _OPEN.get(path)
    if found is None or not found.is_at(path):
        found = _OPEN[path] = FileTraces(open_lock_file(directory, _NAME))
    return found
