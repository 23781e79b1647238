"""A write that failed does not go on behind the back of whoever called it."""

import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest

import zarrdask
from zarrdask.graph.flight import stop, writing
from zarrdask.storage.memory import MemoryStore


class Failure(Exception):
    pass


def test_stopping_waits_for_blocks_that_have_begun():
    begun, go, order = threading.Event(), threading.Event(), []

    def block():
        with writing("first"), writing("second"):
            begun.set()
            go.wait(20)
            order.append("block")

    thread = threading.Thread(target=block)
    thread.start()
    begun.wait(20)
    stop("third")
    threading.Timer(0.1, go.set).start()
    stop("first")
    order.append("stopped")
    thread.join()
    assert order == ["block", "stopped"]
    with pytest.raises(zarrdask.StoreError, match="given up"), writing("first"):
        pass
    with writing("second"):
        pass


def test_a_block_that_fails_is_not_waited_for():
    with pytest.raises(Failure), writing("fourth"):
        raise Failure
    stop("fourth")


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
        time.sleep(0.3)
        assert max(last) < end
        zarrdask.to_zarr(da.full((40, 4), 2.0, chunks=4), store, overwrite=True)
    assert (zarrdask.open_array(store)[...] == 2).all()
