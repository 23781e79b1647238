"""``to_zarr``: datasets, data arrays and trees, written and read again."""

import io
import json
from contextlib import closing

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr
from dask.delayed import Delayed

import zarrdask
from tests.counting import CountingStore as ReadCounter
from tests.covering import for_each
from tests.storage.platforms import Process
from tests.xarray.counting import RoundsStore
from tests.xarray.writes import days, together
from zarrdask.storage.local import LocalStore
from zarrdask.storage.memory import MemoryStore
from zarrdask.xarray import ZarrdaskBackendEntrypoint, open_zarr, to_zarr


def loaded(place, **options):
    with open_zarr(place, **options) as found:
        return found.load()


def samples():
    """Return a dataset with variables of many types, some of them Dask arrays."""
    ds = days(6, chunks=(2, 5, 4))
    return ds.assign(
        flag=("y", [True, False, True, True, False]),
        text=("y", np.array(["a", "bb", "", "dé", "e"], object)),
        fixed=("y", np.array(["a", "bb", "c", "d", "e"])),
        packed=("y", [1.5, np.nan, 2.0, 3.0, 0.0], {}, {"dtype": "i2", "scale_factor": 0.5}),
        wait=("y", np.arange(5).astype("m8[s]").astype("m8[ns]")),
        waves=("y", np.arange(5) * 1j),
        nothing=("none", np.zeros(0)),
        scalar=((), np.int16(3)),
    )


# --------------------------------------------------------------------------------------------
# New datasets


@pytest.mark.parametrize("zarr_format", [2, 3, "v3-draft-protocol"])
def test_a_dataset_comes_back(zarr_format, tmp_path):
    ds = samples()
    if zarr_format not in (2, 3):
        ds = ds.drop_vars(["text", "fixed"])  # the draft has no such types
    ds.packed.encoding["_FillValue"] = -1
    to_zarr(ds, tmp_path / "a", zarr_format=zarr_format)
    found = loaded(tmp_path / "a")
    xr.testing.assert_identical(found, ds.compute())
    assert found.t.encoding["chunks"] == (2, 5, 4)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_encodings_come_back(zarr_format):
    store, again = {}, {}
    encoding = {
        "t": {
            "chunks": (3, 5, 2),
            "dtype": "i4",
            "_FillValue": -9,
            "scale_factor": 0.5,
            "compressors": "gzip",
        },
        "time": {"units": "hours since 1999-01-01", "calendar": "standard", "dtype": "i4"},
    }
    to_zarr(days(5), store, encoding=encoding, zarr_format=zarr_format)
    first = loaded(store)
    to_zarr(first, again, zarr_format=zarr_format)
    second = loaded(again)
    for name in first.variables:
        assert repr(first[name].encoding) == repr(second[name].encoding), name
    assert second.t.encoding["chunks"] == (3, 5, 2)
    assert second.time.encoding["units"] == "hours since 1999-01-01"
    raw = zarrdask.open_array(again, "t")
    assert raw.dtype == "i4"
    assert raw.metadata.codecs[-1].name == "gzip"
    xr.testing.assert_identical(second, days(5).compute())


def test_shards_rectilinear_grids_and_codecs_by_name():
    store = {}
    ds = xr.Dataset({"a": ("x", da.arange(9, chunks=((4, 2, 3),))), "b": ("x", np.arange(9))})
    encoding = {"b": {"chunks": (2,), "shards": (4,), "codecs": ["bz2"]}}
    to_zarr(ds, store, grid="rectilinear", encoding=encoding)
    group = zarrdask.open_group(store)
    assert group["a"].chunks == ((4, 2, 3),)
    assert (group["b"].chunks, group["b"].shards) == ((2,), (4,))
    xr.testing.assert_identical(loaded(store), ds.compute())


def test_chunks_by_dimension_leave_the_others_as_the_blocks_are():
    store = {}
    x = da.zeros((8, 6), chunks=(4, 3))
    ds = xr.Dataset({"a": (("y", "x"), x), "b": (("y", "x"), np.ones((8, 6)))})
    encoding = {"a": {"chunks": {"y": 2}, "shards": {"x": -1}}, "b": {"chunks": {"y": 2}}}
    to_zarr(ds, store, encoding=encoding)
    group = zarrdask.open_group(store)
    assert (group["a"].chunks, group["a"].shards) == ((2, 3), (2, 6))
    assert group["b"].chunks == (2, 6)


