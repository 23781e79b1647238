"""How arrays of blocks fit stored ones."""

from types import SimpleNamespace

import numpy as np
import pytest

from tests.covering import for_each
from zarrdask.errors import MetadataError, SelectionError
from zarrdask.parallel.graph.placement import chunk_options, known_blocks, written_region

STORED = SimpleNamespace(shape=(10, 6), dimension_names=("y", "x"))


@for_each(
    ("chunks", "blocks"),
    [
        (4, ((4, 4, 2), (4, 2))),
        ((4, 6), ((4, 4, 2), (6,))),
        (((3, 7), 6), ((3, 7), (6,))),
        (((3, 7), np.array([2, 4])), ((3, 7), (2, 4))),
    ],
)
def test_blocks_are_told_in_many_ways(chunks, blocks):
    found = known_blocks((10, 6), chunks)
    assert found == blocks
    assert all(type(n) is int for axis in found for n in axis)


def test_blocks_of_an_axis_of_length_zero():
    assert known_blocks((0,), 4) == ((0,),)
    assert known_blocks((), ()) == ()


@pytest.mark.parametrize("chunks", [((np.nan, np.nan), (6,)), ((4,), (float("nan"),))])
def test_unknown_lengths_are_refused(chunks):
    with pytest.raises(MetadataError, match="compute_chunk_sizes"):
        known_blocks((np.nan, 6), chunks)


def test_blocks_along_another_number_of_axes_are_refused():
    with pytest.raises(MetadataError, match="another number of axes"):
        known_blocks((10, 6), ((10,),))


def test_chunks_follow_the_blocks_unless_they_are_given():
    blocks = ((3, 4, 3), (0,))
    assert chunk_options(blocks, "regular", {}) == {"chunks": (4, 1)}
    assert chunk_options(blocks, "rectilinear", {}) == {"chunks": blocks}
    given = {"name": "regular"}
    assert chunk_options(blocks, given, {}) == {"grid": given}
    with pytest.raises(MetadataError, match="grid"):
        chunk_options(blocks, "rectilinear", {"chunks": 4})


@for_each(
    ("region", "shape", "place"),
    [
        (None, (10, 6), (slice(0, 10, 1), slice(0, 6, 1))),
        (slice(2, 4), (2, 6), (slice(2, 4, 1), slice(0, 6, 1))),
        ((slice(-4, None), slice(None)), (4, 6), (slice(6, 10, 1), slice(0, 6, 1))),
        ((..., slice(1, 3)), (10, 2), (slice(0, 10, 1), slice(1, 3, 1))),
        ({"x": slice(1, 3)}, (10, 2), (slice(0, 10, 1), slice(1, 3, 1))),
    ],
)
def test_regions_are_slices(region, shape, place):
    assert written_region(shape, region, STORED) == place


@for_each(
    ("region", "problem"),
    [
        (slice(0, 4), "does not fit"),
        (slice(0, 10, 5), "without a step"),
        (slice(None, None, -1), "without a step"),
        ((0, slice(None)), "without a step"),
        ((np.newaxis, slice(None)), "without a step"),
        ([0, 1], "basic"),
        ("auto", "coordinates"),
        ((..., "auto"), "coordinates"),
        ({"y": "auto"}, "coordinates"),
        ({"z": slice(2)}, "unknown name of an axis"),
        ((slice(None),) * 3, "too many"),
    ],
)
def test_other_regions_are_refused(region, problem):
    with pytest.raises(SelectionError, match=problem) as error:
        written_region((2, 6), region, STORED)
    assert error.value.key == "region"
