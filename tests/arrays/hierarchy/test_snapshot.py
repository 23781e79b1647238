"""A node as a manifest names its objects."""

import pytest

import zarrdask
from tests.drafts import stored
from zarrdask.arrays.hierarchy.snapshot import snapshot_of
from zarrdask.errors import SnapshotError
from zarrdask.storage.snapshots.object_manifest import Manifest, ManifestEntry


def test_the_node_has_only_the_objects_of_the_manifest():
    store = {}
    zarrdask.create_array(store, "a", shape=4, dtype="i4", chunks=2)[...] = 1
    manifest = zarrdask.manifest(store)
    store["b/zarr.json"] = store["a/zarr.json"]
    node = snapshot_of(store, None, manifest)
    assert sorted(node.store.list()) == sorted(entry.key for entry in manifest.entries)


def test_a_node_of_the_draft_is_read_from_its_hierarchy():
    store = stored(chunks={"c0": b"\1\0\2\0"})
    array = zarrdask.open_array(store, "a")
    node = snapshot_of(array, None, zarrdask.manifest(array))
    assert (node.path, node.store.get("zarr.json")) == ("a", store["zarr.json"])
    assert node.store.get("meta/a.array.json") == store["meta/a.array.json"]
    assert node.store.get("data/a/c0") == store["data/a/c0"]


def test_a_manifest_must_identify_each_object():
    store = {"zarr.json": b"{}"}
    with pytest.raises(SnapshotError):
        snapshot_of(store, None, Manifest("", (ManifestEntry("zarr.json", 2),)))