def test_blocks_of_any_shape_are_written_safely():
    store = {}
    x = da.random.random((17, 13), chunks=((5, 1, 11), (6, 7)))
    to_zarr(xr.Dataset({"a": (("y", "x"), x)}), store, encoding={"a": {"chunks": (4, 5)}})
    np.testing.assert_array_equal(loaded(store).a, x.compute())


def test_progress_counts_the_blocks_of_all_variables(capsys):
    ds = days(4, chunks=(2, 5, 3))
    ds.zarrdask.to_zarr({}, progress=True)
    assert "write: 100%" in capsys.readouterr().err
    out = io.StringIO()
    to_zarr(ds.rename(t="u").merge(ds), {}, progress=out)
    assert " 8/8 " in out.getvalue()
    to_zarr(ds, {}, compute=False, progress=True).compute()
    assert not capsys.readouterr().err


def test_all_variables_are_in_one_graph():
    calls = []

    def source(block):
        calls.append(None)
        return block

    x = da.zeros(6, chunks=3).map_blocks(source, dtype="f8", meta=np.empty(0))
    to_zarr(xr.Dataset({"a": ("x", x), "b": ("x", x + 1)}), {})
    assert len(calls) == 2


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_group_gets_consolidated_metadata(zarr_format):
    store, without = {}, {}
    to_zarr(days(2), store, zarr_format=zarr_format)
    to_zarr(days(2), without, zarr_format=zarr_format, consolidated=False)
    xr.testing.assert_identical(loaded(store, consolidated=True), days(2))
    with pytest.raises(zarrdask.errors.MetadataError):
        loaded(without, consolidated=True)


def test_v2_arrays_have_no_fill_value_that_would_mask_elements():
    store = {}
    ds = xr.Dataset({"a": ("x", [0, 1]), "s": ("x", np.array(["", "b"], object))})
    to_zarr(ds, store, zarr_format=2)
    assert json.loads(store["a/.zarray"])["fill_value"] is None
    xr.testing.assert_identical(loaded(store), ds)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_nan_as_a_missing_value_comes_back(zarr_format):
    store = {}
    ds = xr.Dataset({"a": ("x", [0.0, np.nan])})
    ds.a.encoding.update(missing_value=np.nan, _FillValue=np.nan)
    to_zarr(ds, store, zarr_format=zarr_format)
    xr.testing.assert_identical(loaded(store), ds)


def test_a_group_is_written_below_others():
    store = {}
    to_zarr(days(2), store)
    to_zarr(days(3), store, group="deep/er")
    assert loaded(store).sizes["time"] == 2
    assert loaded(store, group="deep/er").sizes["time"] == 3


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("mode", ["w", "a"])
def test_the_root_of_the_store_has_the_consolidated_metadata(zarr_format, mode, tmp_path):
    to_zarr(days(2), tmp_path, group="a", zarr_format=zarr_format)
    to_zarr(days(3), tmp_path, group="b", zarr_format=zarr_format)
    to_zarr(days(2) + 1, tmp_path, group="a", mode=mode, zarr_format=zarr_format)
    to_zarr(days(2, 3), tmp_path, group="b", append_dim="time")
    found = zarrdask.open_group(tmp_path, consolidated=True)
    assert {found["a/t"].shape[0], found["b/t"].shape[0]} == {2, 5}
    assert not (tmp_path / "b" / ".zmetadata").exists()
    np.testing.assert_array_equal(loaded(tmp_path, group="a", consolidated=True).n, [1, 2])


def test_consolidated_metadata_that_are_not_written_again_are_dropped():
    store = {}
    to_zarr(days(2), store)
    to_zarr(xr.Dataset({"new": ("z", [1])}), store, mode="a", consolidated=False)
    assert "new" in loaded(store)
    with pytest.raises(zarrdask.errors.MetadataError):
        loaded(store, consolidated=True)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("chunks", [None, {"x": 2}])
