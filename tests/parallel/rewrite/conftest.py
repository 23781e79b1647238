"""What tests of rewrites share."""

import pytest

import zarrdask
from tests.parallel.rewrite.arrays import VALUES, stored
from zarrdask.storage.memory import MemoryStore


@pytest.fixture
def group():
    """A group of three arrays, one of which lies deeper."""
    root = zarrdask.create_group(MemoryStore(), attributes={"title": "all"})
    stored(root.store, "a", attributes={"n": 1})
    stored(root.store, "b", VALUES[0], chunks=7)
    deep = root.create_group("deep", attributes={"d": 2})
    stored(root.store, "deep/c", VALUES[::2], chunks=(5, 5))
    assert deep.attrs == {"d": 2}
    return root
