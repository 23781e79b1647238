"""What arrays and groups have in common: names, modes, attributes and absent operators."""

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.arrays.nodes.node import check_writable
from zarrdask.errors import ReadOnlyError


@pytest.fixture
def nodes():
    store = {}
    group = zarrdask.create_group(store, "g", attributes={"title": "a"})
    return group, group.create_array("a", shape=4, dtype="i4", chunks=2)


def test_the_name_is_the_last_part_of_the_path(nodes):
    assert [node.name for node in nodes] == ["g", "a"]
    assert [node.path for node in nodes] == ["g", "g/a"]
    assert zarrdask.create_group({}).name == ""


@for_each("text", ["x + 1", "1 - x", "-x", "x // 2", "2 ** x", "x @ x", "~x", "abs(x)", "x < 1"])
def test_operators_say_what_to_use(text, nodes):
    for node in nodes:
        with pytest.raises(TypeError, match="has no operator"):
            eval(text, {"x": node})


def test_an_array_of_numpy_takes_a_stored_array_as_an_operand(nodes):
    _, array = nodes
    array[...] = [1, 2, 3, 4]
    np.testing.assert_array_equal(np.ones(4, "i4") + array, [2, 3, 4, 5])


def test_a_node_that_was_opened_for_reading_is_not_written(nodes):
    for node in nodes:
        check_writable(node)
        reader = zarrdask.open(node.store, node.path)
        assert reader.read_only
        with pytest.raises(ReadOnlyError, match="opened for reading only"):
            check_writable(reader)


def test_a_concatenation_says_that_it_can_only_be_read(nodes):
    _, array = nodes
    with pytest.raises(ReadOnlyError, match="concatenation can only be read"):
        check_writable(zarrdask.concat([array, array]))


def test_each_change_of_attributes_is_stored(nodes):
    group, _ = nodes
    group.attrs["units"] = "K"
    group.attrs.update(title="b", more=[1])
    del group.attrs["more"]
    again = zarrdask.open_group(group.store, "g")
    assert again.attrs.asdict() == {"title": "b", "units": "K"}
    assert dict(again.attrs) == again.attrs.asdict()


def test_an_attribute_of_python_that_does_not_exist_is_an_error(nodes):
    for node in nodes:
        with pytest.raises(AttributeError, match="nonsense"):
            _ = node.nonsense
