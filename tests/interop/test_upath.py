"""Paths of universal_pathlib as input."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from upath import UPath

import zarrdask
from zarrdask.xarray import open_zarr, to_zarr


@pytest.fixture(params=["{}", "file://{}", "memory:/{}"])
def root(request, tmp_path):
    return UPath(request.param.format(tmp_path))


def test_arrays_are_written_read_copied_and_opened_by_path(root):
    zarrdask.to_zarr(da.arange(6, chunks=2), root / "a")
    zarrdask.append(np.array([6, 7]), root / "a")
    zarrdask.copy(root / "a", root / "b")
    assert zarrdask.verify(root / "b").ok
    assert zarrdask.from_zarr(root / "b").compute().tolist() == list(range(8))
    assert (root / "b" / "c" / "0").exists()


def test_a_dataset_is_written_and_read_by_path(root):
    ds = xr.Dataset({"t": ("x", np.arange(3))})
    to_zarr(ds, root / "d")
    xr.testing.assert_identical(open_zarr(root / "d").compute(), ds)
    with xr.open_dataset(root / "d", engine="zarrdask") as found:
        xr.testing.assert_identical(found, ds)


def test_the_error_of_a_missing_node_names_the_path(root):
    with pytest.raises(zarrdask.errors.NodeNotFoundError, match="absent"):
        zarrdask.open_array(root / "absent")
