"""Processes that are killed in the middle of an append or an overwrite, and several at a time."""

import multiprocessing
import shutil
from pathlib import Path

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
    """Yield the place of a dataset after every third write, at which a process dies."""
    for number in range(0, 1000, 3):
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


def files(place):
    """Return the content of all files, also of those that no listing shows."""
    paths = [path for path in Path(place).rglob("*") if path.is_file()]
    return {path.relative_to(place): path.read_bytes() for path in paths}


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
        # The same append made again goes by what readers see, whatever the process left.
        if is_old:
            to_zarr(NEW, place, append_dim="time")
        xr.testing.assert_identical(opened(place), new)
        with open_zarr(place, chunks=None, consolidated=False) as own:
            xr.testing.assert_identical(own.load(), new)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_killed_write_of_a_new_dataset_leaves_none(tmp_path, zarr_format):
    before, complete = tmp_path / "before", tmp_path / "complete"
    before.mkdir()
    to_zarr(NEW, complete, zarr_format=zarr_format)
    for place in deaths(tmp_path, before, NEW, zarr_format=zarr_format):
        try:
            found = opened(place)
        except FileNotFoundError:
            to_zarr(NEW, place, zarr_format=zarr_format)
            assert files(place) == files(complete)
            found = opened(place)
        xr.testing.assert_identical(found, NEW.compute())


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
