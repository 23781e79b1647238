"""Conformance, final v3: data types and fill values."""

import json
import struct
from itertools import product

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import BIG, LITTLE, same, sharding, stored, v3
from zarrdask.formats.codecs.registry import CODECS
from zarrdask.formats.dtypes.complex_pairs import NAMES as PAIRS
from zarrdask.formats.dtypes.ml import BITS, dtype_named
from zarrdask.formats.dtypes.registry import DATA_TYPES
from zarrdask.formats.grids.keys import KEY_ENCODINGS

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
CORE = ("bool", *INTEGERS, *FLOATS, "complex64", "complex128")
SECONDS = {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}
BYTES = {"name": "bytes"}


def opened(data_type, fill_value, data=None, codecs=(LITTLE,), size=2, *, strict=None):
    """Open an array of one chunk, as other software would have stored it."""
    document = v3((size,), (size,), data_type, fill_value, codecs)
    store = stored(document, {} if data is None else {"c/0": data})
    return zarrdask.open_array(store, strict=strict)


def rewritten(data_type, fill_value, codecs=(LITTLE,)):
    """Return an array's document after a change of its attributes."""
    store = stored(v3((2,), (2,), data_type, fill_value, codecs))
    zarrdask.open_array(store, mode="r+").attrs["changed"] = True
    return json.loads(store["zarr.json"])


def bits(scalar):
    """Return a scalar's bytes, most significant first, in hex."""
    value = np.asarray(scalar)
    return value.astype(value.dtype.newbyteorder(">")).tobytes().hex()


# --------------------------------------------------------------------------------------------
# What is known


