"""Blosc: frames, element sizes and shuffles."""

import pytest

from tests.documents import blosc_frame
from zarrdask.errors import CodecError, MetadataError
from zarrdask.formats.codecs.bytes_to_bytes.blosc import BloscCodec
from zarrdask.formats.codecs.registry import parse_codec


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


@pytest.mark.parametrize(
    ("member", "value"),
    [("cname", "lzma"), ("clevel", 10), ("shuffle", 3), ("blocksize", -1), ("typesize", 0)],
)
def test_a_member_out_of_range_is_an_error_that_names_it(member, value):
    with pytest.raises(MetadataError, match=f"blosc.{member}"):
        BloscCodec(**{member: value})
