"""What was found by damage, or on the way to it, as fixed cases."""

import json

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.fuzz import corpus


def damaged(path, **members):
    """Return a store of this folder's own with other members in a document."""
    store = dict(corpus.stores()["made-2"])
    key = f"{path}/.zarray"
    store[key] = json.dumps(json.loads(store[key]) | members).encode()
    return store


@for_each(("dtype", "value"), [("<U4", "ab"), ("|S3", b"x"), ("<M8[s]", "2020")])
@for_each("index", [(), ..., None])
def test_an_array_without_axes_is_written(dtype, value, index):
    z = zarrdask.create_array({}, shape=(), dtype=dtype, zarr_format=2)
    z[index] = value
    assert z[...] == np.array(value, dtype)


@pytest.mark.parametrize("path", ["compressors/5", "compressors/8", "filters/crc32", "others/F"])
class TestChunksBeyondMemory:
    def test_read(self, path):
        z = zarrdask.open_array(damaged(path, chunks=[10**12, 8]), path)
        with pytest.raises(zarrdask.errors.CodecError):
            z[...]

    def test_written(self, path):
        place = damaged(path, chunks=[10**12, 8])
        z = zarrdask.open_array(place, path, mode="r+")
        with pytest.raises(zarrdask.errors.CodecError, match=r"fit into memory|size|bytes|early"):
            z[0, 0] = 1
        with pytest.raises(zarrdask.errors.CodecError, match="fit into memory"):
            z[...] = 1

    def test_beyond_any_memory(self, path):
        with pytest.raises(zarrdask.errors.MetadataError, match="larger than any memory"):
            zarrdask.open_array(damaged(path, chunks=[10**18, 8]), path)


@for_each("dtype", ["<U2", ">U2", [("a", "u1"), ("b", "<U2", (2,))]])
@for_each("compressors", [[], "blosc"])
def test_what_is_no_character(dtype, compressors):
    place: dict[str, bytes] = {}
    options = {"chunks": 2, "compressors": compressors, "zarr_format": 2}
    z = zarrdask.create_array(place, shape=(4,), dtype=np.dtype(dtype), **options)
    values = np.zeros(4, dtype)
    values.view("u1")[:] = 0xFF
    raw = zarrdask.create_array({}, shape=(4,), dtype=f"V{values.itemsize}", **options)
    raw[...] = values.view(raw.dtype)
    place["1"] = raw.store.values["1"]
    assert z[:2].tobytes() == bytes(2 * values.itemsize)
    for selection in (np.s_[...], 2, np.s_[1:3]):
        with pytest.raises(
            zarrdask.errors.CodecError, match=r"1: codec bytes: .* invalid character"
        ):
            z[selection]


@for_each("dtype", ["|S0", "|V0", [["a", "|S0"]], [["a", "<U0"]]])
def test_elements_without_bytes(dtype):
    with pytest.raises(zarrdask.errors.MetadataError, match="item size"):
        zarrdask.open_array(damaged("others/F", dtype=dtype, fill_value=""), "others/F")
    made = [tuple(field) for field in dtype] if isinstance(dtype, list) else dtype
    with pytest.raises(zarrdask.ZarrdaskError, match=r"item size|size of 0 bytes"):
        zarrdask.create_array({}, shape=2, dtype=np.dtype(made), zarr_format=2)


@pytest.mark.parametrize("chunks", ["auto", "stored", 1])
def test_more_blocks_than_dask_could_hold(chunks):
    z = zarrdask.create_array({}, shape=10**15, dtype="i4", chunks=2)
    with pytest.raises(zarrdask.errors.MetadataError, match="more blocks"):
        zarrdask.from_zarr(z, chunks=chunks)
    part = zarrdask.from_zarr(z, region=np.s_[10**14 : 10**14 + 9])
    assert part.compute(scheduler="sync").tolist() == [0] * 9
