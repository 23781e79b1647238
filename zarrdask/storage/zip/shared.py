"""The state that all stores of a local archive share in a process: its content and its batch."""

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from weakref import WeakValueDictionary

from zarrdask.errors import StoreError
from zarrdask.runtime.system import after_fork, renewed_after_fork
from zarrdask.storage.local.open_file import reported
from zarrdask.storage.zip.archive import Archive, read_directory
from zarrdask.storage.zip.archive_writer import ZipWriter
from zarrdask.storage.zip.lock import lock_archive
from zarrdask.storage.zip.reader import no_archive
from zarrdask.storage.zip.source import LocalFile, file_of, stamp_of


class SharedArchive:
    """A local archive as it is now, and the batch in which this process changes it.

    Other processes replace the archive: outside a batch, it is compared with the file each time it
    is read. A batch begins with the lock of the archive, so that everything that is read in it is
    still true when the new archive replaces the old one.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.lock = threading.RLock()
        #: The number of open contexts of `batch`.
        self.depth = 0
        self._writer: ZipWriter | None = None
        self._archive: Archive | None = None
        #: The stamp of the file when the batch began, "" if there was none.
        self._stamp_before = ""
        #: Releases the lock of the archive.
        self._locked = ExitStack()
        #: In a process that was forked within a batch: the stamp before it.
        self._stamp_at_fork: str | None = None

    def _stamp(self) -> str:
        """Return the stamp of the file, "" if there is none."""
        try:
            return stamp_of(os.stat(self.path))
        except OSError:
            return ""

    def refresh(self) -> None:
        """Read the archive again if it was replaced or modified."""
        with self.lock:
            if not self.depth:
                self._refresh(self._stamp())

    def _refresh(self, stamp: str) -> None:
        if self._archive is not None and stamp != stamp_at_opening(self._archive):
            self._archive = None

    def _is_replaced(self, archive: Archive) -> bool:
        """Whether the file was replaced; reading a modified one raises an error."""
        return file_of(self._stamp()) != file_of(stamp_at_opening(archive))

    # ---- reading

    def opened(self) -> Archive:
        """Return the archive with what was written in this batch; an empty one if there is none.

        Raises
        ------
        StoreError
            If the file can't be read, or this process was forked within the batch of another one.
        """
        if self._stamp_at_fork is not None:
            self._check_not_forked()
        writer, archive = self._writer, self._archive
        if writer is not None:
            return writer.archive
        if archive is not None and (self.depth or not self._is_replaced(archive)):
            return archive
        with reported(self.path):
            try:
                file = LocalFile(self.path)
            except FileNotFoundError:
                self._archive = None
                return no_archive()
            archive = self._archive = Archive(file, read_directory(file))
        return archive

    def _check_not_forked(self) -> None:
        if self._stamp_at_fork == self._stamp():
            raise being_written(self.path)
        self._stamp_at_fork = None  # The other process has replaced the archive.

    # ---- writing

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Return a context in which writes take effect at the end of the outermost one.

        Raises
        ------
        StoreError
            If another process is writing the archive.
        """
        with self.lock:
            if not self.depth:
                self._begin()
            self.depth += 1
        try:
            yield
        finally:
            with self.lock:
                self.depth -= 1
                if self.depth <= 0:
                    self._end()

    def _begin(self) -> None:
        if self._stamp_at_fork is not None:
            self._check_not_forked()
        with reported(self.path), ExitStack() as stack:
            exists = lock_archive(self.path, stack)
            self._stamp_before = self._stamp() if exists else ""
            self._refresh(self._stamp_before)
            self._locked = stack.pop_all()

    def _end(self) -> None:
        """Commit a batch. Until that is done, values are read from the writer."""
        with self._locked:
            try:
                if self._writer is not None:
                    self._writer.commit()
            finally:
                if self._writer is not None:
                    self._archive = None
                self.depth, self._writer = 0, None

    def writer(self) -> ZipWriter:
        """Return the writer of the open batch.

        Raises
        ------
        StoreError
            If another program changed the archive since the batch began.
        """
        with self.lock:
            if self._writer is None:
                self._writer = ZipWriter(self.path, self._stamp_before)
            return self._writer

    def leave_to_parent(self) -> None:
        """Forget the batch of the process from which this one was forked."""
        self.lock = threading.RLock()
        # Nothing is closed: that would release the lock of the parent, and remove its file.
        self._locked.pop_all()
        if self.depth:
            # Not the present one: the parent may have committed by now.
            self._stamp_at_fork = self._stamp_before
        self.depth, self._writer = 0, None


def stamp_at_opening(archive: Archive) -> str:
    """Return the stamp that the file of an archive had when it was opened."""
    return getattr(archive.file, "stamp", "")


def being_written(path: str) -> StoreError:
    """Return the error for a process that reads an archive which another one is writing."""
    return StoreError(
        "a task in another process can't read from a zip archive that is being written; compute "
        "with threads, or write a directory and zarrdask.copy it",
        key=path,
    )


_MUTEX = renewed_after_fork(threading.Lock())
ARCHIVES: "WeakValueDictionary[str, SharedArchive]" = WeakValueDictionary()


def shared_archive(path: str) -> SharedArchive:
    """Return the state of the archive at a path, or behind a link."""
    path = os.path.realpath(path)
    with _MUTEX:
        archive = ARCHIVES.get(path)
        if archive is None:
            archive = ARCHIVES[path] = SharedArchive(path)
    return archive


def _after_fork() -> None:
    for archive in list(ARCHIVES.values()):
        archive.leave_to_parent()


after_fork(_after_fork)
