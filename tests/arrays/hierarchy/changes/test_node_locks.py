"""Locks of nodes exclude other writers, for one purpose each."""

import threading

import pytest

from tests.storage.bucket import Bucket
from zarrdask.arrays.hierarchy.changes.node_locks import exclusive, lease_key, lock_node
from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.storage.memory import MemoryStore

PURPOSES = ["shape", "rewrite", "documents", "owner"]


@pytest.mark.parametrize("purpose", PURPOSES)
def test_a_lock_excludes_others_of_the_same_purpose_only(purpose):
    node, order = StorePath(MemoryStore(), "a"), list[str]()

    def acquire():
        with lock_node(node, purpose):
            order.append("the other thread")

    thread = threading.Thread(target=acquire)
    with lock_node(node, purpose):
        thread.start()
        thread.join(0.01)
        for other in {*PURPOSES} - {purpose}:
            with lock_node(node, other), lock_node(StorePath(node.store, "b"), purpose):
                pass
        order.append("this thread")
    thread.join()
    assert order == ["this thread", "the other thread"]


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
