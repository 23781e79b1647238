"""A.3: data types of v2."""

import json
import struct
from itertools import product

import ml_dtypes
import numcodecs
import numpy as np
import pytest

import zarrdask
from tests.conformance.refused import refused
from tests.covering import for_each
from tests.documents import dump, same, stored, v2


def opened(dtype, data, size=None, *, strict=None, **others):
    """Return an array of one chunk that is stored as it is."""
    count = len(data) if size is None else size
    document = v2((count,), (max(count, 1),), dtype, None, **others)
    return zarrdask.open_array(stored(document, {"0": data}), strict=strict)


def written(dtype, values):
    """Return the document's data type and the chunk of an array that we write."""
    store = {}
    z = zarrdask.create_array(
        store, shape=len(values), dtype=dtype, chunks=-1, zarr_format=2, compressors=[]
    )
    z[...] = values
    return json.loads(store[".zarray"])["dtype"], store.get("0")


@for_each(
    "text",
    ["f8", "<|f8", "|f8", "|i4", "|M8[s]", "<f", "float64", "<f8 ", " <f8", "=f8", "<x4", "<"],
)
def test_a19_a_typestr_without_byte_order_kind_or_size_is_an_error(text):
    with pytest.raises(zarrdask.errors.MetadataError, match="dtype"):
        zarrdask.open(stored(v2(dtype=text)))


@for_each(
    ("dtype", "expected"),
    [("f8", "<f8"), (">i4", ">i4"), ("b1", "|b1"), ("S12", "|S12"), ("=u2", np.dtype("u2").str)],
)
def test_a19_a_typestr_is_written_with_its_byte_order(dtype, expected):
    assert written(dtype, np.ones(2, dtype))[0] == expected


ONE_BYTE = [("<u1", "|u1"), (">i1", "|i1"), ("<b1", "|b1"), (">S3", "|S3"), ("<V3", "|V3")]


@for_each(("text", "right"), ONE_BYTE)
def test_a20_a_byte_order_of_one_byte_types_is_read_unless_strict(text, right):
    size = np.dtype(right).itemsize
    found = opened(text, bytes([1, 0, 1])[:size], 1)
    assert found.dtype == np.dtype(right)
    assert found[...].tobytes() == bytes([1, 0, 1])[:size]
    with refused("A-20"):
        opened(text, bytes(size), 1, strict=True)
    assert opened(right, bytes(size), 1, strict=True).dtype == np.dtype(right)


@for_each(("dtype", "right"), ONE_BYTE)
def test_a20_one_byte_types_are_written_with_a_bar(dtype, right):
    assert written(dtype, np.ones(2, dtype))[0] == right


def pack(form, *values):
    return struct.pack(form, *values)


SIMPLE = [
    ("|b1", [True, False], b"\1\0"),
    ("|i1", [-1, 2], b"\xff\2"),
    ("|u1", [255, 1], b"\xff\1"),
    *(
        (
            f"{order}{kind}{size}",
            [3, 2 ** (8 * size - 2)],
            pack(f"{order}2{form}", 3, 2 ** (8 * size - 2)),
        )
        for order in "<>"
        for kind, size, form in (
            *(("i", 2, "h"), ("i", 4, "i"), ("i", 8, "q")),
            *(("u", 2, "H"), ("u", 4, "I"), ("u", 8, "Q")),
        )
    ),
    *(
        (f"{order}f{size}", [1.5, -0.0], pack(f"{order}2{form}", 1.5, -0.0))
        for order in "<>"
        for size, form in ((2, "e"), (4, "f"), (8, "d"))
    ),
    *(
        (f"{order}c{size}", [1.5 - 2j, 3j], pack(f"{order}4{form}", 1.5, -2, 0, 3))
        for order in "<>"
        for size, form in ((8, "f"), (16, "d"))
    ),
    ("|S12", [b"hi", b"twelve bytes"], b"hi\0\0\0\0\0\0\0\0\0\0twelve bytes"),
    ("<U4", ["hé", "\U0001f600"], b"h\0\0\0\xe9\0\0\0" + bytes(8) + b"\0\xf6\1\0" + bytes(12)),
    (">U4", ["hé", "\U0001f600"], b"\0\0\0h\0\0\0\xe9" + bytes(8) + b"\0\1\xf6\0" + bytes(12)),
    ("|V5", [b"\1\2\3\4\5", b"\0\0\0\0\xff"], b"\1\2\3\4\5\0\0\0\0\xff"),
]


