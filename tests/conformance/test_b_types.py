"""B.4 and B.5: data types and fill values of the draft."""

import json

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import without
from tests.drafts import DATETIME, STRING, STRUCT, array, codec, stored
from zarrdask.errors import MetadataError, UnsupportedError

DRAFT = {"zarr_format": "v3-draft"}
CORE = {
    "bool": "|b1",
    "int8": "|i1",
    "int16": "<i2",
    "int32": "<i4",
    "uint8": "|u1",
    "uint16": "<u2",
    "uint32": "<u4",
    "float16": "<f2",
    "float32": "<f4",
    "float64": "<f8",
    "complex64": "<c8",
    "complex128": "<c16",
}
FILLS = {"bool": True, "float32": 1.5, "complex64": [1.5, -2.0]}


def opened(document, chunks=None):
    return zarrdask.open_array(stored(document, chunks), "a")


def made(dtype, fill_value=None):
    """Return the document of a new array."""
    store = {}
    options = {"shape": (4,), "dtype": dtype, "chunks": 2, "compressors": []}
    zarrdask.create_array(store, "a", fill_value=fill_value, **options, **DRAFT)
    return json.loads(store["meta/a.array.json"])


def filled(data_type, fill_value):
    """Return what an absent chunk reads as."""
    return opened(array(data_type=data_type, fill_value=fill_value))[...][0]


def bits(value):
    return np.asarray(value).tobytes()[::-1].hex()


# ---- B.4


@for_each(("name", "stored_as"), CORE.items())
def test_b34_core_types_go_by_their_names(name, stored_as):
    values = np.array([0, 1, 1, 0], stored_as)
    assert made(stored_as)["data_type"] == name
    fill = FILLS.get(name, [0, 0] if name == "complex128" else 0)
    chunks = {"c0": values[:2].tobytes(), "c1": values[2:].tobytes()}
    found = opened(array(data_type=name, fill_value=fill), chunks)
    assert found.dtype == np.dtype(stored_as)
    assert found[...].tolist() == values.tolist()


@for_each("name", CORE)
def test_b35_elements_are_little_endian(name):
    store = {}
    z = zarrdask.create_array(store, "a", shape=3, dtype=name, chunks=3, compressors=[], **DRAFT)
    values = np.array([0, 1, 1], CORE[name])
    z[...] = values
    assert store["data/a/c0"] == values.tobytes()
    assert "codecs" not in json.loads(store["meta/a.array.json"])


def test_b35_a_truth_value_is_a_byte_and_a_complex_number_two_floats():
    data = b"\x00\x01"
    found = opened(array(data_type="bool", fill_value=False), {"c0": data})
    assert found[:2].tolist() == [False, True]
    data = np.array([1, -2], "<f4").tobytes()
    document = array((1,), (1,), "complex64", [0, 0])
    assert opened(document, {"c0": data})[0] == 1 - 2j


@for_each(("name", "size"), [("r8", 1), ("r16", 2), ("r24", 3), ("r1024", 128)])
def test_b36_raw_types_are_opaque_bytes(name, size):
    data = bytes(i % 256 for i in range(2 * size))
    for codecs in ([], [codec("endian", endian="big")]):
        document = array(data_type=name, fill_value="0x" + "00" * size, codecs=codecs)
        found = opened(document, {"c0": data})
        assert found.dtype == np.dtype(f"V{size}")
        assert found[:2].tobytes() == data
    assert made(f"V{size}")["data_type"] == name


@for_each("name", ["r7", "r0", "r", "r-8", "r8.0", "r12", "R8"])
def test_b36_a_raw_type_has_whole_bytes(name):
    with pytest.raises((MetadataError, UnsupportedError), match=name):
        opened(array(data_type=name, fill_value="0x00"))


EXTENSIONS = {
    "<M8[ns]": (DATETIME, "<M8[ns]"),
    "<m8[D]": (DATETIME, "<m8[D]"),
    "S3": (STRING, "S3"),
    "<U4": (STRING, "<U4"),
    "<i4,<f8": (STRUCT, [["f0", "<i4"], ["f1", "<f8"]]),
}


