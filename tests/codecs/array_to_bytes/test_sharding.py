"""``sharding_indexed``: shards written by hand, and what may be wrong with them."""

import pickle
import struct

import dask
import numpy as np
import pytest

import zarrdask
from tests.contracts.codec import check_array_bytes, check_json, check_value
from tests.covering import for_each
from tests.documents import BIG, CRC32C, LITTLE, crc32c, shard_index, sharding
from tests.memory import at_most
from zarrdask.codecs.base import ChunkSpec
from zarrdask.codecs.byte_source import HeldValue
from zarrdask.codecs.registry import parse_codec
from zarrdask.codecs.shard_order import shard_order
from zarrdask.compliance import strictness
from zarrdask.errors import ChecksumError, CodecError, MetadataError, UnsupportedError

GZIP = {"name": "gzip", "configuration": {"level": 1}}
TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}


def bind(shape=(4, 4), dtype="u2", fill_value=0, **configuration):
    configuration.setdefault("chunk_shape", (2, 2))
    codec = parse_codec(sharding(**configuration))
    return codec.bind(ChunkSpec(shape, np.dtype(dtype), fill_value))


VALUES = np.arange(1, 17, dtype="u2").reshape(4, 4)
#: The inner chunks of VALUES, in C order, little-endian.
INNER = [
    struct.pack("<4H", *n) for n in ((1, 2, 5, 6), (3, 4, 7, 8), (9, 10, 13, 14), (11, 12, 15, 16))
]


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


def test_a_shard_is_its_chunks_in_c_order_and_the_index_at_the_end():
    expected = b"".join(INNER) + shard_index((0, 8), (8, 8), (16, 8), (24, 8))
    assert bytes(bind().encode(VALUES)) == expected
    assert len(expected) == 100  # S-26


ORDERS = {
    "c": [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)],
    "f": [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (0, 2), (1, 2), (2, 2)],
    "morton": [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1), (0, 2), (1, 2), (2, 2)],
}


@for_each("location", ["end", "start"])
@for_each(("order", "indices"), ORDERS.items())
def test_the_chunks_of_a_shard_are_written_in_the_order_of_the_setting(order, indices, location):
    values = np.arange(1, 10, dtype="u1").reshape(3, 3)
    shard = bind((3, 3), "u1", chunk_shape=(1, 1), index_location=location)
    chunks = bytes(values[index] for index in indices)
    start = 9 * 16 + 4 if location == "start" else 0
    entries = [(start + indices.index(index), 1) for index in np.ndindex(3, 3)]
    parts = [chunks, shard_index(*entries)]
    expected = b"".join(reversed(parts) if location == "start" else parts)
    corner = slice(0, 1, 1), slice(0, 1, 1)
    with dask.config.set({"zarrdask.shard-order": order}):
        assert bytes(shard.encode(values)) == expected
        assert shard.update(expected, corner, values[:1, :1]) == expected
    assert np.array_equal(shard.decode(expected), values)


def test_the_order_of_chunks_is_no_part_of_the_codec_s_value_and_metadata():
    with shard_order("morton"):
        codec = parse_codec(sharding((2, 2)))
    other = parse_codec(sharding((2, 2)))
    assert (pickle.loads(pickle.dumps(codec)).order, other.order) == ("morton", None)
    assert codec == other
    assert codec.to_json() == other.to_json()
    check_value(codec)


def test_an_order_that_does_not_exist_is_an_error_before_anything_is_written():
    store = {}
    z = zarrdask.create_array(store, shape=(4, 4), dtype="u1", chunks=1, shards=4)
    with (
        dask.config.set({"zarrdask.shard-order": "hilbert"}),
        pytest.raises(MetadataError, match=r"zarrdask\.shard-order: .*'hilbert'.*'morton'"),
    ):
        z[...] = 1
    assert [*store] == ["zarr.json"]


def test_an_index_at_the_start_is_counted_in_the_offsets():
    expected = shard_index((68, 8), (76, 8), (84, 8), (92, 8)) + b"".join(INNER)
    assert bytes(bind(index_location="start").encode(VALUES)) == expected


def test_chunks_of_the_fill_value_are_left_out_and_marked_empty():
    values = np.where(np.isin(VALUES, [1, 2, 5, 6]), VALUES, 9).astype("u2")
    expected = INNER[0] + shard_index((0, 8), None, None, None)
    shard = bind(fill_value=np.uint16(9))
    assert bytes(shard.encode(values)) == expected
    assert np.array_equal(shard.decode(expected), values)


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


def test_a_0d_array_can_be_a_shard():
    codec = parse_codec(sharding(()))
    check_array_bytes(codec, np.array(5, "u2"))
    bound = codec.bind(ChunkSpec((), np.dtype("u2"), 0))
    assert bytes(bound.encode(np.array(5, "u2"))) == b"\5\0" + shard_index((0, 2))


# ---- reading parts


class Watched:
    """A value that tells which parts of it were read."""

    def __init__(self, data):
        self.held = HeldValue(data)
        self.size = len(data)
        self.asked = []

    def part(self, start, length):
        self.asked.append((start if start >= 0 else self.size + start, length))
        return self.held.part(start, length)

    def parts(self, ranges):
        self.asked += ranges
        return self.held.parts(ranges)


def read(shard, value, request, out):
    shard.read(value, shard.locate(value, request), out)


def test_a_part_reads_the_index_and_only_the_chunks_it_meets():
    value = Watched(bytes(bind().encode(VALUES)))
    out = np.empty((1, 4), "u2")
    read(bind(), value, (slice(3, 4, 1), slice(0, 4, 1)), out)
    assert np.array_equal(out, VALUES[3:])
    assert value.asked == [(32, 68), (16, 8), (24, 8)]


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


# ---- writing parts


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


# ---- damage


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


# ---- configurations


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


def test_the_checksum_of_the_index_is_that_of_its_bytes():
    data = good()
    assert data[-4:] == crc32c(data[32:-4])


def test_more_chunks_than_an_index_can_have():
    with pytest.raises(UnsupportedError, match="inner chunks"):
        zarrdask.create_array({}, shape=2**41, dtype="u1", chunks=1, shards=2**40)
