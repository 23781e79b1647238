"""Plans of reads of parts of large chunks: requests and bytes are those that are sent."""

import random

import numpy as np
import pytest

import zarrdask
from tests.arrays.chunks.remote import LAYOUTS, VALUES, Remote, patch_sizes, stored
from zarrdask.arrays.chunks.ranges.shard_indexes import INDEXES


@pytest.fixture(autouse=True)
def small_chunks_in_parts(monkeypatch):
    with patch_sizes(monkeypatch):
        yield


def selection(pick):
    """Return a random basic index, narrow along most axes."""
    bounds = []
    for size in VALUES.shape:
        start = pick.randrange(size)
        stop = pick.choice([start + 1, min(start + 5, size), size])
        bounds.append(slice(start, stop, pick.choice([1, 1, 3, 20])))
    return tuple(bounds)


def check_remote(name, seed):
    pick, store = random.Random(seed), Remote()
    index = selection(pick)
    blocks = pick.choice(["auto", "stored", (30, 20, 60)])
    x = zarrdask.from_zarr(stored(store, **LAYOUTS[name]), chunks=blocks)[index]
    INDEXES.clear()
    plan = zarrdask.plan_read(x)
    store.clear()
    np.testing.assert_array_equal(x.compute(scheduler="sync"), VALUES[index])
    assert plan.requests_by_class["GET"] == plan.requests
    # Ranges within the first bytes are there already for the task that requests these.
    assert plan.requests == pytest.approx(len(store.calls), abs=1, rel=0.02), index
    if name.startswith("raw"):
        assert (plan.requests, plan.fetched) == (len(store.calls), store.fetched), index
    elif plan.fetched is not None:  # What is compressed and read as a whole has an unknown size.
        assert plan.fetched == pytest.approx(store.fetched, rel=0.05), index


def check_local(name, seed, url):
    index = selection(random.Random(seed))
    z = zarrdask.create_array(url, shape=VALUES.shape, chunks=(48, 50, 40), dtype="f4", **name)
    z[...] = VALUES
    x = zarrdask.from_zarr(z)[index]
    plan = zarrdask.plan_read(x)
    with zarrdask.measured() as m:
        np.testing.assert_array_equal(x.compute(scheduler="sync"), VALUES[index])
    assert plan.requests_by_class["GET"] == m.requests["GET"], index
    assert plan.fetched == m.bytes_fetched, index


@pytest.mark.parametrize("name", ["raw", "zstd"])
def test_a_plan_has_the_requests_for_parts(name, tmp_path):
    check_remote(name, 3)
    check_local(LAYOUTS[name], 3, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in LAYOUTS if name != "gzip"])
def test_plans_have_the_requests_for_parts(name, tmp_path):
    for seed in range(25):
        check_remote(name, seed)
        check_local(LAYOUTS[name], seed, tmp_path / str(seed))


def test_a_plan_counts_no_first_bytes_that_are_cached():
    store = Remote()
    z = stored(store, **LAYOUTS["zstd"])
    z[20, 4, 10:14]
    plan = zarrdask.plan_read(z, np.s_[40, 4, 10:14])
    store.clear()
    z[40, 4, 10:14]
    assert plan.requests == len(store.calls) == 1
    assert plan.fetched == store.fetched


def test_a_plan_of_small_and_missing_chunks(tmp_path):
    store = Remote()
    z = stored(store, np.zeros_like(VALUES), **LAYOUTS["zstd"], fill_value=1)
    plan = zarrdask.plan_read(z, np.s_[20, 4, 10:14])
    store.clear()
    z[20, 4, 10:14]
    assert (plan.requests, plan.fetched) == (len(store.calls), store.fetched)
    local = zarrdask.create_array(
        tmp_path, shape=VALUES.shape, chunks=(48, 50, 40), dtype="f4", **LAYOUTS["zstd"]
    )
    plan = zarrdask.plan_read(local, np.s_[20, 4, 10:14])
    assert (plan.requests, plan.fetched) == (1, 0)


def test_a_plan_of_very_many_compressed_chunks_reads_none_of_them():
    store = Remote()
    options = {**LAYOUTS["zstd"], "shape": (70, 50, 40), "chunks": (1, 200, 400), "dtype": "f4"}
    z = zarrdask.create_array(store, **options)
    store.clear()
    plan = zarrdask.plan_read(z, np.s_[:, 3, 5])
    assert (store.calls, plan.fetched) == ([], None)
