"""Markers of new arrays whose chunks are being stored."""

import pytest

from tests.storage.latency import FarStore
from zarrdask.arrays import writers
from zarrdask.arrays.chunks.unfinished import Marker
from zarrdask.arrays.hierarchy.changes.marker import (
    LaterMarker,
    erase_markers,
    is_marked,
    new_marker,
    put_marked,
)
from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.errors import NodeExistsError
from zarrdask.storage.memory import MemoryStore


@pytest.fixture
def node():
    return StorePath(MemoryStore(), "a")


def stored(node):
    return node.store.get(Marker(node.store, node.prefix).key)


def put(node):
    """Return the function that stores the document of a node."""
    return lambda: node.store.set("a/zarr.json", b"{}")


def test_the_marker_is_stored_with_the_documents_and_erased_at_the_end(node):
    marker = new_marker(node)
    put_marked(node, put(node), marker)
    assert (stored(node), is_marked(node, marker)) == (marker, True)
    assert writers.is_running(marker)
    erase_markers([node], marker)
    assert stored(node) is None
    assert not writers.is_running(marker)


def test_the_marker_of_a_writer_that_was_killed_is_replaced(node):
    put_marked(node, put(node), new_marker(node))
    marker = new_marker(node)
    put_marked(node, put(node), marker)
    assert is_marked(node, marker)


def test_the_marker_of_another_writer_stays(node):
    mine, other = new_marker(node), new_marker(node)
    put_marked(node, put(node), other)
    erase_markers([node], mine)
    assert is_marked(node, other)


def test_an_array_that_another_writer_has_created_gets_no_marker(node):
    def fail():
        raise NodeExistsError("there is one", key="a")

    marker = new_marker(node)
    with pytest.raises(NodeExistsError):
        put_marked(node, fail, marker)
    assert stored(node) is None


def test_without_a_marker_that_of_a_dead_writer_goes(node):
    dead = new_marker(node)
    node.store.set(Marker(node.store, node.prefix).key, dead)
    put_marked(node, put(node), None, is_absent=False)
    assert stored(node) is None


def test_no_request_looks_for_dead_writers_in_remote_stores():
    node = StorePath(FarStore(seconds=0), "a")
    put_marked(node, lambda: None, None, is_absent=False)
    assert not node.store.calls


def test_a_later_marker_is_stored_by_the_first_task(node):
    marker = LaterMarker.of(node)
    assert stored(node) is None
    marker.begin()
    marker.begin()
    assert bytes(stored(node)).startswith(marker.write.encode())
    marker.end()
    assert stored(node) is None
