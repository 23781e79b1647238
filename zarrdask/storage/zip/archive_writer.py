"""Write a zip archive: to a temporary file, which replaces the archive when it is complete."""

import os
import shutil
import threading
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from operator import attrgetter
from typing import BinaryIO
from zipfile import ZipFile

from zarrdask.errors import MetadataError, StoreError
from zarrdask.formats.byte_ranges import Buffer
from zarrdask.storage.file_calls import NO_LINKS, replace
from zarrdask.storage.local.atomic import beside, tidy
from zarrdask.storage.local.open_file import reported
from zarrdask.storage.transfer import copy_file
from zarrdask.storage.zip.archive import (
    Archive,
    Directory,
    crc32,
    encoding,
    is_name,
    new_member,
    read_directory,
)
from zarrdask.storage.zip.source import LocalFile, stamp_of


class ZipWriter:
    """The only writer of an archive, which need not exist.

    The archive is copied to a temporary file beside it, and new values are appended to this file.
    `commit` writes the directory and replaces the archive by the file; until then the archive is
    unchanged. Several threads may write at the same time.

    Parameters
    ----------
    path : str
        The path of the archive, which the caller has locked.
    expected : str
        The stamp of the archive when it was locked, or "" if there was none.

    Raises
    ------
    StoreError
        If the archive has another stamp, if it is not a zip archive, or if a file can't be created.
    """

    def __init__(self, path: str, expected: str) -> None:
        self.path = path
        self._expected = expected
        self._lock = threading.RLock()
        with reported(path), ExitStack() as stack:
            folder = os.path.dirname(path)
            os.makedirs(folder, exist_ok=True)
            tidy(folder)
            self._check_unchanged()
            directory = read_directory(LocalFile(path)) if expected else Directory({}, 0)
            self._new_path = beside(path)
            stack.callback(_remove, self._new_path)
            self._file: BinaryIO = stack.enter_context(
                open(self._new_path, "x+b", opener=self._create)
            )
            if expected:
                copy_file(path, self._file.fileno())
            self._end = directory.start
            self._archive = Archive(LocalFile(self._new_path, may_change=True), directory)
            self._encode_names()
            self._opened = stack.pop_all()

    def _create(self, path: str, flags: int) -> int:
        """Create the temporary file: who can't read the archive can't read this file."""
        return os.open(path, flags, os.stat(self.path).st_mode & 0o777 if self._expected else 0o666)

    def _check_unchanged(self) -> None:
        """Check that no other program has changed or created the archive."""
        try:
            stamp = stamp_of(os.stat(self.path))
        except FileNotFoundError:
            stamp = ""
        if stamp != self._expected:
            raise _was_changed(self.path)

    def _encode_names(self) -> None:
        # `zipfile` writes names of other encodings to the directory as UTF-8.
        for name, member in list(self._archive.members.items()):
            if encoding(member) == "cp437":
                self.set(name, self._archive.get(name) or b"")

    @property
    def archive(self) -> Archive:
        """The archive with the values that were written, for reading."""
        return self._archive

    # ---- values

    def set(self, key: str, value: Buffer) -> None:
        """Append a value.

        Raises
        ------
        MetadataError
            If the key can't be the name of a member.
        StoreError
            If the value can't be written.
        """
        view, crc = _checked(key, value)
        with self._lock, reported(f"{self.path}/{key}"):
            member = new_member(key, crc, len(view))
            member.header_offset = self._end
            self._file.seek(self._end)
            self._file.write(member.FileHeader())
            self._file.write(view)
            self._file.flush()
            self._end = self._file.tell()
            self._archive.members[key] = member
            self._archive.changed()

    def erase(self, keys: Iterable[str]) -> None:
        """Remove values: their bytes stay in the file, but the directory does not name them."""
        with self._lock:
            for key in keys:
                self._archive.members.pop(key, None)
            self._archive.changed()
            if not self._archive.members:
                self._end = 0

    # ---- the end

    def commit(self) -> None:
        """Write the directory, and replace the archive by the new file.

        Raises
        ------
        StoreError
            If that fails, or another program changed the archive; it is left as it is then.
        """
        # Closing the file may write what is left of it.
        with reported(self.path), self._opened:
            members = self._archive.members.values()
            if not (self._expected or members):
                return  # nothing was written, so there is no archive
            self._file.seek(self._end)
            with ZipFile(self._file, "w") as archive:
                archive.filelist.extend(sorted(members, key=attrgetter("header_offset")))
            self._file.truncate()
            with self._lock:
                self._file.close()
            if not self._expected:
                self._link()
                return
            self._check_unchanged()
            shutil.copymode(self.path, self._new_path)
            replace(self._new_path, self.path)

    def _link(self) -> None:
        """Rename the new file, unless there is an archive by now."""
        try:
            os.link(self._new_path, self.path)
        except OSError as error:
            if error.errno in NO_LINKS and not os.path.exists(self.path):
                replace(self._new_path, self.path)
                return
            if error.errno not in NO_LINKS and not isinstance(error, FileExistsError):
                raise
            raise _was_changed(self.path) from error


def _was_changed(path: str) -> StoreError:
    return StoreError(
        "another process created or replaced this zip archive after this write began, and nothing "
        "of this write is stored; run it again, or let several processes write a directory, and "
        "zarrdask.copy it into an archive",
        key=path,
    )


def _remove(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


def _checked(key: str, value: Buffer) -> tuple[memoryview, int]:
    """Return the bytes of a value and their CRC-32, after checking the key."""
    if not is_name(key):
        raise MetadataError(
            "this key can't be the name of a member of a zip archive",
            key=key,
            expected='names joined by "/", none of them "", "." or "..", without backslashes',
        )
    view = memoryview(value).cast("B")
    return view, crc32(view)
