"""Dashboards of clusters show which array a task reads or writes."""

import dask.array as da
import xarray as xr
from dask.callbacks import Callback
from dask.utils import key_split

import zarrdask
import zarrdask.xarray
from tests.covering import for_each


def shown(x):
    """Return the names that a dashboard shows for the tasks of a graph."""
    return {key_split(key) for key in x.__dask_graph__()}


@for_each(
    "component, name",
    [("t2m", "t2m"), ("a/wind-speed 10m", "wind_speed_10m"), ("x.y", "x")],
)
def test_tasks_are_named_for_the_array(component, name):
    root = zarrdask.create_group({})
    root.create_array(component, shape=(4,), dtype="i4", chunks=(2,))
    x = zarrdask.from_zarr(root, component)
    assert shown(x) == {f"read_{name}"}
    assert f"read_{name}" in shown(x[1:3])
    written = zarrdask.to_zarr(x + 1, {}, component, compute=False)
    assert f"write_{name}" in shown(written)


def test_an_array_at_the_root_has_the_name_of_its_store(tmp_path):
    zarrdask.create_array(tmp_path / "data.zarr", shape=(4,), dtype="i4")
    assert shown(zarrdask.from_zarr(tmp_path / "data.zarr")) == {"read_data"}


def test_an_array_that_replaces_another_one_has_its_name(tmp_path):
    names = set()
    zarrdask.create_array(tmp_path, "t2m", shape=4, dtype="f8")
    with Callback(pretask=lambda key, *_: names.add(key_split(key))):
        zarrdask.to_zarr(da.ones(4, chunks=2), tmp_path, "t2m", overwrite=True)
    assert "write_t2m" in names


def test_variables_of_a_dataset(tmp_path):
    dataset = xr.Dataset({"t2m": ("x", range(4))}, {"x": range(4)})
    zarrdask.xarray.to_zarr(dataset, tmp_path)
    opened = zarrdask.xarray.open_zarr(tmp_path)
    assert shown(opened.t2m) == {"read_t2m"}
    written = zarrdask.xarray.to_zarr(opened, tmp_path / "copy", compute=False)
    assert "write_t2m" in shown(written)
