"""Datasets that are replaced, and appends: what there is when they fail."""

from dataclasses import replace

import dask
import numpy as np
import pytest
import xarray as xr
from dask.delayed import Delayed

import zarrdask
from tests.counting import CountingStore as ReadCounter
from tests.covering import for_each
from tests.storage.latency import FarStore
from tests.xarray.writes import days, together
from tests.xarray.written import loaded
from zarrdask.errors import CodecError, NodeExistsError
from zarrdask.storage.base import Store
from zarrdask.storage.memory import MemoryStore
from zarrdask.xarray import ZarrdaskBackendEntrypoint, open_zarr, to_zarr


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
    assert "no dataset was created" in note
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


#: Two of them are for the claim: to store it, and to erase it.
@pytest.mark.parametrize(("zarr_format", "rounds"), [(2, 8), (3, 6)])
def test_a_new_dataset_takes_few_round_trips(zarr_format, rounds):
    store = FarStore(seconds=0.05)  # longer than threads of a busy machine take to begin
    ds = xr.Dataset({f"v{n}": ("x", np.full(4, n)) for n in range(9)}, attrs={"title": "t"})
    to_zarr(ds, store, zarr_format=zarr_format)
    assert store.rounds <= rounds
    xr.testing.assert_identical(loaded(store.inner), ds)
    assert_all_are_consolidated(store.inner)


def test_the_groups_around_a_new_dataset_are_listed_with_the_documents_to_consolidate():
    store = FarStore(seconds=0.05)
    zarrdask.create_group(store.inner)
    ds = xr.Dataset({f"v{n}": ("x", np.full(4, n)) for n in range(3)})
    to_zarr(ds, store, group="a/b")
    # Each group by itself would take four more, as what is consolidated is read twice.
    assert store.rounds <= 14
    xr.testing.assert_identical(loaded(store.inner, group="a/b"), ds)
    assert_all_are_consolidated(store.inner)


def assert_all_are_consolidated(store):
    found = [
        {path for path, _ in zarrdask.open_group(store, consolidated=consolidated).walk()}
        for consolidated in (True, False)
    ]
    assert found[0] == found[1]


class Unconditional(MemoryStore):
    """A store on one of several machines, without conditional writes.

    It calls `before_group` once. Locks do not exclude writers with different URLs.
    """

    capabilities = replace(MemoryStore.capabilities, create_exclusive=False, compare_and_swap=False)
    before_group = None

    @property
    def url(self):
        return f"{super().url}#{id(self)}"

    def create(self, key, value):
        return Store.create(self, key, value)

    def set(self, key, value):
        if key in (".zgroup", "zarr.json") and self.before_group is not None:
            act, self.before_group = self.before_group, None
            act()
        super().set(key, value)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_of_two_writers_that_create_a_group_at_once_one_does(zarr_format):
    values, options = {}, {"zarr_format": zarr_format}
    store, other = Unconditional(values), Unconditional(values)

    def write_other():
        with pytest.raises(NodeExistsError, match="another writer is creating"):
            to_zarr(xr.Dataset({"b": ("x", [1, 2])}), other, **options)

    store.before_group = write_other
    to_zarr(xr.Dataset({"a": ("x", [3, 4])}), store, **options)
    assert store.before_group is None
    assert_all_are_consolidated(store)
    xr.testing.assert_identical(loaded(store), xr.Dataset({"a": ("x", [3, 4])}))


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
    assert note.endswith(": the array is unchanged")


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
    with pytest.raises(zarrdask.errors.StoreError, match="resized the array"):
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


def test_an_append_reads_the_ends_of_stored_times_once():
    times = days(8).time.values.reshape(4, 2)
    parts = [xr.Dataset({"t": (("y", "x"), part)}) for part in (times[:2], times[2:])]
    store = ReadCounter(MemoryStore())
    to_zarr(parts[0], store)
    store.clear()
    to_zarr(parts[1], store, append_dim="y")
    assert store.reads["t/c/0/0"] == 2  # xarray looks at the first element and at the last one
    np.testing.assert_array_equal(loaded(store).t, times)


def test_a_cast_that_the_setting_does_not_permit_changes_nothing():
    store, stored = {}, xr.Dataset({"t": ("x", np.arange(3, dtype="i2"))})
    stored["scaled"] = (
        "x",
        np.ones(3, "f4"),
        {},
        {"dtype": "i1", "scale_factor": 0.5, "_FillValue": -1},
    )
    to_zarr(stored, store)
    before = dict(store)
    with dask.config.set({"zarrdask.casting": "safe"}):
        to_zarr(stored.isel(x=slice(0, 0)), store, append_dim="x")
        for new in (stored.astype("i4"), stored.astype("i4").chunk(), stored.astype("f8")):
            for where in ({"append_dim": "x"}, {"region": {"x": slice(0, 3)}}):
                with pytest.raises(CodecError, match=r"/t: .*zarrdask\.casting"):
                    to_zarr(new, store, **where)
                assert store == before


@for_each("consolidated", [True, False])
@for_each("zarr_format", [2, 3])
def test_mode_a_replaces_the_attributes_of_the_group_also_by_none(zarr_format, consolidated):
    store, options = {}, {"consolidated": consolidated}
    first = xr.Dataset({"a": ("x", [1, 2])}, attrs={"title": "first"})
    to_zarr(first, store, zarr_format=zarr_format, **options)
    to_zarr(xr.Dataset({"b": ("x", [3, 4])}), store, mode="a", **options)
    for each in (True, False) if consolidated else (False,):
        assert open_zarr(store, consolidated=each).attrs == {}
