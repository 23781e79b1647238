"""Values of several members, frames or streams: decoded in time linear in their length."""

import bz2
import gzip
import lzma

import pytest

from tests.covering import for_each
from zarrdask.errors import CodecError, TruncatedError
from zarrdask.formats.codecs import streams
from zarrdask.formats.codecs.bytes_to_bytes import gzip as module
from zarrdask.formats.codecs.bytes_to_bytes import zstd as zstandard
from zarrdask.formats.codecs.bytes_to_bytes.gzip import GzipCodec
from zarrdask.formats.codecs.bytes_to_bytes.zstd import ZstdCodec
from zarrdask.formats.codecs.numcodecs.adapter import BufferCodec
from zarrdask.formats.codecs.streams import decompress_streams

WORDS = [b"", b"ab", b"c" * 100_000, b"", bytes(range(256)) * 100, b"d"]
WHOLE = b"".join(WORDS)
MANY = 3000


def zstd(data):
    return bytes(ZstdCodec().encode(data))


def unsized(content=b""):
    """Return a frame that does not say how much it holds (RFC 8878, 3.1.1): one raw block."""
    header = (len(content) << 3 | 1).to_bytes(3, "little")
    return b"\x28\xb5\x2f\xfd\x00\x58" + header + content


CASES = {
    "gzip": (GzipCodec(), gzip.compress),
    "bz2": (BufferCodec('{"id": "bz2"}'), bz2.compress),
    "lzma": (BufferCodec('{"id": "lzma"}'), lzma.compress),
    "zstd": (ZstdCodec(), zstd),
}


@for_each("name", CASES)
def test_members_are_decoded_one_after_another(name):
    codec, compress = CASES[name]
    data = b"".join(map(compress, WORDS))
    for value in (data, memoryview(data), bytearray(data)):
        assert codec.decode(value, len(WHOLE)) == WHOLE
    assert codec.decode(data, 10 * len(WHOLE)) == WHOLE


@for_each("name", CASES)
@for_each("at", range(1, len(WORDS)))
def test_a_member_that_is_cut_off_is_an_error(name, at):
    codec, compress = CASES[name]
    data = b"".join(map(compress, WORDS[:at])) + compress(WORDS[at])[:-1]
    with pytest.raises(TruncatedError):
        codec.decode(data, len(WHOLE))


@for_each("name", CASES)
def test_members_that_hold_too_much_together_are_an_error(name):
    codec, compress = CASES[name]
    data = b"".join(map(compress, WORDS))
    with pytest.raises(CodecError, match="too many bytes"):
        codec.decode(data, len(WHOLE) - 1)
    with pytest.raises(CodecError):
        codec.decode(compress(b"ab") + b"no member", 10)


def test_zeros_may_follow_the_members_of_gzip():
    data = gzip.compress(b"ab") + gzip.compress(b"")
    for padding in (0, 1, 10_000):
        assert GzipCodec().decode(data + bytes(padding), 2) == b"ab"


@pytest.mark.parametrize("frame", [zstd(b""), unsized(), unsized(b"x")])
def test_frames_of_zstandard_may_be_empty_or_leave_their_size_open(frame):
    content = frame[9:] if frame.endswith(b"x") else b""
    assert ZstdCodec().decode(zstd(b"ab") + frame * 50, 60) == b"ab" + content * 50


class Counting:
    """A decompressor that counts what it is handed, as that is what it may copy."""

    handed = 0

    def __init__(self, inner):
        self.inner = inner

    def decompress(self, data, most):
        Counting.handed += len(data)
        return self.inner.decompress(data, most)

    def __getattr__(self, name):
        return getattr(self.inner, name)


def test_many_members_of_gzip_are_handed_over_a_few_bytes_at_a_time(monkeypatch):
    class Library:
        @staticmethod
        def decompressobj(wbits):
            return Counting(inflate.decompressobj(wbits))

    inflate = module.inflate
    monkeypatch.setattr(module, "inflate", Library)
    monkeypatch.setattr(Counting, "handed", 0)
    data = gzip.compress(b"") * MANY
    assert GzipCodec().decode(data, 10) == b""
    assert Counting.handed <= 2 * len(data) + MANY * 2**12


@pytest.mark.parametrize(
    ("compress", "make"),
    [(bz2.compress, bz2.BZ2Decompressor), (lzma.compress, lzma.LZMADecompressor)],
)
def test_many_streams_are_handed_over_a_few_bytes_at_a_time(monkeypatch, compress, make):
    monkeypatch.setattr(Counting, "handed", 0)
    data = compress(b"") * MANY
    assert decompress_streams(lambda: Counting(make()), data, 10) == b""
    assert Counting.handed <= 2 * len(data) + MANY * 2**12


def test_what_is_decoded_is_not_copied_for_each_stream(monkeypatch):
    copies = []
    monkeypatch.setattr(
        streams, "bytearray", lambda value: copies.append(value) or bytearray(value), raising=False
    )
    data = gzip.compress(b"a" * 1000) + gzip.compress(b"") * MANY
    assert GzipCodec().decode(data, 1000) == b"a" * 1000
    assert len(copies) == 1


def test_many_frames_of_zstandard_do_not_ask_for_the_whole_chunk_each(monkeypatch):
    sizes = []
    empty = zstandard.np.empty
    monkeypatch.setattr(
        zstandard.np, "empty", lambda size, *a: sizes.append(size) or empty(size, *a)
    )
    assert ZstdCodec().decode(unsized() * 100, 2**28) == b""
    assert not sizes