@for_each(("dtype", "kind"), EXTENSIONS.items())
def test_b37_datetime_string_and_struct_are_written_as_their_drafts_say(dtype, kind):
    extension, spelled = kind
    written = made(dtype)["data_type"]
    assert (written["extension"], written["type"]) == (extension, spelled)
    values = np.array([b"abcdefghijklmnopqrstuvwxyzabcdef"] * 2, "S32")
    values = np.frombuffer(values.tobytes()[: 2 * np.dtype(dtype).itemsize], dtype)
    if np.dtype(dtype).kind == "U":
        values = np.array(["ab", "äöüß"], dtype)
    found = opened(
        array((2,), (2,), written, None) | {"fill_value": made(dtype)["fill_value"]},
        {"c0": values.tobytes()},
    )
    assert found.dtype == np.dtype(dtype)
    assert found[...].tobytes() == values.tobytes()


@pytest.mark.parametrize("dtype", [">M8[s]", ">m8[ns]", ">U2"])
def test_b37_the_type_gives_the_byte_order(dtype):
    values = np.array(["2020", "21"], "U4").astype("U2" if "U" in dtype else "U4")
    values = (values if "U" in dtype else np.array([5, 6], "i8")).astype(np.dtype(dtype))
    extension = STRING if "U" in dtype else DATETIME
    fill = "" if "U" in dtype else 0
    kind = {"extension": extension, "type": dtype}
    store = stored(array((2,), (2,), kind, fill), {"c0": values.tobytes()})
    found = zarrdask.open_array(store, "a", mode="r+")
    assert found[...].tolist() == values.tolist()
    found.attrs["x"] = 1
    assert json.loads(store["meta/a.array.json"])["data_type"]["type"] == dtype
    found[0] = found[1]
    assert store["data/a/c0"] == values[[1, 1]].tobytes()


@for_each(
    ("extension", "kind"),
    [
        (DATETIME, "M8[ns]"),
        (DATETIME, "<M8"),
        (DATETIME, "<M8[x]"),
        (DATETIME, "<i8"),
        (DATETIME, 3),
        (STRING, "<M8[s]"),
        (STRING, "U4"),
        (STRING, "S0"),
        (STRING, "S99999999999"),
        (STRUCT, "<i4"),
        (STRUCT, []),
        (STRUCT, [["a"]]),
        (STRUCT, [None]),
        (STRUCT, [[]]),
        (STRUCT, [[""]]),
    ],
)
def test_b37_what_the_extension_has_not_is_an_error(extension, kind):
    with pytest.raises((MetadataError, UnsupportedError), match="data_type"):
        opened(array(data_type={"extension": extension, "type": kind}))


def test_b37_a_struct_may_name_its_fields_types_as_the_core_does():
    kind = {"extension": STRUCT, "type": [["a", "int32"], ["b", [["c", "bool"]]]]}
    found = opened(array(data_type=kind, fill_value="AAAAAAA="))
    assert found.dtype == np.dtype([("a", "<i4"), ("b", [("c", "?")])])


# ---- B.5


def test_b38_every_data_type_needs_a_fill_value():
    with pytest.raises(MetadataError, match="fill_value"):
        opened(without(array(), "fill_value"))


@for_each("dtype", [*CORE.values(), "V3", *EXTENSIONS])
def test_b38_null_is_never_written(dtype):
    assert made(dtype)["fill_value"] is not None


@pytest.mark.parametrize("value", [True, False])
def test_b39_a_truth_value_is_true_or_false(value):
    assert filled("bool", value) is np.bool_(value)
    assert made("bool", value)["fill_value"] is value
    for other in (0, 1, "true", "0x01"):
        with pytest.raises(MetadataError, match="fill_value"):
            filled("bool", other)


@for_each(
    ("name", "value"),
    [("int8", -128), ("uint8", 255), ("int64", -(2**63)), ("uint64", 2**64 - 1)],
)
def test_b39_an_integer_is_one_in_range(name, value):
    assert filled(name, value) == value
    assert made(name, value)["fill_value"] == value


@for_each(
    ("name", "text"),
    [
        ("uint8", "1.0"),
        ("uint8", "1e2"),
        ("uint8", "300"),
        ("uint8", "-1"),
        ("int8", "128"),
        ("int32", '"1"'),
        ("int32", '"0x00000001"'),
        ("int32", "true"),
        ("int32", "[1]"),
    ],
)
def test_b39_anything_else_is_an_error(name, text):
    store = stored(array(data_type=name, fill_value="?"))
    store["meta/a.array.json"] = store["meta/a.array.json"].replace(b'"?"', text.encode())
    with pytest.raises(MetadataError, match="fill_value"):
        zarrdask.open_array(store, "a")


