"""Parts of chunks are decoded without the rest, and are the same."""

from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrdask
from tests.covering import for_each
from tests.documents import LITTLE, named, sharding
from zarrdask.errors import CodecError
from zarrdask.formats.codecs.array_to_array.transpose import TransposeCodec
from zarrdask.formats.codecs.array_to_bytes.bytes import BytesCodec
from zarrdask.formats.codecs.byte_source import HeldValue
from zarrdask.formats.codecs.bytes_to_bytes.blosc import BloscCodec
from zarrdask.formats.codecs.chunk_parts import decode_part
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.decode import fits, scatter
from zarrdask.formats.codecs.pipeline import Pipeline
from zarrdask.formats.codecs.registry import parse_codecs
from zarrdask.formats.indexing.projection import Points

SHAPE = (40, 30, 25)
SIZE = 40 * 30 * 25 * 4
NOISE = np.random.default_rng(0)
CHUNKS = {
    "smooth": np.arange(np.prod(SHAPE), dtype="f4").reshape(SHAPE),
    "noise": NOISE.standard_normal(SHAPE, dtype="f4"),
}
PIPELINES = {
    f"{cname} {blocksize} {typesize} {'F' if order else 'C'}": Pipeline(
        [
            *([TransposeCodec((2, 0, 1))] if order else []),
            BytesCodec("little"),
            BloscCodec(cname, 5, shuffle, blocksize, typesize),
        ],
        ChunkSpec(SHAPE, np.dtype("f4"), np.float32(0)),
    )
    for cname, shuffle, blocksize, typesize in [
        ("lz4", 1, 4096, 4),
        ("lz4", 1, 0, 4),
        ("blosclz", 2, 1000, 4),
        ("zstd", 0, 5000, 1),
        ("zlib", 1, 3001, 3),
    ]
    for order in (False, True)
}
ENCODED = {(p, c): bytes(PIPELINES[p].encode(CHUNKS[c])) for p in PIPELINES for c in CHUNKS}

picks = st.tuples(
    *(
        st.tuples(st.integers(0, n - 1), st.integers(1, n), st.integers(1, 4)).map(
            lambda t, n=n: slice(t[0], min(t[0] + t[1], n), t[2])
        )
        for n in SHAPE
    )
)


@for_each("name", CHUNKS)
@for_each("pipeline", PIPELINES)
@given(inside=picks)
def test_a_part_is_what_the_whole_has_there(pipeline, name, inside):
    found = decode_part(PIPELINES[pipeline], ENCODED[pipeline, name], inside)
    if found is not None:
        np.testing.assert_array_equal(found, CHUNKS[name][inside])


ELEMENT = (slice(20, 21, 1), slice(0, 1, 1), slice(0, 1, 1))


def test_small_parts_are_decoded_by_themselves():
    data = ENCODED["zstd 5000 1 C", "smooth"]
    values = CHUNKS["smooth"].tobytes()
    parts = BloscCodec(typesize=1).read_parts(HeldValue(data), SIZE)
    for ranges in [[(50_000, 10)], [(SIZE - 1, 1)], [(0, 1), (4, 8), (70_000, 9), (SIZE - 8, 8)]]:
        located = parts.locate(ranges)
        assert sum(length for _, length in located) < len(data) / 4
        held = [(each, data[each[0] : sum(each)]) for each in located]
        expected = b"".join(values[start : start + length] for start, length in ranges)
        assert bytes(parts.decode(ranges, held)) == expected
    assert decode_part(PIPELINES["lz4 4096 4 C"], data, ELEMENT).shape == (1, 1, 1)


def test_elements_far_from_each_other_are_decoded_without_those_between():
    pipeline, data = PIPELINES["zstd 5000 1 C"], ENCODED["zstd 5000 1 C", "smooth"]
    inside = (slice(0, 40, 39), slice(0, 1, 1), slice(0, 1, 1))
    found = decode_part(pipeline, data, inside)
    np.testing.assert_array_equal(found, CHUNKS["smooth"][inside])


