"""Arrays are created where nothing is, in the format of the group above."""

import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.errors import MetadataError, NodeExistsError


@for_each("zarr_format", [2, 3, "v3-draft"])
def test_a_new_array_has_the_format_of_the_group_above(zarr_format):
    store = {}
    zarrdask.create_group(store, zarr_format=zarr_format)
    array = zarrdask.create_array(store, "g/a", shape=4, dtype="i4")
    assert array.zarr_format == zarr_format
    assert zarrdask.open_array(store, "g/a").metadata == array.metadata


def test_an_existing_node_is_replaced_only_if_that_is_asked_for():
    store = {}
    zarrdask.create_array(store, "a", shape=4, dtype="i4")[...] = 1
    with pytest.raises(NodeExistsError):
        zarrdask.create_array(store, "a", shape=2, dtype="i4")
    array = zarrdask.create_array(store, "a", shape=2, dtype="i4", overwrite=True)
    assert array[...].tolist() == [0, 0]


def test_there_is_no_node_below_an_array():
    store = {}
    zarrdask.create_array(store, "a", shape=4, dtype="i4")
    with pytest.raises(NodeExistsError):
        zarrdask.create_array(store, "a/b", shape=4, dtype="i4")


@for_each("options", [{"chunks": 0}, {"dtype": "nothing"}, {"order": "X"}, {"shape": -1}])
def test_nothing_is_stored_if_an_argument_is_invalid(options):
    store = {}
    with pytest.raises((MetadataError, TypeError)):
        zarrdask.create_array(store, **{"shape": 4, "dtype": "i4", **options})
    assert not store
