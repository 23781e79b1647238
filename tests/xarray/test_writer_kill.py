"""Processes that are killed in the middle of an append or an overwrite, and several at a time."""

import multiprocessing
import shutil

import numpy as np
import pytest
import xarray as xr

from tests.xarray.writes import DEAD, append, days, together, write_and_die, write_regions
from zarrdask.xarray import open_zarr, to_zarr

pytestmark = pytest.mark.stress

OLD, NEW = days(3, chunks=2), days(4, 3, chunks=2)
PROCESSES = multiprocessing.get_context("forkserver")


def run(target, *args):
    process = PROCESSES.Process(target=target, args=args)
    process.start()
    return process


def deaths(tmp_path, before, dataset, **options):
    """Yield the place of a dataset after each write at which a process can die."""
    for number in range(1000):
        place = str(tmp_path / f"{number}.zarr")
        shutil.copytree(before, place)
        process = run(write_and_die, number, place, dataset, options)
        process.join()
        yield place
        if process.exitcode == 0:
            assert number > 8, "the process had something to write"
            return
        assert process.exitcode == DEAD
        shutil.rmtree(place)


def opened(place):
    """Return a dataset as a reader finds it."""
    with open_zarr(place, chunks=None) as found:
        return found.load()


@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore:.*was interrupted")
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_killed_append_leaves_the_dataset_complete(tmp_path, zarr_format):
    before = str(tmp_path / "before")
    to_zarr(OLD, before, zarr_format=zarr_format)
    old, new = OLD.compute(), together(OLD, NEW)
    for place in deaths(tmp_path, before, NEW, append_dim="time"):
        found = opened(place)
        is_old = found.sizes["time"] == old.sizes["time"]
        xr.testing.assert_identical(found, old if is_old else new)
        # What the process left does not show in an append that comes later.
        with open_zarr(place, chunks=None, consolidated=False, drop_variables=["t", "n"]) as times:
            length = times.sizes["time"]
        to_zarr(days(2, length), place, append_dim="time")
        parts = [OLD, days(2, 3)] if length == old.sizes["time"] else [OLD, NEW, days(2, 7)]
        xr.testing.assert_identical(opened(place), together(*parts))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_killed_overwrite_leaves_the_old_dataset(tmp_path, zarr_format):
    before = str(tmp_path / "before")
    to_zarr(OLD, before, zarr_format=zarr_format)
    for place in deaths(tmp_path, before, NEW, mode="w", zarr_format=zarr_format):
        found = opened(place)
        is_old = found.n[0] == 0
        xr.testing.assert_identical(found, (OLD if is_old else NEW).compute())


def test_of_two_processes_that_append_one_follows_the_other(tmp_path):
    place, barrier = str(tmp_path / "a.zarr"), PROCESSES.Barrier(2)
    to_zarr(days(1), place)
    writers = [run(append, place, start, 5, barrier) for start in (100, 200)]
    for process in writers:
        process.join()
        assert process.exitcode == 0
    found = opened(place)
    assert sorted(found.n.values) == [0, *range(100, 105), *range(200, 205)]
    expected = together(*(days(1, int(day)) for day in found.n.values))
    xr.testing.assert_identical(found, expected)


def test_two_processes_write_regions_that_coordinates_tell(tmp_path):
    place, barrier = str(tmp_path / "a.zarr"), PROCESSES.Barrier(2)
    # Chunks of three days: both processes write parts of the same chunks.
    to_zarr(days(8), place, encoding={"t": {"chunks": (3, 5, 6)}, "n": {"dtype": "f8"}})
    writers = [run(write_regions, place, range(at, 8, 2), barrier) for at in (0, 1)]
    for process in writers:
        process.join()
        assert process.exitcode == 0
    np.testing.assert_array_equal(opened(place).t, days(8).t + 0.5)
