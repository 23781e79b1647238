"""The casts of encodings: what does not fit is an error, before anything is written."""

import dask
import numpy as np
import pytest
import xarray as xr

import zarrdask.xarray
from tests.covering import for_each
from zarrdask.errors import CodecError

pytestmark = pytest.mark.filterwarnings("ignore:saving variable")


def data(values, **encoding):
    dataset = xr.Dataset({"v": ("x", np.asarray(values))})
    dataset.v.encoding = encoding
    return dataset


def read(store):
    return zarrdask.xarray.open_zarr(store, chunks=None).v.values


PACKED = {"dtype": "i2", "scale_factor": 0.1, "_FillValue": -999}
UNSIGNED = {"dtype": "i1", "_Unsigned": "true", "_FillValue": -1}


@for_each(
    ("encoding", "value"),
    [
        (PACKED, 1e6),
        (UNSIGNED, 1e6),
        (UNSIGNED, -1.0),
        ({"dtype": "u1"}, 300.0),
        ({"dtype": "i4"}, np.nan),
        ({"dtype": "f4"}, 1e300),
        ({"dtype": "U2"}, "abcd"),
        ({"dtype": "S2"}, "abcd"),
        ({"dtype": "i2", "units": "days since 1970-01-01"}, np.datetime64("2200-01-01", "s")),
    ],
)
@for_each("zarr_format", [2, 3])
def test_what_does_not_fit_an_encoding_is_an_error(zarr_format, encoding, value):
    new = data([value])
    store = {}
    options = {"zarr_format": zarr_format, "encoding": {"v": encoding}}
    with pytest.raises(CodecError, match="'v'"):
        zarrdask.xarray.to_zarr(new, store, **options)
    assert not store


@for_each("way", [{"append_dim": "x"}, {"region": {"x": slice(0, 1)}}, {"mode": "a"}, {}])
@for_each("casting", [None, "safe"])
def test_values_that_do_not_fit_the_stored_packing_change_nothing(way, casting):
    store = {}
    zarrdask.xarray.to_zarr(data([1.0]), store, encoding={"v": PACKED})
    before = dict(store)
    options = way or {"mode": "r+"}
    for values in (data([1e6]), data([1e6]).chunk()):
        with dask.config.set({"zarrdask.casting": casting}), pytest.raises(CodecError):
            zarrdask.xarray.to_zarr(values, store, **options)
        assert {key: store[key] for key in before} == before or values.v.chunks
    with dask.config.set({"zarrdask.casting": casting}):
        zarrdask.xarray.to_zarr(data([7.0]), store, **options)
        zarrdask.xarray.to_zarr(data([np.nan]), store, region={"x": slice(0, 1)})
    assert np.isnan(read(store)[0])


def test_packed_values_are_those_of_xarray():
    values = [0.05, 7.25, np.nan, 200.0]
    for encoding in (PACKED, UNSIGNED, {"dtype": "f4"}):
        for new in (data(values), data(values).chunk(x=2)):
            zarrdask.xarray.to_zarr(new, store := {}, encoding={"v": encoding})
            expected = xr.conventions.encode_cf_variable(data(values, **encoding).v.variable)
            found = zarrdask.open_array(store, "v")[...]
            np.testing.assert_array_equal(found, expected.values, strict=True)


@for_each("dtype", ["i2", "u4", "f4", "i8"])
@for_each("encoding", [{}, {"_FillValue": 999}])
def test_units_of_times_that_are_not_chosen_are_those_of_the_values(encoding, dtype):
    times = np.array(["2000-01-01T00", "2000-02-01T01"], "M8[ns]")
    for values in (times, times - times[0]):
        encoding = {**encoding, "dtype": dtype}
        zarrdask.xarray.to_zarr(data(values), store := {}, encoding={"v": encoding})
        stored = zarrdask.xarray.open_zarr(store, chunks=None, decode_cf=False)
        # xarray before 2025.10 does not decode unsigned numbers to times.
        numbers = stored.assign(v=stored.v.astype("f8", keep_attrs=True))
        assert (xr.decode_cf(numbers, decode_timedelta=True).v.values == values).all()
        assert zarrdask.open_array(store, "v").dtype == dtype


def test_numpy_packs_if_the_setting_says_so():
    store = {}
    with dask.config.set({"zarrdask.casting": "numpy"}):
        zarrdask.xarray.to_zarr(data([300.0]), store, encoding={"v": {"dtype": "u1"}})
    assert read(store).tolist() == [44]


@for_each("dtype", ["U2", "S2"])
def test_inherited_lengths_of_texts_do_not_cut_longer_ones_off(dtype):
    texts = np.array(["B1", "a_long_name"]).astype(dtype[0] + "11")
    for values in (texts, texts.astype(object)):
        zarrdask.xarray.to_zarr(data(values, dtype=np.dtype(dtype)), store := {})
        assert read(store).astype(texts.dtype).tolist() == texts.tolist()


def test_numbers_other_than_0_and_1_are_no_bools():
    zarrdask.xarray.to_zarr(data([True]), store := {})
    for values in (data([5]), data([5]).chunk(), data([0.5])):
        with pytest.raises(CodecError):
            zarrdask.xarray.to_zarr(values, store, append_dim="x")
    zarrdask.xarray.to_zarr(data([0]), store, append_dim="x")
    assert read(store).tolist() == [True, False]
