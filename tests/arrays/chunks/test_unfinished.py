"""An array whose first write did not end does not pass for a complete one."""

import multiprocessing
import os
import random
import time

import dask
import dask.array as da
import numpy as np
import pytest
import xarray

import zarrdask
import zarrdask.xarray
from tests.covering import for_each
from tests.storage.latency import LatencyStore
from zarrdask.arrays import writers
from zarrdask.arrays.chunks import unfinished
from zarrdask.arrays.hierarchy.changes.marker import LaterMarker
from zarrdask.storage.memory import MemoryStore

FORMATS = (2, 3, "v3-draft", "v3-draft-protocol")
WARNS = "an unfinished write is here"
VALUES = np.arange(1.0, 41.0)
PROCESSES = multiprocessing.get_context("fork")


def write_slowly(url):
    """Write 40 chunks, one after another."""

    def wait(block):
        time.sleep(0.005)
        return block

    x = da.from_array(VALUES, chunks=1).map_blocks(wait, meta=np.ones(1))
    with dask.config.set({"scheduler": "sync", "zarrdask.fuse": False}):
        zarrdask.to_zarr(x, url, "g/a")


def fail(block, block_info=None):
    """Fail at the last block."""
    if block_info[0]["chunk-location"][0] == block_info[0]["num-chunks"][0] - 1:
        raise RuntimeError("this block fails")
    return block


def left(store):
    """Return the keys of markers in a dict or in a directory."""
    keys = store if isinstance(store, dict) else [p.as_posix() for p in store.rglob("*")]
    return [key for key in keys if key.endswith(unfinished.NAME)]


def interrupt(monkeypatch, url, **options):
    """Write all chunks of an array but the last, as a process that is killed does."""
    x = da.from_array(VALUES, chunks=10).map_blocks(fail, meta=np.ones(1))
    with monkeypatch.context() as patch, dask.config.set(scheduler="sync"):
        patch.setattr("zarrdask.arrays.hierarchy.changes.new_array.NewArray.abort", lambda _: "")
        patch.setattr("zarrdask.arrays.writers.begin", lambda _: None)
        with pytest.raises(RuntimeError, match="this block fails"):
            zarrdask.to_zarr(x, url, "g/a", **options)


@for_each("zarr_format", FORMATS)
def test_missing_chunks_warn_until_the_array_is_written_again(monkeypatch, zarr_format):
    store = {}
    interrupt(monkeypatch, store, zarr_format=zarr_format)
    assert len(left(store)) == 1
    with pytest.warns(UserWarning, match=f"g/a: {WARNS}.*overwrite=True.*{unfinished.NAME}"):
        assert zarrdask.from_zarr(store, "g/a").compute()[30:].tolist() == [0] * 10
    with pytest.raises(zarrdask.errors.NodeExistsError, match=WARNS):
        zarrdask.to_zarr(VALUES, store, "g/a", zarr_format=zarr_format)
    z = zarrdask.open_array(store, "g/a", mode="r+")
    z[...] = VALUES
    assert z[...].tolist() == VALUES.tolist()  # no chunk is missing
    zarrdask.to_zarr(VALUES, store, "g/a", zarr_format=zarr_format, overwrite=True)
    assert left(store) == []
    assert zarrdask.open_array(store, "g/a")[...].tolist() == VALUES.tolist()


def test_a_write_that_recorded_nothing_is_not_resumed(monkeypatch):
    store = {}
    interrupt(monkeypatch, store)
    x = da.from_array(VALUES, chunks=10)
    with pytest.raises(zarrdask.errors.NodeExistsError, match=f"g/a: {WARNS}.*overwrite=True"):
        zarrdask.to_zarr(x, store, "g/a", resume=True)
    assert len(left(store)) == 1


def test_copies_say_that_the_source_is_unfinished(monkeypatch, tmp_path):
    interrupt(monkeypatch, tmp_path / "a.zarr")
    with pytest.warns(UserWarning, match=WARNS):
        zarrdask.copy(tmp_path / "a.zarr", tmp_path / "b.zarr", progress=False)
    with pytest.warns(UserWarning, match=WARNS):
        zarrdask.sync(tmp_path / "a.zarr", tmp_path / "c.zarr")


@for_each("in_memory", [False, True])
def test_an_array_warns_once(tmp_path, in_memory):
    store = {} if in_memory else tmp_path
    zarrdask.create_array(store, "a", shape=9, chunks=1, dtype="i4")
    stored = zarrdask.open_array(store, "a").store
    stored.set(f"a/{unfinished.NAME}", f"{in_memory} abcdef 77 1700000000".encode())
    with pytest.warns(UserWarning, match=WARNS) as caught:
        assert [int(zarrdask.open_array(store, "a")[number]) for number in range(9)] == [0] * 9
    assert len(caught) == 1


