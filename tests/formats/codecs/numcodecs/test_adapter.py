"""numcodecs' codecs, for v2."""

import json
import struct
import zlib

import numcodecs
import numpy as np
import pytest

from tests.contracts.codec import check_array_bytes, check_bytes_bytes, check_value
from tests.covering import for_each
from tests.documents import same
from zarrdask.errors import ChecksumError, CodecError, MetadataError, UnsupportedError
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.numcodecs.adapter import BufferCodec, ObjectCodec, make


def buffer(view="|u1", **config):
    return BufferCodec(json.dumps(config, sort_keys=True), view)


COMPRESSORS = [
    {"id": "zlib", "level": 1},
    {"id": "bz2", "level": 1},
    {"id": "lzma", "format": 1, "check": -1, "preset": None, "filters": None},
    {"id": "lz4", "acceleration": 1},
    {"id": "crc32"},
    {"id": "crc32c"},
    {"id": "adler32"},
    {"id": "fletcher32"},
    {"id": "jenkins_lookup3"},
]


@for_each("config", COMPRESSORS)
def test_values_survive(config):
    check_bytes_bytes(buffer(**config))


@for_each("config", COMPRESSORS)
def test_v3_metadata_have_no_such_codec(config):
    with pytest.raises(UnsupportedError) as caught:
        buffer(**config).to_json()
    assert caught.value.found == config["id"]


@for_each("name", ["crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3"])
def test_a_checksum_that_does_not_match_is_an_error(name):
    codec = buffer(id=name)
    data = bytearray(codec.encode(b"12345678"))
    data[5] ^= 1
    with pytest.raises(ChecksumError, match="can't be decoded"):
        codec.decode(bytes(data), 8)


