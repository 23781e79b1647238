"""The limit of a rate that all processes of a user on this machine share, by a file."""

import os
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import blake2b
from typing import ClassVar

from zarrdask.runtime.progress import TOTALS
from zarrdask.runtime.system import IS_WINDOWS
from zarrdask.storage.file_calls import pread, pwrite
from zarrdask.storage.locks.lock_files import lock_directory, open_lock_file
from zarrdask.storage.remote.rate_limit import Limit

#: The name of the file, in the directory of lock files. Where a limit is in it, its name says.
_FILE_NAME = "rates"
LIMIT_COUNT = 4096
#: At the beginning of the file: the number of refused requests, for any limit.
_REFUSED = struct.Struct("<q")
#: A hash of the name, and the limit.
_RECORD = struct.Struct("<8s6d")
_NONE = (0.0,) * len(Limit._fields)


class HeldLimit:
    """A limit that is locked against other processes, or None; and the number of new refusals."""

    def __init__(self, limit: Limit | None) -> None:
        self.limit, self.refusals = limit, 0


class SharedLimit:
    """The limit of a certain name, of all threads.

    Times are read from the monotonic clock, which processes share. After a restart of the machine,
    they lie in the future, so the limit is not valid. Windows has no fast locks of files: there,
    and where the file can't be used, each process has a limit of its own.

    Parameters
    ----------
    name : str
        The name.
    among_processes : bool, default False
        Whether all processes of the user share the limit.
    """

    #: The number of requests of this process that were refused, without those in the file.
    _refused: ClassVar[int] = 0

    def __init__(self, name: str, *, among_processes: bool = False) -> None:
        self._digest = blake2b(name.encode(errors="surrogateescape"), digest_size=8).digest()
        number = int.from_bytes(self._digest, "little") % LIMIT_COUNT
        self._position = _REFUSED.size + number * _RECORD.size
        self._has_file = among_processes and not IS_WINDOWS
        self._own: Limit | None = None
        self._lock = threading.Lock()

    def read(self, now: float) -> Limit | None:
        """Return the limit, or None if there is none."""
        if self._has_file and not os.path.exists(f"{lock_directory()}/{_FILE_NAME}"):
            return None  # this is asked often, and most stores accept all requests
        with self.held(now) as held:
            return held.limit

    @contextmanager
    def held(self, now: float) -> Iterator[HeldLimit]:
        """Return a context in which only this thread changes the limit."""
        with self._lock, ExitStack() as stack:
            fd = self._lock_file(stack) if self._has_file else None
            before = self._own if fd is None else self._read(fd)
            held = HeldLimit(before if before is not None and before.is_valid(now) else None)
            yield held
            self._own = held.limit
            if fd is None:
                SharedLimit._refused += held.refusals
                return
            with suppress(OSError):  # a full disk
                if held.limit != before:
                    record = _RECORD.pack(self._digest, *(held.limit or _NONE))
                    pwrite(fd, record, self._position)
                if held.refusals:
                    pwrite(fd, _REFUSED.pack(_refused_in(fd) + held.refusals), 0)

    def _lock_file(self, stack: ExitStack) -> int | None:
        """Lock the file, and return its descriptor, or None if that is not possible."""
        from fcntl import LOCK_EX, LOCK_UN, flock

        try:
            fd = open_lock_file(lock_directory(), _FILE_NAME)
            stack.callback(os.close, fd)
            flock(fd, LOCK_EX)
        except OSError:
            self._has_file = False
            return None
        # A process forked in between has the descriptor, too: closing is not enough.
        stack.callback(flock, fd, LOCK_UN)
        return fd

    def _read(self, fd: int) -> Limit | None:
        record = pread(fd, _RECORD.size, self._position)
        if len(record) < _RECORD.size:
            return None
        digest, *values = _RECORD.unpack(record)
        return Limit(*values) if digest == self._digest else None


def refused_requests() -> int:
    """Return the number of refused requests of all processes that share limits with this one."""
    directory = lock_directory()
    try:
        os.stat(f"{directory}/{_FILE_NAME}")
        fd = open_lock_file(directory, _FILE_NAME)
    except OSError:
        return SharedLimit._refused
    try:
        return SharedLimit._refused + _refused_in(fd)
    finally:
        os.close(fd)


def _refused_in(fd: int) -> int:
    data = pread(fd, _REFUSED.size, 0)
    return int(_REFUSED.unpack(data)[0]) if len(data) == _REFUSED.size else 0


TOTALS["refused requests"] = refused_requests
