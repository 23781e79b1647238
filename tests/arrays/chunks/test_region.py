"""Regions of stored arrays, as tasks read and write them."""

import pickle
from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from tests.covering import for_each
from zarrdask.arrays.chunks.region import ArrayRegion, planned_reads
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.formats.indexing.selection import basic
from zarrdask.parallel.graph.overlap.margins import Margins
from zarrdask.parallel.graph.overlap.padded import PaddedRegion

VALUES = np.arange(12 * 10, dtype="i4").reshape(12, 10)
PART = np.s_[2:11:3, 1:9:1]


def stored(values=VALUES):
    z = zarrdask.create_array({}, shape=values.shape, dtype=values.dtype, chunks=4)
    z[...] = values
    return z


indices = st.tuples(
    *(st.one_of(st.slices(n), st.integers(-n, n - 1)) for n in VALUES[PART].shape)
) | st.sampled_from([..., (), (None, 1), (slice(None, None, -2), None)])


@given(indices)
def test_a_region_is_indexed_as_an_array_of_numpy(index):
    region, expected = ArrayRegion(chunks_of(stored()), PART), VALUES[PART]
    assert (region.shape, region.dtype, region.ndim) == (expected.shape, expected.dtype, 2)
    np.testing.assert_array_equal(region[index], expected[index])
    part = region.select(basic(index, region.shape))
    assert part.ndim == len(basic(index, region.shape).kept)
    again = pickle.loads(pickle.dumps(part))
    np.testing.assert_array_equal(again[...], part[...])
    assert part[...].size == np.asarray(expected[index]).size


def test_a_region_is_the_whole_array_by_default():
    np.testing.assert_array_equal(ArrayRegion(chunks_of(stored()))[...], VALUES)


def test_parts_of_a_region_are_written_and_read():
    z = stored()
    region = ArrayRegion(chunks_of(z), np.s_[3:9:1, 2:10:1])
    part = np.s_[1:4, 0:5]  # as Dask names the slices of a block: without a step
    assert region.write(np.zeros((3, 5), "i4"), part, empty=False) == 2
    expected = VALUES.copy()
    expected[4:7, 2:7] = 0
    np.testing.assert_array_equal(z[...], expected)
    np.testing.assert_array_equal(region.read(np.s_[0:6, 0:8]), expected[3:9, 2:10])
    out = np.empty((1, 8), "i4")
    assert region.read(np.s_[1:2, 0:8], out=out) is out
    np.testing.assert_array_equal(out, expected[4:5, 2:10])


def test_the_units_of_a_part():
    region = ArrayRegion(chunks_of(stored()), np.s_[3:9:1, 2:10:1])
    assert region.keys(np.s_[1:6, :2]) == ["c/1/0", "c/2/0"]


def test_what_is_requested_ahead_is_read_in_its_order_or_again():
    region = ArrayRegion(chunks_of(stored()), PART)
    parts = [np.s_[0:1, 0:8], np.s_[1:3, 2:4]]
    with planned_reads((region, part) for part in parts):
        np.testing.assert_array_equal(region[0:3], VALUES[PART])
        for part in (*parts, *parts):
            np.testing.assert_array_equal(region[part], VALUES[PART][part])


def test_planned_reads_of_margins_and_of_reversed_axes_are_those_of_single_reads():
    region = ArrayRegion(chunks_of(stored()), PART)
    margins = (Margins(2, 1, "reflect"), Margins(1, 2, "periodic"))
    for source in (region, PaddedRegion(region, margins)):
        parts = [np.s_[0:2, 0:8], np.s_[1:4, 2:4], np.s_[::-1, 3:7], np.s_[2, ::2], np.s_[2:, -3:]]
        expected = [source[part] for part in parts]
        with planned_reads((source, part) for part in parts):
            for part, values in zip(parts, expected, strict=True):
                np.testing.assert_array_equal(source[part], values)


def test_very_many_planned_reads_are_those_of_single_reads():
    values = np.arange(200)
    z = zarrdask.create_array({}, shape=200, dtype=values.dtype, chunks=2)
    z[...] = values
    region = ArrayRegion(chunks_of(z))
    parts = [np.s_[at : at + 3] for at in range(150)]
    with planned_reads((region, part) for part in parts):
        for part in parts:
            np.testing.assert_array_equal(region[part], values[part])


def at(place, region):
    """Return a region of an array at a place, without the array."""
    return ArrayRegion(SimpleNamespace(canonical_location=place), region)


@for_each(
    "place, is_below",
    [("/data/g/a/", True), ("/data/g/", True), ("/data/g/a/b/", False), ("/data/b/", False)],
)
def test_a_region_is_below_the_groups_of_its_array(place, is_below):
    assert at("/data/g/a/", PART).is_below(place) is is_below


@for_each(
    "place, rows, overlaps",
    [
        ("/data/g/a/", slice(7, 9, 1), True),
        ("/data/g/a/", slice(8, 9, 1), False),
        ("/data/g/a/", slice(0, 2, 1), False),
        ("/data/g/a/", slice(2, 2, 1), False),
        ("/data/g/b/", slice(0, 9, 1), False),
    ],
)
def test_regions_of_one_array_overlap_if_they_have_elements_in_common(place, rows, overlaps):
    columns = slice(0, 4, 1)
    read = at("/data/g/a/", (slice(2, 8, 3), columns))
    other = at(place, (rows, columns))
    assert read.overlaps(other) is other.overlaps(read) is overlaps


def test_arrays_without_axes_overlap_if_they_are_the_same():
    assert at("/a/", ()).overlaps(at("/a/", ()))
    assert not at("/a/", ()).overlaps(at("/b/", ()))


def test_an_array_that_was_replaced_by_one_of_other_axes_overlaps_all_of_it():
    rows = slice(0, 2, 1)
    assert at("/a/", (rows,)).overlaps(at("/a/", np.s_[5:6:1, 5:6:1]))
    assert not at("/a/", (rows,)).overlaps(at("/a/", (slice(0, 0, 1),)))


def test_a_region_prints_as_its_slices():
    assert str(at("/a/", np.s_[0:12:1, 3:10:1])) == "[0:12, 3:10]"
