"""Files with zip archives, read by position: on a local disk, or by fsspec."""

import os
from collections.abc import Iterable, Iterator
from typing import Any, Protocol
from weakref import finalize

from zarrdask.errors import StoreError, without_secrets
from zarrdask.storage.byte_ranges import Range
from zarrdask.storage.in_flight import in_flight
from zarrdask.storage.system import IS_WINDOWS, fill, flags, open_file, pread

_READ = flags("O_RDONLY", "O_BINARY")


class ByteSource(Protocol):
    """A file that is read by position. Several threads may read it at the same time.

    Attributes
    ----------
    name : str
        The name of the file in errors.
    size : int
        The length of the file in bytes.
    """

    name: str
    size: int

    def read(self, start: int, length: int) -> bytes:
        """Return a number of bytes from an offset; fewer at the end of the file."""
        ...

    def read_all(self, ranges: Iterable[Range]) -> Iterator[bytes]:
        """Yield several parts (start, length); later ones are requested meanwhile if possible."""
        ...


class LocalFile:
    """A file on a local disk.

    Parameters
    ----------
    path : str
        The path of the file.
    may_change : bool
        Whether the file may be changed while it is read.

    Raises
    ------
    OSError
        If it can't be opened, or is not a regular file.
    """

    def __init__(self, path: str, *, may_change: bool = False) -> None:
        self.name = path
        self._may_change = may_change
        self._open()
        self.size, self.stamp = self._now()

    def _open(self) -> None:
        self._fd = os.open(self.name, _READ)
        finalize(self, os.close, self._fd)

    def _now(self) -> tuple[int, str]:
        status = os.fstat(self._fd)
        return status.st_size, stamp_of(status)

    def check(self) -> None:
        """Check that the file was not changed since it was opened.

        Raises
        ------
        StoreError
            If it was. Another file that replaced it does not count as a change.
        """
        if not self._may_change and self._now()[1] != self.stamp:
            raise StoreError(
                "the zip archive was changed while it was read; open it again", key=self.name
            )

    def read(self, start: int, length: int) -> bytes:
        return _read(self._fd, start, length)

    def read_into(self, view: memoryview, start: int) -> int:
        """Fill a buffer from an offset, and return the number of bytes that were read."""
        return fill(self._fd, view, start)

    def read_all(self, ranges: Iterable[Range]) -> Iterator[bytes]:
        return (self.read(start, length) for start, length in ranges)


class ReopenedFile(LocalFile):
    """A file that is opened for each read, for platforms that can't replace an open file."""

    def _open(self) -> None:
        pass

    def _now(self) -> tuple[int, str]:
        status = os.stat(self.name)
        return status.st_size, stamp_of(status)

    def read(self, start: int, length: int) -> bytes:
        fd = open_file(self.name, _READ)
        try:
            return _read(fd, start, length)
        finally:
            os.close(fd)

    def read_into(self, view: memoryview, start: int) -> int:
        fd = open_file(self.name, _READ)
        try:
            return fill(fd, view, start)
        finally:
            os.close(fd)


def local_file(path: str, *, may_change: bool = False) -> LocalFile:
    """Open a file on a local disk in the way that the platform allows."""
    return (ReopenedFile if IS_WINDOWS else LocalFile)(path, may_change=may_change)


def _read(fd: int, start: int, length: int) -> bytes:
    data = pread(fd, length, start)
    while len(data) < length:
        # Linux returns at most 2 GiB from one call.
        more = pread(fd, length - len(data), start + len(data))
        if not more:
            break
        data += more
    return data


def stamp_of(status: os.stat_result) -> str:
    """Return a text that changes when a file is changed, or replaced by another one."""
    return f"{status.st_size:x}-{status.st_mtime_ns:x}-{status.st_ino:x}"


class RemoteFile:
    """A file in a file system of fsspec, read by ranges.

    Parameters
    ----------
    fs : fsspec.AbstractFileSystem
        The file system.
    path : str
        The path in the file system, without the protocol.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    StoreError
        If the file system does not know the length of the file.
    """

    def __init__(self, fs: Any, path: str) -> None:
        self.name = without_secrets(fs.unstrip_protocol(path))
        self.fs = fs
        self.path = path
        info = fs.info(path)
        if info.get("type") == "directory":
            raise IsADirectoryError(path)
        if not isinstance(info.get("size"), int):
            raise StoreError(
                "a zip archive is read from its end, and this server does not say how long it is; "
                "download it first (simplecache:: does)",
                key=self.name,
            )
        self.size = info["size"]

    def read(self, start: int, length: int) -> bytes:
        end = min(start + length, self.size)
        if start >= end:
            return b""  # an empty range can not be requested
        try:
            return _trimmed((start, end), self.fs.cat_file(self.path, start=start, end=end))
        except Exception as error:
            raise StoreError(
                str(error) or type(error).__name__, key=self.name, found=type(error).__name__
            ) from error

    def read_all(self, ranges: Iterable[Range]) -> Iterator[bytes]:
        read = in_flight if self.fs.async_impl else map
        return read(lambda part: self.read(*part), ranges)


def _trimmed(request: tuple[int, int], value: Any) -> bytes:
    """Return the requested part, even if the server sent the whole file."""
    start, end = request
    return bytes(value[start:end] if len(value) > end - start else value)
