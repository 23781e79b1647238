"""An archive that is being written: to a file beside, which takes its place when it is complete."""

import errno
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from secrets import token_hex
from zlib import crc32

from zarrdask.errors import MetadataError, StoreError
from zarrdask.storage.atomic import tidy
from zarrdask.storage.byte_ranges import Buffer
from zarrdask.storage.staged import beside, remove_directory
from zarrdask.storage.system import IS_WINDOWS, flags, pread, pwritev, replace
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
#: The method of a record in a part file that says that a key was erased.
_ERASED = 0xFFFF
#: Bytes that are copied, or gathered before they are written, at a time.
_COPIED, _GATHERED = 2**23, 2**20
#: A local header is as a rule no longer; its name may be.
_HEADER, _LONGEST_HEADER = 2**12, 2**18
_NO_COPY = {errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EPERM}
_NO_LINKS = {errno.EMLINK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM}


class ZipWriter:
    """The one writer of an archive.

    What is in the archive already is copied to a new file, in a folder that no listing shows;
    values are appended there. `commit` writes the directory and puts the file in the archive's
    place. Until then the archive is as it was. Threads may write at the same time. Other processes
    append their values to files of their own in the folder (`PartWriter`), which are appended here.

    Parameters
    ----------
    path : str
        Of the archive, whether it is there or not.

    Raises
    ------
    StoreError
        If another process is writing it, or it is no zip archive, or a file can't be made.
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
        """Begin with what is in the archive already."""
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
        """The archive as it is to be, for reading."""
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
            If it can't be written.
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
                # Nothing of it is needed any more.
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
                header = parse_local(pread(fd, _HEADER, at), 0)
                header = header or parse_local(pread(fd, _LONGEST_HEADER, at), 0)
                if header is None or at + header[1] + header[0].packed > size:
                    break  # its writer was killed
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
        """Write the directory, and let the file take the place of the archive.

        Raises
        ------
        StoreError
            If it can't be done; the archive is as it was then.
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
                "another process made this zip archive meanwhile; what was written here is lost",
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
            if len(gathered) >= _GATHERED:
                _write_at(self._fd, at, gathered)
                at, gathered = at + len(gathered), bytearray()
        _write_at(self._fd, at, gathered)
        os.ftruncate(self._fd, at + len(gathered))

    def _close(self) -> None:
        """Remove what was made for the write."""
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
    """What another process than the one that writes an archive does: it appends to its own file.

    Each record is a local header and a value, written by one call: one that is not complete, as
    the process was killed, is not taken.

    Parameters
    ----------
    folder : str
        That of the `ZipWriter`.
    archive : str
        What errors call the archive.
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
            If it can't be written, or the archive is complete.
        """
        view, _, header = _record(key, value)
        self._append(key, header, view)

    def erase(self, keys: Iterable[str]) -> None:
        """Remember that values are to be removed."""
        for key in keys:
            erased = new_member(key, 0, 0)._replace(method=_ERASED)
            self._append(key, render_local(erased), b"")

    def _append(self, key: str, *pieces: Buffer) -> None:
        try:
            # Opened each time: closing hands the bytes to other machines, and a folder that is
            # gone says that the archive is complete.
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
                "the zip archive is no longer being written, or its folder can't be seen from here",
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
    """Give a file its name if there is none of that name."""
    try:
        os.link(new, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
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
    """Copy bytes from one file to another, in the kernel if that can do it."""
    copies = hasattr(os, "copy_file_range")
    while length:
        if copies:
            try:
                count = os.copy_file_range(source, target, min(length, 2**30), start, at)
            except OSError as error:
                if error.errno not in _NO_COPY:
                    raise
                copies = False
                continue
        else:
            data = pread(source, min(length, _COPIED), start)
            _write_at(target, at, data)
            count = len(data)
        if not count:
            raise OSError(errno.EIO, "the file became shorter while it was copied")
        start, at, length = start + count, at + count, length - count


def _failed(path: str, error: OSError) -> StoreError:
    return StoreError(error.strerror or str(error), key=path, found=type(error).__name__)
