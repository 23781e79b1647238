"""Write a zip archive: to a temporary file, which replaces the archive when it is complete."""

import errno
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from secrets import token_hex
from zlib import crc32

from zarrdask.errors import MetadataError, StoreError
from zarrdask.storage.atomic import beside, tidy
from zarrdask.storage.byte_ranges import Buffer
from zarrdask.storage.staged import remove_directory
from zarrdask.storage.system import IS_WINDOWS, NO_COPY, NO_LINKS, flags, pread, pwritev, replace
from zarrdask.storage.zip.archive import Archive
from zarrdask.storage.zip.directory import (
    Directory,
    Member,
    is_name,
    new_member,
    parse_local,
    render_directory,
    render_local,
)
from zarrdask.storage.zip.lock import ArchiveLock, lock_archive
from zarrdask.storage.zip.source import local_file

_READ = flags("O_RDONLY", "O_BINARY")
_CREATE = flags("O_RDWR", "O_CREAT", "O_EXCL", "O_BINARY")
_APPEND = flags("O_WRONLY", "O_APPEND", "O_CREAT", "O_BINARY")
_ARCHIVE, _PART = "archive", "part-"
#: The method of a record of a part file for a key that was erased.
_ERASED = 0xFFFF
#: The number of bytes that are copied at a time, and that are gathered before they are written.
_COPY_BYTES, _GATHER_BYTES = 2**23, 2**20
#: The number of bytes that contain nearly all local headers, and all of them (with long names).
_HEADER_BYTES, _MAX_HEADER_BYTES = 2**12, 2**18