@for_each("zarr_format", FORMATS)
def test_writes_that_end_leave_no_marker(zarr_format):
    options, x = {"zarr_format": zarr_format}, da.from_array(VALUES, chunks=10)
    stores = [{} for _ in range(4)]
    zarrdask.to_zarr(x, stores[0], "a", **options)
    zarrdask.to_zarr({"a": x, "b": x}, stores[1], **options)
    with pytest.raises(RuntimeError, match="this block fails"):
        zarrdask.to_zarr(x.map_blocks(fail, meta=np.ones(1)), stores[2], "a", **options)
    # It is not computed yet: its chunks may be written by other calls.
    zarrdask.to_zarr(x, stores[3], "a", compute=False, **options)
    assert [left(store) for store in stores] == [[]] * 4


def compute_in_part(*later):
    """Compute writes in another process, which fails at a block, and ends."""

    def run():
        with (
            pytest.raises(RuntimeError, match="this block fails"),
            dask.config.set(scheduler="sync"),
        ):
            dask.compute(*later)

    process = PROCESSES.Process(target=run)
    process.start()
    process.join()
    assert process.exitcode == 0


@for_each("is_dataset", [False, True])
def test_a_write_that_is_computed_later_is_unfinished_from_its_first_task_on(tmp_path, is_dataset):
    fails, place = tmp_path / "fails", tmp_path / f"{is_dataset}"

    def block(values, block_id):
        if block_id == (0,) and fails.exists():
            raise RuntimeError("this block fails")
        return values

    with dask.config.set({"zarrdask.fuse-blocks": 0}):
        x = da.from_array(VALUES, chunks=10).map_blocks(block, dtype="f8")
        if is_dataset:
            dataset = xarray.Dataset({"a": ("x", x)})
            later = zarrdask.xarray.to_zarr(dataset, place, compute=False)
        else:
            later = zarrdask.to_zarr(x, place, "a", compute=False)
    assert left(place) == []
    fails.touch()
    compute_in_part(later)
    assert len(left(place)) == 1
    with pytest.warns(UserWarning, match=WARNS):
        zarrdask.open_array(place, "a")[...]
    fails.unlink()
    dask.compute(later, scheduler="sync")
    assert left(place) == []
    assert zarrdask.open_array(place, "a")[...].tolist() == VALUES.tolist()


@for_each("process", [os.getpid(), os.getppid(), 4194305])
def test_a_write_that_is_computed_later_is_reported_whoever_ran_its_first_task(tmp_path, process):
    place = tmp_path / f"{process}"
    z = zarrdask.create_array(place, shape=4, dtype="i4")
    LaterMarker.of(z.node_path).begin()
    words = (place / unfinished.NAME).read_bytes().split(b" ")
    (place / unfinished.NAME).write_bytes(b" ".join([*words[:2], b"%d" % process, *words[3:]]))
    with pytest.warns(UserWarning, match="failed or was killed, or still runs, so chunks"):
        zarrdask.open_array(place)[...]


def test_a_write_that_is_computed_later_is_not_reported_while_a_block_is_stored():
    seen = []

    class Looked(MemoryStore):
        def set(self, key, value):
            if "/c/" in key:
                seen.append(float(zarrdask.open_array(self, "a")[...].sum()))
            super().set(key, value)

    x = da.from_array(VALUES, chunks=10)
    with dask.config.set(scheduler="sync"):
        zarrdask.to_zarr(x, Looked(), "a", compute=False).compute()
    assert len(seen) == 4


def test_a_stored_array_that_is_read_as_it_is_written_has_no_marker(tmp_path):
    x = da.from_array(VALUES, chunks=10)
    stored = zarrdask.to_zarr(x, tmp_path, compute=False, return_stored=True)
    assert stored[:10].compute(scheduler="sync").tolist() == VALUES[:10].tolist()
    assert left(tmp_path) == []


def test_a_write_that_runs_on_this_machine_is_not_reported(tmp_path):
    seen = []

    def look(block):
        seen.append(float(zarrdask.open_array(tmp_path)[...].sum()))
        return block

    x = da.from_array(VALUES, chunks=10).map_blocks(look, meta=np.ones(1))
    with dask.config.set(scheduler="sync"):
        zarrdask.to_zarr(x, tmp_path)
    assert seen[0] == 0.0
    assert seen[-1] > 0.0


def test_a_remote_write_that_was_read_while_it_ran_is_reported_when_it_is_gone():
    store = LatencyStore(seconds=0)
    z = zarrdask.create_array(store, shape=4, dtype="f8", chunks=2)
    z[:2] = 1
    marker = writers.new_writer()
    store.set(unfinished.NAME, marker)
    writers.begin(marker)
    z = zarrdask.open_array(store)
    assert z[...].tolist() == [1, 1, 0, 0], "without a warning"
    writers.end(marker)
    with pytest.warns(UserWarning, match=WARNS):
        assert z[...].tolist() == [1, 1, 0, 0]


def test_a_write_of_another_machine_may_still_run(tmp_path):
    zarrdask.create_array(tmp_path, shape=4, dtype="i4")
    (tmp_path / unfinished.NAME).write_bytes(b"0123 abcdef 77 1700000000")
    with pytest.warns(UserWarning, match="was killed, or still runs on another machine, so"):
        zarrdask.open_array(tmp_path)[...]


