"""What a Dask array is computed from is found, also if zarr-python reads it."""

import dask
import dask.array as da
import numpy as np
import pytest
import zarr

import zarrdask
from tests.graph import test_reads
from tests.graph.test_commit import OLD, read

place = test_reads.place


def of_zarr_python(place):
    return da.from_array(zarr.open_array(f"{place}/a"))


def of_dask(place):
    return da.from_zarr(f"{place}/a") + 1


@pytest.mark.parametrize("kind", [of_zarr_python, of_dask], ids=lambda kind: kind.__name__)
def test_it_is_found(place, kind):
    test_reads.check_found(place, kind(place))


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_an_array_of_zarr_python_is_known(tmp_path, scheduler):
    with dask.config.set(scheduler=scheduler):
        zarrdask.to_zarr(da.from_array(OLD, chunks=4), tmp_path, "g/a")
        x = da.from_zarr(f"{tmp_path}/g/a")
        zarrdask.to_zarr(x + 1, tmp_path, "g/a", overwrite=True)
        np.testing.assert_array_equal(read(tmp_path), OLD + 1)
