"""Many groups as one dataset."""

import re

import numpy as np
import pytest
import xarray as xr

import zarrdask
import zarrdask.xarray as zx
from zarrdask.errors import MetadataError, NodeNotFoundError

LAT = np.linspace(0, 1, 3)


def day(number, hours=4, **attributes):
    """Return the dataset of a day, with times that count from its own first hour."""
    time = np.datetime64("2020-01-01", "ns") + np.arange(hours) * np.timedelta64(1, "h")
    time = time + np.timedelta64(hours * number, "h")
    values = np.arange(hours * 3.0).reshape(hours, 3) + 100 * number
    return xr.Dataset(
        {"t": (("time", "lat"), values, {"units": "K"}), "u": (("time", "lat"), -values)},
        {"time": time, "lat": LAT, "height": 2.0},
        {"history": f"day {number}", "title": "model", **attributes},
    )


def stored(tmp_path, datasets, zarr_format=3, **options):
    paths = []
    for number, dataset in enumerate(datasets):
        paths.append(str(tmp_path / f"{number}.zarr"))
        dataset.zarrdask.to_zarr(paths[-1], zarr_format=zarr_format, **options)
    return paths


@pytest.mark.slow
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("consolidated", [False, True])
def test_the_dataset_is_that_of_xarray(tmp_path, zarr_format, consolidated):
    days = [day(number) for number in range(4)]
    stored(tmp_path, days, zarr_format, consolidated=consolidated)
    dataset = zx.open_many(f"{tmp_path}/*.zarr", "time")
    assert len(dataset.t.data.dask.layers) == 1
    expected = xr.concat(days, "time", data_vars="minimal", coords="minimal", compat="override")
    xr.testing.assert_identical(dataset.compute(), expected.assign_attrs(days[0].attrs))


@pytest.mark.slow
def test_runs_are_stacked_and_lead_times_are_joined(tmp_path):
    paths = stored(tmp_path, [day(number) for number in range(2)])
    runs = [[paths[0], paths[1]], [paths[0], paths[1]]]
    dataset = zx.open_many(runs, "time", {"run": [7, 8]})
    assert dict(dataset.sizes) == {"run": 2, "time": 8, "lat": 3}
    assert dataset.run.values.tolist() == [7, 8]
    np.testing.assert_array_equal(dataset.t[1].values, dataset.t[0].values)
    assert dataset.time.dims == ("time",)


def test_other_coordinates_must_be_equal(tmp_path):
    other = day(1).assign_coords(lat=LAT + 1)
    paths = stored(tmp_path, [day(0), other])
    with pytest.raises(MetadataError, match=r"1\.zarr/lat"):
        zx.open_many(paths, "time")
    assert zx.open_many(paths, "time", coords="first").lat.values.tolist() == LAT.tolist()


def call_of_xarray(urls, *args):
    """Return what the call returns that the error of `open_many` has."""
    with pytest.raises((MetadataError, NodeNotFoundError)) as error:
        zx.open_many(urls, *args)
    call = re.search(r"zarrdask\.xarray\.open_mfdataset\(.*?\)(?=;|$)", str(error.value))
    return eval(call[0], {"zarrdask": zarrdask, "urls": urls})


def test_packed_values_must_be_packed_alike(tmp_path):
    packed = [day(n).assign(t=day(n).t.assign_attrs({"scale_factor": 0.5 + n})) for n in range(2)]
    paths = stored(tmp_path, packed)
    expected = np.concatenate([each.t * each.t.scale_factor for each in packed])
    for urls in (paths, f"{tmp_path}/*.zarr"):
        np.testing.assert_array_equal(call_of_xarray(urls, "time").t, expected)


@pytest.mark.slow
def test_the_error_has_the_call_by_which_xarray_combines_the_groups(tmp_path):
    first = day(0)
    for other, sizes in (
        (first.drop_vars("u"), {"run": 2, "time": 4, "lat": 3}),
        (first.isel(lat=slice(2)), {"run": 2, "time": 4, "lat": 3}),
        (first.isel(time=slice(2)), {"run": 2, "time": 4, "lat": 3}),
    ):
        paths = stored(tmp_path, [first, other], mode="w")
        assert dict(call_of_xarray(paths, None, "run").sizes) == sizes


