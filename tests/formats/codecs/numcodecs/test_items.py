"""Elements of text and bytes are of one type of Python."""

import numpy as np
import pytest

from tests.covering import for_each
from zarrdask.errors import CodecError
from zarrdask.formats.codecs.numcodecs.items import check_items, python_objects


def objects(*values):
    elements = np.empty(len(values), object)
    elements[:] = values
    return elements


def test_elements_of_the_type_stay_as_they_are():
    elements = objects("a", "")
    assert check_items(elements, str, "") is elements


def test_the_fill_value_is_allowed():
    assert check_items(objects("a", 0), str, 0).tolist() == ["a", 0]
    with pytest.raises(CodecError):
        check_items(objects("a", 0), str, None)
    with pytest.raises(CodecError):
        check_items(objects("a", False), str, 0)


def test_scalars_in_arrays_become_objects_of_python():
    elements = objects("a", "b")
    elements[1] = np.array("b")
    assert check_items(elements, str, "").tolist() == ["a", "b"]


@for_each(
    "values, item, advice",
    [
        ((1, 2.5), str, "dtype='float64'"),
        ((b"a",), str, "dtype=bytes"),
        (("a", None), str, "convert all elements first"),
        (("a",), bytes, "convert all elements first"),
    ],
)
def test_elements_of_other_types_are_an_error_that_says_what_to_do(values, item, advice):
    with pytest.raises(CodecError, match=advice) as caught:
        check_items(objects(*values), item, "")
    assert caught.value.expected == item.__name__


def test_numpy_scalars_are_replaced_and_arrays_are_not():
    elements = objects(np.int8(3), np.array(2.5), "a")
    assert [type(each) for each in python_objects(elements)] == [int, float, str]
    values = np.empty(1, object)
    values[0] = np.arange(3)
    assert isinstance(python_objects(values)[0], np.ndarray)