class ZipWriter:
    """The only writer of an archive.

    The members of the archive are copied to a new file in a temporary folder, and new values are
    appended to it. `commit` writes the directory and replaces the archive by this file; until then
    the archive is unchanged. Several threads may write at the same time. Other processes append
    values to files of their own in the folder (`PartWriter`), which this writer appends to its
    file.

    Parameters
    ----------
    path : str
        The path of the archive, which need not exist.

    Raises
    ------
    StoreError
        If another process is writing the archive, if the file is not a zip archive, or if a file
        can't be created.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._busy = 0
        self._is_closed = False
        #: Whether other processes may have written values.
        self.is_shared = False
        self._taken: dict[str, int] = {}
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            tidy(os.path.dirname(path))
            self._before: ArchiveLock | None = lock_archive(path)
            self.folder = beside(path)
            try:
                os.mkdir(self.folder)
                self._file = f"{self.folder}/{_ARCHIVE}"
                self._fd = os.open(self._file, _CREATE, 0o666)
                self._copy()
            except BaseException:
                self._close()
                raise
        except OSError as error:
            raise error if isinstance(error, StoreError) else _failed(path, error) from error

    def _copy(self) -> None:
        """Copy the members of the existing archive."""
        members: dict[str, Member] = {}
        self._end = 0
        if self._before is not None:
            before = Archive(local_file(self.path))
            members, self._end = dict(before.members), before.directory.start
            _copy_range(self._before.fd, 0, self._fd, 0, self._end)
            os.chmod(self._file, os.fstat(self._before.fd).st_mode & 0o7777)
        self._archive = Archive(
            local_file(self._file, may_change=True), Directory(members, self._end)
        )

    @property
    def archive(self) -> Archive:
        """The archive with the values that were written, for reading."""
        if self.is_shared:
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
        view, member, header = _record(key, value)
        if self.is_shared:
            self.absorb()
        length = len(header) + len(view)
        with self._lock:
            start, self._end = self._end, self._end + length
            self._busy += 1
        try:
            _write_at(self._fd, start, header, view)
            with self._lock:
                self._put(member._replace(offset=start, limit=start + length))
        except OSError as error:
            raise _failed(f"{self.path}/{key}", error) from error
        finally:
            with self._lock:
                self._busy -= 1

    def _put(self, member: Member) -> None:
        self._archive.members[member.name] = member
        self._archive.forget()

    def erase(self, keys: Iterable[str]) -> None:
        """Remove values: their bytes stay in the file, but the directory does not name them."""
        if self.is_shared:
            self.absorb()
        with self._lock:
            members = self._archive.members
            for key in keys:
                members.pop(key, None)
            self._archive.forget()
            if not members and not self._busy:
                # The file has no values any more.
                os.ftruncate(self._fd, 0)
                self._end = 0
                self._archive.forget_places()

    # ---- values of other processes

    def absorb(self) -> None:
        """Append the values that other processes have written since the last time.

        Raises
        ------
        StoreError
            If that fails.
        """
        try:
            with self._lock:
                if self._is_closed:
                    return
                for name in sorted(os.listdir(self.folder)):
                    if name.startswith(_PART):
                        self._absorb(name)
        except OSError as error:
            raise _failed(self.path, error) from error

    def _absorb(self, name: str) -> None:
        fd = os.open(f"{self.folder}/{name}", _READ)
        try:
            at, size = self._taken.get(name, 0), os.fstat(fd).st_size
            first, members = at, list[Member]()

            def append() -> None:
                shift = self._end - first
                _copy_range(fd, first, self._fd, self._end, at - first)
                self._end += at - first
                for member in members:
                    offset, limit = member.offset + shift, member.limit + shift
                    self._put(member._replace(offset=offset, limit=limit))

            while at < size:
                header = parse_local(pread(fd, _HEADER_BYTES, at), 0)
                header = header or parse_local(pread(fd, _MAX_HEADER_BYTES, at), 0)
                if header is None or at + header[1] + header[0].packed > size:
                    break  # the record is incomplete, as its writer was killed
                member, length = header
                stop = at + length + member.packed
                if member.method == _ERASED:
                    append()
                    first, members = stop, []
                    self._archive.members.pop(member.name, None)
                else:
                    members.append(member._replace(offset=at, limit=stop))
                at = stop
            append()
            self._archive.forget()
            self._taken[name] = at
        finally:
            os.close(fd)

    # ---- the end

    def commit(self) -> None:
        """Write the directory, and replace the archive by the new file.

        Raises
        ------
        StoreError
            If that fails; the archive is unchanged then.
        """
        try:
            self.absorb()
            if self._before is None and not self._archive.members:
                return  # nothing was written, so there is no archive
            self._write_directory()
            if IS_WINDOWS:
                self._close_files()
            if self._before is not None:
                replace(self._file, self.path)
            else:
                _link(self._file, self.path)
        except FileExistsError as error:
            raise StoreError(
                "another process created this zip archive meanwhile, and the values written here "
                "are lost; write them again",
                key=self.path,
            ) from error
        except OSError as error:
            raise error if isinstance(error, StoreError) else _failed(self.path, error) from error
        finally:
            self._close()

    def _write_directory(self) -> None:
        at, gathered = self._end, bytearray()
        members = sorted(self._archive.members.values(), key=lambda member: member.offset)
        for piece in render_directory(members, self._end):
            gathered += piece
            if len(gathered) >= _GATHER_BYTES:
                _write_at(self._fd, at, gathered)
                at, gathered = at + len(gathered), bytearray()
        _write_at(self._fd, at, gathered)
        os.ftruncate(self._fd, at + len(gathered))

    def _close(self) -> None:
        """Remove the temporary folder, and release the lock."""
        with self._lock:
            self._is_closed = True
        self._close_files()
        with suppress(OSError):
            remove_directory(self.folder)
        if self._before is not None:
            self._before.release()
            self._before = None

    def _close_files(self) -> None:
        with suppress(AttributeError):
            os.close(self._fd)
            del self._fd
        if IS_WINDOWS and self._before is not None:
            self._before.close()


class PartWriter:
    """Writes values in another process than the `ZipWriter`, to a file in its folder.

    Each record is a local header and a value, written by one call. An incomplete record, of a
    process that was killed, is ignored.

    Parameters
    ----------
    folder : str
        The folder of the `ZipWriter`.
    archive : str
        The name of the archive in errors.
    """

    def __init__(self, folder: str, archive: str) -> None:
        self.folder = folder
        self._path = f"{folder}/{_PART}{os.getpid():x}-{token_hex(6)}"
        self._archive = archive
        self._lock = threading.Lock()

    def set(self, key: str, value: Buffer) -> None:
        """Append a value.

        Raises
        ------
        StoreError
            If the value can't be written, or the archive is already complete.
        """
        view, _, header = _record(key, value)
        self._append(key, header, view)

    def erase(self, keys: Iterable[str]) -> None:
        """Append records that values are erased."""
        for key in keys:
            erased = new_member(key, 0, 0)._replace(method=_ERASED)
            self._append(key, render_local(erased), b"")

    def _append(self, key: str, *pieces: Buffer) -> None:
        try:
            # The file is opened for each record: closing it makes the record visible to other
            # machines, and if the folder is missing, the archive is complete.
            with self._lock:
                fd = os.open(self._path, _APPEND, 0o666)
                try:
                    size = os.fstat(fd).st_size
                    try:
                        _write_at(fd, size, *pieces)
                    except BaseException:
                        os.ftruncate(fd, size)
                        raise
                finally:
                    os.close(fd)
        except FileNotFoundError as error:
            raise StoreError(
                "the zip archive is no longer being written, or this process can't see its folder",
                key=f"{self._archive}/{key}",
            ) from error
        except OSError as error:
            raise _failed(f"{self._archive}/{key}", error) from error


def _record(key: str, value: Buffer) -> tuple[memoryview, Member, bytes]:
    if not is_name(key):
        raise MetadataError(
            "this key can't be the name of a member of a zip archive",
            key=key,
            expected='names joined by "/", none of them "", "." or "..", without backslashes',
        )
    view = memoryview(value).cast("B")
    member = new_member(key, crc32(view), len(view))
    return view, member, render_local(member)


def _link(new: str, path: str) -> None:
    """Rename a file unless there is a file of the new name."""
    try:
        os.link(new, path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        if os.path.exists(path):
            raise FileExistsError(path) from error
        replace(new, path)


def _write_at(fd: int, start: int, *pieces: Buffer) -> None:
    views = [memoryview(piece).cast("B") for piece in pieces]
    while views:
        written = pwritev(fd, views, start)
        start += written
        while views and written >= len(views[0]):
            written -= len(views.pop(0))
        if views:
            views[0] = views[0][written:]


def _copy_range(source: int, start: int, target: int, at: int, length: int) -> None:
    """Copy bytes from one file to another, by the kernel if possible."""
    copies = hasattr(os, "copy_file_range")
    while length:
        if copies:
            try:
                count = os.copy_file_range(source, target, min(length, 2**30), start, at)
            except OSError as error:
                if error.errno not in NO_COPY:
                    raise
                copies = False
                continue
        else:
            data = pread(source, min(length, _COPY_BYTES), start)
            _write_at(target, at, data)
            count = len(data)
        if not count:
            raise OSError(errno.EIO, "the file became shorter while it was copied")
        start, at, length = start + count, at + count, length - count


def _failed(path: str, error: OSError) -> StoreError:
    return StoreError(error.strerror or str(error), key=path, found=type(error).__name__)
