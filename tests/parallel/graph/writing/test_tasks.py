"""Dask may run a task again: what is stored then is the same."""

from concurrent.futures import ThreadPoolExecutor
from itertools import repeat

import dask
import dask.array as da
import numpy as np
import pytest
from dask._task_spec import convert_legacy_graph
from dask.local import nested_get

import zarrdask
from tests.covering import covering
from zarrdask.storage.memory import MemoryStore

OLD = np.arange(1.0, 1 + 23 * 17).reshape(23, 17)
NEW = -OLD
LAYOUTS = {
    "chunks": {"chunks": (5, 6)},
    "shards": {"chunks": (5, 3), "shards": (10, 6)},
    "uneven": {"chunks": ((4, 11, 8), (9, 8))},
    "v2": {"chunks": (5, 6), "zarr_format": 2},
    "draft": {"chunks": (5, 3), "shards": (10, 6), "zarr_format": "v3-draft"},
}
PLACES = ["memory", "local"]
THREADS = [1, 4]


def run(node, results):
    """Run a task twice; the second result counts."""
    given = {key: results[key] for key in node.dependencies}
    node(given)
    return node(given)


@pytest.fixture(params=THREADS, autouse=True)
def scheduler(request):
    """Run each task twice, one after the other or several at a time."""

    def get(graph, keys, **_):
        graph = graph.__dask_graph__() if hasattr(graph, "__dask_graph__") else graph
        left, results = convert_legacy_graph(dict(graph)), {}
        with ThreadPoolExecutor(request.param) as pool:
            while left:
                ready = [key for key, node in left.items() if node.dependencies <= results.keys()]
                nodes = [left.pop(key) for key in ready]
                results |= zip(ready, pool.map(run, nodes, repeat(results)), strict=True)
        return nested_get(keys, results)

    with dask.config.set(scheduler=get):
        yield


@pytest.fixture(params=PLACES)
def place(request, tmp_path):
    return MemoryStore() if request.param == "memory" else tmp_path


def old(place, layout):
    z = zarrdask.create_array(place, "a", shape=OLD.shape, dtype="f8", **layout)
    z[...] = OLD
    return z


def check(place, expected):
    np.testing.assert_array_equal(zarrdask.open_array(place, "a")[...], expected)


def test_tasks_are_run_twice():
    calls = []
    x = da.ones(6, chunks=2).map_blocks(lambda b: (calls.append(1), b)[1], dtype="f8", meta=OLD[0])
    x.compute()
    assert len(calls) == 6


@covering(
    layout=LAYOUTS,
    commit=["first", "last"],
    compute=[True, False],
    there=[True, False],
    place=PLACES,
    scheduler=THREADS,
    indirect=["place", "scheduler"],
)
def test_new_arrays(place, layout, commit, compute, there):
    if there:
        old(place, layout)
    x = da.from_array(NEW[:20], chunks=(7, 5))
    options = {"overwrite": there, "commit": commit, "compute": compute, **layout}
    if isinstance(options["chunks"][0], tuple):
        options["chunks"] = ((4, 11, 5), (9, 8))
    task = zarrdask.to_zarr(x, place, "a", **options)
    if not compute:
        task.compute()
    check(place, NEW[:20])


@covering(layout=LAYOUTS, place=PLACES, scheduler=THREADS, indirect=["place", "scheduler"])
def test_regions(place, layout):
    old(place, layout)
    expected = OLD.copy()
    expected[3:19, 2:16] = NEW[3:19, 2:16]
    x = da.from_array(NEW[3:19, 2:16], chunks=(7, 5))
    zarrdask.to_zarr(x, place, "a", region=np.s_[3:19, 2:16])
    check(place, expected)


@covering(
    layout=LAYOUTS,
    compute=[True, False],
    place=PLACES,
    scheduler=THREADS,
    indirect=["place", "scheduler"],
)
def test_appending(place, layout, compute):
    z = old(place, layout)
    x = da.from_array(NEW, chunks=(7, 5))
    task = zarrdask.append(x, z, compute=compute)
    if not compute:
        # One task is all of a deferred append. It is refused the second time, as another writer
        # may have appended as much.
        with pytest.raises(zarrdask.errors.StoreError, match="resized the array concurrently"):
            task.compute()
    check(place, np.concatenate([OLD, NEW]))


@pytest.mark.parametrize("compute", [True, False])
def test_replacing_an_array_by_what_is_computed_from_it(tmp_path, compute):
    old(tmp_path, LAYOUTS["chunks"])
    x = zarrdask.from_zarr(tmp_path, "a", chunks="stored") * 2
    task = zarrdask.to_zarr(x, tmp_path, "a", overwrite=True, compute=compute)
    if not compute:
        task.compute()
    check(tmp_path, OLD * 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "zarr.json"]


def test_several_arrays(place):
    x = da.from_array(NEW, chunks=(7, 5))
    zarrdask.to_zarr({"a": x, "b": x + 1}, place, commit="last", compute=False).compute()
    check(place, NEW)
