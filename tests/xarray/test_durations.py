"""Durations that are written to stored ones."""

import dask
import numpy as np
import pytest
import xarray as xr

import zarrdask.xarray
from tests.covering import for_each
from zarrdask.errors import ZarrdaskError


def durations(*counts, unit="h", resolution="ns"):
    values = np.array(counts, f"m8[{unit}]").astype(f"m8[{resolution}]")
    return xr.Dataset({"td": ("n", values), "v": ("t", [1.0])})


def read(store):
    return zarrdask.xarray.open_zarr(store, chunks=None, decode_timedelta=True).td.values


WAYS = {
    "append": {"append_dim": "n"},
    "region": {"region": {"n": slice(0, 1)}},
    "a": {"mode": "a"},
    "r+": {"mode": "r+"},
    "static": {"append_dim": "t"},
}


def write(new, store, way):
    new = new[["td"]] if way in ("append", "region") and "v" in new else new
    zarrdask.xarray.to_zarr(new, store, **WAYS[way])


@for_each("way", WAYS)
@for_each("zarr_format", [2, 3])
def test_durations_are_stored_in_the_stored_units_or_not_at_all(zarr_format, way):
    store = {}
    zarrdask.xarray.to_zarr(durations(24), store, zarr_format=zarr_format)
    before = dict(store)
    with pytest.raises(ZarrdaskError, match="td"):
        write(durations(30), store, way)
    assert store == before
    write(durations(48), store, way)
    assert read(store)[-1] == np.timedelta64(48, "h")


@for_each(("old", "new"), [("ns", "us"), ("us", "ns"), ("s", "ns"), ("ns", "s")])
def test_the_resolution_of_new_durations_may_differ_if_nothing_is_lost(old, new):
    for chunked in (False, True):
        store = {}
        zarrdask.xarray.to_zarr(durations(1, resolution=old), store)
        added = durations(3, resolution=new)[["td"]]
        zarrdask.xarray.to_zarr(added.chunk() if chunked else added, store, append_dim="n")
        assert read(store)[-1] == np.timedelta64(3, "h")
    fine = durations(1500, unit="ms")[["td"]]
    with pytest.raises(ZarrdaskError, match="td"):
        zarrdask.xarray.to_zarr(fine, store, append_dim="n")


def test_floats_and_fill_values_are_those_of_the_stored_durations():
    for encoding in ({"dtype": "f8"}, {"dtype": "i4", "_FillValue": -1}):
        encoding = {"td": {"units": "minutes", **encoding}}
        zarrdask.xarray.to_zarr(durations(1), store := {}, encoding=encoding)
        zarrdask.xarray.to_zarr(durations(90, "NaT", unit="m")[["td"]], store, append_dim="n")
        np.testing.assert_array_equal(read(store), np.array([60, 90, "NaT"], "m8[m]"))


@for_each("way", ["append", "region", "a"])
def test_numbers_durations_and_times_do_not_mix(way):
    kinds = {
        "numbers": xr.Dataset({"td": ("n", [3])}),
        "lengths": xr.Dataset({"td": ("n", [3], {"units": "m"})}),
        "durations": durations(24)[["td"]],
        "times": xr.Dataset({"td": ("n", np.array(["2000-01-01"], "M8[ns]"))}),
    }
    numbers = {"numbers", "lengths"}
    for old, first in kinds.items():
        for new, second in kinds.items():
            if old != new and not {old, new} <= numbers:
                zarrdask.xarray.to_zarr(first, store := {})
                before = dict(store)
                unchecked = dask.config.set({"zarrdask.append-checks": "off"})
                with unchecked, pytest.raises(ZarrdaskError, match="td"):
                    write(second, store, way)
                assert store == before


def test_undecoded_durations_are_appended_as_numbers():
    zarrdask.xarray.to_zarr(durations(24), store := {})
    raw = zarrdask.xarray.open_zarr(store, chunks=None, decode_timedelta=False)[["td"]].load()
    zarrdask.xarray.to_zarr(raw, store, append_dim="n")
    assert read(store).tolist() == durations(24, 24).td.values.tolist()


def test_a_lead_time_is_not_taken_for_another_one():
    def forecast(day, hours):
        lead = np.timedelta64(hours, "h").astype("m8[ns]")
        time = np.array([f"2000-01-0{day}"], "M8[ns]")
        return xr.Dataset({"v": ("time", [1.0])}, {"time": time, "lead": ((), lead)})

    zarrdask.xarray.to_zarr(forecast(1, 24), store := {})
    with pytest.raises(ZarrdaskError, match="lead"):
        zarrdask.xarray.to_zarr(forecast(2, 6), store, append_dim="time")
    zarrdask.xarray.to_zarr(forecast(2, 48), store, append_dim="time")


def test_times_without_elements_have_the_same_units_in_dask_arrays():
    for dtype in ("m8[ns]", "m8[s]", "M8[ns]"):
        data = xr.Dataset({"d": (("t", "z"), np.zeros((3, 0), dtype))})
        encoded = []
        for dataset in (data, data.chunk(t=2)):
            dataset.zarrdask.to_zarr(store := {})
            encoded.append(zarrdask.open_group(store)["d"])
        in_memory, blocks = encoded
        assert dict(blocks.attrs) == dict(in_memory.attrs)
        assert blocks.dtype == in_memory.dtype
        assert blocks.chunks[0] == 2