def test_texts_of_any_length_of_numpy(zarr_format, chunks):
    text = getattr(np.dtypes, "StringDType", lambda: object)()
    ds = xr.Dataset({"a": ("x", np.array(["a", "", "ccc"], text))})
    store, again = {}, {}
    to_zarr(ds.chunk(chunks) if chunks else ds, store, zarr_format=zarr_format)
    more = xr.Dataset({"a": ("x", np.array(["much longer"], text))})
    to_zarr(more.chunk(chunks) if chunks else more, store, append_dim="x")
    expected = ["a", "", "ccc", "much longer"]
    assert loaded(store).a.values.tolist() == expected
    # As xarray's engine reads it: with the encoding of a stored variable.
    found = loaded(store)
    found["a"] = found.a.copy(data=found.a.values.astype(text))
    found.a.encoding["dtype"] = np.dtype(text)
    to_zarr(found, again, zarr_format=zarr_format)
    assert loaded(again).a.values.tolist() == expected


def test_many_variables():
    store = MemoryStore({})
    ds = xr.Dataset({f"v{n}": ("x", np.full(3, n)) for n in range(60)})
    to_zarr(ds, store)
    xr.testing.assert_identical(loaded(store), ds)
    to_zarr(ds, store, append_dim="x")
    assert loaded(store).sizes["x"] == 6


# --------------------------------------------------------------------------------------------
# Modes


def test_a_group_that_is_there_is_not_touched_by_default():
    store = {}
    to_zarr(days(2), store)
    before = dict(store)
    with pytest.raises(FileExistsError, match="mode='w' replaces it"):
        to_zarr(days(3), store)
    assert store == before


def test_a_group_is_replaced_by_what_is_computed_from_it(tmp_path):
    to_zarr(days(3, chunks=1), tmp_path / "a")
    to_zarr(open_zarr(tmp_path / "a")[["t"]] + 1, tmp_path / "a", mode="w")
    found = loaded(tmp_path / "a")
    assert set(found.data_vars) == {"t"}
    np.testing.assert_array_equal(found.t, days(3).t + 1)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_where_a_group_cannot_stay_it_is_not_replaced_by_what_reads_it():
    store = {}
    to_zarr(days(3, chunks=1), store)
    before = dict(store)
    with pytest.raises(FileExistsError, match="computed from"):
        to_zarr(open_zarr(store) + 1, store, mode="w")
    assert store == before


def test_a_replacement_that_fails_leaves_the_old_dataset(tmp_path):
    def fail(block):
        raise RuntimeError("no such values")

    to_zarr(days(3), tmp_path / "a")
    bad = days(2, chunks=1)
    bad["t"] = bad.t.copy(data=bad.t.data.map_blocks(fail, dtype="f8", meta=np.empty((0, 0, 0))))
    with pytest.raises(RuntimeError) as caught:
        to_zarr(bad, tmp_path / "a", mode="w")
    assert "the previous content is unchanged" in caught.value.__notes__[-1]
    xr.testing.assert_identical(loaded(tmp_path / "a"), days(3))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_mode_a_writes_what_is_there_and_creates_the_rest():
    store = {}
    to_zarr(days(2), store)
    more = days(2).assign(m=("time", [1.0, 2.0])) + 1
    to_zarr(more.drop_vars("y").assign_attrs(title="more"), store, mode="a")
    found = loaded(store)
    np.testing.assert_array_equal(found.t, more.t)
    np.testing.assert_array_equal(found.m, [2, 3])
    assert found.attrs == {"title": "more"}
    assert "y" in found.coords


def test_mode_r_plus_changes_no_metadata():
    store = {}
    to_zarr(days(2), store)
    documents = {key: value for key, value in store.items() if key.endswith("zarr.json")}
    to_zarr((days(2) + 1).assign_attrs(title="new"), store, mode="r+")
    assert {key: store[key] for key in documents} == documents
    np.testing.assert_array_equal(loaded(store).t, days(2).t + 1)
    with pytest.raises(ValueError, match="non-pre-existing variables"):
        to_zarr(xr.Dataset({"new": 1}), store, mode="r+")


