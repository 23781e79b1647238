"""Datasets with other blocks, which are not stored: ``ds.zarrdask.rechunked``."""

import dask
import pytest
import xarray as xr
from xarray.testing import assert_identical

from tests.xarray.samples import DAYS, write_sample
from zarrdask.errors import MetadataError
from zarrdask.storage.memory import MemoryStore
from zarrdask.xarray import open_zarr


@pytest.fixture(params=[None, {}])
def dataset(request):
    store = MemoryStore()
    write_sample(store)
    return open_zarr(store, chunks=request.param)


def test_a_dataset(dataset):
    with dask.config.set(scheduler="sync"):
        found = dataset.zarrdask.rechunked(time=-1, y=2, temp=MemoryStore())
        assert_identical(found.compute(), dataset.compute())
    assert found.t.chunks[0] == (DAYS,)
    assert set(found.t.chunks[1]) <= {1, 2}


def test_a_data_array_and_a_tree(dataset):
    with dask.config.set(scheduler="sync"):
        found = dataset.t.zarrdask.rechunked({"time": -1, "y": 2}, temp=MemoryStore())
        assert found.chunks[0] == (DAYS,)
        assert_identical(found.compute(), dataset.t.compute())
        tree = xr.DataTree.from_dict({"/": xr.Dataset(attrs={"a": 1}), "/b": dataset})
        found = tree.zarrdask.rechunked(time=-1, temp=MemoryStore())
        assert found["b/t"].chunks[0] == (DAYS,)
        assert_identical(found.compute(), tree.compute())


def test_a_dimension_that_is_not_there(dataset):
    with pytest.raises(MetadataError, match=r"chunks.*lat.*time"):
        dataset.zarrdask.rechunked(lat=3)
