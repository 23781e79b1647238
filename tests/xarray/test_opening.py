"""``open_zarr``, ``open_mfdataset`` and ``open_datatree``."""

import inspect
import uuid

import numpy as np
import pytest
import xarray as xr

import zarrdask
from tests.covering import for_each
from tests.xarray.samples import temperature, write_sample
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.xarray import open_datatree, open_many, open_mfdataset, open_zarr


def test_it_takes_the_arguments_of_xarrays_open_zarr():
    ours = inspect.signature(open_zarr).parameters
    theirs = dict(inspect.signature(xr.open_zarr).parameters)
    for name in ("kwargs", "synchronizer", "chunk_store", "zarr_version"):
        theirs.pop(name, None)  # older releases of xarray have more
    assert list(ours)[: len(theirs)] == list(theirs)
    for name in theirs.keys() - {"chunks"}:
        assert ours[name].default == theirs[name].default, name


def test_it_gives_dask_arrays_or_none(tmp_path):
    write_sample(tmp_path)
    assert open_zarr(tmp_path).t.chunks is not None
    assert open_zarr(tmp_path, chunks=None).t.chunks is None


@pytest.mark.parametrize("make", [lambda path: path, zarrdask.open_group])
def test_a_tree_has_the_blocks_of_the_chunk_manager(tmp_path, make):
    write_sample(tmp_path, path="a/b", chunks=(2, 3, 8))
    tree = open_datatree(make(tmp_path))
    np.testing.assert_array_equal(tree["a/b"].t, temperature())
    t = tree["a/b"].t
    assert (t.chunks, len(t.__dask_graph__())) == (open_zarr(tmp_path, "a/b").t.chunks, 1)
    assert open_datatree(tmp_path, "a", chunks=None)["b"].t.chunks is None
    assert not open_datatree(tmp_path, group_filter="/c").children
    with pytest.raises(MetadataError, match="chunks"):
        open_datatree(tmp_path, chunks={"x": 0})


def test_the_reads_of_a_dataset_are_planned(tmp_path):
    xr.Dataset({"t": (("y", "x"), np.ones((4, 6)))}).zarrdask.to_zarr(
        tmp_path, encoding={"t": {"chunks": (1, 3)}}
    )
    ds = open_zarr(tmp_path)
    assert zarrdask.plan_read(ds.isel(y=1)).requests == 2
    assert zarrdask.plan_read(ds.t, slice(2)).requests == 4


