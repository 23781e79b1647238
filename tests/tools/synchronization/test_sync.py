"""`zarrdask.sync`: what is moved, in which order, and what the report says."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import zarrdask
from zarrdask.errors import MetadataError, NodeExistsError, StoreError
from zarrdask.storage import MemoryStore
from zarrdask.storage.local import file_times
from zarrdask.tools.synchronization import object_transfer

VALUES = np.arange(24, dtype="i4").reshape(6, 4)


def make(place, **options):
    """Write a group with two arrays."""
    root = zarrdask.create_group(place, attributes={"title": "t"}, **options)
    for path in ("a", "g/b"):
        root.create_array(path, shape=(6, 4), chunks=(2, 2), dtype="i4")[...] = VALUES
    return root


@pytest.fixture(params=["files", "dict"])
def pair(request, tmp_path):
    """The locations of a source, and of a copy that does not exist yet."""
    both = (tmp_path / "s", tmp_path / "t") if request.param == "files" else ({}, {})
    make(both[0])
    return both


def is_same(pair):
    return zarrdask.compare(*pair, scheduler="sync").ok


def test_only_what_differs_is_moved(pair):
    first = zarrdask.sync(*pair)
    assert len(first.added) == 16
    assert (first.changed, first.removed, first.is_equal, is_same(pair)) == ((), (), True, True)
    assert zarrdask.sync(*pair).bytes == 0
    zarrdask.open_array(pair[0], "a", mode="r+")[0, 0] = 99
    report = zarrdask.sync(*pair)
    assert (report.added, report.changed) == ((), ("a/c/0/0",))
    assert report.to_dict()["bytes"] == report.bytes > 0
    assert "1 changed" in repr(report)
    assert is_same(pair)


@pytest.mark.parametrize("by", ["versions", "digests"])
def test_bytes_of_equal_size_are_compared(tmp_path, by):
    pair = tmp_path / "s", tmp_path / "t"
    make(pair[0])
    zarrdask.copy(*pair, scheduler="sync")
    assert zarrdask.sync(*pair, by=by).bytes == 0
    damaged = pair[1] / "a" / "c" / "0" / "0"
    damaged.write_bytes(bytes(damaged.stat().st_size))
    assert zarrdask.sync(*pair, by="sizes").bytes == 0
    assert zarrdask.sync(*pair, by=by).changed == ("a/c/0/0",)


def test_files_are_not_read_again_if_their_times_are_equal(tmp_path, monkeypatch):
    pair = tmp_path / "s", tmp_path / "t"
    make(pair[0])
    # As if some time had passed since the files were written.
    monkeypatch.setattr(file_times, "settled_version", os.fstat)
    zarrdask.copy(*pair, scheduler="sync")
    zarrdask.sync(*pair)

    def no_read(*_):
        raise AssertionError

    monkeypatch.setattr(file_times, "pread", no_read)
    assert zarrdask.sync(*pair).bytes == 0


def test_documents_of_equal_size_are_compared_by_their_bytes(pair):
    zarrdask.sync(*pair)
    zarrdask.open_group(pair[0], mode="r+").attrs["title"] = "u"
    assert zarrdask.sync(*pair, by="sizes").changed == ("zarr.json",)


def test_an_array_gets_longer_and_shorter(pair):
    zarrdask.sync(*pair)
    zarrdask.open_array(pair[0], "a", mode="r+").append(VALUES)
    assert len(zarrdask.sync(*pair).added) == 6
    assert is_same(pair)
    zarrdask.open_array(pair[0], "a", mode="r+").resize((3, 4))
    assert len(zarrdask.sync(*pair).removed) == 8
    assert is_same(pair)


def test_chunks_without_an_array_do_not_come_back(pair):
    zarrdask.sync(*pair)
    store = zarrdask.open_group(pair[1], mode="r+").store
    for key in ("a/c/9/9", "a/notes.txt", "new/c/0"):
        store.set(key, b"left by another writer")
    zarrdask.open_array(pair[0], "a", mode="r+").resize((20, 20))
    zarrdask.create_array(pair[0], "new", shape=2, dtype="i4")
    report = zarrdask.sync(*pair)
    assert (report.removed, report.kept) == (("a/c/9/9", "new/c/0"), ("a/notes.txt",))
    assert is_same(pair)


def test_a_chunk_that_was_erased_is_erased(pair):
    zarrdask.sync(*pair)
    zarrdask.open_array(pair[0], "a", mode="r+")[:2, :2] = 0
    assert zarrdask.sync(*pair).removed == ("a/c/0/0",)
    assert is_same(pair)


def test_an_array_with_other_codecs_is_replaced(pair):
    zarrdask.consolidate_metadata(pair[0])
    zarrdask.sync(*pair)
    options = {"shape": (6, 4), "dtype": "i4", "chunks": (3, 2), "overwrite": True}
    zarrdask.create_array(pair[0], "a", **options)[...] = 5
    zarrdask.consolidate_metadata(pair[0])
    report = zarrdask.sync(*pair)
    assert report.replaced == ("a",)
    assert "a/c/2/0" in report.removed
    assert is_same(pair)
    assert zarrdask.sync(*pair).bytes == 0


def test_what_the_source_lacks_is_removed_if_asked_for(pair):
    zarrdask.sync(*pair)
    del zarrdask.open_group(pair[0], mode="r+")["g"]
    kept = zarrdask.sync(*pair)
    assert (kept.removed, len(kept.kept), kept.is_equal) == ((), 8, False)
    assert "delete=True" in str(kept)
    plan = zarrdask.sync(*pair, delete=True, dry_run=True)
    assert len(plan.removed) == 8
    assert "g" in zarrdask.open_group(pair[1])
    assert zarrdask.sync(*pair, delete=True).removed == plan.removed
    assert is_same(pair)
    assert zarrdask.sync(*pair, delete=True).is_equal


def test_an_attribute_document_that_the_source_lacks_is_removed():
    pair = {}, {}
    make(pair[0], zarr_format=2)
    zarrdask.sync(*pair)
    pair[1]["a/.zattrs"] = b'{"old": 1}'
    assert zarrdask.sync(*pair).removed == ("a/.zattrs",)
    assert is_same(pair)


def test_an_array_in_the_place_of_a_group(pair):
    zarrdask.sync(*pair)
    zarrdask.create_array(pair[0], "g", shape=2, dtype="i4", overwrite=True)[...] = 1
    before = zarrdask.sync(*pair, delete=True, dry_run=True).removed
    with pytest.raises(NodeExistsError, match="delete=True"):
        zarrdask.sync(*pair)
    assert "g/b" in zarrdask.open_group(pair[1])
    assert zarrdask.sync(*pair, delete=True).removed == before
    assert is_same(pair)


def test_a_source_that_changes_while_it_is_copied(tmp_path, monkeypatch, setting):
    setting({"zarrdask.threads": 1})
    pair = tmp_path / "s", tmp_path / "t"
    make(pair[0])
    copied = object_transfer.copy_descriptor
    changes = [99]

    def change_before(*arguments):
        if changes:
            zarrdask.open_array(pair[0], "a", mode="r+")[...] = changes.pop()
        copied(*arguments)

    monkeypatch.setattr(object_transfer, "copy_descriptor", change_before)
    report = zarrdask.sync(*pair)
    assert "a/c/2/1" in report.changed_meanwhile
    assert "changed during the run" in str(report)
    assert is_same(pair)
    changes += range(1000)
    zarrdask.open_array(pair[0], "a", mode="r+")[...] = 5
    with pytest.raises(StoreError, match=r"a/c/.*keeps changing"):
        zarrdask.sync(*pair)


def test_a_chunk_that_is_gone_when_it_is_copied():
    class Losing(MemoryStore):
        def list_prefix(self, prefix):
            found = [*super().list_prefix(prefix)]
            if "lost" in self.values:
                del self.values["lost"]
                found.remove("lost")
                self.values.pop("a/c/0/0")
            return iter(found)

    source, target = Losing(), {}
    zarrdask.sync(make({}), source)
    source.values["lost"] = b""
    zarrdask.sync(source, target)
    assert "a/c/0/0" not in target


def test_keys_that_lead_out_of_the_target_are_refused(tmp_path):
    source = {}
    make(source)
    source["a/../../outside"] = b"x"
    with pytest.raises(MetadataError, match="leads out"):
        zarrdask.sync(source, tmp_path / "t")
    assert not os.path.exists(tmp_path / "outside")


def test_what_can_not_be_synchronized(tmp_path):
    make(tmp_path / "s")
    with pytest.raises(NodeExistsError):
        zarrdask.sync(tmp_path / "s", tmp_path / "s" / "g")
    with pytest.raises(MetadataError, match="by"):
        zarrdask.sync(tmp_path / "s", {}, by="times")
    zarrdask.create_group(tmp_path / "d", zarr_format="v3-draft")
    for pair in [("d", "s"), ("s", "d")]:
        with pytest.raises(NodeExistsError, match="copy"):
            zarrdask.sync(*(tmp_path / name for name in pair))


@pytest.mark.parametrize("zarr_format", ["v3-draft", "v3-draft-protocol"])
def test_a_hierarchy_of_the_draft(zarr_format, pair):
    source, target = {}, pair[0].parent / "d" if hasattr(pair[0], "parent") else {}
    root = make(source, zarr_format=zarr_format)
    root.create_array("scalar", shape=(), dtype="i4")[...] = 7
    assert len(zarrdask.sync(source, target).added) == 17
    assert is_same((source, target))
    root["a"][:2, :2] = 0
    root["a"].append(VALUES)
    root["scalar"][...] = 8
    report = zarrdask.sync(source, target)
    scalar = [key for key in report.changed if key.startswith("scalar/c")]
    assert len(scalar) == 1
    assert (report.removed, set(report.changed)) == (("a/c0/0",), {"a/array.json", *scalar})
    assert is_same((source, target))
    del root["g"]
    assert len(zarrdask.sync(source, target, delete=True).removed) == 7
    assert zarrdask.sync(source, target).is_equal
    below = {}
    zarrdask.sync(root["a"], below)
    assert (zarrdask.open_array(below)[6:] == VALUES).all()


def test_a_single_array_and_between_kinds_of_stores(tmp_path):
    make(tmp_path / "s")
    store = {}
    zarrdask.sync(zarrdask.open_array(tmp_path / "s", "a"), store)
    assert (zarrdask.open_array(store)[...] == VALUES).all()
    zarrdask.sync(store, tmp_path / "t")
    assert (zarrdask.open_array(tmp_path / "t")[...] == VALUES).all()
    assert zarrdask.sync(store, tmp_path / "t").bytes == 0


@pytest.mark.stress
def test_two_calls_at_once(pair):
    zarrdask.sync(*pair)
    for fill in range(1, 11):
        chunks = (2, 2 + 2 * (fill % 2))
        options = {"shape": (6, 4), "dtype": "i4", "chunks": chunks, "overwrite": True}
        zarrdask.create_array(pair[0], "a", **options)[...] = fill
        with ThreadPoolExecutor(2) as pool:
            for call in [pool.submit(zarrdask.sync, *pair) for _ in range(2)]:
                call.result()
        assert is_same(pair)
