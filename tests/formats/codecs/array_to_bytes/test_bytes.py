"""``bytes``."""

from itertools import product

import numpy as np
import pytest

from tests.contracts.codec import check_array_bytes, check_json, check_value
from tests.covering import for_each
from zarrdask.errors import CodecError, MetadataError, UnsupportedError
from zarrdask.formats.codecs.array_to_bytes.bytes import BytesCodec, has_byte_order
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.registry import parse_codec
from zarrdask.formats.dtypes.complex_pairs import NAMES as PAIRS
from zarrdask.formats.dtypes.ml import BITS, dtype_named
from zarrdask.formats.dtypes.registry import parse_data_type


def bind(endian, shape, dtype):
    return BytesCodec(endian).bind(ChunkSpec(shape, np.dtype(dtype), 0))


@pytest.mark.parametrize("endian", ["little", "big", None])
def test_it_is_a_value_and_has_json(endian):
    check_value(BytesCodec(endian))
    check_json(BytesCodec(endian), parse_codec)


@for_each("dtype", ["b1", "i1", "u2", ">u2", "i8", "f2", "f4", "f8", "c8", "c16"])
def test_chunks_survive(dtype):
    for endian, shape in product(["little", "big"], [(), (1,), (3, 4), (0, 2), (2, 3, 2)]):
        chunk = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2).astype(dtype)
        check_array_bytes(BytesCodec(endian), chunk)


@for_each(
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


@for_each("dtype", ["i2", "f8", "c8", "M8[s]", "i1,i2"])
def test_elements_of_several_bytes_need_a_byte_order(dtype):
    with pytest.raises(MetadataError, match="byte order"):
        bind(None, (3,), dtype)


@for_each("dtype", ["u1", "i1", "b1", "V7"])
def test_elements_of_single_bytes_need_none_but_may_have_one(dtype):
    assert bind(None, (3,), dtype).encoded_size == bind("big", (3,), dtype).encoded_size


def test_fields_keep_their_own_byte_order():
    dtype = np.dtype([("a", ">i2"), ("b", "<i2")])
    chunk = np.array([(1, 1)], dtype)
    assert bytes(bind("own", (1,), dtype).encode(chunk)).hex() == "00010100"


def test_objects_are_refused():
    with pytest.raises(UnsupportedError, match="fixed size"):
        bind("little", (3,), object)


@for_each("endian", ["native", "Little", 1, "own"])
def test_an_unknown_byte_order_is_an_error(endian):
    with pytest.raises(MetadataError, match=r"bytes\.endian"):
        parse_codec({"name": "bytes", "configuration": {"endian": endian}})


# --------------------------------------------------------------------------------------------
# The registered data types


@for_each("name", [*BITS, *PAIRS])
def test_chunks_of_narrow_numbers_survive(name):
    for endian, shape in product(["little", "big"], [(), (3, 4), (0, 2)]):
        dtype = parse_data_type(name).dtype
        bits = min(BITS.get(name.removeprefix("complex_"), 16), 8)
        size = np.prod(shape, dtype=int) * dtype.itemsize
        patterns = (np.arange(size) % (2**bits - 2)).astype("u1")
        chunk = patterns.view(dtype).reshape(shape) if size else np.empty(shape, dtype)
        bound = bind(endian, shape, dtype)
        encoded = bytes(bound.encode(chunk))
        assert len(encoded) == bound.encoded_size == size
        found = bound.decode(encoded)
        assert found.shape == shape
        assert found.astype(dtype).tobytes() == chunk.tobytes()
        assert bytes(bound.encode(np.array(chunk, order="F"))) == encoded


def test_what_has_bits_that_mean_nothing_is_not_taken_as_it_is_stored():
    for dtype in (dtype_named("int4"), np.dtype([("a", "i2"), ("b", dtype_named("int2"))])):
        assert bind("little", (2,), dtype).raw is None
    assert bind(None, (2,), dtype_named("float8_e5m2")).raw == dtype_named("float8_e5m2")


def test_a_struct_has_the_order_and_the_padding_of_its_fields():
    inner = np.dtype([("n", dtype_named("int4"), (2,)), ("b", dtype_named("bfloat16"))])
    dtype = np.dtype([("i", "i2"), ("in", inner), ("t", "S2")])
    chunk = np.array([(258, ([-1, 7], 1.0), b"ab")], dtype)
    for endian, expected in (("little", "0201ff07803f6162"), ("big", "0102ff073f806162")):
        bound = bind(endian, (1,), dtype)
        assert bytes(bound.encode(chunk)).hex() == expected
        stored = bytes.fromhex(expected.replace("ff07", "1fa7"))
        found = bound.decode(stored).astype(dtype)
        assert found.tobytes() == chunk.tobytes()


@for_each(
    ("dtype", "expected"),
    [
        ("M8[s]", True),
        ("U1", True),
        ("S4", False),
        ("V4", False),
        ("i1,S3", False),
        ("i1,i2", True),
        ([("a", [("b", "u1"), ("c", "f4", (2,))])], True),
    ],
)
def test_whether_there_is_a_byte_order(dtype, expected):
    assert has_byte_order(np.dtype(dtype)) is expected


@for_each("name", [*BITS, *PAIRS])
def test_whether_narrow_numbers_have_a_byte_order(name):
    dtype = parse_data_type(name).dtype
    assert has_byte_order(dtype) is name.endswith("float16")
    if has_byte_order(dtype):
        with pytest.raises(MetadataError, match="byte order"):
            bind(None, (3,), dtype)


@pytest.mark.parametrize("name", ["int4", "bfloat16"])
def test_narrow_numbers_of_another_size_are_an_error(name):
    with pytest.raises(CodecError, match="wrong size"):
        bind("little", (4,), dtype_named(name)).decode(b"\0\0\0")
