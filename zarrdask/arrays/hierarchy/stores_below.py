"""List what a directory or bucket without a node holds: hierarchies, or an icechunk repository."""

import os
from collections.abc import Iterable

from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.errors import ZarrdaskError
from zarrdask.formats.store_keys import Names
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store

#: The documents by which a directory is recognised as a hierarchy.
ROOTS = ("zarr.json", ".zgroup", ".zarray")
#: The directories of a repository of icechunk.
_ICECHUNK = {"manifests", "snapshots", "transactions"}
#: How many names in a directory are examined, also where each costs requests; and how many are
#: listed in a message.
MAX_NAMES, _MAX_REQUESTED, MAX_LISTED = 1000, 16, 8


def advice_for_directory(directory: str) -> str:
    """Return the end of a message: what is in a local directory, if it is something of Zarr."""
    try:
        names = sorted(os.listdir(directory))[:MAX_NAMES]
    except OSError:
        return ""
    if _ICECHUNK.issubset(names):
        return _icechunk_advice(directory)
    return _stores_advice(
        name
        for name in names
        if name.endswith(".zarr.zip")
        or any(os.path.isfile(os.path.join(directory, name, document)) for document in ROOTS)
    )


def advice_for_bucket(node: StorePath) -> str:
    """Return the end of a message: what is in the bucket whose URL was passed, if it is one."""
    store = node.store
    if node.path or not _is_bucket(store.url):
        return ""
    try:
        names: Names = store.list_dir("")
        if _ICECHUNK.issubset(names[1]):
            return _icechunk_advice(store.url)
        return _stores_advice(_stores_of(store, names))
    except ZarrdaskError:
        return ""  # this is advice only


def _is_bucket(url: str) -> bool:
    scheme, colon, rest = url.partition("://")
    return bool(colon) and not scheme.startswith("http") and "/" not in rest.strip("/")


def _stores_of(store: Store, names: Names) -> Iterable[str]:
    """Return the names of hierarchies: by their suffix, or because they have a document."""
    files, folders = names
    archives = [name for name in files if name.endswith(".zarr.zip")]
    others = [name for name in folders if not name.endswith(".zarr")][:_MAX_REQUESTED]
    keys = [f"{name}/{document}" for name in others for document in ROOTS]
    values = dict(zip(keys, store.get_many(keys, Scratch()), strict=True))
    roots = [n for n in others if any(values[f"{n}/{each}"] is not None for each in ROOTS)]
    return sorted([*archives, *(n for n in folders if n.endswith(".zarr")), *roots])


def _stores_advice(names: Iterable[str]) -> str:
    stores = list(names)
    more = ", ..." if len(stores) > MAX_LISTED else ""
    shown = ", ".join(map(repr, stores[:MAX_LISTED])) + more
    return f", but below it: pass one of {shown}" if stores else ""


def _icechunk_advice(location: str) -> str:
    return f", but a repository of icechunk: pass icechunk::{location}"
