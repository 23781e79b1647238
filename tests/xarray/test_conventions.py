"""How dimensions, fill values and codecs are written down, and read."""

import json

import numpy as np
import pytest
import xarray as xr
from xarray.backends.zarr import FillValueCoder

import zarrdask
from tests.covering import for_each
from zarrdask.dtypes.cf_fill_values import decode_fill_value, encode_fill_value
from zarrdask.errors import MetadataError
from zarrdask.xarray import ZarrdaskBackendEntrypoint, conventions
from zarrdask.xarray.conventions import (
    MissingDimensionsError,
    dimensions,
    variable_encoding,
)


@for_each(
    ("value", "dtype"),
    [
        (1.5, "f4"),
        (-np.inf, "f8"),
        (-1, "i2"),
        (True, "?"),
        (1 + 2j, "c16"),
        (b"ab", "S2"),
        ("ab", "U2"),
    ],
)
def test_fill_values_are_encoded_as_xarray_does(value, dtype):
    dtype = np.dtype(dtype)
    encoded = encode_fill_value(value, dtype)
    if dtype.kind != "c":  # older releases of xarray do not encode complex numbers
        assert encoded == FillValueCoder.encode(value, dtype)
    assert decode_fill_value(json.loads(json.dumps(encoded)), dtype) == value


@pytest.mark.parametrize("written", ["NaN", float("nan")])
def test_a_fill_value_that_others_wrote_as_it_is(written):
    assert np.isnan(decode_fill_value(written, np.dtype("f4")))


@pytest.mark.parametrize(("value", "dtype"), [("x!", "f4"), ({}, "i4"), ([1], "c8")])
def test_what_is_no_fill_value_is_an_error_that_names_it(value, dtype):
    with pytest.raises(MetadataError, match="_FillValue"):
        decode_fill_value(value, np.dtype(dtype))


def nczarr(dimrefs, shape=(2, 3), *, member=True, **others):
    """Return the documents of an array by netCDF-C, in .zarray or, by later releases, .zattrs."""
    description = {"dimrefs" if member else "dimension_references": dimrefs, **others}
    store = {}
    zarrdask.create_array(store, "a", shape=shape, dtype="i4", zarr_format=2)[...] = 5
    name = "a/.zarray" if member else "a/.zattrs"
    document = json.loads(store.get(name, b"{}"))
    document["_NCZARR_ARRAY" if member else "_nczarr_array"] = description
    store[name] = json.dumps(document).encode()
    attributes = {"_NCProperties": "version=2", "title": "t"}
    store[".zattrs"] = json.dumps(attributes).encode()
    return store


@pytest.mark.parametrize("member", [True, False])
def test_dimension_references_of_nczarr(member):
    store = nczarr(["/group/y", "/x"], member=member)
    ds = xr.open_dataset(store, engine=ZarrdaskBackendEntrypoint)
    assert ds.a.dims == ("y", "x")
    assert (ds.attrs, ds.a.attrs) == ({"title": "t"}, {})


def test_a_scalar_of_nczarr():
    store = nczarr([], (1,), storage="scalar")
    ds = xr.open_dataset(store, engine=ZarrdaskBackendEntrypoint)
    assert ds.a.dims == ()
    assert ds.a == 5


def metadata(zarr_format=3, shape=(2, 3), **options):
    options |= {"shape": shape, "dtype": "i4", "zarr_format": zarr_format}
    return zarrdask.create_array({}, **options).metadata


@pytest.mark.parametrize("names", [None, ["y", None]])
def test_an_array_without_names_is_an_error(names):
    with pytest.raises(MissingDimensionsError, match="dimension_names"):
        dimensions(metadata(dimension_names=names))


def test_an_array_without_axes_needs_no_names():
    assert dimensions(metadata(shape=())) == ()


@pytest.mark.parametrize("zarr_format", [2, 3, "v3-draft"])
def test_names_are_not_shown_as_an_attribute(zarr_format):
    found = metadata(zarr_format, dimension_names=["y", "x"], attributes={"a": 1})
    assert dimensions(found) == ("y", "x")
    assert conventions.variable_attributes(found, mask=False) == {"a": 1}


def test_v3_arrays_that_have_their_names_in_an_attribute():
    found = metadata(attributes={"_ARRAY_DIMENSIONS": ["y", "x"]})
    assert dimensions(found) == ("y", "x")
    assert conventions.variable_attributes(found, mask=False) == {}


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_encodings_are_accepted_where_arrays_are_created(zarr_format):
    options = {
        "filters": [{"id": "delta", "dtype": "<i4"}] if zarr_format == 2 else [],
        "compressors": ["zstd"],
    }
    array = zarrdask.create_array(
        {}, shape=(8, 8), dtype="<i4", chunks=(4, 4), zarr_format=zarr_format, **options
    )
    encoding = variable_encoding(array, ("y", "x"), mask=False)
    again = zarrdask.create_array(
        {},
        shape=(8, 8),
        dtype="<i4",
        zarr_format=zarr_format,
        **{name: encoding[name] for name in ("chunks", "shards", "filters", "compressors")},
    )
    assert again.metadata.codecs == array.metadata.codecs
    assert encoding["preferred_chunks"] == {"y": 4, "x": 4}
    assert ("fill_value" in encoding) is (zarr_format == 3)


def test_the_codecs_of_shards_are_those_of_their_chunks():
    array = zarrdask.create_array(
        {}, shape=(8,), dtype="i4", chunks=2, shards=4, compressors=["gzip"]
    )
    encoding = variable_encoding(array, ("x",), mask=False)
    assert [codec["name"] for codec in encoding["compressors"]] == ["gzip"]
    assert encoding["serializer"]["name"] == "bytes"
    assert (encoding["chunks"], encoding["shards"]) == ((2,), (4,))
    assert encoding["preferred_chunks"] == {"x": 4}
