"""What a Dask array is computed from is found in its graph."""

import pickle

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr

import zarrdask
import zarrdask.xarray
from zarrdask.parallel.graph import dependencies
from zarrdask.parallel.graph.dependencies import needed_reads, reads
from zarrdask.xarray import ZarrdaskBackendEntrypoint

SHAPE = (40, 30)
WHOLE = ((0, 40, 1), (0, 30, 1))


@pytest.fixture
def place(tmp_path):
    zarrdask.create_array(tmp_path, "a", shape=SHAPE, dtype="f8", chunks=5)[...] = 1
    return tmp_path


def found(*arrays, by=reads):
    """Return places and regions; slices can't be hashed in all versions of Python."""
    return {
        (read.canonical_location, tuple((s.start, s.stop, s.step) for s in read.region))
        for read in by(arrays)
    }


def from_zarr(place):
    return zarrdask.from_zarr(place, "a", chunks="stored")


def named(place):
    return zarrdask.from_zarr(place, "a", name="mine")


def computed(place):
    return (from_zarr(place) + 1).rechunk(7).T.mean(axis=0)


def optimised(place):
    return dask.optimize(computed(place))[0]


def fused_in_parts(place):
    with dask.config.set({"optimization.fuse.active": False}):
        return dask.optimize(computed(place))[0]


def pickled(place):
    return pickle.loads(pickle.dumps(computed(place)))


def optimised_and_pickled(place):
    return pickle.loads(pickle.dumps(optimised(place)))


def flat(place):
    """Return an array whose graph is one dict."""
    x = computed(place)
    return da.Array(dict(x.__dask_graph__()), x.name, x.chunks, x.dtype)


def overlapped(place):
    return da.map_overlap(np.cumsum, from_zarr(place), depth=1, axis=0)


def joined(place):
    return da.concatenate([da.ones((1, 30)), from_zarr(place)])


def delayed(place):
    task = dask.delayed(lambda z: z[...])(zarrdask.open_array(place, "a"))
    return da.from_delayed(task, SHAPE, float)


def array(place):
    return da.from_array(zarrdask.open_array(place, "a"), chunks=7) + 1


def argument(place):
    z = zarrdask.open_array(place, "a")
    return da.ones(3).map_blocks(lambda block, other: block, other=z, dtype=float)


def in_a_list(place):
    z = zarrdask.open_array(place, "a")
    return da.from_delayed(dask.delayed(sum)([{"a": (z, 1)}]), SHAPE, float)


def stored(place):
    return zarrdask.to_zarr(
        da.ones(SHAPE), place, "a", mode="r+", compute=False, return_stored=True
    )