@pytest.mark.parametrize(
    "create",
    [
        lambda url: zarrdask.create_array(url, "a", shape=4, dtype="i4"),
        lambda url: zarrdask.create_array(url, "a", shape=4, dtype="i4", overwrite=True),
        lambda url: zarrdask.to_zarr(VALUES, url, "a", commit="last"),
    ],
)
def test_a_new_array_has_no_marker_of_one_that_has_no_documents(create):
    store = {f"a/{unfinished.NAME}": b"0123 abcdef 77 1700000000"}
    create(store)
    assert left(store) == []


def test_another_writer_of_the_same_array_keeps_its_marker(tmp_path):
    name = tmp_path / unfinished.NAME
    zarrdask.create_array(tmp_path, shape=4, dtype="i4")
    name.write_bytes(b"0123 abcdef 77 1700000000")
    with pytest.raises(zarrdask.errors.NodeExistsError):
        zarrdask.to_zarr(VALUES, tmp_path)
    assert name.exists()


@pytest.mark.parametrize("fails", [False, True])
def test_a_writer_leaves_the_array_of_the_one_that_replaced_it(tmp_path, monkeypatch, fails):
    # The store can't keep the old array until the new one is complete.
    monkeypatch.setattr("zarrdask.parallel.graph.writing.target.can_stage", lambda _: False)
    replaced = []

    def replace(block, block_info=None):
        if not replaced:
            replaced.append(unfinished.NAME in os.listdir(tmp_path / "g/a"))
            interrupt(monkeypatch, tmp_path, overwrite=True)
        return fail(block, block_info) if fails else block

    x = da.from_array(VALUES, chunks=10).map_blocks(replace, meta=np.ones(1))
    with dask.config.set({"scheduler": "sync", "zarrdask.fuse": False}):
        if fails:
            with pytest.raises(RuntimeError) as caught:
                zarrdask.to_zarr(x, tmp_path, "g/a")
            assert "another writer has replaced the array" in caught.value.__notes__[0]
        else:
            zarrdask.to_zarr(x, tmp_path, "g/a")
    assert replaced == [True]
    assert len(left(tmp_path)) == 1  # that of the second writer, which did not end
    assert zarrdask.open_array(tmp_path, "g/a").shape == VALUES.shape


def test_a_failure_leaves_the_complete_array_of_another_writer(tmp_path):
    replaced = []

    def replace(block):
        if not replaced:
            replaced.append(zarrdask.to_zarr(VALUES, tmp_path, chunks=10, overwrite=True))
        raise RuntimeError("this block fails")

    x = da.from_array(VALUES, chunks=10).map_blocks(replace, meta=np.ones(1))
    with dask.config.set(scheduler="sync"), pytest.raises(RuntimeError):
        zarrdask.to_zarr(x, tmp_path)
    assert zarrdask.open_array(tmp_path)[...].tolist() == VALUES.tolist()


@pytest.mark.slow
def test_arrays_of_a_dataset_whose_write_failed_say_so(tmp_path):
    x = da.from_array(VALUES, chunks=10).map_blocks(fail, meta=np.ones(1))
    ds = xarray.Dataset({"t": ("x", x)}, coords={"x": VALUES})
    with pytest.raises(RuntimeError, match="this block fails"):
        zarrdask.xarray.to_zarr(ds, tmp_path / "a.zarr", commit="first")
    with pytest.warns(UserWarning, match=WARNS):
        zarrdask.from_zarr(tmp_path / "a.zarr", "t").compute()
    done = xarray.Dataset({"t": ("x", VALUES)}, coords={"x": VALUES})
    zarrdask.xarray.to_zarr(done, tmp_path / "b.zarr", commit="first")
    assert left(tmp_path / "b.zarr") == []


@pytest.mark.stress
def test_a_killed_write_is_complete_or_says_that_it_is_not(tmp_path):
    rng = random.Random(5)
    for number in range(8):
        url = tmp_path / f"{number}.zarr"
        process = PROCESSES.Process(target=write_slowly, args=(url,))
        process.start()
        while process.is_alive() and not (url / "g/a/zarr.json").exists():
            time.sleep(0.001)
        process.join(rng.uniform(0.0, 0.3))
        process.kill()
        process.join()
        z = zarrdask.open_array(url, "g/a")
        if z.nchunks_stored() < z.nchunks:
            with pytest.warns(UserWarning, match=WARNS):
                z[...]
            with pytest.raises(zarrdask.errors.NodeExistsError, match=WARNS):
                zarrdask.to_zarr(VALUES, url, "g/a")
        else:
            assert z[...].tolist() == VALUES.tolist()
        zarrdask.to_zarr(VALUES, url, "g/a", overwrite=True)
        assert zarrdask.open_array(url, "g/a")[...].tolist() == VALUES.tolist()
        assert not [name for name in os.listdir(url / "g/a") if name.startswith(".")]
