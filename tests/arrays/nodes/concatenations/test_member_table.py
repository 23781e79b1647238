"""Tables of members: they are joined if their shapes and types fit together."""

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.arrays.nodes.concatenations.member_table import in_memory
from zarrdask.errors import CodecError, MetadataError


def array(*shape, dtype="i4", chunks=2, **attributes):
    return zarrdask.create_array({}, shape=shape, dtype=dtype, chunks=chunks, attributes=attributes)


def test_the_shape_is_the_sum_of_lengths_along_the_joined_axes():
    table = [[array(2, 3), array(2, 4)], [array(5, 3), array(5, 4)]]
    assert zarrdask.concat(table, (0, 1)).shape == (7, 7)
    assert zarrdask.concat([array(2, 3), None, array(2, 3)]).shape == (6, 3)
    assert zarrdask.stack([array(2, 3)] * 4, axis=2).shape == (2, 3, 4)


@for_each(
    "sources",
    [
        [array(2, 3), array(2, 4)],
        [array(2, 3), array(2)],
        [array(2, 3), None, array(3, 3)],
        [[array(2, 3), array(2, 3)], [array(2, 4), array(2, 3)]],
    ],
)
def test_arrays_that_do_not_fit_are_an_error(sources):
    axes = (0, 1) if isinstance(sources[0], list) else 0
    with pytest.raises(MetadataError):
        zarrdask.concat(sources, axes)


def test_attributes_are_those_that_all_members_have():
    joined = zarrdask.concat([array(2, units="K", run=1), array(2, units="K", run=2)])
    assert dict(joined.attrs) == {"units": "K"}


def test_a_cast_that_loses_values_needs_the_setting(setting):
    sources = [array(2, dtype="i8"), array(2, dtype="f4")]
    setting({"zarrdask.casting": "safe"})
    with pytest.raises(CodecError, match=r"zarrdask\.casting"):
        zarrdask.concat(sources)
    setting({"zarrdask.casting": "numpy"})
    assert zarrdask.concat(sources).dtype == np.result_type("i8", "f4")


def test_an_array_in_memory_has_its_values_itself():
    source = array(5)
    source[...] = np.arange(5)
    held = in_memory(source)
    source[...] = 0
    (member,) = held.members
    assert member.store.values.keys() == {"c/0", "c/1", "c/2"}
    assert held.metadata.shape == (5,)