@for_each("data_type", [*INTEGERS, "float32", "float64", "complex64", "complex128", "r8", "r4096"])
def test_c26_the_data_types_of_zep_9_are_known(data_type):
    fill = [0] * (int(data_type[1:]) // 8) if data_type[0] == "r" else 0
    fill = [0, 0] if data_type.startswith("complex") else fill
    z = opened(data_type, fill)
    assert z.metadata.data_type.to_json() == data_type


def test_c26_the_codecs_and_key_encodings_of_zep_9_are_known():
    assert {"bytes", "transpose"} <= set(CODECS.names())
    assert {"default", "v2"} <= set(KEY_ENCODINGS.names())


@for_each("data_type", CORE)
def test_c27_the_data_types_of_core_31_are_known(data_type):
    assert data_type in DATA_TYPES.names()
    z = zarrdask.create_array({}, shape=3, dtype=data_type)
    assert z.metadata.data_type.to_json() == data_type


def test_c27_the_codecs_of_core_31_are_known():
    expected = {"blosc", "bytes", "crc32c", "gzip", "sharding_indexed", "transpose"}
    assert expected <= set(CODECS.names())


def test_c27_the_grid_and_the_key_encodings_of_core_31_are_known():
    for name, key in (("default", "c/0"), ("v2", "0")):
        document = v3((2,), (2,), "uint8", 0, [BYTES], chunk_key_encoding={"name": name})
        z = zarrdask.open_array({**stored(document), key: b"\1\2"})
        assert z[...].tolist() == [1, 2]


@pytest.mark.parametrize("optional", ["float16"])
def test_c30_the_optional_core_type_is_there(optional):
    z = opened(optional, 0, struct.pack("<2e", 1.5, -0.25))
    same(z[...], np.array([1.5, -0.25], "f2"))


@for_each(
    ("data_type", "form"),
    [
        ("bool", "?"),
        *zip(INTEGERS, "bhiqBHIQ", strict=True),
        *zip(FLOATS, "efd", strict=True),
    ],
)
def test_c30_core_numbers_are_stored_in_the_order_of_the_bytes_codec(data_type, form):
    values = [True, False] if form == "?" else [1, 2**7 - 1]
    for codec, order in ((LITTLE, "<"), (BIG, ">")):
        z = opened(
            data_type, False if form == "?" else 0, struct.pack(f"{order}2{form}", *values), [codec]
        )
        same(z[...], np.array(values, data_type))


@pytest.mark.parametrize(("data_type", "form"), [("complex64", "f"), ("complex128", "d")])
def test_c30_a_complex_number_is_its_real_and_then_its_imaginary_part(data_type, form):
    for codec, order in ((LITTLE, "<"), (BIG, ">")):
        data = struct.pack(f"{order}4{form}", 1, 2, 3, -4)
        same(opened(data_type, [0, 0], data, [codec])[...], np.array([1 + 2j, 3 - 4j], data_type))


@pytest.mark.parametrize("codec", [BYTES, LITTLE, BIG])
def test_c30_raw_bytes_have_no_order(codec):
    z = opened("r24", [0, 0, 0], b"abcdef", [codec])
    assert [item.tobytes() for item in z[...]] == [b"abc", b"def"]


# --------------------------------------------------------------------------------------------
# Fill values of the core types


@pytest.mark.parametrize("value", [True, False])
def test_c31_a_boolean_fill_value_is_true_or_false(value):
    assert opened("bool", value, codecs=[BYTES])[...].tolist() == [value, value]
    assert rewritten("bool", value, [BYTES])["fill_value"] is value


@for_each(
    ("data_type", "value"),
    [
        *(
            (name, -(2 ** (8 * size - 1)))
            for name, size in zip(INTEGERS[:4], (1, 2, 4, 8), strict=True)
        ),
        *(
            (name, 2 ** (8 * size) - 1)
            for name, size in zip(INTEGERS[4:], (1, 2, 4, 8), strict=True)
        ),
        ("uint64", 2**53 + 1),
    ],
)
def test_c31_an_integer_fill_value_is_exact(data_type, value):
    assert int(opened(data_type, value)[0]) == value
    found = rewritten(data_type, value)["fill_value"]
    assert (type(found), found) == (int, value)


@for_each(
    ("data_type", "value"),
    [
        ("bool", "true"),
        ("bool", None),
        ("uint8", 256),
        ("uint8", -1),
        ("int64", 2**63),
        ("uint64", 2**64),
        ("int32", 1.0),
        ("int32", 1e2),
        ("int32", "1"),
        ("int32", True),
        ("int32", None),
    ],
)
def test_c31_other_fill_values_are_an_error(data_type, value):
    with pytest.raises(zarrdask.errors.MetadataError, match="fill_value"):
        opened(data_type, value)


@for_each(
    ("data_type", "value", "expected"),
    [
        ("float32", 1, "3f800000"),
        ("float32", 0.1, "3dcccccd"),
        # Half way between two numbers: the even one.
        ("float32", 1 + 2**-24, "3f800000"),
        ("float32", 1 + 3 * 2**-24, "3f800002"),
        ("float32", -0.0, "80000000"),
        ("float32", "Infinity", "7f800000"),
        ("float32", "+Infinity", "7f800000"),
        ("float32", "-Infinity", "ff800000"),
        ("float16", "NaN", "7e00"),
        ("float32", "NaN", "7fc00000"),
        ("float64", "NaN", "7ff8000000000000"),
        ("float16", "0x3c00", "3c00"),
        ("float32", "0x3f800000", "3f800000"),
        ("float32", "0x7fc00001", "7fc00001"),
        ("float32", "0x7f800001", "7f800001"),
        ("float64", "0xfff8000000000abc", "fff8000000000abc"),
    ],
)
def test_c32_a_float_fill_value_is_a_number_a_word_or_a_bit_pattern(data_type, value, expected):
    z = opened(data_type, value)
    assert bits(z.fill_value) == expected
    assert bits(z[...][:1]) == expected


@for_each(
    ("data_type", "value", "expected"),
    [
        ("float32", "0x7fc00000", "NaN"),
        ("float32", "0x7fc00001", "0x7fc00001"),
        ("float32", "0xFFC00000", "0xffc00000"),
        ("float64", "0x7ff8000000000001", "0x7ff8000000000001"),
        ("float16", "0xfe00", "0xfe00"),
        ("float32", "+Infinity", "Infinity"),
        ("float32", "0x3f800000", 1.0),
    ],
)
def test_c32_only_the_canonical_nan_is_written_as_nan(data_type, value, expected):
    assert rewritten(data_type, value)["fill_value"] == expected


@for_each(
    ("data_type", "value"),
    [
        ("float32", "0x7fc0"),
        ("float32", "0x7fc000000"),
        ("float64", "0x7fc00000"),
        ("float32", "nan"),
        ("float32", "inf"),
        ("float32", "1.0"),
        ("float32", True),
        ("float32", None),
        ("float32", 1e39),
        ("float16", 65536),
    ],
)
def test_c32_other_fill_values_are_an_error(data_type, value):
    with pytest.raises(zarrdask.errors.MetadataError, match="fill_value"):
        opened(data_type, value, strict=True)


@for_each(
    ("data_type", "value", "expected"),
    [
        ("float16", 2049, 2048),
        ("float16", 2051, 2052),
        ("float16", 2049.0000001, 2050),
        ("float16", 65519, 65504),
        ("bfloat16", 257, 256),
        ("bfloat16", 259, 260),
        ("float32", 16777217, 16777216),
        ("float32", 16777219, 16777220),
        ("float32", 0.1, np.float32(0.1)),
        ("float64", 9007199254740993, 9007199254740992),
        ("float64", 9007199254740995, 9007199254740996),
    ],
)
def test_c85_a_number_between_two_values_becomes_the_nearest_or_the_even_one(
    data_type, value, expected
):
    z = opened(data_type, value)
    assert z.fill_value == expected
    assert z[...][0] == expected


@for_each("complex_type, value", [("complex64", [16777217, 16777219])])
def test_c85_both_parts_of_a_complex_number_are_rounded(complex_type, value):
    assert opened(complex_type, value).fill_value == 16777216 + 16777220j


@for_each(
    ("data_type", "value", "expected"),
    [
        ("complex64", [1, -2.5], "0000803f000020c0"),
        ("complex64", ["NaN", "-Infinity"], "0000c07f000080ff"),
        ("complex64", ["0x7fc00001", -0.0], "0100c07f00000080"),
        ("complex128", ["Infinity", 0.5], "000000000000f07f000000000000e03f"),
    ],
)
def test_c33_a_complex_fill_value_is_a_pair(data_type, value, expected):
    z = opened(data_type, value)
    assert z[...][:1].tobytes().hex() == expected
    assert rewritten(data_type, value)["fill_value"] == value


@for_each("value", [1, "NaN", [1], [1, 2, 3], [1, None], {"re": 1, "im": 2}])
def test_c33_what_is_no_pair_is_an_error(value):
    with pytest.raises(zarrdask.errors.MetadataError, match="fill_value"):
        opened("complex64", value)


def test_c34_a_raw_fill_value_is_a_list_of_its_bytes():
    z = opened("r24", [1, 0, 255], codecs=[BYTES])
    assert [item.tobytes() for item in z[...]] == [b"\x01\x00\xff"] * 2
    assert rewritten("r24", [1, 0, 255], [BYTES])["fill_value"] == [1, 0, 255]


@for_each("value", [[1, 2], [1, 2, 3, 4], [1, 2, 256], [1, 2, -1], "AQID", 0, None])
def test_c34_other_raw_fill_values_are_an_error(value):
    with pytest.raises(zarrdask.errors.MetadataError, match="fill_value"):
        opened("r24", value, codecs=[BYTES])


def test_c34_raw_bytes_as_zarr_python_calls_them_keep_their_name():
    data_type = {"name": "raw_bytes", "configuration": {"length_bytes": 3}}
    z = opened(data_type, "AQID", b"abcdef", [BYTES])
    assert [item.tobytes() for item in z[...]] == [b"abc", b"def"]
    assert z.fill_value.tobytes() == b"\1\2\3"
    document = rewritten(data_type, "AQID", [BYTES])
    assert (document["data_type"], document["fill_value"]) == (data_type, "AQID")


@pytest.mark.parametrize("value", [0.1, 0.0999755859375, "0x2e66"])
def test_c35_a_float16_fill_value_is_the_nearest_there_is(value):
    z = opened("float16", value)
    assert z[...].tolist() == [0.0999755859375] * 2
    assert z.metadata == opened("float16", 0.1).metadata


# --------------------------------------------------------------------------------------------
# The registered data types


@pytest.mark.parametrize(
    "data_type", ["optional", {"name": "optional", "configuration": {"name": "int8"}}, "zarrs.vlen"]
)
def test_c67_an_unregistered_data_type_is_an_error_that_names_it(data_type):
    with pytest.raises(
        zarrdask.errors.UnsupportedError, match="data_type: unknown data type"
    ) as caught:
        opened(data_type, None)
    assert caught.value.found in ("optional", "zarrs.vlen")


@pytest.mark.parametrize("name", ["complex_float32", "complex_float64"])
def test_c67_an_alias_of_a_core_type_is_that_type(name):
    core = {"complex_float32": "complex64", "complex_float64": "complex128"}[name]
    assert opened(name, [1, 2]).metadata == opened(core, [1, 2]).metadata
    assert rewritten(name, [1, 2])["data_type"] == core


def patterns(name):
    """Return all elements of a narrow type, and their bits."""
    unsigned = np.arange(2 ** BITS[name], dtype="<u2" if BITS[name] == 16 else "u1")
    return unsigned.view(dtype_named(name)), unsigned.tobytes()


@for_each("name", BITS)
def test_c68_every_narrow_number_is_stored_as_its_bits(name):
    values, expected = patterns(name)
    store, size = {}, len(values)
    z = zarrdask.create_array(store, shape=size, chunks=size, dtype=name, compressors=[])
    z[...] = values
    # Of a byte the lower bits mean something.
    mask = 2 ** min(BITS[name], 8) - 1
    assert bytes(n & mask for n in store["c/0"]) == expected
    assert zarrdask.open_array(store)[...].tobytes() == values.tobytes()


@for_each(
    ("name", "expected"),
    [("int2", "0001feff"), ("int4", "0001feff"), ("uint2", "00010203"), ("uint4", "00010203")],
)
def test_c68_narrow_integers_are_written_with_their_sign_extended(name, expected):
    values = [0, 1, -2, -1] if name[0] == "i" else [0, 1, 2, 3]
    store = {}
    z = zarrdask.create_array(store, shape=4, chunks=4, dtype=name, compressors=[])
    z[...] = np.array(values).astype(z.dtype)
    assert store["c/0"].hex() == expected
    assert z[...].astype(int).tolist() == values


@for_each(
    ("name", "stored_bytes", "values"),
    [
        ("int2", "fd06", [1, -2]),
        ("uint2", "fdfe", [1, 2]),
        ("int4", "f71f", [7, -1]),
        ("uint4", "f71f", [7, 15]),
        ("float4_e2m1fn", "f28f", [1.0, -6.0]),
        ("float6_e2m3fn", "c87f", [1.0, -7.5]),
        ("float6_e3m2fn", "cc7f", [1.0, -28.0]),
    ],
)
@for_each("codecs", [[BYTES], [BYTES, {"name": "crc32c"}], [sharding((2,), [BYTES])]])
def test_c68_the_upper_bits_of_a_narrow_number_are_ignored(name, stored_bytes, values, codecs):
    written = zarrdask.open_array(stored(v3((2,), (2,), "uint8", 255, codecs)), mode="r+")
    written[...] = np.frombuffer(bytes.fromhex(stored_bytes), "u1")
    z = opened(name, 0, written.store.get("c/0"), codecs)
    assert z[...].astype("f8").tolist() == values
    assert float(z[1]) == values[1]


@for_each(
    ("name", "pattern"),
    [
        ("bfloat16", "0x7fc0"),
        ("float8_e3m4", "0x78"),
        ("float8_e4m3", "0x7c"),
        ("float8_e5m2", "0x7e"),
        ("float8_e4m3fnuz", "0x80"),
        ("float8_e5m2fnuz", "0x80"),
        ("float8_e4m3b11fnuz", "0x80"),
        ("float8_e8m0fnu", "0xff"),
    ],
)
def test_c68_nan_is_the_one_pattern_that_the_registry_gives(name, pattern):
    z = opened(name, "NaN")
    assert bits(z.fill_value) == pattern.removeprefix("0x")
    assert rewritten(name, pattern)["fill_value"] == "NaN"


@for_each("name", BITS)
def test_c68_every_narrow_number_can_be_a_fill_value(name):
    values, _ = patterns(name)
    for value in values[:: max(len(values) // 64, 1)]:
        z = zarrdask.create_array({}, shape=2, dtype=name, fill_value=value)
        again = zarrdask.open_array(z.store)
        assert again.fill_value.tobytes() == again[...][:1].tobytes() == value.tobytes()


@for_each(
    ("name", "value"),
    [
        ("int2", 2),
        ("int2", -3),
        ("uint2", 4),
        ("int4", 8),
        ("int4", -9),
        ("uint4", 16),
        ("uint4", -1),
        ("bfloat16", 1e39),
        ("float8_e4m3", 241),
        ("float8_e4m3fnuz", "Infinity"),
        ("float8_e5m2fnuz", "-Infinity"),
        ("float8_e4m3b11fnuz", "Infinity"),
        ("float8_e8m0fnu", 0),
        ("float8_e8m0fnu", -1),
        ("float8_e8m0fnu", "Infinity"),
        ("float6_e2m3fn", "NaN"),
        ("float6_e3m2fn", 32),
        ("float4_e2m1fn", "Infinity"),
        ("float4_e2m1fn", 8),
        ("complex_float4_e2m1fn", [0, "NaN"]),
        ("complex_bfloat16", 1),
        (SECONDS, 2**63),
        (SECONDS, "2020-01-01"),
        ({"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}, "abc"),
        ({"name": "null_terminated_bytes", "configuration": {"length_bytes": 2}}, "AQID"),
        ({"name": "raw_bytes", "configuration": {"length_bytes": 2}}, "AQ=="),
        (
            {"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int4"}]}},
            {"a": 8},
        ),
        ({"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int4"}]}}, {}),
    ],
)
def test_c68_a_fill_value_that_the_type_does_not_have_is_an_error(name, value):
    with pytest.raises(zarrdask.errors.MetadataError, match="fill_value"):
        opened(name, value)


