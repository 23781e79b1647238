"""Open files: read as a whole or in parts, written, and the errors of the system."""

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from errno import EISDIR, ENOTDIR, ENXIO, ESPIPE
from time import perf_counter
from typing import NoReturn

from zarrdask.errors import StoreError, ZarrdaskError
from zarrdask.formats.byte_ranges import Buffer, Range, Tag, coalesce
from zarrdask.runtime import measuring
from zarrdask.runtime.scratch import Scratch
from zarrdask.runtime.thread_counts import THIS_THREAD
from zarrdask.storage.file_calls import fill, flags

#: The errors of the system for a missing file, or a directory of that name. A name with a NUL, or
#: a lone surrogate, raises ValueError: no file can have it.
ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError)
# A FIFO with the name of a value must not block, nor must a terminal take control of the process.
READ = flags("O_RDONLY", "O_NONBLOCK", "O_NOCTTY", "O_BINARY")
_READ_BLOCKING = flags("O_RDONLY", "O_NOCTTY", "O_BINARY")
#: The message for a FIFO, a socket or a device.
NOT_REGULAR = (
    "expected a regular file, such as a chunk, but found something else; remove or move it"
)
#: Messages for errors of the system, by number. A FIFO, a socket or a device causes the first two.
_MEANING = {
    ESPIPE: NOT_REGULAR,
    ENXIO: NOT_REGULAR,
    EISDIR: "expected a file but found a directory; remove or move it",
    ENOTDIR: "expected a directory above this value but found a file; remove or move it",
}
# Bytes. Joining neighbouring ranges saves system calls; a joined range that is longer than the
# limit would not fit into the cache of the CPU.
FILE_LIMIT = 2**20
FILE_GAP = _PAGE = 2**12
#: Nanoseconds. The times of files advance in steps of up to 10 ms, in some file systems of up to 2
#: s; these are multiples of a long step.
CLOCK_NS = 10**8
COARSE_CLOCK_NS, _FINE_STEP_NS = 21 * 10**8, 10**7


@dataclass(frozen=True)
class OpenFile:
    """A file that is read in parts: its descriptor, negative if it is missing, and its size.

    `scratch` is a buffer for the bytes of the parts.
    """

    fd: int
    size: int
    scratch: Scratch
    #: The location of the store, for what is measured.
    url: str = ""

    def part(self, start: int, length: int) -> Buffer | None:
        if not measuring.IS_ACTIVE:
            return part_of(self.fd, self.size, start, length)
        begin = perf_counter()
        part = part_of(self.fd, self.size, start, length)
        fetched = 0 if part is None else len(part)
        THIS_THREAD.counts.count_read(self, perf_counter() - begin, fetched)
        return part

    @property
    def tag(self) -> Tag | None:
        """A tag that every change of the file changes; None if a change might go unnoticed."""
        return None if self.fd < 0 else settled_version(self.fd)

    @staticmethod
    def joined(ranges: Sequence[Range]) -> list[tuple[Range, list[Range]]]:
        """Return the ranges that are read at a time, each with the parts that are asked for."""
        return coalesce(ranges, FILE_GAP, FILE_LIMIT)

    def parts(self, ranges: Sequence[Range]) -> Iterator[Buffer | None]:
        if self.fd < 0:
            yield from (None for _ in ranges)
            return
        for (start, length), members in self.joined(ranges):
            available = max(min(length, self.size - start), 0)
            # At the same offset in a page of memory as in a page of the file: see `Scratch`.
            shift = start % _PAGE
            view = self.scratch.reserve(available + shift)[shift:]
            begin = perf_counter() if measuring.IS_ACTIVE else 0.0
            count = fill(self.fd, view[:available], start)
            if begin:
                THIS_THREAD.counts.count_read(self, perf_counter() - begin, count)
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
    """Return the size of an open file; one that is not regular raises `OSError`."""
    return size_in(os.fstat(fd))


def listed_status(path: str) -> os.stat_result | None:
    """Return the status of a regular file that was listed; None for all else, such as a link."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def size_in(status: os.stat_result) -> int:
    """Return the size of a file by its status; one that is not regular raises `OSError`."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(ESPIPE, os.strerror(ESPIPE))
    return status.st_size


def version_in(status: os.stat_result) -> tuple[int, ...]:
    """Return the version of a file by its status: other content has another version.

    It may be the same after several changes within one step of the clock of the file system.
    """
    return status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_size


def stamp_in(status: os.stat_result) -> str:
    """Return a text that every write of a file changes."""
    # Each write makes a new inode, which differs even if the clock did not advance.
    return f"{status.st_mtime_ns:x}-{status.st_ino:x}"


def settled_version(fd: int) -> tuple[int, ...] | None:
    """Return the version of an open file, or None if a further change might not change it."""
    version = version_in(os.fstat(fd))
    return version if _is_past(max(version[:2])) else None


def is_settled(stamp: str) -> bool:
    """Whether a further change of a file changes its `stamp_in`, as the file is not too new."""
    return _is_past(int(stamp.partition("-")[0], 16))


def _is_past(changed: int) -> bool:
    step = COARSE_CLOCK_NS if changed % _FINE_STEP_NS == 0 else CLOCK_NS
    return time.time_ns() - changed > step


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


def write_whole(fd: int, value: Buffer) -> None:
    """Write bytes to a file."""
    view = memoryview(value).cast("B")
    written = os.write(fd, view)
    while written < len(view):
        written += os.write(fd, view[written:])


def check_file_name(path: str) -> None:
    """Check that a file can have a path: not one with a NUL, or with lone surrogates."""
    try:
        os.fsencode(path)
    except ValueError as error:
        raise StoreError("no file can have this name", key=path) from error
    if "\0" in path:
        raise StoreError("no file can have this name", key=path)


@contextmanager
def reported(path: str) -> Iterator[None]:
    """Raise a `StoreError` for errors of the system."""
    try:
        yield
    except OSError as error:
        fail(path, error)


def fail(path: str, error: OSError | ValueError) -> NoReturn:
    """Raise a `StoreError` for an error of the system, and errors of this package unchanged."""
    if isinstance(error, ZarrdaskError):
        raise error
    number, text = getattr(error, "errno", None), getattr(error, "strerror", None)
    text = _MEANING.get(number or 0) or text or str(error)
    raise StoreError(text, key=path, found=type(error).__name__) from error


def open_value(
    path: str,
    open_: Callable[[str, int], int],
    is_absent: Callable[[OSError | ValueError], bool],
) -> tuple[int, int]:
    """Open a file for reading, and return its descriptor (negative if it is missing) and its size.

    `is_absent` says whether an error of the system means that it is missing.
    """
    fd = -1
    try:
        try:
            fd = open_(path, READ)
        except BlockingIOError as error:
            fd = reopened(open_, path, error)
        return fd, size_of(fd)
    except (OSError, ValueError) as error:
        if fd >= 0:
            os.close(fd)
        if is_absent(error):
            return -1, 0
        fail(path, error)


def reopened(open_: Callable[[str, int], int], path: str, error: OSError | ValueError) -> int:
    """Open a file after another process has given up its lease, or raise the error."""
    if isinstance(error, BlockingIOError) and os.path.isfile(path):
        return open_(path, _READ_BLOCKING)
    fail(path, error)
