"""Stored bytes written by hand from the specifications -> values, and what damage does."""

import base64
import bz2
import functools
import gzip
import lzma
import os
import signal
import struct
import threading
import time
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import zarrdask
from tests import selections
from tests.codecs.chains import chains
from tests.covering import for_each
from tests.documents import (
    BIG,
    CRC32C,
    LITTLE,
    blosc_frame,
    crc32c,
    rectilinear,
    same,
    shard_index,
    sharding,
    stored,
    v2,
    v3,
    zstd_bomb,
    zstd_frame,
)
from tests.memory import at_most
from zarrdask import ZarrdaskError
from zarrdask.errors import ChecksumError, CodecError, StoreError
from zarrdask.runtime.turns import in_turns
from zarrdask.storage.memory import MemoryStore

GZIP = {"name": "gzip", "configuration": {"level": 1}}
ZSTD = {"name": "zstd", "configuration": {"level": 1}}
BLOSC = {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 1, "shuffle": "noshuffle"}}


def read(document, chunks=None, attributes=None):
    return zarrdask.open_array(stored(document, chunks, attributes))[...]


# No time in them, so that test ids are the same in every process.
gz = functools.partial(gzip.compress, mtime=0)


def short(value):
    """Return a test id: names of codecs, lengths of values."""
    if isinstance(value, bytes):
        return f"{len(value)}-bytes"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "+".join(codec.get("name") or codec["id"] for codec in value)
    if isinstance(value, dict):
        return value.get("name") or value.get("id")
    return None


def packed(form, *values):
    return struct.pack(form, *values)


# ---- v3, by hand

HELLO = packed("<2H", 1, 0x0203)

V3 = [
    ([LITTLE], b"\x01\x00\x03\x02"),
    ([BIG], b"\x00\x01\x02\x03"),
    ([LITTLE, CRC32C], HELLO + crc32c(HELLO)),
    ([LITTLE, GZIP], gz(HELLO)),
    ([LITTLE, GZIP], gz(HELLO[:1]) + gz(HELLO[1:])),
    ([LITTLE, ZSTD], zstd_frame(HELLO)),
    ([LITTLE, ZSTD], zstd_frame(HELLO, sized=False)),
    ([LITTLE, BLOSC], blosc_frame(HELLO)),
    ([LITTLE, CRC32C, GZIP], gz(HELLO + crc32c(HELLO))),
    ([LITTLE, GZIP, CRC32C], gz(HELLO) + crc32c(gz(HELLO))),
]


@for_each(("codecs", "value"), V3)
def test_v3_chunks_written_by_hand_are_read(codecs, value):
    assert read(v3((2,), codecs=codecs), {"c/0": value}).tolist() == [1, 0x0203]


def test_an_absent_chunk_reads_as_the_fill_value():
    assert read(v3((5,), (2,), fill_value=9), {"c/1": HELLO}).tolist() == [9, 9, 1, 0x0203, 9]


@for_each("fill", ["NaN", "0x7fc00001", "-Infinity", -0.0])
def test_an_absent_chunk_reads_as_the_fill_value_to_the_bit(fill):
    z = zarrdask.open_array(stored(v3((3,), (2,), "float32", fill)))
    assert z[...].tobytes() == np.full(3, z.fill_value, "f4").tobytes()
    expected = {"NaN": 0x7FC00000, "0x7fc00001": 0x7FC00001, "-Infinity": 0xFF800000, -0.0: 2**31}
    assert z[...].view("u4").tolist() == [expected[fill]] * 3


def test_an_edge_chunk_is_full_size_and_what_hangs_over_is_never_seen():
    value = packed("<2H", 5, 0xDEAD)
    z = zarrdask.open_array(stored(v3((3,), (2,)), {"c/0": HELLO, "c/1": value}))
    assert z[...].tolist() == [1, 0x0203, 5]
    assert z[::-1].tolist() == [5, 0x0203, 1]
    assert z.blocks[1].tolist() == [5]