@for_each("name", ["bz2", "lz4", "lzma", "zlib"])
def test_damaged_values_are_codec_errors(name):
    codec = buffer(id=name)
    data = bytes(codec.encode(bytes(range(200))))
    for damaged in (data[:3], data[: len(data) // 2], b"\xff" * 40):
        with pytest.raises(CodecError):
            codec.decode(damaged, 200)


@for_each("name", ["bz2", "lz4", "lzma", "zlib"])
def test_what_decodes_to_more_than_it_may_is_an_error(name):
    codec = buffer(id=name)
    with pytest.raises(CodecError):
        codec.decode(codec.encode(bytes(2**16)), 1000)


# ---- bytes written by hand


def chunk(values, dtype):
    return np.array(values, dtype)


@for_each(
    ("config", "dtype", "values", "expected"),
    [
        # The first element, then differences.
        ({"id": "delta", "dtype": "<i4"}, "<i4", [5, 7, 4], "0500000002000000fdffffff"),
        ({"id": "delta", "dtype": "<i2", "astype": "|i1"}, "<i2", [5, 7, 4], "0502fd"),
        # round((x - 1000) * 10).
        (
            {
                "id": "fixedscaleoffset",
                "scale": 10,
                "offset": 1000,
                "dtype": "<f8",
                "astype": "|u1",
            },
            "<f8",
            [1000.0, 1000.5, 1012.3],
            "00057b",
        ),
        ({"id": "packbits"}, "|b1", [1, 0, 1, 1, 0, 0, 0, 0, 1, 1], "06b0c0"),
        (
            {"id": "astype", "encode_dtype": "<i2", "decode_dtype": "<f4"},
            "<f4",
            [3, -1],
            "0300ffff",
        ),
        ({"id": "shuffle", "elementsize": 2}, "<u2", [0x0102, 0x0304], "02040103"),
        ({"id": "crc32"}, "|u1", list(b"123456789"), "2639f4cb313233343536373839"),
        (
            {"id": "crc32", "location": "end"},
            "|u1",
            list(b"123456789"),
            "3132333435363738392639f4cb",
        ),
        ({"id": "crc32c"}, "|u1", list(b"123456789"), "313233343536373839839206e3"),
        ({"id": "adler32"}, "|u1", list(b"123456789"), "de011e09313233343536373839"),
        # Size, little-endian, then an LZ4 block of literals: token 3 << 4.
        ({"id": "lz4"}, "|u1", [1, 2, 3], "0300000030010203"),
    ],
)
def test_bytes_are_those_of_the_conventions(config, dtype, values, expected):
    codec = buffer(dtype, **config)
    data = chunk(values, dtype).tobytes()
    assert bytes(codec.encode(data)).hex() == expected
    assert bytes(codec.decode(bytes.fromhex(expected), len(data))) == data


def test_bitround_keeps_bits_and_decodes_to_itself():
    codec = buffer("<f4", id="bitround", keepbits=2)
    data = bytes(codec.encode(np.array([1.1, 1.9], "<f4").tobytes()))
    assert np.frombuffer(data, "<f4").tolist() == [1.0, 2.0]
    assert bytes(codec.decode(data, 8)) == data


def test_quantize_rounds():
    codec = buffer("<f8", id="quantize", digits=1, dtype="<f8")
    data = bytes(codec.encode(np.array([1.26, -0.04]).tobytes()))
    assert np.abs(np.frombuffer(data) - [1.26, -0.04]).max() < 0.05


def test_zlib_is_without_header_or_trailer_of_ours():
    assert zlib.decompress(buffer(id="zlib").encode(b"hello")) == b"hello"


# ---- objects


def objects(*values):
    out = np.empty(len(values), object)
    out[:] = values
    return out


def rows(*values):
    out = np.empty(len(values), object)
    for n, value in enumerate(values):
        out[n] = np.array(value, "<i4")
    return out


TEXTS = objects("", "a", "äöü", "日本" * 40)


@for_each(
    "config",
    [
        {"id": "vlen-utf8"},
        {"id": "json2"},
        {"id": "msgpack2"},
        {"id": "categorize", "labels": TEXTS.tolist(), "dtype": "|O", "astype": "|u1"},
    ],
)
def test_texts_survive(config):
    check_array_bytes(ObjectCodec(json.dumps(config)), TEXTS.reshape(2, 2), "")


def test_bytes_survive():
    codec = ObjectCodec('{"id": "vlen-bytes"}')
    check_array_bytes(codec, objects(b"", b"\0\xff", b"abc"), b"")


@for_each("values", [([1, 2], [], [3]), ([1, 2], [3, 4], [5, 6]), ([1], [2], [3]), ([], [], [])])
def test_arrays_of_any_lengths_survive(values):
    codec = ObjectCodec('{"id": "vlen-array", "dtype": "<i4"}')
    check_value(codec)
    bound = codec.bind(ChunkSpec((3,), np.dtype(object), ""))
    found = bound.decode(bytes(bound.encode(rows(*values))))
    assert found.shape == (3,)
    for a, b in zip(found, values, strict=True):
        same(a, np.array(b, "<i4"))


def test_any_json_survives():
    values = [{"a": 1}, [1, 2], None, 1.5]
    bound = ObjectCodec('{"id": "json2"}').bind(ChunkSpec((4,), np.dtype(object), ""))
    assert bound.decode(bytes(bound.encode(objects(*values)))).tolist() == values


def test_lists_of_one_length_survive_json():
    values = [[1, 2], [3, 4]]
    bound = ObjectCodec('{"id": "json2"}').bind(ChunkSpec((2,), np.dtype(object), ""))
    assert bound.decode(bytes(bound.encode(objects(*values)))).tolist() == values


def test_vlen_utf8_is_count_then_length_and_text():
    bound = ObjectCodec('{"id": "vlen-utf8"}').bind(ChunkSpec((2,), np.dtype(object), ""))
    data = struct.pack("<II", 2, 2) + "é".encode() + struct.pack("<I", 1) + b"b"
    assert bytes(bound.encode(objects("é", "b"))) == data
    assert bound.decode(data).tolist() == ["é", "b"]


@for_each("data", [b"", b"\1", struct.pack("<II", 2, 900) + b"abc", b"\xff" * 20])
@for_each("name", ["vlen-utf8", "vlen-bytes", "json2", "msgpack2"])
def test_damaged_objects_are_codec_errors(name, data):
    bound = ObjectCodec(json.dumps({"id": name})).bind(ChunkSpec((2,), np.dtype(object), ""))
    with pytest.raises(CodecError):
        bound.decode(data)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_objects_than_the_chunk_has_is_an_error(count):
    bound = ObjectCodec('{"id": "vlen-utf8"}').bind(ChunkSpec((2,), np.dtype(object), ""))
    with pytest.raises(CodecError):
        bound.decode(bytes(numcodecs.VLenUTF8().encode(objects(*"abc"[:count]))))


def test_what_is_no_text_cannot_be_stored_as_text():
    bound = ObjectCodec('{"id": "vlen-utf8"}').bind(ChunkSpec((1,), np.dtype(object), ""))
    with pytest.raises(CodecError):
        bound.encode(objects({"no": "text"}))


def test_an_object_codec_takes_objects_only():
    with pytest.raises(MetadataError, match="can't encode"):
        ObjectCodec('{"id": "vlen-utf8"}').bind(ChunkSpec((2,), np.dtype("i4"), 0))


# ---- configurations


def test_pickle_is_refused_with_the_reason():
    with pytest.raises(UnsupportedError, match="runs code") as caught:
        make({"id": "pickle"})
    assert caught.value.found == "pickle"


def test_an_unknown_codec_is_named():
    with pytest.raises(UnsupportedError) as caught:
        make({"id": "nosuchcodec"})
    assert caught.value.found == "nosuchcodec"


@pytest.mark.parametrize("config", [{}, {"id": 5}, {"name": "zlib"}])
def test_a_configuration_without_id_is_an_error(config):
    with pytest.raises(MetadataError, match="id"):
        make(config)


@pytest.mark.parametrize("config", [{"id": "zlib", "levels": 1}, {"id": "delta"}])
def test_a_configuration_that_the_codec_refuses_is_an_error(config):
    for function in (make, BufferCodec.made):
        with pytest.raises(MetadataError, match=config["id"]):
            function(config)
