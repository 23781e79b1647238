"""The index of a shard: where it stands, and what it may say."""

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import BIG, LITTLE, crc32c, shard_index
from tests.formats.codecs.shards import INNER, VALUES, Watched, bind, read
from zarrdask.errors import ChecksumError, CodecError, UnsupportedError


def test_a_shard_is_its_chunks_in_c_order_and_the_index_at_the_end():
    expected = b"".join(INNER) + shard_index((0, 8), (8, 8), (16, 8), (24, 8))
    assert bytes(bind().encode(VALUES)) == expected
    assert len(expected) == 100  # S-26


def test_an_index_at_the_start_is_counted_in_the_offsets():
    expected = shard_index((68, 8), (76, 8), (84, 8), (92, 8)) + b"".join(INNER)
    assert bytes(bind(index_location="start").encode(VALUES)) == expected


def test_chunks_may_stand_in_any_order_with_gaps_and_be_shared():
    data = b"gap!" + INNER[3] + INNER[1] + b"rubbish" + INNER[0]
    value = data + shard_index((27, 8), (12, 8), (27, 8), (4, 8))
    expected = VALUES.copy()
    expected[2:, :2] = VALUES[:2, :2]
    assert np.array_equal(bind().decode(value), expected)


def test_a_big_endian_index_without_checksum_is_read():
    index = np.array([0, 8, 8, 8, 16, 8, 24, 8], ">u8").tobytes()
    assert np.array_equal(bind(index_codecs=[BIG]).decode(b"".join(INNER) + index), VALUES)


def test_a_transposed_index_is_read():
    # Of shape (2, 2, 2): the first two axes changed, so chunk (1, 0) stands before (0, 1).
    order = {"name": "transpose", "configuration": {"order": [1, 0, 2]}}
    index = np.array([0, 8, 16, 8, 8, 8, 24, 8], "<u8").tobytes()
    found = bind(index_codecs=[order, LITTLE]).decode(b"".join(INNER) + index)
    assert np.array_equal(found, VALUES)


def test_an_index_whose_every_chunk_is_empty_is_read_as_fill():
    found = bind(fill_value=np.uint16(3)).decode(shard_index(None, None, None, None))
    assert np.array_equal(found, np.full((4, 4), 3))


def test_a_part_reads_the_index_and_only_the_chunks_it_meets():
    value = Watched(bytes(bind().encode(VALUES)))
    out = np.empty((1, 4), "u2")
    read(bind(), value, (slice(3, 4, 1), slice(0, 4, 1)), out)
    assert np.array_equal(out, VALUES[3:])
    assert value.asked == [(32, 68), (16, 8), (24, 8)]


def good():
    return bytes(bind().encode(VALUES))


@pytest.mark.parametrize("size", [0, 1, 67])
def test_a_shard_shorter_than_its_index_is_an_error_that_tells_both_sizes(size):
    with pytest.raises(CodecError) as caught:
        bind().decode(good()[:size])
    assert (caught.value.found, caught.value.expected) == (f"{size} bytes", "68 bytes")


@pytest.mark.parametrize("location", ["end", "start"])
def test_a_flipped_bit_in_the_index_is_a_checksum_error(location):
    shard = bind(index_location=location)
    data = bytearray(shard.encode(VALUES))
    data[40 if location == "end" else 8] ^= 1
    with pytest.raises(ChecksumError, match="shard index"):
        shard.decode(bytes(data))


@for_each(
    "entry",
    [(100, 8), (93, 8), (24, 80), (0, 10**6), (2**40, 8), (0, 2**50), (2**62, 2**62), (2**63, 8)],
)
@for_each("entries", ["first", "last"])
def test_an_index_that_points_outside_is_an_error_that_names_the_chunk(entry, entries):
    inside = [(0, 8), (8, 8), (16, 8)]
    index = shard_index(entry, *inside) if entries == "first" else shard_index(*inside, entry)
    with pytest.raises(CodecError) as caught:
        bind().decode(b"".join(INNER) + index)
    assert "inner chunk" in str(caught.value) or "outside" in str(caught.value)
    with pytest.raises(CodecError):
        bind().split(b"".join(INNER) + index)


@pytest.mark.parametrize("entry", [(2**64 - 1, 8), (0, 2**64 - 1)])
def test_an_entry_that_is_empty_by_half_is_an_error(entry):
    with pytest.raises(CodecError):
        bind().decode(b"".join(INNER) + shard_index(entry, (8, 8), (16, 8), (24, 8)))


def test_the_checksum_of_the_index_is_that_of_its_bytes():
    data = good()
    assert data[-4:] == crc32c(data[32:-4])


def test_more_chunks_than_an_index_can_have():
    with pytest.raises(UnsupportedError, match="inner chunks"):
        zarrdask.create_array({}, shape=2**41, dtype="u1", chunks=1, shards=2**40)
