"""Values in memory, which do not change."""

import pickle

from zarrdask.arrays.chunks.members.held_values import HeldValues

VALUES = {"c/0": b"1", "c/1": b"2"}


def test_values_are_read_and_not_changed():
    store = HeldValues(VALUES)
    assert (store.get("c/0"), store.get("c/2")) == (b"1", None)
    assert store.capabilities.readable
    assert not store.capabilities.writable


def test_stores_of_equal_values_are_the_same_to_tasks_and_locks():
    token = HeldValues(VALUES).identity.token
    assert token == HeldValues(dict(reversed(VALUES.items()))).identity.token
    assert token != HeldValues(VALUES | {"c/0": b"3"}).identity.token
    assert pickle.loads(pickle.dumps(HeldValues(VALUES))).identity.token == token
