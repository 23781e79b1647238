"""Hierarchies of the v3 draft: find the one that a path is in, and create nodes in it.

A node of another format is complete by itself. One of the draft is found from the entry point at
the root of its hierarchy, the document ``zarr.json`` (conformance B-9, B-76).
"""

from collections.abc import Sequence
from typing import cast

from zarrdask import config
from zarrdask.arrays.hierarchy.changes.removal import remove_keys
from zarrdask.arrays.hierarchy.diagnose import below_array_error, check_around
from zarrdask.arrays.hierarchy.path import AnyPath, StorePath, exists_error
from zarrdask.errors import NodeExistsError
from zarrdask.formats.metadata.draft.entry import KEY, EntryPoint
from zarrdask.formats.metadata.formats import find_format, formats
from zarrdask.formats.metadata.model import ArrayMetadata, Metadata
from zarrdask.formats.metadata.node_layout import ARRAY, PROTOCOL
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store
from zarrdask.storage.zarr.draft_store import DraftStore


def enter(root: StorePath, entry_point: bytes) -> DraftStore:
    """Return a store as the hierarchy of the draft whose root has an entry point.

    If the entry point mixes the forms of both dialects, the documents of the root decide (X-B16,
    X-B17).
    """
    store, base, entry = root.store, root.prefix, EntryPoint.parse(entry_point)
    view = DraftStore(store, base, entry.zarr_format, entry.suffix, entry.minor)
    if not entry.certain:
        older = DraftStore(store, base, PROTOCOL, entry.suffix, entry.minor)
        if older.has_document(base) or older.has_nodes(base):
            return older
    return view


def root_above(nodes: Sequence[StorePath]) -> DraftStore | None:
    """Return the hierarchy that is rooted at the first of some nodes that has an entry point.

    It is None if there is no entry point, or the store is a hierarchy of the draft already.
    """
    if not nodes or nodes[0].layout.base is not None:
        return None
    store = nodes[0].store
    keys = [node.prefix + KEY for node in nodes]
    values = [None if v is None else bytes(v) for v in store.get_many(keys, Scratch())]
    for node, value in zip(nodes, values, strict=True):
        if value is not None and EntryPoint.is_in(value):
            return enter(node, value)
    return None


def prepare(node: StorePath, metadata: Metadata, *, overwrite: bool) -> tuple[DraftStore, bool]:
    """Check that a node can be created in a hierarchy of the draft; nothing is written.

    The result is the hierarchy, and whether it has to be created with the node.
    """
    node = node.current
    store, path = node
    view = hierarchy_of(node)
    if overwrite and not path and view is not store and view is not None:
        # The root of another dialect is replaced like the root of another format.
        view = view if _is_of_format(view, metadata) else None
    metadata.format.check_path(path if view is None else _below_root(view, path))
    if view is not None:
        if not _is_of_format(view, metadata):
            raise NodeExistsError(
                "the hierarchy has another format than the new node",
                key=f"{view.url}/{view.layout.base}{KEY}",
                found=metadata.zarr_format,
                expected=f"zarr_format={view.layout.zarr_format!r}",
            )
        _check_new(view, node.via(view), metadata, overwrite=overwrite)
        return view, False
    if _is_taken(store) and (path or not overwrite):
        raise NodeExistsError(
            "the root of the store is a node of another format; replace it with overwrite=True "
            "and the path of the root",
            key=store.url,
        )
    check_around(store)
    return DraftStore(store, "", str(metadata.zarr_format)), True


def begin(node: StorePath, metadata: Metadata, *, overwrite: bool) -> DraftStore:
    """Return the hierarchy that a new node belongs to; its entry point is written if there is none.

    No groups above the node are created: they are implied (conformance B-67).
    """
    view, is_new = prepare(node, metadata, overwrite=overwrite)
    if is_new:
        store = view.inner
        if _is_taken(store):
            remove_keys(StorePath(store, ""))
        entry = EntryPoint.render(view.layout.zarr_format)
        if not store.create(KEY, entry) and store.get(KEY) != entry:
            raise exists_error(node.via(view))
    return view


def in_hierarchy_like(node: AnyPath, source: StorePath, *, create: bool) -> AnyPath:
    """Return a node, which need not exist, in a hierarchy of the same dialect as a source's.

    If it is in none, there will be one with the same entry point; `create` says whether to write
    that now.

    Raises
    ------
    NodeExistsError
        If the node is in a hierarchy of another format.
    """
    own, other = hierarchy_of(node), _view_of(source)
    if other is not None and own is None and not _is_taken(node.store):
        layout = other.layout
        own = DraftStore(node.store, "", layout.zarr_format, layout.suffix, layout.minor)
        if create:
            node.store.create(KEY, other.inner.get(f"{layout.base}{KEY}") or b"")
    own_format = None if own is None else own.layout.zarr_format
    if own_format != source.layout.zarr_format:
        raise NodeExistsError(
            "stored objects can't be copied unchanged to a hierarchy of another format; convert "
            "them by zarrdask.copy, or choose another location",
            key=node.location,
            found=own_format or "no hierarchy of the draft of Zarr v3",
            expected=source.layout.zarr_format or "no hierarchy of the draft of Zarr v3",
        )
    return node if own is None else node.via(own)


def in_own_hierarchy(node: AnyPath) -> AnyPath:
    """Return a node in the store as its hierarchy of the draft sees it, if it is in one."""
    own = hierarchy_of(node)
    return node if own is None else node.via(own)


def hierarchy_of(node: StorePath) -> DraftStore | None:
    """Return the hierarchy that a node, which need not exist, is in; None if there is none."""
    own = _view_of(node)
    return root_above([*node.parents, node]) if own is None else own


def _view_of(node: StorePath) -> DraftStore | None:
    """Return the store of a node if the store is a hierarchy of the draft."""
    return None if node.layout.base is None else cast(DraftStore, node.store)


def _is_taken(store: Store) -> bool:
    """Whether the root of a store is a node of another format."""
    documents = store.get_many(
        [name for form in formats() for name in form.node_documents], Scratch()
    )
    return any(document is not None for document in documents)


def _check_new(view: DraftStore, node: StorePath, metadata: Metadata, *, overwrite: bool) -> None:
    """Check that no node above a new one is an array, and that the new one does not exist."""
    above = [each for each in node.parents if each.prefix.startswith(view.layout.base)]
    values = view.get_many([each.prefix + ARRAY for each in above], Scratch())
    for each, value in zip(above, values, strict=True):
        if value is not None:
            raise below_array_error(each.location)
    # A group that is only implied may get a document.
    implied = isinstance(metadata, ArrayMetadata) and view.has_nodes(node.prefix)
    if not overwrite and (implied or view.has_document(node.prefix)):
        raise exists_error(node)


def _is_of_format(view: DraftStore, metadata: Metadata) -> bool:
    return find_format(view.layout.zarr_format) is metadata.format


def _below_root(view: DraftStore, path: str) -> str:
    """Return the path of a node from the root of its hierarchy, given its path in the store."""
    return view.layout.inside(f"{path}/").rstrip("/")


def keep_parent(node: StorePath) -> None:
    """Write a document for the group above an erased node, if such groups are kept (B-75)."""
    view = _view_of(node)
    if view is None:
        return
    parent = _below_root(view, node.path).rpartition("/")[0]
    if parent and config.get("draft-keep-groups"):
        view.keep_group(f"{view.layout.base}{parent}/")
