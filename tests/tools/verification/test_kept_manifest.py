"""The manifest of one side of a copy, of what was listed and what was transferred."""

import pytest

import zarrdask
from zarrdask.errors import StoreError
from zarrdask.formats.byte_ranges import StoredObject
from zarrdask.storage.snapshots.object_manifest import ManifestEntry
from zarrdask.tools.verification.kept_manifest import keep_manifest
from zarrdask.tools.verification.object_listing import KnownDigests, Listing

DIGEST = "md5:" + "1" * 32
LISTING = Listing((key, StoredObject(key, "", 4, None, tag=f"v-{key}")) for key in "abc")
COPIED = {"b": ManifestEntry("b", 5, "v-new", DIGEST)}


@pytest.fixture
def node():
    return zarrdask.create_array({}, shape=4, dtype="i4").node_path


def test_objects_that_were_copied_have_their_new_entries(node):
    keep_manifest(node, KnownDigests(None, {"a": DIGEST}), LISTING, COPIED, ["c", "b", "a"])
    entries = node.stored_manifest().entries
    assert [entry.key for entry in entries] == ["a", "b", "c"]
    assert [entry.digest for entry in entries] == [DIGEST, DIGEST, None]
    assert [entry.version for entry in entries] == ["v-a", "v-new", "v-c"]


def test_the_manifest_that_is_stored_is_not_stored_again(node):
    known = KnownDigests(None, {})
    keep_manifest(node, known, LISTING, COPIED, "ab")
    stored = node.stored_manifest()
    node.store.erase(".zarrdask-manifest")
    keep_manifest(node, known._replace(stored=stored), LISTING, COPIED, "ab")
    with pytest.raises(StoreError):
        node.stored_manifest()
