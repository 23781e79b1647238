"""Zip archives written and read by tasks, on all schedulers."""

import os
import zipfile

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client

import zarrdask
from zarrdask.errors import StoreError
from zarrdask.storage.zip.store import ZipStore

VALUES = np.arange(90 * 70, dtype="i4").reshape(90, 70)


@pytest.fixture
def x():
    return da.from_array(VALUES, chunks=(20, 35))


def check(path, component=None, values=VALUES):
    np.testing.assert_array_equal(zarrdask.open_array(path, component)[...], values)
    np.testing.assert_array_equal(zarrdask.from_zarr(path, component).compute(), values)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
    assert not [name for name in os.listdir(path.parent) if name.startswith(".")]


def test_to_zarr(x, tmp_path):
    path = tmp_path / "a.zarr.zip"
    zarrdask.to_zarr(x, path, chunks=10, shards=30)
    check(path)
    stored = zarrdask.to_zarr(x + 1, path, overwrite=True, return_stored=True)
    np.testing.assert_array_equal(stored.compute(), VALUES + 1)
    check(path, values=VALUES + 1)


def test_several_arrays(x, tmp_path):
    path = tmp_path / "a.zarr.zip"
    zarrdask.to_zarr({"a/b": x, "c": x * 2}, path)
    check(path, "a/b")
    zarrdask.to_zarr(x * 3, path, "d", commit="last")
    check(path, "c", VALUES * 2)
    check(path, "d", VALUES * 3)


def test_copy_and_rechunk(x, tmp_path):
    group = zarrdask.create_group(tmp_path / "g", attributes={"n": 1})
    zarrdask.to_zarr(x, group, "a")
    zarrdask.copy(group, tmp_path / "b.zip")
    assert zarrdask.open_group(tmp_path / "b.zip").attrs["n"] == 1
    check(tmp_path / "b.zip", "a")
    zarrdask.copy(tmp_path / "b.zip", tmp_path / "c.zip", zarr_format=2, chunks=(7, 9))
    check(tmp_path / "c.zip", "a")
    zarrdask.rechunk(tmp_path / "b.zip", tmp_path / "e.zip", chunks=30).execute(progress=False)
    check(tmp_path / "e.zip", "a")


def test_a_rechunk_of_several_passes(tmp_path):
    values = np.arange(200 * 200, dtype="i4").reshape(200, 200)
    z = zarrdask.create_array(tmp_path / "a.zip", shape=(200, 200), dtype="i4", chunks=(1, 200))
    z[...] = values
    plan = zarrdask.rechunk(z, tmp_path / "b.zip", chunks=(200, 1), max_mem="40 kB")
    assert len(plan.scheme.stages) > 1
    plan.execute(progress=False)
    check(tmp_path / "b.zip", values=values)


def test_without_threads(x, tmp_path):
    with dask.config.set(scheduler="sync"):
        zarrdask.to_zarr(x, tmp_path / "a.zip", chunks=10)
        zarrdask.copy(tmp_path / "a.zip", tmp_path / "b.zip", chunks=(30, 7))
        check(tmp_path / "a.zip")
        check(tmp_path / "b.zip")


def test_chunks_that_hold_the_fill_value_are_erased(x, tmp_path):
    path = tmp_path / "a.zip"
    z = zarrdask.create_array(path, shape=VALUES.shape, dtype="i4", chunks=(10, 35))
    zarrdask.to_zarr(x, z)
    zarrdask.to_zarr(da.zeros_like(x), z)
    assert z.nchunks_stored() == 0
    check(path, values=np.zeros_like(VALUES))


def test_chunks_that_are_written_in_part(x, tmp_path):
    path = tmp_path / "a.zip"
    z = zarrdask.create_array(path, shape=VALUES.shape, dtype="i4", chunks=(20, 35))
    z[...] = VALUES

    zarrdask.to_zarr(x[:15] * 2, z, region=(slice(5, 20), slice(None)))
    expected = VALUES.copy()
    expected[5:20] = VALUES[:15] * 2
    check(path, values=expected)


