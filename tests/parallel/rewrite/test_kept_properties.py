"""What rewrites keep of a source: its missing chunks, and the type of its objects."""

import json

import dask.array as da
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.errors import ZarrdaskError


def holey(zarr_format=3, dtype="i4"):
    """Return an array that lacks chunks, opened so that these are errors."""
    z = zarrdask.create_array({}, shape=(4, 4), chunks=(2, 2), dtype=dtype, zarr_format=zarr_format)
    z[:2] = "x" if z.dtype.hasobject else 7
    return zarrdask.open_array(z, missing="error")


REWRITES = {
    "chunks": lambda z: zarrdask.rechunk(z, {}, chunks=(4, 1)),
    "as they are": lambda z: zarrdask.rechunk(z, {}),
    "shards": lambda z: zarrdask.rechunk(z, {}, shards=(4, 4), zarr_format=3),
    "part": lambda z: zarrdask.rechunk(z, {}, source_region=(slice(1, 4),)),
    "Dask": lambda z: zarrdask.rechunk(zarrdask.from_zarr(z), {}, chunks=(4, 1)),
}


@pytest.mark.slow
@for_each("rewrite", REWRITES)
@for_each(("zarr_format", "dtype"), [(3, "i4"), (2, "i4"), (3, str)])
def test_missing_chunks_of_a_strict_array_are_not_made_values(rewrite, zarr_format, dtype):
    with pytest.raises(ZarrdaskError, match=r"not stored|missing"):
        REWRITES[rewrite](holey(zarr_format, dtype)).execute(progress=False)


def test_levels_are_not_made_from_missing_chunks_of_a_strict_array():
    for options in ({}, {"dtype": "f4"}):
        with pytest.raises(ZarrdaskError, match=r"not stored|missing"):
            zarrdask.pyramid(holey(), {}, axes=["y", "x"], **options).execute(progress=False)


def test_an_array_that_is_opened_again_is_as_strict():
    assert zarrdask.open(holey()).missing == "error"
    assert zarrdask.open(zarrdask.open_array(holey(), missing="fill")).missing == "fill"


def test_a_change_to_float64_alone_is_a_change():
    z = zarrdask.create_array({}, shape=(4, 4), dtype="i4", chunks=2)
    z[...] = 1
    float64 = np.dtype("float64")
    zarrdask.copy(z, copied := {}, dtype=float64)
    zarrdask.rechunk(z, rechunked := {}, dtype=float64).execute(progress=False)
    plan = zarrdask.pyramid(z, levels := {}, dtype=float64, axes=["y", "x"])
    plan.execute(progress=False)
    found = copied, rechunked, zarrdask.open_group(levels)["0"]
    assert [zarrdask.open_array(each).dtype for each in found] == [float64] * 3


@pytest.mark.slow
@for_each("source", [2, 3, "v3-draft-protocol"])
@for_each("target", [2, 3, "v3-draft-protocol"])
def test_bytes_stay_bytes(source, target):
    z = zarrdask.create_array({}, shape=4, chunks=2, dtype=bytes, zarr_format=source)
    z[0] = b"ab"
    stores = [{}, {}, {}, {}]
    x = zarrdask.from_zarr(zarrdask.open_array(z.store))
    zarrdask.to_zarr(x, stores[0], zarr_format=target)
    zarrdask.copy(z, stores[1], zarr_format=target)
    zarrdask.rechunk(z, stores[2], chunks=3, zarr_format=target).execute(progress=False)
    zarrdask.rechunk(x, stores[3], chunks=3, zarr_format=target).execute(progress=False)
    for store in stores:
        copy = zarrdask.open_array(store, mode="r+")
        assert copy[...].tolist() == [b"ab", b"", b"", b""]
        copy[3] = b"z"
        assert copy[...].tolist() == [b"ab", b"", b"", b"z"]


@for_each(("codec", "value", "empty"), [("vlen-utf8", "ab", ""), ("vlen-bytes", b"ab", b"")])
def test_0_among_texts_and_bytes_is_the_empty_one(codec, value, empty):
    z = zarrdask.create_array(
        store := {}, shape=4, chunks=2, dtype=object, zarr_format=2, filters=[{"id": codec}]
    )
    document = json.loads(store[".zarray"])
    store[".zarray"] = json.dumps({**document, "fill_value": 0}).encode()
    z = zarrdask.open_array(store, mode="r+")
    z[0] = value
    zarrdask.to_zarr(zarrdask.from_zarr(z), written := {})
    zarrdask.copy(z, copied := {}, zarr_format=3)
    for found in (z, zarrdask.open_array(written), zarrdask.open_array(copied)):
        assert found[...].tolist() == [value, empty, empty, empty]


@for_each("dtype", ["M8[s]", "m8[ns]", ">M8[D]"])
def test_times_of_v2_without_a_fill_value_are_nat(dtype):
    z = zarrdask.create_array(
        store := {}, shape=4, chunks=2, dtype=dtype, zarr_format=2, fill_value=None
    )
    assert json.loads(store[".zarray"])["fill_value"] is None
    assert np.isnat(z[...]).all()
    zarrdask.copy(z, copied := {}, zarr_format=3)
    assert np.isnat(zarrdask.open_array(copied)[...]).all()
    z[:2] = np.array(["NaT", "NaT"], z.dtype)
    assert z.nchunks_stored() == 1


def test_all_chunks_are_stored_where_the_fill_value_is_undefined():
    for zarr_format, stored in ((2, 2), (3, 0)):
        z = zarrdask.create_array(
            {}, shape=4, chunks=2, dtype="i4", zarr_format=zarr_format, fill_value=None
        )
        zarrdask.to_zarr(da.zeros(4, dtype="i4", chunks=2), z)
        assert z.nchunks_stored() == stored
