"""Dask arrays at the end of stored ones."""

from functools import partial

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.counting import CountingStore
from tests.covering import covering, for_each
from tests.parallel.graph.writes import WritesStore, append_elsewhere
from zarrdask.arrays.hierarchy.resize import grow
from zarrdask.storage.memory import MemoryStore

OLD = np.arange(1.0, 1 + 13 * 7).reshape(13, 7)
LAYOUTS = {
    "chunks": {"chunks": (5, 3)},
    "shards": {"chunks": (1, 2), "shards": (5, 4)},
    "uneven": {"chunks": ((5, 1, 7), (3, 4))},
    "v2": {"chunks": (5, 3), "zarr_format": 2},
    "draft": {"chunks": (5, 3), "zarr_format": "v3-draft"},
    "draft shards": {"chunks": (1, 2), "shards": (5, 4), "zarr_format": "v3-draft-protocol"},
}


@pytest.fixture(autouse=True)
def scheduler(request):
    with dask.config.set(scheduler=getattr(request, "param", "threads")):
        yield


def old(store, layout="chunks"):
    z = zarrdask.create_array(store, "a", shape=OLD.shape, dtype="f8", **LAYOUTS[layout])
    z[...] = OLD
    return z


@covering(
    layout=list(LAYOUTS),
    axis=[0, 1, -1],
    size=[0, 4, 23],
    scheduler=["sync", "threads"],
    indirect=["scheduler"],
)
def test_what_is_appended_comes_after_what_was_there(layout, axis, size):
    store = WritesStore()
    z = old(store, layout)
    shape = list(OLD.shape)
    shape[axis] = size
    values = -np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    store.writes.clear()
    zarrdask.append(da.from_array(values, chunks=4), z, axis=axis)
    assert z.shape == tuple(n + size * (i == axis % 2) for i, n in enumerate(OLD.shape))
    expected = np.concatenate([OLD, values], axis)
    np.testing.assert_array_equal(z[...], expected)
    np.testing.assert_array_equal(zarrdask.open_array(store, "a")[...], expected)
    assert set(store.writes.values()) <= {1}, "a unit has several writers"


@for_each("layout", LAYOUTS)
def test_many_steps(layout):
    z = old(MemoryStore(), layout)
    expected = OLD
    for step in range(1, 8):
        new = np.full((step, 7), -float(step))
        zarrdask.append(da.from_array(new, chunks=2), z)
        expected = np.concatenate([expected, new])
    np.testing.assert_array_equal(zarrdask.open_array(z.store, "a")[...], expected)


def test_units_that_are_not_met_stay():
    store = WritesStore()
    z = old(store)
    store.writes.clear()
    zarrdask.append(da.ones((9, 7), chunks=4), z)
    units = {f"a/c/{i}/{j}" for i in (2, 3, 4) for j in range(3)}
    assert set(store.writes) == {*units, "a/zarr.json"}


@pytest.mark.parametrize("compute", [True, False])
def test_the_shape_comes_last(compute):
    order = []

    class Noted(MemoryStore):
        def set(self, key, value):
            order.append(key)
            super().set(key, value)

    z = old(Noted())
    order.clear()
    task = zarrdask.append(da.ones((9, 7), chunks=4), z.store, "a", compute=compute)
    if not compute:
        assert order == []
        np.testing.assert_array_equal(zarrdask.open_array(z.store, "a")[...], OLD)
        task.compute()
    assert order.index("a/zarr.json") == len(order) - 1 == 9
    assert zarrdask.open_array(z.store, "a").shape == (22, 7)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_documents_are_read_when_it_begins_before_blocks_and_at_the_end(zarr_format, monkeypatch):
    store = CountingStore(MemoryStore({}))
    group = zarrdask.create_group(store, zarr_format=zarr_format)
    z = group.create_array("a", shape=(4, 4), dtype="i4", chunks=4)
    documents = ["zarr.json"] if zarr_format == 3 else [".zarray", ".zattrs", ".zgroup"]
    store.clear()
    # A second passes before the last of the three blocks is stored.
    times = iter([7.0, 7.2, 7.5, 8.5, 9.0, 9.1])
    monkeypatch.setattr("zarrdask.arrays.hierarchy.changes.append.clock", times.__next__)
    with dask.config.set(scheduler="sync"):
        zarrdask.append(da.ones((12, 4), chunks=4), z)
    assert _of_documents(store) == {f"a/{name}": 3 for name in documents}
    store.clear()
    z.append(np.ones((4, 4)))
    assert _of_documents(store) == {f"a/{name}": 2 for name in documents}


def _of_documents(store):
    """Return how often each document below the root was read."""
    names = {"a/zarr.json", "a/.zarray", "a/.zattrs", "a/.zgroup"}
    return {key: n for key, n in store.reads.items() if key in names}


def test_a_method_takes_no_dask_array():
    z = old({})
    with pytest.raises(zarrdask.errors.UnsupportedError, match=r"zarrdask\.append\(x, array\)"):
        z.append(da.ones((2, 7)))
    assert z.shape == OLD.shape


