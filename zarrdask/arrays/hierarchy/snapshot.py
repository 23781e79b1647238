"""Nodes as a manifest names their objects."""

from os import PathLike
from typing import Any

from zarrdask.arrays.hierarchy.lookup import locate_node
from zarrdask.storage.snapshots.object_manifest import Manifest, as_manifest
from zarrdask.storage.snapshots.snapshot_store import SnapshotStore

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
    """
    node = locate_node(url, None, storage_options).current
    store = SnapshotStore(node.store, node.prefix, as_manifest(snapshot))
    store.check()
    return store
