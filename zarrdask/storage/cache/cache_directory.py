"""A cache of bytes in a local directory, which all processes of a user share.

Each entry is a file that is renamed to its name when it is complete, and that has a digest. So a
read returns the stored value or nothing, even if files are changed or a process is killed at any
time. Nothing is ever waited for on the disk (``fsync``): what a crash of the machine leaves is
recognized by the digest.

The size of all files is in a file that is locked while an entry is written. It is counted before
the entry is there, and is never too small. When it would exceed the limit, the files are listed,
and those that were not used for longest are removed.
"""

import logging
import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from struct import Struct, error
from typing import NamedTuple

from zarrdask.errors import StoreError
from zarrdask.formats.byte_ranges import Buffer
from zarrdask.runtime.system import IS_WINDOWS, renewed_after_fork
from zarrdask.storage.file_calls import flags, open_file, pread, pwrite, replace
from zarrdask.storage.local.atomic import is_temporary, put_file, tidy
from zarrdask.storage.local.open_file import READ, read_whole, write_whole
from zarrdask.storage.locks.lock_files import swappable_above

_LOG = logging.getLogger(__name__)

#: The part of the limit that is made free at once, so that files are listed seldom.
_FREED = 0.04
#: The unit in which file systems allocate space, as a rule.
_BLOCK_BYTES = 4096
#: Seconds: an entry is marked as used if it was last marked longer ago.
MARK_INTERVAL = 60
#: Seconds for which the lock is waited for before an entry is not written, and the pause between
#: two attempts.
PATIENCE, _PAUSE = 1.0, 0.001

_DIGEST_BYTES = 16
#: The length of the tag, and the size of the whole value, which is -1 if the value is missing; the
#: entry may be a part of the value.
_HEAD = Struct("<Hq")
#: The size of all files, and its complement, by which a damaged file is recognized.
_TOTAL = Struct("<qq")
_TOTAL_NAME = "size"
_OPEN_TOTAL = flags("O_RDWR", "O_CREAT", "O_NOFOLLOW", "O_BINARY")
#: One thread of a process at a time asks for the lock of the directory.
_WRITING = renewed_after_fork(threading.Lock())


class Entry(NamedTuple):
    """A value or part of one, None if it is missing; the size of all of it, and its tag."""

    value: Buffer | None
    size: int
    tag: str