KINDS = (
    from_zarr,
    named,
    computed,
    optimised,
    fused_in_parts,
    pickled,
    optimised_and_pickled,
    flat,
    overlapped,
    joined,
    delayed,
    array,
    argument,
    in_a_list,
    stored,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_it_is_found(place, kind):
    check_found(place, kind(place))


def check_found(place, x):
    """Check that all of the array is read: as a whole, or in the parts that single tasks read."""
    places, regions = zip(*found(x), strict=True)
    assert set(places) == {f"{place}/a/"}
    hull = tuple(
        (min(s for s, _, _ in axis), max(e for _, e, _ in axis), 1)
        for axis in zip(*regions, strict=True)
    )
    assert hull == WHOLE


@pytest.mark.parametrize(
    "make",
    [
        lambda place: da.ones(4),
        lambda place: da.from_array(np.ones(3)),
        lambda place: from_zarr(place).persist(),
        lambda place: da.from_array(from_zarr(place).compute(), chunks=3),
        lambda place: da.random.default_rng(0).random(9, chunks=2),
        lambda place: zarrdask.from_zarr(place, "a", region=np.s_[:0])[:0].persist(),
    ],
)
def test_nothing_is_found_where_nothing_is_read(place, make):
    assert found(make(place)) == set()


def test_a_part_is_known_as_a_part(place):
    x = zarrdask.from_zarr(place, "a", region=np.s_[10:20])
    assert found(x + 1) == {(f"{place}/a/", ((10, 20, 1), WHOLE[1]))}
    narrow = zarrdask.from_zarr(place, "a")[7:9, 3]
    assert found(narrow) == {(f"{place}/a/", ((7, 9, 1), (3, 4, 1)))}


def flat_part(x):
    return da.Array(dict(x.__dask_graph__()), x.name, x.chunks, x.dtype)


@pytest.mark.parametrize("change", [lambda x: x, flat_part])
def test_blocks_that_nothing_comes_of_are_not_needed(place, change):
    part = change((from_zarr(place) + 1)[:17, 10:15])
    rows = ((0, 5, 1), (5, 10, 1), (10, 15, 1), (15, 20, 1))
    expected = {(f"{place}/a/", (row, (10, 15, 1))) for row in rows}
    assert found(part, by=needed_reads) == expected
    region = change(zarrdask.from_zarr(place, "a", region=np.s_[4:34:3], chunks=5)[:5])
    expected = {(f"{place}/a/", ((4, 17, 3), (start, start + 5, 1))) for start in range(0, 30, 5)}
    assert found(region, by=needed_reads) == expected


def test_of_optimised_tasks_what_they_are_given_is_read(place):
    (part,) = dask.optimize((from_zarr(place) + 1)[:17, 10:15])
    places, regions = zip(*found(part, by=needed_reads), strict=True)
    assert set(places) == {f"{place}/a/"}
    # Tasks that Dask has fused are given all of the array, others only their part of it.
    assert {columns for _, columns in regions} == {(10, 15, 1)}


def test_what_functions_hold_is_not_looked_at(place):
    z = zarrdask.open_array(place, "a")
    x = da.ones(3).map_blocks(lambda block: block * z[0, 0], dtype=float)
    assert found(x) == found(da.from_delayed(dask.delayed(z.__getitem__)(...), SHAPE, float))
    assert found(x) == set()


def test_several_arrays(place):
    zarrdask.to_zarr(da.ones(SHAPE), place, "b")
    x, y = from_zarr(place), zarrdask.from_zarr(place, "b")
    both = {(f"{place}/a/", WHOLE), (f"{place}/b/", WHOLE)}
    assert found(x, y) == found(x + y) == both


def test_an_array_that_was_replaced_by_one_with_fewer_axes_counts_as_read(place):
    x = from_zarr(place)
    z = zarrdask.create_array(place, "a", shape=40, dtype="f8", chunks=5, overwrite=True)
    with pytest.raises(zarrdask.errors.SelectionError, match="source reads the region"):
        zarrdask.to_zarr(x[:20, 0], z, region=np.s_[:20])


def test_graphs_are_searched_once_for_all_targets(place, monkeypatch):
    searches = []

    def counted(arrays):
        searches.append(len(arrays))
        return reads(arrays)

    monkeypatch.setattr(dependencies, "reads", counted)
    targets = [zarrdask.create_array({}, shape=SHAPE, dtype="f8", chunks=5) for _ in range(3)]
    zarrdask.to_zarr([(z, from_zarr(place) + i) for i, z in enumerate(targets)])
    assert searches == [3]
    assert [z[0, 0] for z in targets] == [1, 2, 3]


@pytest.mark.parametrize("chunks", [{}, None], ids=["sliced blocks", "sliced before"])
def test_arrays_that_xarray_makes_read_only_a_region(tmp_path, chunks):
    dataset = xr.Dataset({"t": (("y", "x"), np.ones(SHAPE))})
    zarrdask.xarray.to_zarr(dataset, tmp_path, encoding={"t": {"chunks": (5, 5)}})
    opened = xr.open_dataset(tmp_path, engine=ZarrdaskBackendEntrypoint, chunks=chunks)
    part = opened.t.isel(y=slice(10, 20), x=slice(None, None, 2))
    part = part.chunk() if chunks is None else part
    ((_, region),) = found(part.data, by=needed_reads)
    assert region == ((10, 20, 1), (0, 29, 2))
    assert zarrdask.plan_read(part).requests == 12
