"""The record of a pyramid, beside its group or in its attributes."""

from dataclasses import replace

import pytest

import zarrdask
from zarrdask.parallel.rewrite.pyramid_document import PyramidDocument
from zarrdask.storage.memory import MemoryStore

RECORD = {"levels": [["0", [4, 4], [1, 1]]], "has_level_0": True}


class Bounded(MemoryStore):
    """A store that takes values of nodes only, as a session of icechunk does."""

    capabilities = replace(MemoryStore.capabilities, bounded=True)


@pytest.mark.parametrize("kind", [MemoryStore, Bounded])
def test_a_record_is_read_as_it_was_written(kind):
    store = kind()
    group = zarrdask.create_group(store, "g", attributes={"title": "a"})
    node = group.node_path
    assert PyramidDocument(node).read() is None
    PyramidDocument(node).write(RECORD)
    assert PyramidDocument(node).read() == RECORD
    is_beside = store.get(f"g/{PyramidDocument.KEY}") is not None
    attributes = zarrdask.open_group(store, "g").attrs.asdict()
    assert (PyramidDocument.ATTRIBUTE in attributes) is not is_beside
    assert is_beside is (kind is MemoryStore)
    assert attributes["title"] == "a"


def test_a_copy_of_a_group_has_no_record():
    group = zarrdask.create_group(Bounded(), attributes={"title": "a"})
    PyramidDocument(group.node_path).write(RECORD)
    metadata = zarrdask.open_group(group.store).metadata
    assert PyramidDocument.removed_from(metadata).attributes == {"title": "a"}


def test_a_damaged_record_is_an_error():
    store = MemoryStore()
    group = zarrdask.create_group(store)
    store.set(PyramidDocument.KEY, b"{")
    with pytest.raises(ValueError, match="Expecting"):
        PyramidDocument(group.node_path).read()
