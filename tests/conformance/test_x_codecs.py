"""Readings of what the texts leave open about codecs: X-C5, X-C7, X-C8, X-C9, X-C11."""

import gzip
import struct

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import BIG, LITTLE, crc32c, named, same, sharding, stored, v3, without

VALUES = np.arange(1, 7, dtype="u2").reshape(2, 3)
RAW = VALUES.tobytes()
GZIP = named("gzip", level=1)


def array(codecs, data=RAW, *, data_type="uint16", shape=(2, 3)):
    """Return a store with an array of one chunk, which is stored as given."""
    key = "/".join(["c", *"0" * len(shape)])
    return stored(v3(shape, shape, data_type, 0, codecs), {key: data})


def opened(*given, strict=None, **others):
    return zarrdask.open_array(array(*given, **others), mode="r+", strict=strict)


# ---- X-C5

IGNORED = {"name": "https://example.com/ignored", "must_understand": False}


@for_each(
    "codecs",
    [
        [IGNORED, LITTLE],
        [LITTLE, IGNORED],
        [named("transpose", order=[0, 1]), IGNORED, LITTLE, IGNORED],
        [sharding((1, 3), [LITTLE, IGNORED])],
    ],
)
def test_xc5_an_ignored_codec_gives_back_what_it_is_given(codecs):
    data = RAW
    if codecs[0]["name"] == "sharding_indexed":
        index = struct.pack("<4Q", 0, 6, 6, 6)
        data = RAW + index + crc32c(index)
    with pytest.warns(zarrdask.errors.ComplianceWarning, match="example"):
        z = opened(codecs, data)
    same(z[...], VALUES)
    with pytest.raises(zarrdask.errors.UnsupportedError, match="example"):
        z[...] = 1


@pytest.mark.parametrize("codecs", [[IGNORED], [IGNORED, GZIP], [GZIP, IGNORED]])
def test_xc5_one_is_never_ignored_in_the_place_of_the_array_bytes_codec(codecs):
    with (
        pytest.warns(zarrdask.errors.ComplianceWarning),
        pytest.raises(zarrdask.errors.MetadataError),
    ):
        opened(codecs)


# ---- X-C7


@pytest.mark.parametrize(("order", "letter"), [("little", "<"), ("big", ">")])
def test_xc7_endian_is_read_as_bytes(order, letter):
    z = opened([named("endian", endian=order)], VALUES.astype(f"{letter}u2").tobytes())
    same(z[...], VALUES)
    assert z.metadata.codecs[0].to_json() == named("bytes", endian=order)
    with pytest.raises(zarrdask.errors.MetadataError, match="X-C7"):
        opened([named("endian", endian=order)], strict=True)


@for_each(
    ("codecs", "data"),
    [
        ([], RAW),
        ([GZIP], gzip.compress(RAW, mtime=0)),
        ([named("transpose", order=[1, 0])], VALUES.T.tobytes()),
        ([named("transpose", order=[1, 0]), GZIP], gzip.compress(VALUES.T.tobytes(), mtime=0)),
    ],
)
def test_xc7_without_an_array_bytes_codec_elements_are_little_endian(codecs, data):
    z = opened(codecs, data)
    same(z[...], VALUES)
    names = [codec.name for codec in z.metadata.codecs]
    assert names.count("bytes") == 1
    with pytest.raises(zarrdask.errors.MetadataError, match="X-C7"):
        opened(codecs, data, strict=True)


def test_xc7_codecs_may_be_missing():
    store = stored(without(v3((2, 3), (2, 3)), "codecs"), {"c/0/0": RAW})
    same(zarrdask.open_array(store)[...], VALUES)
    with pytest.raises(zarrdask.errors.MetadataError, match="X-C7"):
        zarrdask.open_array(store, strict=True)


def test_xc7_texts_never_were_stored_without_a_codec():
    store = stored(v3((2,), (2,), "string", "", []))
    with pytest.raises(zarrdask.errors.MetadataError, match="codecs"):
        zarrdask.open_array(store)


