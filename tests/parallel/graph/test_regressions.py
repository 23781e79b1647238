"""What loses data with other tools, done many times: it is right here, or refused."""

import random
import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from zarrdask.storage.memory import MemoryStore

pytestmark = pytest.mark.stress

RUNS = 30
OLD = np.arange(1.0, 121.0).reshape(12, 10)


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


class Meeting(MemoryStore):
    """Writes of units wait for each other, two at a time."""

    def __init__(self):
        super().__init__()
        self.barrier = threading.Barrier(2, timeout=20)

    def set(self, key, value):
        if key.startswith("c/"):
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
