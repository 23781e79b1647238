"""Claims: of several writers that create the same node, one goes on."""

from dataclasses import replace

import pytest

from zarrdask.arrays import writers
from zarrdask.arrays.hierarchy.claim import Claim, can_claim, claim_key, claim_keys
from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.errors import NodeExistsError, StoreError
from zarrdask.storage.memory import MemoryStore


@pytest.fixture
def node():
    return StorePath(MemoryStore(), "g/a")


def test_a_claim_is_stored_while_it_is_held(node):
    claim = Claim(node)
    claim.take()
    assert bytes(node.store.get(claim_key(node))).endswith(b"[]")
    claim.check()
    claim.release()
    assert node.store.get(claim_key(node)) is None


def test_the_claim_of_a_live_writer_is_an_error(node):
    claim = Claim(node)
    claim.take()
    with pytest.raises(NodeExistsError):
        Claim(node).take()
    claim.check()
    claim.release()


def test_the_claim_of_a_dead_writer_is_taken_over(node):
    node.store.set(claim_key(node), writers.new_writer() + b" 0\n[]")
    claim = Claim(node)
    claim.take()
    claim.check()
    claim.release()


def test_a_group_above_may_be_claimed_with_all_below_it(node):
    above = Claim(StorePath(node.store, "g"))
    above.take()
    with pytest.raises(NodeExistsError):
        Claim(node).take()
    assert node.store.get(claim_key(node)) is None
    above.release()
    assert claim_keys(node) == [claim_key(each) for each in (node, *node.parents)]


def test_a_writer_whose_claim_is_gone_does_not_go_on(node):
    claim = Claim(node)
    claim.take()
    node.store.erase(claim_key(node))
    with pytest.raises(StoreError, match="removed or replaced the claim of this one"):
        claim.check()
    claim.renew()
    claim.check()
    claim.release()


def test_what_is_there_is_read_after_the_claim_was_stored(node):
    def read(each):
        assert node.store.get(claim_key(node)) is not None
        return each.at("read")

    claim = Claim(node, read=read)
    claim.take()
    assert claim.seen.path == "read"
    claim.release()


def test_nothing_is_stored_where_no_other_writer_sees_it():
    class Bounded(MemoryStore):
        capabilities = replace(MemoryStore.capabilities, bounded=True)

    node = StorePath(Bounded(), "a")
    assert not can_claim(node.store)
    claim = Claim(node)
    claim.take()
    claim.check()
    assert [*node.store.list()] == []
    claim.release()
