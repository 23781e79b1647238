"""Any fsspec file system: s3, http, gcs, zip, memory ..."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import fsspec
from fsspec.core import url_to_fs
from toolz import partition_all

from zarrdask import config
from zarrdask.errors import ReadOnlyError, StoreError
from zarrdask.storage.base import Buffer, Range, Scratch, Store, coalesce, not_listable

_ABSENT = (FileNotFoundError, IsADirectoryError, NotADirectoryError, KeyError)
_JOIN_LIMIT = 2**24


class FsspecStore(Store):
    """Values in a file system that fsspec knows.

    Requests for many values, or for many ranges of one, are sent together.

    Parameters
    ----------
    fs : fsspec.AbstractFileSystem
        The file system.
    root : str
        The path in it, without the protocol.
    """

    def __init__(self, fs: Any, root: str) -> None:
        self.fs = fs
        self.root = root.rstrip("/")

    @classmethod
    def from_url(cls, url: str, storage_options: dict[str, Any] | None = None) -> "FsspecStore":
        """Return the store at a URL.

        Raises
        ------
        StoreError
            If fsspec has no such protocol, or the package for it is not installed.
        """
        try:
            fs, root = url_to_fs(url, **(storage_options or {}))
        except (ImportError, ValueError, OSError) as error:
            raise StoreError(f"can't open this URL: {error}", key=url) from error
        return cls(fs, root)

    @property
    def shared(self) -> bool:  # type: ignore[override]
        """Whether other processes see the same values: not those of fsspec's own memory."""
        return "memory" not in _protocols(self.fs)

    @property
    def url(self) -> str:  # noqa: D102
        return f"{_protocols(self.fs)[0]}://{self.root}#{self.fs._fs_token}"

    def path(self, key: str) -> str:
        """Return the path of a key in the file system."""
        return f"{self.root}/{key}" if self.root else key

    def get(self, key: str) -> bytes | None:  # noqa: D102
        try:
            return bytes(self.fs.cat_file(self.path(key)))
        except _ABSENT:
            return None
        except Exception as error:
            raise _failed(key, error) from error

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:  # noqa: D102
        for batch in _batches(keys):
            whole = [None] * len(batch)
            try:
                # Not `cat`: it sorts its answer, and takes "*" and "[" in a path for a pattern.
                values = self.fs.cat_ranges(
                    [self.path(key) for key in batch], whole, whole, on_error="return"
                )
            except Exception as error:
                raise _failed(batch[0], error) from error
            for key, value in zip(batch, values, strict=True):
                yield _value(key, value)

    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:  # noqa: D102
        end = None if length is None else start + length
        if start < 0 and end == 0:
            end = None
        try:
            return bytes(self.fs.cat_file(self.path(key), start=start, end=end))
        except _ABSENT:
            return None
        except Exception as error:
            raise _failed(key, error) from error

    def get_ranges(  # noqa: D102
        self, key: str, ranges: Sequence[Range], scratch: Scratch
    ) -> Iterator[Buffer | None]:
        groups = coalesce(ranges, config.get("coalesce-gap"), _JOIN_LIMIT)
        for batch in _batches(groups):
            starts = [start for (start, _), _ in batch]
            ends = [start + length for (start, length), _ in batch]
            try:
                values = self.fs.cat_ranges(
                    [self.path(key)] * len(batch), starts, ends, on_error="return"
                )
            except Exception as error:
                raise _failed(key, error) from error
            for value, (_, members) in zip(values, batch, strict=True):
                data = _value(key, value)
                for offset, size in members:
                    yield None if data is None else memoryview(data)[offset : offset + size]

    def set(self, key: str, value: Buffer) -> None:  # noqa: D102
        path = self.path(key)
        try:
            if not hasattr(self.fs, "bucket") and "memory" in _protocols(self.fs):
                self.fs.makedirs(os.path.dirname(path), exist_ok=True)
            self.fs.pipe_file(path, bytes(value))
        except NotImplementedError as error:
            raise ReadOnlyError("this file system can't be written", key=key) from error
        except Exception as error:
            raise _failed(key, error) from error

    def erase(self, key: str) -> None:  # noqa: D102
        try:
            self.fs.rm_file(self.path(key))
        except _ABSENT:
            return
        except NotImplementedError as error:
            raise ReadOnlyError("this file system can't erase", key=key) from error
        except Exception as error:
            raise _failed(key, error) from error

    def erase_prefix(self, prefix: str) -> None:  # noqa: D102
        try:
            self.fs.invalidate_cache()
            if self.fs.exists(self.path(prefix).rstrip("/")):
                self.fs.rm(self.path(prefix).rstrip("/"), recursive=True)
        except _ABSENT:
            return
        except Exception as error:
            raise _failed(prefix, error) from error

    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:  # noqa: D102
        keys: set[str] = set()
        prefixes: set[str] = set()
        directory = self.path(prefix).rstrip("/")
        try:
            self.fs.invalidate_cache(directory)
            entries = self.fs.ls(directory, detail=True)
        except _ABSENT:
            return [], []
        except NotImplementedError as error:
            raise not_listable(self.url, error) from error
        except Exception as error:
            raise _failed(prefix, error) from error
        for entry in entries:
            name = entry["name"].rstrip("/").rsplit("/", 1)[-1]
            if entry["name"].strip("/") != directory.strip("/") and name:
                (prefixes if entry["type"] == "directory" else keys).add(name)
        return sorted(keys), sorted(prefixes)

    def list_prefix(self, prefix: str) -> Iterator[str]:  # noqa: D102
        keys, prefixes = self.list_dir(prefix)
        for name in keys:
            yield prefix + name
        for name in prefixes:
            yield from self.list_prefix(f"{prefix}{name}/")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FsspecStore) and (self.fs, self.root) == (other.fs, other.root)

    def __hash__(self) -> int:
        return hash((self.fs, self.root))


def _protocols(fs: fsspec.AbstractFileSystem) -> tuple[str, ...]:
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


def _batches(items: Iterable[Any]) -> Iterator[Any]:
    return partition_all(config.get("requests"), items)  # type: ignore[no-any-return]


def _value(key: str, found: Any) -> Buffer | None:
    if found is None or isinstance(found, _ABSENT):
        return None
    if isinstance(found, BaseException):
        raise _failed(key, found) from found
    return bytes(found)


def _failed(key: str, error: BaseException) -> StoreError:
    return StoreError(str(error) or type(error).__name__, key=key, found=type(error).__name__)
