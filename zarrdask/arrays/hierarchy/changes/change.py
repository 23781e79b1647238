"""Write and erase the documents of a node, and keep consolidated metadata consistent with them.

Consolidated metadata is one document about many nodes. Any number of writers can remove them at
the same time. To update them instead, a writer has to read, change and write that one document,
and of two writers at the same time the later one discards the change of the earlier one. Hence
removing them is the default (setting ``zarrdask.consolidated-after-change``).
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from zarrdask import config
from zarrdask.arrays.hierarchy import draft
from zarrdask.arrays.hierarchy.changes.node_locks import lock_node
from zarrdask.arrays.hierarchy.changes.removal import remove_keys
from zarrdask.arrays.hierarchy.find import read_documents
from zarrdask.arrays.hierarchy.path import AnyPath, StorePath, ancestors, key_prefix
from zarrdask.errors import MetadataError, one_of
from zarrdask.formats.compliance import strictness, warn_compliance
from zarrdask.formats.metadata import consolidated_documents as consolidated
from zarrdask.formats.metadata import detect
from zarrdask.formats.metadata.json import Documents, dump_json
from zarrdask.formats.metadata.model import ArrayMetadata, Metadata, ZarrFormat
from zarrdask.storage.base import Store
from zarrdask.storage.cache.prefetched import fresh
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.locks.unchanged import ChangedError, change_if_unchanged
from zarrdask.storage.zarr.consolidated_store import drop_cache

_V3 = "zarr.json"
#: The documents that a group may have.
_GROUP_DOCUMENTS = (".zgroup", _V3)


def write_node(
    node: StorePath,
    metadata: Metadata,
    *,
    before: Metadata | None = None,
    is_member: bool = False,
) -> None:
    """Write a node's documents, and erase those that the node no longer has.

    `before` is the node as it is stored at present. Documents that stay the same are not written:
    another writer may have added members to them that are not known here. With `is_member`,
    consolidated metadata is left to the caller, who changes many nodes.
    """
    documents = metadata.render()
    if before is not None:
        old = {} if before.is_repaired else before.render()
        documents = {name: value for name, value in documents.items() if old.get(name) != value}
    if is_member:
        _put(node, documents)
    elif documents:
        is_array = isinstance(metadata, ArrayMetadata)
        names = metadata.format.consolidated_documents
        with changing(node, whole=False, is_array=is_array, names=names) as real:
            _put(real, documents)


def _put(node: StorePath, documents: Documents) -> None:
    store, prefix = node.store, node.prefix
    for name, value in documents.items():
        if value is None:
            store.erase(prefix + name)
        else:
            store.set(prefix + name, value)


def erase_node(node: StorePath) -> None:
    """Erase a node and everything below it; if the node is a symbolic link, only the link."""
    node.store.check_writable(erasing=[node.prefix])
    # A writer that changes the documents has read them: it must not write them again afterwards.
    with lock_node(node, "documents"), changing(node, whole=True) as real:
        remove_keys(real)
        draft.keep_parent(real)


# --------------------------------------------------------------------------------------------
# Consolidated metadata


class _Dropped(NamedTuple):
    """Consolidated metadata that was removed from a group: v2's document, or v3's member."""

    group: str
    zarr_format: ZarrFormat
    content: Any


@contextmanager
def changing(
    node: AnyPath,
    *,
    whole: bool,
    is_array: bool = False,
    keep: str | None = None,
    names: tuple[str, ...] = consolidated.NAMES,
    again: Callable[[Store], Store] = fresh,
) -> Iterator[AnyPath]:
    """Keep consolidated metadata consistent during a change; yield the node in the store to change.

    The consolidated metadata of the node and of the groups above it is removed first, so that
    concurrent readers read the nodes' own documents; and once more at the end, as another writer
    that consolidates the metadata may have read the documents before they changed. That writer
    reads them again when it has written, so one of the two finds out.

    Parameters
    ----------
    whole : bool
        Whether everything below the node is erased, too.
    is_array : bool
        Whether the node has no consolidated metadata, as it is an array or does not exist.
    keep : str, optional
        The path of the node, or of a group above it, whose consolidated metadata stays: the caller
        writes it again when all changes are complete, so that readers see all changes or none. The
        metadata of other groups is then removed for any setting.
    names : tuple of str
        The names of the documents that may hold consolidated metadata of the changed nodes: by
        default, the documents of all formats.
    again : callable, optional
        Returns the store from which the consolidated metadata of the groups above is read at the
        end.
    """
    with node.store.batch():
        if not node.layout.has_consolidated:
            yield node
            return
        drop_cache(node.store)
        node = node.current
        setting = "consolidated-after-change"
        after = one_of(config.get(setting), f"zarrdask.{setting}", ("drop", "update"))
        wide, below = outermost = _widened(node)
        around = groups = [*ancestors(below), *([] if is_array else [below])]
        if keep is not None:
            above = below.removesuffix(node.path).rstrip("/")
            around.remove(f"{above}/{keep}".strip("/"))
        if outermost.fresh is not outermost:
            # Values that were read beforehand may have changed: the documents to remove are read
            # again.
            documents = read_documents(wide, groups, (names,))
            groups = [
                group for group, each in zip(groups, documents, strict=True) if _consolidates(each)
            ]
        dropped = _drop_all(wide, groups, below, names)
        conflict = None
        try:
            yield node
        except ChangedError as error:
            conflict = error  # The change is repeated, and finds them again.
        # A new group may have been written with its own.
        around = [group for group in around if not (whole and group == below)]
        dropped += _drop_all(again(wide), around, below, names) if around else []
        if after == "update" and keep is None:
            for each in {(each.group, each.zarr_format): each for each in dropped}.values():
                change_if_unchanged(fresh(wide), partial(_update, each, outermost, whole=whole))
        if conflict is not None:
            raise conflict


def _widened(node: StorePath) -> StorePath:
    """Return a node in the store of the outermost group around it.

    A local directory may be opened as a store by itself, though it is a node in a group.
    """
    store, path = node
    if type(store) is not LocalStore:
        return node
    root = store.root
    above, name = os.path.split(root)
    while name and any(os.path.exists(f"{above}/{key}") for key in _GROUP_DOCUMENTS):
        root, path = above, f"{name}/{path}" if path else name
        above, name = os.path.split(root)
    return node if root == store.root else StorePath(replace(store, root=root), path)


def _consolidates(documents: Documents) -> bool:
    """Whether the documents of a group may have consolidated metadata."""
    own = documents.get(_V3)
    has_member = own is not None and consolidated.MEMBER.encode() in own
    return has_member or documents.get(consolidated.KEY) is not None


def _drop_all(
    store: Store, groups: list[str], changed: str, names: tuple[str, ...]
) -> list[_Dropped]:
    """Remove the consolidated metadata of the groups at some paths, and return it.

    `changed` is the path of the node that changes: the caller may hold the lock of its documents.
    `names` are the names of the documents that may hold consolidated metadata.
    """
    # The documents are only removed: whether they follow all rules does not matter.
    with strictness(strict=False, quiet=True):
        read = read_documents(store, groups, (names,))
        consolidating = [
            group for group, each in zip(groups, read, strict=True) if _consolidates(each)
        ]
        dropped = list[_Dropped]()
        for group in consolidating:
            # Another writer may change the attributes of the group concurrently.
            is_locked = group == changed
            with nullcontext() if is_locked else lock_node(StorePath(store, group), "documents"):
                dropped += change_if_unchanged(store, partial(_drop, group, names))
        return dropped


def _drop(group: str, names: tuple[str, ...], store: Store) -> list[_Dropped]:
    """Remove the consolidated metadata of one group; the rest of its document stays."""
    dropped, prefix = list[_Dropped](), key_prefix(group)
    # Another writer may have changed what was read before the lock was taken.
    documents = read_documents(fresh(store), [group], (names,))[0]
    flat, document = documents.get(consolidated.KEY), None
    with suppress(MetadataError):  # no reader can parse such a document, so it is harmless
        document = consolidated.group_with_member(documents.get(_V3))
    if flat is not None:
        store.erase(prefix + consolidated.KEY)
        dropped.append(_Dropped(group, 2, flat))
    if document is not None:
        member = document.pop(consolidated.MEMBER)
        store.set(f"{prefix}{_V3}", dump_json(document))
        dropped.append(_Dropped(group, 3, member))
    return dropped


def _update(dropped: _Dropped, node: StorePath, store: Store, *, whole: bool) -> None:
    """Write consolidated metadata again, updated after a change of a node."""
    group, zarr_format, path = dropped.group, dropped.zarr_format, node.path
    start = key_prefix(group)
    try:
        entries = consolidated.Entries.parse(zarr_format, dropped.content)
        paths = [each for each in (*ancestors(path), path) if f"{each}/".startswith(start)]
        if whole:
            erased = key_prefix(path)
            for below in [p for p in entries if f"{start}{p}/".startswith(erased)]:
                del entries[below]
        read = read_documents(store, paths, (detect.all_names(),))
        for each, documents in zip(paths, read, strict=True):
            entries.add(each[len(start) :], documents)
        for below in [p for p, documents in entries.items() if not documents]:
            del entries[below]
        if entries.is_group(""):
            for name, value in entries.render(zarr_format).items():
                store.set(start + name, value)
    except MetadataError as error:
        location = StorePath(store, group).location
        warn_compliance(
            f"{location}: consolidated metadata was removed, as it can't be updated: {error}"
        )