@for_each("name", PAIRS)
def test_c68_narrow_complex_numbers_are_their_real_and_then_their_imaginary_parts(name):
    z = zarrdask.create_array({}, shape=2, chunks=2, dtype=name, compressors=[])
    part = z.dtype["re"]
    values = np.zeros(2, z.dtype)
    values["re"], values["im"] = np.array([1, 2]).astype(part), np.array([4, 1]).astype(part)
    z[...] = values
    again = zarrdask.open_array(z.store)
    assert again[...].tobytes() == values.tobytes()
    data = bytes(z.store.get("c/0"))
    assert data == np.array([1, 4, 2, 1]).astype(part).tobytes()
    assert json.loads(bytes(z.store.get("zarr.json")))["data_type"] == name


def test_c68_the_byte_order_is_that_of_the_bytes_codec():
    for codec, data in ((LITTLE, "803f00c0"), (BIG, "3f80c000")):
        z = opened("bfloat16", 0, bytes.fromhex(data), [codec])
        assert z[...].astype("f8").tolist() == [1.0, -2.0]
        z = opened("complex_bfloat16", [0, 0], bytes.fromhex(data), [codec], size=1)
        assert (float(z[0]["re"]), float(z[0]["im"])) == (1.0, -2.0)
    with pytest.raises(zarrdask.errors.MetadataError, match="byte order"):
        opened("bfloat16", 0, codecs=[BYTES])


