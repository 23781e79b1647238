"""What to say where there is no node: which of the usual mistakes it was."""

import os
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module

from zarrdask.errors import StoreError
from zarrdask.metadata.draft.entry import KEY, is_entry
from zarrdask.storage.base import Store
from zarrdask.storage.local import LocalStore
from zarrdask.storage.v3_draft import DraftStore
from zarrdask.storage.wrapper import WrappedStore

#: How many directories up an entry point of the draft is looked for; elsewhere each is a request.
_UP, _UP_ELSEWHERE = 8, 4
_FOLDERS = ("meta", "data")


def missing(store: Store, path: str, text: str = "there is no array or group here") -> str:
    """Return a text for a place where there is no node, with a hint at the usual mistakes."""
    inner = store
    while isinstance(inner, WrappedStore):
        inner = inner.inner
    for above, below in _above(inner):
        try:
            data = above.get(KEY)
        except StoreError:
            break  # it was but for a hint: who may see the store need not see what is around it
        if is_entry(data):
            node = _component(f"{below}/{path}".strip("/"))
            return (
                f"{text}: it is inside a hierarchy of the v3 draft, which is opened at its root, "
                f"{above.url}" + (f", with component={node!r}" if node else "")
            )
    directories = not isinstance(store, DraftStore)  # in the draft nodes are files
    if directories and isinstance(inner, LocalStore) and not os.path.isdir(inner.path(path)):
        is_file = os.path.exists(inner.path(path).rstrip("/"))
        return f"{text}: {'this is a file' if is_file else 'there is no such directory'}"
    return text


def _above(store: Store) -> Iterator[tuple[Store, str]]:
    """Yield the places above a store, with the path from there to the store."""
    root = getattr(store, "root", "")
    names = root.strip("/").split("/") if isinstance(root, str) else []
    # A bucket, or a host with its protocol, is not below anything.
    first = 3 if names[:1] in (["http:"], ["https:"]) else 1
    most = _UP if isinstance(store, LocalStore) else _UP_ELSEWHERE
    for up in range(1, min(len(names) - first, most) + 1):
        above = "/" * root.startswith("/") + "/".join(names[:-up])
        below = "/".join(names[-up:])
        try:
            if isinstance(store, LocalStore):
                yield replace(store, root=above), below
            elif hasattr(store, "fs"):
                yield import_module("zarrdask.storage.fsspec").FsspecStore(store.fs, above), below
        except StoreError:
            return


def _component(path: str) -> str:
    """Return the path of the node that a path within ``meta`` or ``data`` belongs to."""
    first, _, rest = path.partition("/")
    if first not in _FOLDERS:
        return path
    first, _, below = rest.partition("/")
    return below if first == "root" else rest
