"""Times of files that identify what was written: any later change gives the file another one."""

import os
from contextlib import suppress
from dataclasses import dataclass

from zarrdask.formats.byte_ranges import Buffer
from zarrdask.storage.file_calls import pread
from zarrdask.storage.local.open_file import settled_version, stamp_in, write_whole

#: How much a time is changed that must not be equal to another one: listings round it to less.
_MARK_NS = 1000
#: Bytes of a file that are compared at a time.
_BLOCK_BYTES = 2**20


@dataclass(frozen=True)
class TimedFile:
    """An open file, whose time identifies its version."""

    fd: int

    @property
    def stamp(self) -> str:
        """The stamp of the version of the file, which is as listings have it."""
        return stamp_in(os.fstat(self.fd))

    def write(self, value: Buffer) -> str:
        """Write a value to the file, and return the stamp of this version."""
        write_whole(self.fd, value)
        self.mark()
        return self.stamp

    def keep_time(self, source: "TimedFile") -> None:
        """Give the file the time of the one that it is a copy of, which marks its version.

        A file that was changed just now keeps no time: a further change might not change its time.
        """
        if settled_version(source.fd) is None:
            self.mark()
        else:
            self._set_time(os.fstat(source.fd).st_mtime_ns)

    def mark(self) -> None:
        """Give the file a time that no other file gets that is written now."""
        self._set_time(os.fstat(self.fd).st_mtime_ns - _MARK_NS)

    def has_bytes_of(self, other: "TimedFile", size: int) -> bool:
        """Whether the files have the same bytes; `size` is the size of one of them."""
        for start in range(0, max(size, 1), _BLOCK_BYTES):
            if pread(self.fd, _BLOCK_BYTES, start) != pread(other.fd, _BLOCK_BYTES, start):
                return False
        return True

    def _set_time(self, time: int) -> None:
        # Another user may own the file: it is compared by its bytes again next time.
        with suppress(PermissionError):
            if os.utime in os.supports_fd:
                os.utime(self.fd, ns=(time, time))
