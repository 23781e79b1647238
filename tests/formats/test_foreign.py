"""Codec configurations of v2 as GDAL and netCDF-C write them."""

import json
import lzma
import zlib

import numpy as np
import pytest

import zarrdask

VALUES = np.arange(6, dtype="<f4")
#: What each byte of an element is, for all elements, before what the next one is.
SHUFFLED = VALUES.view("u1").reshape(6, 4).T.tobytes()


def store(chunk: bytes, **members):
    document = {"zarr_format": 2, "shape": [6], "chunks": [6], "dtype": "<f4", "fill_value": None}
    document |= {"order": "C", "compressor": None, "filters": None, **members}
    return {".zarray": json.dumps(document).encode(), "0": chunk}


def blosc(shuffle):
    return {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": shuffle, "blocksize": 0}


def made_by_numcodecs():
    place: dict[str, bytes] = {}
    options = {"chunks": 6, "compressors": blosc(2), "zarr_format": 2}
    zarrdask.create_array(place, shape=6, dtype="<f4", **options)[...] = VALUES
    return place["0"]


STORES = {
    "shuffle": store(
        zlib.compress(SHUFFLED),
        compressor={"id": "zlib", "level": 4},
        filters=[{"id": "shuffle", "elementsize": 0}],
    ),
    "lzma": store(
        lzma.compress(
            VALUES.tobytes(),
            filters=[{"id": lzma.FILTER_DELTA, "dist": 1}, {"id": lzma.FILTER_LZMA2}],
        ),
        compressor={"id": "lzma", "preset": 6, "delta": 1},
    ),
    "blosc": store(made_by_numcodecs(), compressor=blosc("BIT")),
}


@pytest.mark.parametrize("name", STORES)
class TestUnderstood:
    def test_reads(self, name):
        assert zarrdask.open_array(dict(STORES[name]))[...].tolist() == VALUES.tolist()

    def test_what_is_written_after_it_reads_too(self, name):
        place = dict(STORES[name])
        array = zarrdask.open_array(place, mode="r+")
        array.attrs["late"] = 1
        array[2:4] = -1
        found = zarrdask.open_array(place)
        assert found[...].tolist() == [0, 1, -1, -1, 4, 5]

    def test_not_in_strict_mode(self, name):
        with pytest.raises(zarrdask.MetadataError, match=name):
            zarrdask.open_array(dict(STORES[name]), strict=True)


@pytest.mark.parametrize("shuffle", ["bits", "3", "", [1], None, 3])
def test_other_names_are_refused(shuffle):
    with pytest.raises(zarrdask.MetadataError, match="shuffle"):
        zarrdask.open_array(store(b"", compressor=blosc(shuffle)))


def test_the_size_of_the_elements_is_that_of_what_the_filter_is_given():
    filters = [{"id": "astype", "encode_dtype": "<i2", "decode_dtype": "<f4"}]
    chunk = VALUES.astype("<i2").view("u1").reshape(6, 2).T.tobytes()
    place = store(chunk, filters=[*filters, {"id": "shuffle", "elementsize": 0}])
    assert zarrdask.open_array(place)[...].tolist() == VALUES.tolist()
