"""What numcodecs would decompress to any size."""

import bz2
import lzma

import numpy as np
import pytest
import zfpy

from tests.covering import for_each
from tests.memory import at_most
from zarrdask.errors import CodecError
from zarrdask.formats.codecs.numcodecs.adapter import BufferCodec

BOMB = bytes(2**25)
CODECS = {
    "bz2": (BufferCodec('{"id": "bz2"}'), bz2.compress),
    "lzma": (BufferCodec('{"id": "lzma", "format": 1}'), lzma.compress),
    "lz4": (BufferCodec('{"id": "lz4"}'), None),
}


@pytest.mark.parametrize("name", CODECS)
def test_a_value_that_is_too_long_is_not_decompressed(name):
    codec, compress = CODECS[name]
    data = codec.encode(BOMB) if compress is None else compress(BOMB)
    expected = "too many bytes.*at most 1000"
    with at_most(2**24), pytest.raises(CodecError, match=expected):  # LZMA has a dictionary
        codec.decode(data, 1000)


@for_each("name", CODECS)
@for_each("size", [1, 999, 1000])
def test_up_to_the_limit(name, size):
    codec, _ = CODECS[name]
    assert bytes(codec.decode(codec.encode(BOMB[:size]), 1000)) == BOMB[:size]


@pytest.mark.parametrize("name", ["bz2", "lzma"])
class TestStreams:
    def test_several(self, name):
        codec, compress = CODECS[name]
        assert codec.decode(compress(b"ab") + compress(b"") + compress(b"c"), 3) == b"abc"
        with pytest.raises(CodecError, match="too many"):
            codec.decode(compress(b"ab") + compress(b"c"), 2)

    def test_cut_off(self, name):
        codec, compress = CODECS[name]
        for data in (b"", compress(b"ab")[:-1], compress(b"ab")[:1]):
            with pytest.raises(CodecError, match="ends early"):
                codec.decode(data, 2)

    def test_something_after_it(self, name):
        codec, compress = CODECS[name]
        expected = "the value can't be decoded|the value ends early"
        with pytest.raises(CodecError, match=expected):
            codec.decode(compress(b"ab") + b"something", 2)


def test_a_size_without_a_block():
    codec, _ = CODECS["lz4"]
    for data in (b"", b"\x01", b"\x05\0\0\0", b"\xff\xff\xff\x7f"):
        with pytest.raises(CodecError):
            codec.decode(data, 5)


def test_a_zfp_stream_that_states_more_than_the_limit_is_not_decoded():
    codec, values = BufferCodec('{"id": "zfpy"}'), np.arange(100.0).reshape(10, 10)
    data = zfpy.compress_numpy(values)
    assert bytes(codec.decode(data, values.nbytes)) == values.tobytes()
    with pytest.raises(CodecError, match=r"too many bytes.*at most 799"):
        codec.decode(data, values.nbytes - 1)
