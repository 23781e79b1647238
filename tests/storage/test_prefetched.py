"""Values that were read beforehand."""

import pytest

import zarrdask
from tests.storage.latency import LatencyStore
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.prefetched import PrefetchedStore
from zarrdask.testing import StoreContract


class TestPrefetchedStore(StoreContract):
    @pytest.fixture
    def store(self):
        return Prefetched(MemoryStore())


class Prefetched(PrefetchedStore):
    """One that has asked for the keys that the contract uses."""

    def __init__(self, inner):
        super().__init__(inner, ["k", "a", "a/b", "absent", "a/c"])


def test_a_node_is_created_by_two_rounds_of_requests():
    store = LatencyStore()
    group = zarrdask.create_group(store)
    store.clear()
    group.create_array("a", shape=4, dtype="i4", attributes={"n": 1})
    assert store.calls == ["get_many", "create"]
    assert len(store.keys) == len(set(store.keys)) + 1  # it is written where nothing was found
    with pytest.raises(zarrdask.errors.NodeExistsError):
        group.create_array("a", shape=4, dtype="i4")
    assert zarrdask.open_array(store, "a").attrs["n"] == 1
