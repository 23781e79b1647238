"""The package dask-array: its arrays are made and stored, also where it makes xarray's arrays."""

import subprocess
import sys
from pathlib import Path

import cloudpickle
import dask
import dask.array as da
import dask_array
import numpy as np
import pytest
from dask.callbacks import Callback

import zarrdask
from tests.covering import for_each
from tests.parallel.graph.counting import CountingStore
from tests.xarray.samples import write_sample
from zarrdask.errors import SelectionError
from zarrdask.parallel.graph.writing.write_job import as_dask_array

ROOT = Path(__file__).parents[2]
#: In a process of its own: the package replaces a manager of xarray for good.
CODE = """
import sys
import dask_array, dask_array.xarray
import numpy as np
from zarrdask.xarray import open_zarr
import dask.array

place = sys.argv[1]
assert type(open_zarr(place).t.data) is dask.array.Array
dask_array.xarray.register()
ds = open_zarr(place)
values = open_zarr(place, chunks=None).t.values
assert isinstance(ds.t.data, dask_array.Array)
np.testing.assert_array_equal(ds.t.compute(), values)
np.testing.assert_array_equal(ds.t.isel(time=3, y=[4, 1]).compute(), values[3, [4, 1]])
np.testing.assert_allclose(ds.t.mean("time").compute(), np.nanmean(values, axis=0))
np.testing.assert_array_equal((ds.t - ds.height).compute(), values - 2)
whole = ds.chunk(time=-1).t
assert len(whole.data.optimize().__dask_graph__()) == whole.data.npartitions
np.testing.assert_array_equal(whole.compute(), values)
target = {}
ds.zarrdask.to_zarr(target)
np.testing.assert_array_equal(open_zarr(target, chunks=None).t.values, values)
"""


def test_its_arrays_are_made_where_it_is_registered(tmp_path):
    write_sample(tmp_path)
    command = [sys.executable, "-W", "ignore", "-c", CODE, str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


VALUES = np.arange(1200, dtype="i4").reshape(40, 30)
OPERATIONS = {
    "as it is": lambda x: x,
    "plus one": lambda x: x + 1,
    "sliced": lambda x: (x + 1)[3:5, 2:4],
    "merged": lambda x: (x + 1).rechunk((20, 10)),
    "across chunks": lambda x: x.rechunk((7, 30)),
    "reduced": lambda x: x.sum(axis=0),
    "cumulative": lambda x: x.cumsum(axis=0),
    "persisted": lambda x: (x + 1).persist(scheduler="sync"),
}


class Counting(Callback):
    """Counts the tasks that are run."""

    tasks = 0

    def _posttask(self, *_):
        self.tasks += 1


def stored(**options):
    store = CountingStore()
    z = zarrdask.create_array(store, shape=(40, 30), dtype="i4", **{"chunks": 10} | options)
    z[...] = VALUES
    store.reads.clear()
    return store


@for_each("name", OPERATIONS)
def test_arrays_are_read_and_written_as_those_of_dask(name):
    store, operation = stored(), OPERATIONS[name]
    x = operation(zarrdask.from_zarr(store, chunks="stored", array_module="dask_array"))
    assert isinstance(x, dask_array.Array)
    expected = operation(da.from_array(VALUES, chunks=10)).compute()
    np.testing.assert_array_equal(x.compute(), expected)
    np.testing.assert_array_equal(zarrdask.to_zarr(x, {}, return_stored=True).compute(), expected)
    target = {}
    zarrdask.to_zarr(x, target, chunks=3, shards=6)
    zarrdask.append(x, target)
    found = zarrdask.open_array(target)[...]
    np.testing.assert_array_equal(found, np.concatenate([expected, expected]))


def test_slices_and_merges_after_other_operations_are_pushed_into_the_read():
    store = stored()
    x = zarrdask.from_zarr(store, chunks="stored", array_module="dask_array") + 1
    x[3:5, 2:4].compute()
    assert store.keys_read() == ["c/0/0"]
    merged = x.rechunk((40, 10))
    merged.compute()
    assert len(store.keys_read()) == 12
    assert len(as_dask_array(merged).dask) == 3
    # Blocks that have chunks in common are not read.
    as_dask_array(x.rechunk((7, 30))).compute(scheduler="sync")
    assert len(store.keys_read()) == 12


@for_each("options", [{"region": np.s_[7:33, 4]}, {"region": np.s_[::-2]}, {"depth": {0: 3}}])
def test_regions_and_blocks_that_overlap(options):
    x = zarrdask.from_zarr(stored(), chunks=10, array_module="dask_array", **options)
    y = zarrdask.from_zarr(stored(), chunks=10, **options)
    assert isinstance(x, dask_array.Array)
    assert x.chunks == y.chunks
    np.testing.assert_array_equal(x.compute(), y.compute())


def test_small_blocks_are_fused_and_unaligned_writes_are_safe():
    values = np.arange(2**16, dtype="i4")
    z = zarrdask.create_array({}, shape=values.shape, chunks=64, dtype="i4")
    z[...] = values
    x = zarrdask.from_zarr(z, chunks="stored", array_module="dask_array")
    with Counting() as counting:
        zarrdask.to_zarr(x + 1, target := {}, chunks=64)
    np.testing.assert_array_equal(zarrdask.open_array(target)[...], values + 1)
    assert counting.tasks < 200  # of 1,024 blocks
    zarrdask.to_zarr((x + 1)[1:-1], target := {}, chunks=100)
    np.testing.assert_array_equal(zarrdask.open_array(target)[...], (values + 1)[1:-1])


def test_a_block_is_read_computed_and_written_by_one_task():
    for array_module in ("dask.array", "dask_array"):
        x = zarrdask.from_zarr(stored(), chunks="stored", array_module=array_module)
        later = zarrdask.to_zarr(x + 1, {}, chunks=10, compute=False)
        assert len(dask.optimize(later)[0].__dask_graph__()) == 12 + 1


@for_each(
    ("operation", "count"),
    [
        (lambda x: (x + 1) * 2 - x, 12),
        (lambda x: (x + 1)[3:25, 2:14], 6),
        (lambda x: (x + 1).rechunk((40, 10)), 3),
        (lambda x: x.map_blocks(abs, dtype="i4"), 12),
        (lambda x: x[:30] + x[:30].T, 18),
    ],
)
def test_a_block_is_read_and_computed_by_one_task(operation, count):
    x = operation(zarrdask.from_zarr(stored(), chunks="stored", array_module="dask_array"))
    expected = operation(da.from_array(VALUES, chunks=10)).compute()
    assert len(x.optimize().__dask_graph__()) == count
    np.testing.assert_array_equal(x.compute(), expected)
    copy = cloudpickle.loads(cloudpickle.dumps(x))
    assert copy.name == x.name
    np.testing.assert_array_equal(copy.compute(), expected)


def test_an_array_is_not_computed_from_what_it_overwrites():
    store = stored()
    x = zarrdask.from_zarr(store, chunks="stored", array_module="dask_array")
    with pytest.raises(SelectionError, match="reads"):
        zarrdask.to_zarr(x[:20], store, region=np.s_[:20])
