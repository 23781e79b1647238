"""A write that fails beside one that replaces its array: what the other one stored stays."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr

import zarrdask
import zarrdask.xarray
from tests.schedules.guarantees import PLACES
from tests.schedules.schedule import Pair, Verb
from tests.schedules.stores import KINDS
from tests.schedules.verbs import OPTIONS, blocks, nothing, seen
from zarrdask.errors import NodeExistsError


def _fail(block):
    raise OSError("this block can't be computed")


def to_zarr_that_fails(store, writer):
    x = da.map_blocks(_fail, blocks(writer), dtype="i8", meta=np.empty(0, "i8"))
    zarrdask.to_zarr(x, store, "g/a", **OPTIONS)


def to_zarr_that_replaces(store, writer):
    zarrdask.to_zarr(blocks(writer), store, "g/a", overwrite=True, **OPTIONS)


def copy_that_replaces(store, writer):
    source = zarrdask.create_array({}, shape=5, dtype="i8", **OPTIONS)
    source[...] = 7 + writer
    zarrdask.copy(source, store, "g/a", overwrite=True, scheduler="sync")


def group_that_is_replaced(store, writer):
    zarrdask.create_group(store, "g", overwrite=True)
    zarrdask.to_zarr(blocks(writer), store, "g/a", **OPTIONS)


def dataset_that_is_replaced(store, writer):
    ds = xr.Dataset({"a": ("x", blocks(writer))})
    zarrdask.xarray.to_zarr(ds, store, group="g", mode="w", encoding={"a": OPTIONS})


REPLACING = {
    "dataset": dataset_that_is_replaced,
    "to_zarr": to_zarr_that_replaces,
    "copy": copy_that_replaces,
    "create_group": group_that_is_replaced,
}
#: On a file system that several machines share, nothing excludes another machine.
LOCKED = [place for place in PLACES if "shared" not in place]


def check_replaced(name, place, folder, *, both):
    """Let the failing writer pause before its last operations: the values of the other one stay.

    With `both`, the other one pauses before some of its operations, too.
    """
    kind, machines = PLACES[place]
    verbs = Verb(to_zarr_that_fails, nothing), Verb(REPLACING[name], nothing)
    pair = Pair(verbs, KINDS[kind](folder), seen, machines, f"{name} at {place}")
    start = pair.store.snapshot()
    for first in (0, 1) if both else (0,):
        count = pair.alone(first, start)[1]
        for number in range(0, count, 4) if first else range(count - 14, count):
            pair.store.restore(start)
            ending, reached = pair.paused(first, number)
            message = f"{ending} after a pause of writer {first} before {reached} ({number})"
            if ending.errors[1] is None:
                assert ending.seen[0].get("a", [None])[0] == [8] * 5, message
            else:
                assert ending.errors[1] is NodeExistsError, message


@pytest.mark.slow
@pytest.mark.parametrize("place", ["several machines: object store", "one machine: local disk"])
def test_a_failing_write_leaves_what_has_replaced_it(place, tmp_path):
    check_replaced("to_zarr", place, tmp_path, both=False)


@pytest.mark.stress
@pytest.mark.parametrize("place", LOCKED)
@pytest.mark.parametrize("name", REPLACING)
def test_a_failing_write_leaves_what_has_replaced_it_anywhere(name, place, tmp_path):
    check_replaced(name, place, tmp_path, both=True)
