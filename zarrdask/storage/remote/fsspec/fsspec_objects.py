"""Stores for objects of fsspec that users pass: mappings, paths and file systems."""

import os
from importlib import import_module
from typing import Any

from zarrdask.errors import censored
from zarrdask.storage.base import Store
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.remote.fsspec.fsspec_errors import ERRORS, store_error
from zarrdask.storage.remote.fsspec.fsspec_options import protocols
from zarrdask.storage.remote.fsspec.fsspec_store import FsspecStore


def adapt_mapping(value: Any) -> Store | None:
    """Return the store of a mapping of fsspec, whose file system has more operations than it."""
    return adapt_file_system(value.fs, value.root) if hasattr(value, "root") else None


def adapt_path(path: Any) -> Store:
    """Return the store of a path of the package universal_pathlib."""
    if path.protocol in ("", "file", "local"):
        return LocalStore(os.path.abspath(path.path))
    return adapt_file_system(path.fs, path.path)


def adapt_file_system(fs: Any, root: str) -> Store:
    """Return the store for a path in a file system of fsspec that the user has made."""
    if type(fs).__name__ == "ReferenceFileSystem" and not root.strip("/"):
        arguments = dict(zip(("fo",), fs.storage_args, strict=False)) | fs.storage_options
        module = import_module("zarrdask.storage.references.reference_store")
        return module.open_references(arguments)  # type: ignore[no-any-return]
    return FsspecStore(_synchronous(fs), root)


def _synchronous(fs: Any) -> Any:
    """Return a file system of fsspec for calls from threads, not from an event loop."""
    if hasattr(fs, "sync_fs"):  # a wrapper that makes a synchronous file system asynchronous
        return fs.sync_fs
    if not getattr(fs, "asynchronous", False):
        return fs
    options = {**fs.storage_options, "asynchronous": False}
    options.pop("loop", None)
    return type(fs)(*fs.storage_args, **options)


def is_directory(store: FsspecStore) -> bool:
    """Whether the root of a store is an existing directory, as far as the file system can say."""
    fs = store.fs
    try:
        if "http" in protocols(fs):
            # Listing a directory would fetch a file as a whole, so this only tests for a file.
            return not fs.exists(store.root)
        return bool(fs.isdir(store.root))
    except ERRORS as error:
        raise store_error(error, fs, store.url, "") from censored(error)
