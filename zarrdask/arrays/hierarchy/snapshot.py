"""Nodes as a manifest names their objects."""

from dataclasses import replace
from os import PathLike
from typing import Any

from zarrdask.arrays.hierarchy.draft import hierarchy_of
from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.errors import UnsupportedError
from zarrdask.formats.metadata.draft.entry import KEY
from zarrdask.formats.metadata.node_layout import DOCUMENTS
from zarrdask.storage.snapshots.digests import digest_of
from zarrdask.storage.snapshots.object_manifest import Manifest, ManifestEntry, as_manifest
from zarrdask.storage.snapshots.snapshot_store import SnapshotStore
from zarrdask.storage.zarr.draft_store import DraftStore

#: A manifest, or the file that it is saved in.
Snapshot = Manifest | str | PathLike[str]


def snapshot_of(
    url: Any, storage_options: dict[str, Any] | None, snapshot: Snapshot
) -> SnapshotStore:
    """Return the store of a node, with the objects that a manifest of the node names.

    Raises
    ------
    SnapshotError
        If the manifest does not say enough of an object to tell it from a changed one.
    UnsupportedError
        If the node is below the root of a hierarchy of the draft.
    """
    node, manifest = locate_node(url, None, storage_options).current, as_manifest(snapshot)
    if any(entry.key.endswith(DOCUMENTS) for entry in manifest.entries):
        hierarchy = hierarchy_of(node)
        if hierarchy is not None:
            manifest, node = (
                _as_stored(manifest, hierarchy, node.location),
                node.via(hierarchy.inner),
            )
    store = SnapshotStore(node.store, node.prefix, manifest)
    store.check()
    return store


def _as_stored(manifest: Manifest, hierarchy: DraftStore, location: str) -> Manifest:
    """Return a manifest of the root of a hierarchy of the draft with the keys of the objects.

    The entry point of the hierarchy, which never changes, is read now.
    """
    layout, base = hierarchy.layout, hierarchy.layout.base
    if location != f"{hierarchy.url}/{base}".rstrip("/"):
        raise UnsupportedError(
            "in a hierarchy of the draft of Zarr v3, a snapshot is one of its root; make a "
            "manifest of the root, and name the node by component",
            key=location,
        )
    value = hierarchy.inner.get(f"{base}{KEY}") or b""
    entries = [ManifestEntry(KEY, len(value), digest=digest_of(value, "sha256"))]
    entries += (
        replace(entry, key=layout.real(base + entry.key)[len(base) :]) for entry in manifest.entries
    )
    return replace(manifest, entries=tuple(entries))
