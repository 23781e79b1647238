"""Datasets whose arrays are changed after they were opened."""

import pickle

import numpy as np
import pytest
import xarray as xr

import zarrdask
from tests.xarray.writes import days
from zarrdask.arrays.nodes.array import chunks_of
from zarrdask.errors import StoreError
from zarrdask.xarray import open_zarr, to_zarr
from zarrdask.xarray.version import opened_version


@pytest.mark.parametrize("chunks", [None, {}])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_reading_an_array_that_was_replaced_since_is_an_error(tmp_path, zarr_format, chunks):
    to_zarr(days(4, chunks=2), tmp_path / "a", zarr_format=zarr_format)
    opened = open_zarr(tmp_path / "a", chunks=chunks)
    encoding = {"t": {"chunks": (1, 5, 6), "dtype": "f4"}}
    to_zarr(days(4), tmp_path / "a", mode="w", zarr_format=zarr_format, encoding=encoding)
    for dataset in (opened, pickle.loads(pickle.dumps(opened))):
        with pytest.raises(StoreError, match="replaced or removed") as caught:
            dataset.t.load()
        assert caught.value.key.endswith("/a/t")
    xr.testing.assert_identical(open_zarr(tmp_path / "a", chunks=None).load(), days(4))


@pytest.mark.parametrize("chunks", [None, {}])
def test_an_array_that_got_longer_is_read_as_it_was(tmp_path, chunks):
    to_zarr(days(3, chunks=2), tmp_path / "a")
    opened = open_zarr(tmp_path / "a", chunks=chunks)
    to_zarr(days(2, 3), tmp_path / "a", append_dim="time")
    zarrdask.open_array(tmp_path / "a", "t", mode="r+").attrs["note"] = "later"
    np.testing.assert_array_equal(opened.t, days(3).t)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_version_is_that_of_the_document_of_the_array(tmp_path, zarr_format):
    z = zarrdask.create_array(
        tmp_path / "a", shape=4, dtype="i4", attributes={"unit": "K"}, zarr_format=zarr_format
    )
    before = opened_version(chunks_of(z))
    z.resize(5)
    assert before not in ("", opened_version(chunks_of(z)))
