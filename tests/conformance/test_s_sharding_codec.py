"""S.2: the final codec ``sharding_indexed``."""

import struct
import zlib

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import (
    BIG,
    CRC32C,
    LITTLE,
    crc32c,
    named,
    same,
    shard_index,
    sharding,
    stored,
    v3,
    without,
)

GZIP = named("gzip", level=1)
ZSTD = named("zstd", level=1)
TRANSPOSE = named("transpose", order=[1, 0])

#: The sample of S-26: 8 x 8 numbers in four shards of 4 x 4, with chunks of 2 x 2.
VALUES = np.arange(64, dtype="u2").reshape(8, 8)
#: The chunks of the first shard, in C order.
INNER = [
    struct.pack("<4H", *numbers)
    for numbers in ((0, 1, 8, 9), (2, 3, 10, 11), (16, 17, 24, 25), (18, 19, 26, 27))
]
ENTRIES = [(0, 8), (8, 8), (16, 8), (24, 8)]
SHARD = b"".join(INNER) + shard_index(*ENTRIES)
FIRST = VALUES[:4, :4]


def opened(codecs, data=None, *, shape=(4, 4), fill_value=0, strict=None, data_type="uint16"):
    """Return an array of one shard, which is stored as given."""
    document = v3(shape, shape, data_type, fill_value, codecs)
    key = "/".join(["c", *"0" * len(shape)])
    store = stored(document, {} if data is None else {key: data})
    return zarrdask.open_array(store, mode="r+", strict=strict)


def written(values, *codecs, **options):
    """Return what is stored for an array of one shard, which is also read back."""
    store = {}
    z = zarrdask.create_array(
        store, shape=values.shape, dtype=values.dtype, chunks=-1, codecs=list(codecs), **options
    )
    z[...] = values
    same(zarrdask.open_array(store, strict=True)[...], values)
    return {key: bytes(data) for key, data in store.items() if key != "zarr.json"}


# ---- S-15, S-16


def test_s15_the_chunk_shape_of_the_grid_is_the_shards_and_that_of_the_codec_the_chunks():
    z = opened([sharding((2, 2))], SHARD)
    assert (z.shards, z.chunks) == ((4, 4), (2, 2))
    same(z[...], FIRST)


@for_each("shape", [(3, 2), (8, 2), (2,), (2, 2, 1), (0, 2), (2.0, 2), (-2, 2)])
def test_s15_chunks_that_do_not_divide_the_shard_are_an_error(shape):
    with pytest.raises(zarrdask.errors.MetadataError, match="chunk_shape"):
        opened([sharding(shape)])


@pytest.mark.parametrize("member", ["chunk_shape", "codecs", "index_codecs"])
def test_s16_the_members_are_required(member):
    codec = sharding((2, 2))
    codec["configuration"] = without(codec["configuration"], member)
    with pytest.raises(zarrdask.errors.MetadataError, match=member):
        opened([codec], strict=True)


@for_each("codecs", [[], [GZIP], [LITTLE, LITTLE], [LITTLE, TRANSPOSE]])
@for_each("member", ["codecs", "index_codecs"])
def test_s16_both_lists_have_exactly_one_array_bytes_codec(member, codecs):
    with pytest.raises(zarrdask.errors.MetadataError):
        opened([sharding((2, 2), **{member: codecs})])


@pytest.mark.parametrize("codec", [GZIP, ZSTD, named("numcodecs.bz2", level=1)])
def test_s16_an_index_of_variable_size_is_an_error(codec):
    with pytest.raises(zarrdask.errors.MetadataError, match="index_codecs"):
        opened([sharding((2, 2), index_codecs=[LITTLE, codec])])


def test_s16_the_index_stands_at_the_end_unless_said_otherwise():
    same(opened([sharding((2, 2))], SHARD)[...], FIRST)
    same(opened([sharding((2, 2), index_location="end")], SHARD)[...], FIRST)
    for wrong in ("middle", None, 0):
        with pytest.raises(zarrdask.errors.MetadataError, match="index_location"):
            opened([sharding((2, 2), index_location=wrong)])


# ---- S-17, S-18, S-19


def test_s17_the_index_is_uint64_with_a_checksum():
    data = written(FIRST, sharding((2, 2)))["c/0/0"]
    assert data == SHARD
    index = struct.pack("<8Q", 0, 8, 8, 8, 16, 8, 24, 8)
    assert data[32:] == index + crc32c(index)
    assert len(data[32:]) == 16 * 4 + 4 == 68


@for_each(
    ("codecs", "index"),
    [
        ([BIG], struct.pack(">8Q", 0, 8, 8, 8, 16, 8, 24, 8)),
        ([LITTLE], struct.pack("<8Q", 0, 8, 8, 8, 16, 8, 24, 8)),
        # Of shape (2, 2, 2): chunk (1, 0) stands before (0, 1).
        (
            [named("transpose", order=[1, 0, 2]), LITTLE],
            struct.pack("<8Q", 0, 8, 16, 8, 8, 8, 24, 8),
        ),
        # All offsets, then all sizes.
        (
            [named("transpose", order=[2, 0, 1]), LITTLE],
            struct.pack("<8Q", 0, 8, 16, 24, 8, 8, 8, 8),
        ),
    ],
)
def test_s17_the_index_may_be_encoded_in_other_ways(codecs, index):
    same(opened([sharding((2, 2), index_codecs=codecs)], b"".join(INNER) + index)[...], FIRST)
    assert written(FIRST, sharding((2, 2), index_codecs=codecs))["c/0/0"][32:] == index


