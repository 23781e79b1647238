"""Arrays of all data types, from creation to the last element."""

import json
from itertools import cycle

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import same
from zarrdask.errors import CodecError, MetadataError, UnsupportedError
from zarrdask.formats.dtypes.complex_pairs import NAMES as PAIRS
from zarrdask.formats.dtypes.ml import BITS, dtype_named
from zarrdask.formats.dtypes.registry import find_data_type

NUMBERS = [*BITS, *PAIRS, "float16", "complex64", "uint64"]
OTHERS = ["bool", "r24", "M8[us]", "m8[25s]", "U4", "S5", "i2,U2,M8[D],S3"]
OBJECTS = {"string": ["", "é", "\U0001f600 text"], "bytes": [b"", b"\0", b"some bytes"]}


def values_of(name, shape=(7, 9)):
    dtype = find_data_type(name).dtype
    random = np.random.default_rng(1)
    if name in OBJECTS:
        result = np.empty(shape, object)
        result.reshape(-1)[:] = [OBJECTS[name][n] for n in random.integers(0, 3, result.size)]
        return result
    if dtype.kind == "U":
        return random.integers(0, 999, shape).astype(dtype)
    if name == OTHERS[-1]:
        result = np.zeros(shape, dtype)
        for field in dtype.names:
            result[field] = random.integers(0, 9, shape).astype(dtype[field])
        return result
    most = 2 ** min(BITS.get(name.removeprefix("complex_"), 8), 8) if name != "bool" else 2
    raw = random.integers(0, most, (*shape, dtype.itemsize)).astype("u1")
    return raw.reshape(-1).view(dtype).reshape(shape)


def created(name, zarr_format=3, **options):
    store = {}
    defaults = {"shape": (7, 9), "chunks": (3, 4)}
    z = zarrdask.create_array(store, dtype=name, zarr_format=zarr_format, **{**defaults, **options})
    return z, store


LAYOUTS = [{"order": "F"}, {"chunks": (2, 2), "shards": (4, 6)}, {"compressors": "blosc"}]


@for_each("name, layout", zip([*NUMBERS, *OTHERS, *OBJECTS], cycle(LAYOUTS)))
def test_what_is_written_is_read(name, layout):
    for options in [{}, layout]:
        values = values_of(name)
        z, store = created(name, **options)
        z[...] = values
        again = zarrdask.open_array(store, mode="r+")
        assert again.metadata == z.metadata
        same(again[...], values)
        same(again[1:6:2, ::-1], values[1:6:2, ::-1])
        same(again.oindex[[0, 6], [8, 1, 1]], values[np.ix_([0, 6], [8, 1, 1])])
        # Parts of chunks, which are read, changed and written.
        again[2:5, 3:8] = values[:3, :5]
        values = values.copy()
        values[2:5, 3:8] = values[:3, :5].copy()
        same(zarrdask.open_array(store)[...], values)


@for_each("name", [*NUMBERS, *OTHERS, *OBJECTS])
def test_what_is_not_written_is_the_fill_value(name):
    fill = values_of(name)[3, 3]
    z, store = created(name, fill_value=fill)
    expected = np.empty((7, 9), z.dtype)
    expected[...] = fill
    same(zarrdask.open_array(store)[...], expected)
    z[...] = expected
    assert list(store) == ["zarr.json"]
    z.resize((9, 9))
    z[0, 0] = values_of(name)[0, 0]
    expected = np.empty((9, 9), z.dtype)
    expected[...] = fill
    expected[0, 0] = values_of(name)[0, 0]
    same(zarrdask.open_array(store)[...], expected)


@for_each("name", [*NUMBERS, *OTHERS])
def test_the_default_fill_value_is_all_bytes_zero(name):
    z, _ = created(name)
    assert z[...].tobytes() == bytes(63 * z.dtype.itemsize)


def test_the_default_fill_value_of_texts_and_bytes_is_empty():
    for name, empty in (("string", ""), ("bytes", b"")):
        z, _ = created(name)
        assert z.fill_value == empty
        assert set(z[...].reshape(-1).tolist()) == {empty}


