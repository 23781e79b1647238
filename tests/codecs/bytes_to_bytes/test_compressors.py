"""gzip, zlib, zstd, blosc, crc32c: bytes to bytes."""

import gzip
import zlib

import numcodecs.zstd
import numpy as np
import pytest

from tests.contracts.codec import check_bounded, check_bytes_bytes, check_damage, check_json
from tests.covering import for_each
from tests.documents import blosc_frame, zstd_bomb, zstd_frame
from tests.memory import at_most
from zarrdask.codecs.bytes_to_bytes.blosc import BloscCodec
from zarrdask.codecs.bytes_to_bytes.crc32c import Crc32cCodec
from zarrdask.codecs.bytes_to_bytes.gzip import GzipCodec, ZlibCodec
from zarrdask.codecs.bytes_to_bytes.zstd import ZstdCodec
from zarrdask.codecs.registry import parse_codec
from zarrdask.errors import ChecksumError, CodecError, MetadataError

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


# ---- values that others made


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


def test_rubbish_after_a_gzip_stream_is_an_error():
    with pytest.raises(CodecError):
        GzipCodec().decode(gzip.compress(b"hello") + b"rubbish", 5)


def test_a_gzip_stream_with_a_flipped_bit_is_an_error():
    data = bytearray(gzip.compress(b"hello" * 20))
    data[-6] ^= 1  # in the checksum
    with pytest.raises(CodecError):
        GzipCodec().decode(bytes(data), 100)


def test_zlib_is_python_zlib():
    assert ZlibCodec().decode(zlib.compress(b"hello"), 5) == b"hello"
    assert zlib.decompress(ZlibCodec().encode(b"hello")) == b"hello"


@pytest.mark.parametrize("sized", [True, False])
def test_zstd_frames_written_by_hand(sized):
    frame = zstd_frame(b"hello", sized=sized)
    assert bytes(ZstdCodec().decode(frame, 5)) == b"hello"
    assert bytes(ZstdCodec().decode(frame, 500)) == b"hello"
    assert bytes(ZstdCodec().decode(frame, 5, np.zeros(5, np.uint8))) == b"hello"


@for_each("sized", [True, False])
@for_each("room", [False, True])
def test_zstd_frames_that_hold_less_are_no_more_than_they_hold(sized, room):
    # With a place to decode to as without: what is not written to must not pass for data.
    out = np.full(8, 7, np.uint8) if room else None
    try:
        found = bytes(ZstdCodec().decode(zstd_frame(b"hello", sized=sized), 8, out))
    except CodecError:
        return
    assert found == b"hello"


@pytest.mark.parametrize("sized", [True, False])
def test_zstd_frames_are_joined(sized):
    data = zstd_frame(b"hel", sized=sized) + zstd_frame(b"lo", sized=sized)
    assert bytes(ZstdCodec().decode(data, 5)) == b"hello"
    assert bytes(ZstdCodec().decode(data, 5, np.zeros(5, np.uint8))) == b"hello"


def test_a_zstd_checksum_is_written_and_checked():
    data = bytearray(ZstdCodec(3, checksum=True).encode(b"hello" * 20))
    assert len(data) == len(ZstdCodec(3).encode(b"hello" * 20)) + 4
    data[-1] ^= 1
    with pytest.raises(CodecError):
        ZstdCodec().decode(bytes(data), 100)


def test_zstd_is_numcodecs_zstd():
    assert bytes(ZstdCodec().decode(numcodecs.zstd.compress(b"hello", 1), 5)) == b"hello"


def test_blosc_frames_written_by_hand():
    assert bytes(BloscCodec().decode(blosc_frame(b"hello"), 5)) == b"hello"


@pytest.mark.parametrize("extra", [b"x", bytes(16)])
def test_a_blosc_frame_with_something_after_it_is_an_error(extra):
    with pytest.raises(CodecError, match="bytes"):
        BloscCodec().decode(blosc_frame(b"hello") + extra, 50)