def test_s18_offsets_count_from_the_start_of_the_shard_also_behind_the_index():
    data = shard_index((68, 8), (76, 8), (84, 8), (92, 8)) + b"".join(INNER)
    codec = sharding((2, 2), index_location="start")
    assert written(FIRST, codec)["c/0/0"] == data
    same(opened([codec], data)[...], FIRST)


@pytest.mark.parametrize("location", ["start", "end"])
def test_s19_a_wrong_checksum_of_the_index_is_an_error(location):
    codec = sharding((2, 2), index_location=location)
    data = bytearray(written(FIRST, codec)["c/0/0"])
    data[67 if location == "start" else -1] ^= 1
    with pytest.raises(zarrdask.errors.ChecksumError, match="shard index"):
        opened([codec], bytes(data))[...]


# ---- S-20 to S-22


def test_s20_an_empty_chunk_reads_as_the_fill_value():
    data = INNER[1] + shard_index(None, (0, 8), None, None)
    expected = np.full((4, 4), 7, "u2")
    expected[:2, 2:] = FIRST[:2, 2:]
    same(opened([sharding((2, 2))], data, fill_value=7)[...], expected)
    empty = struct.pack("<Q", 2**64 - 1) * 2
    assert written(expected, sharding((2, 2)), fill_value=7)["c/0/0"][8:24] == empty


def test_s20_the_fill_value_is_the_one_that_codecs_before_have_made():
    codecs = [named("scale_offset", offset=1, scale=2), sharding((2, 2))]
    values = np.where(FIRST < 12, 7, FIRST)
    data = written(values, *codecs, fill_value=7)["c/0/0"]
    # Stored are twice the numbers less one; and of the chunks only those that differ from 12.
    assert data[:8] == struct.pack("<4H", *((n - 1) * 2 for n in (16, 17, 24, 25)))
    assert len(data) == 16 + 68
    same(opened(codecs, shard_index(*[None] * 4), fill_value=7)[...], np.full((4, 4), 7, "u2"))


def test_s20_the_index_covers_chunks_outside_the_array_too():
    store = {}
    z = zarrdask.create_array(store, shape=(3, 3), dtype="u2", chunks=2, shards=4, compressors=[])
    z[...] = 1
    assert len(store["c/0/0"]) == 4 * 8 + 68
    z = zarrdask.create_array(
        store, shape=(2, 2), dtype="u2", chunks=2, shards=4, compressors=[], overwrite=True
    )
    z[...] = 1
    assert store["c/0/0"] == struct.pack("<4H", 1, 1, 1, 1) + shard_index((0, 8), *[None] * 3)


def test_s21_chunks_may_stand_in_any_order_with_gaps_and_twice():
    data = b"gap" + INNER[3] + INNER[1] + b"stale chunk" + INNER[0]
    index = shard_index((30, 8), (11, 8), (30, 8), (3, 8))
    expected = FIRST.copy()
    expected[2:, :2] = FIRST[:2, :2]
    same(opened([sharding((2, 2))], data + index)[...], expected)


def test_s21_updating_a_part_keeps_the_other_chunks():
    z = opened([sharding((2, 2), [LITTLE, GZIP])])
    z[...] = FIRST
    z[1:3, 1:3] = 99
    expected = FIRST.copy()
    expected[1:3, 1:3] = 99
    same(z[...], expected)
    z[0, 0] = 5
    expected[0, 0] = 5
    same(z[...], expected)


def test_s22_a_shard_of_empty_chunks_is_not_stored_but_read():
    assert written(np.zeros((4, 4), "u2"), sharding((2, 2))) == {}
    z = opened([sharding((2, 2))], shard_index(*[None] * 4), fill_value=3)
    same(z[...], np.full((4, 4), 3, "u2"))
    z[...] = 3
    assert "c/0/0" not in z.store.list()


# ---- S-23 to S-26


def test_s23_shards_within_shards():
    inner = sharding((1, 2), index_codecs=[LITTLE])
    data = written(FIRST, sharding((2, 2), [inner]))["c/0/0"]
    assert data[:8] == INNER[0]
    assert data[8:40] == struct.pack("<4Q", 0, 4, 4, 4)
    assert data[-68:] == shard_index((0, 40), (40, 40), (80, 40), (120, 40))
    same(opened([sharding((2, 2), [inner])], data)[2:, ::3], FIRST[2:, ::3])