def test_c68_fixed_text_is_code_points_in_the_order_of_the_bytes_codec():
    data_type = {"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}
    for codec, encoding in ((LITTLE, "utf-32-le"), (BIG, "utf-32-be")):
        data = "é\0😀b".encode(encoding)
        same(opened(data_type, "x", data, [codec])[...], np.array(["é", "😀b"]))
    assert opened(data_type, "😀b")[...].tolist() == ["😀b"] * 2
    assert rewritten(data_type, "😀")["fill_value"] == "😀"
    with pytest.raises(zarrdask.errors.MetadataError, match="byte order"):
        opened(data_type, "", codecs=[BYTES])


def test_c68_fixed_bytes_as_zarr_python_writes_them():
    data_type = {"name": "null_terminated_bytes", "configuration": {"length_bytes": 3}}
    z = opened(data_type, "eA==", b"ab\0cde", [BYTES])
    assert z[...].tolist() == [b"ab", b"cde"]
    assert z.fill_value == b"x"
    assert rewritten(data_type, "eA==", [BYTES])["data_type"] == data_type


@pytest.mark.parametrize(
    ("data_type", "codec", "values", "fill", "spelled"),
    [
        ("string", "vlen-utf8", ["", "é", "a text"], "none", "none"),
        ("bytes", "vlen-bytes", [b"", b"\0\xff", b"some bytes"], b"\1", "AQ=="),
        ("variable_length_bytes", "vlen-bytes", [b"a", b"", b"bcd"], b"", ""),
    ],
)
def test_c68_text_and_bytes_of_any_length(data_type, codec, values, fill, spelled):
    store = {}
    z = zarrdask.create_array(store, shape=4, chunks=3, dtype=data_type, fill_value=fill)
    z[:3] = np.array([*values], object)
    document = json.loads(store["zarr.json"])
    assert (document["data_type"], document["fill_value"]) == (data_type, spelled)
    assert document["codecs"][0]["name"] == codec
    assert "c/1" not in store
    assert zarrdask.open_array(store)[...].tolist() == [*values, fill]


def test_c68_a_fill_value_of_bytes_may_be_a_list():
    z = opened("bytes", [1, 2], codecs=[{"name": "vlen-bytes"}])
    assert z[...].tolist() == [b"\1\2"] * 2
    assert rewritten("bytes", [1, 2], [{"name": "vlen-bytes"}])["fill_value"] == "AQI="


def test_c68_a_struct_is_its_fields_one_after_another():
    # The example of the registry, and the nested one.
    fields = [("id", "int32"), ("flags", "uint8"), ("value", "float64")]
    z = opened(
        struct_of(*fields),
        {"id": 0, "flags": 0, "value": 0.0},
        struct.pack("<iBd", 1, 2, 3.5),
        size=1,
    )
    assert z[0].tolist() == (1, 2, 3.5)
    point = struct_of(("x", "float32"), ("y", "float32"))
    fill = {"point": {"x": 1.0, "y": 2.0}, "value": 3.14}
    for codec, order in ((LITTLE, "<"), (BIG, ">")):
        data = struct.pack(f"{order}ffd", 1, 2, 3)
        z = opened(struct_of(("point", point), ("value", "float64")), fill, data, [codec], size=1)
        assert z[0].tolist() == ((1.0, 2.0), 3.0)
        assert z.fill_value.tolist() == ((1.0, 2.0), 3.14)
    document = rewritten(struct_of(("point", point), ("value", "float64")), fill)
    assert document["data_type"] == struct_of(("point", point), ("value", "float64"))
    assert document["fill_value"] == fill


def test_c68_a_struct_of_single_bytes_needs_no_byte_order_and_others_do():
    z = opened(struct_of(("a", "uint8"), ("b", "r16")), {"a": 1, "b": [2, 3]}, codecs=[BYTES])
    assert z[0].tobytes() == b"\1\2\3"
    with pytest.raises(zarrdask.errors.MetadataError, match="byte order"):
        opened(struct_of(("a", "uint16")), {"a": 1}, codecs=[BYTES])


# --------------------------------------------------------------------------------------------
# Structs


def struct_of(*fields):
    listed = [{"name": name, "data_type": data_type} for name, data_type in fields]
    return {"name": "struct", "configuration": {"fields": listed}}


@for_each(
    "fields",
    [
        [],
        [("a", "int8"), ("a", "int16")],
        [("", "int8")],
        [("a", "string")],
        [("a", "bytes")],
        [("a", struct_of(("b", "string")))],
        [("a", struct_of(("b", "int8"), ("b", "int8")))],
    ],
)
def test_c69_fields_are_named_and_of_a_fixed_size(fields):
    with pytest.raises(zarrdask.errors.MetadataError, match="data_type"):
        opened(struct_of(*fields), {"a": 0})


def test_c69_the_gaps_of_an_aligned_dtype_are_closed():
    aligned = np.dtype([("a", "u1"), ("b", "f8")], align=True)
    store = {}
    z = zarrdask.create_array(store, shape=1, chunks=1, dtype=aligned, compressors=[])
    z[...] = np.array([(1, 2.5)], aligned)
    assert store["c/0"] == struct.pack("<Bd", 1, 2.5)
    assert z[0].tolist() == (1, 2.5)


def test_c69_fields_of_several_elements_are_refused():
    with pytest.raises(zarrdask.errors.UnsupportedError, match="Zarr v3 has no such data type"):
        zarrdask.create_array({}, shape=1, dtype=[("a", "i4", (2,))])


STRUCTURED = {
    "name": "structured",
    "configuration": {
        "fields": [
            ["a", "uint8"],
            ["b", {"name": "structured", "configuration": {"fields": [["c", "int16"]]}}],
        ]
    },
}


@pytest.mark.filterwarnings("ignore::zarrdask.errors.ComplianceWarning")
def test_c70_structured_is_read_and_written_as_struct():
    # As zarr-python 3.1 stores it: the order of bytes left out.
    z = opened(STRUCTURED, "AQID", b"\4\5\0\7\0\1", [BYTES])
    assert z[...].tolist() == [(4, (5,)), (7, (256,))]
    assert z.fill_value.tolist() == (1, (0x0302,))
    document = rewritten(STRUCTURED, "AQID", [BYTES])
    assert document["data_type"] == struct_of(("a", "uint8"), ("b", struct_of(("c", "int16"))))
    assert document["fill_value"] == {"a": 1, "b": {"c": 0x0302}}
    assert document["codecs"] == [LITTLE]
    assert "structured" not in json.dumps(document)


@pytest.mark.filterwarnings("ignore::zarrdask.errors.ComplianceWarning")
def test_c70_structured_is_not_written_into_a_new_array():
    z = opened(STRUCTURED, "AQID", b"\4\5\0\7\0\1", [BYTES])
    for dtype in (z.metadata.data_type, z.dtype, STRUCTURED):
        store = {}
        zarrdask.create_array(store, shape=2, dtype=dtype)[...] = z[...]
        assert b"structured" not in store["zarr.json"]
        assert zarrdask.open_array(store)[...].tolist() == z[...].tolist()


# --------------------------------------------------------------------------------------------
# Times

UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "generic")


