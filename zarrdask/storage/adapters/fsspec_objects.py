"""Stores for objects of fsspec that users pass: mappings, paths and file systems."""

import os
from typing import Any

import fsspec  # noqa: F401 - before its modules
from fsspec.implementations.local import LocalFileSystem

from zarrdask.storage.base import Store
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.references.reference_store import open_references
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
    """Return the store for a path in a file system of fsspec that the user has made.

    A local directory is read without fsspec.
    """
    if type(fs).__name__ == "ReferenceFileSystem" and not root.strip("/"):
        arguments = dict(zip(("fo",), fs.storage_args, strict=False)) | fs.storage_options
        return open_references(arguments)
    fs = _synchronous(fs)
    # Such as Dask makes of a path. Subclasses may do something else.
    if type(fs) is LocalFileSystem:
        return LocalStore(os.path.abspath(root))
    return FsspecStore(fs, root)


def _synchronous(fs: Any) -> Any:
    """Return a file system of fsspec for calls from threads, not from an event loop."""
    if hasattr(fs, "sync_fs"):  # a wrapper that makes a synchronous file system asynchronous
        return fs.sync_fs
    if not getattr(fs, "asynchronous", False):
        return fs
    options = {**fs.storage_options, "asynchronous": False}
    options.pop("loop", None)
    return type(fs)(*fs.storage_args, **options)
