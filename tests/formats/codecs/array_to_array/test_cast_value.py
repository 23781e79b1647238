"""``cast_value``."""

import math

import ml_dtypes
import numpy as np
import pytest

from tests.contracts.codec import check_array_array, check_json, check_value
from tests.covering import for_each
from tests.documents import same
from zarrdask.errors import CodecError, MetadataError, UnsupportedError
from zarrdask.formats.codecs.array_to_array.cast_value import CastValueCodec
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.registry import parse_codec


def codec(data_type, **members):
    return parse_codec({"name": "cast_value", "configuration": {"data_type": data_type, **members}})


NAN_AS_ZERO = {"encode": [["NaN", 0]], "decode": [[0, "NaN"]]}


@for_each(
    ("data_type", "chunk"),
    [
        ("uint8", np.array([[0.0, 255.0], [7.0, 1.0]])),
        ("float64", np.arange(6, dtype="i4").reshape(2, 3)),
        ("int64", np.array([0, 2**62], "u8")),
        ("bfloat16", np.array([1.5, -3.0], "f4")),
        ("float32", np.array([1.5, -3.0], ml_dtypes.bfloat16)),
        ("int4", np.array([-8, 7], "i2")),
        ({"name": "int16", "configuration": {}}, np.array([1.0], "f2")),
    ],
)
def test_numbers_that_both_types_have_survive(data_type, chunk):
    check_array_array(codec(data_type), chunk)
    check_json(codec(data_type), parse_codec)


def test_all_members_come_back_in_its_metadata():
    document = {
        "data_type": "int8",
        "rounding": "towards-zero",
        "out_of_range": "wrap",
        "scalar_map": {"encode": [["NaN", -1], ["+Infinity", 0]], "decode": [[-1, "NaN"]]},
    }
    found = codec(**document)
    check_value(found)
    assert found.to_json() == {"name": "cast_value", "configuration": document}


def test_what_is_not_said_is_not_written():
    assert codec("int8", rounding="nearest-even", scalar_map={}).to_json() == {
        "name": "cast_value",
        "configuration": {"data_type": "int8"},
    }


def test_the_scalar_map_has_two_directions():
    found = codec("uint8", scalar_map=NAN_AS_ZERO)
    spec = ChunkSpec((3,), np.dtype("f8"), math.nan)
    stored = found.encode(np.array([math.nan, 0.0, 5.0]))
    same(stored, np.array([0, 0, 5], "u1"))
    same(found.decode(stored, spec), np.array([math.nan, math.nan, 5.0]))


@pytest.mark.parametrize("value", [-0.0, 0.0])
def test_zeros_of_both_signs_are_one_key(value):
    found = codec("int8", scalar_map={"encode": [[0, 5]]})
    assert found.encode(np.array([value])).tolist() == [5]


def test_decoding_follows_the_same_rules():
    spec = ChunkSpec((2,), np.dtype("f2"), np.float16(0))
    stored = np.array([65505, 2**31], "u4")
    with pytest.raises(CodecError, match="float16"):
        codec("uint32").decode(stored, spec)
    clamped = codec("uint32", out_of_range="clamp").decode(stored, spec)
    same(clamped, np.array([65504, math.inf], "f2"))
    with pytest.raises(CodecError, match="float16"):
        codec("uint32", out_of_range="wrap").decode(stored, spec)


def test_stored_bytes_may_have_any_order():
    spec = ChunkSpec((2,), np.dtype("f8"), 0.0)
    same(codec("int16").decode(np.array([1, -2], ">i2"), spec), np.array([1.0, -2.0]))


# ---- the fill value


def test_the_fill_value_is_cast_too():
    spec = ChunkSpec((2,), np.dtype("f8"), np.float64(3))
    assert codec("uint8").resolve(spec) == ChunkSpec((2,), np.dtype("u1"), np.uint8(3))
    spec = ChunkSpec((2,), np.dtype("f8"), np.float64(math.nan))
    assert codec("uint8", scalar_map=NAN_AS_ZERO).resolve(spec).fill_value == 0
    assert math.isnan(codec("float32").resolve(spec).fill_value)


@for_each(
    ("data_type", "fill", "members"),
    [
        ("uint8", 1.5, {}),
        ("uint8", 300.0, {"out_of_range": "clamp"}),
        ("uint8", 257.0, {"out_of_range": "wrap"}),
        ("uint8", -1.0, {}),
        ("uint8", math.nan, {}),
        ("uint8", math.nan, {"scalar_map": {"encode": [["NaN", 0]]}}),
        ("uint8", 0.0, {"scalar_map": NAN_AS_ZERO}),
        ("float32", 0.1, {}),
        ("float32", 1e300, {"out_of_range": "clamp"}),
    ],
)
def test_a_fill_value_that_does_not_come_back_is_an_error(data_type, fill, members):
    with pytest.raises(MetadataError, match="fill value"):
        codec(data_type, **members).resolve(ChunkSpec((2,), np.dtype("f8"), np.float64(fill)))


# ---- configurations


@for_each(
    "members",
    [
        {"rounding": "up"},
        {"rounding": None},
        {"out_of_range": "error"},
        {"out_of_range": True},
        {"scalar_map": []},
        {"scalar_map": {"encode": {"NaN": 0}}},
        {"scalar_map": {"encode": [["NaN"]]}},
        {"scalar_map": {"encode": [["NaN", 0, 1]]}},
        {"scalar_map": {"both": []}},
        {"endian": "little"},
        {"data_type": 8},
    ],
)
def test_a_wrong_configuration_is_an_error(members):
    with pytest.raises(MetadataError):
        codec(**{"data_type": "uint8", **members})


def test_a_data_type_is_needed_and_has_to_be_known():
    with pytest.raises(MetadataError, match="data_type"):
        parse_codec({"name": "cast_value", "configuration": {}})
    with pytest.raises(UnsupportedError, match="int128"):
        codec("int128")


@for_each("dtype", ["?", "c8", "M8[s]", "V2", "S2", "O"])
def test_only_real_numbers_can_be_cast(dtype):
    fill = np.zeros((), dtype)[()]
    with pytest.raises(MetadataError, match="can't encode"):
        codec("int64").resolve(ChunkSpec((2,), np.dtype(dtype), fill))


@for_each("data_type", ["bool", "complex64", "r8", "string"])
def test_only_to_real_numbers(data_type):
    with pytest.raises(MetadataError, match="can't encode"):
        codec(data_type).resolve(ChunkSpec((2,), np.dtype("i4"), 0))


@for_each(
    ("data_type", "members"),
    [
        ("float32", {"out_of_range": "wrap"}),
        ("uint8", {"scalar_map": {"encode": [["NaN", 256]]}}),
        ("uint8", {"scalar_map": {"encode": [["zero", 0]]}}),
        ("uint8", {"scalar_map": {"decode": [[0.5, "NaN"]]}}),
        ("uint8", {"scalar_map": {"decode": [[0, True]]}}),
    ],
)
def test_what_does_not_fit_the_types_is_an_error_at_open(data_type, members):
    with pytest.raises(MetadataError, match="cast_value"):
        codec(data_type, **members).resolve(ChunkSpec((2,), np.dtype("f8"), np.float64(0)))


def test_one_can_be_made_from_a_data_type():
    assert CastValueCodec(codec("uint8").data_type) == codec("uint8")
