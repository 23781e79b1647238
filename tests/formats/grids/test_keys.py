"""Chunk keys."""

from hypothesis import given
from hypothesis import strategies as st

from tests.covering import for_each
from zarrdask.formats.grids.keys import ChunkKeys

KEYS = [
    (ChunkKeys("default", "/"), (1, 23, 45), "c/1/23/45"),
    (ChunkKeys("default", "."), (1, 23, 45), "c.1.23.45"),
    (ChunkKeys("default", "/"), (), "c"),
    (ChunkKeys("default", "."), (), "c"),
    (ChunkKeys("v2", "."), (1, 23, 45), "1.23.45"),
    (ChunkKeys("v2", "/"), (1, 23), "1/23"),
    (ChunkKeys("v2", "."), (3,), "3"),
    (ChunkKeys("v2", "."), (), "0"),
    (ChunkKeys("v2", "/"), (), "0"),
]


@for_each(("keys", "index", "key"), KEYS)
def test_chunk_keys_are_those_of_the_specifications(keys, index, key):
    assert keys.key(index) == key
    assert keys.index(key, len(index)) == index


@given(
    st.sampled_from(["default", "v2"]),
    st.sampled_from("./"),
    st.lists(st.integers(0, 10**12), max_size=4).map(tuple),
)
def test_a_key_gives_back_its_index(name, separator, index):
    keys = ChunkKeys(name, separator)
    assert keys.index(keys.key(index), len(index)) == index


@for_each(
    ("keys", "key", "ndim"),
    [
        (ChunkKeys("default", "/"), "zarr.json", 1),
        (ChunkKeys("default", "/"), "c", 1),
        (ChunkKeys("default", "/"), "c/0/0", 1),
        (ChunkKeys("default", "/"), "c/-1", 1),
        (ChunkKeys("default", "/"), "c/01", 1),
        (ChunkKeys("default", "/"), "c/x", 1),
        (ChunkKeys("default", "/"), "c/1.0", 1),
        (ChunkKeys("default", "/"), "d/0", 1),
        (ChunkKeys("default", "/"), "c/²", 1),
        (ChunkKeys("default", "/"), "c/\u0661", 1),
        (ChunkKeys("default", "/"), "c/", 1),
        (ChunkKeys("default", "."), "c/0", 1),
        (ChunkKeys("v2", "."), ".zarray", 1),
        (ChunkKeys("v2", "."), "0.0", 1),
        (ChunkKeys("v2", "."), "0", 2),
        (ChunkKeys("v2", "."), "1", 0),
        (ChunkKeys("v2", "."), "", 1),
    ],
)
def test_other_keys_are_no_chunk_keys(keys, key, ndim):
    assert keys.index(key, ndim) is None
