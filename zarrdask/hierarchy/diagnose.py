"""The message for a path without a node: which of the usual mistakes was made."""

import os
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module

from zarrdask.display.words import nearest
from zarrdask.errors import MetadataError, StoreError, ZarrdaskError
from zarrdask.metadata.draft.entry import KEY, is_entry
from zarrdask.metadata.json import parse_json
from zarrdask.storage.base import Store
from zarrdask.storage.local import LocalStore
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.v3_draft import DraftStore
from zarrdask.storage.wrapper import innermost

#: How many directories up the entry point of a draft hierarchy is searched for: in a local
#: directory, and in other stores, where each costs a request.
_MAX_LEVELS_LOCAL, _MAX_LEVELS_REMOTE = 8, 4
#: Modes, which other software takes as the second argument.
_MODES = ("r", "r+", "a", "w", "w-", "x")
#: The directories of a draft hierarchy.
_DRAFT_DIRECTORIES = ("meta", "data")


def missing_node(store: Store, path: str, text: str = "there is no array or group here") -> str:
    """Return the message for a path without a node, with a hint if the mistake is a usual one.

    Parameters
    ----------
    store : Store
    path : str
        The path that was opened.
    text : str
        The message without a hint.
    """
    if path in _MODES:
        return f"{text}; the second argument is the path of a node: pass mode={path!r} by name"
    inner = innermost(store)
    for store_above, path_below in _stores_above(inner):
        try:
            document = store_above.get(KEY)
        except StoreError:
            break  # access to the store does not imply access to the directories around it
        if is_entry(document):
            component = _component(f"{path_below}/{path}".strip("/"))
            return (
                f"{text}: it is inside a hierarchy of the v3 draft; open that at its root, "
                f"{store_above.url}" + (f", with component={component!r}" if component else "")
            )
        if _is_array(document):
            return f"{text}: it is inside an array, {store_above.url}"
    directories = not isinstance(store, DraftStore)  # in the draft nodes are files
    if directories and isinstance(inner, LocalStore) and not os.path.isdir(inner.path(path)):
        if os.path.exists(inner.path(path).rstrip("/")):
            return f"{text}: this is a file; pass the directory of the array or the group"
        text = f"{text}: there is no such directory"
    elif isinstance(inner, LocalStore):
        return text  # the directory exists, so that its name is not the mistake
    name = nearest_name(inner, path)
    return text if name is None else f"{text}; the nearest name is {name!r}"


def _is_array(document: bytes | None) -> bool:
    """Whether a ``zarr.json`` is that of an array."""
    try:
        return document is not None and parse_json(document, KEY).get("node_type") == "array"
    except MetadataError:
        return False


def nearest_name(store: Store, path: str) -> str | None:
    """Return the name beside a path that is most like its own; None if there is none, or far away.

    Only directories on a local disk, and stores in memory, are searched: others take requests.
    """
    if isinstance(store, LocalStore):
        parent, name = os.path.split(store.path(path).rstrip("/"))
        try:
            with os.scandir(parent) as entries:
                names = [entry.name for entry in entries if entry.is_dir()]
        except OSError:
            return None
    elif isinstance(store, MemoryStore) and path:
        above, _, name = path.rpartition("/")
        try:
            _, names = store.list_dir(f"{above}/" if above else "")
        except ZarrdaskError:
            return None
    else:
        return None
    return nearest(name, [n for n in names if n != name])


def _stores_above(store: Store) -> Iterator[tuple[Store, str]]:
    """Yield stores of the directories above that of a store, each with the path back to it."""
    root = getattr(store, "root", "")
    names = root.strip("/").split("/") if isinstance(root, str) else []
    # Nothing is above a bucket, or above a host with its protocol.
    first = 3 if names[:1] in (["http:"], ["https:"]) else 1
    max_levels = _MAX_LEVELS_LOCAL if isinstance(store, LocalStore) else _MAX_LEVELS_REMOTE
    for level in range(1, min(len(names) - first, max_levels) + 1):
        above = "/" * root.startswith("/") + "/".join(names[:-level])
        below = "/".join(names[-level:])
        try:
            if isinstance(store, LocalStore):
                yield replace(store, root=above), below
            elif hasattr(store, "fs"):
                yield import_module("zarrdask.storage.fsspec").FsspecStore(store.fs, above), below
        except StoreError:
            return


def _component(path: str) -> str:
    """Return the path of the node that a path in the ``meta`` or ``data`` directory belongs to."""
    directory, _, rest = path.partition("/")
    if directory not in _DRAFT_DIRECTORIES:
        return path
    name, _, below = rest.partition("/")
    return below if name == "root" else rest
