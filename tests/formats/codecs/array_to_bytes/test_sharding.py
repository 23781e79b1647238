"""``sharding_indexed``: shards written by hand, and what may be wrong with them."""

import numpy as np
import pytest

from tests.contracts.codec import check_array_bytes, check_json, check_value
from tests.covering import for_each
from tests.documents import BIG, CRC32C, LITTLE, shard_index, sharding
from tests.formats.codecs.shards import INNER, VALUES, Watched, bind, read
from tests.memory import at_most
from zarrdask.errors import ChecksumError, CodecError, MetadataError, UnsupportedError
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.registry import parse_codec
from zarrdask.formats.compliance import strictness

GZIP = {"name": "gzip", "configuration": {"level": 1}}


TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}


def test_it_is_a_value_and_has_json():
    codec = parse_codec(sharding((2, 2), index_location="start"))
    check_value(codec)
    check_json(codec, parse_codec)


@for_each("location", ["end", "start"])
@for_each("codecs", [[LITTLE], [BIG, GZIP], [TRANSPOSE, LITTLE, CRC32C]])
@for_each("index_codecs", [[LITTLE, CRC32C], [BIG], [LITTLE, CRC32C, CRC32C]])
def test_shards_survive(location, codecs, index_codecs):
    codec = parse_codec(sharding((2, 2), codecs, index_codecs, index_location=location))
    check_array_bytes(codec, VALUES)
    check_array_bytes(codec, np.where(VALUES > 8, 0, VALUES).astype("u2"))


def test_shards_within_shards_survive():
    inner = sharding((1, 2), [LITTLE, GZIP], index_location="start")
    check_array_bytes(parse_codec(sharding((2, 2), [inner])), VALUES)


def test_chunks_of_the_fill_value_are_left_out_and_marked_empty():
    values = np.where(np.isin(VALUES, [1, 2, 5, 6]), VALUES, 9).astype("u2")
    expected = INNER[0] + shard_index((0, 8), None, None, None)
    shard = bind(fill_value=np.uint16(9))
    assert bytes(shard.encode(values)) == expected
    assert np.array_equal(shard.decode(expected), values)


def test_a_0d_array_can_be_a_shard():
    codec = parse_codec(sharding(()))
    check_array_bytes(codec, np.array(5, "u2"))
    bound = codec.bind(ChunkSpec((), np.dtype("u2"), 0))
    assert bytes(bound.encode(np.array(5, "u2"))) == b"\5\0" + shard_index((0, 2))


def test_ranges_are_asked_for_by_rising_offset_whatever_the_order_of_the_chunks():
    data = b"".join(INNER[::-1]) + shard_index((24, 8), (16, 8), (8, 8), (0, 8))
    value = Watched(data)
    out = np.empty((4, 4), "u2")
    read(bind(), value, (slice(0, 4, 1), slice(0, 4, 1)), out)
    assert np.array_equal(out, VALUES)
    assert value.asked == [(32, 68), (0, 8), (8, 8), (16, 8), (24, 8)]


def test_a_part_of_a_nested_shard_reads_inner_indices_only_where_it_must():
    inner = sharding((1, 2), index_codecs=[LITTLE])
    bound = bind(codecs=[inner])
    value = Watched(bytes(bound.encode(VALUES)))
    out = np.empty((1, 1), "u2")
    read(bound, value, (slice(0, 1, 1), slice(3, 4, 1)), out)
    assert out == VALUES[0, 3]
    # Outer index, the inner index of the second shard (it has 8 + 32 bytes), one chunk.
    assert value.asked == [(160, 68), (48, 32), (40, 4)]


def test_an_update_keeps_the_other_chunks_bytes():
    shard = bind(codecs=[LITTLE, GZIP])
    odd = [gzip_unlike_ours(data) for data in INNER]
    offsets = np.cumsum([0, *map(len, odd)]).tolist()
    entries = [(offsets[n], len(odd[n])) for n in range(4)]
    data = b"".join(odd) + shard_index(*entries)
    changed = shard.update(data, (slice(0, 1, 1), slice(1, 2, 1)), np.array([[99]], "u2"))
    kept = shard.split(changed)
    assert [bytes(kept[i]) for i in [(0, 1), (1, 0), (1, 1)]] == odd[1:]
    expected = VALUES.copy()
    expected[0, 1] = 99
    assert np.array_equal(shard.decode(changed), expected)