def test_xc7_bytes_without_a_byte_order_are_still_an_error():
    with pytest.raises(zarrdask.errors.MetadataError, match="endian"):
        opened([{"name": "bytes"}])


# ---- X-C8


@pytest.mark.parametrize(
    ("schema", "members"),
    [
        ({"padding_encoding": "start_byte"}, {"padding_encoding": "first_byte"}),
        ({"padding_encoding": "end_byte", "start_bit": 0}, {"padding_encoding": "last_byte"}),
        ({"start_bit": 0, "end_bit": 2}, {"first_bit": 0, "last_bit": 2}),
    ],
)
def test_xc8_the_names_of_packbits_schema_are_read_and_those_of_its_text_written(schema, members):
    store = {}
    z = zarrdask.create_array(
        store, shape=(2, 3), dtype="u2", codecs=[named("packbits", **members)]
    )
    z[...] = VALUES
    codecs = [named("packbits", **schema)]
    same(opened(codecs, bytes(store["c/0/0"]))[...], VALUES)
    found = opened(codecs).metadata.codecs[0].to_json()["configuration"]
    assert not set(found) & {"start_bit", "end_bit"}
    with pytest.raises(zarrdask.errors.MetadataError, match="X-C8"):
        opened(codecs, strict=True)


def test_xc8_the_least_significant_bit_comes_first_and_numcodecs_has_its_own():
    flags = np.array([True, False, False, False])
    store = array(["packbits"], b"\x01", data_type="bool", shape=(4,))
    store["zarr.json"] = store["zarr.json"].replace(b'"fill_value": 0', b'"fill_value": false')
    same(zarrdask.open_array(store)[...], flags)
    store = {}
    z = zarrdask.create_array(store, shape=4, dtype="?", codecs=["numcodecs.packbits", "bytes"])
    z[...] = flags
    assert bytes(store["c/0"]) == b"\x04\x80"


# ---- X-C9


def test_xc9_no_bit_to_keep_is_read_but_not_written():
    codecs = [named("bitround", keepbits=0), LITTLE]
    same(opened(codecs)[...], VALUES)
    with pytest.raises(zarrdask.errors.MetadataError, match="X-C9"):
        opened(codecs, strict=True)
    with pytest.raises(zarrdask.errors.MetadataError, match="X-C9"):
        zarrdask.create_array({}, shape=4, dtype="u2", codecs=codecs)


def test_xc9_signed_integers_are_rounded_by_their_bits():
    z = zarrdask.create_array({}, shape=4, dtype="i1", filters=named("bitround", keepbits=3))
    z[...] = [11, -1, -128, 127]
    assert z[...].tolist() == [12, -32, -128, 112]


def test_xc9_a_compressor_before_bytes_is_an_error():
    codecs = [named("reshape", shape=[[0, 1]]), named("zstd", level=1), LITTLE]
    with pytest.raises(zarrdask.errors.MetadataError, match="codecs"):
        opened(codecs)


# ---- X-C11


@pytest.mark.parametrize(("order", "data"), [("C", RAW), ("F", VALUES.T.tobytes())])
def test_xc11_the_order_of_a_transposition_may_be_a_letter(order, data):
    codecs = [named("transpose", order=order), LITTLE]
    z = opened(codecs, data)
    same(z[...], VALUES)
    axes = [0, 1] if order == "C" else [1, 0]
    assert z.metadata.codecs[0].to_json() == named("transpose", order=axes)
    with pytest.raises(zarrdask.errors.MetadataError, match="X-C11"):
        opened(codecs, data, strict=True)


def test_xc11_also_within_shards():
    shard = sharding((2, 3), [named("transpose", order="F"), BIG], index_codecs=[LITTLE])
    data = VALUES.T.astype(">u2").tobytes() + struct.pack("<2Q", 0, 12)
    same(opened([shard], data)[...], VALUES)