def test_a21_the_table_has_all_simple_types():
    texts = "|b1 |i1 |u1 <i2 >i2 <i4 >i4 <i8 >i8 <u2 >u2 <u4 >u4 <u8 >u8 <f2 >f2 <f4 >f4 <f8 >f8"
    texts += " <c8 >c8 <c16 >c16 |S12 <U4 >U4 |V5"
    assert {text for text, _, _ in SIMPLE} == set(texts.split())


@for_each(("text", "values", "data"), SIMPLE)
def test_a21_simple_types_are_read_and_written_byte_by_byte(text, values, data):
    expected = np.array(values, text)
    found = opened(text, data, 2)
    assert found.dtype == np.dtype(text)
    same(found[...], expected)
    assert written(text, expected) == (text, data)


def test_a22_a_boolean_is_one_byte_which_is_0_or_1():
    assert opened("|b1", b"\1\0\1")[...].tolist() == [True, False, True]
    assert written("bool", np.array([False, True, True])) == ("|b1", b"\0\1\1")


@for_each(
    "unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "25s", "10ms"]
)
def test_a23_datetimes_and_timedeltas_carry_their_unit(unit):
    for kind, order in product("Mm", "<>"):
        text = f"{order}{kind}8[{unit}]"
        data = pack(f"{order}2q", 7, -(2**63))
        found = opened(text, data, 2)
        assert np.datetime_data(found.dtype) == np.datetime_data(np.dtype(text))
        assert found[...].view(f"{order}i8").tolist() == [7, -(2**63)]
        assert np.isnat(found[1])
        assert written(text, found[...]) == (text, data)


@pytest.mark.parametrize("micro", ["\u03bc", "\u00b5"])
def test_a23_microseconds_may_have_their_greek_letter(micro):
    assert opened(f"<M8[{micro}s]", bytes(8), 1).dtype == np.dtype("<M8[us]")


@for_each("text", ["<m8", ">m8", "<M8", ">M8"])
def test_a23_a_missing_unit_is_accepted_unless_strict(text):
    store = stored(v2((4,), (2,), text, 5))
    store["0"] = pack(f"{text[0]}2q", 1, 2)
    z = zarrdask.open_array(store, mode="r+")
    assert z[...].view("i8").tolist() == [1, 2, 5, 5]
    assert z.oindex[[0, 3]].view("i8").tolist() == [1, 5]
    assert z.vindex[[1, 2]].view("i8").tolist() == [2, 5]
    assert z[np.array([False, True, True, False])].view("i8").tolist() == [2, 5]
    z.oindex[[1, 2]] = np.array([8, 9]).view(f"{text[1]}8")
    assert store["0"] == pack(f"{text[0]}2q", 1, 8)
    z.resize((6,))
    assert json.loads(store[".zarray"])["dtype"] == text
    with refused("A-23"):
        zarrdask.open_array(store, strict=True)


@for_each(
    ("name", "fill", "values"),
    [("bfloat16", 1.5, [1, 2]), ("float8_e5m2", "Infinity", [1, 2]), ("int4", -3, [1, -2])],
)
def test_a19_names_that_tensorstore_writes_are_accepted_unless_strict(name, fill, values):
    dtype = np.dtype(getattr(ml_dtypes, name))
    store = stored(v2((4,), (2,), name, fill))
    store["0"] = np.array(values, dtype).tobytes()
    z = zarrdask.open_array(store, mode="r+")
    assert z.dtype == dtype
    assert z[...].astype("f4").tolist() == [*values, float(fill), float(fill)]
    z.resize((6,))
    document = json.loads(store[".zarray"])
    assert (document["dtype"], document["fill_value"]) == (name, fill)
    with refused("A-19"):
        zarrdask.open_array(store, strict=True)


@for_each("text", ["<M8[]", "<M8[fortnight]", "<m8[generic]", "<f8[s]"])
def test_a23_an_unknown_unit_is_an_error(text):
    with pytest.raises(zarrdask.errors.MetadataError, match="dtype"):
        zarrdask.open(stored(v2(dtype=text)))