def test_a_0d_array_has_the_key_c():
    assert read(v3((), ()), {"c": b"\x07\x00"}) == 7


@pytest.mark.parametrize(
    ("encoding", "key"),
    [
        ({"name": "default", "configuration": {"separator": "."}}, "c.1.0"),
        ({"name": "v2"}, "1.0"),
        ({"name": "v2", "configuration": {"separator": "/"}}, "1/0"),
    ],
)
def test_chunks_are_found_under_the_encoded_key(encoding, key):
    document = {**v3((2, 2), (1, 2)), "chunk_key_encoding": encoding}
    assert read(document, {key: HELLO}).tolist() == [[0, 0], [1, 0x0203]]


def test_a_transposed_chunk_is_column_major():
    codecs = [{"name": "transpose", "configuration": {"order": [1, 0]}}, {"name": "bytes"}]
    document = v3((2, 3), (2, 3), "uint8", codecs=codecs)
    assert read(document, {"c/0/0": bytes([1, 4, 2, 5, 3, 6])}).tolist() == [[1, 2, 3], [4, 5, 6]]


def test_complex_bool_and_raw_chunks():
    assert read(v3((1,), (1,), "complex64", [0, 0]), {"c/0": packed("<2f", 1, -2)}) == 1 - 2j
    assert read(v3((2,), data_type="bool", fill_value=False), {"c/0": b"\1\0"}).tolist() == [
        True,
        False,
    ]
    found = read(
        v3((2,), data_type="r24", fill_value=[0, 0, 0], codecs=["bytes"]), {"c/0": b"abcdef"}
    )
    assert found.tolist() == [b"abc", b"def"]


