"""Open files, read as a whole or in parts."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from errno import EISDIR, ESPIPE

from zarrdask.storage.base import Scratch
from zarrdask.storage.byte_ranges import Buffer, Range, coalesce
from zarrdask.storage.system import fill

# Bytes. Joining neighbouring ranges saves system calls; a joined range that is longer than the
# limit would not fit into the cache of the CPU.
_JOIN_LIMIT = 2**20
_JOIN_GAP = 2**12


@dataclass(frozen=True)
class OpenFile:
    """A file that is read in parts.

    Attributes
    ----------
    fd : int
        The descriptor; negative if the file is missing.
    size : int
        The size of the file in bytes.
    scratch : Scratch
        A buffer for the bytes of the parts.
    """

    fd: int
    size: int
    scratch: Scratch

    def part(self, start: int, length: int) -> Buffer | None:
        return part_of(self.fd, self.size, start, length)

    def parts(self, ranges: Sequence[Range]) -> Iterator[Buffer | None]:
        if self.fd < 0:
            yield from (None for _ in ranges)
            return
        for (start, length), members in coalesce(ranges, _JOIN_GAP, _JOIN_LIMIT):
            available = max(min(length, self.size - start), 0)
            view = self.scratch.reserve(available)
            count = fill(self.fd, view[:available], start)
            for offset, size in members:
                yield view[offset : min(offset + size, count)]


def part_of(fd: int, size: int, start: int, length: int | None) -> Buffer | None:
    """Return part of a file; a negative start counts from the end."""
    if fd < 0:
        return None
    begin = max(size + start, 0) if start < 0 else start
    left = max(size - begin, 0)
    view = memoryview(bytearray(left if length is None else min(length, left)))
    return view[: fill(fd, view, begin)]


def size_of(fd: int) -> int:
    """Return the size of a file.

    Raises
    ------
    OSError
        If it is not a regular file.
    """
    status = os.fstat(fd)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(ESPIPE, os.strerror(ESPIPE))
    return status.st_size


def read_whole(fd: int, size: int) -> bytes:
    """Return the bytes of a file."""
    data = os.read(fd, size)
    while len(data) < size:
        # Linux returns at most 2 GiB from one call.
        more = os.read(fd, size - len(data))
        if not more:
            break
        data += more
    return data