def test_commit_last_shows_the_dataset_when_it_is_complete(tmp_path):
    seen = []

    def look(block):
        seen.append((tmp_path / "a" / "t" / "zarr.json").exists())
        return block

    ds = days(2, chunks=1)
    ds["t"] = ds.t.copy(data=ds.t.data.map_blocks(look, dtype="f8", meta=np.empty((0, 0, 0))))
    to_zarr(ds, tmp_path / "a", commit="last")
    assert seen
    assert not any(seen)
    xr.testing.assert_identical(loaded(tmp_path / "a"), days(2))


# --------------------------------------------------------------------------------------------
# Append


@for_each("zarr_format, chunks", [(2, None), (3, 1), ("v3-draft-protocol", 4)])
def test_append(zarr_format, chunks):
    store = {}
    to_zarr(days(3, chunks=2), store, zarr_format=zarr_format)
    to_zarr(days(4, 3, chunks=chunks), store, append_dim="time")
    xr.testing.assert_identical(loaded(store), together(days(3), days(4, 3)))


def test_an_append_that_fails_leaves_the_dataset_as_it_was(tmp_path):
    to_zarr(days(3, chunks=2), tmp_path / "a")
    files = {path: path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file()}
    bad = failing(days(6, 3, chunks=1))
    with pytest.raises(RuntimeError), dask.config.set(scheduler="synchronous"):
        to_zarr(bad, tmp_path / "a", append_dim="time")
    now = {path: path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file()}
    assert files.keys() == now.keys()
    xr.testing.assert_identical(loaded(tmp_path / "a"), days(3))


def failing(dataset):
    """Return a dataset one block of which can't be computed."""

    def fail(block, block_id):
        if block_id[0]:
            raise RuntimeError("no such values")
        return block

    data = dataset.t.data.map_blocks(fail, dtype="f8", meta=np.empty((0, 0, 0)))
    return dataset.assign(t=dataset.t.copy(data=data))


@for_each("zarr_format, group", [(2, None), (3, None), (3, "a/b")])
def test_a_new_dataset_whose_write_fails_does_not_exist(zarr_format, group):
    store, options = {}, {"zarr_format": zarr_format, "group": group}
    with pytest.raises(RuntimeError) as caught:
        to_zarr(failing(days(3, chunks=1)), store, **options)
    (note,) = [note for note in caught.value.__notes__ if ": " in note]
    assert "there is no dataset" in note
    assert "mode='w'" in note
    with pytest.raises(FileNotFoundError):
        open_zarr(store, group)
    to_zarr(days(3), store, **options)
    found = open_zarr(store, group, chunks=None).load()
    xr.testing.assert_identical(found, days(3))


def test_what_an_interrupted_write_left_is_replaced_and_other_nodes_are_not():
    store = {}
    to_zarr(days(3), store)
    del store["zarr.json"]  # as if the process had been killed before it wrote this
    changed = days(3).t.copy(data=days(3).t.values + 1)  # with its attributes in any xarray
    to_zarr(days(3).assign(t=changed), store)
    xr.testing.assert_identical(loaded(store).t, changed)
    del store["zarr.json"]
    before = dict(store)
    with pytest.raises(zarrdask.errors.NodeExistsError):
        to_zarr(days(4), store)
    assert store == before
    to_zarr(days(4), store, mode="w")
    xr.testing.assert_identical(loaded(store), days(4))


def test_a_tree_whose_write_fails_does_not_exist():
    store = {}
    good = xr.DataTree.from_dict({"/": days(2), "/a/b": days(3, chunks=1).rename(time="when")})
    bad = good.copy()
    bad["/a/b"] = xr.DataTree(failing(days(3, chunks=1)).rename(time="when"))
    with pytest.raises(RuntimeError):
        to_zarr(bad, store)
    with pytest.raises(FileNotFoundError):
        open_zarr(store)
    to_zarr(good, store)
    found = xr.open_datatree(store, engine=ZarrdaskBackendEntrypoint, chunks=None)
    xr.testing.assert_identical(found.load(), good.compute())


