"""A directory on a local disk, by system calls: one open and one read a value."""

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from errno import EMLINK, ENAMETOOLONG, ENOSYS, EOPNOTSUPP, EPERM
from pathlib import Path
from typing import ClassVar

from zarrdask.errors import StoreError
from zarrdask.storage.base import Scratch, Store
from zarrdask.storage.keys import Names, check_prefix
from zarrdask.storage.parts import Buffer, Range, coalesce
from zarrdask.storage.temporary import is_temporary, temporary, tidy

_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
_ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
# What file systems say that know no second name of a file.
_NO_LINKS = {EMLINK, ENOSYS, EOPNOTSUPP, EPERM}
_TRIES = 20
# Joining neighbours saves system calls; past this size the buffer would leave the CPU's cache.
_JOIN_LIMIT = 2**20
_JOIN_GAP = 2**12


@dataclass(frozen=True)
class LocalStore(Store):
    """Files under a directory (conformance A-2, B-88).

    Parameters
    ----------
    root : str
        The absolute path of the directory. It need not exist before the first write.
    """

    root: str

    seekable: ClassVar[bool] = True

    @property
    def url(self) -> str:
        """The directory's path."""
        return self.root

    @property
    def uri(self) -> str:
        """The directory's URI: ``file:///my%20data``."""
        return Path(self.root).as_uri()

    def path(self, key: str) -> str:
        """Return the file that holds a key's value."""
        return f"{self.root}/{key}"

    def get(self, key: str) -> bytes | None:  # noqa: D102
        with _opened(self.path(key)) as (fd, size):
            return None if fd < 0 else _read(fd, size)

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:  # noqa: D102
        # The hot loop: no fstat, no allocation; a value that fills the buffer is read again.
        start = f"{self.root}/"
        view = scratch.view
        space = len(view)
        for key in keys:
            try:
                fd = os.open(start + key, _FLAGS)
            except _ABSENT:
                yield None
                continue
            except OSError as error:
                if error.errno != ENAMETOOLONG:
                    raise _failed(start + key, error) from error
                yield None
                continue
            try:
                size = os.readv(fd, (view,))
                if size == space:
                    size = os.fstat(fd).st_size
                    view = scratch.reserve(size + 1)
                    space = len(view)
                    size = _fill(fd, view[:size], 0)
            except IsADirectoryError:
                yield None
                continue
            except OSError as error:
                raise _failed(start + key, error) from error
            finally:
                os.close(fd)
            yield view[:size]

    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:  # noqa: D102
        with _opened(self.path(key)) as (fd, size):
            if fd < 0:
                return None
            begin = max(size + start, 0) if start < 0 else start
            left = max(size - begin, 0)
            room = memoryview(bytearray(left if length is None else min(length, left)))
            return room[: _fill(fd, room, begin)]

    def get_ranges(  # noqa: D102
        self, key: str, ranges: Sequence[Range], scratch: Scratch
    ) -> Iterator[Buffer | None]:
        with _opened(self.path(key)) as (fd, end):
            if fd < 0:
                yield from (None for _ in ranges)
                return
            for (start, length), members in coalesce(ranges, _JOIN_GAP, _JOIN_LIMIT):
                wanted = max(min(length, end - start), 0)
                view = scratch.reserve(wanted)
                found = _fill(fd, view[:wanted], start)
                for offset, size in members:
                    yield view[offset : min(offset + size, found)]

    @property
    def conditional(self) -> bool:  # type: ignore[override]
        """Whether `create` is done by one only: not where a subclass stores in another way."""
        return type(self).set is LocalStore.set

    def set(self, key: str, value: Buffer) -> None:  # noqa: D102
        self._put(key, lambda fd: _write(fd, value), os.rename)

    def opened(self, key: str) -> AbstractContextManager[tuple[int, int]]:
        """Open a value for reading: its descriptor (negative if there is none) and size."""
        return _opened(self.path(key))

    def replace(self, key: str, write: Callable[[int], None]) -> None:
        """Store a value that a function writes to the file whose descriptor it is given.

        Raises
        ------
        StoreError
            If that fails; what was there stays.
        """
        self._put(key, write, os.rename)

    def create(self, key: str, value: Buffer) -> bool:  # noqa: D102
        if not self.conditional:
            return super().create(key, value)
        try:
            self._put(key, lambda fd: _write(fd, value), _link)
        except StoreError as error:
            if isinstance(error.__cause__, FileExistsError) and os.path.isfile(self.path(key)):
                return False
            if getattr(error.__cause__, "errno", None) in _NO_LINKS:
                return super().create(key, value)
            raise
        return True

    def _put(
        self, key: str, write: Callable[[int], None], move: Callable[[str, str], None]
    ) -> None:
        """Write a value to a file of its own, which is then moved to its place."""
        path = self.path(key)
        partial = os.path.join(os.path.dirname(path), temporary())
        try:
            try:
                fd = os.open(partial, _CREATE, 0o666)
            except FileNotFoundError:
                self._make_directory(os.path.dirname(path))
                fd = os.open(partial, _CREATE, 0o666)
            try:
                try:
                    write(fd)
                finally:
                    os.close(fd)
                move(partial, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(partial)
                raise
        except OSError as error:
            raise _failed(self.path(key), error) from error

    def _make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def erase(self, key: str) -> None:  # noqa: D102
        try:
            os.unlink(self.path(key))
        except _ABSENT:
            return
        except OSError as error:
            raise _failed(self.path(key), error) from error

    def tidy(self, prefix: str) -> None:  # noqa: D102
        tidy(self.path(prefix))

    def erase_prefix(self, prefix: str) -> None:  # noqa: D102
        path = self.path(check_prefix(prefix))
        for _ in range(_TRIES):
            try:
                shutil.rmtree(path)
            except _ABSENT:
                # All of it, or an entry that someone else erased meanwhile.
                if not os.path.isdir(path):
                    return
            except OSError as error:
                raise _failed(self.path(prefix), error) from error
            else:
                return
        raise StoreError("others keep changing this directory", key=path)

    def list_dir(self, prefix: str) -> Names:  # noqa: D102
        keys, prefixes = [], []
        try:
            with os.scandir(self.path(check_prefix(prefix))) as entries:
                for entry in entries:
                    if is_temporary(entry.name):
                        continue
                    if entry.is_dir():
                        prefixes.append(entry.name)
                    else:
                        keys.append(entry.name)
        except _ABSENT:
            return [], []
        except OSError as error:
            raise _failed(self.path(prefix), error) from error
        return sorted(keys), sorted(prefixes)

    def stamp(self, key: str) -> str:  # noqa: D102
        try:
            status = os.stat(self.path(key))
        except OSError:
            return ""
        # A rename gives a new inode: it tells two writes within one tick of the clock apart.
        return f"{status.st_mtime_ns:x}-{status.st_ino:x}"


def _link(partial: str, path: str) -> None:
    """Give a file its name if there is none of that name."""
    os.link(partial, path)
    os.unlink(partial)


@contextmanager
def _opened(path: str) -> Iterator[tuple[int, int]]:
    """Open a file for reading: its descriptor (negative if there is none) and size."""
    fd = -1
    try:
        try:
            fd = os.open(path, _FLAGS)
        except OSError as error:
            if not isinstance(error, _ABSENT) and error.errno != ENAMETOOLONG:
                raise
        status = os.fstat(fd) if fd >= 0 else None
        if status is None or stat.S_ISDIR(status.st_mode):
            yield -1, 0
        else:
            yield fd, status.st_size
    except OSError as error:
        if isinstance(error, StoreError):
            raise
        raise _failed(path, error) from error
    finally:
        if fd >= 0:
            os.close(fd)


def _fill(fd: int, view: memoryview, start: int) -> int:
    """Read as much as a buffer takes, and return how much there was."""
    found = 0
    # A call may give less: Linux hands out 2 GiB at most.
    while found < len(view):
        size = os.preadv(fd, (view[found:],), start + found)
        if not size:
            break
        found += size
    return found


def _read(fd: int, size: int) -> bytes:
    data = os.read(fd, size)
    while len(data) < size:
        # Linux hands out at most 2 GiB a call.
        more = os.read(fd, size - len(data))
        if not more:
            break
        data += more
    return data


def _write(fd: int, value: Buffer) -> None:
    view = memoryview(value).cast("B")
    written = os.write(fd, view)
    while written < len(view):
        written += os.write(fd, view[written:])


def _failed(path: str, error: OSError) -> StoreError:
    return StoreError(error.strerror or str(error), key=path, found=type(error).__name__)