def test_a_shard_as_zarr_python_writes_it():
    # S-26: 8x8 uint16, shards 4x4, inner chunks 2x2, bytes only: 32 + 68 bytes.
    inner = [packed("<4H", n, n + 1, n + 2, n + 3) for n in (0, 4, 8, 12)]
    value = b"".join(inner) + shard_index((0, 8), (8, 8), (16, 8), (24, 8))
    assert len(value) == 100
    z = zarrdask.open_array(
        stored(v3((8, 8), (4, 4), codecs=[sharding((2, 2))], fill_value=99), {"c/0/1": value})
    )
    expected = np.full((8, 8), 99, "u2")
    expected[:4, 4:] = [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
    same(z[...], expected)
    assert (z.chunks, z.shards, z.nchunks, z.nchunks_stored()) == ((2, 2), (4, 4), 16, 4)


def test_a_shard_is_written_as_the_specification_says():
    store = {}
    z = zarrdask.create_array(
        store, shape=(8, 8), dtype="u2", chunks=(2, 2), shards=(4, 4), compressors=[]
    )
    values = np.zeros((4, 4), "u2")
    values[:2, :2] = [[1, 2], [3, 4]]
    values[2:, 2:] = 5
    z[4:, :4] = values
    assert set(store) == {"zarr.json", "c/1/0"}
    expected = packed("<8H", 1, 2, 3, 4, 5, 5, 5, 5) + shard_index((0, 8), None, None, (8, 8))
    assert store["c/1/0"] == expected


# ---- v2, by hand


def test_v2_chunks_have_keys_with_dots():
    chunks = {"0.0": b"\1\2", "1.1": b"\3\4", "0.1": b"\5\6"}
    found = read(v2((2, 4), (1, 2), "|u1", 9), chunks)
    assert found.tolist() == [[1, 2, 5, 6], [9, 9, 3, 4]]


def test_v2_chunks_may_be_nested():
    found = read(v2((2, 2), (1, 2), "|u1", dimension_separator="/"), {"1/0": b"\1\2"})
    assert found.tolist() == [[0, 0], [1, 2]]


def test_a_v2_chunk_lies_where_the_specification_says():
    # A-36: chunk (2, 4) holds rows 2000..2999 and columns 4000..4999.
    z = zarrdask.open_array(stored(v2((10000, 10000), (1000, 1000), "|u1"), {"2.4": b"\1" * 10**6}))
    assert z[1999:2001, 3999:4001].tolist() == [[0, 0], [0, 1]]
    assert z[2999:3001, 4999:5001].tolist() == [[1, 0], [0, 0]]


def test_v2_keys_of_one_and_no_dimension():
    assert read(v2((2,), (1,), "|u1"), {"1": b"\7"}).tolist() == [0, 7]
    assert read(v2((), (), "<i2"), {"0": b"\7\0"}) == 7


def test_a_null_fill_value_reads_as_zeros():
    z = zarrdask.open_array(stored(v2((3,), (2,), "<f8", None)))
    assert z.fill_value is None
    assert z[...].tolist() == [0, 0, 0]


def test_order_f_is_column_major_before_filters():
    raw = bytes([1, 4, 2, 5, 3, 6])
    assert read(v2((2, 3), (2, 3), "|u1", order="F"), {"0.0": raw}).tolist() == [
        [1, 2, 3],
        [4, 5, 6],
    ]
    delta = {"id": "delta", "dtype": "|i1"}
    raw = bytes([1, 3, 254, 3, 254, 3])
    document = v2((2, 3), (2, 3), "|i1", order="F", filters=[delta])
    assert read(document, {"0.0": raw}).tolist() == [[1, 2, 3], [4, 5, 6]]


RAW = packed("<4i", 1, -2, 3, 70000)

COMPRESSED = [
    (None, RAW),
    ({"id": "zlib", "level": 1}, zlib.compress(RAW)),
    ({"id": "gzip", "level": 1}, gz(RAW)),
    ({"id": "bz2", "level": 1}, bz2.compress(RAW)),
    ({"id": "lzma", "format": 1, "check": -1, "preset": None, "filters": None}, lzma.compress(RAW)),
    ({"id": "lz4", "acceleration": 1}, packed("<I", 16) + b"\xf0\x01" + RAW),
    ({"id": "zstd", "level": 1}, zstd_frame(RAW)),
    ({"id": "zstd", "level": 1}, zstd_frame(RAW, sized=False)),
    ({"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}, blosc_frame(RAW)),
    ({"id": "blosc"}, blosc_frame(RAW)),
]


@for_each(("compressor", "value"), COMPRESSED)
def test_v2_compressed_chunks_are_the_compressors_output_and_nothing_else(compressor, value):
    document = v2((4,), (4,), "<i4", compressor=compressor)
    assert read(document, {"0": value}).tolist() == [1, -2, 3, 70000]


def test_filters_are_undone_after_the_compressor_and_backwards():
    filters = [{"id": "delta", "dtype": "<i4"}, {"id": "crc32"}]
    deltas = packed("<4i", 1, -3, 5, 69997)
    value = zlib.compress(packed("<I", zlib.crc32(deltas)) + deltas)
    document = v2((4,), (4,), "<i4", filters=filters, compressor={"id": "zlib", "level": 1})
    assert read(document, {"0": value}).tolist() == [1, -2, 3, 70000]


SCALE = {"id": "fixedscaleoffset", "scale": 10, "offset": 1000, "dtype": "<f8", "astype": "|u1"}

FILTERED = [
    ([{"id": "delta", "dtype": "<i2", "astype": "|i1"}], "<i2", b"\5\2\xfd", [5, 7, 4]),
    ([SCALE], "<f8", b"\0\5\x7b", [1000, 1000.5, 1012.3]),
    ([SCALE, {"id": "delta", "dtype": "|u1"}], "<f8", b"\0\5\x76", [1000, 1000.5, 1012.3]),
    ([{"id": "packbits"}], "|b1", b"\5\xa0", [True, False, True]),
    (
        [{"id": "astype", "encode_dtype": "|i1", "decode_dtype": "<f4"}],
        "<f4",
        b"\3\xff\0",
        [3, -1, 0],
    ),
    ([{"id": "shuffle", "elementsize": 2}], "<u2", b"\2\4\6\1\3\5", [0x0102, 0x0304, 0x0506]),
    ([{"id": "bitround", "keepbits": 3}], "<f4", packed("<3f", 1, 2, 3), [1, 2, 3]),
    ([{"id": "quantize", "digits": 1, "dtype": "<f8"}], "<f8", packed("<3d", 1, 2, 3), [1, 2, 3]),
    ([{"id": "adler32"}], "|u1", packed("<I", zlib.adler32(b"\1\2\3")) + b"\1\2\3", [1, 2, 3]),
    ([{"id": "crc32c"}], "|u1", b"\1\2\3" + crc32c(b"\1\2\3"), [1, 2, 3]),
    ([{"id": "base64"}], "|u1", base64.b64encode(b"\1\2\3"), [1, 2, 3]),
]


@for_each(("filters", "dtype", "value", "expected"), FILTERED)
def test_v2_filtered_chunks_written_by_hand_are_read(filters, dtype, value, expected):
    found = read(v2((3,), (3,), dtype, filters=filters), {"0": value})
    assert found.dtype == np.dtype(dtype)
    assert found.tolist() == pytest.approx(expected)


@for_each(("filters", "dtype", "value", "expected"), FILTERED)
def test_v2_filtered_chunks_are_written_as_by_hand(filters, dtype, value, expected):
    store = stored(v2((3,), (3,), dtype, filters=filters))
    zarrdask.open_array(store, mode="r+")[...] = expected
    assert store["0"] == value


TYPED = [
    (">i2", b"\1\2", 0x0102),
    ("<M8[D]", packed("<q", 18262), np.datetime64("2020-01-01")),
    (">m8[s]", packed(">q", -60), np.timedelta64(-60, "s")),
    ("<M8[25s]", packed("<q", 2), np.datetime64(2, "25s")),
    ("|S3", b"ab\0", b"ab"),
    ("<U2", "aé".encode("utf-32-le"), "aé"),
    (">U2", "aé".encode("utf-32-be"), "aé"),
    ("|V3", b"abc", np.void(b"abc")),
    ("|b1", b"\1", True),
    ("<c8", packed("<2f", 1, 2), 1 + 2j),
    ("<f2", b"\x66\x2e", np.float16(0.1)),
]


@for_each(("dtype", "value", "expected"), TYPED)
def test_v2_elements_of_every_kind(dtype, value, expected):
    store = stored(v2((1,), (1,), dtype, None), {"0": value})
    z = zarrdask.open_array(store, mode="r+")
    assert z.dtype == np.dtype(dtype)
    assert z[0] == expected
    z[0] = np.array(expected, dtype)
    assert store["0"] == value


def test_v2_structured_elements_are_packed():
    fields = [["foo", "<f4"], ["bar", [["baz", ">f4"], ["qux", "<i4", [2]]]]]
    value = packed("<f", 1.5) + packed(">f", 2.5) + packed("<2i", 7, 8)
    store = stored(v2((2,), (1,), fields, base64.b64encode(value).decode()), {"0": bytes(16)})
    z = zarrdask.open_array(store, mode="r+")
    assert z["foo"].tolist() == [0, 1.5]
    assert z[1]["bar"]["baz"] == 2.5
    assert z[1]["bar"]["qux"].tolist() == [7, 8]
    z[0] = z[1]
    assert "0" not in store


def test_v2_texts_of_any_length():
    value = packed("<II", 2, 2) + "é".encode() + packed("<I", 1) + b"b"
    store = stored(v2((3,), (2,), "|O", "none", filters=[{"id": "vlen-utf8"}]), {"0": value})
    assert zarrdask.open_array(store)[...].tolist() == ["é", "b", "none"]


# ---- damage

KEY = "deep/array/c/1"


def outcome(act, z):
    """Return what acting on an array gives, and the error of ours that it raises instead."""
    try:
        return act(z), None
    except ZarrdaskError as error:
        return None, error


def damaged(value, codecs=(LITTLE,), **changes):
    """Return an array of 2 chunks whose second one is damaged."""
    document = v3((4,), (2,), codecs=codecs, **changes)
    root = stored(document)
    store = {f"deep/array/{key}": data for key, data in root.items()}
    return zarrdask.open_array(store | {KEY: value}, "deep/array", mode="r+")


WAYS = {
    "eager": lambda z: z[...],
    "part": lambda z: z[3:],
    "oindex": lambda z: z.oindex[[2, 3]],
    "vindex": lambda z: z.vindex[[3, 0]],
    "partial write": lambda z: z.__setitem__(slice(3, 4), 1),
}


@for_each("way", WAYS.values())
@for_each(
    ("codecs", "value"),
    [
        ([LITTLE], b""),
        ([LITTLE], bytes(3)),
        ([LITTLE], bytes(5)),
        ([LITTLE, GZIP], b""),
        ([LITTLE, GZIP], gz(HELLO)[:-1]),
        ([LITTLE, GZIP], gz(HELLO[:3])),
        ([LITTLE, GZIP], gz(HELLO * 2)),
        ([LITTLE, ZSTD], zstd_frame(HELLO)[:-1]),
        ([LITTLE, ZSTD], zstd_frame(HELLO[:3])),
        ([LITTLE, ZSTD], zstd_frame(HELLO * 2)),
        ([LITTLE, ZSTD], zstd_frame(HELLO[:3], sized=False)),
        ([LITTLE, ZSTD], zstd_frame(HELLO * 2, sized=False)),
        ([LITTLE, ZSTD], zstd_frame(HELLO) + zstd_frame(HELLO)),
        ([LITTLE, BLOSC], blosc_frame(HELLO)[:-1]),
        ([LITTLE, BLOSC], blosc_frame(HELLO[:3])),
        ([LITTLE, BLOSC], blosc_frame(HELLO * 2)),
        ([LITTLE, BLOSC], b"\xff" * 30),
        ([LITTLE, CRC32C], HELLO),
        ([LITTLE, CRC32C], HELLO[:3] + crc32c(HELLO[:3])),
        ([sharding((1,))], b""),
        ([sharding((1,))], bytes(35)),
        ([sharding((1,))], b"abcd" + shard_index((0, 2), (39, 2))),
        ([sharding((1,))], b"abcd" + shard_index((0, 2), (0, 2**40))),
    ],
)
def test_a_damaged_chunk_is_an_error_that_names_its_key(codecs, value, way):
    z = damaged(value, codecs)
    with pytest.raises(CodecError) as caught:
        way(z)
    assert KEY in caught.value.key
    assert KEY in str(caught.value)
    assert z.store.values[KEY] == value
    assert z[:2].tolist() == [0, 0]


@for_each("size", [0, 1, 3])
@for_each("way", list(WAYS)[:4])
def test_an_inner_chunk_of_another_size_is_an_error_that_names_key_and_chunk(size, way):
    z = damaged(b"abcd" + shard_index((0, 2), (1, size)), [sharding((1,))])
    with pytest.raises(CodecError, match=r"inner chunk \(1,\)") as caught:
        WAYS[way](z)
    assert caught.value.key.startswith(KEY)


@for_each("way", WAYS.values())
@for_each("codecs", [[LITTLE, CRC32C], [sharding((1,), [LITTLE, CRC32C])]])
def test_any_flipped_bit_is_a_checksum_error_that_names_the_key(codecs, way):
    good = damaged(b"", codecs)
    good.store.erase(KEY)
    good[2:] = [1, 0x0203]
    value = good.store.get(KEY)
    for bit in range(0, len(value) * 8, 11):
        broken = bytearray(value)
        broken[bit // 8] ^= 1 << bit % 8
        z = damaged(bytes(broken), codecs)
        found, error = outcome(way, z)
        if error is not None:
            assert isinstance(error, ChecksumError)
            assert KEY in error.key
        else:
            # The bit is in an inner chunk that was not read.
            assert codecs[0]["name"] == "sharding_indexed"
            assert found is None or found.tolist() in ([0x0203], [0x0203, 0])


@for_each(
    ("compressor", "compress"),
    [
        ({"id": "zlib", "level": 1}, zlib.compress),
        ({"id": "bz2", "level": 1}, bz2.compress),
        ({"id": "lzma", "format": 1, "check": -1, "preset": None, "filters": None}, lzma.compress),
        ({"id": "lz4", "acceleration": 1}, lambda d: packed("<I", 16) + b"\xf0\x01" + d),
        ({"id": "blosc"}, blosc_frame),
    ],
)
@for_each("size", [0, 3, -1])
def test_a_damaged_v2_chunk_is_an_error_that_names_its_key(compressor, compress, size):
    store = stored(v2((4,), (4,), "<i4", compressor=compressor), {"0": compress(RAW)[:size]})
    with pytest.raises(CodecError) as caught:
        zarrdask.open_array(store)[...]
    assert caught.value.key.startswith("0")


@pytest.mark.parametrize(
    "filters", [[{"id": "zlib", "level": 1}], [{"id": "crc32"}], [{"id": "packbits"}]]
)
def test_a_damaged_filtered_chunk_is_an_error_that_names_its_key(filters):
    dtype = "|b1" if filters[0]["id"] == "packbits" else "<i4"
    for value in (b"", b"\1", b"\xff" * 9):
        store = stored(v2((4,), (4,), dtype, filters=filters), {"0": value})
        with pytest.raises(CodecError) as caught:
            zarrdask.open_array(store)[...]
        assert caught.value.key.startswith("0")


BOMBS = {
    "gzip": ([LITTLE, GZIP], lambda: gz(bytes(2**25))),
    "zstd": ([LITTLE, ZSTD], lambda: zstd_bomb(2**25, states=2**25)),
    "zstd without a size": ([LITTLE, ZSTD], lambda: zstd_bomb(2**25)),
    "two compressors": ([LITTLE, GZIP, GZIP], lambda: gz(gz(bytes(2**25)))),
    "blosc": ([LITTLE, BLOSC], lambda: blosc_frame(b"x", states=2**27)),
    "shard": ([sharding((1,))], lambda: b"abcd" + shard_index((0, 2**27), (0, 2))),
    "inner chunk": (
        [sharding((1,), [LITTLE, GZIP])],
        lambda: (d := gz(bytes(2**25))) + shard_index((0, len(d)), None),
    ),
    "whole shard": ([sharding((1,)), GZIP], lambda: gz(bytes(2**25))),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_value_that_decodes_to_a_huge_one_is_an_error_and_takes_no_memory(name, tmp_path):
    codecs, make = BOMBS[name]
    value = make()
    assert len(value) < 2**18
    z = damaged(value, codecs)
    local = zarrdask.create_array(tmp_path, shape=4, dtype="u2", chunks=2)
    for key in ("zarr.json", "c/1"):
        local.store.set(key, z.store.get(f"deep/array/{key}"))
    for array in (z, zarrdask.open_array(tmp_path)):
        with at_most(2**24), pytest.raises(CodecError, match="c/1"):
            array[...]


def test_a_chunk_that_is_written_whole_is_not_read_before():
    z = damaged(b"rubbish", [LITTLE, CRC32C])
    z[2:] = 5
    assert z[...].tolist() == [0, 0, 5, 5]


class Failing(MemoryStore):
    """A store whose values can't be had."""

    def get_many(self, keys, scratch):
        for key in keys:
            raise StoreError("the line was cut", key=key)
        yield

    def get_range(self, key, start, length=None):
        raise StoreError("the line was cut", key=key)


@pytest.mark.parametrize("codecs", [[LITTLE], [sharding((1,))]])
def test_a_failing_store_is_a_store_error_that_names_the_key(codecs):
    array = zarrdask.open_array(stored(v3((2,), codecs=codecs)))
    broken = zarrdask.Array(Failing(array.store.values), "", array.metadata)
    with pytest.raises(StoreError, match="the line was cut") as caught:
        broken[...]
    assert caught.value.key.count("c/0") == 1


class Asked(MemoryStore):
    """Keeps which values were asked for together."""

    def __init__(self):
        super().__init__()
        self.together = []

    def get_many(self, keys, scratch):
        self.together.append(sorted(keys))
        return super().get_many(keys, scratch)


def test_chunks_of_several_shapes_are_asked_for_together():
    store = Asked()
    lengths = (20_000, 30_000, 20_000, 40_000)
    z = zarrdask.create_array(store, shape=110_000, dtype="i4", chunks=(lengths,))
    z[...] = np.arange(110_000)
    store.together.clear()
    found = z.read((slice(10_000, 110_000, 1),), threads=1)
    np.testing.assert_array_equal(found, np.arange(10_000, 110_000))
    assert store.together == [["c/0", "c/1", "c/2", "c/3"]]


# ---- any chain of codecs


@st.composite
def arrays_of_any_chain(draw):
    """A v3 array whose chunks have any legal chain of codecs, and its values.

    The chunks are of one shape, or of multiples of it.
    """
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=8))
    chunk_shape = tuple(draw(st.integers(1, 6)) for _ in shape)
    document = v3(shape, chunk_shape, "int16", 3, draw(chains(chunk_shape)))
    if draw(st.booleans()):
        axes = zip(shape, chunk_shape, strict=True)
        lengths = [draw(selections.lengths(size, chunk)) for size, chunk in axes]
        document["chunk_grid"] = rectilinear(lengths)
    values = draw(hnp.arrays("i2", shape, elements=st.integers(0, 5), fill=st.just(3)))
    return zarrdask.open_array(stored(document), mode="r+"), values


@given(arrays_of_any_chain(), st.data())
def test_parts_of_any_chain_are_those_of_the_whole(case, data):
    z, values = case
    z[...] = values
    same(z[...], values)
    index = data.draw(selections.basic(values.shape))
    same(z[index], values[index])
    outer = data.draw(selections.outer(values.shape))
    same(z.oindex[outer], selections.take_outer(values, outer)[0])
    if values.ndim:
        points = data.draw(selections.points(values.shape))
        same(z.vindex[points], values[points])


@given(arrays_of_any_chain(), st.data())
def test_parts_written_through_any_chain_are_those_of_the_whole(case, data):
    z, values = case
    expected = np.full(values.shape, 3, "i2")
    for number in range(2):
        index = data.draw(selections.basic(values.shape, newaxis=False))
        z[index] = expected[index] = number + 7
    outer = data.draw(selections.outer(values.shape))
    z.oindex[outer] = 20
    expected[selections.take_outer(values, outer)[1]] = 20
    same(z[...], expected)


@given(arrays_of_any_chain(), st.integers(0, 10**9), st.integers(0, 10**9))
def test_any_damage_is_an_error_of_ours_or_values(case, which, place):
    z, values = case
    z[...] = values
    keys = sorted(key for key in z.store.values if key != "zarr.json")
    if not keys:
        return
    key = keys[which % len(keys)]
    broken = bytearray(z.store.values[key])
    broken[place % len(broken)] ^= 1 << which % 8
    z.store.values[key] = bytes(broken)
    found, error = outcome(lambda z: z[...], z)
    if error is None:
        assert found.shape == values.shape
    else:
        assert key in error.key


# ---- small chunks


class SlowStore(MemoryStore):
    """As a disk far away: each value takes a while."""

    def __init__(self):
        super().__init__()
        self.together = self.most = 0
        self._lock = threading.Lock()

    def get(self, key):
        with self._lock:
            self.together += 1
            self.most = max(self.most, self.together)
        time.sleep(0.001)
        with self._lock:
            self.together -= 1
        return super().get(key)


def test_threads_wait_together_for_small_chunks_that_come_slowly():
    values = np.arange(400, dtype="i4")
    store = SlowStore()
    z = zarrdask.create_array(store, shape=400, dtype="i4", chunks=1)
    z[...] = values
    store.most = 0
    found = z.read((slice(0, 400, 1),), threads=4)
    np.testing.assert_array_equal(found, values)
    assert store.most > 1


def test_small_chunks_that_come_fast_are_read_in_turns(tmp_path):
    values = np.arange(1000, dtype="i4")
    z = zarrdask.create_array(tmp_path, shape=1000, dtype="i4", chunks=2)
    z[...] = values
    np.testing.assert_array_equal(z.read((slice(0, 1000, 1),), threads=4), values)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_reads_though_another_thread_was_reading(tmp_path):
    z = zarrdask.create_array(tmp_path, shape=300, dtype="i4", chunks=2)
    z[...] = 1
    reading, done = threading.Event(), threading.Event()

    def read_slowly(items):
        reading.set()
        done.wait(20)
        return sum(1 for _ in items)

    small = {"count": 2, "nbytes": 8}
    thread = threading.Thread(target=in_turns, args=(read_slowly, iter([1, 2])), kwargs=small)
    thread.start()
    reading.wait(20)
    child = os.fork()
    if not child:
        signal.alarm(20)
        os._exit(0 if z[...].sum() == 300 else 1)
    done.set()
    thread.join(20)
    _, status = os.waitpid(child, 0)
    assert status == 0


def test_small_chunks_in_small_shards_are_read():
    inner = sharding((2,), codecs=[LITTLE])
    z = zarrdask.create_array({}, shape=64, dtype="i4", chunks=8, codecs=[inner, ZSTD])
    z[...] = np.arange(64)
    assert z[...].tolist() == list(range(64))


def test_filters_may_widen_elements():
    values = np.arange(100_000, dtype="u1")
    for filters in (
        [{"id": "delta", "dtype": "|u1", "astype": "<i4"}],
        [{"id": "astype", "encode_dtype": "<f8", "decode_dtype": "|u1"}],
    ):
        store = {}
        z = zarrdask.create_array(
            store, shape=values.shape, dtype="u1", chunks=-1, filters=filters, zarr_format=2
        )
        z[...] = values
        np.testing.assert_array_equal(z[...], values)


@pytest.mark.parametrize("entry", [(2**63 - 1, 2**62), (100, 2**63 - 1), (0, 2**40)])
def test_a_damaged_nested_shard_is_a_codec_error(entry):
    inner = sharding((1,))
    z = damaged(b"abcd" + shard_index(entry), [sharding((2,), codecs=[inner])])
    with pytest.raises(CodecError, match=KEY):
        z[...]


def test_all_threads_have_ended_when_one_fails():
    class Broken(MemoryStore):
        def get(self, key):
            if key == "c/0":
                raise StoreError("broken", key=key)
            time.sleep(0.01)
            done.append(key)
            return super().get(key)

    done = []
    z = zarrdask.create_array(Broken(), shape=40, dtype="i4", chunks=1)
    with pytest.raises(StoreError, match="c/0"):
        z.read((slice(0, 40, 1),), threads=2)
    found = len(done)
    time.sleep(0.05)
    assert len(done) == found
