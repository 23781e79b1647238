"""Directories on a local disk: one `open` and one `read` for each value.

Only regular files are values. Symbolic links are followed when a value is read or stored, unless
that is disabled; nothing is ever erased through a link below the root.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from errno import ENAMETOOLONG
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, Self

from zarrdask import config
from zarrdask.errors import StoreError
from zarrdask.formats.byte_ranges import (
    Buffer,
    Entry,
    ObjectVersion,
    Range,
    StoredObject,
    Tag,
    Version,
)
from zarrdask.formats.store_keys import Names, check_prefix
from zarrdask.runtime import measuring
from zarrdask.runtime.scratch import Scratch
from zarrdask.runtime.thread_counts import THIS_THREAD
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import LOCAL_COSTS, Capabilities
from zarrdask.storage.counted_requests import counted
from zarrdask.storage.file_calls import NO_LINKS, fill, open_file, preadv, replace
from zarrdask.storage.identity import Identity
from zarrdask.storage.local.atomic import link, put_file, tidy
from zarrdask.storage.local.links import (
    entries_in,
    is_linked,
    names_in,
    open_unlinked,
    opened_directory,
    remove_below,
)
from zarrdask.storage.local.open_file import (
    ABSENT,
    READ,
    OpenFile,
    check_file_name,
    fail,
    listed_status,
    open_value,
    part_of,
    read_whole,
    reopened,
    reported,
    settled_version,
    size_in,
    size_of,
    stamp_in,
    version_in,
    write_whole,
)


@dataclass(frozen=True)
class LocalStore(Store):
    """Files under a directory (conformance A-2, B-88).

    Parameters
    ----------
    root : str
        The absolute path of the directory, which may be a symbolic link. It need not exist before
        the first write.
    follow_links : bool, optional
        Whether symbolic links below the root are followed when values are read and stored. If
        not, a value that is a link, or is behind one, raises an error. The default is the setting
        ``zarrdask.follow-links``.
    """

    _counts_requests = True

    root: str
    follow_links: bool | None = None
    #: The mode of new files, before the umask.
    _file_mode: ClassVar[int] = 0o666
    #: Whether all keys are keys of chunks. Then a directory that has the name of a value, or a file
    #: with the name of a directory, raises an error; otherwise "a" may be a directory as "a/b" is a
    #: key.
    holds_chunks: bool = field(default=False, compare=False, repr=False)

    capabilities = Capabilities(
        costs=LOCAL_COSTS,
        create_exclusive=True,
        versions=True,
        reads_versions=True,
        directories=True,
        stamps=True,
        keeps_open=True,
    )

    def __getstate__(self) -> dict[str, Any]:
        # Each task carries the store, so defaults are left out. That links are not followed holds
        # in all processes, though only this one may have the setting.
        defaults = type(self)
        state = {k: v for k, v in vars(self).items() if getattr(defaults, k, self) is not v}
        if not state.pop("_follows", self._follows):
            state["follow_links"] = False
        return state

    def for_chunks(self) -> Self:
        # The constructor of a subclass may take other arguments.
        plain = type(self) is LocalStore
        return type(self)(self.root, self.follow_links, holds_chunks=True) if plain else self

    @property
    def url(self) -> str:
        """The directory's path."""
        return self.root

    @property
    def identity(self) -> Identity:
        """The identity of the directory, with a URI such as ``file:///my%20data``."""
        return _identity(self.root)

    def above(self) -> "LocalStore | None":
        directory = os.path.dirname(self.root)
        return None if directory == self.root else LocalStore(directory, self.follow_links)

    def path(self, key: str) -> str:
        """Return the file that holds a key's value."""
        return f"{self.root}/{key}"

    def _is_absent(self, error: OSError | ValueError) -> bool:
        """Whether an error of the system means that a value is missing."""
        absent = (FileNotFoundError, ValueError) if self.holds_chunks else ABSENT
        return isinstance(error, absent) or getattr(error, "errno", None) == ENAMETOOLONG

    @cached_property
    def _follows(self) -> bool:
        """Whether symbolic links below the root are followed."""
        chosen = self.follow_links
        return bool(config.get("follow-links") if chosen is None else chosen)

    @property
    def _open(self) -> Callable[[str, int], int]:
        """The function that opens the file of a path below the root."""
        if self.follow_links is None and not self.holds_chunks:
            # Reading the setting imports Dask, which takes longer than opening a store.
            return self._open_document
        return open_file if self._follows else self._open_unlinked

    def _open_document(self, path: str, flags: int) -> int:
        fd = open_file(path, flags)
        if not is_linked(self.root, path[len(self.root) + 1 :]) or self._follows:
            return fd
        os.close(fd)
        return self._open_unlinked(path, flags)

    def _open_unlinked(self, path: str, flags: int) -> int:
        return open_unlinked(self.root, path[len(self.root) + 1 :], flags)

    @counted("GET")
    def get(self, key: str) -> bytes | None:
        with self.opened(key) as (fd, size):
            return None if fd < 0 else read_whole(fd, size)

    @counted("GET")
    def get_if_changed(
        self, key: str, tag: Tag | None, start: int = 0, length: int | None = None
    ) -> Version:
        if tag is not None and self._follows:
            # Opening the file says what an error means.
            with suppress(OSError, ValueError):
                if version_in(os.stat(f"{self.root}/{key}")) == tag:
                    return Version(tag=tag)
        with self.opened(key) as (fd, size):
            if fd < 0:
                return Version()
            present = settled_version(fd)
            if present is not None and present == tag:
                return Version(tag=tag)
            is_whole = start == 0 and length is None
            value = read_whole(fd, size) if is_whole else part_of(fd, size, start, length)
            return Version(value, size, present)

    @counted("GET")
    def get_version(
        self, key: str, version: ObjectVersion, start: int = 0, length: int | None = None
    ) -> Buffer | None:
        with self.opened(key) as (fd, size):
            value = part_of(fd, size, start, length)
            # Afterwards: other software may write to the file that is open.
            is_version = fd >= 0 and stamp_in(os.fstat(fd)) == version.tag
            return value if is_version else None

    @counted("HEAD")
    def stat(self, key: str) -> Entry | None:
        if not self._follows:
            with self.opened(key) as (fd, size):
                return None if fd < 0 else Entry(key, size, stamp_in(os.fstat(fd)))
        path = self.path(key)
        try:
            status = os.stat(path)
            size = size_in(status)
        except (OSError, ValueError) as error:
            if not self._is_absent(error):
                fail(path, error)
            return None
        return Entry(key, size, stamp_in(status))

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:
        values = self._get_many(keys, scratch)
        if not measuring.IS_ACTIVE:
            return values
        counts, is_one = THIS_THREAD.counts, isinstance(keys, list) and len(keys) == 1
        return (counts.read_one if is_one else counts.reads)(self, values)

    def _get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:
        # The hot loop: no fstat, no allocation; a value that fills the buffer is read again.
        open_, start = self._open, f"{self.root}/"
        view = scratch.view
        space = len(view)
        for key in keys:
            try:
                fd = open_(start + key, READ)
            except (OSError, ValueError) as error:
                if self._is_absent(error):
                    yield None
                    continue
                fd = reopened(open_, start + key, error)
            try:
                size = preadv(fd, (view,), 0)
                if size == space or not size:
                    # Some devices return as much as is requested, or nothing.
                    size = size_of(fd)
                    view = scratch.reserve(size + 1)
                    space = len(view)
                    size = fill(fd, view[:size], 0)
            except OSError as error:
                if not self._is_absent(error):
                    fail(start + key, error)
                yield None
                continue
            finally:
                os.close(fd)
            yield view[:size]

    @counted("GET")
    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:
        with self.opened(key) as (fd, size):
            return part_of(fd, size, start, length)

    def get_ranges(
        self, key: str, ranges: Sequence[Range], scratch: Scratch
    ) -> Iterator[Buffer | None]:
        with self.reading(key, scratch) as file:
            yield from file.parts(ranges)

    @contextmanager
    def reading(self, key: str, scratch: Scratch) -> "Iterator[OpenFile]":
        # Not by `opened`: a second context manager takes as long as to open the file.
        path = self.path(key)
        fd, size = open_value(path, self._open, self._is_absent)
        try:
            yield OpenFile(fd, size, scratch, self.root)
        except OSError as error:
            fail(path, error)
        finally:
            if fd >= 0:
                os.close(fd)

    def set(self, key: str, value: Buffer) -> None:
        self._put(key, lambda fd: write_whole(fd, value), replace, memoryview(value).nbytes)

    @contextmanager
    def opened(self, key: str) -> Iterator[tuple[int, int]]:
        """Open a value for reading: its descriptor (negative if it is missing) and its size."""
        path = self.path(key)
        fd, size = open_value(path, self._open, self._is_absent)
        try:
            yield fd, size
        except OSError as error:
            fail(path, error)
        finally:
            if fd >= 0:
                os.close(fd)

    def replace(self, key: str, write: Callable[[int], None]) -> None:
        """Store a value that a function writes to the file whose descriptor it is passed.

        Raises
        ------
        StoreError
            If that fails; the old value is kept.
        """
        self._put(key, write, replace)

    def create(self, key: str, value: Buffer, write: Callable[[int], None] | None = None) -> bool:
        """Store a value if the key is missing, and return whether it was.

        `write`, if given, writes it to the file whose descriptor it is passed.
        """
        if not self.capabilities.create_exclusive:
            return super().create(key, value)
        try:
            size = memoryview(value).nbytes
            self._put(key, write or (lambda fd: write_whole(fd, value)), link, size)
        except StoreError as error:
            if isinstance(error.__cause__, FileExistsError) and os.path.isfile(self.path(key)):
                return False
            if getattr(error.__cause__, "errno", None) in NO_LINKS:
                return super().create(key, value)
            raise
        return True

    def _put(
        self,
        key: str,
        write: Callable[[int], None],
        move: Callable[[str, str], None],
        nbytes: int | None = None,
    ) -> None:
        """Write a value, of a size that may be known, to a temporary file, and rename the file."""
        if not measuring.IS_ACTIVE:
            self._write(key, write, move)
            return
        written: list[int] = []

        def then_size(file: int) -> None:
            write(file)
            # The file may have been erased by another writer once it has its name.
            written.append(os.fstat(file).st_size)

        put = partial(self._write, key, write if nbytes is not None else then_size, move)
        THIS_THREAD.counts.request("PUT", self, put, nbytes or 0)
        if written:
            THIS_THREAD.counts.count("stored", written[0], self)

    def _write(
        self, key: str, write: Callable[[int], None], move: Callable[[str, str], None]
    ) -> None:
        path = self.path(key)
        check_file_name(path)
        if not self._follows:
            self._check_unlinked([key])
        try:
            put_file(path, write, move, self._make_directory, self._file_mode)
        except OSError as error:
            fail(path, error)

    def _make_directory(self, path: str) -> bool:
        """Make a directory and those above it, and return whether it did not exist."""
        try:
            os.mkdir(path)
        except FileNotFoundError:
            os.makedirs(path, exist_ok=True)
        except FileExistsError as error:
            if os.path.isdir(path):
                return False
            if not os.path.islink(path):
                raise
            raise StoreError(
                "expected a directory but found a symbolic link whose target does not exist; "
                "remove it, or create the target",
                key=path,
            ) from error
        return True

    @counted("DELETE")
    def erase(self, key: str) -> None:
        """Remove a value, if there is one; if it is a symbolic link, only the link.

        Raises
        ------
        LinkError
            If the value is behind a symbolic link below the root.
        """
        path = self.path(key)
        with reported(path), suppress(*ABSENT):
            os.lstat(path)
            *above, name = names_in(key)
            with opened_directory(self.root, above) as directory:
                directory.unlink(name)

    def check_writable(self, *, erasing: Iterable[str] = ()) -> None:
        self._check_unlinked(erasing)

    def _check_unlinked(self, keys: Iterable[str]) -> None:
        """Check that no key or prefix is behind a symbolic link."""
        for folder in {key.rstrip("/").rpartition("/")[0] for key in keys}:
            opened = opened_directory(self.root, names_in(folder))
            with reported(self.path(folder)), suppress(*ABSENT), opened:
                pass

    def tidy(self, prefix: str, *, recursive: bool = False) -> None:
        with suppress(StoreError):
            # Files behind a link are kept.
            self._check_unlinked([f"{prefix}x"])
            path = self.path(prefix)
            for directory in (each for each, *_ in os.walk(path)) if recursive else (path,):
                tidy(directory)

    @counted("DELETE")
    def erase_prefix(self, prefix: str) -> None:
        """Remove every key that begins with the prefix; symbolic links are removed, not followed.

        If the root is a symbolic link, the directory that it points to is emptied and kept.

        Raises
        ------
        LinkError
            If the directory is behind a symbolic link below the root.
        """
        with reported(self.path(check_prefix(prefix))):
            remove_below(self.root.rstrip("/"), names_in(prefix))

    def list_dir(self, prefix: str) -> Names:
        keys, prefixes, _ = self.list_entries(prefix)
        return keys, prefixes

    def list_entries(self, prefix: str) -> tuple[list[str], list[str], list[str]]:
        """Return the names of keys, of directories, and of links that lead to one above them.

        Such links are not listed as directories, as a walk that enters them would not end.
        """
        self._check_directory(check_prefix(prefix))
        return self._entries(prefix)

    def _check_directory(self, prefix: str) -> None:
        """Check that a directory is not behind a symbolic link, if links are not followed."""
        if is_linked(self.root, prefix) and not self._follows:
            self._check_unlinked([f"{prefix}x"])

    @counted("LIST")
    def _entries(self, prefix: str) -> tuple[list[str], list[str], list[str]]:
        """Return the entries as `list_entries`, for a directory that was checked."""
        with reported(self.path(prefix)), suppress(*ABSENT):
            return entries_in(self.root, prefix)
        return [], [], []

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield every key that begins with the prefix.

        If all keys are keys of chunks, directories are yielded, too, with a slash at their end:
        one may have the name of a chunk.
        """
        self._check_directory(check_prefix(prefix))
        pending = [prefix]
        while pending:
            folder = pending.pop()
            if folder != prefix:
                if self.holds_chunks:
                    yield folder
                # The directories above it were checked.
                if os.path.islink(self.path(folder[:-1])):
                    self._check_directory(folder)
            keys, prefixes, loops = self._entries(folder)
            yield from (folder + name for name in keys)
            if self.holds_chunks:
                yield from (f"{folder}{name}/" for name in loops)
            pending += [f"{folder}{name}/" for name in reversed(prefixes)]

    def entries(
        self, prefix: str, after: str = "", until: str | None = None, *, objects: bool = False
    ) -> Iterator[Entry]:
        root = f"{self.identity.uri}/"
        for key, *_ in super().entries(prefix, after, until):
            if objects and key.endswith("/"):
                # A directory that has the name of a chunk can't be read.
                yield Entry(key, object=StoredObject(key, root, 0, None))
                continue
            status = listed_status(f"{self.root}/{key}")
            if not objects:
                yield Entry(key, None if status is None else status.st_size)
                continue
            if status is None:
                with self.opened(key) as (fd, _):
                    status = os.fstat(fd) if fd >= 0 else None
            if status is not None:
                size, stamp = status.st_size, stamp_in(status)
                stored = StoredObject(key, root, size, status.st_mtime, stamp)
                yield Entry(key, size, stamp, stored)


def as_local(store: Store) -> LocalStore | None:
    """Return a store if its values are files, to open and replace by descriptors, else None."""
    return store if isinstance(store, LocalStore) else None


@lru_cache(maxsize=256)
def _identity(root: str) -> Identity:
    return Identity(uri=Path(root).as_uri(), token=root, directory=root)