@dataclass(frozen=True)
class CacheDirectory:
    """Entries in a directory, by names of `_DIGEST_BYTES` bytes.

    Attributes
    ----------
    path : str
        The directory, which only the user can read.
    limit : int
        The size of all files in bytes, as ``du`` counts them.
    """

    path: str
    limit: int

    @classmethod
    def below(cls, directory: str, limit: int) -> "CacheDirectory":
        """Return the cache of this user in a directory, which others may use, too.

        Raises
        ------
        StoreError
            If it can't be created, or other users could read or change it.
        """
        parent = os.path.abspath(directory)
        if (unsafe := swappable_above(os.path.join(parent, "x"))) is not None:
            raise StoreError(
                f"other users may rename directories in {unsafe}, and put one of theirs in the "
                "place of the cache; choose a directory that only you may write to, or set the "
                f"sticky bit of {unsafe} (chmod +t)",
                key="zarrdask.cache-directory",
                found=directory,
            )
        user = "" if IS_WINDOWS else f"-{os.geteuid()}"
        path = os.path.join(parent, f"zarrdask-cache{user}")
        try:
            os.makedirs(path, 0o700, exist_ok=True)
            status = os.lstat(path)
        except (OSError, ValueError) as reason:
            text = getattr(reason, "strerror", None) or str(reason)
            raise StoreError(
                f"the directory of the cache can't be created: {text}",
                key="zarrdask.cache-directory",
                found=directory,
            ) from reason
        is_private = stat.S_ISDIR(status.st_mode) and (
            IS_WINDOWS or (status.st_uid == os.geteuid() and not status.st_mode & 0o077)
        )
        if not is_private:
            raise StoreError(
                f"other users may read or change {path}; make it a directory with mode 0700, or "
                "choose another one",
                key="zarrdask.cache-directory",
                found=directory,
            )
        return cls(path, limit)

    def here(self) -> "CacheDirectory":
        """Return the cache in the directory of the same name for this user on this machine.

        Raises
        ------
        StoreError
            As `below`.
        """
        return CacheDirectory.below(os.path.dirname(self.path), self.limit)

    def _file(self, name: bytes) -> str:
        text = name.hex()
        return os.path.join(self.path, text[:2], text[2:])

    # ---- entries

    def get(self, name: bytes) -> Entry | None:
        """Return an entry; None if there is none, or if it is damaged."""
        path = self._file(name)
        try:
            fd = open_file(path, READ)
            try:
                status = os.fstat(fd)
                # A damaged file may have any size.
                data = read_whole(fd, status.st_size) if status.st_size <= self.limit else b""
            finally:
                os.close(fd)
            if time.time() - status.st_mtime > MARK_INTERVAL:
                with suppress(OSError):
                    os.utime(path)
        except (OSError, MemoryError):
            return None
        entry = _decoded(name, data)
        if entry is None:
            _LOG.warning("%s is damaged; its content is requested again", path)
            with suppress(OSError):
                os.unlink(path)
        return entry

    def put(self, name: bytes, entry: Entry) -> None:
        """Keep an entry instead of an older one, if that is possible."""
        head, value = _encoded(name, entry)
        size = _allocated(len(head) + len(value))

        def write(fd: int) -> None:
            write_whole(fd, head)
            write_whole(fd, value)

        if size > self.limit:
            return
        try:
            with self.locked_total() as fd:
                self._reserve(fd, size)
                put_file(self._file(name), write, replace, self._make_directory)
        except (OSError, StoreError) as reason:
            # Such as a full disk. The value was read all the same.
            _LOG.info("nothing is written to the cache: %s", reason)

    def _make_directory(self, path: str) -> bool:
        os.makedirs(path, 0o700, exist_ok=True)
        return False  # All files are in one directory.

    # ---- the size of all files

    @contextmanager
    def locked_total(self) -> Iterator[int]:
        """Exclude other writers, and return the descriptor of the file with the total size."""
        if not _WRITING.acquire(timeout=PATIENCE):
            raise TimeoutError("other threads write to the cache")
        try:
            fd = open_file(os.path.join(self.path, _TOTAL_NAME), _OPEN_TOTAL, 0o600)
            try:
                with _locked(fd):
                    yield fd
            finally:
                os.close(fd)
        finally:
            _WRITING.release()

    def _reserve(self, fd: int, size: int) -> None:
        """Count an entry before it is written; remove others to make space for it."""
        try:
            total, complement = _TOTAL.unpack(pread(fd, _TOTAL.size, 0))
        except error:
            total = complement = 0
        if total != ~complement or total + size > self.limit:
            total = self._shrink(self.limit - size)
        total += size
        pwrite(fd, _TOTAL.pack(total, ~total), 0)

    def _shrink(self, most: int) -> int:
        """Remove the entries that were not used for longest, if the size exceeds `most`.

        The size of the others is returned.
        """
        files = [*self._files()]
        total = sum(size for _, size, _ in files)
        if total <= most:
            return total
        for _, size, path in sorted(files):
            if total <= most - self.limit * _FREED:
                break
            with suppress(OSError):
                os.unlink(path)
                total -= size
        return total

    def _files(self) -> Iterator[tuple[int, int, str]]:
        """Yield when each entry was used, its size, and its path."""
        for folder in os.scandir(self.path):
            if not folder.is_dir(follow_symlinks=False):
                continue
            if any(is_temporary(name) for name in os.listdir(folder)):
                tidy(folder.path)  # the files of processes that were killed
            for file in os.scandir(folder):
                with suppress(OSError):
                    status = file.stat(follow_symlinks=False)
                    yield status.st_mtime_ns, _allocated(status.st_size), file.path


def _allocated(size: int) -> int:
    return -(-size // _BLOCK_BYTES) * _BLOCK_BYTES


@contextmanager
def _locked(fd: int) -> Iterator[None]:
    """Lock an open file, waiting for a limited time only: its owner may have been stopped."""
    deadline = time.monotonic() + PATIENCE
    while not _try_lock(fd):
        if time.monotonic() > deadline:
            raise TimeoutError("another process holds the lock of the cache")
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        _unlock(fd)


if IS_WINDOWS:
    import msvcrt

    #: Far behind the content: other processes can't read locked bytes.
    _LOCKED_AT = 2**30

    def _try_lock(fd: int) -> bool:
        os.lseek(fd, _LOCKED_AT, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        except OSError:
            return False
        return True

    def _unlock(fd: int) -> None:
        os.lseek(fd, _LOCKED_AT, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined, unused-ignore]

else:
    import fcntl

    def _try_lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(fd: int) -> None:
        # A process forked in between has the descriptor, too: closing is not enough.
        fcntl.flock(fd, fcntl.LOCK_UN)


# ---- the content of files


def _encoded(name: bytes, entry: Entry) -> tuple[bytes, Buffer]:
    """Return the head of the file of an entry, and what follows."""
    tag, value = entry.tag.encode(), b"" if entry.value is None else entry.value
    head = _HEAD.pack(len(tag), -1 if entry.value is None else entry.size) + tag
    return _digest(name, head, value) + head, value


def _decoded(name: bytes, data: bytes) -> Entry | None:
    """Return the entry of a file; None if it is damaged, or has another name."""
    view = memoryview(data)
    try:
        length, size = _HEAD.unpack_from(view, _DIGEST_BYTES)
    except error:
        return None
    start = _DIGEST_BYTES + _HEAD.size + length
    head, value = view[_DIGEST_BYTES:start], view[start:]
    if _digest(name, head, value) != view[:_DIGEST_BYTES]:
        return None
    tag = str(head[_HEAD.size :], "utf-8")
    return Entry(None, 0, tag) if size < 0 else Entry(value, size, tag)


def _digest(name: bytes, head: Buffer, value: Buffer) -> bytes:
    digest = blake2b(head, digest_size=_DIGEST_BYTES, key=name)
    digest.update(value)
    return digest.digest()
