"""``vlen-utf8`` and ``vlen-bytes``."""

import struct

import numpy as np
import pytest

from tests.contracts.codec import check_array_bytes, check_json
from tests.covering import for_each
from zarrdask.errors import CodecError, MetadataError
from zarrdask.formats.codecs.array_to_bytes.vlen import VlenBytesCodec, VlenUtf8Codec
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.registry import parse_codec

OBJECT = np.dtype(object)


def objects(*values):
    out = np.empty(len(values), object)
    out[:] = values
    return out


TEXTS = objects("", "a", "äöü", "日本" * 40, "\0", "x" * 300)
BYTES = objects(b"", b"\0\xff", b"abc", b"\xc3")


def bind(codec, shape=(2,), fill_value=None):
    return codec.bind(ChunkSpec(shape, OBJECT, codec.item() if fill_value is None else fill_value))


def test_texts_survive():
    check_array_bytes(VlenUtf8Codec(), TEXTS.reshape(2, 3), "")
    check_json(VlenUtf8Codec(), parse_codec)


def test_bytes_survive():
    check_array_bytes(VlenBytesCodec(), BYTES.reshape(2, 2), b"")
    check_json(VlenBytesCodec(), parse_codec)


@pytest.mark.parametrize(
    ("codec", "values", "items"),
    [
        (VlenUtf8Codec(), ("é", "b"), ("é".encode(), b"b")),
        (VlenBytesCodec(), (b"\xff", b""), (b"\xff", b"")),
    ],
)
def test_it_is_the_count_then_length_and_bytes_of_each(codec, values, items):
    data = struct.pack("<I", 2) + b"".join(struct.pack("<I", len(i)) + i for i in items)
    assert bytes(bind(codec).encode(objects(*values))) == data
    assert bind(codec).decode(data).tolist() == list(values)


@for_each(
    ("codec", "value"),
    [
        (VlenUtf8Codec(), b"bytes"),
        (VlenUtf8Codec(), None),
        (VlenUtf8Codec(), float("nan")),
        (VlenUtf8Codec(), 5),
        (VlenUtf8Codec(), "\ud800"),
        (VlenBytesCodec(), "text"),
        (VlenBytesCodec(), None),
        (VlenBytesCodec(), 0),
    ],
)
def test_an_element_of_another_type_is_an_error(codec, value):
    with pytest.raises(CodecError, match=r"the wrong type|encode"):
        bind(codec).encode(objects(codec.item(), value))


@for_each("codec", [VlenUtf8Codec(), VlenBytesCodec()])
@for_each(
    "data",
    [
        b"",
        b"\2\0\0",
        struct.pack("<II", 2, 900) + b"abc",
        struct.pack("<III", 1, 0, 0),
        struct.pack("<IIII", 3, 0, 0, 0),
        b"\xff" * 20,
        struct.pack("<I", 2**31) + b"\0" * 8,
    ],
)
def test_damaged_chunks_are_errors(codec, data):
    with pytest.raises(CodecError):
        bind(codec).decode(data)


def test_what_is_no_utf8_is_an_error():
    with pytest.raises(CodecError):
        bind(VlenUtf8Codec(), (1,)).decode(struct.pack("<II", 1, 1) + b"\xff")


@for_each(
    ("codec", "dtype", "fill_value"),
    [
        (VlenUtf8Codec(), OBJECT, b""),
        (VlenUtf8Codec(), OBJECT, 0),
        (VlenUtf8Codec(), np.dtype("U4"), ""),
        (VlenUtf8Codec(), np.dtype("i4"), 0),
        (VlenBytesCodec(), OBJECT, ""),
        (VlenBytesCodec(), np.dtype("S4"), b""),
    ],
)
def test_another_data_type_is_an_error_at_open(codec, dtype, fill_value):
    with pytest.raises(MetadataError, match="can't encode"):
        codec.bind(ChunkSpec((2,), dtype, fill_value))


@pytest.mark.parametrize("name", ["vlen-utf8", "vlen-bytes"])
def test_there_is_no_configuration(name):
    assert parse_codec({"name": name, "configuration": {}}) == parse_codec(name)
    with pytest.raises(MetadataError, match=name):
        parse_codec({"name": name, "configuration": {"id": name}})


@for_each(("codec", "values"), [(VlenUtf8Codec(), ["a", "bc"]), (VlenBytesCodec(), [b"a", b"bc"])])
def test_elements_may_be_arrays_without_axes(codec, values):
    bound = bind(codec)
    assert bytes(bound.encode(objects(*map(np.array, values)))) == bytes(
        bound.encode(objects(*values))
    )
