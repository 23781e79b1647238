"""Encodings that readers would take for others."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import zarrdask
from tests.covering import for_each
from zarrdask.errors import MetadataError
from zarrdask.xarray import open_zarr, to_zarr


@for_each("zarr_format", [2, 3])
@for_each(("values", "fill"), [([1.0, np.nan], -9.0), ([1.0, np.nan], np.nan), ([1, 2], 7)])
def test_a_fill_value_among_the_attributes_is_one_of_the_encoding(zarr_format, values, fill):
    ds = xr.Dataset({"a": ("x", values, {"_FillValue": fill, "units": "m"})})
    store = {}
    to_zarr(ds, store, zarr_format=zarr_format)
    to_zarr(ds, store, append_dim="x")
    to_zarr(ds, store, region={"x": slice(0, 2)})
    found = open_zarr(store).a
    np.testing.assert_array_equal(found, [*values, *values])
    np.testing.assert_array_equal(found.encoding["_FillValue"], fill)
    assert found.attrs == {"units": "m"}


def test_a_fill_value_other_than_the_stored_one_is_an_error():
    store = {}
    to_zarr(xr.Dataset({"a": ("x", [1.0], {"_FillValue": -9.0})}), store)
    before = dict(store)
    with pytest.raises(MetadataError, match="_FillValue"):
        to_zarr(xr.Dataset({"a": ("x", [1.0], {"_FillValue": -8.0})}), store, append_dim="x")
    both = xr.Dataset({"a": ("x", [1.0], {"_FillValue": -9.0})})
    with pytest.raises(MetadataError, match="_FillValue"):
        to_zarr(both, {}, encoding={"a": {"_FillValue": 0.0}})
    assert store == before


@for_each("dtype", ["datetime64[ms]", "<M8[s]", np.dtype("M8[ns]")])
def test_dates_have_units_or_a_data_type_of_dates(dtype):
    ds = xr.Dataset({"t": ("x", pd.date_range("2000", periods=3).values)})
    store = {}
    encoding = {"t": {"dtype": dtype, "units": "hours since 2000-01-01"}}
    with pytest.raises(MetadataError, match="not both"):
        to_zarr(ds, store, encoding=encoding)
    assert not store


def test_characters_whose_last_dimension_is_lost_are_a_warning():
    ds = xr.Dataset({"c": (("x", "y"), np.array([[b"a", b"b"]])), "s": ((), np.bytes_(b"a"))})
    store = {}
    with pytest.warns(UserWarning, match="'y'.*concat_characters"):
        to_zarr(ds, store)
    assert open_zarr(store, concat_characters=False).c.dims == ("x", "y")


@for_each("zarr_format", [2, 3])
def test_a_coordinate_that_is_added_stays_one(zarr_format):
    store = {}
    a = xr.Dataset({"a": ("x", np.ones(3)), "b": ("x", np.ones(3))})
    to_zarr(a, store, zarr_format=zarr_format)
    to_zarr(a.assign_coords(c=("x", np.ones(3))), store, mode="a")
    assert set(open_zarr(store).coords) == {"c"}
    to_zarr(a.assign_coords(c=("x", np.ones(3)), d=2.0), store, mode="a")
    to_zarr(a[["a"]], store, mode="a")
    assert set(open_zarr(store).coords) == {"c", "d"}
    to_zarr(a.set_coords("b"), store, mode="a")
    assert set(open_zarr(store).coords) == {"b", "c", "d"}
    to_zarr(a, store, mode="w")
    assert not open_zarr(store).coords
    assert "coordinates" not in zarrdask.open_group(store).attrs


def test_a_coordinate_that_arrays_mention_is_not_mentioned_again():
    store = {}
    ds = xr.Dataset({"a": ("x", np.ones(3))}, {"c": ("x", np.ones(3))})
    to_zarr(ds, store)
    to_zarr(ds.assign(b=ds.a), store, mode="a")
    assert "coordinates" not in zarrdask.open_group(store).attrs
    assert zarrdask.open_array(store, "b").attrs["coordinates"] == "c"


def test_long_doubles_are_written_to_v2():
    store = {}
    values = np.array([1, np.nan], np.longdouble)
    to_zarr(xr.Dataset({"a": ("x", values)}), store, zarr_format=2)
    np.testing.assert_array_equal(open_zarr(store).a, values)
