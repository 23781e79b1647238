"""The engine: what xarray's functions give, and what users of xarray expect of errors."""

import inspect
import pickle
import tomllib
import uuid
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from xarray.backends.zarr import ZarrBackendEntrypoint

import zarrdask
from tests.covering import for_each
from tests.xarray.samples import DAYS, FORMATS, temperature, write_sample
from tests.xarray.variables import has_values
from zarrdask.errors import MetadataError, NodeNotFoundError, NodeTypeError, UnsupportedError
from zarrdask.xarray import ZarrdaskBackendEntrypoint, ZarrdaskManager

ROOT = Path(__file__).parents[2]
ENGINE = {"engine": ZarrdaskBackendEntrypoint}


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_a_dataset_of_each_format_is_decoded_by_cf(place, zarr_format):
    write_sample(place, zarr_format)
    with xr.open_dataset(place, **ENGINE) as ds:
        assert ds.attrs == {"title": "a sample"}
        assert set(ds.coords) == {"time", "y", "x", "height"}
        assert dict(ds.sizes) == {"time": DAYS, "y": 6, "x": 8}
        assert ds.t.attrs == {"units": "degC"}
        np.testing.assert_array_equal(ds.t, temperature())
        assert ds.time.values[1] == np.datetime64("2000-01-02")
        assert ds.height == 2


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("consolidated", [None, True, False])
def test_consolidated_or_not(tmp_path, zarr_format, consolidated):
    write_sample(tmp_path, zarr_format)
    if consolidated is not False:
        zarrdask.consolidate_metadata(tmp_path)
    ds = xr.open_dataset(tmp_path, **ENGINE, consolidated=consolidated)
    np.testing.assert_array_equal(ds.t, temperature())


def test_demanded_consolidated_metadata_must_be_there(tmp_path):
    write_sample(tmp_path)
    with pytest.raises(MetadataError, match="consolidated"):
        xr.open_dataset(tmp_path, **ENGINE, consolidated=True)


def test_consolidated_metadata_of_the_root_serve_a_group(tmp_path):
    write_sample(tmp_path, path="a/b")
    zarrdask.consolidate_metadata(tmp_path)
    for path in ("a/b/t/zarr.json", "a/b/zarr.json"):
        (tmp_path / path).unlink()
    ds = xr.open_dataset(tmp_path, **ENGINE, group="a/b")
    np.testing.assert_array_equal(ds.t, temperature())


def test_a_group_that_is_newer_than_consolidated_metadata_is_found(tmp_path):
    zarrdask.create_group(tmp_path)
    zarrdask.consolidate_metadata(tmp_path)
    document = (tmp_path / "zarr.json").read_bytes()
    write_sample(tmp_path, path="a")
    (tmp_path / "zarr.json").write_bytes(document)
    assert set(xr.open_dataset(tmp_path, **ENGINE, group="a").data_vars) == {"t"}


def test_data_variables_are_read_when_they_are_needed(tmp_path):
    write_sample(tmp_path)
    ds = xr.open_dataset(tmp_path, **ENGINE)
    assert not has_values(ds.t.variable)
    assert has_values(ds.x.variable)
    values = temperature()
    np.testing.assert_array_equal(ds.t.isel(time=3), values[3])
    np.testing.assert_array_equal(
        ds.t.isel(time=[4, 1], x=slice(None, None, -3)), values[[4, 1], :, ::-3]
    )
    points = {"y": xr.DataArray([0, 5, 2], dims="p"), "x": xr.DataArray([1, -1, 0], dims="p")}
    np.testing.assert_array_equal(
        ds.t.isel(points).transpose("time", "p"), values[:, [0, 5, 2], [1, -1, 0]]
    )


def test_dimensions_without_names_are_an_error_that_says_what_helps(tmp_path):
    group = zarrdask.create_group(tmp_path)
    group.create_array("a", shape=(2, 3), dtype="i4")
    with pytest.raises(KeyError, match="phony_dims=True"):
        xr.open_dataset(tmp_path, **ENGINE)
    ds = xr.open_dataset(tmp_path, **ENGINE, phony_dims=True)
    assert ds.a.sizes == {"phony_dim_0": 2, "phony_dim_1": 3}


@pytest.mark.parametrize("group", [None, "a"])
@pytest.mark.parametrize("opened", [xr.open_dataset, xr.open_datatree, xr.open_groups])
def test_a_group_that_does_not_exist_is_a_file_not_found_error(tmp_path, opened, group):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        opened(tmp_path / "nothing.zarr", **ENGINE, group=group)


def test_an_array_is_no_dataset(tmp_path):
    zarrdask.create_array(tmp_path, shape=(2,), dtype="i4")
    with pytest.raises(NodeTypeError, match="found an array"):
        xr.open_dataset(tmp_path, **ENGINE)


def test_another_format_than_asked_for_does_not_exist(tmp_path):
    write_sample(tmp_path, 2)
    assert "t" in xr.open_dataset(tmp_path, **ENGINE, zarr_format=2)
    with pytest.raises(NodeNotFoundError, match="zarr_format=3"):
        xr.open_dataset(tmp_path, **ENGINE, zarr_format=3)


def test_it_opens_for_reading_only(tmp_path):
    with pytest.raises(MetadataError, match="mode"):
        xr.open_dataset(tmp_path, **ENGINE, mode="w")


def test_variables_that_cannot_be_opened_may_be_dropped(tmp_path):
    write_sample(tmp_path)
    document = tmp_path / "t" / "zarr.json"
    document.write_text(document.read_text().replace('"int16"', '"int7"'))
    with pytest.raises(UnsupportedError) as caught:
        xr.open_dataset(tmp_path, **ENGINE)
    assert "drop_variables" in caught.value.__notes__[0]
    ds = xr.open_dataset(tmp_path, **ENGINE, drop_variables="t")
    assert set(ds.variables) == {"time", "y", "x", "height"}


