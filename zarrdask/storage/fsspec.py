"""File systems of fsspec: s3, http, gcs, zip, memory and others."""

import os
import pickle
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from glob import has_magic
from typing import Any
from urllib.parse import quote, unquote

import fsspec  # noqa: F401
from fsspec.asyn import reset_lock
from fsspec.implementations.local import LocalFileSystem

from zarrdask.errors import ReadOnlyError, StoreError, censored, without_secrets
from zarrdask.storage.base import Store
from zarrdask.storage.byte_ranges import Buffer, Part, StoredObject, Tag, Version, cut, strong_etag
from zarrdask.storage.capabilities import Capabilities, without
from zarrdask.storage.failures import Meaning, meaning_of
from zarrdask.storage.fsspec_errors import ERRORS, store_error
from zarrdask.storage.fsspec_etags import can_replace, header, replace, request
from zarrdask.storage.fsspec_options import (
    is_reference,
    prepared,
    protocols,
)
from zarrdask.storage.fsspec_urls import file_system_at
from zarrdask.storage.keys import Names, check_prefix
from zarrdask.storage.local import LocalStore
from zarrdask.storage.memory import elsewhere
from zarrdask.storage.refusals import no_bucket, not_listable, not_supported, not_writable
from zarrdask.storage.system import after_fork

#: Protocols of stores that have keys, not directories.
_OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "abfs", "az"}
#: Protocols of servers that can't count a range from the end of a value.
_NO_SUFFIXES = {"abfs", "az"}


# Older releases of fsspec use the event loop of the parent, whose thread is not forked.
after_fork(reset_lock)


