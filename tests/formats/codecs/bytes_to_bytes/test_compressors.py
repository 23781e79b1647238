"""gzip, zlib, zstd, blosc, crc32c: bytes to bytes."""

import gzip
import zlib

import numpy as np
import pytest

from tests.contracts.codec import check_bounded, check_bytes_bytes, check_damage, check_json
from tests.covering import for_each
from tests.documents import blosc_frame, zstd_bomb, zstd_frame
from tests.memory import at_most
from zarrdask.errors import CodecError, MetadataError
from zarrdask.formats.codecs.bytes_to_bytes.blosc import BloscCodec
from zarrdask.formats.codecs.bytes_to_bytes.crc32c import Crc32cCodec
from zarrdask.formats.codecs.bytes_to_bytes.gzip import GzipCodec, ZlibCodec
from zarrdask.formats.codecs.bytes_to_bytes.zstd import ZstdCodec
from zarrdask.formats.codecs.registry import parse_codec

V3 = [
    GzipCodec(),
    GzipCodec(0),
    GzipCodec(9),
    ZstdCodec(),
    ZstdCodec(-5),
    ZstdCodec(0),
    ZstdCodec(19, checksum=True),
    BloscCodec(typesize=4),
    BloscCodec("zstd", 3, 2, typesize=8),
    BloscCodec("lz4hc", 9, 0, typesize=1),
    BloscCodec("zlib", 1, 1, 1024, 2),
    BloscCodec("blosclz", 0, 1, typesize=3),
    Crc32cCodec(),
]


ALL = [*V3, ZlibCodec(), ZlibCodec(-1), ZlibCodec(9)]


@for_each("codec", ALL)
def test_values_survive(codec):
    check_bytes_bytes(codec)


@for_each("codec", V3)
def test_metadata_survive(codec):
    check_json(codec, parse_codec)


@for_each("codec", [c for c in ALL if not isinstance(c, Crc32cCodec)])
def test_what_decodes_to_more_than_it_may_is_an_error(codec):
    check_bounded(codec)


@for_each("codec", [c for c in ALL if not isinstance(c, Crc32cCodec)])
def test_damaged_values_are_codec_errors(codec):
    check_damage(codec)


def test_rubbish_after_a_gzip_stream_is_an_error():
    with pytest.raises(CodecError):
        GzipCodec().decode(gzip.compress(b"hello") + b"rubbish", 5)


def test_a_gzip_stream_with_a_flipped_bit_is_an_error():
    data = bytearray(gzip.compress(b"hello" * 20))
    data[-6] ^= 1  # in the checksum
    with pytest.raises(CodecError):
        GzipCodec().decode(bytes(data), 100)


HUGE = 2**25  # what they decode to; they themselves take some kilobytes


BOMBS = {
    "gzip": (GzipCodec(), lambda: gzip.compress(bytes(HUGE), 9)),
    "gzip of many members": (GzipCodec(), lambda: gzip.compress(bytes(2**16), 9) * 2**10),
    "zlib": (ZlibCodec(), lambda: zlib.compress(bytes(HUGE), 9)),
    "zstd that tells its size": (ZstdCodec(), lambda: zstd_bomb(HUGE, states=HUGE)),
    "zstd without a size": (ZstdCodec(), lambda: zstd_bomb(HUGE)),
    "zstd after a small frame": (
        ZstdCodec(),
        lambda: zstd_frame(b"small") + zstd_bomb(HUGE, states=HUGE),
    ),
    "zstd whose header lies": (ZstdCodec(), lambda: zstd_bomb(HUGE, states=1000)),
    "blosc": (BloscCodec(), lambda: bytes(BloscCodec(typesize=4).encode(bytes(HUGE)))),
    "blosc whose header lies": (BloscCodec(), lambda: blosc_frame(b"x", states=HUGE)),
}


@pytest.fixture(scope="module", params=BOMBS, ids=str)
def bomb(request):
    codec, make = BOMBS[request.param]
    return codec, make()


@pytest.mark.parametrize("room", [False, True])
def test_a_bomb_is_an_error_and_takes_no_memory(bomb, room):
    codec, data = bomb
    assert len(data) < HUGE // 100
    out = np.empty(1000, np.uint8) if room else None
    with at_most(2**24), pytest.raises(CodecError):
        codec.decode(data, 1000, out)


@for_each(
    ("name", "configuration"),
    [
        ("gzip", {"level": 10}),
        ("gzip", {"level": -1}),
        ("gzip", {"level": "5"}),
        ("gzip", {"level": True}),
        ("gzip", {"level": 5, "strategy": 1}),
        ("zstd", {"level": 23}),
        ("zstd", {"level": -131073}),
        ("zstd", {"level": 3, "checksum": "yes"}),
        ("zstd", {"levels": 3}),
        ("crc32c", {"location": "start"}),
        ("blosc", {"cname": "lzo"}),
        ("blosc", {"cname": "lz4", "clevel": 10}),
        ("blosc", {"cname": "lz4", "clevel": 5, "shuffle": 1, "typesize": 4}),
        ("blosc", {"cname": "lz4", "clevel": 5, "shuffle": "both", "typesize": 4}),
        ("blosc", {"cname": "lz4", "clevel": 5, "shuffle": "shuffle"}),
        ("blosc", {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 0}),
        ("blosc", {"cname": "lz4", "clevel": 5, "shuffle": "noshuffle", "blocksize": -1}),
        ("blosc", {"cname": "lz4", "threads": 4}),
    ],
)
def test_a_wrong_configuration_is_an_error_that_names_codec_and_member(name, configuration):
    with pytest.raises(MetadataError) as caught:
        parse_codec({"name": name, "configuration": configuration})
    assert name in caught.value.key
