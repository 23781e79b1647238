"""Find the store for a URL, a path, a mapping or a store."""

import os
from collections.abc import MutableMapping
from importlib import import_module
from typing import Any
from urllib.parse import unquote

from zarrdask.errors import StoreError
from zarrdask.storage.base import Store
from zarrdask.storage.icechunk import IcechunkStore
from zarrdask.storage.local import LocalStore
from zarrdask.storage.memory import MappingStore, MemoryStore
from zarrdask.storage.open_file import check_file_name
from zarrdask.storage.remote import open_remote
from zarrdask.storage.system import path_of_url
from zarrdask.storage.zarr_python import ZarrPythonStore, is_zarr_object

_LOCAL = ("file://", "local://")

_ZIP, _ZIP_SCHEME = ".zip", "zip://"
#: The first link of a chain, or the whole URL: the document is in the options, or follows.
_REFERENCE = ("reference", "reference://")


def resolve(url: Any, storage_options: dict[str, Any] | None = None) -> Store:
    """Return the store for a URL, path, mapping or store.

    Parameters
    ----------
    url : str, os.PathLike, MutableMapping or Store
        Without a scheme, or with ``file://``, it is a local directory, or a zip archive if its name
        ends with ``.zip`` and there is no directory of that name. Stores of zarr-python and of
        obstore and paths of universal_pathlib are taken, too.
    storage_options : dict, optional
        Options of fsspec; they are translated if the setting ``zarrdask.remote`` is "obstore".

    Raises
    ------
    StoreError
        If the argument is of another type, or the URL can't be opened.
    """
    if not isinstance(url, str | os.PathLike):
        return _adapted(url)
    if not isinstance(url, str) and _is_universal_path(url):
        return _universal(url)
    text = os.fsdecode(url)
    if not text:
        # This would be the current directory, where an unset variable of a shell is more likely.
        raise StoreError("the path is empty", expected='a URL or a path, such as "."')
    if text.startswith(_LOCAL):
        text = path_of_url(unquote(text.partition("://")[2]))
    if "://" in text or "::" in text:
        return _remote(text, storage_options)
    if storage_options:
        raise StoreError(
            "a local path takes no storage_options; leave them out",
            key=text,
            found=sorted(storage_options),
        )
    path = os.path.abspath(os.path.expanduser(text))
    check_file_name(path)
    if path.endswith(_ZIP) and not os.path.isdir(path):
        return _zip(path, "")
    return LocalStore(path)


def _adapted(value: Any) -> Store:
    """Return the store that is, or is in, an object of the user."""
    if isinstance(value, Store):
        return value
    if isinstance(value, MutableMapping):
        return _mapping(value)
    if is_zarr_object(value, "Store"):
        return _of_zarr_python(value)
    if _is_universal_path(value):
        return _universal(value)
    if _is_obstore_object(value):
        return import_module("zarrdask.storage.obstore").adapt_object(value)  # type: ignore[no-any-return]
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        raise StoreError(
            "this is an array itself, not a place where one is stored; of to_zarr and append, the "
            "array is the first argument, and the place is the second",
            found=type(value).__name__,
            expected="a URL, a path, a mutable mapping or a store",
        )
    raise StoreError(
        "an object of this type is not a place where arrays are stored",
        found=type(value).__name__,
        expected="a URL, a path, a mutable mapping or a store"
        + ("; to_zarr takes pairs: [(url, array), ...]" if isinstance(value, list) else ""),
    )


def takes_options(url: Any) -> bool:
    """Whether `storage_options` apply: they do to a URL, but not to a local path or a store.

    >>> takes_options("s3://bucket/x"), takes_options("file:///x"), takes_options("x.zarr")
    (True, False, False)
    """
    if not isinstance(url, str | os.PathLike):
        return False
    text = os.fsdecode(url)
    return ("://" in text or "::" in text) and not text.startswith(_LOCAL)


