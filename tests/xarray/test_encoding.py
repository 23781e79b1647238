"""Encodings of variables that are written."""

import json

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import zarrdask
from tests.xarray.writes import days
from tests.xarray.written import loaded
from zarrdask.errors import UnsupportedError
from zarrdask.xarray import to_zarr


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_encodings_come_back(zarr_format):
    store, again = {}, {}
    encoding = {
        "t": {
            "chunks": (3, 5, 2),
            "dtype": "i4",
            "_FillValue": -9,
            "scale_factor": 0.5,
            "compressors": "gzip",
        },
        "time": {"units": "hours since 1999-01-01", "calendar": "standard", "dtype": "i4"},
    }
    to_zarr(days(5), store, encoding=encoding, zarr_format=zarr_format)
    first = loaded(store)
    to_zarr(first, again, zarr_format=zarr_format)
    second = loaded(again)
    for name in first.variables:
        assert repr(first[name].encoding) == repr(second[name].encoding), name
    assert second.t.encoding["chunks"] == (3, 5, 2)
    assert second.time.encoding["units"] == "hours since 1999-01-01"
    raw = zarrdask.open_array(again, "t")
    assert raw.dtype == "i4"
    assert raw.metadata.codecs[-1].name == "gzip"
    xr.testing.assert_identical(second, days(5).compute())


def test_shards_rectilinear_grids_and_codecs_by_name():
    store = {}
    ds = xr.Dataset({"a": ("x", da.arange(9, chunks=((4, 2, 3),))), "b": ("x", np.arange(9))})
    encoding = {"b": {"chunks": (2,), "shards": (4,), "codecs": ["bz2"]}}
    to_zarr(ds, store, grid="rectilinear", encoding=encoding)
    group = zarrdask.open_group(store)
    assert group["a"].chunks == ((4, 2, 3),)
    assert (group["b"].chunks, group["b"].shards) == ((2,), (4,))
    xr.testing.assert_identical(loaded(store), ds.compute())


def test_chunks_by_dimension_leave_the_others_as_the_blocks_are():
    store = {}
    x = da.zeros((8, 6), chunks=(4, 3))
    ds = xr.Dataset({"a": (("y", "x"), x), "b": (("y", "x"), np.ones((8, 6)))})
    encoding = {"a": {"chunks": {"y": 2}, "shards": {"x": -1}}, "b": {"chunks": {"y": 2}}}
    to_zarr(ds, store, encoding=encoding)
    group = zarrdask.open_group(store)
    assert (group["a"].chunks, group["a"].shards) == ((2, 3), (2, 6))
    assert group["b"].chunks == (2, 6)


def test_v2_arrays_have_no_fill_value_that_would_mask_elements():
    store = {}
    ds = xr.Dataset({"a": ("x", [0, 1]), "s": ("x", np.array(["", "b"], object))})
    to_zarr(ds, store, zarr_format=2)
    assert json.loads(store["a/.zarray"])["fill_value"] is None
    xr.testing.assert_identical(loaded(store), ds)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_nan_as_a_missing_value_comes_back(zarr_format):
    store = {}
    ds = xr.Dataset({"a": ("x", [0.0, np.nan])})
    ds.a.encoding.update(missing_value=np.nan, _FillValue=np.nan)
    to_zarr(ds, store, zarr_format=zarr_format)
    xr.testing.assert_identical(loaded(store), ds)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("chunks", [None, {"x": 2}])
def test_texts_of_any_length_of_numpy(zarr_format, chunks):
    text = getattr(np.dtypes, "StringDType", lambda: object)()
    ds = xr.Dataset({"a": ("x", np.array(["a", "", "ccc"], text))})
    store, again = {}, {}
    to_zarr(ds.chunk(chunks) if chunks else ds, store, zarr_format=zarr_format)
    more = xr.Dataset({"a": ("x", np.array(["much longer"], text))})
    to_zarr(more.chunk(chunks) if chunks else more, store, append_dim="x")
    expected = ["a", "", "ccc", "much longer"]
    assert loaded(store).a.values.tolist() == expected
    # As xarray's engine reads it: with the encoding of a stored variable.
    found = loaded(store)
    found["a"] = found.a.copy(data=found.a.values.astype(text))
    found.a.encoding["dtype"] = np.dtype(text)
    to_zarr(found, again, zarr_format=zarr_format)
    assert loaded(again).a.values.tolist() == expected


@pytest.mark.parametrize(
    "values", [pd.period_range("2000", periods=2), pd.array([1, None], dtype="Int64")]
)
def test_data_types_of_pandas_have_to_be_converted(values):
    with pytest.raises(UnsupportedError, match=r"variable 'v'.*convert the variable"):
        to_zarr(xr.Dataset({"v": ("x", values)}), store := {})
    assert not store
