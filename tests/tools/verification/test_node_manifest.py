"""`zarrdask.manifest`: what has changed, by digests."""

import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.errors import (
    MetadataError,
    NodeNotFoundError,
    ReadOnlyError,
    SnapshotError,
    StoreError,
)
from zarrdask.storage.snapshots.object_manifest import Manifest


def make(place):
    z = zarrdask.create_array(place, shape=6, chunks=2, dtype="i4", compressors=None)
    z[...] = 7
    return z


def test_a_copy_is_verified(tmp_path):
    make(tmp_path / "a")
    zarrdask.sync(tmp_path / "a", tmp_path / "b")
    zarrdask.manifest(tmp_path / "a").save(tmp_path / "a.json")
    manifest = Manifest.load(tmp_path / "a.json")
    assert zarrdask.verify(tmp_path / "b", manifest=manifest).ok
    folder = tmp_path / "b" / "c"
    (folder / "0").write_bytes(bytes(8))
    (folder / "1").unlink()
    (folder / "7").write_bytes(b"x")
    found = zarrdask.verify(tmp_path / "b", manifest=manifest)
    assert (found.changed, found.missing, found.added) == (("c/0",), ("c/1",), ("c/7",))
    assert (found.ok, found.to_dict()["unknown"]) == (False, [])
    assert "the first is c/0" in str(found)


def test_manifests_are_compared_without_reading():
    z = make({})
    before = zarrdask.manifest(z)
    z[0] = 1
    assert zarrdask.compare(before, zarrdask.manifest(z)).changed == ("c/0",)
    sizes = zarrdask.manifest(z, digest=None)
    assert zarrdask.compare(before, sizes).unknown == tuple(e.key for e in before.entries)
    assert "4 objects" in repr(before)


@for_each("digest", ["sha256", "crc32c"])
def test_damage_that_keeps_the_size_is_found_by_any_digest(digest):
    z = make({})
    manifest = zarrdask.manifest(z, digest=digest)
    assert all(entry.digest.startswith(digest) for entry in manifest.entries)
    assert zarrdask.verify(z, manifest=manifest).ok
    z.store.set("c/1", bytes(8))
    assert zarrdask.verify(z, manifest=manifest).changed == ("c/1",)


def test_an_unknown_digest_is_an_error():
    with pytest.raises(MetadataError, match="sha1"):
        zarrdask.manifest({}, digest="sha1")


@for_each("zarr_format", ["v3-draft", "v3-draft-protocol"])
def test_a_hierarchy_of_the_draft(zarr_format):
    group = zarrdask.create_group({}, zarr_format=zarr_format)
    z = group.create_array("g/a", shape=6, chunks=2, dtype="i4", compressors=None)
    z[...] = 7
    zarrdask.sync(group, copy := {})
    manifest = zarrdask.manifest(group)
    assert len(manifest.entries) == 5
    assert zarrdask.verify(copy, manifest=manifest).ok
    x = zarrdask.from_zarr(group, "g/a", snapshot=manifest)
    z[0] = 1
    assert (x[2:].compute() == 7).all()
    with pytest.raises(SnapshotError, match="c0"):
        x.compute()
    assert zarrdask.verify(group, manifest=manifest).changed == ("g/a/c0",)
    assert zarrdask.verify(z, manifest=zarrdask.manifest(z)).ok
    x = zarrdask.from_zarr(z, snapshot=zarrdask.manifest(z))
    assert (x.compute() == [1, 7, 7, 7, 7, 7]).all()
    z[1] = 2
    with pytest.raises(SnapshotError, match="c0"):
        x.compute()


def test_wrong_calls_say_what_to_do(tmp_path):
    z = make(tmp_path / "a")
    manifest = zarrdask.manifest(z)
    with pytest.raises(NodeNotFoundError, match="nothing-here"):
        zarrdask.manifest(tmp_path / "nothing-here", keep=True)
    with pytest.raises(ReadOnlyError, match=r"r\+"):
        zarrdask.manifest(zarrdask.open_array(tmp_path / "a"), keep=True)
    with pytest.raises(MetadataError, match="verify"):
        zarrdask.compare(manifest, z)
    for act in (manifest.save, Manifest.load):
        with pytest.raises(StoreError, match="no-folder"):
            act(tmp_path / "no-folder" / "m.json")
    with pytest.raises(MetadataError, match=r"save wrote"):
        zarrdask.from_zarr(z, snapshot=True)
