"""What loses data with other tools, done many times: it is right here, or refused."""

import os
import pickle
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.graph.writes import WritesStore
from tests.storage.faults import Faults, FaultyStore
from zarrdask.storage.memory import MemoryStore

pytestmark = pytest.mark.stress

RUNS = 30
OLD = np.arange(1.0, 121.0).reshape(12, 10)
LAYOUTS = {
    "chunks": {"chunks": (5, 4)},
    "shards": {"chunks": (1, 2), "shards": (5, 4)},
    "uneven": {"chunks": ((5, 1, 6), (4, 6))},
    "v2": {"chunks": (5, 4), "zarr_format": 2},
}
layouts = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


@pytest.fixture(autouse=True)
def threads():
    # More than there are tasks in most tests: all run at once.
    with dask.config.set(scheduler="threads", num_workers=16):
        yield


class SlowStore(MemoryStore):
    """Values arrive some time after they were read, and it is told late that they are stored."""

    def __init__(self, seed=0):
        super().__init__()
        self.random = random.Random(seed)

    def get(self, key):
        found = super().get(key)
        time.sleep(self.random.uniform(0, 0.001))
        return found

    def set(self, key, value):
        super().set(key, value)
        time.sleep(self.random.choice([0, 0.002]))


def old(store, **layout):
    """Return an array that holds the old values."""
    z = zarrdask.create_array(store, shape=OLD.shape, dtype=OLD.dtype, **layout)
    z[...] = OLD
    return z


def written(array, parts):
    """Write all parts (a region, and values) in one graph; return whether that was refused."""
    try:
        tasks = [
            zarrdask.to_zarr(da.from_array(new, chunks=3), array, region=region, compute=False)
            for region, new in parts
        ]
        dask.compute(*tasks)
    except zarrdask.ZarrdaskError:
        np.testing.assert_array_equal(array[...], OLD)
        return True
    return False


# ---- regions in one graph


@layouts
@pytest.mark.parametrize(
    "regions",
    [
        # Neighbours, in one unit.
        [np.s_[0:7, :], np.s_[7:12, :]],
        [np.s_[:, 0:5], np.s_[:, 5:10]],
        [np.s_[0:3, 0:3], np.s_[0:3, 3:6], np.s_[3:6, 0:3], np.s_[3:6, 3:6]],
        # Apart, in one unit.
        [np.s_[0:1, 0:1], np.s_[4:5, 3:4]],
    ],
    ids=["rows", "columns", "corner", "apart"],
)
def test_regions_of_one_graph_that_share_a_unit(layout, regions):
    refused = set()
    # Sixteen times as often in all.
    for seed in range(10):
        array = old(SlowStore(seed), **layout)
        parts = [(region, -OLD[region] - seed) for region in regions]
        expected = OLD.copy()
        for region, new in parts:
            expected[region] = new
        refused.add(written(array, parts))
        if refused == {False}:
            np.testing.assert_array_equal(array[...], expected)
    assert len(refused) == 1, "refused at times"


@layouts
def test_regions_of_one_graph_that_share_no_unit_are_written(layout):
    array = old(SlowStore(), **layout)
    assert not written(array, [(np.s_[0:5, 0:10], -OLD[:5]), (np.s_[5:12, 0:10], -OLD[5:])])
    np.testing.assert_array_equal(array[...], -OLD)


def test_regions_that_come_as_stored_arrays_share_a_unit():
    refused = set()
    for seed in range(RUNS):
        array = old(SlowStore(seed), chunks=(5, 4))
        options = {"compute": False, "return_stored": True}
        try:
            above = zarrdask.to_zarr(da.full((7, 10), -1.0), array, region=np.s_[:7], **options)
            below = zarrdask.to_zarr(da.full((5, 10), -2.0), array, region=np.s_[7:], **options)
            total = da.concatenate([above, below]).sum().compute()
        except zarrdask.ZarrdaskError:
            refused.add(True)
            continue
        refused.add(False)
        assert total == -170
        assert array[...].sum() == -170
    assert len(refused) == 1, "refused at times"


