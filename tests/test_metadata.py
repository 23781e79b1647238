"""Array metadata as a value, and chunk keys."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zarrdask.codecs.bytes_ import BytesCodec
from zarrdask.codecs.sharding import ShardingCodec
from zarrdask.codecs.transpose import TransposeCodec
from zarrdask.errors import MetadataError
from zarrdask.metadata import ArrayMetadata, ChunkKeys, GroupMetadata

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


@pytest.mark.parametrize(("keys", "index", "key"), KEYS)
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


@pytest.mark.parametrize(
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


def metadata(**changes):
    members = {
        "zarr_format": 3,
        "shape": (8, 6),
        "dtype": np.dtype("f4"),
        "chunk_shape": (4, 3),
        "keys": ChunkKeys(),
        "fill_value": np.float32(0),
        "codecs": (BytesCodec(),),
    }
    return ArrayMetadata(**(members | changes))


CHANGES = [
    {"zarr_format": 2},
    {"shape": (8, 7)},
    {"dtype": np.dtype("f8")},
    {"chunk_shape": (4, 2)},
    {"keys": ChunkKeys("v2", ".")},
    {"fill_value": np.float32(-0.0)},
    {"fill_value": np.uint32(0x7FC00001).view("f4")},
    {"fill_value": None},
    {"codecs": (BytesCodec("big"),)},
    {"attributes": {"unit": "K"}},
    {"dimension_names": ("y", "x")},
    {"extra": {"x": {"must_understand": False}}},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda c: str(*c))
def test_metadata_are_equal_if_and_only_if_every_part_is(change):
    assert metadata() == metadata()
    assert metadata(**change) == metadata(**change)
    assert metadata() != metadata(**change)


def test_metadata_whose_fill_value_is_nan_are_equal():
    assert metadata(fill_value=np.float32("nan")) == metadata(fill_value=np.float32("nan"))


@pytest.mark.parametrize("change", [{}, *CHANGES], ids=lambda c: str(*c) if c else "none")
def test_metadata_pickle_to_equal_ones(change):
    found = metadata(**change)
    assert pickle.loads(pickle.dumps(found)) == found


def test_metadata_cannot_be_changed_in_place():
    with pytest.raises(AttributeError):
        metadata().shape = (1, 1)


def test_an_open_fill_value_reads_as_zero():
    assert metadata(fill_value=None).fill == 0
    assert metadata(fill_value=np.float32(7)).fill == 7


def test_the_part_that_can_be_read_by_itself_is_the_inner_chunk_of_a_shard():
    assert metadata().read_shape == (4, 3)
    assert metadata(codecs=(ShardingCodec((2, 1)),)).read_shape == (2, 1)
    turned = (TransposeCodec((1, 0)), ShardingCodec((1, 2)))
    assert metadata(codecs=turned).read_shape == (2, 1)


def test_resized_metadata_differ_in_the_shape_only():
    found = metadata(attributes={"a": 1}).resized((2, 100))
    assert found.shape == found.grid.shape == (2, 100)
    assert replace(found, shape=(8, 6)) == metadata(attributes={"a": 1})


@pytest.mark.parametrize(
    "change",
    [
        {"dimension_names": ("x",)},
        {"dimension_names": ()},
        {"chunk_shape": (4,)},
        {"chunk_shape": (0, 3)},
        {"codecs": ()},
        {"codecs": (BytesCodec(), BytesCodec())},
        {"codecs": (BytesCodec(None),)},
        {"codecs": (ShardingCodec((3, 3)),)},
        {"codecs": (TransposeCodec((0,)), BytesCodec())},
    ],
    ids=lambda c: str(*c),
)
def test_parts_that_do_not_fit_together_are_an_error_at_once(change):
    with pytest.raises(MetadataError):
        metadata(**change)


def test_group_metadata_are_equal_by_value():
    assert GroupMetadata(3, {"a": 1}) == GroupMetadata(3, {"a": 1}) != GroupMetadata(2, {"a": 1})
