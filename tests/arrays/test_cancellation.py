"""A write that failed does not go on behind the back of whoever called it."""

import gc
import threading
import time
import warnings
from multiprocessing import get_context

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from zarrdask.arrays import cancellation
from zarrdask.arrays.cancellation import write_named
from zarrdask.storage.memory import MemoryStore


class Failure(Exception):
    pass


def test_aborting_waits_for_blocks_that_have_begun():
    begun, go, order = threading.Event(), threading.Event(), []
    first, second, third = (write_named(name) for name in ("first", "second", "third"))

    def block():
        with first.block(), second.block():
            begun.set()
            go.wait(20)
            order.append("block")

    thread = threading.Thread(target=block)
    thread.start()
    begun.wait(20)
    third.abort()
    threading.Timer(0.1, go.set).start()
    first.abort()
    order.append("aborted")
    thread.join()
    assert order == ["block", "aborted"]
    with (
        pytest.raises(zarrdask.errors.StoreError, match="write was aborted"),
        write_named("first").block(),
    ):
        pass
    with second.block():
        pass


def test_a_block_that_fails_is_not_waited_for():
    write = write_named("fourth")
    with pytest.raises(Failure), write.block():
        raise Failure
    write.abort()


def test_a_write_is_forgotten_with_its_tasks():
    def fail(block):
        raise Failure

    gc.collect()
    before = set(cancellation._WRITES)
    x = da.ones(4, chunks=2).map_blocks(fail, dtype="f8", meta=np.empty(0))
    for scheduler in ("sync", "threads"):
        with dask.config.set(scheduler=scheduler), pytest.raises(Failure):
            zarrdask.to_zarr(x, {})
    for _ in range(100):  # a thread may hold its task for a moment longer
        gc.collect()
        left = set(cancellation._WRITES) - before
        if not left:
            break
        time.sleep(0.05)
    assert not left


def test_a_forked_process_waits_for_no_thread_of_its_parent():
    write = write_named("fifth")
    with write.block():
        process = get_context("fork").Process(target=write.abort)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forks of processes with threads
            process.start()
        process.join(20)
        assert process.exitcode == 0


@pytest.mark.parametrize("options", [{"overwrite": True}, {"region": np.s_[:]}], ids=str)
def test_nothing_is_stored_after_the_error(options):
    class Slow(MemoryStore):
        def set(self, key, value):
            if "zarr.json" not in key:
                time.sleep(0.05)
            super().set(key, value)
            last.append(time.monotonic())

    last, store = [], Slow()
    zarrdask.create_array(store, shape=(40, 4), dtype="f8", chunks=4)

    def fail(block, block_info=None):
        if block_info[0]["chunk-location"] == (3, 0):
            raise Failure
        return block

    x = da.ones((40, 4), chunks=4).map_blocks(fail, dtype="f8", meta=np.empty((0, 0)))
    with dask.config.set(scheduler="threads", num_workers=4):
        with pytest.raises(Failure):
            zarrdask.to_zarr(x, store, **options)
        end = time.monotonic()
        time.sleep(0.15)
        assert max(last) < end
        zarrdask.to_zarr(da.full((40, 4), 2.0, chunks=4), store, overwrite=True)
    assert (zarrdask.open_array(store)[...] == 2).all()