def test_s23_a_transposition_before():
    data = written(FIRST, TRANSPOSE, sharding((2, 2)))["c/0/0"]
    assert data[8:16] == struct.pack("<4H", 16, 24, 17, 25)
    z = opened([TRANSPOSE, sharding((2, 4))])
    z[...] = FIRST
    assert z.chunks == (4, 2)
    same(z[1:, :2], FIRST[1:, :2])


def test_s23_bytes_bytes_codecs_after():
    codecs = [sharding((2, 2)), named("numcodecs.zlib", level=1), CRC32C]
    data = zlib.compress(SHARD, 1)
    assert written(FIRST, *codecs)["c/0/0"] == data + crc32c(data)
    z = opened(codecs, data + crc32c(data))
    same(z[...], FIRST)
    same(z[1:3, 2], FIRST[1:3, 2])
    z[3, 3] = 5
    assert z[3].tolist() == [24, 25, 26, 5]


@pytest.mark.parametrize("data", [b"", SHARD[-67:], b"\0" * 20])
def test_s24_a_value_shorter_than_the_index_is_an_error(data):
    with pytest.raises(zarrdask.errors.CodecError, match="shorter") as caught:
        opened([sharding((2, 2))], data)[...]
    assert caught.value.expected == "68 bytes"


def test_s24_the_size_of_the_index_follows_from_its_codecs():
    codecs = [LITTLE, CRC32C, named("numcodecs.adler32"), named("numcodecs.shuffle", elementsize=1)]
    data = written(FIRST, sharding((2, 2), index_codecs=codecs))["c/0/0"]
    assert len(data) == 32 + 16 * 4 + 4 + 4


@for_each("entry", [(93, 8), (0, 2**40), (2**63, 8), (2**64 - 1, 8), (0, 2**64 - 1)])
def test_s24_an_entry_that_points_outside_is_an_error(entry):
    data = b"".join(INNER) + shard_index((0, 8), (8, 8), (16, 8), entry)
    with pytest.raises(zarrdask.errors.CodecError):
        opened([sharding((2, 2))], data)[...]


def test_s25_chunks_at_the_edge_are_whole():
    store = {}
    z = zarrdask.create_array(store, shape=(3, 3), dtype="u2", chunks=2, shards=4, compressors=[])
    z[...] = VALUES[:3, :3]
    assert store["c/0/0"][:32] == (
        INNER[0]
        + struct.pack("<4H", 2, 0, 10, 0)
        + struct.pack("<4H", 16, 17, 0, 0)
        + struct.pack("<4H", 18, 0, 0, 0)
    )
    same(zarrdask.open_array(store)[...], VALUES[:3, :3])


def test_s26_the_checked_bytes():
    store = {}
    z = zarrdask.create_array(store, shape=(8, 8), dtype="u2", chunks=2, shards=4, compressors=[])
    z[...] = VALUES
    assert bytes(store["c/0/0"]) == SHARD
    assert [len(store[f"c/{i}/{j}"]) for i in (0, 1) for j in (0, 1)] == [100] * 4
    same(zarrdask.open_array(store)[5:, ::3], VALUES[5:, ::3])


# ---- S-27


def variant(*missing, **others):
    """A sharding codec of 2023."""
    codec = sharding((2, 2), **others)
    for member in missing:
        codec["configuration"] = without(codec["configuration"], member)
    return codec


@for_each("checksum", [True, False])
@for_each("missing", [["index_codecs"], ["index_codecs", "codecs"]])
def test_s27_without_index_codecs_the_index_has_a_checksum_or_none(missing, checksum):
    data = b"".join(INNER) + shard_index(*ENTRIES, checksum=checksum)
    z = opened([variant(*missing)], data)
    same(z[...], FIRST)
    same(z[1:, 3], FIRST[1:, 3])
    empty = opened([variant(*missing)], shard_index(*[None] * 4, checksum=checksum), fill_value=3)
    same(empty[...], np.full((4, 4), 3, "u2"))


def test_s27_chunks_may_have_codecs_without_an_array_bytes_one():
    chunks = [zlib.compress(data, 1) for data in INNER]
    offsets = np.cumsum([0, *map(len, chunks)]).tolist()
    index = shard_index(*((offsets[n], len(chunks[n])) for n in range(4)), checksum=False)
    codec = variant("index_codecs", codecs=[named("numcodecs.zlib", level=1)])
    same(opened([codec], b"".join(chunks) + index)[...], FIRST)


def test_s27_such_shards_are_updated():
    data = b"".join(INNER) + shard_index(*ENTRIES, checksum=False)
    z = opened([variant("index_codecs")], data)
    z[3, 3] = 5
    expected = FIRST.copy()
    expected[3, 3] = 5
    same(z[...], expected)
    assert "index_codecs" not in z.metadata.codecs[0].to_json()["configuration"]


def test_s27_a_strict_reader_wants_the_index_codecs():
    with pytest.raises(zarrdask.errors.MetadataError, match="S-27"):
        opened([variant("index_codecs")], strict=True)


def test_s27_an_index_that_is_neither_is_an_error():
    for data in (b"", SHARD[-60:], b"\1" * 64):
        with pytest.raises(zarrdask.errors.CodecError):
            opened([variant("index_codecs")], data)[...]
