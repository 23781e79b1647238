"""Structured data types."""

import base64

import numpy as np
import pytest

from tests.covering import for_each
from tests.documents import same
from tests.formats.dtypes.contract import check_fills, check_metadata
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.dtypes.ml import dtype_named
from zarrdask.formats.dtypes.registry import find_data_type, of_dtype, parse_data_type, portable


def struct(*fields):
    listed = [{"name": name, "data_type": data_type} for name, data_type in fields]
    return {"name": "struct", "configuration": {"fields": listed}}


def structured(*fields):
    return {"name": "structured", "configuration": {"fields": [list(field) for field in fields]}}


POINT = struct(("x", "float32"), ("y", "float32"))
TIME = {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}
TEXT = {"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}
RAW = {"name": "raw_bytes", "configuration": {"length_bytes": 2}}


@for_each(
    ("document", "dtype"),
    [
        (POINT, [("x", "f4"), ("y", "f4")]),
        (struct(("id", "int32"), ("flags", "uint8"), ("value", "float64")), "i4,u1,f8"),
        (
            struct(("timestamp", TIME), ("value", "float32")),
            [("timestamp", "M8[s]"), ("value", "f4")],
        ),
        (
            struct(("point", POINT), ("value", "float64")),
            [("point", [("x", "f4"), ("y", "f4")]), ("value", "f8")],
        ),
        (
            struct(("r", "r24"), ("name", TEXT), ("b", RAW)),
            [("r", "V3"), ("name", "U2"), ("b", "V2")],
        ),
        (struct(("c", "complex64"), ("t", "bool")), [("c", "c8"), ("t", "?")]),
        (struct(("é ü", "int8")), [("é ü", "i1")]),
    ],
)
def test_fields_are_packed_in_their_order(document, dtype):
    data_type = parse_data_type(document)
    expected = np.dtype(dtype)
    assert [dtype[0] for dtype in data_type.dtype.fields.values()] == [
        dtype[0] for dtype in expected.fields.values()
    ]
    assert data_type.dtype.itemsize == expected.itemsize
    assert data_type.to_json() == document
    check_metadata(data_type)
    check_fills(data_type)


def test_fields_may_be_of_narrow_types():
    document = struct(
        ("a", "bfloat16"), ("b", "int4"), ("c", "complex_float8_e5m2"), ("d", "float6_e2m3fn")
    )
    data_type = parse_data_type(document)
    assert data_type.dtype.itemsize == 2 + 1 + 2 + 1
    assert data_type.dtype["b"] == dtype_named("int4")
    assert of_dtype(data_type.dtype) == data_type
    value = data_type.parse_fill({"a": "0x7fc1", "b": -8, "c": [1, "NaN"], "d": -0.0})
    assert value.tobytes().hex() == "c17f" + "08" + "3c7e" + "20"
    check_metadata(data_type)
    check_fills(data_type, value)


@pytest.mark.parametrize("shorthand", ["int16", {"name": "int16"}])
def test_a_fields_type_is_a_name_or_an_object(shorthand):
    assert parse_data_type(struct(("a", shorthand))) == of_dtype(np.dtype([("a", "i2")]))


BAD = [
    [],
    None,
    {"x": "int8"},
    ["x"],
    [["x", "int8"]],
    [{"name": "x"}],
    [{"data_type": "int8"}],
    [{"name": "x", "data_type": "int8", "offset": 0}],
    [{"name": "", "data_type": "int8"}],
    [{"name": 1, "data_type": "int8"}],
    [{"name": ["x"], "data_type": "int8"}],
    [{"name": "x", "data_type": "int8"}, {"name": "x", "data_type": "int8"}],
    [{"name": "x", "data_type": "string"}],
    [{"name": "x", "data_type": "bytes"}],
    [{"name": "x", "data_type": struct(("y", "string"))}],
    [{"name": "x", "data_type": struct()}],
    [{"name": "x", "data_type": None}],
]


@for_each("fields", BAD)
def test_wrong_fields_are_an_error(fields):
    with pytest.raises(MetadataError, match="data_type"):
        parse_data_type({"name": "struct", "configuration": {"fields": fields}})


@pytest.mark.parametrize("configuration", [{}, {"fields": [], "align": True}, {"names": ["x"]}])
def test_the_configuration_is_the_fields(configuration):
    with pytest.raises(MetadataError, match="struct"):
        parse_data_type({"name": "struct", "configuration": configuration})


def test_an_unknown_type_of_a_field_is_named():
    with pytest.raises(UnsupportedError, match="optional"):
        parse_data_type(struct(("x", "optional")))


def test_two_structs_may_have_the_same_names_within():
    data_type = parse_data_type(struct(("a", POINT), ("b", POINT)))
    value = data_type.parse_fill({"a": {"x": 1, "y": 2}, "b": {"x": 3, "y": 4}})
    assert value.tolist() == ((1.0, 2.0), (3.0, 4.0))


# --------------------------------------------------------------------------------------------
# Fill values


def test_a_fill_value_is_an_object_with_every_field():
    data_type = parse_data_type(struct(("point", POINT), ("value", "float64"), ("when", TIME)))
    result = {"point": {"x": "0x7fc00001", "y": -0.0}, "value": "-Infinity", "when": "NaT"}
    value = data_type.parse_fill(result)
    assert value.tobytes().hex() == "0100c07f" + "00000080" + "000000000000f0ff" + "00" * 7 + "80"
    assert data_type.render_fill(value) == result
    check_fills(data_type, value)


@for_each(
    "value",
    [
        {"x": 1},
        {},
        {"x": 1, "y": 2, "z": 3},
        {"x": 1, "y": None},
        {"x": 1, "y": "one"},
        {"x": 1, "y": 1e39},
        [1, 2],
        0,
        None,
        "AAAAAAAAAAA=",
    ],
)
def test_other_fill_values_are_an_error(value):
    with pytest.raises(MetadataError, match="fill_value"):
        parse_data_type(POINT).parse_fill(value)


@pytest.mark.parametrize(
    "value", [(1, 2.5), {"y": 2.5, "x": 1}, np.array((1, 2.5), [("x", "i8"), ("y", "f8")])[()]]
)
def test_a_users_fill_value_is_a_tuple_a_dict_or_a_scalar(value):
    data_type = find_data_type([("x", "u1"), ("y", "f4")])
    assert data_type.render_fill(data_type.cast(value)) == {"x": 1, "y": 2.5}


@for_each("value", [(1,), (1, 2, 3), (256, 0), (1.5, 0), (1, 1e39), {"x": 1}, {"x": 1, "z": 1}])
def test_a_users_fill_value_has_to_fit_field_by_field(value):
    with pytest.raises(MetadataError):
        find_data_type([("x", "u1"), ("y", "f4")]).cast(value)


def test_zero_is_zero_in_all_fields():
    data_type = find_data_type([("x", "u1"), ("y", [("z", "f4")])])
    assert data_type.cast(0) == data_type.default


# --------------------------------------------------------------------------------------------
# From NumPy


def test_gaps_are_closed():
    aligned = np.dtype([("a", "u1"), ("b", [("c", "i2"), ("d", "f8")])], align=True)
    data_type = portable(find_data_type(aligned))
    assert data_type.dtype.itemsize == 1 + 2 + 8
    assert data_type.dtype == np.dtype([("a", "u1"), ("b", [("c", "i2"), ("d", "f8")])])
    assert data_type.to_json()["name"] == "struct"


def test_fields_are_in_the_native_order():
    data_type = portable(
        find_data_type(np.dtype([("a", ">i2"), ("b", [("c", "<f4"), ("d", ">f8")])]))
    )
    assert data_type.dtype == np.dtype([("a", "i2"), ("b", [("c", "f4"), ("d", "f8")])])


@for_each(
    "dtype", [[("a", "i4", (2,))], [("a", "O")], [("a", "g")], [("a", [("b", "u1", (1, 2))])]]
)
def test_fields_that_v3_has_no_type_for_are_refused(dtype):
    with pytest.raises(UnsupportedError, match="Zarr v3 has no such data type"):
        portable(find_data_type(np.dtype(dtype))).to_json()


# --------------------------------------------------------------------------------------------
# As it once was


def test_the_older_form_is_read_and_never_written():
    old = structured(("a", "uint8"), ("b", structured(("c", "int64"), ("t", TIME))))
    data_type = parse_data_type(old)
    assert data_type.dtype == np.dtype([("a", "u1"), ("b", [("c", "i8"), ("t", "M8[s]")])])
    assert data_type.to_json() == struct(("a", "uint8"), ("b", struct(("c", "int64"), ("t", TIME))))


def test_the_older_form_has_base64_as_its_fill_value():
    data_type = parse_data_type(structured(("a", "uint8"), ("b", "int16")))
    value = data_type.parse_fill(base64.b64encode(b"\x01\x02\x03").decode())
    same(np.asarray(value), np.array((1, 0x0302), data_type.dtype))
    assert data_type.parse_fill({"a": 1, "b": 0x0302}) == value
    assert data_type.render_fill(value) == {"a": 1, "b": 0x0302}
    check_fills(data_type, value)


@for_each("value", ["AAAA" * 2, "AA==", "?", 0, None, [1, 2]])
def test_the_older_form_has_no_other_fill_value(value):
    with pytest.raises(MetadataError, match="fill_value"):
        parse_data_type(structured(("a", "uint8"), ("b", "int16"))).parse_fill(value)


@for_each(
    "fields", [[], [["a"]], [["a", "int8", [2]]], [["", "int8"]], [["a", "string"]], ["a"], None]
)
def test_wrong_fields_of_the_older_form_are_an_error(fields):
    with pytest.raises(MetadataError):
        parse_data_type({"name": "structured", "configuration": {"fields": fields}})


def test_fields_that_no_element_could_hold_together_are_an_error():
    wide = {"name": "raw_bytes", "configuration": {"length_bytes": 2**26}}
    fields = [{"name": name, "data_type": wide} for name in "ab"]
    with pytest.raises(UnsupportedError, match=f"data_type struct.*{2**27} bytes.*{2**26}"):
        parse_data_type({"name": "struct", "configuration": {"fields": fields}})


def test_a_fill_value_of_a_structured_type_is_text_where_a_field_is():
    text = {"name": "fixed_length_utf32", "configuration": {"length_bytes": 4}}
    data_type = parse_data_type({"name": "structured", "configuration": {"fields": [["a", text]]}})
    assert data_type.parse_fill("YQAAAA==")["a"] == "a"
    with pytest.raises(MetadataError, match="fill_value"):
        data_type.parse_fill("/////w==")