def test_a_numpy_array_is_taken_by_both():
    z = old({})
    zarrdask.append(np.ones((2, 7)), z)
    zarrdask.open_array(z.store, "a", mode="r+").append(np.ones((2, 7)))
    assert zarrdask.open_array(z.store, "a").shape == (17, 7)


def test_attributes_stay_also_those_that_were_given_meanwhile():
    z = old({})
    task = zarrdask.append(da.ones((2, 7)), z, compute=False)
    z.attrs["unit"] = "K"
    task.compute()
    assert zarrdask.open_array(z.store, "a").attrs["unit"] == "K"


def test_an_axis_has_a_number_or_a_name():
    z = zarrdask.create_array({}, shape=(2, 2), dtype="i4", dimension_names=("time", "x"))
    zarrdask.append(da.ones((2, 3)), z, axis="x")
    assert z.append(np.ones((1, 5)), axis="time") == (3, 5)
    scalar = zarrdask.create_array({}, shape=(), dtype="i4")
    with pytest.raises(zarrdask.errors.SelectionError, match=r"no such axis.*an array with axes"):
        zarrdask.append(da.ones(1), scalar)
    with pytest.raises(zarrdask.errors.SelectionError, match="no such axis; found 'tme'"):
        zarrdask.append(da.ones((2, 5)), z, axis="tme")


def test_values_are_cast():
    z = zarrdask.create_array({}, shape=2, dtype="i2", chunks=2)
    zarrdask.append(da.from_array([1.0, 2.0, 3.0], chunks=2), z)
    assert z[...].tolist() == [0, 0, 1, 2, 3]


def test_units_of_the_fill_value_are_not_stored():
    z = old({})
    zarrdask.append(da.zeros((12, 7), chunks=4), z)
    assert z.nchunks_stored() == 9
    assert z.shape == (25, 7)


def test_it_may_be_computed_from_the_array_itself():
    z = old({})
    zarrdask.append(zarrdask.from_zarr(z)[::-1] * 2, z)
    np.testing.assert_array_equal(z[...], np.concatenate([OLD, OLD[::-1] * 2]))


def test_doing_it_again_changes_nothing():
    z = old({})
    task = zarrdask.append(da.full((4, 7), 5.0, chunks=3), z, compute=False)
    task.compute()
    with pytest.raises(zarrdask.errors.StoreError, match="resized the array"):
        task.compute()  # which could as well be another append of as many rows
    expected = np.concatenate([OLD, np.full((4, 7), 5.0)])
    np.testing.assert_array_equal(zarrdask.open_array(z.store, "a")[...], expected)


@for_each(
    ("shape", "axis"),
    [((2, 6), 0), ((2, 7), 1), ((7,), 0), ((2, 7), 2), ((2, 7), -3), ((2, 7), "x")],
)
def test_what_does_not_fit_is_an_error_and_changes_nothing(shape, axis):
    z = old({})
    before = dict(z.store.values)
    with pytest.raises(zarrdask.errors.SelectionError):
        zarrdask.append(da.ones(shape), z, axis=axis)
    with pytest.raises(zarrdask.errors.SelectionError):
        z.append(np.ones(shape), axis)
    assert z.store.values == before


def test_other_errors():
    z = old({})
    with pytest.raises(zarrdask.errors.ReadOnlyError):
        zarrdask.append(da.ones((2, 7)), zarrdask.open_array(z.store, "a"))
    with pytest.raises(zarrdask.errors.NodeNotFoundError):
        zarrdask.append(da.ones((2, 7)), z.store, "b")
    with pytest.raises(zarrdask.errors.NodeTypeError):
        zarrdask.append(da.ones((2, 7)), z.store)
    x = da.from_array(np.arange(10), chunks=5)
    with pytest.raises(zarrdask.errors.MetadataError, match="compute_chunk_sizes"):
        zarrdask.append(x[x > 3], z)


def test_another_shape_meanwhile_is_an_error():
    z = old({})
    first = zarrdask.append(da.full((4, 7), 5.0), z, compute=False)
    z.append(np.full((3, 7), 6.0))
    with pytest.raises(zarrdask.errors.StoreError, match="resized the array concurrently"):
        first.compute()
    assert zarrdask.open_array(z.store, "a").shape == (16, 7)
    del z.store.values["a/zarr.json"]
    with pytest.raises(zarrdask.errors.NodeNotFoundError, match="no longer exists"):
        first.compute()


class Failure(Exception):
    pass


