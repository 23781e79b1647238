"""Open zip archives by URL: on a local disk, or behind a file system of fsspec."""

import os
from importlib import import_module
from typing import Any
from urllib.parse import unquote

from zarrdask.storage.base import Store
from zarrdask.storage.file_calls import path_of_url
from zarrdask.storage.zip.store import ZipStore


def open_archive(url: str, storage_options: dict[str, Any] | None) -> Store:
    """Return the store of the archive at a path or URL, or of the directory that is there."""
    return _open(url, "", storage_options)


def open_member(url: str, storage_options: dict[str, Any] | None) -> Store:
    """Return the store at a prefix in an archive: ``zip://prefix::archive``."""
    member, chained, archive = url.partition("::")
    if not chained:
        module = import_module("zarrdask.storage.remote.fsspec.fsspec_store")
        return module.open_url(url, storage_options)  # type: ignore[no-any-return]
    prefix = member.partition("://")[2].strip("/")
    # The options of the archive itself are not used; the others are for its file system.
    options = {name: value for name, value in (storage_options or {}).items() if name != "zip"}
    return _open(archive, f"{prefix}/" if prefix else "", options)


def _open(archive: str, prefix: str, storage_options: dict[str, Any] | None) -> Store:
    is_url = archive.startswith("file://")
    if is_url or not ("://" in archive or "::" in archive):
        path = path_of_url(unquote(archive.removeprefix("file://"))) if is_url else archive
        return ZipStore(os.path.expanduser(path), prefix)
    # Imported on demand: a local archive needs no fsspec.
    store = import_module("zarrdask.storage.remote.fsspec.fsspec_store").open_url(
        archive, storage_options
    )
    module = import_module("zarrdask.storage.zip.remote_archive")
    if not prefix and module.is_directory(store):
        return store  # type: ignore[no-any-return]
    return module.RemoteZipStore(store.fs, store.root, prefix)  # type: ignore[no-any-return]
