"""Frisky, a scheduler in the place of Dask's."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import dask
import dask.array as da
import frisky
import numpy as np
import pytest
import xarray as xr
from distributed import Client
from distributed import LocalCluster as DaskCluster

import zarrdask
import zarrdask.xarray
from zarrdask.errors import StoreError
from zarrdask.parallel.execution import locks

ROOT = Path(__file__).parents[2]
LAYOUTS = [
    {"chunks": (7, 9)},
    {"chunks": (2, 3), "shards": (8, 9)},
    {"chunks": 7, "zarr_format": 2},
]


def running(**options):
    """Return a cluster of Frisky; a busy machine takes long to start processes."""
    frisky.cluster._WORKER_START_TIMEOUT = 100
    return frisky.LocalCluster(threads_per_worker=2, silence_summary=True, **options)


@pytest.fixture(scope="module", params=["processes", "threads", "hijack"])
def client(request):
    if request.param == "hijack":
        with (
            DaskCluster(n_workers=2, threads_per_worker=2, dashboard_address=":0") as cluster,
            Client(cluster) as dask_client,
            frisky.hijack(dask_client, tunnel_via_dashboard=False) as client,
        ):
            yield client
        return
    is_elsewhere = request.param == "processes"
    with running(n_workers=2, processes=is_elsewhere) as cluster, cluster.get_client() as client:
        yield client


@pytest.mark.parametrize("layout", range(len(LAYOUTS)))
def test_writes_that_share_chunks_lose_nothing(client, tmp_path, layout):
    rng = np.random.default_rng(layout)
    z = zarrdask.create_array(tmp_path, "z", shape=(40, 30), dtype="i4", **LAYOUTS[layout])
    expected = np.zeros(z.shape, z.dtype)
    for _ in range(4):
        edges = [0, *np.sort(rng.choice(np.arange(1, 40), 3, replace=False)), 40]
        writes = []
        for begin, end in pairwise(edges):
            values = rng.integers(0, 100, (end - begin, 30), "i4")
            expected[begin:end] = values
            x = da.from_array(values, chunks=(5, 11))
            writes.append(zarrdask.to_zarr(x, z, region=np.s_[begin:end], compute=False))
        dask.compute(*writes)
        np.testing.assert_array_equal(z[...], expected)
    for number in range(4):
        rows = rng.integers(0, 100, (5, 30), "i4")
        expected = np.concatenate([expected, rows])
        x = da.from_array(rows, chunks=(2, 30))
        later = zarrdask.append(x, tmp_path, "z", compute=number % 2 == 0)
        dask.compute(later)
    np.testing.assert_array_equal(zarrdask.open_array(tmp_path, "z")[...], expected)
    place = tmp_path / "rechunked"
    zarrdask.rechunk(zarrdask.from_zarr(tmp_path, "z") + 1, place, chunks=(60, 4)).execute()
    zarrdask.copy(place, tmp_path / "copied", codecs=["gzip"])
    np.testing.assert_array_equal(zarrdask.open_array(tmp_path / "copied")[...], expected + 1)


def test_a_dataset_is_written_and_appended_to(client, tmp_path):
    ds = xr.Dataset({"t": (("time", "x"), np.arange(12.0).reshape(4, 3))}).chunk(time=1)
    zarrdask.xarray.to_zarr(ds, tmp_path / "ds", encoding={"t": {"chunks": (3, 3)}})
    zarrdask.xarray.to_zarr(ds, tmp_path / "ds", append_dim="time", compute=False).compute()
    found = zarrdask.xarray.open_zarr(tmp_path / "ds").t.compute()
    np.testing.assert_array_equal(found, np.concatenate([ds.t, ds.t]))


def test_progress_is_reported(client, tmp_path):
    reports = []
    x = da.ones((8, 8), chunks=2).rechunk((4, 4))
    zarrdask.to_zarr(
        x.map_blocks(np.sin), tmp_path / "z", progress=lambda *report: reports.append(report)
    )
    assert reports[-1] == (4, 4, 512)


def test_the_error_of_a_task_is_raised(client, tmp_path):
    def fail(block):
        raise RuntimeError("no such values")

    x = da.ones(4, chunks=2).map_blocks(fail, meta=np.ones(0))
    for progress in (False, lambda *report: None):
        with pytest.raises(RuntimeError, match="no such values"):
            zarrdask.to_zarr(x, tmp_path / "z", overwrite=True, progress=progress)


def test_memory_that_workers_do_not_see_is_refused(client):
    store, is_here = {}, client.scheduler_address.startswith("inproc")
    if is_here:
        zarrdask.to_zarr(da.ones(4, chunks=2), store)
        assert zarrdask.from_zarr(store).sum().compute() == 4
        return
    with pytest.raises(StoreError, match="found 'workers of Frisky at"):
        zarrdask.to_zarr(da.ones(4, chunks=2), store)
    assert not store


def test_machines_without_common_locks_write_no_parts(tmp_path):
    other = {**os.environ, "PYTHONPATH": str(ROOT)}
    other["DASK_ZARRDASK__LOCK_DIRECTORY"] = str(tmp_path / "locks")
    with running(n_workers=0, processes=True, transport="tcp") as cluster:
        command = [sys.executable, "-m", "frisky.cli", "worker", cluster.scheduler.address]
        worker = subprocess.Popen(command, env=other, cwd=ROOT)
        try:
            # The client of another cluster would go on to compute by default.
            with cluster.get_client() as client, dask.config.set(scheduler=client):
                z = zarrdask.create_array(tmp_path / "z", shape=8, dtype="i4", chunks=4)
                zarrdask.to_zarr(da.ones(8, chunks=4, dtype="i4"), z)
                with pytest.raises(StoreError, match="on several machines"):
                    zarrdask.to_zarr(da.zeros(2, dtype="i4"), z, region=slice(1, 3))
                assert z[...].tolist() == [1] * 8
        finally:
            worker.terminate()
            worker.wait()


def test_where_workers_may_be_on_other_machines_parts_and_appends_are_refused(
    client, tmp_path, monkeypatch
):
    z = zarrdask.create_array(tmp_path, "z", shape=8, dtype="i4", chunks=4)
    monkeypatch.setattr(locks, "is_here", lambda address: False)
    with pytest.raises(StoreError, match="no locks; compute"):
        zarrdask.append(da.ones(2, dtype="i4"), tmp_path, "z")
    with pytest.raises(StoreError, match="no locks; compute"):
        zarrdask.to_zarr(da.ones(2, dtype="i4"), z, region=slice(3, 5))
    zarrdask.to_zarr(da.ones(4, dtype="i4"), z, region=slice(4, 8))
    assert zarrdask.open_array(tmp_path, "z")[...].tolist() == [0] * 4 + [1] * 4
