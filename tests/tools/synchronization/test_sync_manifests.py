"""`sync(manifest=True)`: the manifest that it stores, and what later calls know by it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import zarrdask
from tests.storage.latency import FarStore
from tests.tools.synchronization.test_sync_requests import Bucket
from zarrdask.arrays.hierarchy.stored_manifest import current_digests
from zarrdask.errors import MetadataError, StoreError
from zarrdask.formats.byte_ranges import Entry, StoredObject
from zarrdask.storage.capabilities import REMOTE_COSTS
from zarrdask.storage.snapshots.digests import algorithm_of, digest_of
from zarrdask.storage.snapshots.object_manifest import Manifest
from zarrdask.tools.verification.object_listing import list_node

OPTIONS = {"shape": (6, 4), "chunks": (2, 2), "dtype": "i4", "compressors": None}


class TaggedBucket(Bucket):
    """A store whose ETags change with each write, and are no digests."""

    numbers = 0

    def get(self, key):
        self.requests["chunk"] += "/c/" in key
        return super().get(key)

    def set(self, key, value):
        super().set(key, value)
        TaggedBucket.numbers += 1
        self.__dict__.setdefault("tags", {})[key] = f"tag-{TaggedBucket.numbers}"

    def entries(self, prefix, after="", until=None, *, objects=False):
        self.requests["list"] += 1
        for key in (key for key in self.values if key.startswith(prefix)):
            value = self.values[key]
            stored = StoredObject(key, "s3://bucket/", len(value), 1.0, self.tags.get(key))
            yield Entry(key, len(value), object=stored)


def make(place, fill=7, path="a", **options):
    z = zarrdask.create_array(place, path, **{**OPTIONS, **options}, overwrite=True)
    z[...] = fill + np.arange(24).reshape(6, 4)
    return z


def check_true(place):
    """Check what the stored manifest says of the objects that are there now; return how many."""
    node = zarrdask.open(place).node_path
    digests = current_digests(node.stored_manifest().entries, list_node(node))
    for key, digest in digests.items():
        value = node.store.get(node.prefix + key)
        assert digest_of(value, algorithm_of(digest)) == digest, key
    return len(digests)


def test_the_manifest_is_the_one_that_reading_all_objects_makes(tmp_path):
    make(tmp_path / "s")
    zarrdask.sync(tmp_path / "s", tmp_path / "t", manifest=True)
    entries = zarrdask.manifest(tmp_path / "t").entries
    stored = zarrdask.open(tmp_path / "t").node_path.stored_manifest()
    assert stored.entries == entries
    assert zarrdask.verify(tmp_path / "t", manifest=True).ok
    make(tmp_path / "s", 8, chunks=(3, 2))  # The array is replaced.
    zarrdask.sync(tmp_path / "s", tmp_path / "t", manifest=True, delete=True)
    assert check_true(tmp_path / "t") == 6
    assert zarrdask.verify(tmp_path / "t", manifest=True).ok


def test_objects_are_not_read_whose_digests_are_in_manifests():
    pair = TaggedBucket(), TaggedBucket()
    z = make(pair[0])
    zarrdask.sync(*pair)
    for each in pair:
        zarrdask.manifest(each, keep=True)
        each.requests.clear()
    z[:2, :2] = 1
    assert zarrdask.sync(*pair, by="digests", manifest="both").changed == ("a/c/0/0",)
    assert [each.requests["chunk"] for each in pair] == [2, 0]  # compared, and copied
    assert [check_true(each) for each in pair] == [8, 7]


def test_manifests_of_arrays_are_used_too():
    pair = TaggedBucket(), TaggedBucket()
    array = make(pair[0])
    zarrdask.sync(*pair)
    zarrdask.manifest(array, keep=True)
    zarrdask.manifest(pair[1], keep=True)
    for each in pair:
        each.requests.clear()
    assert zarrdask.sync(*pair, by="digests").bytes == 0
    assert [each.requests["chunk"] for each in pair] == [0, 0]


def test_a_stale_entry_says_nothing(tmp_path):
    make(tmp_path / "s")
    zarrdask.sync(tmp_path / "s", tmp_path / "t", manifest=True)
    other = zarrdask.open_array(tmp_path / "t", "a", mode="r+")
    other[0, 0] = -1
    chunk = tmp_path / "t" / "a" / "c" / "2" / "1"
    with open(chunk, "r+b") as file:  # in place
        file.write(bytes(4))
    changed = ("a/c/0/0", "a/c/2/1")
    assert check_true(tmp_path / "t") == 6
    assert zarrdask.verify(tmp_path / "t", manifest=True).changed == changed
    assert zarrdask.sync(tmp_path / "s", tmp_path / "t", by="digests").changed == changed


def test_digests_by_md5_are_for_object_stores():
    source, target = {}, Bucket()
    target.capabilities = zarrdask.storage.Capabilities(costs=REMOTE_COSTS, md5_etags=True)
    make(source)
    zarrdask.sync(source, target, manifest=True)
    stored = zarrdask.open(target).node_path.stored_manifest()
    assert {algorithm_of(entry.digest) for entry in stored.entries} == {"md5"}
    assert check_true(target) == 8


def test_a_store_without_versions_has_digests_that_no_call_relies_on():
    make(source := {})
    for place in ({}, FarStore()):
        zarrdask.sync(source, place, manifest=True)
        assert zarrdask.verify(place, manifest=True).ok
        stored = zarrdask.open(place).node_path.stored_manifest()
        assert {entry.version for entry in stored.entries} == {None}
        assert check_true(place) == 0


def test_a_hostile_manifest_in_a_node_is_not_believed(tmp_path):
    make(tmp_path / "s")
    zarrdask.sync(tmp_path / "s", tmp_path / "t", manifest=True)
    stored = tmp_path / "t" / ".zarrdask-manifest"
    good = stored.read_bytes()
    for bad in (b"", b"PAR1", b"[]", good.replace(b"a/c/0/0", b"../../0"), good[:-9]):
        stored.write_bytes(bad)
        with pytest.raises(MetadataError, match="zarrdask-manifest"):
            zarrdask.verify(tmp_path / "t", manifest=True)
        assert zarrdask.sync(tmp_path / "s", tmp_path / "t", by="digests").bytes == 0
    zarrdask.sync(tmp_path / "s", tmp_path / "t", manifest=True)
    assert check_true(tmp_path / "t") == 0  # The digests of objects that were not read are gone.


def test_without_a_stored_manifest_the_error_says_how_to_make_one():
    with pytest.raises(StoreError, match="keep=True"):
        zarrdask.verify(make({}).store, manifest=True)
    with pytest.raises(MetadataError, match="manifest"):
        zarrdask.verify({}, manifest=5)


@pytest.mark.parametrize("zarr_format", ["v3-draft", "v3-draft-protocol"])
def test_a_hierarchy_of_the_draft_has_a_manifest(zarr_format, tmp_path):
    make(tmp_path / "s", zarr_format=zarr_format)
    zarrdask.sync(tmp_path / "s", tmp_path / "t", manifest=True)
    assert zarrdask.verify(tmp_path / "t", manifest=True).ok
    assert len(zarrdask.open(tmp_path / "t").node_path.stored_manifest().entries) == 7


@pytest.mark.stress
def test_writers_and_two_calls_at_once_leave_no_false_entry(tmp_path):
    z = make(tmp_path / "s")
    zarrdask.sync(tmp_path / "s", tmp_path / "t", manifest="both")

    def write(number):
        which = z if number % 2 else zarrdask.open_array(tmp_path / "t", "a", mode="r+")
        which[:, number % 4] = number

    for number in range(20):
        with ThreadPoolExecutor(3) as pool:
            for call in (
                pool.submit(write, number),
                *(
                    pool.submit(zarrdask.sync, tmp_path / "s", tmp_path / "t", manifest="both")
                    for _ in range(2)
                ),
            ):
                call.result()
        for name in "st":
            check_true(tmp_path / name)


@pytest.mark.slow
def test_many_objects_are_stored_as_parquet_if_it_is_installed():
    pytest.importorskip("pyarrow")
    entries = zarrdask.manifest(make({})).entries
    many = Manifest(
        "x", tuple(e.__class__(f"{n}{e.key}", e.size) for e in entries for n in range(200))
    )
    assert many.render().startswith(b"PAR1")
    assert len(Manifest.parse(many.render(), "x").entries) == len(many.entries)
