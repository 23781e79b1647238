"""Codec configurations of v2 as GDAL and netCDF-C write them."""

import json
import lzma
import zlib

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each

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


def netcdf(filters, **members):
    """Return a .zarray with its members in the order in which netCDF-C 4.9 and 4.10 write them."""
    order = ("zarr_format", "shape", "dtype", "chunks", "fill_value", "order")
    document = json.loads(store(b"")[".zarray"])
    compressor = {"id": "zlib", "level": 4}
    return {
        **{name: document[name] for name in order},
        "compressor": compressor,
        "filters": filters,
        **members,
    }


SHUFFLE = {"id": "shuffle", "elementsize": 0}
#: The keys by which NCZarr is known in a .zarray (4.9.0), or in .zattrs (4.9.3 and later).
OWN_KEY = {"_nczarr_array": {"dimension_references": ["/x"], "storage": "chunked"}}
STORES = {
    "shuffle": store(
        zlib.compress(SHUFFLED),
        compressor={"id": "zlib", "level": 4},
        filters=[SHUFFLE],
        _NCZARR_ARRAY={"dimrefs": ["/x"], "storage": "chunked"},
    ),
    "shuffle, with a key in the attributes": store(
        zlib.compress(SHUFFLED), compressor={"id": "zlib", "level": 4}, filters=[SHUFFLE]
    )
    | {".zattrs": json.dumps(OWN_KEY).encode()},
    "shuffle, of netCDF-C without its keys": {
        ".zarray": json.dumps(netcdf([SHUFFLE])).encode(),
        "0": zlib.compress(SHUFFLED),
    },
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
        result = zarrdask.open_array(place)
        assert result[...].tolist() == [0, 1, -1, -1, 4, 5]

    def test_not_in_strict_mode(self, name):
        with pytest.raises(zarrdask.errors.MetadataError, match=name.partition(",")[0]):
            zarrdask.open_array(dict(STORES[name]), strict=True)


@for_each("shuffle", ["bits", "3", "", [1], None, 3])
def test_other_names_are_refused(shuffle):
    with pytest.raises(zarrdask.errors.MetadataError, match="shuffle"):
        zarrdask.open_array(store(b"", compressor=blosc(shuffle)))


def test_the_size_of_the_elements_is_that_of_what_the_filter_is_given():
    filters = [{"id": "astype", "encode_dtype": "<i2", "decode_dtype": "<f4"}]
    chunk = VALUES.astype("<i2").view("u1").reshape(6, 2).T.tobytes()
    place = {".zarray": json.dumps(netcdf([*filters, SHUFFLE], compressor=None)).encode()}
    place["0"] = chunk
    assert zarrdask.open_array(place)[...].tolist() == VALUES.tolist()


def test_a_shuffle_of_numcodecs_without_size_changes_nothing():
    # zarr-python 2.18.7 with numcodecs 0.15.2 wrote these; it renders the members sorted.
    document = {
        "chunks": [3],
        "compressor": None,
        "dtype": "<i2",
        "fill_value": 0,
        "filters": [SHUFFLE],
        "order": "C",
        "shape": [3],
        "zarr_format": 2,
    }
    place = {".zarray": json.dumps(document).encode(), "0": b"\x01\x00\x02\x00\x03\x01"}
    array = zarrdask.open_array(place, mode="r+", strict=True)
    assert array[...].tolist() == [1, 2, 259]
    array[0] = 5
    assert place["0"] == b"\x05\x00\x02\x00\x03\x01"