# --------------------------------------------------------------------------------------------
# Text


@for_each("dtype", [str, object, "U", np.dtypes.StringDType()])
@for_each("zarr_format", [2, 3])
def test_text_may_be_asked_for_and_given_as_numpy_has_it(dtype, zarr_format):
    z, store = created(dtype, zarr_format)
    texts = np.array([["a", "", "é"], ["bc", "def", "z"]])
    for values in (texts, texts.astype(object), texts.astype(np.dtypes.StringDType())):
        z[1:3, 4:7] = values
        result = zarrdask.open_array(store)[1:3, 4:7]
        assert result.tolist() == texts.tolist()
        assert {type(item) for item in result.reshape(-1)} == {str}
    z[0] = "all"
    assert zarrdask.open_array(store)[0].tolist() == ["all"] * 9


@pytest.mark.parametrize(
    ("dtype", "codec", "empty"),
    [("string", "vlen-utf8", ""), ("bytes", "vlen-bytes", b""), (bytes, "vlen-bytes", b"")],
)
def test_v2_has_text_and_bytes_as_objects_with_a_filter(dtype, codec, empty):
    z, store = created(dtype, 2)
    document = json.loads(store[".zarray"])
    assert (document["dtype"], document["filters"][0]["id"]) == ("|O", codec)
    z[0, 0] = empty + type(empty)(empty)
    assert zarrdask.open_array(store)[...].reshape(-1).tolist() == [empty] * 63
    assert zarrdask.open_array(store).metadata == z.metadata


def test_v2_has_no_narrow_numbers():
    for name in ("bfloat16", "int4", "complex_bfloat16"):
        with pytest.raises(UnsupportedError, match="v2 has no name"):
            created(name, 2)


@pytest.mark.parametrize("values", [[1, 2], [None, "a"], [b"a", "b"]])
def test_what_is_no_text_is_not_written(values):
    z, store = created("string", shape=2, chunks=2)
    with pytest.raises(CodecError):
        z[...] = np.array(values, object)
    assert list(store) == ["zarr.json"]


def test_text_has_a_codec_of_its_own():
    with pytest.raises(UnsupportedError, match="vlen-utf8"):
        created("string", codecs=["bytes"])
    with pytest.raises((MetadataError, UnsupportedError)):
        created("float32", codecs=["vlen-utf8"])


def test_chunks_of_text_are_compressed_as_bytes():
    z, _ = created("string", compressors="blosc")
    *_, blosc = z.metadata.codecs
    assert blosc.to_json()["configuration"].get("typesize", 1) == 1


# --------------------------------------------------------------------------------------------
# Numbers


def test_narrow_numbers_are_rounded_as_ml_dtypes_does_it():
    z, _ = created("bfloat16", shape=3, chunks=3)
    z[...] = [1.00390625, 3e38, np.nan]
    assert z[:2].astype("f8").tolist() == [1.0, float(dtype_named("bfloat16").type(3e38))]
    assert np.isnan(z[2])


def test_complex_numbers_of_narrow_parts_have_fields():
    z, _ = created("complex_bfloat16", shape=2, chunks=2, fill_value=1 - 2j)
    z[0] = (3, 4)
    assert z["re"].astype("f8").tolist() == [3.0, 1.0]
    assert z["im"].astype("f8").tolist() == [4.0, -2.0]


def test_a_zero_with_a_sign_is_not_the_fill_value():
    for name in ("bfloat16", "float8_e5m2", "float6_e2m3fn", "float4_e2m1fn"):
        z, store = created(name, shape=2, chunks=2)
        z[...] = [-0.0, -0.0]
        assert "c/0" in store
        assert np.signbit(zarrdask.open_array(store)[...].astype("f8")).all()


def test_elements_wider_than_their_bytes_are_padded_anew_in_parts_of_chunks():
    z, store = created("int4", shape=4, chunks=4, compressors=[])
    store["c/0"] = b"\xa1\xb2\xc3\xd4"
    z[1] = -1
    assert store["c/0"].hex() == "01ff0304"
