"""A cluster of two processes."""

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster, futures_of
from xarray import open_dataset

import zarrdask
from zarrdask.arrays.chunks.stored import open_packed
from zarrdask.formats.codecs.bytes_to_bytes.gzip import GzipCodec
from zarrdask.xarray import open_zarr

VALUES = np.arange(90 * 70, dtype="f8").reshape(90, 70)


@pytest.fixture(scope="module")
def client(cluster):
    with Client(cluster) as client:
        yield client


@pytest.fixture
def place(tmp_path):
    zarrdask.create_array(
        tmp_path, "a", shape=VALUES.shape, dtype="f8", chunks=(10, 10), shards=(30, 20)
    )[...] = VALUES
    return tmp_path


def test_reading(client, place):
    x = zarrdask.from_zarr(place, "a", chunks="stored")
    assert x.sum().compute() == VALUES.sum()
    np.testing.assert_array_equal(x[3:50, ::7].compute(), VALUES[3:50, ::7])


@pytest.mark.parametrize("blocks", [(30, 20), (17, 13)])
def test_writing(client, place, blocks):
    x = zarrdask.from_zarr(place, "a").rechunk(blocks)
    zarrdask.to_zarr(x + 1, place, "b", chunks=(15, 10), shards=(30, 20))
    np.testing.assert_array_equal(zarrdask.open_array(place, "b")[...], VALUES + 1)


def test_writing_and_reading_in_one_graph(client, place):
    x = zarrdask.from_zarr(place, "a", chunks="stored")
    y = zarrdask.to_zarr(x * 2, place, "c", compute=False, return_stored=True)
    assert y.sum().compute() == VALUES.sum() * 2


def test_an_error_in_a_task_comes_back_with_its_key(client, place):
    key = "a/c/1/2"
    (place / key).write_bytes(b"rubbish")
    x = zarrdask.from_zarr(place, "a")
    with pytest.raises(zarrdask.errors.CodecError, match=key) as caught:
        x.sum().compute()
    assert key in caught.value.key


class Gzip(GzipCodec):
    name = "example.gzip"


def test_a_codec_that_the_workers_lack_is_an_error_and_does_not_end_them(
    client, place, own_registries
):
    zarrdask.register.codec(Gzip)
    options = {"chunks": 2, "compressors": "example.gzip", "dimension_names": ["x"]}
    z = zarrdask.create_array(place, "g", shape=4, dtype="f4", **options)
    workers = {*client.scheduler_info()["workers"]}
    reads = (
        zarrdask.from_zarr(z).sum(),
        zarrdask.map_overlap(np.abs, z, depth=1),
        open_zarr(place, drop_variables=["a"]).g.sum(),
        open_dataset(place, engine="zarrdask", chunks={}, drop_variables=["a"]).g.sum(),
    )
    for call in (*(x.compute for x in reads), lambda: zarrdask.to_zarr(da.ones(4), z)):
        with pytest.raises(zarrdask.errors.UnsupportedError, match=r"unknown codec.*example\.gzip"):
            call()
    assert {*client.scheduler_info()["workers"]} == workers


def test_workers_open_an_array_once(client, place):
    x = zarrdask.from_zarr(place, "a", chunks=(10, 10))
    client.run(open_packed.cache_clear)
    x.sum().compute()
    for hits, misses, *_ in client.run(lambda: tuple(open_packed.cache_info())).values():
        assert hits > misses


def test_the_cache_of_opened_arrays_is_bounded():
    assert open_packed.cache_info().maxsize is not None


@pytest.mark.parametrize("place", [{}, "memory://somewhere"], ids=["dict", "memory"])
def test_what_is_in_memory_fails_early_and_nothing_is_written(client, place):
    with pytest.raises(zarrdask.errors.StoreError, match="workers"):
        zarrdask.to_zarr(da.ones(4), place)
    with pytest.raises(zarrdask.errors.NodeNotFoundError):
        zarrdask.open(place)
    zarrdask.create_array(place, shape=4, dtype="i4")
    with pytest.raises(zarrdask.errors.StoreError, match="workers"):
        zarrdask.from_zarr(place)