class FsspecStore(Store):
    """Values in a file system of fsspec.

    Each request waits in a thread of `zarrdask.storage.in_flight`, if the file system runs requests
    in an event loop of its own. Others, such as SFTP, are asked for one value after another.

    Parameters
    ----------
    fs : fsspec.AbstractFileSystem
        The file system.
    root : str
        The path in it, without the protocol.

    Raises
    ------
    StoreError
        If it is a file system of references, or is made of one: it reads any local file that a
        document names.
    """

    capabilities = Capabilities(
        concurrent=True, create_exclusive=True, compare_and_swap=True, etags=True, versions=True
    )

    def __init__(self, fs: Any, root: str) -> None:
        if is_reference(fs):
            raise StoreError(
                "references are opened by zarrdask itself, so this chain of file systems is not "
                'supported; pass the URL "reference://" with the document as "fo" in '
                "storage_options",
                found=type(fs).__name__,
            )
        self._fs, self._process = prepared(fs), os.getpid()
        self.root = root.rstrip("/")
        # Without this, s3fs requests the size first, to split the request; one request is faster.
        names = {*protocols(fs)}
        self._options = {"max_concurrency": 1} if "s3" in names else {}
        outer, client = getattr(fs, "fs", None), fs
        while (inner := getattr(client, "fs", None)) is not None:
            client = inner  # a cache, or a directory, of another file system
        supported = {
            # Not archives that are opened for reading, nor HTTP.
            "writable": getattr(fs, "mode", None) != "r" and "http" not in names,
            "shared": "memory" not in names,
            "concurrent": bool(client.async_impl),
            "create_exclusive": "s3" in names,
            "compare_and_swap": "s3" in names,
            # A cache of another file system keeps only what it fetches itself.
            "etags": outer is None and not names.isdisjoint({"s3", "http"}),
            "versions": outer is None and not names.isdisjoint({"s3", "http"}),
        }
        absent = frozenset(name for name, is_supported in supported.items() if not is_supported)
        self.capabilities = without(self.capabilities, absent)

    @classmethod
    def from_url(cls, url: str, storage_options: dict[str, Any] | None = None) -> "FsspecStore":
        """Return the store at a URL.

        Raises
        ------
        StoreError
            If fsspec does not know the protocol, or its package is not installed.
        """
        return cls(*file_system_at(url, storage_options or {}))

    @property
    def fs(self) -> Any:
        """The file system; in a forked process another one, as event loops are not forked."""
        if self._process != os.getpid():
            if self.capabilities.concurrent:
                self._fs = prepared(pickle.loads(pickle.dumps(self._fs)))
            self._process = os.getpid()
        return self._fs

    @property
    def url(self) -> str:
        return without_secrets(self._real_url)

    @property
    def _real_url(self) -> str:
        return str(self.fs.unstrip_protocol(self.root))

    @property
    def _uri(self) -> str:
        """The URL; for a local directory, its URI."""
        return f"file://{quote(self.root)}" if "file" in protocols(self.fs) else self.url

    _opened_by = "fsspec"

    def _above(self) -> "FsspecStore | None":
        directory, _, name = self.root.rpartition("/")
        # Nothing is above a bucket, or above a host with its protocol.
        is_top = not name or directory in ("", "http:/", "https:/")
        return None if is_top else FsspecStore(self.fs, directory)

    @property
    def _token(self) -> str:
        return f"{self._real_url}#{self.fs._fs_token}"

    @property
    def _access(self) -> Mapping[str, Any]:
        return {**self.fs.storage_options, "args": repr(self.fs.storage_args)}

    def path(self, key: str) -> str:
        """Return the path of a key in the file system."""
        return f"{self.root}/{key}" if self.root else key

    def get(self, key: str) -> bytes | None:
        try:
            return bytes(self._read(self.path(key), **self._options))
        except ERRORS as error:
            self._check_absent(key, error)
            return None

    def _size(self, key: str) -> int | None:
        try:
            info = self.fs.info(self.path(key))
        except ERRORS as error:
            self._check_absent(key, error)
            return None
        if info["type"] == "directory":
            return None
        return super()._size(key) if info.get("size") is None else int(info["size"])

    def _read(self, path: str, **options: Any) -> Any:
        if getattr(self.fs, "fs", None) is None:
            return self.fs.cat_file(path, **options)
        # A cache of another file system keeps what this method reads, but not what `cat_file` does.
        bounds = [options.pop("start", None)], [options.pop("end", None)]
        return self.fs.cat_ranges([path], *bounds, on_error="raise", **options)[0]

    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:
        if start == 0 and length is None:
            return self.get(key)  # servers refuse a range of an empty value
        try:
            if start < 0 and not _NO_SUFFIXES.isdisjoint(protocols(self.fs)):
                start = max(self.fs.info(self.path(key), refresh=True)["size"] + start, 0)
                return self.get_range(key, start, length)
            end = _end(start, length)
            value = self._read(self.path(key), start=start, end=end)
            is_short = end is None or len(value) < end - start
            if start > 0 and is_short and "http" in protocols(self.fs):
                # Only the size tells whether the server sent the end of the value, or all of it.
                is_whole = self.fs.size(self.path(key)) == len(value)
                value = value[start:] if is_whole else value
        except ERRORS as error:
            if meaning_of(error) is Meaning.BEHIND:
                return b""
            self._check_absent(key, error)
            return None
        return cut(_trimmed(value, start, end), 0, length)

    def set(self, key: str, value: Buffer) -> None:
        self._check_writable()
        path, data = self.path(key), bytes(value)
        try:
            try:
                self.fs.pipe_file(path, data)
            except FileNotFoundError:
                # Some file systems have real directories. Buckets are not created here.
                if not self.fs.exists(self.root.split("/")[0] or "/"):
                    raise
                self.fs.makedirs(os.path.dirname(path), exist_ok=True)
                self.fs.pipe_file(path, data)
        except NotImplementedError as error:
            raise ReadOnlyError("this file system can't be written", key=key) from censored(error)
        except ERRORS as error:
            raise self._failed(key, error) from censored(error)

    def _check_writable(self) -> None:
        if not self.capabilities.writable:
            raise not_writable(self.url)

    def create(self, key: str, value: Buffer) -> bool:
        if not self.capabilities.create_exclusive:
            return super().create(key, value)
        try:
            self.fs.pipe_file(self.path(key), bytes(value), mode="create")
        except ERRORS as error:
            meaning = meaning_of(error)
            if meaning is Meaning.NOT_MET:
                return False
            if meaning is Meaning.UNSUPPORTED:
                return super().create(key, value)
            raise self._failed(key, error) from censored(error)
        return True

    def get_tagged(self, key: str) -> tuple[Buffer | None, Tag | None]:
        try:
            answer = request(self.fs, self.path(key))
        except ERRORS as error:
            self._check_absent(key, error)
            return None, None
        return answer.value, answer.etag

    def get_part(self, key: str, start: int, length: int, tag: Tag | None = None) -> Part | None:
        try:
            answer = request(self.fs, self.path(key), header(start, length), tag)
        except ERRORS as error:
            meaning = meaning_of(error)
            if meaning is Meaning.BEHIND:
                return Part(b"", 0, None)
            if meaning is not Meaning.NOT_MET:
                self._check_absent(key, error)
            return None
        return answer.part(tag)

    def get_if_changed(
        self, key: str, tag: Tag | None, start: int = 0, length: int | None = None
    ) -> Version:
        try:
            answer = request(self.fs, self.path(key), header(start, length), unless=tag)
        except ERRORS as error:
            meaning = meaning_of(error)
            if tag is not None and meaning is Meaning.UNCHANGED:
                return Version(tag=tag)
            if meaning is Meaning.BEHIND:
                return Version(b"")
            self._check_absent(key, error)
            return Version()
        return answer.version(start, length)

    def swap(self, key: str, value: Buffer, tag: Tag | None) -> bool:
        if not can_replace(self.fs):
            raise not_supported(self.url, "changed on a condition")
        try:
            replace(self.fs, self.path(key), bytes(value), tag)
        except ERRORS as error:
            meaning = meaning_of(error)
            if meaning is Meaning.UNSUPPORTED:
                raise not_supported(self.url, "changed on a condition") from censored(error)
            if meaning is not Meaning.NOT_MET:
                self._check_absent(key, error)
            return False
        return True

    @property
    def _local(self) -> LocalStore | None:
        """The store of a local directory, which knows about links; None for others."""
        return LocalStore(self.root) if isinstance(self.fs, LocalFileSystem) else None

    def _check_erasable(self, keys: Iterable[str]) -> None:
        if self._local is not None:
            self._local._check_erasable(keys)

    def erase(self, key: str) -> None:
        self._check_writable()
        if self._local is not None:
            self._local.erase(key)
            return
        try:
            self.fs.rm_file(self.path(key))
        except NotImplementedError as error:
            raise ReadOnlyError("this file system can't erase", key=key) from censored(error)
        except ERRORS as error:
            self._check_absent(key, error)

    def erase_prefix(self, prefix: str) -> None:
        self._check_writable()
        if self._local is not None:
            self._local.erase_prefix(prefix)
            return
        directory = self.path(check_prefix(prefix)).rstrip("/")
        if has_magic(directory):
            # `rm` would read the name as a pattern.
            super().erase_prefix(prefix)
            return
        try:
            self.fs.invalidate_cache()
            if self.fs.exists(directory):
                self.fs.rm(directory, recursive=True)
        except NotImplementedError as error:
            raise ReadOnlyError("this file system can't erase", key=prefix) from censored(error)
        except ERRORS as error:
            self._check_absent(prefix, error)

    def list_dir(self, prefix: str) -> Names:
        if self._local is not None:
            return self._local.list_dir(prefix)
        keys: set[str] = set()
        prefixes: set[str] = set()
        directory = self.path(check_prefix(prefix)).rstrip("/")
        try:
            self.fs.invalidate_cache(directory)
            entries = self.fs.ls(directory, detail=True)
        except NotImplementedError as error:
            raise not_listable(self.url, error) from censored(error)
        except ERRORS as error:
            if meaning_of(error) is Meaning.MISSING and "http" in protocols(self.fs):
                # Without an index page, the directory is not empty but can't be listed.
                raise not_listable(self.url, error) from censored(error)
            self._check_absent(prefix, error)
            return [], []
        for entry in entries:
            name = entry["name"].rstrip("/").rsplit("/", 1)[-1]
            name = unquote(name) if "http" in protocols(self.fs) else name
            if entry["name"].strip("/") != directory.strip("/") and name:
                (prefixes if entry["type"] == "directory" else keys).add(name)
        return sorted(keys), sorted(prefixes)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        if not self._lists_flat:
            return super().list_prefix(prefix)
        return iter(self._found(prefix))

    def _list_sizes(
        self, prefix: str, after: str = "", until: str | None = None
    ) -> Iterator[tuple[str, int | None]]:
        if not self._lists_flat:
            return super()._list_sizes(prefix, after, until)
        found = self._found(prefix, after, until)
        return ((key, info.get("size")) for key, info in found.items())

    def _list_objects(
        self, prefix: str, after: str = "", until: str | None = None
    ) -> Iterator[StoredObject]:
        if not self._lists_flat:
            return super()._list_objects(prefix, after, until)
        root = quote(self._real_url, safe=":/") + "/"
        return (
            StoredObject(key, root, info["size"], _modified(info), _etag(info))
            for key, info in self._found(prefix, after, until).items()
        )

    def _found(
        self, prefix: str, after: str = "", until: str | None = None
    ) -> dict[str, dict[str, Any]]:
        """Return what a flat listing says of the keys behind `after` up to `until`."""
        start = self.path(check_prefix(prefix))
        try:
            self.fs.invalidate_cache(start.rstrip("/"))
            paths = self.fs.find(start, detail=True)
        except ERRORS as error:
            self._check_absent(prefix, error)
            return {}
        skipped = len(self.path(""))
        return {
            path[skipped:]: info
            for path, info in paths.items()
            if path.startswith(start)
            and after < path[skipped:]
            and (until is None or path[skipped:] <= until)
        }

    @property
    def _lists_flat(self) -> bool:
        """Whether keys below a prefix are listed by the thousand, not directory by directory."""
        return not _OBJECT_STORES.isdisjoint(protocols(self.fs))

    def _check_absent(self, key: str, error: Exception) -> None:
        """Check that an error says that there is no such key.

        Raises
        ------
        StoreError
            If it says something else, or that the whole bucket is not there.
        """
        meaning = meaning_of(error)
        if meaning is Meaning.NO_BUCKET:
            raise no_bucket(self.root.partition("/")[0], self.url) from censored(error)
        if meaning is not Meaning.MISSING:
            raise self._failed(key, error) from censored(error)

    def _failed(self, key: str, error: BaseException) -> StoreError:
        return store_error(error, self.fs, self.url, key)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.fs, self.root, None if self.capabilities.shared else os.getpid())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FsspecStore):
            return NotImplemented
        return bool((self.fs, self.root) == (other.fs, other.root))

    def __hash__(self) -> int:
        return hash((self.fs, self.root))


