"""Hierarchies of the draft are found from their entry points."""

import pytest

import zarrdask
from tests.covering import for_each
from tests.drafts import ENTRY, OLDER_ENTRY, array, hierarchy, stored
from zarrdask.arrays.hierarchy import draft
from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.errors import NodeExistsError
from zarrdask.formats.metadata.model import GroupMetadata
from zarrdask.formats.metadata.node_layout import DRAFT, PROTOCOL
from zarrdask.storage.memory import MemoryStore


def store_of(values):
    store = MemoryStore()
    for key, value in values.items():
        store.set(key, value)
    return store


@for_each("entry, dialect", [(ENTRY, DRAFT), (OLDER_ENTRY, PROTOCOL)])
def test_the_entry_point_says_which_dialect_it_is(entry, dialect):
    store = store_of(stored(entry=entry))
    found = draft.hierarchy_of(StorePath(store, "a"))
    assert found.layout.zarr_format == dialect
    assert draft.hierarchy_of(StorePath(found, "a")) is found
    assert draft.in_own_hierarchy(StorePath(store, "a")).store == found


def test_without_an_entry_point_there_is_none():
    store = MemoryStore()
    zarrdask.create_array(store, "a", shape=4, dtype="i4")
    assert draft.hierarchy_of(StorePath(store, "a")) is None
    assert draft.root_above([]) is None


def test_a_new_node_begins_a_hierarchy_or_is_in_the_one_that_is_there():
    store = MemoryStore()
    group = GroupMetadata(DRAFT)
    view, is_new = draft.prepare(StorePath(store, "a"), group, overwrite=False)
    assert is_new
    assert [*store.list()] == []
    begun = draft.begin(StorePath(store, "a"), group, overwrite=False)
    assert begun == view
    assert draft.prepare(StorePath(store, "b"), group, overwrite=False) == (view, False)


def test_a_hierarchy_has_nodes_of_one_format():
    store = store_of(hierarchy({"a.array": array()}))
    with pytest.raises(NodeExistsError, match="another format"):
        draft.prepare(StorePath(store, "b"), GroupMetadata(PROTOCOL), overwrite=False)


def test_the_root_of_a_store_is_not_two_things():
    store = MemoryStore()
    zarrdask.create_group(store)
    with pytest.raises(NodeExistsError, match="root of the store"):
        draft.prepare(StorePath(store, "a"), GroupMetadata(DRAFT), overwrite=False)
