"""Open nodes at the versions of their objects that a manifest lists."""

from dataclasses import replace
from os import PathLike
from typing import Any

from zarrdask.arrays.hierarchy.draft import hierarchy_of
from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.formats.metadata.draft.entry import KEY
from zarrdask.formats.metadata.node_layout import DOCUMENTS
from zarrdask.storage.snapshots.digests import digest_of
from zarrdask.storage.snapshots.object_manifest import Manifest, ManifestEntry
from zarrdask.storage.snapshots.snapshot_store import SnapshotStore
from zarrdask.storage.zarr.draft_store import DraftStore

#: A manifest, or the file that it is saved in.
Snapshot = Manifest | str | PathLike[str]


def snapshot_of(url: Any, storage_options: dict[str, Any] | None, snapshot: Snapshot) -> NodePath:
    """Return a node in a store that has the objects that a manifest of the node names.

    Raises
    ------
    SnapshotError
        If the manifest has no version or digest by which a changed object can be detected.
    """
    node, manifest = locate_node(url, None, storage_options).current, Manifest.of(snapshot)
    store, prefix, path = node.store, node.prefix, ""
    if any(entry.key.endswith(DOCUMENTS) for entry in manifest.entries):
        hierarchy = hierarchy_of(node)
        if hierarchy is not None:
            store, prefix = hierarchy.inner, hierarchy.layout.base
            path = hierarchy.layout.inside(node.prefix).rstrip("/")
            manifest = _as_stored(manifest, hierarchy, node.prefix)
    objects = SnapshotStore(store, prefix, manifest)
    objects.check()
    return NodePath(objects, path)


def _as_stored(manifest: Manifest, hierarchy: DraftStore, prefix: str) -> Manifest:
    """Return a manifest of a node in a hierarchy of the draft with the keys of the objects.

    The entry point of the hierarchy, which never changes, is read now.
    """
    layout, start = hierarchy.layout, len(hierarchy.layout.base)
    value = hierarchy.inner.get(f"{layout.base}{KEY}") or b""
    entries = [ManifestEntry(KEY, len(value), digest=digest_of(value, "sha256"))]
    entries += (entry.at(layout.real(prefix + entry.key)[start:]) for entry in manifest.entries)
    return replace(manifest, entries=tuple(entries))
