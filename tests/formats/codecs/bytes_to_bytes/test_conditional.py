"""``conditional``."""

import zlib

import numpy as np
import pytest

from tests.contracts.codec import check_bytes_bytes, check_json
from tests.covering import for_each
from tests.documents import CRC32C, LITTLE, crc32c
from tests.memory import at_most
from zarrdask.errors import ChecksumError, CodecError, MetadataError
from zarrdask.formats.codecs.bytes_to_bytes.blosc import BloscCodec
from zarrdask.formats.codecs.bytes_to_bytes.conditional import ConditionalCodec
from zarrdask.formats.codecs.bytes_to_bytes.gzip import GzipCodec
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.registry import parse_codec

ZLIB = {"name": "numcodecs.zlib", "configuration": {"level": 1}}
SHUFFLE = {"name": "numcodecs.shuffle", "configuration": {"elementsize": 1}}
GZIP = {"name": "gzip", "configuration": {"level": 1}}
NOISE = np.random.default_rng(1).bytes(200)


def conditional(*codecs, **members):
    return parse_codec(
        {"name": "conditional", "configuration": {"codecs": list(codecs), **members}}
    )


@for_each("codecs", [[ZLIB], [SHUFFLE, ZLIB, CRC32C], [ZLIB, GZIP], []])
@for_each("members", [{}, {"header_bits": 24}])
def test_values_survive(codecs, members):
    check_bytes_bytes(conditional(*codecs, **members))
    check_json(conditional(*codecs, **members), parse_codec)


def test_errors_name_the_codec_within():
    shuffle = {"name": "numcodecs.shuffle", "configuration": {"elementsize": 3}}
    with pytest.raises(CodecError, match=r"^codec numcodecs.shuffle: the chunk can't be encoded"):
        conditional(shuffle).encode(b"1234")
    with pytest.raises(ChecksumError, match=r"^codec crc32c: "):
        conditional(CRC32C).decode(b"\x0112345", 1)


def test_a_compressor_is_applied_where_it_makes_a_chunk_smaller():
    assert bytes(conditional(ZLIB).encode(bytes(100))) == b"\1" + zlib.compress(bytes(100), 1)
    assert bytes(conditional(ZLIB).encode(NOISE)) == b"\0" + NOISE


def test_what_gives_as_much_whatever_it_gets_is_always_applied():
    assert bytes(conditional(ZLIB, CRC32C).encode(NOISE)) == b"\2" + NOISE + crc32c(NOISE)
    small = zlib.compress(bytes(100), 1)
    assert bytes(conditional(ZLIB, CRC32C).encode(bytes(100))) == b"\3" + small + crc32c(small)


def test_the_header_is_little_endian_and_as_long_as_it_is_said_to_be():
    codecs = [SHUFFLE] * 9
    assert bytes(conditional(*codecs).encode(b"ab")) == b"\xff\x01ab"
    assert bytes(conditional(*codecs[:8]).encode(b"ab")) == b"\xffab"
    assert bytes(conditional(*codecs, header_bits=32).encode(b"ab")) == b"\xff\x01\0\0ab"
    assert bytes(conditional(header_bits=8).encode(b"ab")) == b"\0ab"


@for_each("mask", range(4))
def test_any_choice_that_another_writer_made_is_read(mask):
    data = bytes(range(100))
    stored = zlib.compress(data, 1) if mask & 1 else data
    stored += crc32c(stored) if mask & 2 else b""
    assert bytes(conditional(ZLIB, CRC32C).decode(bytes([mask]) + stored, 100)) == data


@for_each("data", [b"", b"\4abc", b"\x80", b"\xff\xff"])
def test_what_is_no_header_is_an_error(data):
    with pytest.raises(CodecError, match="header"):
        conditional(ZLIB, CRC32C).decode(data, 100)


def test_damage_is_an_error():
    with pytest.raises(CodecError, match="zlib"):
        conditional(ZLIB).decode(b"\1" + NOISE, 100)
    with pytest.raises(ChecksumError):
        conditional(CRC32C).decode(b"\1" + NOISE, 196)
    with pytest.raises(CodecError, match="too many"):
        conditional(ZLIB).decode(b"\0" + NOISE, 100)


def test_what_would_decode_to_more_than_it_may_takes_no_memory():
    bomb = b"\1" + zlib.compress(bytes(2**25))
    with at_most(2**22), pytest.raises(CodecError):
        conditional(ZLIB).decode(bomb, 1000)


def test_its_size_is_known_if_that_of_all_within_is():
    assert conditional(CRC32C, SHUFFLE).encoded_size(10) == 15
    assert conditional(CRC32C, ZLIB).encoded_size(10) is None


def test_codecs_within_get_what_the_data_type_tells():
    codec = ConditionalCodec((BloscCodec(),))
    completed = codec.complete(ChunkSpec((2,), np.dtype("f8"), 0))
    assert completed.codecs == (BloscCodec(typesize=8),)


@for_each(
    "members",
    [
        {},
        {"codecs": None},
        {"codecs": [LITTLE]},
        {"codecs": [ZLIB], "header_bits": 4},
        {"codecs": [ZLIB], "header_bits": 0},
        {"codecs": [ZLIB] * 9, "header_bits": 8},
        {"codecs": [ZLIB], "header_bits": "8"},
        {"codecs": [ZLIB], "decision": "always"},
    ],
)
def test_a_wrong_configuration_is_an_error(members):
    with pytest.raises(MetadataError):
        parse_codec({"name": "conditional", "configuration": members})


def test_many_compressors_within_give_a_bound_that_libraries_take():
    codec = ConditionalCodec((GzipCodec(),) * 60)
    data = b"abc"
    for _ in range(60):
        data = GzipCodec().encode(data)
    assert codec.decode((2**60 - 1).to_bytes(8, "little") + data, 1000) == b"abc"