def test_regions_that_threads_write_at_once_share_a_unit():
    for seed in range(10):
        array = old(SlowStore(seed), chunks=(5, 4))
        rows = [slice(row, row + 1) for row in range(len(OLD))]
        with ThreadPoolExecutor(len(rows)) as pool:
            list(pool.map(array.__setitem__, rows, map((-OLD).__getitem__, rows)))
        np.testing.assert_array_equal(array[...], -OLD)


# ---- blocks and units


def test_blocks_of_30_to_chunks_of_100():
    values = np.arange(1, 250 * 130 + 1).reshape(250, 130)
    for _ in range(10):
        store = WritesStore()
        zarrdask.to_zarr(da.from_array(values, chunks=30), store, chunks=100)
        np.testing.assert_array_equal(zarrdask.open_array(store)[...], values)
        assert set(store.writes.values()) == {1}
        assert len(store.writes) == 3 * 2 + 1


@pytest.mark.parametrize("blocks", [(20, 20), (40, 40), (80, 60)])
def test_shards_larger_than_the_chunk_size_of_dask(setting, blocks):
    setting({"array.chunk-size": "1 KiB"})
    values = np.arange(1, 160 * 120 + 1, dtype="f8").reshape(160, 120)
    for seed in range(10):
        store = WritesStore()
        shards = {"chunks": (20, 20), "shards": (80, 60)}
        array = zarrdask.create_array(
            FaultyStore(store, Faults(delay=0.001), seed), shape=(160, 120), dtype="f8", **shards
        )
        zarrdask.to_zarr(da.from_array(values, chunks=blocks), array)
        np.testing.assert_array_equal(array[...], values)
        assert set(store.writes.values()) == {1}


@pytest.mark.parametrize(
    "options",
    [{"chunks": 10}, {"chunks": 5, "shards": 10}, {"chunks": (20, 5)}, {"grid": "rectilinear"}],
    ids=str,
)
def test_blocks_that_lie_right_get_no_task_beside_the_write(options):
    x = da.ones((40, 20), chunks=(20, 10)) + 1
    task = zarrdask.to_zarr(x, {}, compute=False, **options)
    (task,) = dask.optimize(task)
    # The blocks are made and written in one task each, and one more waits for them.
    assert len(task.__dask_graph__()) <= x.npartitions + 1


def test_a_region_in_step_with_the_units_gets_no_task_beside_the_write():
    array = zarrdask.create_array({}, shape=(47, 20), dtype="f8", chunks=(10, 10))
    x = da.ones((27, 20), chunks=((10, 10, 7), 10))
    (task,) = dask.optimize(zarrdask.to_zarr(x, array, region=np.s_[20:], compute=False))
    assert len(task.__dask_graph__()) <= x.npartitions + 1


class Meeting(MemoryStore):
    """Writes of units wait for each other, two at a time."""

    def __init__(self):
        super().__init__()
        self.barrier = threading.Barrier(2, timeout=20)

    def set(self, key, value):
        if not key.endswith("zarr.json"):
            self.barrier.wait()
        super().set(key, value)


@pytest.mark.parametrize("options", [{"mode": "w"}, {"overwrite": True}, {"mode": "w-"}], ids=str)
def test_no_lock_is_held_while_others_write(options):
    store = Meeting()
    if options != {"mode": "w-"}:
        zarrdask.create_array(store, shape=4, dtype="i4")
    with dask.config.set(scheduler="threads", num_workers=2):
        zarrdask.to_zarr(da.ones((20, 10), chunks=(5, 10)), store, **options)
    np.testing.assert_array_equal(zarrdask.open_array(store)[...], np.ones((20, 10)))


# ---- onto what is read


def plain(place):
    return zarrdask.from_zarr(place, chunks="stored")


def optimised(place):
    return dask.optimize(zarrdask.from_zarr(place))[0]


def pickled(place):
    return pickle.loads(pickle.dumps(zarrdask.from_zarr(place)))


