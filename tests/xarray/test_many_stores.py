"""Many groups as one dataset."""

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


def test_packed_values_must_be_packed_alike(tmp_path):
    packed = [day(n).assign(t=day(n).t.assign_attrs({"scale_factor": 0.5 + n})) for n in range(2)]
    paths = stored(tmp_path, packed)
    with pytest.raises(MetadataError, match="open_mfdataset"):
        zx.open_many(paths, "time")


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
