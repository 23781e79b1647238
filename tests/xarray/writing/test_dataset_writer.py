"""``to_zarr``: datasets, data arrays and trees, written and read again."""

import io
import threading
from contextlib import closing

import dask
import dask.array as da
import numpy as np
import pytest
import xarray as xr

import zarrdask
from tests.covering import for_each
from tests.storage.platforms import Process
from tests.xarray.counting import RoundsStore
from tests.xarray.writes import days
from tests.xarray.written import loaded
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.memory import MemoryStore
from zarrdask.xarray import ZarrdaskBackendEntrypoint, open_zarr, to_zarr


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


def test_many_variables():
    store = MemoryStore({})
    ds = xr.Dataset({f"v{n}": ("x", np.full(3, n)) for n in range(60)})
    to_zarr(ds, store)
    xr.testing.assert_identical(loaded(store), ds)
    to_zarr(ds, store, append_dim="x")
    assert loaded(store).sizes["x"] == 6


def test_a_group_that_is_there_is_not_touched_by_default():
    store = {}
    to_zarr(days(2), store)
    before = dict(store)
    with pytest.raises(FileExistsError, match="mode='w' replaces it"):
        to_zarr(days(3), store)
    assert store == before


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
        ({"time": slice(96, 99)}, ValueError, "'time' ends at 99, beyond the stored length"),
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


@for_each(
    ("dataset", "options", "error", "message"),
    [
        (days(1), {"encoding": {"t": {"foo": 1}}}, ValueError, "unexpected encoding parameters"),
        (days(1), {"encoding": {"t": {"chunk": 1}}}, ValueError, "did you mean 'chunks'"),
        (days(1), {"encoding": {"t": {"chunk": 1, "foo": 1}}}, ValueError, "did you mean 'chunks'"),
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


class CountingStore(RoundsStore):
    """Counts writes, too."""

    def set(self, key, value):
        self._call("set", [key])
        super().set(key, value)

    def erase(self, key):
        self._call("erase", [key])
        super().erase(key)


def test_a_region_is_not_found_by_values_that_occur_twice():
    store = {}
    to_zarr(days(2), store)
    with dask.config.set({"zarrdask.append-checks": "off"}):
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


def test_a_new_dataset_takes_four_round_trips():
    class Waiting(CountingStore):
        """A store that answers the second look only when documents are being written."""

        has_values, has_documents = False, threading.Event()

        def get_many(self, keys, scratch):
            if self.has_values:
                assert self.has_documents.wait(20)
            return super().get_many(keys, scratch)

        def set(self, key, value):
            self.has_values |= key.startswith("v0/c/")
            if key == "v1/zarr.json":
                self.has_documents.set()
            super().set(key, value)

    store = Waiting({})
    ds = xr.Dataset({f"v{n}": ("x", np.arange(4.0)) for n in range(4)}, {"x": range(4)})
    to_zarr(ds, store)
    keys = [keys[0] for kind, keys in store.calls if kind == "set"]
    # The claim; after a look at what is there, the values, the documents of the arrays, that of the
    # group.
    assert [len(key.split("/")) for key in keys] == [1] + [3] * 5 + [2] * 5 + [1]
    assert [kind for kind, _ in store.calls].count("get_many") == 2
    xr.testing.assert_identical(open_zarr(store, consolidated=True).load(), ds)


def test_consolidated_metadata_that_are_written_with_the_group_have_all_nodes():
    tree = xr.DataTree.from_dict({"/b/c": days(1), "/b": None, "/a": days(1)})
    store = {}
    tree.zarrdask.to_zarr(store)
    document = bytes(store["zarr.json"])
    zarrdask.consolidate_metadata(store)
    assert document == bytes(store["zarr.json"])


def test_nodes_that_are_there_already_are_in_the_consolidated_metadata():
    store = {}
    zarrdask.create_array(store, "old", shape=2, dtype="i4")
    del store["zarr.json"]
    to_zarr(days(1), store)
    assert {"old", "t"} <= {*zarrdask.open_group(store, consolidated=True)}


def test_a_write_looks_once_before_and_once_after():
    store = CountingStore({})
    ds = xr.Dataset({f"v{n}": ("x", np.arange(4.0)) for n in range(3)}, {"x": range(4)})
    to_zarr(ds, store)
    kinds = store.kinds()
    # What is there when the claim is stored, and before the documents; and what other writers
    # created at the same time, which this store can't exclude.
    assert [kinds.count(kind) for kind in ("list_dir", "get_many")] == [3, 2]
    to_zarr(ds.assign_coords(x=range(4, 8)), store, append_dim="x")
    kinds = store.kinds()
    # The group, its members and coordinates; the same as readers see it; each document before it
    # is changed; all of them, once more to see that no other writer changed one.
    assert [kinds.count(kind) for kind in ("list_dir", "get_many")] == [4, 3 + 1 + 4 + 2]


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