def test_an_append_that_fails_has_one_note():
    store = {}
    to_zarr(days(3, chunks=2), store)
    with pytest.raises(RuntimeError) as caught:
        to_zarr(failing(days(3, 3, chunks=1)), store, append_dim="time")
    (note,) = [note for note in caught.value.__notes__ if ": " in note]
    assert note.endswith(": the array is as it was")


@pytest.mark.parametrize(
    "part", [days(2, 3).drop_vars("n"), days(2, 3).assign(new=("time", [1, 2]))]
)
def test_an_append_that_would_leave_variables_shorter_is_an_error(part):
    store = {}
    to_zarr(days(3), store)
    with pytest.raises(zarrdask.errors.MetadataError, match="shorter"):
        to_zarr(part, store, append_dim="time")
    xr.testing.assert_identical(loaded(store), days(3))


def test_an_append_that_is_computed_later_writes_nothing_before():
    store = {}
    to_zarr(days(3, chunks=2), store)
    before = dict(store)
    later = to_zarr(days(2, 3, chunks=1), store, append_dim="time", compute=False)
    assert isinstance(later, Delayed)
    assert store == before
    later.compute()
    xr.testing.assert_identical(loaded(store), together(days(3), days(2, 3)))


def test_a_late_append_after_another_one_writes_nothing():
    store = {}
    to_zarr(days(3, chunks=2), store)
    later = to_zarr(days(2, 3, chunks=1), store, append_dim="time", compute=False)
    to_zarr(days(1, 3), store, append_dim="time")
    with pytest.raises(zarrdask.errors.StoreError, match="another shape"):
        later.compute()
    xr.testing.assert_identical(loaded(store), together(days(3), days(1, 3)))


def test_times_that_the_stored_units_cannot_represent_are_an_error():
    store = {}
    to_zarr(days(2), store, encoding={"time": {"units": "days since 2000-01-01", "dtype": "i8"}})
    before = dict(store)
    noon = days(1, 2).assign_coords(time=days(1, 2).time + np.timedelta64(12, "h"))
    with (
        pytest.warns(UserWarning, match="serialized faithfully"),
        pytest.raises(ValueError, match="does not represent the new values"),
    ):
        to_zarr(noon, store, append_dim="time")
    assert store == before


def test_mode_a_minus_leaves_variables_without_the_dimension():
    store = {}
    to_zarr(days(2), store)
    changed = days(1, 2).assign_coords(y=np.arange(5) * 7.0)
    to_zarr(changed, store, mode="a-", append_dim="time")
    np.testing.assert_array_equal(loaded(store).y, days(1).y)
    to_zarr(days(1, 3).assign_coords(y=np.arange(5) * 7.0), store, append_dim="time")
    np.testing.assert_array_equal(loaded(store).y, np.arange(5) * 7.0)


def test_variables_of_different_lengths_without_a_coordinate_are_an_error():
    store = {}
    ds = xr.Dataset({"a": ("x", [1, 2]), "b": ("x", [3, 4])})
    to_zarr(ds, store)
    zarrdask.open_array(store, "a", mode="r+").append([5])
    with pytest.raises(ValueError, match="different lengths"):
        to_zarr(ds, store, append_dim="x")


def test_an_interrupted_append_is_rolled_back_by_the_next():
    store = {}
    to_zarr(days(3), store)
    zarrdask.open_array(store, "t", mode="r+").append(days(2).t.values)
    with pytest.warns(UserWarning, match="was interrupted"):
        to_zarr(days(4, 3), store, append_dim="time")
    xr.testing.assert_identical(loaded(store), together(days(3), days(4, 3)))


@for_each("zarr_format", [2, 3])
def test_an_append_goes_by_consolidated_metadata_as_readers_do(zarr_format):
    store = {}
    to_zarr(days(3), store, zarr_format=zarr_format)
    visible = {key: store[key] for key in (".zmetadata", "zarr.json") if key in store}
    to_zarr(days(2, 3), store, append_dim="time")
    store.update(visible)  # as if the process had been killed before it wrote them
    xr.testing.assert_identical(loaded(store), days(3))
    with pytest.warns(UserWarning, match="was interrupted; 3 variables"):
        to_zarr(days(2, 3), store, append_dim="time")
    xr.testing.assert_identical(loaded(store), together(days(3), days(2, 3)))