def from_array(place):
    return da.from_array(zarrdask.open_array(place), chunks=4)


def other_spelling(place):
    return zarrdask.from_zarr(f"file://{place}/")


def relative(place):
    return zarrdask.from_zarr(os.path.relpath(place))


SOURCES = (plain, optimised, pickled, from_array, other_spelling, relative)


@pytest.mark.parametrize("options", [{"mode": "w"}, {"overwrite": True}], ids=str)
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
def test_an_array_is_replaced_by_what_is_computed_from_it_or_kept(tmp_path, source, options):
    place = tmp_path / "a"
    for _ in range(5):
        zarrdask.to_zarr(da.from_array(OLD, chunks=4), place, overwrite=True)
        try:
            zarrdask.to_zarr(source(place) + 1, place, **options)
        except zarrdask.ZarrdaskError:
            expected = OLD
        else:
            expected = OLD + 1
        np.testing.assert_array_equal(zarrdask.open_array(place)[...], expected)
        assert sorted(os.listdir(tmp_path)) == ["a"]


def test_an_array_in_memory_may_replace_what_it_was_read_from(tmp_path):
    zarrdask.to_zarr(da.from_array(OLD, chunks=4), tmp_path)
    x = (zarrdask.from_zarr(tmp_path) + 1).persist()
    zarrdask.to_zarr(x, tmp_path, overwrite=True)
    np.testing.assert_array_equal(zarrdask.open_array(tmp_path)[...], OLD + 1)


def shifted(x):
    return x[:-5], np.s_[5:], np.concatenate([OLD[:5], OLD[:-5]])


def turned(x):
    return x[::-1], np.s_[:], OLD[::-1]


def spread(x):
    y = x.map_overlap(lambda block: block + np.roll(block, 1, 0), depth=1, boundary="periodic")
    return y, np.s_[:], OLD + np.roll(OLD, 1, 0)


@pytest.mark.parametrize("workers", [1, 2, 16])
@pytest.mark.parametrize("change", [shifted, turned, spread], ids=lambda change: change.__name__)
def test_what_is_computed_from_an_array_is_written_to_it_or_refused(change, workers):
    refused = set()
    for seed in range(5):
        store = SlowStore(seed)
        array = old(store, chunks=(4, 4))
        x, region, expected = change(zarrdask.from_zarr(store, chunks="stored"))
        try:
            with dask.config.set(num_workers=workers):
                zarrdask.to_zarr(x, array, region=region)
        except zarrdask.ZarrdaskError:
            expected = OLD
            refused.add(True)
        else:
            refused.add(False)
        np.testing.assert_array_equal(array[...], expected)
    assert len(refused) == 1, "refused at times"


# ---- shrink, then grow


@layouts
@pytest.mark.parametrize("fill", [0, -7.5, np.nan])
def test_what_was_cut_off_never_comes_back(layout, fill):
    rng = np.random.default_rng(0)
    for _ in range(RUNS):
        store = MemoryStore()
        array = old(store, fill_value=fill, **layout)
        expected = OLD
        for _ in range(4):
            shape = tuple(int(n) for n in rng.integers(0, (15, 12)))
            array.resize(shape)
            grown = np.full(shape, float(fill))
            common = tuple(map(slice, np.minimum(shape, expected.shape)))
            grown[common] = expected[common]
            expected = grown
            np.testing.assert_array_equal(array[...], expected)
            np.testing.assert_array_equal(zarrdask.open_array(store)[...], expected)


@layouts
def test_what_was_cut_off_does_not_come_back_by_another_handle(layout):
    store = MemoryStore()
    first, second = old(store, **layout), zarrdask.open_array(store, mode="r+")
    first.resize((7, 3))
    second.resize(OLD.shape)
    expected = np.zeros(OLD.shape)
    expected[:7, :3] = OLD[:7, :3]
    np.testing.assert_array_equal(second[...], expected)
    first.resize((2, 2))
    first.append(np.zeros((6, 2)))
    assert first[2:].sum() == 0
