"""Chains of codecs: every legal one gives back what it took, every other fails when it is made."""

import math
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests import selections
from tests.covering import for_each
from tests.documents import CRC32C, LITTLE, named, same, sharding
from tests.formats.codecs.chains import COMPRESSORS, chains, endian
from zarrdask.errors import ChecksumError, CodecError, MetadataError, UnsupportedError
from zarrdask.formats.codecs.array_to_bytes.sharding import shard_of
from zarrdask.formats.codecs.byte_source import HeldValue
from zarrdask.formats.codecs.chunk_parts import decode_part
from zarrdask.formats.codecs.codec import ChunkSpec, Kind
from zarrdask.formats.codecs.pipeline import Pipeline
from zarrdask.formats.codecs.registry import parse_codecs
from zarrdask.formats.indexing.projection import numpy_index
from zarrdask.formats.indexing.selection import basic

GZIP = COMPRESSORS[0]
shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=6)
dtypes = st.sampled_from(["i2", "f8", "u4", "c8"])


def pipeline(codecs, shape=(4, 6), dtype="i2", fill_value=0):
    return Pipeline(parse_codecs(codecs), ChunkSpec(shape, np.dtype(dtype), fill_value))


@st.composite
def encoded(draw):
    """A pipeline, a chunk, and the chunk encoded."""
    shape = draw(shapes)
    dtype = draw(dtypes)
    chunk = draw(hnp.arrays(dtype, shape, elements=st.integers(0, 3), fill=st.just(0)))
    pipe = pipeline(draw(chains(shape)), shape, dtype)
    return pipe, chunk, bytes(pipe.encode(chunk))


@given(encoded())
def test_chunks_survive_any_legal_chain(case):
    pipe, chunk, data = case
    same(pipe.decode(data), chunk)
    assert pipe.encoded_size in (None, len(data))
    assert bytes(pipe.encode(np.asfortranarray(chunk))) == data


@given(encoded(), st.data())
def test_a_part_of_a_shard_equals_the_part_of_the_whole(case, data):
    pipe, chunk, value = case
    shard = shard_of(pipe)
    if shard is None:
        return
    request = basic(data.draw(selections.basic(chunk.shape, newaxis=False)), chunk.shape).picks
    inner = tuple(request[i] for i in pipe.axes) if pipe.axes else request
    expected = chunk[numpy_index(request)]
    out = np.empty(expected.shape, chunk.dtype)
    target = out.transpose(pipe.axes) if pipe.axes else out
    shard.read(HeldValue(value), shard.locate(HeldValue(value), inner), target)
    same(out, expected)


@given(encoded(), st.integers(0, 10**6))
def test_a_damaged_value_gives_an_error_of_ours_or_an_array(case, place):
    pipe, chunk, data = case
    if not data:
        return
    broken = bytearray(data)
    broken[place % len(data)] ^= 0xFF
    with suppress(CodecError):
        assert pipe.decode(bytes(broken)).shape == chunk.shape


@given(encoded(), st.integers(0, 10**6))
def test_a_value_that_is_cut_off_is_an_error(case, size):
    pipe, chunk, data = case
    if len(data) and chunk.size:
        with pytest.raises(CodecError):
            pipe.decode(data[: size % len(data)])


@given(shapes, dtypes, st.data())
def test_transposes_are_folded_into_one_view(shape, dtype, data):
    orders = [data.draw(st.permutations(range(len(shape)))) for _ in range(3)]
    codecs = [{"name": "transpose", "configuration": {"order": list(o)}} for o in orders]
    chunk = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    expected = chunk
    for order in orders:
        expected = expected.transpose(order)
    pipe = pipeline([*codecs, LITTLE], shape, dtype)
    assert bytes(pipe.encode(chunk)) == np.ascontiguousarray(expected).tobytes()
    assert not pipe.filters


def test_a_transposed_chunk_is_stored_column_by_column():
    order = {"name": "transpose", "configuration": {"order": [1, 0]}}
    pipe = pipeline([order, {"name": "bytes"}], (2, 3), "u1")
    chunk = np.array([[1, 2, 3], [4, 5, 6]], "u1")
    assert bytes(pipe.encode(chunk)) == bytes([1, 4, 2, 5, 3, 6])
    assert np.array_equal(pipe.decode(bytes([1, 4, 2, 5, 3, 6])), chunk)


TRANSPOSE = {"name": "transpose", "configuration": {"order": [1, 0]}}


@for_each(
    "codecs",
    [
        [],
        [GZIP],
        [TRANSPOSE],
        [TRANSPOSE, GZIP],
        [GZIP, LITTLE],
        [LITTLE, TRANSPOSE],
        [LITTLE, LITTLE],
        [LITTLE, GZIP, LITTLE],
        [TRANSPOSE, LITTLE, TRANSPOSE],
        [sharding((2, 2)), LITTLE],
        [LITTLE, sharding((2, 2))],
        [CRC32C],
    ],
)
def test_an_impossible_order_is_an_error_that_lists_the_codecs(codecs):
    with pytest.raises(MetadataError) as caught:
        pipeline(codecs)
    assert caught.value.key == "codecs"
    assert caught.value.found == [codec["name"] for codec in codecs]


