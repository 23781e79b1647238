"""Chunks and shards that an append stores: only while no other writer appends."""

import pytest

from tests.covering import for_each
from zarrdask.arrays.hierarchy.changes.append import AppendingStore
from zarrdask.storage.memory import MemoryStore


class AnotherWriterError(Exception):
    pass


def check():
    raise AnotherWriterError


@for_each(
    "change",
    [
        lambda store: store.set("new", b"2"),
        lambda store: store.set("old", b"2"),
        lambda store: store.create("new", b"2"),
        lambda store: store.swap("old", b"2", None),
        lambda store: store.erase("old"),
        lambda store: store.erase_values(["old"]),
    ],
)
def test_nothing_is_changed_after_another_writer_has_appended(change):
    inner = MemoryStore({"old": b"1"})
    with pytest.raises(AnotherWriterError):
        change(AppendingStore(inner, check))
    assert inner.values == {"old": b"1"}