def test_blocks_that_threads_stored_in_any_order_are_found():
    pipeline, data = PIPELINES["zstd 5000 1 C"], ENCODED["zstd 5000 1 C", "smooth"]
    count = -(-SIZE // int.from_bytes(data[8:12], "little"))
    starts = np.frombuffer(data, "<u4", count, 16)
    ends = dict(pairwise([*sorted(starts), len(data)]))
    order = np.random.default_rng(0).permutation(count)
    table, blocks, at = np.zeros(count, "<u4"), [], 16 + 4 * count
    for number in order:
        table[number] = at
        blocks.append(data[starts[number] : ends[starts[number]]])
        at += len(blocks[-1])
    mixed = data[:16] + table.tobytes() + b"".join(blocks)
    inside = (slice(7, 17, 1), slice(0, 30, 1), slice(2, 9, 3))
    np.testing.assert_array_equal(decode_part(pipeline, mixed, inside), CHUNKS["smooth"][inside])


def test_points_and_positions_are_decoded_without_the_rest():
    pipeline, data = PIPELINES["zstd 5000 1 F"], ENCODED["zstd 5000 1 F", "noise"]
    values = CHUNKS["noise"]
    points = (np.array([39, 1, 39, 0]), np.array([3, 29, 3, 0]), np.array([24, 2, 24, 1]))
    np.testing.assert_array_equal(decode_part(pipeline, data, Points(points)), values[points])
    rows = np.array([7, 3, 3])
    found = decode_part(pipeline, data, (rows, slice(2, 4, 1), np.array([24, 23])))
    np.testing.assert_array_equal(found, values[np.ix_(rows, [2, 3], [24, 23])])


def test_a_part_of_a_frame_with_a_single_block_is_left_to_the_whole():
    whole = BloscCodec(typesize=4, blocksize=SIZE).encode(CHUNKS["smooth"])
    assert decode_part(PIPELINES["lz4 4096 4 C"], whole, ELEMENT) is None


def test_large_parts_are_left_to_the_whole():
    pipeline, data = PIPELINES["lz4 4096 4 C"], ENCODED["lz4 4096 4 C", "smooth"]
    assert decode_part(pipeline, data, (slice(0, 40, 1), slice(0, 1, 1), slice(0, 1, 1))) is None


def element_of(data):
    """Return an element of a stored chunk, as reads of it do."""
    out = np.zeros((1, 1, 1), "f4")
    scatter(PIPELINES["lz4 4096 4 C"], ["c"], [ELEMENT], [...], [data], out=out)
    return out


@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.sampled_from(sorted(CHUNKS)))
def test_a_damaged_frame_gives_an_error_of_ours_or_bytes(number, place, name):
    data = bytearray(ENCODED["lz4 4096 4 C", name])
    data[place : place + 4] = number.to_bytes(4, "little")
    with suppress(CodecError):
        element_of(bytes(data))


def test_a_frame_that_is_cut_off_is_an_error():
    data = ENCODED["lz4 4096 4 C", "smooth"]
    for size in (0, 10, 16, 60, len(data) - 1):
        with pytest.raises(CodecError):
            element_of(data[:size])


@for_each(
    "codecs",
    [
        [named("reshape", shape=[-1]), LITTLE],
        [named("scale_offset", offset=1), LITTLE, named("zstd", level=1)],
        [named("cast_value", data_type="uint8"), {"name": "bytes"}, named("gzip", level=1)],
        [sharding((2, 3)), named("zstd", level=1)],
        [named("packbits", first_bit=0)],
    ],
)
def test_chunks_that_are_no_plain_elements_are_not_decoded_in_place(codecs):
    # Of float64 above all: NumPy takes None, which is no dtype, for that.
    pipeline = Pipeline(parse_codecs(codecs), ChunkSpec((2, 3), np.dtype("f8"), np.float64(1)))
    values = np.arange(1.0, 7.0).reshape(2, 3)
    out = np.zeros((2, 3))
    assert not fits(pipeline, out, ...)
    scatter(pipeline, ["c"], [None], [...], [bytes(pipeline.encode(values))], out=out)
    assert np.array_equal(out, values)


@pytest.mark.parametrize("broken", [0, 1, 3])
def test_an_inner_chunk_that_is_not_there_is_called_by_its_own_name(broken):
    store = {}
    codec = sharding([1], index_codecs=[LITTLE])
    array = zarrdask.create_array(store, shape=4, dtype="i4", chunks=4, codecs=[codec])
    array[...] = [1, 2, 3, 4]
    shard = bytearray(store["c/0"])
    at = 16 + 16 * broken
    shard[at : at + 8] = (2**40).to_bytes(8, "little")
    store["c/0"] = bytes(shard)
    with pytest.raises(CodecError, match=rf"^\S*c/0: inner chunk \({broken},\): bytes {2**40}"):
        zarrdask.open_array(store)[...]
