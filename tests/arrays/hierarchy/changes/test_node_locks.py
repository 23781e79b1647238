"""Locks of nodes exclude other writers, for one purpose each."""

import threading

import pytest

from tests.storage.bucket import Bucket
from zarrdask.arrays.hierarchy.changes.node_locks import exclusive, lease_key, lock_node
from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.storage.memory import MemoryStore


def is_free(node, purpose):
    """Whether another thread gets a lock while this one holds what it holds."""
    acquired = threading.Event()

    def acquire():
        with lock_node(node, purpose):
            acquired.set()

    thread = threading.Thread(target=acquire, daemon=True)
    thread.start()
    return acquired.wait(0.05), thread


@pytest.mark.parametrize("purpose", ["shape", "rewrite", "documents", "owner"])
def test_a_lock_excludes_others_of_the_same_purpose_only(purpose):
    node = StorePath(MemoryStore(), "a")
    others = {"shape", "rewrite", "documents", "owner"} - {purpose}
    with lock_node(node, purpose):
        free, thread = is_free(node, purpose)
        assert not free
        assert all(is_free(node, other)[0] for other in others)
        assert is_free(StorePath(node.store, "b"), purpose)[0]
    thread.join(20)
    assert not thread.is_alive()


def test_a_lease_excludes_other_machines_where_writes_are_conditional():
    node = StorePath(Bucket(), "a")
    with exclusive(node, "shape") as lease:
        assert lease is not None
        assert node.store.inner.get(lease_key(node)) is not None
    with exclusive(StorePath(MemoryStore(), "a"), "shape") as lease:
        assert lease is None


def test_leases_of_each_purpose_have_keys_beside_the_node():
    node = StorePath(MemoryStore(), "g/a")
    keys = {lease_key(node, purpose) for purpose in ("shape", "owner")}
    assert len(keys) == 2
    assert all(key.startswith("g/a/.zarrdask") for key in keys)
