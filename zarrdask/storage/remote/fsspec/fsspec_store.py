"""File systems of fsspec: s3, http, gcs, zip, memory and others."""

import os
import pickle
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from glob import has_magic
from typing import Any
from urllib.parse import quote, unquote

import fsspec  # noqa: F401
from fsspec.asyn import reset_lock
from fsspec.implementations.local import LocalFileSystem

from zarrdask.errors import StoreError, censored
from zarrdask.formats.byte_ranges import Buffer, Tag
from zarrdask.formats.store_keys import Names, check_prefix
from zarrdask.runtime.system import after_fork
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import without
from zarrdask.storage.identity import Identity, directory_at
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.memory import elsewhere
from zarrdask.storage.refusals import check_no_credentials
from zarrdask.storage.remote.client_store import ClientStore, Described, Fetched
from zarrdask.storage.remote.failures import meaning_of
from zarrdask.storage.remote.fsspec.fsspec_errors import ERRORS, store_error
from zarrdask.storage.remote.fsspec.fsspec_etags import describe, fetch, replace
from zarrdask.storage.remote.fsspec.fsspec_options import (
    endpoint_of,
    innermost,
    is_reference,
    is_sent_once,
    prepared,
    protocols,
)
from zarrdask.storage.remote.fsspec.fsspec_urls import file_system_at
from zarrdask.storage.request import Meaning, Request

#: Protocols of stores that have keys, not directories.
_OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "abfs", "az"}
#: Protocols of servers that can't count a range from the end of a value.
_NO_SUFFIXES = {"abfs", "az"}


# Older releases of fsspec use the event loop of the parent, whose thread is not forked.
after_fork(reset_lock)


