"""``n5_default``."""

import gzip
import struct

import numpy as np
import pytest

import zarrdask
from tests.contracts.codec import check_array_bytes, check_json
from tests.covering import for_each
from tests.documents import BIG, LITTLE, same, stored, v3
from zarrdask.errors import CodecError, MetadataError
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.registry import parse_codec

GZIP = {"name": "gzip", "configuration": {"level": 1}}
VALUES = np.arange(1, 7, dtype="u2").reshape(2, 3)


def reverse(ndim):
    return {"name": "transpose", "configuration": {"order": list(range(ndim))[::-1]}}


def n5(*codecs):
    return {"name": "n5_default", "configuration": {"codecs": list(codecs)}}


def bind(*codecs, shape=(2, 3), dtype="u2", fill_value=9):
    codec = parse_codec(n5(*(codecs or (reverse(len(shape)), BIG))))
    return codec.bind(ChunkSpec(shape, np.dtype(dtype), np.dtype(dtype).type(fill_value)))


def block(shape, payload, mode=0):
    return struct.pack(f">HH{len(shape)}I", mode, len(shape), *shape) + payload


@for_each("dtype", ["i1", "u1", "i2", "u4", "i8", "f4", "f8"])
@for_each("codecs", [[], [GZIP], [{"name": "zstd", "configuration": {"level": 0}}]])
def test_chunks_survive(dtype, codecs):
    codec = parse_codec(n5(reverse(3), BIG, *codecs))
    check_array_bytes(codec, np.arange(24, dtype=dtype).reshape(2, 3, 4))
    check_json(codec, parse_codec)


def test_a_block_is_its_shape_and_big_endian_elements_with_the_first_axis_fastest():
    expected = block((2, 3), struct.pack(">6H", 1, 4, 2, 5, 3, 6))
    assert bytes(bind().encode(VALUES)) == expected
    assert expected[:12] == bytes.fromhex("0000 0002 00000002 00000003")
    same(bind().decode(expected), VALUES)


def test_a_smaller_block_is_padded_with_the_fill_value():
    found = bind().decode(block((1, 2), struct.pack(">2H", 1, 2)))
    same(found, np.array([[1, 2, 9], [9, 9, 9]], "u2"))


def test_a_larger_block_is_cut_off():
    payload = struct.pack(">8H", 1, 4, 2, 5, 3, 6, 7, 8)
    same(bind().decode(block((2, 4), payload)), VALUES)
    found = bind().decode(block((3, 2), struct.pack(">6H", 1, 4, 7, 2, 5, 8)))
    same(found, np.array([[1, 2, 9], [4, 5, 9]], "u2"))


def test_a_block_may_be_compressed():
    payload = gzip.compress(struct.pack(">2H", 1, 2))
    found = bind(reverse(2), BIG, GZIP).decode(block((1, 2), payload))
    assert found[0].tolist() == [1, 2, 9]


def test_bytes_have_no_order():
    for codec in ({"name": "bytes"}, BIG, LITTLE):
        same(
            bind(reverse(1), codec, shape=(2,), dtype="u1").decode(block((2,), b"\1\2")),
            np.array([1, 2], "u1"),
        )


@for_each(
    ("data", "message"),
    [
        (b"", "short"),
        (block((2, 3), b"")[:-1], "short"),
        (block((2, 3), bytes(12), mode=1), "mode"),
        (block((2, 3), bytes(12), mode=2), "mode"),
        (block((2, 3, 1), bytes(12)), "dimensions"),
        (block((6,), bytes(12)), "dimensions"),
        (block((2, 3), bytes(11)), r"N5 block of \(2, 3\)"),
        (block((2, 2), bytes(12)), r"N5 block of \(2, 2\)"),
        (block((2**32 - 1, 2**32 - 1), bytes(12)), "larger"),
    ],
)
def test_what_is_no_such_block_is_an_error(data, message):
    padding = bytes(8) if message == "dimensions" else b""
    with pytest.raises(CodecError, match=message):
        bind().decode(data + padding)


@for_each(
    "codecs",
    [
        [reverse(2)],
        [BIG],
        [BIG, GZIP],
        [reverse(2), LITTLE],
        [reverse(2), {"name": "bytes"}],
        [{"name": "transpose", "configuration": {"order": [0, 1]}}, BIG],
        [reverse(3), BIG],
        [reverse(2), BIG, GZIP, GZIP],
        [reverse(2), reverse(2), BIG],
    ],
)
def test_other_codecs_within_are_an_error_at_open(codecs):
    with pytest.raises(MetadataError, match="n5_default"):
        bind(*codecs)


@for_each("dtype", ["?", "f2", "c8", "M8[s]", "V2", "U1"])
def test_elements_that_n5_has_not_are_an_error_at_open(dtype):
    codec = parse_codec(n5(reverse(2), BIG))
    with pytest.raises(MetadataError, match="can't encode"):
        codec.bind(ChunkSpec((2, 3), np.dtype(dtype), np.zeros((), dtype)[()]))


@pytest.mark.parametrize("members", [{}, {"codecs": {}}, {"codecs": [], "mode": 0}])
def test_a_wrong_configuration_is_an_error(members):
    with pytest.raises(MetadataError):
        parse_codec({"name": "n5_default", "configuration": members})


def test_blocks_that_n5_cut_off_at_the_edge_are_read():
    document = v3(
        (3, 3),
        (2, 3),
        "uint16",
        9,
        [n5(reverse(2), BIG)],
        chunk_key_encoding={"name": "v2", "configuration": {"separator": "/"}},
    )
    edge = block((1, 3), struct.pack(">3H", 7, 8, 9))
    store = stored(document, {"0/0": bytes(bind().encode(VALUES)), "1/0": edge})
    expected = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], "u2")
    same(zarrdask.open_array(store)[...], expected)
    same(zarrdask.from_zarr(store)[1:, ::2].compute(scheduler="sync"), expected[1:, ::2])


def test_a_new_array_has_the_keys_of_n5():
    store = {}
    codecs = [n5(reverse(2), "bytes", "gzip")]
    z = zarrdask.create_array(store, shape=(4, 3), dtype="i4", chunks=(2, 3), codecs=codecs)
    z[...] = np.arange(12).reshape(4, 3)
    assert sorted(store) == ["0/0", "1/0", "zarr.json"]
    assert z.metadata.codecs[0].codecs[1] == parse_codec(BIG)
    same(zarrdask.open_array(store, strict=True)[...], np.arange(12, dtype="i4").reshape(4, 3))
    for wrong in ({"separator": "."}, {"chunk_key_encoding": "default"}):
        with pytest.raises(MetadataError, match="chunk_key_encoding"):
            zarrdask.create_array({}, shape=(4, 3), dtype="i4", codecs=codecs, **wrong)
