"""Records of interrupted writes that are damaged in any way, and attributes without an end."""

import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.covering import covering, for_each
from zarrdask.errors import MetadataError, StoreError

RECORDS = {
    "deep": b"[" * 100_000,
    "deep plan": b'{"version":3,"plan":' + b'{"a":' * 2000 + b"1" + b"}" * 2000 + b',"done":[]}',
    "infinite": b'{"version":3,"plan":{},"done":[[[0,1e999]]]}',
    "negative": b'{"version":3,"plan":{},"done":[[[-1e999,1]]]}',
    "NaN": b'{"version":3,"plan":{},"done":[[[NaN,NaN]]]}',
    "many digits": b'{"version":3,"plan":{},"done":[[[0,' + b"9" * 400 + b"]]]}",
    "other types": b'{"version":3,"plan":{},"done":[],"nodes":[1]}',
}


def _to_zarr(store):
    zarrdask.to_zarr(da.ones(4, chunks=2), store, resume=True)


def _copy(store):
    zarrdask.copy(_source(), store)


def _rechunk(store):
    zarrdask.rechunk(_source(), store, chunks=4).execute(progress=False)


def _append(store):
    zarrdask.append(da.ones(4, chunks=2, dtype="i4"), store, resume=True)


def _source():
    z = zarrdask.create_array({}, shape=4, dtype="i4", chunks=2)
    z[...] = 1
    return z


@covering(verb=[_to_zarr, _copy, _rechunk, _append], name=[*RECORDS])
def test_a_damaged_record_is_a_typed_error(verb, name):
    store = {}
    if verb is _append:
        zarrdask.create_array(store, shape=4, dtype="i4", chunks=2)
    for key in ("plan.json", "arrays.json"):
        store[f".zarrdask-rewrite/{key}"] = RECORDS[name]
    with pytest.raises(StoreError, match="record is damaged"):
        verb(store)


@for_each("record", [*RECORDS.values()])
def test_a_resize_ignores_a_damaged_record(record):
    store = {}
    z = zarrdask.create_array(store, shape=4, dtype="i4", chunks=2)
    for key in ("plan.json", "arrays.json"):
        store[f".zarrdask-rewrite/{key}"] = record
    z.resize(2)
    assert zarrdask.open_array(store).shape == (2,)


def test_damaged_records_of_blocks_are_written_again():
    store = {}

    def fail(block):
        if block[0] > 1:
            raise RuntimeError
        return block

    x = da.from_array(np.arange(4), chunks=1).map_blocks(fail, dtype=int)
    with pytest.raises(RuntimeError):
        zarrdask.to_zarr(x, store, resume=True)
    keys = [key for key in store if ".zarrdask-rewrite/" in key and not key.endswith(".json")]
    for key, record in zip(keys, [b"[" * 100_000, b"[[[[0,1e999]],[1,null]]]"] * 9, strict=False):
        store[key] = record
    y = da.from_array(np.arange(4), chunks=1).map_blocks(lambda block: block, dtype=int)
    zarrdask.to_zarr(y, store, resume="restart")
    assert zarrdask.open_array(store)[...].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", ["dict", "list"])
def test_attributes_that_contain_themselves_are_refused(kind):
    endless = {"a": {}} if kind == "dict" else {"a": []}
    if kind == "dict":
        endless["a"]["b"] = endless["a"]
    else:
        endless["a"].append(endless["a"])
    store = {}
    z = zarrdask.create_array(store, "z", shape=2, dtype="i4", chunks=1)
    before = store.copy()
    for write in (
        lambda: z.attrs.update(endless),
        lambda: zarrdask.create_group(store, "g", attributes=endless),
        lambda: zarrdask.to_zarr(da.ones(2), store, "x", attributes=endless),
        lambda: zarrdask.copy(z, {}, attributes=endless),
    ):
        with pytest.raises(MetadataError, match="nested too deeply"):
            write()
    with pytest.raises(MetadataError, match="not a reference document"):
        zarrdask.open_array("reference://", storage_options={"fo": {"x": endless}})
    assert store == before