def test_a_blosc_frame_that_states_more_than_it_holds_is_an_error():
    with pytest.raises(CodecError):
        BloscCodec().decode(blosc_frame(b"hello", states=1000), 1000)


@pytest.mark.parametrize("states", [2**31 - 1, 2**31, 2**32 - 1])
def test_a_blosc_frame_that_states_an_impossible_size_is_an_error(states):
    # The limit is that of a chunk whose size isn't known, such as a shard compressed as a whole.
    with pytest.raises(CodecError):
        BloscCodec().decode(blosc_frame(b"hello", states=states), 2**40)


def test_blosc_records_the_type_size_and_shuffle_in_its_frame():
    frame = bytes(BloscCodec("lz4", 5, 1, typesize=8).encode(bytes(8000)))
    assert frame[3] == 8
    assert frame[2] & 1
    assert bytes(BloscCodec("lz4", 5, 2, typesize=8).encode(bytes(8000)))[2] & 4


def test_blosc_takes_the_type_size_from_the_data_unless_it_is_given():
    assert BloscCodec().bind(4).typesize == 4
    assert BloscCodec(typesize=2).bind(4).typesize == 2
    assert (BloscCodec(shuffle=-1).bind(1).shuffle, BloscCodec(shuffle=-1).bind(4).shuffle) == (
        2,
        1,
    )


def test_elements_larger_than_blosc_knows_survive():
    codec = BloscCodec().bind(1000)
    assert bytes(codec.decode(codec.encode(bytes(4000)), 4000)) == bytes(4000)


@for_each(
    ("data", "checksum"),
    # RFC 3720, B.4, and the usual check value.
    [
        (bytes(32), "aa36918a"),
        (b"\xff" * 32, "43aba862"),
        (bytes(range(32)), "4e79dd46"),
        (b"123456789", "839206e3"),
        (b"", "00000000"),
    ],
)
def test_crc32c_is_that_of_the_rfc(data, checksum):
    encoded = bytes(Crc32cCodec().encode(data))
    assert encoded == data + bytes.fromhex(checksum)
    assert bytes(Crc32cCodec().decode(encoded, len(data))) == data


@for_each("bit", range(0, 104, 7))
def test_crc32c_sees_any_flipped_bit(bit):
    data = bytearray(Crc32cCodec().encode(b"123456789"))
    data[bit // 8] ^= 1 << bit % 8
    with pytest.raises(ChecksumError) as caught:
        Crc32cCodec().decode(bytes(data), 9)
    assert caught.value.found.startswith("0x")
    assert caught.value.expected.startswith("0x")


@for_each("data", [b"", b"abc", b"abcd", b"\xff" * 64])
def test_crc32c_sees_what_is_too_short_or_rubbish(data):
    with pytest.raises(ChecksumError):
        Crc32cCodec().decode(data, 100)


# ---- bombs

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


# ---- configurations


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


@pytest.mark.parametrize(
    "configuration",
    [
        {"cname": "lz4", "clevel": 1, "shuffle": "noshuffle", "blocksize": 0},
        {"cname": "zstd", "clevel": 1, "shuffle": "bitshuffle", "blocksize": 0, "typesize": 4},
    ],
)
def test_blosc_needs_no_type_size_without_a_shuffle(configuration):
    found = parse_codec({"name": "blosc", "configuration": configuration})
    assert configuration.items() <= found.to_json()["configuration"].items()


def test_a_zstd_frame_that_claims_more_than_its_blocks_can_hold_takes_no_memory():
    # Of elements of any length the metadata give no bound.
    block = (1 | 5 << 3).to_bytes(3, "little") + b"hello"
    frame = b"\x28\xb5\x2f\xfd\xe0" + (2**39).to_bytes(8, "little") + block
    with pytest.raises(CodecError, match="too many bytes"):
        ZstdCodec().decode(frame, 2**40)
