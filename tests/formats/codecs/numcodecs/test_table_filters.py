"""numcodecs' array -> array codecs in v3."""

import numcodecs
import numpy as np
import pytest

from tests.contracts.codec import check_array_array, check_json
from tests.covering import for_each
from tests.documents import same
from zarrdask.errors import CodecError, MetadataError
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.registry import parse_codec


def make(name, **members):
    return parse_codec({"name": f"numcodecs.{name}", "configuration": members})


def spec_of(chunk, fill_value=0):
    return ChunkSpec(chunk.shape, chunk.dtype, fill_value)


INTEGERS = np.array([[5, 7, 4], [4, 4, 100]], "i4")
REALS = np.array([[1000.0, 1000.5], [1012.5, 999.5]])
SURVIVING = [
    ("delta", {}, INTEGERS, "i4"),
    ("delta", {"dtype": "<i4"}, INTEGERS, "i4"),
    ("delta", {"dtype": "int32", "astype": "int16"}, INTEGERS, "i2"),
    ("delta", {"dtype": ">i4", "astype": "|i1"}, INTEGERS, "i1"),
    ("delta", {"dtype": "<f8"}, REALS, "f8"),
    ("fixedscaleoffset", {"offset": 1000, "scale": 2, "astype": "|i1"}, REALS, "i1"),
    ("fixedscaleoffset", {"offset": 1000, "scale": 2, "dtype": "float64"}, REALS, "f8"),
    ("quantize", {"digits": 3, "dtype": "<f8"}, REALS, "f8"),
    ("quantize", {"digits": 3, "dtype": "<f8", "astype": "<f4"}, REALS, "f4"),
    ("bitround", {"keepbits": 20}, REALS, "f8"),
    ("astype", {"encode_dtype": "<f4", "decode_dtype": "<f8"}, REALS, "f4"),
    ("astype", {"encode_dtype": "int64"}, INTEGERS, "i8"),
    ("packbits", {}, INTEGERS > 4, "u1"),
]


@for_each(("name", "members", "chunk", "stored"), SURVIVING)
def test_chunks_survive_and_the_type_that_comes_out_is_told(name, members, chunk, stored):
    codec = make(name, **members)
    check_array_array(codec, chunk)
    check_json(codec, parse_codec)
    assert codec.resolve(spec_of(chunk)).dtype == np.dtype(stored)


@for_each(("name", "members", "chunk", "stored"), SURVIVING)
def test_they_are_what_numcodecs_writes_of_the_chunk_in_c_order(name, members, chunk, stored):
    config = {"id": name, **members}
    for member in {"delta": ["dtype"], "quantize": ["dtype"], "fixedscaleoffset": ["dtype"]}.get(
        name, []
    ):
        config[member] = chunk.dtype.str
    if name == "astype":
        config["decode_dtype"] = chunk.dtype.str
    expected = np.asarray(numcodecs.get_codec(config).encode(chunk.copy())).reshape(-1)
    found = make(name, **members).encode(np.asfortranarray(chunk))
    assert found.reshape(-1).tobytes() == expected.tobytes()


@for_each(("name", "members", "chunk", "stored"), SURVIVING)
def test_stored_elements_may_have_any_byte_order(name, members, chunk, stored):
    codec = make(name, **members)
    encoded = codec.encode(chunk)
    swapped = encoded.astype(encoded.dtype.newbyteorder(">"))
    same(codec.decode(swapped, spec_of(chunk)), codec.decode(encoded, spec_of(chunk)))


def test_packbits_is_one_row():
    codec = make("packbits")
    flags = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 1, 1]], bool)
    assert codec.resolve(spec_of(flags)) == ChunkSpec((3,), np.dtype("u1"), 0)
    assert bytes(codec.encode(flags)) == b"\x06\xb0\xc0"
    with pytest.raises(CodecError, match="can't be decoded"):
        codec.decode(np.array([3, 0xB0, 0xC0], "u1"), spec_of(flags))


@for_each(
    ("name", "members", "fill_value", "expected"),
    [
        ("delta", {"dtype": "<f8", "astype": "<f4"}, 7.0, np.float32(7)),
        ("fixedscaleoffset", {"offset": 1000, "scale": 2, "astype": "|u1"}, 1003, np.uint8(6)),
        ("quantize", {"digits": 0}, 2.4, np.float64(2)),
        ("bitround", {"keepbits": 1}, 1.2, np.float64(1)),
        ("astype", {"encode_dtype": "<i2"}, 3.0, np.int16(3)),
    ],
)
def test_the_fill_value_is_encoded(name, members, fill_value, expected):
    found = make(name, **members).resolve(spec_of(REALS, np.float64(fill_value))).fill_value
    assert (found, found.dtype) == (expected, expected.dtype)


@for_each("name", ["delta", "fixedscaleoffset", "quantize", "astype"])
def test_a_data_type_that_was_left_open_is_written_as_the_chunks(name):
    more = {
        "fixedscaleoffset": {"offset": 0, "scale": 1},
        "quantize": {"digits": 1},
        "astype": {"encode_dtype": "<f4"},
    }.get(name, {})
    member = "decode_dtype" if name == "astype" else "dtype"
    found = make(name, **more).complete(spec_of(REALS)).to_json()["configuration"]
    assert found == {**more, member: "<f8"}
    again = make(name, **found)
    assert again.complete(spec_of(INTEGERS)) == again


def test_packbits_has_no_configuration():
    assert make("packbits").complete(spec_of(INTEGERS > 4)).to_json() == {
        "name": "numcodecs.packbits",
        "configuration": {},
    }


@for_each(
    ("name", "members", "dtype"),
    [
        ("delta", {"dtype": "<i2"}, "i4"),
        ("delta", {}, "?"),
        ("delta", {}, "c8"),
        ("delta", {}, "M8[s]"),
        ("quantize", {"digits": 1}, "i4"),
        ("quantize", {"digits": 1, "dtype": "<f4"}, "f8"),
        ("fixedscaleoffset", {"offset": 0, "scale": 1, "dtype": "<f8"}, "f4"),
        ("astype", {"encode_dtype": "<f4", "decode_dtype": "<i4"}, "f8"),
        ("packbits", {}, "u1"),
        ("bitround", {"keepbits": 2}, "i4"),
    ],
)
def test_elements_that_they_are_not_for_are_an_error_at_open(name, members, dtype):
    with pytest.raises(MetadataError):
        make(name, **members).resolve(ChunkSpec((2,), np.dtype(dtype), np.zeros((), dtype)[()]))


@for_each(
    ("name", "members"),
    [
        ("delta", {"dtype": "O"}),
        ("delta", {"dtype": "i4,i4"}),
        ("delta", {"dtype": "nosuch"}),
        ("delta", {"dtype": "01"}),
        ("delta", {"dtype": "0:"}),
        ("delta", {"dtype": "M8[s/0]"}),
        ("delta", {"dtype": 4}),
        ("delta", {"dtype": ["<i4"]}),
        ("delta", {"id": "delta"}),
        ("fixedscaleoffset", {"offset": 0}),
        ("fixedscaleoffset", {"offset": 0, "scale": "2"}),
        ("fixedscaleoffset", {"offset": True, "scale": 2}),
        ("quantize", {}),
        ("quantize", {"digits": 1.5}),
        ("quantize", {"digits": 1, "astype": "<i4"}),
        ("astype", {}),
        ("astype", {"encode_dtype": "S4"}),
        ("packbits", {"keepbits": 5}),
    ],
)
def test_a_wrong_configuration_is_an_error(name, members):
    with pytest.raises(MetadataError, match=name):
        make(name, **members)