@pytest.mark.parametrize("kind", ["dask", "numpy"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_that_fails_leaves_the_array_as_it_was(kind, layout, monkeypatch):
    store = MemoryStore()
    z = old(store, layout)
    before = dict(store.values)
    if kind == "dask":

        def fail(block, block_info=None):
            if block_info[0]["chunk-location"] == (3, 1):
                raise Failure
            return block

        x = da.ones((17, 7), chunks=4).map_blocks(fail, dtype="f8", meta=np.empty((0, 0)))
        with pytest.raises(Failure) as caught:
            zarrdask.append(x, z)
        assert "the array is unchanged" in caught.value.__notes__[0]
    else:
        real = MemoryStore.set

        def full(self, key, value):
            if len(self.values) > len(before) + 2 and key not in before:
                raise zarrdask.errors.StoreError("full", key=key)
            real(self, key, value)

        with monkeypatch.context() as patch:
            patch.setattr(MemoryStore, "set", full)
            with pytest.raises(zarrdask.errors.StoreError, match="full"):
                z.append(np.ones((17, 7)))
    assert z.shape == zarrdask.open_array(store, "a").shape == OLD.shape
    np.testing.assert_array_equal(z[...], OLD)
    assert store.values.keys() == before.keys()
    # Growing shows nothing of it.
    z.resize((40, 7))
    assert not z[13:].any()


def test_one_that_is_done_again_after_another_does_not_say_that_it_was_not_done():
    z = old({})
    change = partial(grow, z.node_path, 3, (13, 7), (15, 7))
    change()
    change()
    z = zarrdask.open_array(z.store, "a", mode="r+")
    z.append(np.ones((2, 7)))
    with pytest.raises(
        zarrdask.errors.StoreError, match="that shape stays, and the appended values"
    ):
        change()
    assert zarrdask.open_array(z.store, "a").shape == (17, 7)


def failing(before):
    """Return rows whose blocks do something, then fail."""

    def fail(block):
        before()
        raise Failure

    return da.ones((2, 7), chunks=-1).map_blocks(fail, dtype="f8", meta=np.empty((0, 0)))


def note_of(array, x):
    """Return what is told to be there when an append fails."""
    with pytest.raises(Failure) as caught:
        zarrdask.append(x, array)
    (note,) = caught.value.__notes__
    return note.partition(": ")[2]


@pytest.mark.parametrize(
    ("length", "told"),
    [
        (13, "the array is unchanged"),
        (15, "the array has its new shape; check whether it has the appended values"),
        (14, "another writer changed the shape; the appended values may be in the array"),
    ],
)
def test_the_note_of_one_that_fails_says_what_shape_there_is(length, told):
    z = old({})
    data = old({}).metadata.resized((length, 7))
    assert note_of(z, failing(lambda: z.node_path.write(data))) == told


def test_the_note_of_one_that_fails_says_if_the_array_is_gone_or_damaged():
    z = old({})
    x = failing(lambda: z.store.set("a/zarr.json", b"{"))
    assert note_of(z, x) == "the state of the array is unknown, as its metadata can't be read"
    z = old({})
    assert note_of(z, failing(lambda: z.store.erase("a/zarr.json"))) == "the array no longer exists"


def test_the_note_of_one_that_fails_says_what_could_not_be_taken_back(monkeypatch):
    def fail(chunks, shape):
        raise zarrdask.errors.StoreError("no more")

    monkeypatch.setattr("zarrdask.arrays.hierarchy.changes.append.trim", fail)
    found = note_of(old({}), failing(lambda: None))
    assert found == "the array is unchanged, but values remain stored beyond its end"


def test_readers_see_the_old_or_the_new():
    seen = set()

    class Watched(MemoryStore):
        def set(self, key, value):
            super().set(key, value)
            copy = zarrdask.open_array(dict(self.values), "a")
            np.testing.assert_array_equal(copy[:13], OLD)
            assert (copy[13:] == 5).all()
            seen.add(copy.shape)

    store = old({}).store
    zarrdask.append(da.full((9, 7), 5.0, chunks=4), Watched(store.values), "a")
    assert seen == {(13, 7), (22, 7)}


@pytest.mark.parametrize("length", [3, 7])
def test_an_append_that_is_computed_too_late_overwrites_nothing(tmp_path, length):
    zarrdask.create_array(tmp_path, shape=(4, 3), dtype="i4", chunks=(4, 3))
    late = zarrdask.append(da.full((length, 3), 2, chunks=2), tmp_path, compute=False)
    zarrdask.append(da.full((3, 3), 1, chunks=2), tmp_path)
    with pytest.raises(
        zarrdask.errors.StoreError, match="resized the array concurrently: nothing more is"
    ):
        late.compute()
    assert zarrdask.open_array(tmp_path)[...].tolist() == [[0] * 3] * 4 + [[1] * 3] * 3


def test_an_append_that_fails_takes_back_nothing_of_anothers(tmp_path):
    zarrdask.create_array(tmp_path, shape=(4, 3), dtype="i4", chunks=(4, 3))

    def fail(block):
        append_elsewhere(np.full((2, 3), 5), tmp_path)
        raise RuntimeError("too bad")

    x = da.ones((6, 3), chunks=6, dtype="i4").map_blocks(fail, dtype="i4", meta=np.empty((0, 0)))
    with pytest.raises(RuntimeError):
        zarrdask.append(x, tmp_path)
    assert zarrdask.open_array(tmp_path)[...].tolist() == [[0] * 3] * 4 + [[5] * 3] * 2
