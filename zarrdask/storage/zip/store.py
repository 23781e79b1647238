"""Zip archives on a local disk as stores, which are read and written."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote
from weakref import WeakValueDictionary

from zarrdask.errors import StoreError
from zarrdask.formats.byte_ranges import Buffer
from zarrdask.formats.store_keys import check_key, check_prefix
from zarrdask.runtime.system import after_fork, renewed_after_fork
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import Capabilities
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.local.open_file import reported
from zarrdask.storage.zip.archive import Archive, read_directory
from zarrdask.storage.zip.archive_writer import PartWriter, ZipWriter
from zarrdask.storage.zip.reader import ZipReader, no_archive
from zarrdask.storage.zip.source import LocalFile, stamp_of


class _Shared:
    """The state that all stores of a local archive share in this process."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lock = threading.RLock()
        self.writer: ZipWriter | None = None
        #: The writer in a process that was forked within a batch.
        self.part: PartWriter | None = None
        #: The number of open contexts of `batch`.
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
                    return no_archive()
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


_MUTEX = renewed_after_fork(threading.Lock())
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


class ZipStore(ZipReader):
    """Values in a zip archive on a local disk.

    The archive is never changed in place: each change writes a new archive, which replaces the old
    one; all changes within ``with store.batch():`` are one. Tasks in other processes can write in a
    batch, by way of this process, but they can't read the values that were written.

    Parameters
    ----------
    path : str or os.PathLike
        The path of the archive, which need not exist before the first write.
    prefix : str
        The prefix of the keys in the archive: "" or a text that ends with "/".
    """

    capabilities = Capabilities(has_latency=False)

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
    def _uri(self) -> str:
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
    def _is_deferrable(self) -> bool:
        """Whether a batch is open: outside one, each value that is written is a new archive."""
        return self._shared.depth > 0

    def _temporary_place(self, prefix: str) -> tuple[Store, str]:
        """Return a directory beside the archive, as values that are erased leave gaps in it."""
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
    for shared in list(_SHARED.values()):
        shared.lock = threading.RLock()
        if shared.writer is not None:
            shared.part = PartWriter(shared.writer.folder, shared.path)
            shared.writer = None


after_fork(_after_fork)
