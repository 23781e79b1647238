"""Stores of zarr-python, of fsspec and obstore within them, and of icechunk, as stores of ours."""

from importlib import import_module
from typing import Any

from zarrdask.storage.base import Store
from zarrdask.storage.icechunk import IcechunkStore
from zarrdask.storage.local import LocalStore
from zarrdask.storage.zarr_python import ZarrPythonStore


def adapt_store(value: Any) -> Store:
    """Return a store of zarr-python as one of ours.

    Directories, file systems of fsspec and objects of obstore are read by our own stores; whether
    they may be written is then a matter of the mode in which nodes are opened.
    """
    if isinstance(getattr(value, "inner", None), Store):
        return value.inner  # type: ignore[no-any-return]
    # Not of subclasses: they may do something else.
    kind = type(value).__name__ if type(value).__module__.startswith("zarr.") else ""
    if kind == "LocalStore":
        return LocalStore(str(value.root))
    if kind == "FsspecStore":
        module = import_module("zarrdask.storage.fsspec")
        return module.FsspecStore(_synchronous(value.fs), value.path)  # type: ignore[no-any-return]
    if kind == "ObjectStore":
        return import_module("zarrdask.storage.obstore").adapt_object(value.store)  # type: ignore[no-any-return]
    if type(value).__module__.startswith("icechunk."):
        return IcechunkStore(value)
    return ZarrPythonStore(value)


def _synchronous(fs: Any) -> Any:
    """Return a file system of fsspec for calls from threads, not from an event loop."""
    if hasattr(fs, "sync_fs"):  # a wrapper that makes a synchronous file system asynchronous
        return fs.sync_fs
    if not getattr(fs, "asynchronous", False):
        return fs
    options = {**fs.storage_options, "asynchronous": False}
    options.pop("loop", None)
    return type(fs)(*fs.storage_args, **options)
