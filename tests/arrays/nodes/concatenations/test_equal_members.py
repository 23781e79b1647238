"""Whether arrays are equal, by digests of their chunks where these have the same metadata."""

import numpy as np

import zarrdask
from tests.covering import for_each
from zarrdask.arrays.nodes.concatenations.equal_members import different_members


def members(*values, chunks=2, shared=True):
    """Return members with some elements; with `shared`, they have one metadata."""
    arrays = []
    for each in values:
        array = zarrdask.create_array({}, shape=4, dtype="f4", chunks=chunks)
        array[...] = each
        arrays.append(array)
    found = [*zarrdask.concat(arrays).concatenation.present()]
    return [each._replace(metadata=found[0].metadata) for each in found] if shared else found


@for_each("shared", [True, False])
def test_the_first_that_differs_is_found(shared):
    tables = [
        members([1, 2, 3, 4], [1, 2, 3, 4], shared=shared),
        members([1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 5], shared=shared),
        members([0, 0, 1, 1], shared=shared),
    ]
    assert [*different_members(tables)] == [None, 2, None]


def test_nan_is_equal_to_nan():
    assert [*different_members([members([np.nan, 1, 2, 3], [np.nan, 1, 2, 3])])] == [None]


def test_chunks_that_are_not_stored_are_equal_to_the_fill_value():
    one, other = members([0, 0, 1, 1], [0, 0, 1, 1])
    chunk = np.zeros(2, "f4")
    zarrdask.open_array(one.store, mode="r+").blocks[0] = chunk
    one.store.erase(f"{one.prefix}c/0")
    assert [*different_members([[one, other]])] == [None]
