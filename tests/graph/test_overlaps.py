"""Writes that are computed together: those of the same elements are refused, others are done."""

import pickle
from itertools import combinations

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from zarrdask.graph.together import Part, overlapping
from zarrdask.storage.memory import MemoryStore

SHAPE = (12, 10)
REFUSED = "have elements in common"
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


def refused(array, *writes, compute=dask.compute):
    """Check that writes are refused together, and that nothing is written."""
    before = dict(array.store.values) if isinstance(array.store, MemoryStore) else array[...]
    with pytest.raises(zarrdask.SelectionError, match=REFUSED) as error:
        compute(*writes)
    if isinstance(array.store, MemoryStore):
        assert array.store.values == before
    else:
        np.testing.assert_array_equal(array[...], before)
    return error.value


@st.composite
def regions(draw, most=4):
    """Return a shape and regions within."""
    shape = draw(st.lists(st.integers(0, 9), max_size=3).map(tuple))
    ends = [st.integers(0, n) for n in shape]
    one = st.tuples(*(st.tuples(end, end).map(lambda two: slice(*sorted(two))) for end in ends))
    return shape, draw(st.lists(one, min_size=2, max_size=most))


def covers(shape, region):
    found = np.zeros(shape, bool)
    found[region] = True
    return found


@given(regions(), st.integers(1, 5))
def test_writes_are_refused_if_and_only_if_they_have_elements_in_common(case, chunks):
    shape, places = case
    array = made(shape=shape, chunks=chunks)
    expected = np.full(shape, -1, "i4")
    for value, region in enumerate(places):
        expected[region] = value
    writes = [later(array, region, value) for value, region in enumerate(places)]
    if np.any(sum(covers(shape, region).astype(int) for region in places) > 1):
        refused(array, *writes)
    else:
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
    parts = [Part(name, name, region) for name, region in zip(names, places, strict=False)]
    assert sorted(overlapping(parts)) == [
        (i, j)
        for i, j in combinations(range(len(parts)), 2)
        if names[i] == names[j] and (covers(shape, places[i]) & covers(shape, places[j])).any()
    ]


def test_the_error_names_the_array_and_both_regions(z, scheduler):
    error = refused(z, *(later(z, region, i) for i, region in enumerate(TWO)))
    assert error.key == "memory://a" or error.key.endswith("a")
    assert error.found == "[0:8, 0:10] and [4:12, 3:10]"
    assert error.expected == "regions that do not overlap"


def test_regions_that_only_share_units_are_written(z, scheduler):
    dask.compute(later(z, np.s_[:, 3:], 1), later(z, np.s_[:, :3], 2), later(z, np.s_[4:4], 3))
    np.testing.assert_array_equal(z[...], [[2] * 3 + [1] * 7] * 12)


def test_the_same_write_may_be_asked_for_twice(z, scheduler):
    write = later(z, np.s_[:5], 1)
    dask.compute(write, [write])
    assert (z[:5] == 1).all()


@pytest.mark.parametrize(
    "compute",
    [
        lambda *writes: dask.compute(*writes, scheduler="sync"),
        lambda *writes: dask.compute({"all": list(writes)}),
        dask.persist,
        lambda *writes: dask.compute(*dask.optimize(*writes)),
        lambda *writes: dask.compute(*(dask.optimize(write)[0] for write in writes)),
        lambda *writes: dask.compute(*pickle.loads(cloudpickle.dumps(writes))),
        lambda *writes: dask.compute(*writes, da.ones(3).sum(), dask.delayed(1)),
    ],
    ids=["compute", "nested", "persist", "optimized together", "optimized", "pickled", "others"],
)
def test_however_they_are_computed(z, compute):
    writes = [later(z, region, i) for i, region in enumerate(TWO)]
    refused(z, *writes, compute=compute)


def test_in_processes(tmp_path):
    z = made(str(tmp_path))
    writes = [later(z, region, i) for i, region in enumerate(TWO)]
    refused(z, *writes, compute=lambda *a: dask.compute(*a, scheduler="processes", num_workers=1))


def test_on_a_cluster(tmp_path):
    z = made(str(tmp_path))
    with Client(n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
        writes = [later(z, region, i) for i, region in enumerate(TWO)]
        refused(z, *writes)
        refused(z, *writes, compute=lambda *a: client.gather(client.compute(list(a))))
        dask.compute(later(z, np.s_[:7], 5), later(z, np.s_[7:], 6))
    assert z[:, 0].tolist() == [5] * 7 + [6] * 5


def test_of_several_that_were_optimised_together_one_is_written(z):
    first, second = dask.optimize(*(later(z, region, i) for i, region in enumerate(TWO)))
    second.compute()
    first.compute()
    assert (z[:8] == 0).all()
    assert (z[8:, 3:] == 1).all()


def test_one_that_waits_for_another_is_refused_when_it_is_asked_for(z):
    values = dask.delayed(lambda _: np.ones((8, 10)))(later(z, TWO[0], 0))
    with pytest.raises(zarrdask.SelectionError, match="computed from"):
        zarrdask.to_zarr(da.from_delayed(values, (8, 10), "i4"), z, region=TWO[0], compute=False)


def test_a_new_array_and_a_region_of_it(scheduler):
    store = MemoryStore()
    whole = zarrdask.to_zarr(da.ones(SHAPE, chunks=5), store, "a", compute=False)
    z = zarrdask.open_array(store, "a", mode="r+")
    refused(z, whole, later(z, np.s_[2:4], 7))
    again = zarrdask.to_zarr(da.zeros(SHAPE), store, "a", overwrite=True, compute=False)
    refused(z, whole, again)
    dask.compute(whole, zarrdask.to_zarr(da.ones(SHAPE), store, "b", compute=False))
    assert (z[...] == 1).all()


def test_an_array_that_is_replaced_at_last_and_a_region_of_the_old_one(tmp_path):
    z = made(str(tmp_path))
    options = {"overwrite": True, "commit": "last", "compute": False}
    whole = zarrdask.to_zarr(da.ones(SHAPE, chunks=5), tmp_path, "a", **options)
    refused(z, later(z, np.s_[2:4], 7), whole)
    whole = zarrdask.to_zarr(da.ones(6, chunks=5), tmp_path, "a", **options)
    refused(z, later(z, np.s_[4:], 7), whole)


@pytest.mark.parametrize("compute", [True, False])
def test_targets_of_store(z, compute):
    x = da.ones(SHAPE, chunks=4)
    same = zarrdask.open_array(z.store, "a", mode="r+")
    with pytest.raises(zarrdask.SelectionError, match=REFUSED):
        zarrdask.store([(z, x), ("b", x), (same, x * 2)], z.store, compute=compute)
    with pytest.raises(zarrdask.MetadataError, match="in one place"):
        zarrdask.store([("a", x), (z, x)], z.store, overwrite=True, compute=compute)
    assert (z[...] == -1).all()
    assert list(zarrdask.open_group(z.store)) == ["a"]
    write = zarrdask.store([(z, x), ("b", x)], z.store, compute=False)
    refused(z, write, later(z, np.s_[3:3], 0), later(z, np.s_[3:4], 0))


def test_many_regions(z):
    z = made(shape=(40, 40), chunks=7)
    tiles = [np.s_[i : i + 4, j : j + 4] for i in range(0, 40, 4) for j in range(0, 40, 4)]
    writes = [later(z, region, i) for i, region in enumerate(tiles)]
    refused(z, *writes, later(z, np.s_[39:, 39:], 0))
    dask.compute(*writes)
    assert [z[region].mean() for region in tiles] == list(range(100))