@given(st.lists(st.sampled_from([TRANSPOSE, LITTLE, sharding((2, 2)), GZIP, CRC32C]), max_size=5))
def test_a_chain_is_made_if_and_only_if_its_order_is_possible(codecs):
    kinds = [codec.kind for codec in parse_codecs(codecs)]
    ranks = [list(Kind).index(kind) for kind in kinds]
    possible = ranks == sorted(ranks) and ranks.count(1) == 1
    # Every other transpose turns the chunk round; its shape (4, 6) can be cut into (2, 2) always.
    if possible:
        pipeline(codecs)
    else:
        with pytest.raises(MetadataError):
            pipeline(codecs)


@for_each(
    "codecs",
    [
        [{"name": "transpose", "configuration": {"order": [0]}}, LITTLE],
        [{"name": "transpose", "configuration": {"order": [2, 1, 0]}}, LITTLE],
        [{"name": "bytes"}],
        [sharding((5, 2))],
        [TRANSPOSE, sharding((4, 2))],
    ],
)
def test_a_codec_that_cannot_take_its_input_is_an_error(codecs):
    with pytest.raises(MetadataError):
        pipeline(codecs, (4, 6), "i2")


def test_errors_name_the_codec():
    cast = {"name": "cast_value", "configuration": {"data_type": "int8"}}
    packed = {"name": "packbits"}
    for codecs, dtype, name in (
        ([LITTLE], "O", "bytes"),
        ([cast, LITTLE], "?", "cast_value"),
        ([{"name": "packbits"}], "S2", "packbits"),
    ):
        with pytest.raises((MetadataError, UnsupportedError), match=f"^codec {name}: "):
            pipeline(codecs, dtype=dtype, fill_value=np.zeros((), dtype)[()])
    for codecs, data, name in (
        ([LITTLE, GZIP, CRC32C], b"12345678", "crc32c"),
        ([LITTLE, GZIP], b"12345678", GZIP["name"]),
        ([packed], b"1", "packbits"),
        ([sharding((2, 2))], b"1", "shard index"),
    ):
        with pytest.raises(CodecError, match=f"^(codec )?{name}: "):
            pipeline(codecs).decode(data)
    options = {"typesize": 2, "shuffle": "shuffle", "cname": "zstd", "blocksize": 5000}
    blosc = pipeline([LITTLE, {"name": "blosc", "configuration": options}], (400, 300))
    data = bytes(blosc.encode(np.arange(400 * 300, dtype="i2").reshape(400, 300)))
    head, damaged = data[: 16 + 4 * 48], bytes(len(data) - 16 - 4 * 48)
    with pytest.raises(CodecError, match=r"^codec blosc: "):
        decode_part(blosc, head + damaged, (slice(0, 1, 1), slice(0, 1, 1)))
    with pytest.raises(CodecError, match=r"^codec cast_value: a value is out"):
        pipeline([cast, {"name": "bytes"}]).encode(np.full((4, 6), 300, "i2"))
    texts = pipeline([named("reshape", shape=[24]), named("vlen-utf8")], dtype="O", fill_value="")
    with pytest.raises(CodecError, match=r"^codec vlen-utf8: an element has the wrong type"):
        texts.encode(np.full((4, 6), 1, "O"))


def test_shards_are_cut_after_the_transpose():
    # The shard is (6, 4) then: it can be cut into (3, 4), which (4, 6) can't.
    pipeline([TRANSPOSE, sharding((3, 4))], (4, 6))
    with pytest.raises(MetadataError):
        pipeline([sharding((3, 4))], (4, 6))


def test_shards_that_are_compressed_as_a_whole_are_not_read_in_parts():
    assert shard_of(pipeline([sharding((2, 2)), GZIP])) is None
    assert shard_of(pipeline([TRANSPOSE, sharding((2, 2))])) is not None


def test_codecs_are_undone_backwards():
    chunk = np.arange(24, dtype="i2").reshape(4, 6)
    inner, outer = (pipeline([LITTLE, *codecs]) for codecs in ([GZIP, CRC32C], [CRC32C, GZIP]))
    assert bytes(inner.encode(chunk)) != bytes(outer.encode(chunk))
    with pytest.raises(ChecksumError):
        inner.decode(bytes(inner.encode(chunk))[:-1] + b"\0")
    same(outer.decode(outer.encode(chunk)), chunk)


def test_the_size_of_encoded_chunks_is_known_where_it_can_be():
    assert pipeline([LITTLE]).encoded_size == 48
    assert pipeline([LITTLE, CRC32C, CRC32C]).encoded_size == 56
    assert pipeline([LITTLE, GZIP, CRC32C]).encoded_size is None
    assert pipeline([sharding((2, 2))]).encoded_size is None


def test_incompressible_data_survive_several_compressors():
    chunk = np.frombuffer(np.random.default_rng(1).bytes(2**16), "i2").reshape(128, 256)
    pipe = pipeline([LITTLE, *COMPRESSORS, *COMPRESSORS], (128, 256))
    same(pipe.decode(pipe.encode(chunk)), chunk)


def test_bytes_of_either_order_are_decoded_to_the_same():
    chunk = np.arange(24, dtype="i2").reshape(4, 6)
    for order in ("little", "big"):
        pipe = pipeline([endian(order)])
        assert (
            bytes(pipe.encode(chunk))
            == chunk.astype("<i2" if order == "little" else ">i2").tobytes()
        )
        same(pipe.decode(pipe.encode(chunk)), chunk)


def test_a_chunk_of_more_axes_than_numpy_has_is_an_error():
    with pytest.raises(UnsupportedError, match=r"chunk_shape.*65"):
        pipeline([LITTLE], shape=(1,) * 65)
