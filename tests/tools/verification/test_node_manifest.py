"""`zarrdask.manifest`: what has changed, by digests."""

import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.errors import MetadataError, UnsupportedError
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


def test_a_hierarchy_of_the_draft_has_no_manifest():
    group = zarrdask.create_group({}, zarr_format="v3-draft-protocol")
    with pytest.raises(UnsupportedError, match="draft"):
        zarrdask.manifest(group)