@for_each("unit", UNITS)
def test_c71_unit_and_scale_factor_are_kept(unit):
    for name, factor in product(["numpy.datetime64", "numpy.timedelta64"], [1, 25, 2**31 - 1]):
        data_type = {"name": name, "configuration": {"unit": unit, "scale_factor": factor}}
        kind = "M8" if name.endswith("datetime64") else "m8"
        for codec, order in ((LITTLE, "<"), (BIG, ">")):
            z = opened(data_type, "NaT", struct.pack(f"{order}2q", -1, -(2**63)), [codec])
            assert z.dtype == np.dtype(f"{kind}[{factor}{unit}]")
            assert z[...].view("i8").tolist() == [-1, -(2**63)]
            assert np.isnat(z.fill_value)
        document = rewritten(data_type, "NaT")
        assert (document["data_type"], document["fill_value"]) == (data_type, "NaT")


@pytest.mark.parametrize("unit", ["\u03bcs", "\u00b5s"])
def test_c71_both_spellings_of_the_microsecond_are_equal(unit):
    settings = {"unit": unit, "scale_factor": 10}
    z = opened({"name": "numpy.timedelta64", "configuration": settings}, 0)
    settings = {"unit": "us", "scale_factor": 10}
    assert (
        z.metadata == opened({"name": "numpy.timedelta64", "configuration": settings}, 0).metadata
    )
    assert z.dtype == np.dtype("m8[10us]")


@for_each(
    "settings",
    [
        {"unit": "s"},
        {"unit": "s", "scale_factor": 0},
        {"unit": "s", "scale_factor": 2**31},
        {"unit": "S", "scale_factor": 1},
        {"unit": "s", "scale_factor": 1, "epoch": 0},
    ],
)
def test_c71_other_settings_are_an_error(settings):
    with pytest.raises(zarrdask.errors.MetadataError, match=r"numpy\.datetime64"):
        opened({"name": "numpy.datetime64", "configuration": settings}, 0)


def test_c71_not_a_time_is_a_word_or_the_least_integer():
    assert opened(SECONDS, "NaT").metadata == opened(SECONDS, -(2**63)).metadata
