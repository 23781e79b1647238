"""``packbits``."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contracts.codec import check_array_bytes, check_json
from tests.covering import for_each
from tests.documents import same
from zarrdask.errors import CodecError, MetadataError
from zarrdask.formats.codecs.array_to_bytes.packbits import PackbitsCodec
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.registry import parse_codec
from zarrdask.formats.compliance import strictness
from zarrdask.formats.dtypes.ml import BITS
from zarrdask.formats.dtypes.registry import parse_data_type

NAMES = [
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
    *BITS,
    *("complex_float16", "complex_bfloat16", "complex_float6_e2m3fn", "complex_float4_e2m1fn"),
    {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}},
]
WIDTHS = {"bool": 1, "complex_float6_e2m3fn": 12, "complex_float4_e2m1fn": 8, **BITS}


def bits_of(name, count):
    """A chunk with `count` elements of any bits."""
    dtype = parse_data_type(name).dtype
    part = dtype[0] if dtype.names else dtype
    raw = np.frombuffer(np.random.default_rng(3).bytes(count * dtype.itemsize), "u1")
    if dtype.kind == "b":
        raw = raw & 1
    elif part.itemsize == 1:
        raw = raw & (2 ** BITS.get(part.type.__name__, 8) - 1)
    return raw.astype("u1").view(dtype)


def pack(chunk, **members):
    bound = PackbitsCodec(**members).bind(ChunkSpec(chunk.shape, chunk.dtype, 0))
    return bytes(bound.encode(chunk)), bound


@for_each("name", NAMES)
def test_all_bits_of_all_types_survive(name):
    for padding in ["none", "first_byte", "last_byte"]:
        chunk = bits_of(name, 15).reshape(3, 5)
        data, bound = pack(chunk, padding_encoding=padding)
        width = WIDTHS.get(name if isinstance(name, str) else "", chunk.dtype.itemsize * 8)
        assert len(data) == bound.encoded_size == (15 * width + 7) // 8 + (padding != "none")
        assert bound.decode(data).tobytes() == chunk.tobytes()
        swapped = chunk.astype(chunk.dtype.newbyteorder(">"))
        assert bytes(bound.encode(swapped)) == bytes(bound.encode(np.asfortranarray(chunk))) == data


@for_each("padding", ["none", "first_byte", "last_byte"])
@for_each("shape", [(), (1,), (8,), (3, 3)])
def test_chunks_survive(shape, padding):
    codec = PackbitsCodec(padding, 0, 3)
    check_array_bytes(codec, np.arange(np.prod(shape, dtype=int), dtype="u2").reshape(shape) % 16)
    check_json(codec, parse_codec)


@given(st.data())
def test_integers_are_extended_from_their_last_bit(data):
    dtype = np.dtype(data.draw(st.sampled_from(["i1", "u1", "i2", "u2", "i8", "u8"])))
    width = dtype.itemsize * 8
    first = data.draw(st.integers(0, width - 1))
    last = data.draw(st.integers(first, width - 1))
    size = last - first + 1
    values = data.draw(st.lists(st.integers(0, 2**size - 1), min_size=1, max_size=20))
    chunk = np.array([value << first for value in values], f"u{dtype.itemsize}")
    stream = sum(value << (n * size) for n, value in enumerate(values))
    expected = stream.to_bytes((len(values) * size + 7) // 8, "little")
    encoded, bound = pack(chunk.view(dtype), first_bit=first, last_bit=last)
    assert encoded == expected
    sign = 2**last
    wanted = [((v << first) ^ sign) - sign if dtype.kind == "i" else v << first for v in values]
    assert bound.decode(encoded).tolist() == wanted


def test_the_lowest_bit_comes_first():
    flags = np.array([False, True] * 4)
    assert pack(flags)[0] == b"\xaa"
    nibbles = np.arange(-8, -2).astype("i1").astype(ml_dtypes.int4)
    assert pack(nibbles)[0] == bytes.fromhex("98badc")
    assert pack(flags[:3], padding_encoding="first_byte")[0] == b"\x05\x02"
    assert pack(flags[:3], padding_encoding="last_byte")[0] == b"\x02\x05"


@for_each("data", [b"", b"\x02", b"\x05\x02\x00", b"\x04\x02"])
def test_another_size_or_padding_is_an_error(data):
    _, bound = pack(np.array([True, False, True]), padding_encoding="first_byte")
    with pytest.raises(CodecError):
        bound.decode(data)


def test_padding_may_have_any_bits():
    _, bound = pack(np.array([True, False, True]))
    same(bound.decode(b"\xfd"), np.array([True, False, True]))


@for_each(
    ("dtype", "first", "last"),
    [("u1", 3, 2), ("u1", 0, 8), ("?", 0, 1), ("i4", 32, None), (ml_dtypes.int4, 0, 4)],
)
def test_bits_that_are_not_there_are_an_error_at_open(dtype, first, last):
    with pytest.raises(MetadataError, match="last_bit"):
        PackbitsCodec("none", first, last).bind(ChunkSpec((2,), np.dtype(dtype), 0))


@for_each("dtype", ["S2", "U1", "V2", "O", [("re", "f4"), ("im", "f4")]])
def test_other_elements_are_an_error_at_open(dtype):
    with pytest.raises(MetadataError):
        PackbitsCodec().bind(ChunkSpec((2,), np.dtype(dtype), 0))


@for_each(
    "members",
    [
        {"padding_encoding": "middle"},
        {"padding_encoding": None},
        {"padding_encoding": []},
        {"first_bit": -1},
        {"last_bit": 1.5},
        {"last_bit": True},
        {"bits": 4},
        {"first_bit": 1, "start_bit": 1},
    ],
)
def test_a_wrong_configuration_is_an_error(members):
    with pytest.raises(MetadataError, match="packbits"):
        parse_codec({"name": "packbits", "configuration": members})


def test_the_names_of_the_schema_are_read_but_not_in_strict_mode():
    members = {"padding_encoding": "start_byte", "start_bit": 1, "end_bit": None}
    document = {"name": "packbits", "configuration": members}
    assert parse_codec(document) == PackbitsCodec("first_byte", 1)
    assert parse_codec("packbits") == PackbitsCodec()
    with strictness(True), pytest.raises(MetadataError, match="X-C8"):
        parse_codec(document)
