"""The manifest that is stored in a node stays true whatever is written later."""

import hashlib
import time
from dataclasses import replace

import pytest

import zarrdask
from zarrdask.arrays.hierarchy import stored_manifest as manifests
from zarrdask.errors import StoreError
from zarrdask.formats.byte_ranges import Entry, StoredObject
from zarrdask.storage.capabilities import REMOTE_COSTS
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.snapshots.object_manifest import Manifest, ManifestEntry

ENTRY = ManifestEntry("c/0", 4, "v1", "md5:" + "1" * 32)


@pytest.fixture
def node(tmp_path):
    return zarrdask.create_array(tmp_path / "a.zarr", shape=4, dtype="i4", chunks=2).node_path


def test_a_manifest_is_read_as_it_was_stored(node):
    with pytest.raises(StoreError, match="no manifest is stored here"):
        manifests.stored_manifest(node)
    manifest = Manifest(node.location, (ENTRY,))
    manifests.store_manifest(node, manifest)
    assert manifests.stored_manifest(node) == manifest


def test_a_write_updates_the_entries_of_what_it_stored(node):
    manifests.store_manifest(node, Manifest(node.location, (ENTRY, ENTRY.at("c/1"))))
    node.store.set("c/0", b"12345")
    new = ManifestEntry("c/0", 5, node.store.stat("c/0").stamp, "md5:" + "2" * 32)
    manifests.update_manifest(node, {"c/0": new, "c/1": None}, is_whole=False)
    entries = {entry.key: entry for entry in manifests.stored_manifest(node).entries}
    assert entries["c/0"] == new
    assert {*entries} == {"c/0", "zarr.json"}


def test_a_part_of_an_array_makes_no_manifest(node):
    manifests.update_manifest(node, {"c/0": ENTRY}, is_whole=False)
    with pytest.raises(StoreError):
        manifests.stored_manifest(node)
    node.store.set("c/0", b"1234")
    entry = replace(ENTRY, version=node.store.stat("c/0").stamp)
    manifests.update_manifest(node, {"c/0": entry}, is_whole=True)
    assert entry in manifests.stored_manifest(node).entries


def test_digests_hold_for_the_versions_that_are_listed():
    def current(size, tag):
        listing = {"c/0": StoredObject("c/0", "", size, None, tag=tag)}
        return manifests.current_digests([ENTRY], listing)

    assert current(4, "v1") == current(4, '"v1"') == {"c/0": ENTRY.digest}
    assert current(4, "v2") == current(5, "v1") == current(4, None) == {}
    assert manifests.current_digests([ENTRY], {}) == {}


def test_the_version_of_a_file_that_was_just_written_is_left_out(node):
    new, old = (ManifestEntry("a", 1, f"{time.time_ns() - age:x}-5") for age in (0, 10**10))
    assert manifests.lasting_entry(node, new).version is None
    assert manifests.lasting_entry(node, old) == old


def test_the_documents_are_read_once_also_if_another_writer_has_stored_a_chunk():
    class Tagged(MemoryStore):
        """Has ETags that are digests, and notes what is read."""

        capabilities = replace(MemoryStore.capabilities, md5_etags=True, costs=REMOTE_COSTS)
        read = ()

        def get(self, key):
            self.read += (key,)
            return super().get(key)

        def stat(self, key):
            value = super().get(key)
            if value is None:
                return None
            tag = hashlib.md5(value, usedforsecurity=False).hexdigest()
            return Entry(key, len(value), "", StoredObject(key, "", len(value), None, tag=tag))

        def entries(self, prefix, after="", until=None, *, objects=False):
            return map(self.stat, self.list_prefix(prefix))

    counts = []
    for size in (4, 5):
        store = Tagged()
        node = zarrdask.create_array(store, shape=4, dtype="i4", chunks=2).node_path
        store.set("c/0", bytes(4))
        entry = replace(ENTRY, size=size, version=None)
        store.read = ()
        manifests.update_manifest(node, {"c/0": entry}, is_whole=True)
        counts.append(store.read.count("zarr.json"))
        (stored,) = [e for e in manifests.stored_manifest(node).entries if e.key == "c/0"]
        assert stored.size == 4
    assert counts[0] == counts[1]