@for_each(
    ("name", "found", "expected"),
    [
        ("float64", 1.5, "3ff8000000000000"),
        ("float64", 1, "3ff0000000000000"),
        ("float64", -0.0, "8000000000000000"),
        ("float64", "NaN", "7ff8000000000000"),
        ("float64", "+Infinity", "7ff0000000000000"),
        ("float64", "-Infinity", "fff0000000000000"),
        ("float64", "0x7ff8000000000001", "7ff8000000000001"),
        ("float32", "0x3f800000", "3f800000"),
        ("float32", "0b0" + "1" * 8 + "0" * 22 + "1", "7f800001"),
        ("float16", "0x3c00", "3c00"),
        ("float16", "0b0011110000000000", "3c00"),
    ],
)
def test_b40_a_float_is_a_number_or_says_its_bits(name, found, expected):
    assert bits(filled(name, found)) == expected


@for_each(
    ("name", "found"),
    [
        ("float32", "0x7f8000"),
        ("float32", "0x7f80000000"),
        ("float32", "7f800000"),
        ("float32", "0xgf800000"),
        ("float32", "0b1"),
        ("float32", "0b" + "0" * 33),
        ("float32", "0b" + "2" * 32),
        ("float64", "1.5"),
        ("float64", "nan"),
        ("float64", "Inf"),
        ("float64", True),
        ("float64", [1.0]),
    ],
)
def test_b40_anything_else_is_an_error(name, found):
    with pytest.raises(MetadataError, match="fill_value"):
        filled(name, found)


@for_each(
    ("value", "written"),
    [
        (1.5, 1.5),
        (np.nan, "NaN"),
        (np.inf, "+Infinity"),
        (-np.inf, "-Infinity"),
        (np.array(0x7FF8000000000001, "u8").view("f8")[()], "0x7ff8000000000001"),
    ],
)
def test_b40_they_are_written_in_the_drafts_spelling(value, written):
    document = made("float64", value)
    assert document["fill_value"] == written
    assert bits(filled("float64", document["fill_value"])) == bits(value)


def test_b41_the_parts_of_a_complex_number_may_be_hex_or_binary():
    found = filled("complex64", ["0x3f800000", "0b1" + "0" * 31])
    assert found.tobytes() == np.array([1.0, -0.0], "<f4").tobytes()
    assert made("complex128", complex(1, -np.inf))["fill_value"] == [1.0, "-Infinity"]


@pytest.mark.parametrize("found", ["0x0a0b0c", "0b000010100000101100001100"])
def test_b41_raw_bytes_are_hex_or_binary(found):
    assert filled("r24", found).tobytes() == b"\x0a\x0b\x0c"
    assert made("V3", np.void(b"\x0a\x0b\x0c"))["fill_value"] == "0x0a0b0c"


@for_each("found", ["0x0a0b", "0x0a0b0c0d", "0b0", "0a0b0c", "CgsM", 3, True])
def test_b41_of_their_exact_length(found):
    with pytest.raises(MetadataError, match="fill_value"):
        filled("r24", found)


@for_each(
    ("dtype", "value", "written"),
    [
        ("M8[s]", np.datetime64(5, "s"), 5),
        ("M8[s]", np.datetime64("NaT", "s"), -(2**63)),
        ("m8[ns]", np.timedelta64(-7, "ns"), -7),
        ("S3", b"ab", "YWIA"),
        ("U4", "äb", "äb"),
    ],
)
def test_b42_an_extension_type_has_its_own_fill_values(dtype, value, written):
    document = made(dtype, value)
    assert document["fill_value"] == written
    found = filled(document["data_type"], written)
    assert found == value or (np.isnat(found) and np.isnat(value))


@for_each("dtype", ["?", "i4", "f8", "c8", "V2", "M8[s]", "S2", "U2"])
def test_b43_the_default_is_written_down(dtype):
    document = made(dtype)
    assert "fill_value" in document
    values = filled(document["data_type"], document["fill_value"])
    assert values == np.zeros((), dtype)[()]


def test_b44_an_absent_chunk_reads_as_the_fill_value():
    found = opened(array((6,), (2,), "int16", -3), {"c1": np.array([1, 2], "<i2").tobytes()})
    assert found[...].tolist() == [-3, -3, 1, 2, -3, -3]
    assert zarrdask.from_zarr(found).compute().tolist() == [-3, -3, 1, 2, -3, -3]