@pytest.mark.parametrize("dtype", ["M8", "m8", [("t", "M8")]])
def test_a23_nothing_is_written_without_a_unit(dtype):
    store = {}
    with pytest.raises(zarrdask.errors.MetadataError, match="unit"):
        zarrdask.create_array(store, shape=1, dtype=dtype, zarr_format=2)
    assert store == {}


RGB = [["r", "|u1"], ["g", "|u1"], ["b", "|u1"]]
SUBARRAY = [["x", "<f4"], ["y", "<f4"], ["z", "<f4", [2, 2]]]
NESTED = [["foo", "<f4"], ["bar", [["baz", "<f4"], ["qux", "<i4"]]]]


def test_a24_structured_types_are_packed_lists_of_fields():
    dtype = np.dtype([("r", "u1"), ("g", "u1"), ("b", "u1")])
    found = opened(RGB, b"\1\2\3\4\5\6", 2)
    assert found.dtype == dtype
    assert found[...].tolist() == [(1, 2, 3), (4, 5, 6)]
    assert written(dtype, found[...]) == (RGB, b"\1\2\3\4\5\6")


def test_a24_fields_have_no_padding_and_their_own_byte_order():
    fields = [["a", "|u1"], ["b", ">i4"], ["c", "|S3"], ["d", "<M8[s]"]]
    data = pack(">Bi", 1, -2) + b"hey" + pack("<q", 5)
    found = opened(fields, data, 1)
    assert found.dtype.itemsize == 16
    assert found[0].tolist()[:3] == (1, -2, b"hey")
    assert written(found.dtype, found[...]) == (fields, data)


def test_a24_padded_types_are_not_written():
    store, padded = {}, np.dtype([("a", "i1"), ("b", "i4")], align=True)
    with pytest.raises(zarrdask.errors.UnsupportedError, match="packed"):
        zarrdask.create_array(store, shape=1, dtype=padded, zarr_format=2)
    assert store == {}


@for_each(
    "fields",
    [
        [["a"]],
        [["", "<i4"]],
        [[1, "<i4"]],
        ["a", "<i4"],
        [["a", "i4"]],
        [["a", "<i4"], ["a", "<i2"]],
    ],
)
def test_a24_what_is_no_list_of_fields_is_an_error(fields):
    with pytest.raises(zarrdask.errors.MetadataError, match="dtype"):
        zarrdask.open(stored(v2(dtype=fields, fill_value=None)))


def test_a25_a_field_may_be_a_subarray():
    data = pack("<6f", 1, 2, 3, 4, 5, 6)
    found = opened(SUBARRAY, data, 1)
    assert found.dtype.itemsize == 24
    x, y, z = found[0].tolist()
    assert (x, y, np.asarray(z).tolist()) == (1, 2, [[3, 4], [5, 6]])
    dtype = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4", (2, 2))])
    assert written(dtype, found[...]) == (SUBARRAY, data)


@for_each("shape", [[-1], [1.5], "2", [[2]], {}])
def test_a25_another_shape_of_a_field_is_an_error(shape):
    with pytest.raises(zarrdask.errors.MetadataError, match="dtype"):
        zarrdask.open(stored(v2(dtype=[["z", "<f4", shape]], fill_value=None)))


def test_a26_a_field_may_be_structured():
    data = pack("<ffi", 1.5, 2.5, 7)
    found = opened(NESTED, data, 1)
    assert found[0].tolist() == (1.5, (2.5, 7))
    dtype = np.dtype([("foo", "<f4"), ("bar", [("baz", "<f4"), ("qux", "<i4")])])
    assert written(dtype, found[...]) == (NESTED, data)


def test_a26_depth_is_unlimited_and_goes_together_with_subarrays():
    fields, data = "<i2", b"\5\0"
    for depth in range(30):
        fields = [[f"f{depth}", fields]]
    found = opened(fields, data, 1)
    assert found[...].tobytes() == data
    assert written(found.dtype, found[...]) == (fields, data)
    fields = [["a", [["b", ">i2", [2]], ["c", "|S1"]], [3]]]
    data = bytes(range(1, 16))
    found = opened(fields, data, 1)
    assert found[...]["a"]["b"].tolist() == [[[0x0102, 0x0304], [0x0607, 0x0809], [0x0B0C, 0x0D0E]]]
    assert written(found.dtype, found[...]) == (fields, data)


