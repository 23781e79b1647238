"""A write whose tasks run later never takes the array of another writer for its own."""

import multiprocessing

import dask
import dask.array as da
import numpy as np
import pytest
import xarray

import zarrdask
import zarrdask.xarray
from tests.clocks import Clock
from tests.covering import for_each
from tests.storage.latency import FarStore
from zarrdask.arrays.hierarchy import claim
from zarrdask.arrays.hierarchy.changes import later_claim
from zarrdask.errors import NodeExistsError, StoreError
from zarrdask.storage.memory import MemoryStore

PROCESSES = multiprocessing.get_context("fork")
OWN, OTHER = np.arange(1, 10), np.arange(11, 20)


@pytest.fixture(autouse=True)
def in_this_thread(setting):
    setting({"scheduler": "sync"})


def later(place, values=OWN, **options):
    x = values if isinstance(values, da.Array) else da.from_array(values, chunks=3)
    return zarrdask.to_zarr(x, place, "a", commit="last", compute=False, **options)


def write(place, values=OTHER, **options):
    zarrdask.to_zarr(da.from_array(values, chunks=3), place, "a", **options)


def dataset(place, values=OWN, **options):
    variable = xarray.Dataset({"a": ("x", da.from_array(values, chunks=3))})
    return zarrdask.xarray.to_zarr(variable, place, commit="last", **options)


def stored(place):
    return zarrdask.open_array(place, "a")[...].tolist()


def elsewhere(run):
    """Call a function in another process, which ends."""
    process = PROCESSES.Process(target=run)
    process.start()
    process.join()
    assert process.exitcode == 0


def failed(place):
    """Return a write that has failed at its third block."""
    blocks = list[int]()

    def fail(values):
        blocks.append(len(blocks))
        if blocks[-1] == 2:
            raise RuntimeError("this block fails")
        return values

    with dask.config.set({"zarrdask.fuse-blocks": 0}):
        x = da.from_array(OWN, chunks=3)
        result = later(place, x.map_blocks(fail, dtype="i8", meta=np.empty(0, "i8")))
        with pytest.raises(RuntimeError):
            dask.compute(result)
    return result


@for_each("dtype", ["i8", "f4"])
@for_each("kind", [dict, FarStore, None])
@pytest.mark.slow
def test_an_array_that_was_stored_since_the_call_stays(tmp_path, setting, kind, dtype):
    for number, fuse in enumerate((0, 16)):
        setting({"zarrdask.fuse-blocks": fuse})
        place = tmp_path / f"{dtype} {number}" if kind is None else kind()
        for result in (later(place), later(place, return_stored=True)):
            write(place, OTHER.astype(dtype), overwrite=True)
            with pytest.raises(NodeExistsError):
                dask.compute(result)
            assert stored(place) == OTHER.tolist()
            zarrdask.create_group(place, overwrite=True)


@for_each("exists", [False, True])
@for_each("kind", [dict, FarStore, None])
@pytest.mark.slow
def test_a_dataset_that_was_stored_since_the_call_stays(tmp_path, kind, exists):
    place = tmp_path / f"{exists}" if kind is None else kind()
    if exists:
        zarrdask.create_group(place)
    mode = "a" if exists else "w-"
    result = dataset(place, mode=mode, compute=False)
    dataset(place, OTHER, mode=mode)
    with pytest.raises(NodeExistsError):
        dask.compute(result)
    assert stored(place) == OTHER.tolist()


@for_each("kind", [dict, FarStore, None])
@for_each("write", [later, lambda place: dataset(place, compute=False)])
@pytest.mark.slow
def test_a_write_that_is_computed_again_changes_nothing(tmp_path, kind, write):
    place = tmp_path / f"{write is later}" if kind is None else kind()
    result = write(place)
    for _ in range(3):
        dask.compute(result)
        assert stored(place) == OWN.tolist()


def test_the_last_task_may_run_again_before_it_has_erased_the_claim(monkeypatch, tmp_path):
    forget, is_killed = later_claim.LaterClaim.forget, [True]
    monkeypatch.setattr(
        later_claim.LaterClaim, "forget", lambda self: None if is_killed else forget(self)
    )
    result = later(tmp_path)
    elsewhere(lambda: dask.compute(result))
    assert list(tmp_path.rglob(claim.NAME))
    is_killed.clear()
    dask.compute(result)
    assert stored(tmp_path) == OWN.tolist()
    assert not list(tmp_path.rglob(claim.NAME))


def test_tasks_of_several_processes_share_the_claim(tmp_path):
    result = failed(tmp_path)
    assert list(tmp_path.rglob(claim.NAME))
    elsewhere(lambda: dask.compute(result))
    assert stored(tmp_path) == OWN.tolist()
    assert not list(tmp_path.rglob(claim.NAME))


def test_a_write_that_failed_here_is_taken_over_at_once_and_does_not_go_on():
    store = {}
    first, second = failed(store), later(store)
    dask.compute(second)
    with pytest.raises(NodeExistsError):
        write(store)
    zarrdask.create_group(store, overwrite=True)
    with pytest.raises(StoreError, match="removed or replaced the claim"):
        dask.compute(first)
    assert list(zarrdask.open_group(store)) == []


def test_a_write_of_another_process_is_taken_over_when_its_claim_is_not_renewed(
    monkeypatch, tmp_path
):
    elsewhere(lambda: failed(tmp_path))
    clock = Clock()
    monkeypatch.setattr(claim, "time", clock)
    write(tmp_path, commit="last")
    assert stored(tmp_path) == OTHER.tolist()
    assert clock.now >= claim.Lease.EXPIRY


def test_a_write_that_stores_a_block_excludes_others():
    errors = []

    class Busy(MemoryStore):
        """Lets another writer try to create the array while a chunk is stored."""

        def set(self, key, value):
            if "/c/" in key:
                with pytest.raises(NodeExistsError, match="is creating this array") as caught:
                    write(self, commit="last")
                errors.append(caught.value)
            super().set(key, value)

    store = Busy()
    dask.compute(later(store))
    assert stored(store) == OWN.tolist()
    assert len(errors) == 3


def test_tasks_renew_the_claim(monkeypatch):
    store, seen, time = FarStore(), [], [0.0]

    def wait(block, block_id):
        seen.append(store.get(f"a/{claim.NAME}"))
        time[0] += later_claim.Lease.RENEWAL
        return block

    monkeypatch.setattr(later_claim, "clock", lambda: time[0])
    monkeypatch.setattr("zarrdask.arrays.writers.now", lambda: 1e9 + time[0])
    x = da.from_array(OWN, chunks=3).map_blocks(wait, dtype="i8")
    with dask.config.set({"zarrdask.fuse-blocks": 0}):
        dask.compute(later(store, x))
    assert len(set(seen)) == 3
    assert seen[0] is None