def gzip_unlike_ours(data):
    """Return gzip that our encoder would never write: it keeps a time and a name."""
    import gzip
    import io

    out = io.BytesIO()
    with gzip.GzipFile("name", "wb", 9, out, mtime=1) as file:
        file.write(data)
    return out.getvalue()


def test_an_update_to_the_fill_value_drops_the_chunk_and_then_the_shard():
    shard = bind()
    data = bytes(shard.encode(np.where(VALUES < 7, VALUES, 0).astype("u2")))
    smaller = shard.update(data, (slice(0, 2, 1), slice(0, 2, 1)), np.zeros((2, 2), "u2"))
    assert set(shard.split(smaller)) == {(0, 1)}
    assert shard.update(smaller, (slice(0, 4, 1),) * 2, np.zeros((4, 4), "u2")) is None


def test_an_update_of_nothing_makes_a_shard():
    shard = bind()
    data = shard.update(None, (slice(1, 2, 1), slice(0, 4, 1)), VALUES[1:2])
    expected = np.zeros((4, 4), "u2")
    expected[1] = VALUES[1]
    assert np.array_equal(shard.decode(data), expected)


@pytest.mark.parametrize("entry", [(0, 0), (0, 7), (0, 9)])
def test_an_inner_chunk_of_another_size_is_an_error_that_names_it(entry):
    with pytest.raises(CodecError, match=r"inner chunk \(0, 0\)"):
        bind().decode(b"".join(INNER) + shard_index(entry, (8, 8), (16, 8), (24, 8)))


def test_a_flipped_bit_in_an_inner_chunk_is_a_checksum_error_that_names_it():
    shard = bind(codecs=[LITTLE, CRC32C])
    data = bytearray(shard.encode(VALUES))
    data[13] ^= 1
    with pytest.raises(ChecksumError, match=r"inner chunk \(0, 1\)"):
        shard.decode(bytes(data))


def test_a_nested_shard_that_claims_to_be_huge_takes_no_memory():
    inner = sharding((1, 1), index_codecs=[LITTLE])
    data = b"x" * 64 + shard_index((0, 2**40), None, None, None)
    with at_most(2**22), pytest.raises(CodecError):
        bind(codecs=[inner]).decode(data)


@for_each(
    "configuration",
    [
        {"chunk_shape": (3, 2)},
        {"chunk_shape": (8, 2)},
        {"chunk_shape": (2,)},
        {"chunk_shape": (2, 2, 1)},
        {"index_codecs": [LITTLE, GZIP]},
        {"index_codecs": [CRC32C]},
        {"index_codecs": [{"name": "bytes"}]},
        {"codecs": []},
        {"codecs": [GZIP]},
        {"codecs": [LITTLE, LITTLE]},
        {"codecs": [LITTLE, TRANSPOSE]},
        {"codecs": [{"name": "bytes"}]},
        {"codecs": [sharding((2, 1)), sharding((1, 1))]},
        {"codecs": [sharding((2, 3))]},
    ],
)
def test_shards_that_cannot_work_are_an_error_when_bound(configuration):
    with pytest.raises(MetadataError):
        bind(**configuration)


@for_each(
    "configuration",
    [
        {"chunk_shape": (0, 2)},
        {"chunk_shape": (-2, 2)},
        {"chunk_shape": (2.0, 2)},
        {"chunk_shape": (True, 2)},
        {"index_location": "middle"},
        {"index_location": None},
        {"index": 1},
    ],
)
def test_a_wrong_configuration_is_an_error(configuration):
    with pytest.raises(MetadataError, match="sharding_indexed"):
        bind(**configuration)


@pytest.mark.parametrize("member", ["chunk_shape", "codecs", "index_codecs"])
def test_a_missing_member_is_named(member):
    document = sharding((2, 2))
    del document["configuration"][member]
    with strictness(True), pytest.raises(MetadataError, match=member):
        parse_codec(document)


def test_an_unknown_inner_codec_is_named():
    with pytest.raises(UnsupportedError, match="nosuch"):
        parse_codec(sharding((2, 2), [LITTLE, {"name": "nosuch"}]))