def test_consolidated_metadata_that_are_older_than_a_resize_are_not_gone_by():
    store = {}
    to_zarr(days(3), store)
    visible = store["zarr.json"]
    for name in ("t", "n", "time"):
        array = zarrdask.open_array(store, name, mode="r+")
        array.resize((2, *array.shape[1:]))
    store["zarr.json"] = visible
    to_zarr(days(2, 2), store, append_dim="time")
    xr.testing.assert_identical(loaded(store), together(days(2), days(2, 2)))


# --------------------------------------------------------------------------------------------
# Regions, and writes that are computed later


def test_a_template_is_filled_region_by_region():
    store = {}
    to_zarr(days(6, chunks=2), store, compute=False)
    xr.testing.assert_identical(loaded(store).time, days(6).time)
    assert np.isnan(loaded(store).t).all()
    for start in (0, 2, 4):
        part = days(2, start, chunks=1).drop_vars("y")
        to_zarr(part, store, region={"time": slice(start, start + 2)})
    xr.testing.assert_identical(loaded(store), days(6))


def test_regions_are_found_by_coordinates():
    store = {}
    to_zarr(days(6), store)
    part = days(6).isel(time=slice(2, 4), y=slice(1, 3))[["t"]] * -1
    to_zarr(part, store, region="auto")
    expected = days(6)
    expected.t[2:4, 1:3] *= -1
    xr.testing.assert_identical(loaded(store), expected)
    to_zarr(days(1, 5)[["t"]].drop_vars("y"), store, region={"time": "auto", "y": slice(0, 5)})


@for_each(
    ("change", "error", "message"),
    [
        ({"time": "auto"}, KeyError, "Not all values of coordinate 'time'"),
        ({"time": 3}, TypeError, "must be slice objects"),
        ({"time": slice(0, 4, 2)}, ValueError, "step on all slices"),
        ({"z": slice(0, 4)}, ValueError, "not in Dataset dimensions"),
        ({"time": slice(0, 1)}, ValueError, "different dimension sizes"),
        ([], TypeError, "must be a dict"),
    ],
)
def test_regions_that_are_none(change, error, message):
    store = {}
    to_zarr(days(3), store)
    before = dict(store)
    with pytest.raises(error, match=message):
        to_zarr(days(2, 30).drop_vars("y"), store, region=change)
    assert store == before


def test_a_region_that_is_computed_from_itself_is_an_error():
    store = {}
    to_zarr(days(6), store, encoding={"t": {"chunks": (2, 5, 6)}})
    source = open_zarr(store)[["t"]].drop_vars(["time", "y"])
    with pytest.raises(ValueError, match="reads the region that is being overwritten"):
        to_zarr(source.isel(time=slice(1, 5)), store, region={"time": slice(2, 6)})
    to_zarr(source.isel(time=slice(0, 2)), store, region={"time": slice(4, 6)})
    np.testing.assert_array_equal(loaded(store).t[4:], days(2).t)


# --------------------------------------------------------------------------------------------
# Data arrays, trees, the accessor


@pytest.mark.parametrize("name", [None, "time", "t"])
def test_a_data_array_comes_back(name):
    store = {}
    array = days(3).t.rename(name)
    array.zarrdask.to_zarr(store)
    found = xr.open_dataarray(store, engine=ZarrdaskBackendEntrypoint)
    xr.testing.assert_identical(found.load(), array)


def test_a_tree_comes_back(tmp_path):
    tree = xr.DataTree.from_dict({"/": days(2), "/a/b": days(3, chunks=1).rename(time="when")})
    tree.zarrdask.to_zarr(tmp_path / "a", encoding={"/a/b": {"n": {"dtype": "i1"}}})
    found = xr.open_datatree(tmp_path / "a", engine=ZarrdaskBackendEntrypoint, chunks=None)
    xr.testing.assert_identical(found.load(), tree.compute())
    assert zarrdask.open_array(tmp_path / "a", "a/b/n").dtype == "i1"
    # All of it is in the consolidated metadata of the root.
    assert b"a/b/n" in (tmp_path / "a" / "zarr.json").read_bytes()
    tree.zarrdask.to_zarr(tmp_path / "a", mode="w")
    with pytest.raises(NotImplementedError, match="append to its nodes"):
        tree.zarrdask.to_zarr(tmp_path / "a", append_dim="time")


