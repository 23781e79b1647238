"""Files of manifests: what is damaged or hostile is refused."""

import json
import sys

import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.errors import MetadataError, StoreError, UnsupportedError
from zarrdask.storage.snapshots.manifest_files import is_manifest_file
from zarrdask.storage.snapshots.object_manifest import Manifest, ManifestEntry

ENTRIES = (
    ManifestEntry("c/0", 8, '"etag"', "crc32c:0123abcd", "v1"),
    ManifestEntry("zarr.json", 300),
)


@for_each("suffix", ["json", "parquet"])
def test_a_manifest_is_read_as_it_was_saved(suffix, tmp_path):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"m.{suffix}"
    manifest = Manifest("s3://bucket/ä", ENTRIES)
    manifest.save(path)
    assert Manifest.load(path) == manifest
    assert is_manifest_file(str(path))


@for_each(
    "change",
    [
        *({"key": key} for key in ("../outside", "/etc/passwd", "a//b", "a/./b", 5)),
        *({"size": size} for size in (-1, True, "8", 2**63, 1.5, None)),
        {"version": 3},
        {"version_id": []},
        *({"digest": digest} for digest in ("sha256:12", "crc:12", "crc32c:0123ABCD", 4)),
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


def test_a_key_that_occurs_twice_is_refused(tmp_path):
    Manifest("", ENTRIES[:1] * 2).save(tmp_path / "m.json")
    with pytest.raises(MetadataError, match="twice"):
        Manifest.load(tmp_path / "m.json")


def test_parquet_that_is_damaged_or_claims_too_much_is_refused(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "m.parquet"
    Manifest("", ENTRIES).save(path)
    data = path.read_bytes()
    path.write_bytes(data[:-20])
    with pytest.raises(MetadataError):
        Manifest.load(path)
    # A run of equal keys takes a few bytes, however long it is.
    keys = pyarrow.repeat(pyarrow.scalar("k"), 10**6)
    table = pyarrow.table({"key": keys, "size": pyarrow.repeat(pyarrow.scalar(1), 10**6)})
    parquet.write_table(table.replace_schema_metadata({"zarrdask-manifest": ""}), path)
    with pytest.raises(MetadataError, match="too short"):
        Manifest.load(path)
    parquet.write_table(pyarrow.table({"x": [1]}), path)
    with pytest.raises(MetadataError, match="not a manifest"):
        Manifest.load(path)


def test_parquet_needs_pyarrow(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UnsupportedError, match=r"zarrdask\[parquet\]"):
        Manifest("a", ENTRIES).save(tmp_path / "m.parquet")


def test_a_manifest_replaces_an_older_one_when_it_is_complete(tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "m.json"
    zarrdask.manifest(zarrdask.create_array({}, shape=3, dtype="i4")).save(path)
    before = path.read_bytes()
    larger = zarrdask.create_array({}, shape=30, chunks=1, dtype="i4")
    larger[...] = 1
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before), limits[1]))
    try:
        for name in ("m.json", "n.json"):
            with pytest.raises(StoreError, match=name):
                zarrdask.manifest(larger).save(tmp_path / name)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["m.json"]
