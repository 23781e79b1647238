"""``bytes``."""

import numpy as np
import pytest

from tests.contracts.codec import check_array_bytes, check_json, check_value
from zarrdask.codecs.base import ChunkSpec
from zarrdask.codecs.bytes_ import BytesCodec
from zarrdask.codecs.registry import parse_codec
from zarrdask.errors import CodecError, MetadataError, UnsupportedError


def bind(endian, shape, dtype):
    return BytesCodec(endian).bind(ChunkSpec(shape, np.dtype(dtype), 0))


@pytest.mark.parametrize("endian", ["little", "big", None])
def test_it_is_a_value_and_has_json(endian):
    check_value(BytesCodec(endian))
    check_json(BytesCodec(endian), parse_codec)


@pytest.mark.parametrize("endian", ["little", "big"])
@pytest.mark.parametrize("dtype", ["b1", "i1", "u2", ">u2", "i8", "f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (0, 2), (2, 3, 2)])
def test_chunks_survive(endian, dtype, shape):
    chunk = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2).astype(dtype)
    check_array_bytes(BytesCodec(endian), chunk)


@pytest.mark.parametrize(
    ("endian", "dtype", "values", "expected"),
    [
        ("little", "u2", [1, 0x0203], "01000302"),
        ("big", "u2", [1, 0x0203], "00010203"),
        ("little", "f4", [1.0], "0000803f"),
        ("big", "f4", [1.0], "3f800000"),
        ("big", "c8", [1 + 2j], "3f80000040000000"),
        ("little", "i8", [-2], "feffffffffffffff"),
        (None, "b1", [True, False], "0100"),
        (None, "i1", [-1], "ff"),
        (None, "V3", [b"abc"], "616263"),
    ],
)
def test_bytes_are_those_of_the_specification(endian, dtype, values, expected):
    chunk = np.array(values, dtype)
    bound = bind(endian, chunk.shape, dtype)
    assert bytes(bound.encode(chunk)).hex() == expected
    assert np.array_equal(bound.decode(bytes.fromhex(expected)), chunk)


def test_elements_are_in_lexicographic_order():
    bound = bind(None, (2, 3), "u1")
    assert bytes(bound.encode(np.arange(6, dtype="u1").reshape(2, 3))) == bytes(range(6))
    assert bytes(bound.encode(np.arange(6, dtype="u1").reshape(3, 2).T)) == bytes(
        [0, 2, 4, 1, 3, 5]
    )


def test_a_value_of_another_size_is_an_error_that_tells_both():
    bound = bind("little", (3,), "i4")
    for data in (b"", bytes(11), bytes(13), bytes(24)):
        with pytest.raises(CodecError) as caught:
            bound.decode(data)
        assert caught.value.found == f"{len(data)} bytes"
        assert "12 bytes" in caught.value.expected


@pytest.mark.parametrize("dtype", ["i2", "f8", "c8", "M8[s]", "i1,i2"])
def test_elements_of_several_bytes_need_a_byte_order(dtype):
    with pytest.raises(MetadataError, match="byte order"):
        bind(None, (3,), dtype)


@pytest.mark.parametrize("dtype", ["u1", "i1", "b1", "V7"])
def test_elements_of_single_bytes_need_none_but_may_have_one(dtype):
    assert bind(None, (3,), dtype).encoded_size == bind("big", (3,), dtype).encoded_size


def test_fields_keep_their_own_byte_order():
    dtype = np.dtype([("a", ">i2"), ("b", "<i2")])
    chunk = np.array([(1, 1)], dtype)
    assert bytes(bind("own", (1,), dtype).encode(chunk)).hex() == "00010100"


def test_objects_are_refused():
    with pytest.raises(UnsupportedError, match="fixed size"):
        bind("little", (3,), object)


@pytest.mark.parametrize("endian", ["native", "Little", 1, "own"])
def test_an_unknown_byte_order_is_an_error(endian):
    with pytest.raises(MetadataError, match=r"bytes\.endian"):
        parse_codec({"name": "bytes", "configuration": {"endian": endian}})
