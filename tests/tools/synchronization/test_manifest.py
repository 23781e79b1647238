"""`zarrdask.manifest`: what has changed, by digests."""

import json

import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.errors import MetadataError
from zarrdask.tools.synchronization.manifest import Manifest


def make(place):
    z = zarrdask.create_array(place, shape=6, chunks=2, dtype="i4", compressors=None)
    z[...] = 7
    return z


def test_a_copy_is_verified(tmp_path):
    make(tmp_path / "a")
    zarrdask.sync(tmp_path / "a", tmp_path / "b")
    zarrdask.manifest(tmp_path / "a").save(tmp_path / "a.json")
    manifest = Manifest.load(tmp_path / "a.json")
    assert manifest.verify(tmp_path / "b").ok
    folder = tmp_path / "b" / "c"
    (folder / "0").write_bytes(bytes(8))
    (folder / "1").unlink()
    (folder / "7").write_bytes(b"x")
    found = manifest.verify(tmp_path / "b")
    assert (found.changed, found.missing, found.added) == (("c/0",), ("c/1",), ("c/7",))
    assert (found.ok, found.to_dict()["unknown"]) == (False, [])
    assert "the first is c/0" in str(found)


def test_manifests_are_compared_without_reading():
    z = make({})
    before = zarrdask.manifest(z)
    z[0] = 1
    assert zarrdask.manifest(z).compare(before).changed == ("c/0",)
    sizes = zarrdask.manifest(z, digests=False)
    assert sizes.compare(before).unknown == tuple(e.key for e in before.entries)
    assert "4 objects" in repr(before)


@for_each(
    "change",
    [
        {"key": "../outside"},
        {"key": "/etc/passwd"},
        {"key": "a//b"},
        {"key": 5},
        {"size": -1},
        {"size": True},
        {"size": "8"},
        {"version": 3},
        {"digest": "sha256:12"},
        {"digest": "crc:12"},
        {"digest": 4},
        {"more": 1},
    ],
)
def test_an_invalid_entry_is_refused(change, tmp_path):
    entry = {"key": "c/0", "size": 8, "version": None, "digest": None} | change
    path = tmp_path / "m.json"
    path.write_text(json.dumps({"format": "zarrdask-manifest", "entries": [entry]}))
    with pytest.raises(MetadataError):
        Manifest.load(path)


@for_each("text", ["", "[]", "{}", '{"format": "zarrdask-manifest", "entries": {}}', "[" * 10**5])
def test_what_is_no_manifest_is_refused(text, tmp_path):
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(MetadataError):
        Manifest.load(path)
