"""`snapshot=`: exactly the objects that a manifest names are read, or an error names the key."""

import pickle

import numpy as np
import pytest

import zarrdask
import zarrdask.xarray
from tests.covering import for_each
from zarrdask.errors import SnapshotError, UnsupportedError
from zarrdask.storage.snapshots.snapshot_store import SnapshotStore

OPTIONS = {
    "v2": {"zarr_format": 2},
    "v3": {},
    "shards": {"shards": 4},
}


def make(location, options):
    zarrdask.create_group(location, zarr_format=options.get("zarr_format", 3))
    z = zarrdask.create_array(location, "a", shape=8, chunks=2, dtype="i4", **options)
    z[...] = range(1, 9)
    return z


@for_each("name", [*OPTIONS])
@for_each("is_local", [True, False])
def test_an_object_that_has_changed_is_named(name, is_local, tmp_path):
    location = tmp_path / name if is_local else {}
    z = make(location, OPTIONS[name])
    manifest = zarrdask.manifest(location)
    x = zarrdask.from_zarr(location, "a", snapshot=manifest)
    np.testing.assert_array_equal(x.compute(scheduler="sync"), range(1, 9))
    z[0] = -1
    z.store.set("b", b"new")
    group = zarrdask.open_group(location, snapshot=manifest)
    assert list(group) == ["a"]
    assert group["a"][4:].tolist() == [5, 6, 7, 8]
    with pytest.raises(SnapshotError, match=r"a/(c/)?0"):
        group["a"][:2]
    with pytest.raises(SnapshotError, match=r"a/(c/)?0"):
        x.compute(scheduler="sync")


def test_an_object_that_was_removed_is_no_fill_value(tmp_path):
    make(tmp_path, {})
    manifest = zarrdask.manifest(tmp_path, digest=None)
    (tmp_path / "a/c/0").unlink()
    with pytest.raises(SnapshotError, match="a/c/0"):
        zarrdask.open_array(tmp_path, "a", snapshot=manifest)[...]
    (tmp_path / "a/zarr.json").unlink()
    with pytest.raises(SnapshotError, match=r"a/zarr\.json"):
        zarrdask.open_array(tmp_path, "a", snapshot=manifest)


def test_a_chunk_that_was_added_is_not_read(tmp_path):
    z = zarrdask.create_array(tmp_path, shape=4, chunks=2, dtype="i4", fill_value=9)
    manifest = zarrdask.manifest(tmp_path)
    z[...] = 1
    assert zarrdask.open_array(tmp_path, snapshot=manifest)[...].tolist() == [9] * 4


def test_a_saved_manifest_is_a_snapshot_that_cannot_be_written(tmp_path):
    make(tmp_path / "g", {})
    zarrdask.manifest(tmp_path / "g").save(tmp_path / "m.json")
    z = zarrdask.open_array(tmp_path / "g", "a", mode="r+", snapshot=str(tmp_path / "m.json"))
    with pytest.raises(UnsupportedError):
        z[0] = 5
    assert zarrdask.open(tmp_path / "g", "a", snapshot=tmp_path / "m.json")[0] == 1


def test_a_wrong_size_in_a_manifest_is_an_error(tmp_path):
    z = zarrdask.create_array(tmp_path / "a", shape=4, chunks=2, dtype="i4")
    z[...] = 1
    path = tmp_path / "m.json"
    zarrdask.manifest(z).save(path)
    path.write_text(path.read_text().replace('"c/0", "size": ', '"c/0", "size": 1'))
    with pytest.raises(SnapshotError, match="c/0"):
        zarrdask.open_array(tmp_path / "a", snapshot=path)[...]


def test_tasks_do_not_each_carry_a_large_manifest(tmp_path):
    z = zarrdask.create_array(tmp_path, shape=200, chunks=1, dtype="i1", compressors=None)
    z[...] = 1
    x = zarrdask.from_zarr(tmp_path, chunks=20, snapshot=zarrdask.manifest(z))
    graph = dict(x.dask)
    assert sum(len(pickle.dumps(task)) > 5000 for task in graph.values()) <= 1
    assert int(x.sum().compute(scheduler="sync")) == 200


def test_a_snapshot_is_equal_to_its_copy_in_another_process(tmp_path):
    make(tmp_path, {})
    store = zarrdask.open_group(tmp_path, snapshot=zarrdask.manifest(tmp_path)).store
    assert isinstance(store, SnapshotStore)
    assert pickle.loads(pickle.dumps(store)) == store
    assert store.list_dir("a/") == (["zarr.json"], ["c"])
    assert [entry.size for entry in store.entries("a/c/", until="a/c/0")] == [
        store.stat("a/c/0").size
    ]
    make(tmp_path / "other", {})
    assert zarrdask.open_group(tmp_path, snapshot=zarrdask.manifest(tmp_path)).store != store


def test_a_manifest_by_which_no_change_is_noticed_is_refused():
    """A changed chunk may have the same size."""
    store = {}
    make(store, {"compressors": ()})
    manifest = zarrdask.manifest(store, digest=None)
    for open_node in (zarrdask.open_group, zarrdask.open):
        with pytest.raises(SnapshotError, match="needs a manifest with digests"):
            open_node(store, snapshot=manifest)
    with pytest.raises(SnapshotError, match="needs a manifest with digests"):
        zarrdask.from_zarr(store, "a", snapshot=manifest)


@for_each("zarr_format", ["v3-draft", "v3-draft-protocol"])
def test_a_snapshot_of_a_node_in_a_hierarchy_of_the_draft(zarr_format, tmp_path):
    place = tmp_path / zarr_format
    root = zarrdask.create_group(place, zarr_format=zarr_format)
    z = root.create_array("g/a", shape=8, chunks=2, dtype="i4")
    z[...] = range(1, 9)
    urls = [(z, None), (root["g"], "a"), (place, "g/a")]
    manifests = [zarrdask.manifest(url) for url, _ in urls]
    z[0] = -1
    for (url, component), manifest in zip(urls, manifests, strict=True):
        array = zarrdask.open_array(url, component, snapshot=manifest)
        assert array[2:].tolist() == [3, 4, 5, 6, 7, 8]
        with pytest.raises(SnapshotError, match=r"data/(root/)?g/a/c(0/)?0"):
            array[:2]
    assert list(zarrdask.open_group(root["g"], snapshot=manifests[1])) == ["a"]
    dataset = zarrdask.xarray.open_zarr(place, group="g", snapshot=manifests[2], phony_dims=True)
    assert int(dataset.a[7].compute(scheduler="sync")) == 8