def test_workers_in_this_process_see_what_is_in_memory():
    store = {}
    with (
        LocalCluster(processes=False, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
        client.as_current(),
    ):
        zarrdask.to_zarr(da.from_array(VALUES, chunks=40), store)
        np.testing.assert_array_equal(zarrdask.from_zarr(store).compute(), VALUES)


def test_whether_a_cast_is_permitted_is_decided_at_the_call(client, tmp_path):
    client.run(dask.config.set, {"zarrdask.casting": "safe"})
    try:
        x = da.ones(8, chunks=4)
        zarrdask.to_zarr(x, tmp_path, "a", dtype="i1", compute=False, resume=True).compute()
        zarrdask.append(x, tmp_path, "a", compute=False).compute()
        assert zarrdask.open_array(tmp_path, "a")[...].tolist() == [1] * 16
    finally:
        client.run(dask.config.set, {"zarrdask.casting": None})
    with dask.config.set({"zarrdask.casting": "safe"}), pytest.raises(zarrdask.errors.CodecError):
        zarrdask.append(x, tmp_path, "a", compute=False)


def test_a_write_is_done_again_though_its_result_is_held(client, tmp_path):
    x = da.from_array(VALUES, chunks=40)
    held = []
    for _ in range(2):
        task = zarrdask.to_zarr(x, tmp_path, overwrite=True, compute=False)
        future = client.compute(task)
        future.result()
        held.append(future)
        np.testing.assert_array_equal(zarrdask.open_array(tmp_path)[...], VALUES)


def test_a_write_that_is_computed_later_keeps_persisted_blocks(client, tmp_path):
    x = da.from_array(VALUES, chunks=40).persist()
    task = zarrdask.to_zarr(x + 1, tmp_path, compute=False)
    del x
    assert len(futures_of(task)) == 6
    task.compute()
    np.testing.assert_array_equal(zarrdask.open_array(tmp_path)[...], VALUES + 1)


def test_another_scheduler_than_the_clients_sees_what_is_in_memory(client):
    store = {}
    with dask.config.set(scheduler="threads"):
        zarrdask.to_zarr(da.from_array(VALUES, chunks=40), store)
        np.testing.assert_array_equal(zarrdask.from_zarr(store).compute(), VALUES)


@pytest.mark.parametrize("how", ["write", "rechunk"])
def test_nothing_waits_for_workers_that_are_gone_if_dask_is_told_not_to(place, tmp_path, how):
    def compute():
        if how == "write":
            zarrdask.to_zarr(zarrdask.from_zarr(place, "a"), tmp_path, "b")
        else:
            plan = zarrdask.rechunk(tmp_path / "a", tmp_path / "b", chunks=5)
            plan.execute(client, progress=False)

    with (
        dask.config.set({"distributed.scheduler.no-workers-timeout": "100ms"}),
        LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        pytest.raises(Exception, match="without any running workers"),
    ):
        compute()


def test_an_append_that_is_computed_later_is_computed_by_the_cluster(client, place):
    """Its task waits for others, of a cluster whose workers have one thread."""
    x = zarrdask.from_zarr(place, "a") * 2
    tasks = [zarrdask.append(part, place, "a", compute=False) for part in (x, x[:7].persist())]
    tasks[0].compute()
    with pytest.raises(zarrdask.errors.StoreError, match="resized the array"):
        tasks[1].compute()
    later = zarrdask.append(x[:7].persist(), place, "a", compute=False)
    later.compute()
    expected = np.concatenate([VALUES, VALUES * 2, VALUES[:7] * 2])
    np.testing.assert_array_equal(zarrdask.open_array(place, "a")[...], expected)