OBJECTS = [
    ({"id": "vlen-utf8"}, ["", "hé", "\0"]),
    ({"id": "vlen-bytes"}, [b"", b"\xff\0"]),
    ({"id": "json2"}, ["a", [1, None], {"b": 1.5}]),
    ({"id": "msgpack2"}, ["a", [1, None], {"b": 1.5}]),
    ({"id": "categorize", "labels": ["a", "b"], "dtype": "|O", "astype": "|u1"}, ["b", "a", ""]),
]


@for_each(("codec", "values"), OBJECTS)
def test_a27_objects_are_stored_by_the_first_filter(codec, values):
    chunk = np.empty(len(values), object)
    chunk[:] = values
    data = bytes(numcodecs.get_codec(dict(codec)).encode(chunk))
    found = opened("|O", data, len(values), filters=[codec])
    assert found.dtype == object
    assert found[...].tolist() == values
    store = {}
    z = zarrdask.create_array(
        store, shape=len(values), dtype="O", chunks=-1, zarr_format=2, compressors=[], filters=codec
    )
    z[...] = chunk
    document = json.loads(store[".zarray"])
    assert document["dtype"] == "|O"
    assert document["filters"][0]["id"] == codec["id"]
    assert zarrdask.open_array(store)[...].tolist() == values


def test_a27_arrays_of_any_length_are_objects_too():
    codec = {"id": "vlen-array", "dtype": "<i4"}
    data = b"\2\0\0\0\4\0\0\0\7\0\0\0\0\0\0\0"
    found = opened("|O", data, 2, filters=[codec])
    assert [item.tolist() for item in found[...]] == [[7], []]


@for_each("filters", [None, [], [{"id": "zlib"}], [{"id": "delta", "dtype": "<i4"}]])
def test_a27_objects_without_a_codec_that_stores_them_are_an_error(filters):
    with pytest.raises(zarrdask.ZarrdaskError, match="objects"):
        zarrdask.open(stored(v2(dtype="|O", fill_value=None, filters=filters)))


def test_a27_pickle_is_refused():
    document = v2(dtype="|O", fill_value=None, filters=[{"id": "pickle", "protocol": 5}])
    # Would end the process, were it unpickled.
    with pytest.raises(zarrdask.errors.UnsupportedError, match="pickle"):
        zarrdask.open_array(stored(document, {"0": b"cos\n_exit\n(I1\ntR."}))
    with pytest.raises(zarrdask.errors.UnsupportedError, match="pickle"):
        zarrdask.create_array({}, shape=1, dtype="O", filters={"id": "pickle"}, zarr_format=2)


@pytest.mark.parametrize("dtype", ["(2,3)<i2", np.dtype(("<i2", (2, 3)))])
def test_a28_a_subarray_type_becomes_part_of_shape_and_chunks(dtype):
    # What zarr-python 2.18 makes of it.
    store = {}
    z = zarrdask.create_array(store, shape=3, chunks=2, dtype=dtype, zarr_format=2, compressors=[])
    document = json.loads(store[".zarray"])
    assert document["shape"] == [3, 2, 3]
    assert document["chunks"] == [2, 2, 3]
    assert document["dtype"] == "<i2"
    z[...] = np.arange(18).reshape(3, 2, 3)
    assert store["0.0.0"] == np.arange(12, dtype="<i2").tobytes()
    assert zarrdask.open_array(store)[1].tolist() == [[6, 7, 8], [9, 10, 11]]


def test_a28_a_subarray_type_goes_with_any_other_option():
    options = {"shape": (4, 5), "dtype": "(2,)f4", "zarr_format": 2}
    assert zarrdask.create_array({}, **options).chunks == (4, 5, 2)
    z = zarrdask.create_array({}, chunks=(2, 2), fill_value=1.5, order="F", **options)
    assert (z.shape, z.chunks, z.dtype) == ((4, 5, 2), (2, 2, 2), np.dtype("f4"))
    assert z[0, 0].tolist() == [1.5, 1.5]


def test_a28_no_document_has_a_subarray_type():
    with pytest.raises(zarrdask.errors.MetadataError, match="dtype"):
        zarrdask.open({".zarray": dump(v2(dtype="(2,3)<i2"))})
