"""Zip archives as stores: local archives are read and written, remote archives are read."""

import os
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote
from weakref import WeakValueDictionary

from zarrdask.errors import ReadOnlyError, StoreError, without_secrets
from zarrdask.storage.base import Scratch, Store
from zarrdask.storage.byte_ranges import Buffer, Range
from zarrdask.storage.keys import Names, check_key, check_prefix, right_below
from zarrdask.storage.local import LocalStore
from zarrdask.storage.system import after_fork
from zarrdask.storage.zip.archive import Archive, Directory, read_directory
from zarrdask.storage.zip.source import LocalFile, RemoteFile, stamp_of
from zarrdask.storage.zip.writer import PartWriter, ZipWriter, reported


class _ZipReader(Store):
    """The values below a prefix of an archive."""

    prefix: str
    #: The stamp of the archive when another process pickled this store, or "" if it is unknown.
    _expected: str = ""

    @property
    @abstractmethod
    def _place(self) -> tuple[Any, ...]:
        """What identifies the values, as arguments of the class."""

    @abstractmethod
    def _opened(self) -> Archive:
        """Return the current archive, which is empty if there is none."""

    def _archive(self) -> Archive:
        archive = self._opened()
        if self._expected and archive.stamp != self._expected:
            raise StoreError(
                "the zip archive was changed after this task was created; open it again",
                key=self.url,
            )
        return archive

    def stamp(self, key: str) -> str:
        member = self._archive().members.get(self.prefix + key)
        return f"{member.CRC:x}-{member.file_size:x}-{member.header_offset:x}" if member else ""

    def get(self, key: str) -> bytes | None:
        return self._archive().get(self.prefix + key)

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:
        return self._archive().get_many((self.prefix + key for key in keys), scratch)

    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:
        return self._archive().get_range(self.prefix + key, start, length)

    def get_ranges(
        self, key: str, ranges: Sequence[Range], scratch: Scratch
    ) -> Iterator[Buffer | None]:
        return self._archive().get_ranges(self.prefix + key, ranges, scratch)

    def list_dir(self, prefix: str) -> Names:
        prefix = self.prefix + check_prefix(prefix)
        return right_below(prefix, self._archive().names(prefix))

    def list_prefix(self, prefix: str) -> Iterator[str]:
        names = self._archive().names(self.prefix + check_prefix(prefix))
        return (name.removeprefix(self.prefix) for name in names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._place == other._place

    def __hash__(self) -> int:
        return hash(self._place)


@cache
def _no_archive() -> Archive:
    return Archive(LocalFile(os.devnull), Directory({}, 0))


# --------------------------------------------------------------------------------------------
# Local archives


class _Shared:
    """The state that all stores of a local archive share in this process.

    Attributes
    ----------
    archive : Archive or None
        The existing archive, if it was opened.
    writer : ZipWriter or None
        The writer of the open batch, if a value was written in it.
    part : PartWriter or None
        The same in a process that was forked within a batch.
    depth : int
        The number of open contexts of `batch`.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.lock = threading.RLock()
        self.writer: ZipWriter | None = None
        self.part: PartWriter | None = None
        self.depth = 0
        self.archive: Archive | None = None

    def refresh(self) -> None:
        """Forget the archive if another one replaced it."""
        if self.archive is None:
            return
        try:
            stamp = stamp_of(os.stat(self.path))
        except OSError:
            stamp = ""
        if stamp != getattr(self.archive.file, "stamp", None):
            self.archive = None

    def opened(self) -> Archive:
        """Return the existing archive, or an empty one if there is none."""
        archive = self.archive
        if archive is None:
            with reported(self.path):
                try:
                    file = LocalFile(self.path)
                except FileNotFoundError:
                    return _no_archive()
                archive = self.archive = Archive(file, read_directory(file))
        return archive

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Return a context in which writes take effect at the end of the outermost one."""
        with self.lock:
            self.depth += 1
        try:
            yield
        finally:
            with self.lock:
                self.depth -= 1
                if self.depth <= 0:
                    self._end()

    def _end(self) -> None:
        """Commit a batch. Until that is done, values are read from the writer."""
        try:
            if self.writer is not None:
                self.writer.commit()
                self.archive = None
        finally:
            self.depth, self.writer, self.part = 0, None, None

    def write(self) -> ZipWriter | PartWriter:
        """Return the writer of the open batch."""
        with self.lock:
            if self.part is not None:
                return self.part
            if self.writer is None:
                self.writer = ZipWriter(self.path)
            return self.writer

    def hand_out(self) -> str:
        """Return the folder to which other processes may write in the open batch."""
        writer = self.write()
        if isinstance(writer, ZipWriter):
            writer.is_shared = True
        return writer.folder


_MUTEX = threading.Lock()
_SHARED: "WeakValueDictionary[str, _Shared]" = WeakValueDictionary()


def _shared(path: str) -> _Shared:
    path = os.path.realpath(path)
    with _MUTEX:
        shared = _SHARED.get(path)
        if shared is None:
            shared = _SHARED[path] = _Shared(path)
    return shared


@lru_cache(maxsize=16)
def _part(folder: str, archive: str, process: int) -> PartWriter:
    """Return the part writer of this process for an archive that another process writes."""
    return PartWriter(folder, archive)


class ZipStore(_ZipReader):
    """Values in a zip archive on a local disk.

    The archive is never changed in place: each change writes a new archive, which replaces the old
    one. ``with store.batch():`` joins all changes in it to one. Tasks in other processes can write
    in a batch, by way of this process, but they can't read the values that were written.

    Parameters
    ----------
    path : str or os.PathLike
        The path of the archive, which need not exist before the first write.
    prefix : str
        The prefix of the keys in the archive: "" or a text that ends with "/".
    """

    seekable = True

    def __init__(self, path: "str | os.PathLike[str]", prefix: str = "") -> None:
        self.path = os.path.abspath(os.path.expanduser(os.fsdecode(path)))
        self.prefix = check_prefix(prefix)
        self._shared = _shared(self.path)
        self._shared.refresh()
        #: In another process: the folder of the writer, or "" if there was none.
        self._folder: str | None = None

    @property
    def url(self) -> str:
        """The path of the archive, followed by the prefix."""
        return f"{self.path}/{self.prefix}".rstrip("/")

    @property
    def uri(self) -> str:
        return Path(self.url).as_uri()

    def _opened(self) -> Archive:
        if self._folder or self._shared.part is not None:
            raise StoreError(
                "a task in another process can't read from a zip archive that is being written; "
                "compute with threads, write whole chunks only, or write a directory and "
                "zarrdask.copy it",
                key=self.url,
            )
        writer = self._shared.writer
        return self._shared.opened() if writer is None else writer.archive

    def batch(self) -> AbstractContextManager[None]:
        """Return a context in which writes take effect together, at its end.

        After an error, the values that were written before it are in the archive. If the process
        is killed, the archive is unchanged.
        """
        return self._shared.batch()

    @property
    def deferrable(self) -> bool:
        """Whether a batch is open: outside one, writing a value writes a new archive."""
        return self._shared.depth > 0

    def beside(self, prefix: str) -> tuple[Store, str]:
        """Return a directory beside the archive, in which erased values would take up space."""
        folder, name = os.path.split(self.path)
        # A single folder, so that erasing the prefix leaves nothing.
        return LocalStore(folder), f".{name}-{quote(self.prefix + prefix, safe='')}/"

    def _do(self, action: Callable[[ZipWriter | PartWriter], None]) -> None:
        if self._folder is not None and self._shared.writer is None:
            if not self._folder:
                raise StoreError(
                    "a zip archive is written by one process, and another process writes this one; "
                    "begin the write within store.batch() there, or open the archive by its path "
                    "here",
                    key=self.url,
                )
            action(_part(self._folder, self.path, os.getpid()))
            return
        with self.batch():
            action(self._shared.write())

    def set(self, key: str, value: Buffer) -> None:
        self._do(lambda writer: writer.set(self.prefix + key, value))

    def erase(self, key: str) -> None:
        self.erase_values([key])

    def erase_values(self, keys: Iterable[str]) -> None:
        names = [self.prefix + check_key(key) for key in keys]
        if self._folder is None and self._shared.part is None:
            # Missing keys must not cause a new archive.
            with self.batch():
                members = self._opened().members
                names = [name for name in names if name in members]
                if names:
                    self._do(lambda writer: writer.erase(names))
        else:
            self._do(lambda writer: writer.erase(names))

    @property
    def _place(self) -> tuple[Any, ...]:
        return self.path, self.prefix

    def __reduce__(self) -> tuple[Any, ...]:
        if self._folder is not None:  # this process got it from another one
            return _reopen, (self.path, self.prefix, self._folder, self._expected, None)
        folder, expected = "", ""
        if self._shared.depth:
            # The process that unpickles this may be the first one to write.
            folder = self._shared.hand_out()
        else:
            # If the archive is damaged, reading it raises the error.
            with suppress(StoreError):
                expected = self._shared.opened().stamp
        return _reopen, (self.path, self.prefix, folder, expected, os.getpid())


def _reopen(path: str, prefix: str, folder: str, expected: str, process: int | None) -> ZipStore:
    store = ZipStore(path, prefix)
    if process != os.getpid():
        store._folder, store._expected = folder, expected if not folder else ""
    return store


def _after_fork() -> None:
    # A forked process must not write to the file of its parent, nor wait for its threads.
    global _MUTEX  # noqa: PLW0603
    _MUTEX = threading.Lock()
    for shared in list(_SHARED.values()):
        shared.lock = threading.RLock()
        if shared.writer is not None:
            shared.part = PartWriter(shared.writer.folder, shared.path)
            shared.writer = None


after_fork(_after_fork)


# --------------------------------------------------------------------------------------------
# Remote archives


_REMOTE: "WeakValueDictionary[tuple[Any, ...], Archive]" = WeakValueDictionary()


class RemoteZipStore(_ZipReader):
    """Values in a zip archive in a file system of fsspec, read by ranges.

    Parameters
    ----------
    fs : fsspec.AbstractFileSystem
        The file system.
    path : str
        The path of the archive in the file system, without the protocol.
    prefix : str
        The prefix of the keys in the archive: "" or a text that ends with "/".
    """

    def __init__(self, fs: Any, path: str, prefix: str = "") -> None:
        self.fs = fs
        self.path = path
        self.prefix = check_prefix(prefix)
        self._held: Archive | None = None

    @property
    def shared(self) -> bool:  # type: ignore[override]
        """Whether other processes see the same values: not those of fsspec's own memory."""
        return "memory" not in import_module("zarrdask.storage.fsspec").protocols(self.fs)

    @property
    def url(self) -> str:
        return f"{without_secrets(self.fs.unstrip_protocol(self.path))}/{self.prefix}".rstrip("/")

    @property
    def token(self) -> str:
        return f"{self.path}#{self.prefix}#{self.fs._fs_token}"

    def _opened(self) -> Archive:
        if self._held is None:
            key = self.fs, self.path, self._expected
            archive = _REMOTE.get(key) if self._expected else None
            if archive is None:
                try:
                    file = RemoteFile(self.fs, self.path)
                    archive = Archive(file, read_directory(file))
                except FileNotFoundError:
                    return _no_archive()
                except Exception as error:
                    if isinstance(error, StoreError):
                        raise
                    raise StoreError(
                        str(error) or type(error).__name__, key=self.url, found=type(error).__name__
                    ) from error
                _REMOTE[self.fs, self.path, archive.stamp] = archive
            self._held = archive
        return self._held

    @property
    def writeable(self) -> bool:
        """False: remote archives can't be written."""
        return False

    def set(self, key: str, value: Buffer) -> None:
        raise self._read_only()

    def erase(self, key: str) -> None:
        raise self._read_only()

    def _read_only(self) -> ReadOnlyError:
        return ReadOnlyError(
            "only a zip archive on a local disk can be written; write it there and upload it",
            key=self.url,
        )

    @property
    def _place(self) -> tuple[Any, ...]:
        return self.fs, self.path, self.prefix

    def __reduce__(self) -> tuple[Any, ...]:
        expected = self._expected if self._held is None else self._held.stamp
        return _reopen_remote, (self.fs, self.path, self.prefix, expected)


def _reopen_remote(fs: Any, path: str, prefix: str, expected: str) -> RemoteZipStore:
    store = RemoteZipStore(fs, path, prefix)
    store._expected = expected
    return store