def _end(start: int, length: int | None) -> int | None:
    """Return up to where a range is requested of fsspec: None is the end of the value.

    One that is counted from the end of the value is requested up to there and then cut: it may be
    longer than the value, whose size is not known here.
    """
    return None if length is None or start < 0 else start + length


def _modified(info: Mapping[str, Any]) -> float | None:
    """Return when an object was changed last, which packages have under different names."""
    times = map(info.get, ("LastModified", "last_modified", "mtime"))
    return next((time.timestamp() for time in times if isinstance(time, datetime)), None)


def _etag(info: Mapping[str, Any]) -> str | None:
    """Return the ETag of an object, which packages have under different names."""
    etag = next(filter(None, map(info.get, ("ETag", "etag"))), None)
    return strong_etag(etag and str(etag))


def _reopen(fs: Any, root: str, process: int | None) -> Store:
    return FsspecStore(fs, root) if process in (None, os.getpid()) else elsewhere()


def _trimmed(value: bytes, start: int, end: int | None) -> bytes:
    """Return the requested part, even if the server sent the whole value (RFC 9110)."""
    if start < 0:
        return value[start:]
    return value if end is None or len(value) <= end - start else value[start:end]


def open_url(url: str, storage_options: dict[str, Any] | None) -> Store:
    """Return the store at any URL of fsspec, also a chain."""
    return FsspecStore.from_url(url, storage_options)