# --------------------------------------------------------------------------------------------
# What cannot be written


@for_each(
    ("dataset", "options", "error", "message"),
    [
        (days(1), {"encoding": {"t": {"foo": 1}}}, ValueError, "unexpected encoding parameters"),
        (days(1), {"encoding": {"t": {"chunk": 1}}}, ValueError, "did you mean 'chunks'"),
        (days(1), {"encoding": {"none": {}}}, KeyError, "no such variable"),
        (days(1), {"encoding": {"t": 3}}, ValueError, "castable"),
        (days(1), {"encoding": {"t": {"chunks": (1.5, 1, 1)}}}, TypeError, "int"),
        (days(1), {"encoding": {"t": {"chunks": (1, 1)}}}, ValueError, "one length for each dim"),
        (days(1), {"encoding": {"t": {"compressors": "none-such"}}}, NotImplementedError, "none-s"),
        (days(1), {"mode": "x"}, ValueError, "only supported options"),
        (days(1), {"mode": "w", "append_dim": "time"}, ValueError, "cannot set append_dim"),
        (days(1), {"mode": "w", "region": "auto"}, ValueError, "cannot set region"),
        (days(1), {"commit": "never"}, ValueError, "'first' or 'last'"),
        (days(1), {"zarr_format": 4}, ValueError, "unknown format"),
        (days(1), {"zarr_format": "v3-draft"}, NotImplementedError, "would mask elements"),
        (days(1).rename(t="a/b"), {}, ValueError, "rename the variable"),
        (days(1).rename(t=3), {}, TypeError, "rename the variable"),
        (days(1).assign_attrs(bad=object()), {}, TypeError, "Invalid attribute"),
        (np.zeros(3), {}, TypeError, "only objects of xarray"),
    ],
)
def test_what_cannot_be_written_changes_nothing(dataset, options, error, message):
    store = {}
    with pytest.raises(error, match=message) as caught:
        to_zarr(dataset, store, **options)
    assert isinstance(caught.value, zarrdask.ZarrdaskError)
    assert store == {}


def test_names_of_other_software_and_mistyped_ones_are_recognized():
    with pytest.raises(TypeError, match="did you mean 'append_dim'"):
        days(1).zarrdask.to_zarr({}, apend_dim="time")
    with pytest.raises(AttributeError, match=r"to_zarr\(\.\.\., append_dim"):
        days(1).zarrdask.append({})


# --------------------------------------------------------------------------------------------
# Requests


class CountingStore(RoundsStore):
    """Counts writes, too."""

    def set(self, key, value):
        self._call("set", [key])
        super().set(key, value)

    def erase(self, key):
        self._call("erase", [key])
        super().erase(key)


@for_each("chunks", [None, 1])
def test_an_append_writes_values_then_shapes_then_that_of_the_index(chunks):
    class Ordered(MemoryStore):
        def set(self, key, value):
            keys.append(key)
            super().set(key, value)

    keys, store = [], Ordered()
    to_zarr(days(2), store)
    keys.clear()
    to_zarr(days(3, 2, chunks=chunks), store, append_dim="time")
    first = min(position for position, key in enumerate(keys) if key.endswith("zarr.json"))
    assert all(key.endswith("zarr.json") for key in keys[first:])
    # Consolidated metadata are last.
    assert sorted(keys[first:-2]) == ["n/zarr.json", "t/zarr.json"]
    assert keys[-2:] == ["time/zarr.json", "zarr.json"]


def test_a_region_is_not_found_by_values_that_occur_twice():
    store = {}
    to_zarr(days(2), store)
    to_zarr(days(2), store, append_dim="time")
    with pytest.raises(zarrdask.errors.SelectionError, match="more than once"):
        to_zarr(days(2), store, region={"time": "auto"})