def options_of_each(
    storage_options: dict[str, Any] | None, *places: tuple[Any, dict[str, Any] | None]
) -> list[dict[str, Any] | None]:
    """Return the options of fsspec for each location of a verb that has several.

    Parameters
    ----------
    storage_options : dict, optional
        The options for all locations that take options and have none of their own. If no location
        takes options, they are for all, so that opening one of them raises an error.
    *places : (object, dict or None)
        A URL, path, store or node, and its own options.

    Examples
    --------
    >>> options_of_each({"anon": True}, ("a.zarr", None), ("s3://bucket/a", None))
    [None, {'anon': True}]
    >>> options_of_each({"anon": True}, ("s3://bucket/a", None), ("s3://mine/a", {"key": "k"}))
    [{'anon': True}, {'key': 'k'}]
    """
    takes = [takes_options(url) for url, _ in places]
    return [
        own if own is not None else storage_options if takes_them or not any(takes) else None
        for (_, own), takes_them in zip(places, takes, strict=True)
    ]


def _zip(path: str, prefix: str) -> Store:
    # Imported on demand, as all stores except directories are.
    module = import_module("zarrdask.storage.zip.store")
    return module.ZipStore(path, prefix)  # type: ignore[no-any-return]


def _remote(url: str, storage_options: dict[str, Any] | None) -> Store:
    """Return the store at a URL: a zip archive if the URL says so, or ends with ``.zip``."""
    prefix, chained, archive = url.partition("::")
    if prefix in _REFERENCE:
        return _references(archive, storage_options or {})
    if not chained and not url.endswith(_ZIP):
        return open_remote(url, storage_options)
    if not (chained and prefix.startswith(_ZIP_SCHEME)):
        return _fsspec(url, storage_options, as_archive=url.endswith(_ZIP))
    prefix = prefix.removeprefix(_ZIP_SCHEME).strip("/")
    prefix = f"{prefix}/" if prefix else ""
    if archive.startswith("file://") or not ("://" in archive or "::" in archive):
        return _zip(os.path.expanduser(path_of_url(archive.removeprefix("file://"))), prefix)
    # The options of the archive itself are not used; the others are those of its file system.
    options = {name: value for name, value in (storage_options or {}).items() if name != "zip"}
    return _fsspec(archive, options, as_archive=True, prefix=prefix)


def _mapping(values: MutableMapping[str, Any]) -> Store:
    if hasattr(values, "fs") and hasattr(values, "root"):
        # A mapping of fsspec: its file system has more operations than the mapping.
        return _file_system(values.fs, values.root)
    return MemoryStore(values) if isinstance(values, dict) else MappingStore(values)


def _of_zarr_python(value: Any) -> Store:
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
        return _file_system(value.fs, value.path)
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


def _is_universal_path(url: Any) -> bool:
    """Whether this is a path of the package universal_pathlib."""
    return any(kind.__module__.partition(".")[0] == "upath" for kind in type(url).__mro__)


def _is_obstore_object(url: Any) -> bool:
    """Whether this is an object store of obstore, which need not be installed."""
    return any(kind.__module__ == "obstore.store" for kind in type(url).__mro__)


def _universal(path: Any) -> Store:
    if path.protocol in ("", "file", "local"):
        return LocalStore(os.path.abspath(path.path))
    return _file_system(path.fs, path.path)


def _references(document: str, storage_options: dict[str, Any]) -> Store:
    """Return the store of the references in a document that follows ``reference::``, if any."""
    module = import_module("zarrdask.storage.references")
    if document:
        return module.open_chained(document, storage_options)  # type: ignore[no-any-return]
    return module.open_references(storage_options)  # type: ignore[no-any-return]


def _file_system(fs: Any, root: str) -> Store:
    """Return the store for a path in a file system of fsspec that the user has made."""
    if type(fs).__name__ == "ReferenceFileSystem" and not root.strip("/"):
        return _references(
            "", dict(zip(("fo",), fs.storage_args, strict=False)) | fs.storage_options
        )
    module = import_module("zarrdask.storage.fsspec")
    return module.FsspecStore(_synchronous(fs), root)  # type: ignore[no-any-return]


def _fsspec(
    url: str,
    storage_options: dict[str, Any] | None,
    *,
    as_archive: bool = False,
    prefix: str = "",
) -> Store:
    # Imported on demand: opening a local array takes less time than importing fsspec.
    store = import_module("zarrdask.storage.fsspec").FsspecStore.from_url(url, storage_options)
    if not as_archive or (not prefix and store.is_directory()):
        return store  # type: ignore[no-any-return]
    module = import_module("zarrdask.storage.zip.remote")
    return module.RemoteZipStore(store.fs, store.root, prefix)  # type: ignore[no-any-return]
