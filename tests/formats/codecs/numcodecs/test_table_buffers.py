"""numcodecs' bytes -> bytes codecs in v3."""

import bz2
import lzma
import zlib

import numcodecs
import numpy as np
import pytest

from tests.contracts.codec import check_bounded, check_bytes_bytes, check_json
from tests.covering import for_each
from zarrdask.errors import ChecksumError, CodecError, MetadataError, UnsupportedError
from zarrdask.formats.codecs.bytes_to_bytes.blosc import BloscCodec
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.numcodecs.adapter import BufferCodec
from zarrdask.formats.codecs.registry import parse_codec
from zarrdask.formats.metadata.v2_codecs import render_codec

CHECKSUMS = ["adler32", "crc32", "crc32c", "fletcher32", "jenkins_lookup3"]
COMPRESSORS = ["blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd"]
#: What is given, and what is written: later members of numcodecs only if they say something.
CONFIGURATIONS = [
    ("adler32", {}, {}),
    ("adler32", {"location": "end"}, {"location": "end"}),
    ("blosc", {}, {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}),
    ("blosc", {"shuffle": -1}, {"cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0}),
    ("bz2", {}, {"level": 1}),
    ("crc32", {"location": "start"}, {}),
    ("crc32c", {}, {}),
    ("crc32c", {"location": "start"}, {"location": "start"}),
    ("fletcher32", {}, {}),
    ("gzip", {"level": 9}, {"level": 9}),
    ("jenkins_lookup3", {"initval": 0, "prefix": None}, {}),
    ("jenkins_lookup3", {"initval": 5}, {"initval": 5}),
    ("lz4", {"acceleration": 7}, {"acceleration": 7}),
    ("lzma", {"preset": 3, "filters": None}, {"check": -1, "format": 1, "preset": 3}),
    ("shuffle", {"elementsize": 4}, {"elementsize": 4}),
    ("zlib", {}, {"level": 1}),
    ("zstd", {"level": 3}, {"level": 3, "checksum": False}),
]


def make(name, **members):
    return parse_codec({"name": f"numcodecs.{name}", "configuration": members})


@for_each(("name", "given", "written"), CONFIGURATIONS)
def test_configurations_come_back(name, given, written):
    codec = make(name, **given)
    assert codec.to_json().get("configuration", {}) == written
    check_json(codec, parse_codec)


@for_each("name", [*CHECKSUMS, *COMPRESSORS])
def test_values_survive(name):
    check_bytes_bytes(make(name))


def test_shuffled_values_survive():
    check_bytes_bytes(make("shuffle", elementsize=1))
    codec = make("shuffle", elementsize=2)
    assert bytes(codec.encode(b"\1\2\3\4")) == b"\1\3\2\4"
    assert bytes(codec.decode(b"\1\3\2\4", 4)) == b"\1\2\3\4"
    with pytest.raises(CodecError, match="can't be encoded"):
        codec.encode(b"\1\2\3")


@for_each("name", COMPRESSORS)
def test_what_decodes_to_more_than_it_may_is_an_error(name):
    check_bounded(make(name))


@for_each("name", [*CHECKSUMS, *COMPRESSORS])
def test_they_are_what_numcodecs_writes(name):
    codec, theirs = make(name), numcodecs.get_codec({"id": name})
    data = bytes(range(200))
    assert bytes(codec.decode(bytes(theirs.encode(data)), 200)) == data
    assert bytes(theirs.decode(bytes(codec.encode(data)))) == data


@for_each("name", CHECKSUMS)
def test_a_checksum_that_does_not_match_is_an_error_and_its_size_is_known(name):
    codec = make(name)
    data = bytearray(codec.encode(b"12345678"))
    assert codec.encoded_size(8) == len(data) == 12
    data[5] ^= 1
    with pytest.raises(ChecksumError, match="can't be decoded"):
        codec.decode(bytes(data), 8)


@pytest.mark.parametrize(
    ("name", "decompress"),
    [("bz2", bz2.decompress), ("lzma", lzma.decompress), ("zlib", zlib.decompress)],
)
def test_streams_are_the_usual_ones(name, decompress):
    assert decompress(bytes(make(name).encode(b"hello"))) == b"hello"


def test_an_element_size_that_was_left_open_is_the_data_types():
    spec = ChunkSpec((2,), np.dtype("f8"), 0)
    assert make("shuffle").complete(spec) == make("shuffle", elementsize=8)
    assert make("shuffle", elementsize=2).complete(spec) == make("shuffle", elementsize=2)


def test_blosc_can_leave_the_shuffle_to_the_data_type():
    found = make("blosc", shuffle=-1).complete(ChunkSpec((2,), np.dtype("f8"), 0))
    assert isinstance(found, BloscCodec)
    assert (found.shuffle, found.typesize) == (1, 8)
    assert bytes(make("blosc", shuffle=-1).encode(bytes(64)))


@for_each("name", [*CHECKSUMS, *COMPRESSORS, "shuffle"])
def test_v2_has_them_under_their_id(name):
    codec = make(name)
    assert render_codec(codec)["id"] == name


def test_without_configuration_a_codec_has_the_default_one():
    codec = parse_codec("numcodecs.bz2")
    assert codec == make("bz2", level=1)
    assert isinstance(codec, BufferCodec)


@for_each(
    ("name", "members"),
    [
        ("adler32", {"location": "middle"}),
        ("blosc", {"shuffle": "shuffle"}),
        ("blosc", {"cname": "lzma"}),
        ("bz2", {"level": 0}),
        ("bz2", {"level": "1"}),
        ("bz2", {"id": "bz2"}),
        ("crc32", {"start": True}),
        ("fletcher32", {"level": 1}),
        ("gzip", {"level": 10}),
        ("jenkins_lookup3", {"prefix": "abc"}),
        ("jenkins_lookup3", {"initval": 2**32}),
        ("lz4", {"acceleration": 1.5}),
        ("lzma", {"format": 9}),
        ("shuffle", {"elementsize": 0}),
        ("zlib", {"level": True}),
        ("zstd", {"level": "3"}),
        ("zstd", {"level": 1.5}),
    ],
)
def test_a_wrong_configuration_is_an_error(name, members):
    with pytest.raises(MetadataError, match=name):
        make(name, **members)


@pytest.mark.parametrize(("level", "limit"), [(23, 22), (10**6, 22), (-(10**6), -131072)])
def test_levels_of_zstd_beyond_the_limits_are_the_limits(level, limit):
    # numcodecs takes them, and writes with the limit.
    codec = make("zstd", level=level)
    assert codec.to_json()["configuration"]["level"] == limit
    check_bytes_bytes(codec)


@for_each("name", ["pickle", "json2", "categorize", "vlen-array", "base64"])
def test_others_are_not_known(name):
    with pytest.raises(UnsupportedError, match=name):
        make(name)