def test_requests_do_not_multiply_with_variables():
    counts = {}
    for number in (1, 20):
        ds = xr.Dataset({f"v{n}": ("x", np.arange(4.0)) for n in range(number)}, {"x": range(4)})
        store = CountingStore({})
        to_zarr(ds, store)
        written = store.kinds()
        to_zarr(ds.assign_coords(x=range(4, 8)), store, append_dim="x")
        counts[number] = written, store.kinds()
    for few, many in zip(counts[1], counts[20], strict=True):
        # One request that reads or lists is for all variables together ...
        for kind in ("list_dir", "get_many"):
            assert many.count(kind) - few.count(kind) <= 19, kind
        # ... and each variable is written by one for its chunk, and one for its document.
        assert many.count("set") - few.count("set") == 2 * 19


def test_a_write_looks_once_before_and_once_after():
    store = CountingStore({})
    ds = xr.Dataset({f"v{n}": ("x", np.arange(4.0)) for n in range(3)}, {"x": range(4)})
    to_zarr(ds, store)
    kinds = store.kinds()
    # What is there, before the values and before the documents; those that are consolidated, after.
    assert [kinds.count(kind) for kind in ("list_dir", "get_many")] == [2, 3]
    to_zarr(ds.assign_coords(x=range(4, 8)), store, append_dim="x")
    kinds = store.kinds()
    # The group, its members and coordinates; the same as readers see it; each document before it
    # is changed; all of them.
    assert [kinds.count(kind) for kind in ("list_dir", "get_many")] == [3, 3 + 1 + 4 + 1]


def test_documents_are_written_at_the_same_time():
    class Meeting(CountingStore):
        """A store in which documents of two arrays must be on their way at once."""

        def create(self, key, value):
            if key in ("a/zarr.json", "b/zarr.json"):
                self._begun.wait()
            return super().create(key, value)

    ds = xr.Dataset({"a": ("x", [1]), "b": ("x", [2])})
    to_zarr(ds, Meeting({}))


def test_a_region_costs_few_requests():
    store = CountingStore({})
    to_zarr(days(4), store)
    store.kinds()
    to_zarr(days(1, 2)[["t"]].drop_vars("y"), store, region={"time": "auto"})
    kinds = store.kinds()
    # Documents, the coordinate, the chunk: read and written.
    assert len(kinds) <= 6, kinds


def test_an_append_reads_the_ends_of_stored_times_once():
    times = days(8).time.values.reshape(4, 2)
    parts = [xr.Dataset({"t": (("y", "x"), part)}) for part in (times[:2], times[2:])]
    store = ReadCounter(MemoryStore())
    to_zarr(parts[0], store)
    store.clear()
    to_zarr(parts[1], store, append_dim="y")
    assert store.reads["t/c/0/0"] == 2  # xarray looks at the first element and at the last one
    np.testing.assert_array_equal(loaded(store).t, times)


def test_nothing_is_listed_in_a_chunk_directory(tmp_path, monkeypatch):
    listed = []
    original = LocalStore.list_dir
    monkeypatch.setattr(
        LocalStore, "list_dir", lambda self, prefix: listed.append(prefix) or original(self, prefix)
    )
    to_zarr(days(3), tmp_path / "a")
    to_zarr(days(3, 3), tmp_path / "a", append_dim="time")
    assert set(listed) <= {""}


def test_it_needs_no_zarr_python(tmp_path):
    script = """
        sys.modules["zarr"] = None
        import xarray as xr, zarrdask.xarray
        [path] = sys.argv[1:]
        ds = xr.Dataset({"a": ("x", [1.0, 2.0])}).chunk(x=1)
        ds.zarrdask.to_zarr(path)
        ds.zarrdask.to_zarr(path, append_dim="x")
        assert zarrdask.xarray.open_zarr(path).sizes["x"] == 4
        tree = xr.open_datatree(path, engine=zarrdask.xarray.ZarrdaskBackendEntrypoint)
        assert tree.a[1] == 2
    """
    with closing(Process("Linux")) as process:
        process.run(script, tmp_path / "a")
