"""One call that writes the same elements twice is refused; writes of others share a graph."""

from itertools import combinations
from types import SimpleNamespace

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.parallel.graph.writing.conflicts import check_disjoint, overlapping
from zarrdask.storage.memory import MemoryStore

SHAPE = (12, 10)
REFUSED = "written to the same elements"
TWO = (np.s_[0:8], np.s_[4:12, 3:])


@pytest.fixture(params=["sync", "threads"])
def scheduler(request):
    with dask.config.set(scheduler=request.param):
        yield


@pytest.fixture
def z():
    return made()


def made(store=None, shape=SHAPE, chunks=5):
    store = MemoryStore() if store is None else store
    array = zarrdask.create_array(store, "a", shape=shape, dtype="i4", chunks=chunks)
    array[...] = -1
    return array


def later(array, region, value, **options):
    """Return a write of one value to a region, to be computed."""
    values = da.full(np.empty(array.shape)[region].shape, value, dtype="i4", chunks=3)
    return zarrdask.to_zarr(values, array, region=region, compute=False, **options)


@st.composite
def regions(draw, most=4):
    """Return a shape and regions within."""
    shape = draw(st.lists(st.integers(0, 9), max_size=3).map(tuple))
    ends = [st.integers(0, n) for n in shape]
    one = st.tuples(*(st.tuples(end, end).map(lambda two: slice(*sorted(two))) for end in ends))
    return shape, draw(st.lists(one, min_size=2, max_size=most))


def region_at(place, region):
    """Return a region of an array at a place, without the array."""
    steps = tuple(slice(pick.start, pick.stop, 1) for pick in region)
    return ArrayRegion(SimpleNamespace(canonical_location=place, location=place), steps)


def covers(shape, region):
    found = np.zeros(shape, bool)
    found[region] = True
    return found


@given(regions(), st.integers(1, 5))
def test_writes_are_refused_if_and_only_if_they_have_elements_in_common(case, chunks):
    shape, places = case
    parts = [region_at("a", region) for region in places]
    if np.any(sum(covers(shape, region).astype(int) for region in places) > 1):
        with pytest.raises(zarrdask.errors.SelectionError, match=REFUSED):
            check_disjoint(parts)
        return
    check_disjoint(parts)
    array = made(shape=shape, chunks=chunks)
    expected = np.full(shape, -1, "i4")
    for value, region in enumerate(places):
        expected[region] = value
    writes = [later(array, region, value) for value, region in enumerate(places)]
    dask.compute(*writes, scheduler="sync")
    np.testing.assert_array_equal(array[...], expected)


@given(regions(), st.integers(1, 5))
def test_one_after_the_other_the_last_one_is_there(case, chunks):
    shape, places = case
    array = made(shape=shape, chunks=chunks)
    expected = np.full(shape, -1, "i4")
    writes = [later(array, region, value) for value, region in enumerate(places)]
    for value, region in enumerate(places):
        expected[region] = value
        writes[value].compute(scheduler="sync")
    np.testing.assert_array_equal(array[...], expected)


@given(regions(most=9), st.data())
def test_all_pairs_are_found(case, data):
    shape, places = case
    names = data.draw(st.lists(st.sampled_from("ab"), min_size=9, max_size=9))
    parts = list(map(region_at, names, places))
    assert sorted(overlapping(parts)) == [
        (i, j)
        for i, j in combinations(range(len(parts)), 2)
        if names[i] == names[j] and (covers(shape, places[i]) & covers(shape, places[j])).any()
    ]


def test_the_error_names_the_array_and_both_regions(z):
    same = zarrdask.open_array(z.store, "a", mode="r+")
    with pytest.raises(zarrdask.errors.SelectionError, match=REFUSED) as caught:
        zarrdask.to_zarr([(z, da.ones(SHAPE)), (same, da.zeros(SHAPE))])
    assert caught.value.key == z.node_path.at("a").location
    assert caught.value.found == "[0:12, 0:10] and [0:12, 0:10]"
    assert caught.value.expected == "regions that do not overlap"


def test_regions_that_only_share_units_are_written(z, scheduler):
    dask.compute(later(z, np.s_[:, 3:], 1), later(z, np.s_[:, :3], 2), later(z, np.s_[4:4], 3))
    np.testing.assert_array_equal(z[...], [[2] * 3 + [1] * 7] * 12)


def test_the_same_write_may_be_asked_for_twice(z, scheduler):
    write = later(z, np.s_[:5], 1)
    dask.compute(write, [write])
    assert (z[:5] == 1).all()


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_of_two_that_are_computed_together_each_element_is_that_of_one(z, scheduler):
    dask.compute(*(later(z, region, i) for i, region in enumerate(TWO)), scheduler=scheduler)
    first, second = (covers(SHAPE, region) for region in TWO)
    found = z[...]
    assert (found[first & ~second] == 0).all()
    assert (found[second & ~first] == 1).all()
    assert set(found[first & second].flat) <= {0, 1}
    assert (found[~first & ~second] == -1).all()


def test_one_that_waits_for_another_is_refused_when_it_is_asked_for(z):
    values = dask.delayed(lambda _: np.ones((8, 10)))(later(z, TWO[0], 0))
    with pytest.raises(zarrdask.errors.SelectionError, match="source reads the region"):
        zarrdask.to_zarr(da.from_delayed(values, (8, 10), "i4"), z, region=TWO[0], compute=False)


@pytest.mark.parametrize("compute", [True, False])
def test_targets_of_store(z, compute):
    x = da.ones(SHAPE, chunks=4)
    same = zarrdask.open_array(z.store, "a", mode="r+")
    with pytest.raises(zarrdask.errors.SelectionError, match=REFUSED):
        zarrdask.to_zarr([(z, x), ("b", x), (same, x * 2)], z.store, compute=compute)
    with pytest.raises(zarrdask.errors.MetadataError, match="at the same location"):
        zarrdask.to_zarr([("a", x), (z, x)], z.store, overwrite=True, compute=compute)
    assert (z[...] == -1).all()
    assert list(zarrdask.open_group(z.store)) == ["a"]
    zarrdask.to_zarr([(z, x), ("b", x)], z.store, compute=compute)


def test_many_regions(z):
    z = made(shape=(24, 24), chunks=7)
    tiles = [np.s_[i : i + 4, j : j + 4] for i in range(0, 24, 4) for j in range(0, 24, 4)]
    writes = [later(z, region, i) for i, region in enumerate(tiles)]
    dask.compute(*writes)
    assert [z[region].mean() for region in tiles] == list(range(36))
