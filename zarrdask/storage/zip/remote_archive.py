"""Zip archives in file systems of fsspec as stores, which are read by ranges."""

from dataclasses import replace
from typing import Any
from weakref import WeakValueDictionary

from zarrdask.errors import ReadOnlyError, StoreError, censored, without_secrets
from zarrdask.formats.byte_ranges import Buffer, Value
from zarrdask.formats.store_keys import check_prefix
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.identity import Identity
from zarrdask.storage.remote.fsspec.fsspec_errors import ERRORS, store_error
from zarrdask.storage.remote.fsspec.fsspec_options import protocols
from zarrdask.storage.remote.fsspec.fsspec_store import FsspecStore
from zarrdask.storage.value_parts import StoredValue
from zarrdask.storage.zip.archive import Archive, read_directory
from zarrdask.storage.zip.reader import ZipReader, no_archive


class RemoteFile:
    """A file in a file system of fsspec.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    StoreError
        If the file system does not return the length of the file.
    """

    is_local = False

    def __init__(self, fs: Any, path: str) -> None:
        self.name = without_secrets(fs.unstrip_protocol(path))
        info = fs.info(path)
        if info.get("type") == "directory":
            raise IsADirectoryError(path)
        if not isinstance(info.get("size"), int):
            raise StoreError(
                "a zip archive is read from its end, and this server does not send its length; "
                "download it first (simplecache:: does)",
                key=self.name,
            )
        self.size = info["size"]
        folder, _, name = path.rpartition("/")
        self._store, self._key = FsspecStore(fs, folder), name if folder else path

    def value(self, scratch: Scratch) -> Value:
        """Return the bytes of the file."""
        return StoredValue(self._store, self._key, scratch)


_REMOTE: "WeakValueDictionary[tuple[Any, ...], Archive]" = WeakValueDictionary()


class RemoteZipStore(ZipReader):
    """Values in a zip archive in a file system of fsspec, read by ranges.

    Parameters
    ----------
    fs : fsspec.AbstractFileSystem
        The file system.
    path : str
        The path of the archive in the file system, without the protocol.
    prefix : str
        The prefix of the keys in the archive: "" or a text that ends with "/".
    """

    def __init__(self, fs: Any, path: str, prefix: str = "") -> None:
        self.fs = fs
        self.path = path
        self.prefix = check_prefix(prefix)
        self._held: Archive | None = None
        # Other processes do not see the values in fsspec's own memory.
        is_shared = "memory" not in protocols(fs)
        self.capabilities = replace(self.capabilities, writable=False, shared=is_shared)

    @property
    def url(self) -> str:
        return f"{without_secrets(self.fs.unstrip_protocol(self.path))}/{self.prefix}".rstrip("/")

    @property
    def identity(self) -> Identity:
        return Identity.at(self.url, f"{self.path}#{self.prefix}#{self.fs._fs_token}")

    def _opened(self) -> Archive:
        if self._held is None:
            key = self.fs, self.path, self._expected
            archive = _REMOTE.get(key) if self._expected else None
            if archive is None:
                try:
                    file = RemoteFile(self.fs, self.path)
                    archive = Archive(file, read_directory(file))
                except FileNotFoundError:
                    return no_archive()
                except Exception as error:
                    if isinstance(error, StoreError):
                        raise
                    raise StoreError(
                        str(error) or type(error).__name__, key=self.url, found=type(error).__name__
                    ) from error
                _REMOTE[self.fs, self.path, archive.stamp] = archive
            self._held = archive
        return self._held

    def set(self, key: str, value: Buffer) -> None:
        raise self._read_only()

    def erase(self, key: str) -> None:
        raise self._read_only()

    def _read_only(self) -> ReadOnlyError:
        return ReadOnlyError(
            "only a zip archive on a local disk can be written; write it there and upload it",
            key=self.url,
        )

    @property
    def _place(self) -> tuple[Any, ...]:
        return self.fs, self.path, self.prefix

    def __reduce__(self) -> tuple[Any, ...]:
        expected = self._expected if self._held is None else self._held.stamp
        return RemoteZipStore, self._place, {"_expected": expected}


def is_directory(store: FsspecStore) -> bool:
    """Whether the root of a store is an existing directory, if the file system reports it."""
    fs = store.fs
    try:
        if "http" in protocols(fs):
            # Listing a directory would fetch a file as a whole, so this only tests for a file.
            return not fs.exists(store.root)
        return bool(fs.isdir(store.root))
    except ERRORS as error:
        raise store_error(error, fs, store.url, "") from censored(error)
