"""Gzip and zlib: members, limits and damage."""

import gzip
import zlib

import pytest

from zarrdask.errors import CodecError, MetadataError
from zarrdask.formats.codecs.bytes_to_bytes.gzip import GzipCodec, ZlibCodec
from zarrdask.formats.codecs.registry import parse_codec


def test_gzip_reads_what_gzip_wrote():
    assert GzipCodec().decode(gzip.compress(b"hello"), 5) == b"hello"


def test_gzip_writes_what_gzip_reads():
    assert gzip.decompress(GzipCodec().encode(b"hello" * 99)) == b"hello" * 99


def test_gzip_members_are_joined():
    data = gzip.compress(b"hel") + gzip.compress(b"") + gzip.compress(b"lo")
    assert GzipCodec().decode(data, 5) == b"hello"
    assert GzipCodec().decode(data + bytes(8), 5) == b"hello"


def test_gzip_members_together_keep_the_limit():
    with pytest.raises(CodecError):
        GzipCodec().decode(gzip.compress(b"hel") + gzip.compress(b"lo"), 4)


def test_zlib_is_python_zlib():
    assert ZlibCodec().decode(zlib.compress(b"hello"), 5) == b"hello"
    assert zlib.decompress(ZlibCodec().encode(b"hello")) == b"hello"


@pytest.mark.parametrize(
    ("name", "level"), [("gzip", -1), ("gzip", 10), ("numcodecs.gzip", -2), ("numcodecs.zlib", 10)]
)
def test_levels_beyond_those_of_zlib_are_an_error(name, level):
    with pytest.raises(MetadataError, match=f"{name}.level"):
        parse_codec({"name": name, "configuration": {"level": level}})
