"""How dimensions, fill values and codecs are written down, and read."""

import json

import pytest
import xarray as xr

import zarrdask
from zarrdask.xarray import ZarrdaskBackendEntrypoint, conventions
from zarrdask.xarray.conventions import (
    MissingDimensionsError,
    dimensions,
    variable_encoding,
)


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


NO_NUMBERS = ["0.1", "ten", [0.1, 0.2], {"a": 1}, True]


@pytest.mark.parametrize("name", ["scale_factor", "add_offset"])
def test_an_attribute_that_unpacks_values_must_be_a_number(name):
    store = {}
    z = zarrdask.create_array(store, "t", shape=2, dtype="i2", dimension_names=["x"])
    for value in NO_NUMBERS:
        z.attrs[name] = value
        with pytest.raises(zarrdask.errors.MetadataError, match=rf"t: {name}: this must be a num"):
            zarrdask.xarray.open_zarr(store)
        assert zarrdask.xarray.open_zarr(store, mask_and_scale=False)["t"].attrs[name] == value
        assert zarrdask.xarray.open_zarr(store, mask_and_scale={"t": False})["t"].dtype == "i2"
    for value in (0.5, 2, [0.5]):
        z.attrs[name] = value
        assert zarrdask.xarray.open_zarr(store)["t"].values.shape == (2,)


@pytest.mark.parametrize("name", ["scale_factor", "add_offset", "_FillValue", "missing_value"])
def test_an_encoding_of_numbers_has_numbers(name):
    ds = xr.Dataset({"t": ("x", [1.0, 2.0])})
    with pytest.raises(zarrdask.errors.MetadataError, match=f"'t': encoding: {name}: this must"):
        zarrdask.xarray.to_zarr(ds, {}, encoding={"t": {"dtype": "i2", name: "0.1"}})