@pytest.mark.parametrize(
    "choose", [lambda ds: ds, lambda ds: ds.t, lambda ds: {"a": ds.t}, lambda ds: [("a", ds.t)]]
)
def test_objects_of_xarray_are_not_written_without_their_dimensions(choose, tmp_path):
    ds = xr.Dataset({"t": (("y", "x"), np.ones((4, 6)))})
    with pytest.raises(UnsupportedError, match=r"zarrdask\.xarray\.to_zarr"):
        zarrdask.to_zarr(choose(ds), tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_objects_of_xarray_are_not_appended_without_their_coordinates(tmp_path):
    z = zarrdask.create_array(tmp_path / "a", shape=3, dtype="f8", chunks=2)
    ds = xr.Dataset({"t": ("x", np.ones(2))})
    for x in (ds, ds.t):
        with pytest.raises(UnsupportedError, match=r"zarrdask\.xarray\.to_zarr"):
            zarrdask.append(x, z)
    assert zarrdask.open_array(tmp_path / "a").shape == (3,)


def test_the_values_of_a_mapping_are_not_hashed():
    class Values(dict):
        def items(self):
            raise AssertionError("a mapping of values was hashed")

    values = Values()
    write_sample(values)
    assert open_zarr(values).t.chunks is not None


def test_options_reach_xarray_and_the_engine(tmp_path):
    write_sample(tmp_path, path="a")
    ds = open_zarr(
        tmp_path, "a", decode_times=False, drop_variables=["height"], create_default_indexes=False
    )
    assert ds.time.dtype == "int64"
    assert "height" not in ds
    assert not ds.xindexes


@pytest.fixture(params=["path", "url"])
def many(request, tmp_path):
    """A pattern of 12 groups that follow each other in time."""
    base = str(tmp_path) if request.param == "path" else f"memory://{uuid.uuid4().hex}"
    for number in range(12):
        place = f"{base}/{number:02}.zarr"
        for name, dims in (("t", ("time", "x")), ("time", ("time",))):
            shape = (2, 3)[: len(dims)]
            array = zarrdask.create_array(
                place, name, shape=shape, dtype="f8", dimension_names=dims
            )
            array[...] = (np.arange(2) + 2 * number).reshape((2, 1)[: len(dims)])
    return f"{base}/*.zarr"


@pytest.mark.parametrize("parallel", [False, True])
def test_many_groups_as_one_dataset(many, parallel):
    ds = open_mfdataset(many, parallel=parallel, combine="nested", concat_dim="time")
    assert ds.t.shape == (24, 3)
    np.testing.assert_array_equal(ds.t[:, 1], np.arange(24.0))
    np.testing.assert_array_equal(ds.time, np.arange(24.0))


def test_a_list_of_groups(tmp_path):
    write_sample(tmp_path / "a")
    ds = open_mfdataset([tmp_path / "a"])
    np.testing.assert_array_equal(ds.t, temperature())


def test_one_path_that_is_no_pattern(tmp_path):
    write_sample(tmp_path / "a")
    assert "t" in open_mfdataset(tmp_path / "a")


def test_a_pattern_that_matches_nothing_is_a_file_not_found_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        open_mfdataset(f"{tmp_path}/*.zarr")


def test_one_chained_url_is_one_group(tmp_path):
    place = f"{tmp_path}/x.zip"
    write_sample(place)
    with open_mfdataset(f"zip://::file://{place}") as found:
        np.testing.assert_array_equal(found.t, temperature())


def test_an_open_dataset_is_copied_by_the_place_it_was_opened_from(tmp_path):
    write_sample(tmp_path / "a")
    ds = open_zarr(tmp_path / "a")
    for source in (ds, ds.t):
        with pytest.raises(UnsupportedError, match="pass the location of the stored dataset"):
            zarrdask.copy(source, tmp_path / "b", chunks={"time": -1})
    place = ds.encoding["source"]
    zarrdask.copy(place, tmp_path / "b", chunks={"time": -1, "x": 4})
    rewritten = open_zarr(tmp_path / "b")
    assert rewritten.t.encoding["chunks"] == (12, 3, 4)
    assert rewritten.identical(ds)


@pytest.mark.parametrize("chunks", [{"time": 0}, {"time": -2}, 0])
def test_blocks_have_elements(chunks):
    with pytest.raises(MetadataError, match=r"chunks.*at least one element"):
        open_zarr({}, chunks=chunks)
    with pytest.raises(MetadataError, match=r"chunks.*at least one element"):
        open_mfdataset([], chunks=chunks)


def test_lengths_of_dimensions_that_do_not_exist_warn(tmp_path):
    write_sample(tmp_path, path="a/b")
    name = next(iter(open_zarr(tmp_path, "a/b").sizes))
    chunks = {name: -1, "tiem": 1}
    with pytest.warns(UserWarning, match=r"no dimensions \['tiem'\].*the dimensions are.*"):
        assert len(open_zarr(tmp_path, "a/b", chunks=chunks).chunks[name]) == 1
    with pytest.warns(UserWarning, match=r"no dimensions \['tiem'\]"):
        open_datatree(tmp_path, chunks=chunks)
    with pytest.warns(UserWarning, match=r"no dimensions \['tiem'\]"):
        open_mfdataset([tmp_path / "a/b"], chunks=chunks)
    open_datatree(tmp_path, chunks={name: -1})


@pytest.mark.slow
@for_each(
    "open_dataset",
    [
        open_zarr,
        lambda path, **options: open_mfdataset([path], **options),
        lambda path, **options: open_datatree(path, **options).dataset,
        lambda path, **options: open_many([path, path], new_dim="n", **options).isel(n=1),
        lambda path, **options: xr.open_dataset(path, engine="zarrdask", **options),
    ],
)
@for_each("chunks", [{}, None])
def test_all_functions_take_the_options_of_decoding(tmp_path, open_dataset, chunks):
    times = np.array(["2000-01-01", "2001-01-01"], "M8[ns]")
    packed = ("x", [1.0, np.nan], {}, {"_FillValue": -1.0})
    path = tmp_path / uuid.uuid4().hex
    zarrdask.xarray.to_zarr(xr.Dataset({"t": ("x", times), "v": packed}), path)
    for options, is_time, has_nan in (
        ({}, True, True),
        ({"decode_times": False}, False, True),
        ({"mask_and_scale": False}, True, False),
        ({"decode_cf": False}, False, False),
    ):
        opened = open_dataset(path, chunks=chunks, **options)
        assert (opened.t.dtype.kind == "M") == is_time
        assert np.isnan(opened.v.values).any() == has_nan
    with pytest.raises(TypeError, match="decode_time"):
        open_dataset(path, decode_time=False)
