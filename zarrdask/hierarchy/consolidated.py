"""Consolidated metadata must not tell what is no longer true: each change drops them.

They are one document about many nodes. Who changes a node drops them from every group above,
which any number of writers can do at a time: it makes no difference who is first, or how often. To
bring them up to date instead is to read, change and write that one document: of two writers that
do so at once, the later undoes what the earlier told. So dropping is the default.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate
from typing import Any, NamedTuple

from zarrdask import config
from zarrdask.codecs.base import Json
from zarrdask.compliance import strictness, warn_compliance
from zarrdask.errors import MetadataError
from zarrdask.metadata import consolidated, detect, v2, v3
from zarrdask.metadata.json import Documents
from zarrdask.metadata.model import ZarrFormat
from zarrdask.storage.base import Scratch, Store
from zarrdask.storage.consolidated import ConsolidatedStore
from zarrdask.storage.local import LocalStore
from zarrdask.storage.v3_draft import DraftStore

#: What makes a directory a group, or may.
_GROUPS = (v2.CHILD_NAMES[1], *v3.NAMES)
#: What ``zarrdask.consolidated-after-change`` may be.
CHOICES = ("drop", "update")


class _Dropped(NamedTuple):
    """Consolidated metadata that were dropped: whose, and as they were."""

    group: str
    zarr_format: ZarrFormat
    found: Any


def ancestors(path: str) -> list[str]:
    """Return the paths of the groups above a node, the root first.

    >>> ancestors("a/b/c")
    ['', 'a', 'a/b']
    """
    names = path.split("/")[:-1]
    return ["", *accumulate(names, lambda above, name: f"{above}/{name}")] if path else []


@contextmanager
def changing(store: Store, path: str, *, whole: bool, is_array: bool = False) -> Iterator[Store]:
    """Keep consolidated metadata true while a node is changed.

    Those of the node and of the groups above it are dropped first: a reader who comes in between
    finds the nodes' own documents.

    Parameters
    ----------
    whole : bool
        Whether what is below the node goes, too.
    is_array : bool
        Whether the node is known to be an array, which has no consolidated metadata itself.

    Yields
    ------
    Store
        The store itself, to write to.
    """
    with store.batch():
        yield from _changing(store, path, whole=whole, is_array=is_array)


def _changing(store: Store, path: str, *, whole: bool, is_array: bool) -> Iterator[Store]:
    if isinstance(store, DraftStore):
        yield store  # of other formats' consolidated metadata none can tell of it
        return
    if isinstance(store, ConsolidatedStore):
        store.forget()
        store = store.inner
    after = config.get("consolidated-after-change")
    if after not in CHOICES:
        raise MetadataError(
            "unknown setting",
            key="zarrdask.consolidated-after-change",
            found=after,
            expected=" or ".join(CHOICES),
        )
    # Of other writers' documents nothing is wanted but that they go: how they are is no matter.
    wide, below = _widened(store, path)
    with strictness(strict=False, quiet=True):
        dropped = _drop(wide, [*ancestors(below), *([] if is_array else [below])])
    yield store
    if after == "update":
        for each in dropped:
            _update(wide, each, below, whole=whole)


def _widened(store: Store, path: str) -> tuple[Store, str]:
    """Return the store and path of a node as seen from the outermost group around it.

    A directory may be opened as a store of its own, though it lies in a group.
    """
    if type(store) is not LocalStore:
        return store, path
    root = store.root
    above, name = os.path.split(root)
    while name and any(os.path.exists(f"{above}/{key}") for key in _GROUPS):
        root, path = above, f"{name}/{path}" if path else name
        above, name = os.path.split(root)
    return (store if root == store.root else replace(store, root=root)), path


def _read(store: Store, paths: list[str], names: tuple[str, ...]) -> list[Documents]:
    prefixes = [f"{path}/" if path else "" for path in paths]
    keys = [prefix + name for prefix in prefixes for name in names]
    found = iter([None if v is None else bytes(v) for v in store.get_many(keys, Scratch())])
    return [{name: next(found) for name in names} for _ in paths]


def _drop(store: Store, groups: list[str]) -> list[_Dropped]:
    """Drop the consolidated metadata of the groups at some paths, and return them."""
    dropped = []
    for group, documents in zip(groups, _read(store, groups, consolidated.NAMES), strict=True):
        prefix = f"{group}/" if group else ""
        flat, document = documents[consolidated.KEY], _with_member(documents)
        if flat is not None:
            store.erase(prefix + consolidated.KEY)
            dropped.append(_Dropped(group, 2, flat))
        if document is not None:
            member = document.pop(consolidated.MEMBER)
            store.set(f"{prefix}{v3.NAMES[0]}", consolidated.dump_json(document))
            dropped.append(_Dropped(group, 3, member))
    return dropped


def _with_member(documents: Documents) -> Json | None:
    try:
        return consolidated.group_with_member(documents[v3.NAMES[0]])
    except MetadataError:
        return None  # nobody can read it, so nobody is misled


def _update(store: Store, dropped: _Dropped, path: str, *, whole: bool) -> None:
    """Write consolidated metadata again, as they are after a change."""
    group, zarr_format = dropped.group, dropped.zarr_format
    start = f"{group}/" if group else ""
    try:
        entries = dict(consolidated.parse(zarr_format, dropped.found))
        paths = [each for each in (*ancestors(path), path) if f"{each}/".startswith(start)]
        if whole:
            gone = f"{path}/" if path else ""
            entries = {p: d for p, d in entries.items() if not f"{start}{p}/".startswith(gone)}
        for each, documents in zip(paths, _read(store, paths, detect.NAMES), strict=True):
            below = each[len(start) :]
            entries[below] = consolidated.parse_documents(each, documents)
        entries = {below: documents for below, documents in entries.items() if documents}
        if consolidated.is_group(entries.get("", {})):
            for name, value in consolidated.render(zarr_format, entries).items():
                store.set(start + name, value)
    except MetadataError as error:
        warn_compliance(
            f"{store.url}: consolidated metadata were dropped, as they can't be written: {error}"
        )
