"""Dates of calendars that NumPy does not have: objects of cftime, as xarray decodes them."""

import cftime
import numpy as np
import pytest
import xarray as xr

import zarrdask.xarray
from tests.covering import for_each

pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata is currently")

HOURS = {"units": "hours since 1990-01-01", "dtype": "f8"}
DAYS = {"units": "days since 1990-01-01", "dtype": "i4"}


def dates(start, count, calendar="noleap"):
    all_dates = xr.date_range("2000-02-27", periods=start + count, calendar=calendar)
    return all_dates.values[start:]


@for_each("calendar", ["noleap", "360_day"])
@for_each(
    ("encoding", "name"),
    [({}, "time"), (HOURS, "seen"), (DAYS, "time"), (DAYS, "seen"), ({"dtype": "i2"}, "time")],
)
def test_dates_of_other_calendars_are_appended_and_replaced(calendar, encoding, name, tmp_path):
    def dataset(values):
        return xr.Dataset({"x": ("time", np.arange(len(values)))}, {name: ("time", values)})

    url, other = tmp_path / "a.zarr", tmp_path / "b.zarr"
    first, more = dataset(dates(0, 3, calendar)), dataset(dates(3, 2, calendar))
    options = {"encoding": {name: encoding}, "mode": "w"}
    first.zarrdask.to_zarr(url, **options)
    first.to_zarr(other, **options)
    more.zarrdask.to_zarr(url, append_dim="time")
    more.to_zarr(other, append_dim="time")
    dataset(more[name].values).zarrdask.to_zarr(url, region={"time": slice(3, 5)})
    opened, expected = xr.open_zarr(url), xr.open_zarr(other)
    xr.testing.assert_identical(opened, expected)
    assert opened[name].encoding["units"] == expected[name].encoding["units"]
    assert (opened[name].values == dates(0, 5, calendar)).all()


@for_each("encoding", [{}, {"units": "days since 1990-01-01", "dtype": "i4"}])
def test_dates_in_dask_arrays_are_appended(encoding):
    def dataset(values):
        return xr.Dataset({"seen": ("time", values)}).chunk(time=2)

    dataset(dates(0, 3)).zarrdask.to_zarr(store := {}, encoding={"seen": encoding})
    dataset(dates(3, 2)).zarrdask.to_zarr(store, append_dim="time")
    assert (zarrdask.xarray.open_zarr(store).seen.values == dates(0, 5)).all()


@pytest.mark.filterwarnings("ignore:Times can't be serialized faithfully")
def test_dates_that_the_stored_units_do_not_represent_are_refused():
    xr.Dataset({"seen": ("time", dates(0, 3))}).zarrdask.to_zarr(store := {})
    before = dict(store)
    hour = cftime.DatetimeNoLeap(2000, 3, 1, 5)
    for values in ([hour], [cftime.Datetime360Day(2000, 2, 30)]):
        with pytest.raises(ValueError, match=r"seen|day number"):
            xr.Dataset({"seen": ("time", values)}).zarrdask.to_zarr(store, append_dim="time")
        assert store == before


@for_each("calendar", ["noleap", "360_day"])
def test_an_append_to_stored_dates_without_elements_can_be_made(calendar):
    def dataset(values):
        return xr.Dataset({"x": ("time", np.arange(len(values)))}, {"time": values})

    dataset(dates(0, 3, calendar)).zarrdask.to_zarr(store := {})
    # A resumed append first looks for its own result: the dataset before it may be empty.
    dataset(dates(3, 3, calendar)).zarrdask.to_zarr(store, append_dim="time", resume=True)
    assert (zarrdask.xarray.open_zarr(store).time.values == dates(0, 6, calendar)).all()
    zarrdask.open_array(store, component="time", mode="r+").resize(0)
    zarrdask.open_array(store, component="x", mode="r+").resize(0)
    with pytest.raises(zarrdask.errors.SelectionError, match="region"):
        dataset(dates(0, 1, calendar)).zarrdask.to_zarr(store, region="auto")
    dataset(dates(0, 2, calendar)).zarrdask.to_zarr(store, append_dim="time")
    assert (zarrdask.xarray.open_zarr(store).time.values == dates(0, 2, calendar)).all()