def test_strict_refuses_what_breaks_a_rule(tmp_path):
    write_sample(tmp_path)
    document = tmp_path / "x" / "zarr.json"
    document.write_text(
        document.read_text().replace('["x"]', "null").replace('[\n    "x"\n  ]', "null")
    )
    with pytest.raises(MetadataError, match="C-8"):
        xr.open_dataset(tmp_path, **ENGINE, strict=True)


@for_each("mask", [True, False])
@for_each("zarr_format", [2, 3])
def test_fill_values_mask_as_asked(zarr_format, mask):
    store = {}
    group = zarrdask.create_group(store, zarr_format=zarr_format)
    options = {"dimension_names": ["x"], "zarr_format": zarr_format, "fill_value": 7}
    group.create_array("a", shape=(3,), dtype="i4", **options)
    ds = xr.open_dataset(store, **ENGINE, use_zarr_fill_value_as_mask=mask)
    assert bool(ds.a.isnull().all()) is mask
    default = xr.open_dataset(store, **ENGINE)
    assert bool(default.a.isnull().all()) is (zarr_format == 2)


@for_each("kind", ["mapping", "store", "group", "group below"])
def test_mappings_stores_and_groups_are_opened(kind):
    values = {}
    group = write_sample(values, path="a")
    given = {
        "mapping": values,
        "store": zarrdask.storage.MemoryStore(values),
        "group": group,
        "group below": zarrdask.open_group(values),
    }[kind]
    ds = xr.open_dataset(given, **ENGINE, group=None if kind == "group" else "a")
    np.testing.assert_array_equal(ds.t, temperature())
    assert ds.encoding["source"].endswith("/a")


def test_the_source_of_a_path_is_that_path(tmp_path):
    write_sample(tmp_path)
    assert xr.open_dataset(tmp_path, **ENGINE).encoding["source"] == str(tmp_path)


def test_a_url_with_storage_options():
    url = f"memory://{uuid.uuid4().hex}"
    write_sample(url)
    ds = xr.open_dataset(url, **ENGINE, storage_options={"use_listings_cache": False})
    np.testing.assert_array_equal(ds.t, temperature())


@pytest.mark.parametrize("group", [None, "a"])
def test_a_tree_and_its_groups(place, group):
    write_sample(place, path="a")
    write_sample(place, path="a/b/c")
    zarrdask.open_group(place, mode="r+").attrs["title"] = "root"
    tree = xr.open_datatree(place, **ENGINE, group=group)
    groups = xr.open_groups(place, **ENGINE, group=group)
    paths = {"/", "/b", "/b/c"} if group else {"/", "/a", "/a/b", "/a/b/c"}
    assert {node.path for node in tree.subtree} == set(groups) == paths
    deepest = max(paths, key=len)
    np.testing.assert_array_equal(tree[deepest].t, temperature())
    xr.testing.assert_identical(groups[deepest].load(), tree[deepest].to_dataset().load())
    assert tree.attrs == {"title": "a sample" if group else "root"}


def test_an_unknown_option_is_a_type_error(tmp_path):
    write_sample(tmp_path)
    for opened in (xr.open_dataset, xr.open_datatree, xr.open_groups):
        with pytest.raises(TypeError, match="colour"):
            opened(tmp_path, **ENGINE, colour="red")


def test_the_variable_of_a_nameless_data_array_is_read(tmp_path):
    name = "__xarray_dataarray_variable__"
    array = zarrdask.create_array(tmp_path, "x", shape=(2,), dtype="i4", dimension_names=["x"])
    (tmp_path / "x").rename(tmp_path / name)
    assert array.shape == (2,)
    assert xr.open_dataarray(tmp_path, **ENGINE).shape == (2,)


@pytest.mark.parametrize("consolidated", [True, False])
def test_datasets_pickle(place, consolidated):
    write_sample(place)
    if consolidated:
        zarrdask.consolidate_metadata(place)
    ds = xr.open_dataset(place, **ENGINE, consolidated=consolidated)
    again = pickle.loads(pickle.dumps(ds))
    xr.testing.assert_identical(again.load(), ds.load())


@for_each(
    ("path", "can"),
    [
        ("a.zarr", True),
        ("s3://b/a.zarr/", True),
        ("a.zarr.zip", True),
        ("a.nc", False),
        (Path("a.zarr"), True),
        ({}, False),
    ],
)
def test_it_guesses_by_the_suffix(path, can):
    assert ZarrdaskBackendEntrypoint().guess_can_open(path) is can


def test_it_guesses_by_the_class():
    engine = ZarrdaskBackendEntrypoint()
    assert engine.guess_can_open(zarrdask.storage.MemoryStore())
    assert engine.guess_can_open(zarrdask.create_group({}))


def test_it_takes_the_options_of_engine_zarr():
    ours = inspect.signature(ZarrdaskBackendEntrypoint.open_dataset).parameters
    theirs = inspect.signature(ZarrBackendEntrypoint.open_dataset).parameters
    # These hand over objects of zarr-python, the last three in older releases of xarray.
    objects = {"store", "engine", "chunk_store", "synchronizer", "zarr_version"}
    assert set(theirs) - set(ours) <= objects
    assert all(ours[n].default == p.default for n, p in theirs.items() if n in ours)


def test_entry_points_name_the_engine_and_the_manager():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    for group, kind in (
        ("xarray.backends", ZarrdaskBackendEntrypoint),
        ("xarray.chunkmanagers", ZarrdaskManager),
    ):
        value = project[group]["zarrdask"]
        assert EntryPoint("zarrdask", value, group).load() is kind
