"""Values that were read beforehand."""

import numpy as np
import pytest

import zarrdask
from tests.storage.latency import LatencyStore
from zarrdask.storage.cache.prefetched import PrefetchedStore
from zarrdask.storage.memory import MemoryStore
from zarrdask.testing import StoreContract


class TestPrefetchedStore(StoreContract):
    @pytest.fixture
    def store(self):
        return Prefetched(MemoryStore())


class Prefetched(PrefetchedStore):
    """One that has asked for the keys that the contract uses."""

    def __init__(self, inner):
        super().__init__(inner, ["k", "a", "a/b", "absent", "a/c"])


def test_what_a_listing_rules_out_is_not_requested():
    inner = LatencyStore(MemoryStore({"g/a/zarr.json": b"{}", "g/x": b"1"}))
    store = PrefetchedStore(inner, listed=["g/"])
    assert store.list_dir("g/") == (["x"], ["a"])
    assert store.list_dir("g/a/") == (["zarr.json"], [])
    inner.clear()
    assert store.get("g/b/zarr.json") is None
    assert store.create("g/b/zarr.json", b"{}")
    assert inner.calls == ["create"]
    assert store.get("g/b/zarr.json") == b"{}"
    assert store.list_dir("g/") == (["x"], ["a", "b"])
    store.erase_prefix("g/a/")
    assert store.list_dir("g/") == (["x"], ["b"])


def test_a_listing_that_fails_rules_nothing_out():
    class Unlistable(LatencyStore):
        def list_dir(self, prefix):
            raise zarrdask.errors.UnsupportedError("cannot be listed", key=prefix)

    store = PrefetchedStore(Unlistable(MemoryStore({"a/b": b"1"})), ["c"], listed=[""])
    assert store.get("a/b") == b"1"
    store.set("c", b"2")
    assert store.get("c") == b"2"
    with pytest.raises(zarrdask.errors.UnsupportedError):
        store.list_dir("")


#: After a document was written: whether another writer claimed the node, or a group above it, at
#: the same time; and whether one consolidated the metadata above it.
AFTERWARDS = ["get_many"]


def test_a_node_is_created_by_two_rounds_of_requests_and_a_look_at_other_writers():
    store = LatencyStore()
    group = zarrdask.create_group(store)
    store.clear()
    group.create_array("a", shape=4, dtype="i4", attributes={"n": 1})
    assert store.calls == ["get_many", "create", *AFTERWARDS]
    with pytest.raises(zarrdask.errors.NodeExistsError):
        group.create_array("a", shape=4, dtype="i4")
    assert zarrdask.open_array(store, "a").attrs["n"] == 1


@pytest.mark.parametrize("overwrite", [False, True])
def test_to_zarr_looks_once_at_what_is_there(overwrite):
    store = LatencyStore()
    zarrdask.create_group(store).create_array("other", shape=1, dtype="i4")
    store.clear()
    zarrdask.to_zarr(np.ones(4), store, "a", overwrite=overwrite)
    # The marker of an unfinished array is created beside the document, and erased at the end.
    assert store.calls[1:3] == ["create", "create"]
    assert store.calls[:1] + store.calls[3:] == ["get_many", *AFTERWARDS, "set", "erase"]


def test_leftovers_below_a_new_array_are_found_by_its_listing():
    store = LatencyStore(MemoryStore({"a/c/0": b"left", "a/note": b"kept"}))
    zarrdask.to_zarr(np.zeros(4), store, "a", overwrite=False)
    assert store.inner.get("a/c/0") is None
    assert store.inner.get("a/note") == b"kept"
