"""Writes begin, run and finish together, at once or when they are computed."""

import threading

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from dask.delayed import Delayed
from distributed import Client

import zarrdask
from zarrdask.errors import NodeTypeError, UnsupportedError
from zarrdask.storage.memory import MemoryStore

VALUES = np.arange(1, 61 * 45 + 1, dtype="f4").reshape(61, 45)


def test_not_computing_writes_metadata_only():
    store = {}
    task = zarrdask.to_zarr(da.ones((4, 4), chunks=2), store, compute=False)
    assert isinstance(task, Delayed)
    assert sorted(store) == ["zarr.json"]
    assert task.compute() is None
    assert zarrdask.open_array(store)[...].tolist() == [[1] * 4] * 4


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (pd.Series(["a", "longer"]), "O"),
        (pd.array(["a", "longer"], dtype="string"), "O"),
        (pd.array([1, 2], dtype="Int64"), "i8"),
        (pd.array([True, False], dtype="boolean"), "?"),
        (pd.arrays.SparseArray([0, 1]), "i8"),
    ],
)
def test_arrays_of_data_types_of_pandas_are_stored_as_those_of_numpy(values, dtype):
    zarrdask.to_zarr(values, store := {})
    zarrdask.append(values, store)
    stored = zarrdask.open_array(store)
    assert stored.dtype == dtype
    assert stored[...].tolist() == 2 * list(values)


def test_an_array_in_memory_is_copied_only_if_it_is_written_later():
    are_views = []

    class Store(MemoryStore):
        def set(self, key, value):
            if key.startswith("c/"):
                are_views.append(np.may_share_memory(np.frombuffer(value, "u1"), values))
            super().set(key, value)

    values, store = VALUES.copy(), Store()
    zarrdask.to_zarr(values, store, compressors=())
    assert are_views == [True]
    task = zarrdask.to_zarr(values, store, compute=False, overwrite=True)
    values[:] = 0
    task.compute()
    np.testing.assert_array_equal(zarrdask.open_array(store)[...], VALUES)


def test_a_single_block_is_written_by_all_threads_of_the_scheduler():
    both = threading.Barrier(2, timeout=10)

    class TwoAtATime(MemoryStore):
        def set(self, key, value):
            if key.startswith("c/"):
                both.wait()
            super().set(key, value)

    store = TwoAtATime()
    with dask.config.set(scheduler="threads", num_workers=2):
        zarrdask.to_zarr(VALUES, store, chunks=(31, 45))
    np.testing.assert_array_equal(zarrdask.open_array(store)[...], VALUES)


def test_unknown_chunk_sizes_are_an_error():
    x = da.from_array(np.arange(10), chunks=5)
    with pytest.raises(zarrdask.errors.MetadataError, match="compute_chunk_sizes"):
        zarrdask.to_zarr(x[x > 3], {})


def test_the_process_scheduler_writes(tmp_path):
    with dask.config.set(scheduler="processes", num_workers=2):
        zarrdask.to_zarr(da.from_array(VALUES, chunks=(13, 11)), tmp_path, chunks=(10, 10))
    np.testing.assert_array_equal(zarrdask.open_array(tmp_path)[...], VALUES)


def test_a_write_that_is_asked_for_again_is_another_task():
    z = zarrdask.create_array({}, shape=4, dtype="f8")
    tasks = {zarrdask.to_zarr(da.ones(4), z, compute=False).key for _ in range(2)}
    assert len(tasks) == 2


@pytest.mark.parametrize("scheduler", ["sync", "threads", "processes", "cluster"])
def test_the_progress_of_a_write_is_reported(tmp_path, scheduler, request):
    address = request.getfixturevalue("cluster_address") if scheduler == "cluster" else None
    calls = []
    x = da.ones((8, 4), chunks=(2, 4), dtype="f4")
    with Client(address) if address else dask.config.set(scheduler=scheduler):
        zarrdask.to_zarr(x, tmp_path / "a", progress=lambda *state: calls.append(state))
        assert calls[-1] == (4, 4, 128)
        zarrdask.append(x, tmp_path / "a", progress=lambda *state: calls.append(state))
    assert calls[-1] == (4, 4, 128)
    assert zarrdask.open_array(tmp_path / "a")[...].sum() == 64


def test_a_write_that_is_reported_can_be_cancelled(tmp_path):
    def cancel(*_):
        raise KeyboardInterrupt

    x = da.ones(8, chunks=2)
    with dask.config.set(scheduler="sync"), pytest.raises(KeyboardInterrupt):
        zarrdask.to_zarr(x, tmp_path / "a", commit="last", progress=cancel)
    with pytest.raises(zarrdask.errors.NodeNotFoundError):
        zarrdask.open_array(tmp_path / "a")


def test_a_url_in_the_place_of_the_array_is_refused(tmp_path):
    z = zarrdask.create_array(tmp_path / "t.zarr", shape=3, dtype="U8")
    for write in (zarrdask.to_zarr, zarrdask.append):
        for place in ("a.zarr", tmp_path / "a.zarr"):
            with pytest.raises(NodeTypeError, match="the array to write comes first"):
                write(place, z)
    assert z.nchunks_stored() == 0
    zarrdask.to_zarr(np.array("text"), tmp_path / "text.zarr")
    assert zarrdask.open_array(tmp_path / "text.zarr")[()] == "text"


def test_a_table_is_refused_with_a_remedy():
    table = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})
    for write in (zarrdask.to_zarr, zarrdask.append):
        with pytest.raises(UnsupportedError, match="an array for each column"):
            write(table, {})
    store = {}
    zarrdask.to_zarr({name: table[name].to_numpy() for name in table.columns}, store)
    assert zarrdask.open_array(store, "b")[...].tolist() == [0.5, 1.5]
