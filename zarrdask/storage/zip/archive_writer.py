"""Write a zip archive: to a temporary file, which replaces the archive when it is complete."""

import json
import os
import shutil
import threading
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from operator import attrgetter
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO
from zipfile import ZipFile

from zarrdask.errors import MetadataError, StoreError
from zarrdask.formats.byte_ranges import Buffer
from zarrdask.runtime.system import NO_LINKS, replace
from zarrdask.storage.local.atomic import beside, tidy
from zarrdask.storage.local.open_file import reported
from zarrdask.storage.local.staged import remove_directory
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
from zarrdask.storage.zip.lock import lock_archive
from zarrdask.storage.zip.source import LocalFile

_ARCHIVE, _PART = "archive", "part-"


class ZipWriter:
    """The only writer of an archive, which need not exist.

    The archive is copied to a new file in a temporary folder, and new values are appended to it.
    `commit` writes the directory and replaces the archive by this file; until then the archive is
    unchanged. Several threads may write at the same time. Other processes append values to files of
    their own in the folder (`PartWriter`), which this writer appends to its file.

    Raises
    ------
    StoreError
        If another process is writing the archive, if the file is not a zip archive, or if a file
        can't be created.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.RLock()
        #: Whether other processes may have written values.
        self.is_shared = False
        self._taken: dict[Path, int] = {}
        with reported(path), ExitStack() as stack:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            tidy(os.path.dirname(path))
            self._is_new = not lock_archive(path, stack)
            self.folder = beside(path)
            os.mkdir(self.folder)
            stack.callback(_remove_folder, self.folder)
            self._new_path = f"{self.folder}/{_ARCHIVE}"
            directory = Directory({}, 0)
            if not self._is_new:
                directory = read_directory(LocalFile(path))
                copy_file(path, self._new_path)
            mode = "w+b" if self._is_new else "r+b"
            self._file: BinaryIO = stack.enter_context(open(self._new_path, mode))  # type: ignore[assignment]
            if not self._is_new:
                shutil.copymode(path, self._new_path)  # when it is open: it may be read-only
            self._end = directory.start
            self._archive = Archive(LocalFile(self._new_path, may_change=True), directory)
            self._encode_names()
            self._opened = stack.pop_all()

    def _encode_names(self) -> None:
        # `zipfile` writes names of other encodings to the directory as UTF-8.
        for name, member in list(self._archive.members.items()):
            if encoding(member) == "cp437":
                self.set(name, self._archive.get(name) or b"")

    @property
    def archive(self) -> Archive:
        """The archive with the values that were written, for reading."""
        self.absorb()
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
        self.absorb()
        with self._lock, reported(f"{self.path}/{key}"):
            self._append(key, view, crc)

    def _append(self, key: str, value: Buffer, crc: int) -> None:
        member = new_member(key, crc, len(value))
        member.header_offset = self._end
        self._file.seek(self._end)
        self._file.write(member.FileHeader())
        self._file.write(value)
        self._file.flush()
        self._end = self._file.tell()
        self._archive.members[key] = member
        self._archive.changed()

    def erase(self, keys: Iterable[str]) -> None:
        """Remove values: their bytes stay in the file, but the directory does not name them."""
        self.absorb()
        with self._lock:
            for key in keys:
                self._remove(key)

    def _remove(self, key: str) -> None:
        self._archive.members.pop(key, None)
        self._archive.changed()
        if not self._archive.members:
            self._end = 0

    # ---- values of other processes

    def absorb(self) -> None:
        """Append the values that other processes have written since the last time.

        Raises
        ------
        StoreError
            If that fails.
        """
        with self._lock, reported(self.path):
            if self.is_shared and not self._file.closed:
                for path in sorted(Path(self.folder).glob(f"{_PART}*")):
                    with open(path, "rb") as part:
                        part.seek(self._taken.get(path, 0))
                        self._absorb(part, path)

    def _absorb(self, part: BinaryIO, path: Path) -> None:
        # The last record may be incomplete: it is being written, or its writer was killed.
        while (line := part.readline()).endswith(b"\n"):
            key, size, crc = json.loads(line)
            if size is None:
                self._remove(key)
            else:
                value = part.read(size)
                if len(value) < size:
                    return
                self._append(key, value, crc)
            self._taken[path] = part.tell()

    # ---- the end

    def commit(self) -> None:
        """Write the directory, and replace the archive by the new file.

        Raises
        ------
        StoreError
            If that fails; the archive is unchanged then.
        """
        with self._opened, reported(self.path):
            self.is_shared = True  # with processes that were forked in the meantime
            self.absorb()
            members = self._archive.members.values()
            if self._is_new and not members:
                return  # nothing was written, so there is no archive
            self._file.seek(self._end)
            with ZipFile(self._file, "w") as archive:
                archive.filelist.extend(sorted(members, key=attrgetter("header_offset")))
            self._file.truncate()
            with self._lock:
                self._file.close()
            if self._is_new:
                self._link()
            else:
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
            raise StoreError(
                "another process created this zip archive meanwhile, and the values written here "
                "are lost; write them again",
                key=self.path,
            ) from error


class PartWriter:
    """Writes values in another process than the `ZipWriter`, to a file in its folder.

    Each record is a line of JSON with the key, the length of the value and its CRC-32, followed by
    the value. The length of a value that is erased is null.

    Parameters
    ----------
    folder : str
        The folder of the `ZipWriter`.
    archive : str
        The name of the archive in errors.
    """

    def __init__(self, folder: str, archive: str) -> None:
        self.folder = folder
        self._path = self._next_path()
        self._archive = archive
        self._lock = threading.Lock()

    def _next_path(self) -> str:
        return f"{self.folder}/{_PART}{token_hex(8)}"

    def set(self, key: str, value: Buffer) -> None:
        """Append a value.

        Raises
        ------
        StoreError
            If the value can't be written, or the archive is already complete.
        """
        view, crc = _checked(key, value)
        self._append(key, len(view), crc, view)

    def erase(self, keys: Iterable[str]) -> None:
        """Append records that values are erased."""
        for key in keys:
            self._append(key, None, 0, b"")

    def _append(self, key: str, size: int | None, crc: int, value: Buffer) -> None:
        line = json.dumps([key, size, crc]).encode() + b"\n"
        try:
            # The file is opened for each record: closing it makes the record visible to other
            # machines, and if the folder is missing, the archive is complete.
            with self._lock, reported(f"{self._archive}/{key}"), open(self._path, "ab") as file:
                file.write(line)
                file.write(value)
        except BaseException as error:
            # No record after an incomplete one would be read.
            self._path = self._next_path()
            if isinstance(error.__cause__, FileNotFoundError):
                raise StoreError(
                    "the zip archive is no longer being written, or this process can't see its "
                    "folder",
                    key=f"{self._archive}/{key}",
                ) from error
            raise


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


def _remove_folder(path: str) -> None:
    with suppress(OSError):
        remove_directory(path)
