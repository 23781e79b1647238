"""Writes that are computed later look for the array that they expect before they store chunks."""

import shutil

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.storage.latency import FarStore
from zarrdask.errors import NodeNotFoundError, StoreError
from zarrdask.parallel.execution import expected_array


@pytest.fixture(autouse=True)
def in_this_thread(setting):
    setting({"scheduler": "sync"})


def later(place, how):
    """Return a write of 1 to 9 to an array that exists now."""
    x = da.arange(1, 10, chunks=4)
    if how == "region":
        zarrdask.create_array(place, shape=9, chunks=4, dtype="i8")
        return zarrdask.to_zarr(x, place, region=np.s_[:9], compute=False)
    return zarrdask.to_zarr(x, place, compute=False, return_stored=how == "returned")


def replace(place):
    zarrdask.create_array(place, shape=9, chunks=4, dtype="f8", overwrite=True)[...] = 0.5


CHANGES = {
    "is removed": lambda place: zarrdask.create_group(place, overwrite=True),
    "is replaced": replace,
    "is shorter": lambda place: zarrdask.open_array(place, mode="r+").resize(5),
}


@for_each("change", CHANGES)
@for_each("how", ["new", "region", "returned"])
@for_each("kind", [dict, FarStore, None])
@pytest.mark.slow
def test_nothing_is_stored_in_an_array_that_was_changed_meanwhile(tmp_path, kind, how, change):
    place = tmp_path / f"{how} {change}" if kind is None else kind()
    write = later(place, how)
    CHANGES[change](place)
    error = NodeNotFoundError if change == "is removed" else StoreError
    with pytest.raises(error, match=r"removed|was replaced|was resized"):
        dask.compute(write)
    if change == "is replaced":
        np.testing.assert_array_equal(zarrdask.open_array(place), 0.5)
    elif change == "is shorter":
        assert zarrdask.open_array(place).nchunks_stored() == 0


@for_each("how", ["new", "region"])
@pytest.mark.slow
def test_the_array_is_looked_for_each_time_that_the_write_is_computed(tmp_path, how):
    for place in (tmp_path / how, FarStore()):
        write = later(place, how)
        for _ in range(2):
            dask.compute(write)
            np.testing.assert_array_equal(zarrdask.open_array(place), range(1, 10))
        zarrdask.open_array(place, mode="r+").attrs["a"] = 1
        dask.compute(write)
        replace(place)
        with pytest.raises(StoreError, match="was replaced"):
            dask.compute(write)


def test_a_directory_that_was_removed_is_not_made_again(tmp_path):
    write = later(tmp_path / "a", "new")
    shutil.rmtree(tmp_path / "a")
    with pytest.raises(NodeNotFoundError):
        dask.compute(write)
    assert not (tmp_path / "a" / "c").exists()


@for_each("how", ["new", "region", "returned"])
def test_elements_that_were_appended_meanwhile_are_kept(tmp_path, how):
    write = later(tmp_path / how, how)
    zarrdask.open_array(tmp_path / how, mode="r+").append([7, 8])
    if how == "region":
        dask.compute(write)
    else:
        with pytest.raises(StoreError, match="was resized"):
            dask.compute(write)
    assert zarrdask.open_array(tmp_path / how)[9:].tolist() == [7, 8]


def test_a_process_that_does_not_run_the_last_task_looks_for_the_array_again(monkeypatch):
    time, place = [1000.0], FarStore()
    monkeypatch.setattr(expected_array, "clock", lambda: time[0])
    monkeypatch.setattr(expected_array.ExpectedArray, "forget", lambda _: None)
    write = later(place, "new")
    dask.compute(write)
    replace(place)
    time[0] += 61
    with pytest.raises(StoreError, match="was replaced"):
        dask.compute(write)