@pytest.mark.slow
def test_tasks_in_other_processes_read_but_do_not_write(x, tmp_path, cluster_address):
    path = tmp_path / "a.zip"
    z = zarrdask.create_array(path, shape=VALUES.shape, dtype="i4", chunks=(20, 35))
    z[...] = VALUES
    before = path.read_bytes()
    writes = (
        lambda: zarrdask.to_zarr(x, z),
        lambda: zarrdask.to_zarr(x, tmp_path / "b.zip"),
        lambda: zarrdask.append(x, z),
        lambda: zarrdask.copy(path, tmp_path / "b.zip"),
        lambda: zarrdask.rechunk(path, tmp_path / "b.zip", chunks=30).execute(progress=False),
    )
    with Client(cluster_address):
        for write in writes:
            with pytest.raises(StoreError, match=r"write a directory and zarrdask\.copy"):
                write()
        np.testing.assert_array_equal(zarrdask.from_zarr(path).compute(), VALUES)
        zarrdask.copy(path, tmp_path / "d")
        zarrdask.copy(tmp_path / "d", tmp_path / "c.zip", scheduler="threads")
        with dask.config.set(scheduler="threads"):
            zarrdask.append(x, z)
    assert path.read_bytes() != before
    assert not (tmp_path / "b.zip").exists()
    check(tmp_path / "c.zip")
    check(path, values=np.concatenate([VALUES, VALUES]))


def test_a_write_that_is_computed_later_needs_a_batch(x, tmp_path):
    store = ZipStore(tmp_path / "a.zip")
    for write in (
        lambda: zarrdask.to_zarr(x, store, compute=False),
        lambda: zarrdask.to_zarr({"a": x}, store, compute=False),
    ):
        with pytest.raises(zarrdask.errors.UnsupportedError, match=r"store\.batch"):
            write()
    assert not os.path.exists(store.path)
    with store.batch():
        zarrdask.to_zarr(x, store, compute=False).compute()
    check(tmp_path / "a.zip")


def test_appending_later_needs_a_batch(x, tmp_path):
    z = zarrdask.create_array(tmp_path / "a.zip", shape=VALUES.shape, dtype="i4")
    with pytest.raises(zarrdask.errors.UnsupportedError, match=r"store\.batch"):
        zarrdask.append(x, z, compute=False)
    zarrdask.append(x, z)
    check(tmp_path / "a.zip", values=np.concatenate([np.zeros_like(VALUES), VALUES]))


def test_each_call_writes_the_archive_once(tmp_path, x):
    written = set()

    def look():
        written.add(os.stat(tmp_path / "a.zip").st_ino)

    z = zarrdask.create_array(tmp_path / "a.zip", shape=VALUES.shape, dtype="i4", chunks=5)
    look()
    inode = os.stat(tmp_path / "a.zip").st_ino
    with open(tmp_path / "a.zip", "rb"):  # so that the number is not used again
        z[...] = VALUES
    look()
    assert written != {inode}
    assert len(written) == 2
    z.attrs["units"] = "m"
    z.resize((100, 70))
    z.append(np.ones((3, 70)))
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        names = archive.namelist()
    assert len(names) == len(set(names))
    assert zarrdask.open_array(tmp_path / "a.zip").attrs["units"] == "m"
    assert zarrdask.verify(tmp_path / "a.zip").ok


def test_one_that_fails_leaves_what_was_there_before(tmp_path, x):
    path = tmp_path / "a.zip"
    zarrdask.to_zarr(x, path, "a")

    def fail(block):
        raise RuntimeError("on purpose")

    bad = x.map_blocks(fail, dtype="i4", meta=np.empty((0, 0), "i4"))
    with pytest.raises(RuntimeError, match="on purpose"):
        zarrdask.to_zarr(bad, path, "b", commit="last")
    check(path, "a")
    assert list(zarrdask.open_group(path)) == ["a"]
