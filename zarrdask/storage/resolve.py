"""Find the store for a URL, a path, a mapping or a store."""

import os
import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any
from urllib.parse import unquote

from zarrdask.errors import MetadataError, StoreError
from zarrdask.storage.base import Store
from zarrdask.storage.file_calls import path_of_url
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.local.open_file import check_file_name
from zarrdask.storage.memory import MappingStore, MemoryStore
from zarrdask.storage.remote.forbidden import forbidden_as_set
from zarrdask.storage.remote.remote_urls import REMOTE_SCHEMES
from zarrdask.storage.remote.retry import retrying
from zarrdask.storage.schemes import ADAPTERS, STORES

_LOCAL = ("file://", "local://")
#: The suffixes of paths that are directories as a rule.
_DIRECTORIES = ("", ".zarr")
_SUFFIX = re.compile(r"\.[a-z0-9_-]+$")
#: The beginning of a URL, or of a chain of URLs. One letter would be a drive of Windows.
_URL = re.compile(r".*?://|[a-z][a-z0-9+.-]+::", re.IGNORECASE | re.DOTALL)
#: A URL after pathlib has removed a slash.
_ONE_SLASH = re.compile(rf"({'|'.join((*REMOTE_SCHEMES, 'file'))}):/(?!/)")


def open_store(url: Any, storage_options: dict[str, Any] | None) -> Store:
    """Return the store that a user names, with retries, and with 403 read as the settings say."""
    return forbidden_as_set(retrying(resolve(url, storage_options)))


def resolve(url: Any, storage_options: dict[str, Any] | None = None) -> Store:
    """Return the store for a URL, path, mapping or store.

    Parameters
    ----------
    url : str, os.PathLike, MutableMapping or Store
        Without a scheme, or with ``file://``, it is a local directory, or a zip archive if its name
        ends with ``.zip`` and there is no directory of that name. Stores of zarr-python and of
        obstore and paths of universal_pathlib are taken, too.
    storage_options : dict, optional
        Options of fsspec; they are translated where obstore opens the URL.

    Raises
    ------
    StoreError
        If the argument is of another type, or the URL can't be opened.
    MetadataError
        If `storage_options` is not a mapping.
    """
    if not isinstance(url, str):
        store = _adapted(url)
        if store is not None:
            return store
    text = os.fsdecode(url)
    if not text:
        # This would be the current directory, where an unset variable of a shell is more likely.
        raise StoreError("the path is empty", expected='a URL or a path, such as "."')
    if text.startswith(_LOCAL):
        text = path_of_url(unquote(text.partition("://")[2]))
    is_mapping = isinstance(storage_options, Mapping | None)
    if not is_mapping or not all(isinstance(name, str) for name in storage_options or ()):
        raise MetadataError(
            "the options of a store are not a mapping of names to values",
            key="storage_options",
            found=storage_options,
            expected='a dict, such as {"anon": True}',
        )
    if _URL.match(text):
        return _at_url(text, storage_options)
    if _ONE_SLASH.match(text):
        raise StoreError(
            "a URL has two slashes after its scheme, but pathlib removes one; pass it as text",
            key=text,
            expected=f"{text.replace(':/', '://', 1)}, or ./{text} for a local directory",
        )
    if storage_options:
        raise StoreError(
            "a local path takes no storage_options; leave them out",
            key=text,
            found=sorted(storage_options),
        )
    path = os.path.abspath(os.path.expanduser(text))
    check_file_name(path)
    suffix = os.path.splitext(path)[1]
    if suffix not in _DIRECTORIES and not os.path.isdir(path):
        open_file = STORES.get(suffix) if _SUFFIX.match(suffix) else None
        if open_file is not None:
            return open_file(path, None)
    return LocalStore(path)


def _at_url(url: str, storage_options: dict[str, Any] | None) -> Store:
    """Return the store at a URL, by its scheme, or by its suffix; others are for fsspec."""
    scheme = re.split("::|://", url, maxsplit=1)[0].lower()
    suffix = None if "::" in url else _SUFFIX.search(url)
    names = [scheme]
    if suffix is not None and suffix[0] not in _DIRECTORIES:
        # The remote schemes say where a file is, not what it is.
        names.insert(0 if scheme in REMOTE_SCHEMES else 1, suffix[0])
    open_url = next(filter(None, map(STORES.get, names)), STORES.find("fsspec"))
    return open_url(url, storage_options)


def _adapted(value: Any) -> Store | None:
    """Return the store that is, or is in, an object of the user; None for a path."""
    if isinstance(value, Store):
        return value
    for kind in type(value).__mro__:
        package = kind.__module__.partition(".")[0]
        # Looking for a package that is not built in reads the entry points of all packages.
        adapt = None if package in sys.stdlib_module_names else ADAPTERS.get(package)
        store = None if adapt is None else adapt(value)
        if store is not None:
            return store
    if isinstance(value, MutableMapping):
        return MemoryStore(value) if isinstance(value, dict) else MappingStore(value)
    if isinstance(value, os.PathLike):
        return None
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        raise StoreError(
            "this is an array itself; to_zarr and append take (array, url)",
            found=type(value).__name__,
            expected="a URL, a path, a mutable mapping or a store",
        )
    raise StoreError(
        "objects of this type can't store arrays",
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
    return _URL.match(text) is not None and not text.startswith(_LOCAL)


def options_of_each(
    storage_options: dict[str, Any] | None, *urls: tuple[Any, dict[str, Any] | None]
) -> list[dict[str, Any] | None]:
    """Return the options of fsspec for each location of a verb that has several.

    Parameters
    ----------
    storage_options : dict, optional
        The options for all locations that take options and have none of their own. If no location
        takes options, they are for all, so that opening one of them raises an error.
    *urls : (object, dict or None)
        A URL, path, store or node, and its own options.

    Examples
    --------
    >>> options_of_each({"anon": True}, ("a.zarr", None), ("s3://bucket/a", None))
    [None, {'anon': True}]
    >>> options_of_each({"anon": True}, ("s3://bucket/a", None), ("s3://mine/a", {"key": "k"}))
    [{'anon': True}, {'key': 'k'}]
    """
    takes = [takes_options(url) for url, _ in urls]
    return [
        own if own is not None else storage_options if takes_them or not any(takes) else None
        for (_, own), takes_them in zip(urls, takes, strict=True)
    ]