def test_a_scalar_coordinate_of_the_new_dimension_is_stacked(tmp_path):
    dates = np.array(["2020-01-01", "2020-02-01"], "M8[ns]")
    paths = stored(tmp_path, [day(0).assign_coords(run=date) for date in dates])
    np.testing.assert_array_equal(zx.open_many(paths, new_dim="run").run, dates)
    with pytest.raises(MetadataError, match="one value for each group"):
        zx.open_many(paths, new_dim={"run": [1, 2, 3]})


@pytest.mark.slow
def test_a_saved_dataset_is_refreshed(tmp_path):
    days, saved = [day(number) for number in range(12)], tmp_path / "list.json"
    stored(tmp_path, days[:9])
    dataset = zx.open_many(f"{tmp_path}/*.zarr", "time", save=saved)
    xr.testing.assert_identical(zx.open_zarr(saved).compute(), dataset.compute())
    stored(tmp_path, days, mode="w")
    group = zarrdask.open(saved)
    added = {url.removeprefix(f"{tmp_path}/") for url in group.refresh().added}
    assert added == {f"{n}.zarr/{name}" for n in (9, 10, 11) for name in "tu"}
    group.save(saved)
    expected = xr.concat(days, "time", data_vars="minimal", coords="minimal", compat="override")
    actual = zx.open_zarr(saved).compute()
    xr.testing.assert_identical(actual, expected.assign_attrs(days[0].attrs))


def test_coordinates_in_memory_are_saved_and_refreshed(tmp_path):
    paths, saved = stored(tmp_path, [day(0), day(0)]), tmp_path / "list.json"
    runs = np.array(["2020-01-01", "2020-02-01"], "M8[ns]")
    dataset = zx.open_many(paths, new_dim={"run": runs}, save=saved)
    np.testing.assert_array_equal(dataset.run, runs)
    group = zarrdask.open(saved)
    assert group.refresh() == ([], [], [])
    group.save(saved)
    np.testing.assert_array_equal(zx.open_zarr(saved).run, runs)


def test_groups_with_other_variables_are_an_error(tmp_path):
    paths = stored(tmp_path, [day(0), day(1).drop_vars("u")])
    with pytest.raises(NodeNotFoundError, match=r"0\.zarr/u|1\.zarr/u"):
        zx.open_many(paths, "time")
    assert list(zx.open_many(paths, "time", drop_variables="u")) == ["t"]


def test_times_that_other_units_do_not_represent_exactly_are_an_error(tmp_path):
    paths = []
    for number, units in enumerate(["hours since 2020-01-01", "seconds since 2020-01-01"]):
        paths.append(tmp_path / f"{number}.zarr")
        group = zarrdask.create_group(paths[-1])
        z = group.create_array(
            "time", shape=2, dtype="i8", dimension_names=["time"], attributes={"units": units}
        )
        z[...] = [1, 2]
    with pytest.raises(MetadataError, match="units"):
        zx.open_many(paths, "time")


def test_attributes_are_combined_as_by_xarray(tmp_path):
    paths = stored(tmp_path, [day(0), day(1)])
    attributes = {
        how: zx.open_many(paths, "time", combine_attrs=how).attrs
        for how in ("drop", "drop_conflicts", "override")
    }
    assert attributes["drop"] == {}
    assert attributes["drop_conflicts"] == {"title": "model"}
    assert attributes["override"]["history"] == "day 0"
    with pytest.raises(MetadataError, match="attributes differ"):
        zx.open_many(paths, "time", combine_attrs="identical")


def test_dimensions_that_do_not_exist_are_an_error(tmp_path):
    paths = stored(tmp_path, [day(0), day(1)])
    with pytest.raises(MetadataError, match="new_dim"):
        zx.open_many(paths, "lead")
    with pytest.raises(MetadataError, match="concat_dim"):
        zx.open_many(paths, new_dim="time")
    with pytest.raises(MetadataError, match="one dimension for each level"):
        zx.open_many(paths)
