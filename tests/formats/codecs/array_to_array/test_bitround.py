"""``bitround`` and ``numcodecs.bitround``."""

import ml_dtypes
import numcodecs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contracts.codec import check_json, check_value
from tests.covering import for_each
from tests.documents import same
from zarrdask.errors import MetadataError
from zarrdask.formats.codecs.array_to_array.bitround import BitroundCodec, NumcodecsBitroundCodec
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.registry import parse_codec
from zarrdask.formats.compliance import strictness


@pytest.mark.parametrize("kind", [BitroundCodec, NumcodecsBitroundCodec])
def test_it_is_a_value_and_has_json(kind):
    check_value(kind(3))
    check_json(kind(3), parse_codec)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@given(keepbits=st.integers(0, 10), seed=st.integers(0, 99))
def test_floats_are_rounded_as_numcodecs_does(dtype, keepbits, seed):
    rng = np.random.default_rng(seed)
    chunk = (rng.normal(size=20) * 10.0 ** rng.integers(-3, 4, 20)).astype(dtype)
    found = NumcodecsBitroundCodec(keepbits).encode(chunk)
    same(found, numcodecs.BitRound(keepbits).encode(chunk.copy()).view(dtype))
    assert (NumcodecsBitroundCodec(keepbits).encode(found) == found).all()


@for_each("dtype", ["f2", "f4", "f8", ml_dtypes.bfloat16])
@for_each("keepbits", [1, 2, 100])
def test_what_is_not_finite_stays_bit_for_bit(dtype, keepbits):
    size = np.dtype(dtype).itemsize
    most = np.array([2 ** (8 * size - 1) - 1, 2 ** (8 * size) - 1], f"u{size}").view(dtype)
    chunk = np.concatenate([np.array([np.nan, np.inf, -np.inf], dtype), most])
    assert BitroundCodec(keepbits).encode(chunk).tobytes() == chunk.tobytes()


def exact(value, keepbits):
    """An unsigned integer with so many bits kept, half to even."""
    drop = max(value.bit_length() - keepbits, 0)
    kept, rest = divmod(value, 2**drop)
    half = 2**drop / 2
    return (kept + (drop > 0 and (rest > half or (rest == half and kept % 2 == 1)))) * 2**drop


@for_each("dtype", ["u1", "u2", "u4", "u8"])
@given(st.data())
def test_unsigned_integers(dtype, data):
    most = np.iinfo(dtype).max
    value = data.draw(st.integers(0, int(most)) | st.integers(0, 300).map(lambda n: min(n, most)))
    keepbits = data.draw(st.integers(1, 70))
    found = int(BitroundCodec(keepbits).encode(np.array([value], dtype))[0])
    expected = exact(value, keepbits)
    if expected <= most:
        assert found == expected
    else:
        drop = value.bit_length() - keepbits
        assert found == value >> drop << drop


@for_each("dtype", ["i1", "i2", "i4", "i8", "m8[s]", "M8[s]"])
def test_signed_integers_are_rounded_by_their_bits(dtype):
    width = np.dtype(dtype).itemsize
    top = 2 ** (8 * width - 1)
    bits = np.array([5, 100, 127, top - 1, 2 * top - 1, top + 1], f"u{width}")
    found = BitroundCodec(3).encode(bits.view(dtype)).view(f"u{width}")
    expected = [5, 96, 112 if width == 1 else 128, top - top // 8, 2 * top - top // 4, top]
    assert found.tolist() == expected


@for_each("dtype", ["f4", "c8", "i4", "c16", ml_dtypes.bfloat16])
def test_decoding_changes_nothing(dtype):
    codec = BitroundCodec(2)
    chunk = np.array([[1, 2], [4, 3]], dtype)
    spec = ChunkSpec((2, 2), np.dtype(dtype), np.dtype(dtype).type(3))
    assert codec.resolve(spec) == spec
    same(codec.decode(codec.encode(chunk), spec), chunk)
    same(codec.encode(chunk.astype(chunk.dtype.newbyteorder(">"))), chunk)


def test_the_parts_of_complex_numbers_are_rounded_one_by_one():
    same(BitroundCodec(3).encode(np.array([1.2 + 12.3j], "c8")), np.array([1.25 + 12j], "c8"))
    pair = np.dtype([("re", ml_dtypes.bfloat16), ("im", ml_dtypes.bfloat16)])
    chunk = np.array([(1.2, 12.3)], pair)
    assert BitroundCodec(3).encode(chunk).tolist() == np.array([(1.25, 12)], pair).tolist()


def test_the_fill_value_is_rounded_too():
    spec = ChunkSpec((2,), np.dtype("u1"), np.uint8(11))
    assert BitroundCodec(3).resolve(spec).fill_value == 12


@for_each("dtype", ["?", "S2", "V2", ml_dtypes.float8_e5m2, ml_dtypes.int4, "O"])
def test_other_elements_are_an_error_at_open(dtype):
    with pytest.raises(MetadataError, match="can't encode"):
        BitroundCodec(3).resolve(ChunkSpec((2,), np.dtype(dtype), 0))


@pytest.mark.parametrize("dtype", ["i4", "c8", ml_dtypes.bfloat16])
def test_numcodecs_rounds_floats_only(dtype):
    with pytest.raises(MetadataError, match="floats"):
        NumcodecsBitroundCodec(3).resolve(ChunkSpec((2,), np.dtype(dtype), 0))


def test_numcodecs_keeps_no_more_than_there_is():
    NumcodecsBitroundCodec(10).resolve(ChunkSpec((2,), np.dtype("f2"), 0))
    with pytest.raises(MetadataError, match="keepbits"):
        NumcodecsBitroundCodec(11).resolve(ChunkSpec((2,), np.dtype("f2"), 0))


@for_each("name", ["bitround", "numcodecs.bitround"])
@for_each("members", [{}, {"keepbits": -1}, {"keepbits": 1.0}, {"keepbits": None}])
def test_a_wrong_configuration_is_an_error(name, members):
    with pytest.raises(MetadataError, match="keepbits"):
        parse_codec({"name": name, "configuration": members})


def test_no_bit_at_all_is_read_but_not_in_strict_mode():
    document = {"name": "bitround", "configuration": {"keepbits": 0}}
    assert parse_codec(document) == BitroundCodec(0)
    with strictness(True), pytest.raises(MetadataError, match="X-C9"):
        parse_codec(document)