class FsspecStore(ClientStore):
    """Values in a file system of fsspec.

    Each request waits in a thread of `in_flight`, if the file system runs requests
    in an event loop of its own. Other file systems, such as SFTP, receive one request at a time.

    Parameters
    ----------
    fs : fsspec.AbstractFileSystem
        The file system.
    root : str
        The path in it, without the protocol.

    Raises
    ------
    StoreError
        If it is a file system of references, or is based on one: it reads any local file that a
        document names.
    """

    _errors = ERRORS

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
        names = {*protocols(fs)}
        self._has_suffixes = names.isdisjoint(_NO_SUFFIXES)
        self._lists_flat = not names.isdisjoint(_OBJECT_STORES)
        # A cache of another file system keeps only what it fetches itself.
        self._has_etags = getattr(fs, "fs", None) is None and not names.isdisjoint({"s3", "http"})
        supported = {
            # Not archives that are opened for reading, nor HTTP.
            "writable": getattr(fs, "mode", None) != "r" and "http" not in names,
            "shared": "memory" not in names,
            "concurrent": bool(innermost(fs).async_impl),
            "repeats": not is_sent_once(self._fs),
            "create_exclusive": "s3" in names,
            "compare_and_swap": "s3" in names,
            "etags": self._has_etags,
            "versions": self._has_etags,
            "reads_versions": self._has_etags,
            "md5_etags": self._lists_flat,
        }
        absent = frozenset(name for name, is_supported in supported.items() if not is_supported)
        self.capabilities = without(self.capabilities, absent)

    @classmethod
    def from_url(cls, url: str, storage_options: dict[str, Any] | None = None) -> "FsspecStore":
        """Return the store at a URL.

        Raises
        ------
        StoreError
            If fsspec does not have the protocol, or its package is not installed.
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
    def _real_url(self) -> str:
        return str(self.fs.unstrip_protocol(self.root))

    def above(self) -> "FsspecStore | None":
        directory, _, name = self.root.rpartition("/")
        # Nothing is above a bucket, or above a host with its protocol.
        is_top = not name or directory in ("", "http:/", "https:/")
        return None if is_top else FsspecStore(self.fs, directory)

    @property
    def identity(self) -> Identity:
        fs, url = self.fs, self._real_url
        # The URI of a local directory is quoted.
        uri = f"file://{quote(self.root)}" if "file" in protocols(fs) else self.url
        return Identity(
            uri=uri,
            token=f"{url}#{fs._fs_token}",
            access={**fs.storage_options, "args": repr(fs.storage_args)},
            endpoint=endpoint_of(fs),
            directory=directory_at(uri),
            opened_by="fsspec",
        )

    def path(self, key: str) -> str:
        """Return the path of a key in the file system."""
        return f"{self.root}/{key}" if self.root else key

    # ---- requests

    def _fetch(self, path: str, request: Request) -> Fetched:
        if self._has_etags:
            return fetch(self.fs, path, request)
        start, length = request.start, request.length
        conditions = request.if_match, request.unless, request.version_id
        if any(each is not None for each in conditions):
            raise NotImplementedError
        if request.is_whole:
            return Fetched(self._read(path), is_whole=True)
        # A range from the end extends up to the end, as the size is not known here.
        end = None if length is None or start < 0 else start + length
        value = self._read(path, start=start, end=end)
        # A longer value is all of it (RFC 9110).
        most = -start if start < 0 else length
        return Fetched(value, is_whole=most is not None and len(value) > most)

    def _read(self, path: str, **bounds: int | None) -> bytes:
        if getattr(self.fs, "fs", None) is None:
            return self.fs.cat_file(path, **bounds)  # type: ignore[no-any-return]
        # A cache of another file system keeps what this method reads, but not what `cat_file` does.
        start, end = [bounds.get("start")], [bounds.get("end")]
        return self.fs.cat_ranges([path], start, end, on_error="raise")[0]  # type: ignore[no-any-return]

    def _describe(self, path: str) -> Described | None:
        if self._has_etags and "s3" in protocols(self.fs):
            return describe(self.fs, path)
        info = self.fs.info(path, **({} if self._has_suffixes else {"refresh": True}))
        if info["type"] == "directory":
            raise FileNotFoundError(path)
        if info.get("size") is None:
            return None
        return Described(int(info["size"]))

    def _put(self, path: str, value: Buffer) -> None:
        data = bytes(value)
        try:
            self.fs.pipe_file(path, data)
        except FileNotFoundError:
            # Some file systems have real directories. Buckets are not created here.
            if not self.fs.exists(self.root.split("/")[0] or "/"):
                raise
            self.fs.makedirs(os.path.dirname(path), exist_ok=True)
            self.fs.pipe_file(path, data)

    def _put_if(self, path: str, value: Buffer, condition: Tag | None) -> None:
        replace(self.fs, path, bytes(value), condition)

    def _delete(self, path: str) -> None:
        self.fs.rm_file(path)

    @property
    def _local(self) -> LocalStore | None:
        """The store of a local directory, which checks links; None for others."""
        return LocalStore(self.root) if isinstance(self.fs, LocalFileSystem) else None

    def check_writable(self, *, erasing: Iterable[str] = ()) -> None:
        super().check_writable()
        if self._local is not None:
            self._local.check_writable(erasing=erasing)

    def _remove(self, key: str) -> None:
        if self._local is None:
            super()._remove(key)
        else:
            self._local.erase(key)

    def erase_prefix(self, prefix: str) -> None:
        self.check_writable()
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
        except ERRORS as error:
            self._check_erased(prefix, error)

    # ---- listings

    def list_dir(self, prefix: str) -> Names:
        return super().list_dir(prefix) if self._local is None else self._local.list_dir(prefix)

    def _list_names(self, directory: str) -> Names:
        self.fs.invalidate_cache(directory)
        keys: set[str] = set()
        prefixes: set[str] = set()
        for entry in self.fs.ls(directory, detail=True):
            name = entry["name"].rstrip("/").rsplit("/", 1)[-1]
            name = unquote(name) if "http" in protocols(self.fs) else name
            if entry["name"].strip("/") != directory.strip("/") and name:
                (prefixes if entry["type"] == "directory" else keys).add(name)
        return [*keys], [*prefixes]

    def _list_entries(
        self, directory: str, after: str, until: str | None, members: tuple[str, ...]
    ) -> Iterable[tuple[Any, ...]]:
        self.fs.invalidate_cache(directory.rstrip("/"))
        entries = self.fs.find(directory, detail=True).items()
        return [
            tuple(_MEMBERS[name](path, info) for name in members)
            for path, info in entries
            if path.startswith(directory) and after < path and (until is None or path <= until)
        ]

    def _shows_no_listing(self, error: Exception) -> bool:
        # Without an index page, a directory of an HTTP server is not empty but can't be listed.
        is_http = "http" in protocols(self.fs)
        is_missing = is_http and meaning_of(error) is Meaning.MISSING
        return is_missing or isinstance(error, NotImplementedError)

    # ---- errors

    def _meaning(self, error: Exception) -> Meaning | None:
        return meaning_of(error)

    def _failed(self, key: str, error: Exception) -> StoreError:
        return store_error(error, self.fs, self.url, key)

    def _cause(self, error: Exception) -> BaseException:
        return censored(error)

    @property
    def _is_anonymous(self) -> bool:
        fs = innermost(self.fs)
        return getattr(fs, "anon", False) is True or fs.storage_options.get("token") == "anon"

    @property
    def _bucket(self) -> str:
        return self.root.partition("/")[0]

    # ---- in other processes

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.fs, self.root, None if self.capabilities.shared else os.getpid())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FsspecStore):
            return NotImplemented
        return bool((self.fs, self.root) == (other.fs, other.root))

    def __hash__(self) -> int:
        return hash((self.fs, self.root))


def _modified(info: Mapping[str, Any]) -> datetime | None:
    """Return when an object was changed last, which packages have under different names."""
    times = map(info.get, ("LastModified", "last_modified", "mtime"))
    return next((time for time in times if isinstance(time, datetime)), None)


def _etag(info: Mapping[str, Any]) -> str | None:
    """Return the ETag of an object, which packages have under different names."""
    etag = next(filter(None, map(info.get, ("ETag", "etag"))), None)
    return etag and str(etag)


#: The members of an entry in a listing, from its path and what the file system says of it.
_MEMBERS: Mapping[str, Callable[[str, Mapping[str, Any]], Any]] = {
    "path": lambda path, _: path,
    "size": lambda _, info: info.get("size"),
    "last_modified": lambda _, info: _modified(info),
    "e_tag": lambda _, info: _etag(info),
}


def _reopen(fs: Any, root: str, process: int | None) -> Store:
    return FsspecStore(fs, root) if process in (None, os.getpid()) else elsewhere()


def open_url(url: str, storage_options: dict[str, Any] | None) -> Store:
    """Return the store at any URL of fsspec, also a chain."""
    check_no_credentials(url)
    return FsspecStore.from_url(url, storage_options)
