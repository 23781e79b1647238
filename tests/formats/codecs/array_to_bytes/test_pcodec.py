"""``numcodecs.pcodec``."""

import sys

import numcodecs
import numpy as np
import pytest

from tests.contracts.codec import check_array_bytes, check_json
from tests.covering import for_each
from zarrdask.errors import CodecError, MetadataError, UnsupportedError
from zarrdask.formats.codecs.array_to_bytes.pcodec import PcodecCodec
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.registry import parse_codec

CHUNK = np.arange(600, dtype="i4").reshape(20, 30)


def bind(codec, chunk=CHUNK):
    return codec.bind(ChunkSpec(chunk.shape, chunk.dtype, 0))


@for_each("dtype", ["i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", ">i4"])
@for_each("shape", [(), (7,), (20, 30)])
def test_numbers_survive(dtype, shape):
    values = np.random.default_rng(0).integers(0, 1000, shape)
    check_array_bytes(PcodecCodec(), np.asarray(values).astype(dtype))


@for_each(
    "members",
    [
        {},
        {"level": 0, "mode_spec": "classic"},
        {"delta_spec": "none"},
        {"delta_spec": "try_lookback"},
        {"delta_spec": "try_consecutive", "delta_encoding_order": 2},
        {"delta_encoding_order": 1},
        {"equal_pages_up_to": 100},
    ],
)
def test_configurations(members):
    codec = parse_codec({"name": "numcodecs.pcodec", "configuration": members})
    check_array_bytes(codec, CHUNK)
    check_json(codec, parse_codec)


def test_it_reads_what_numcodecs_writes_and_the_other_way():
    codec = numcodecs.PCodec()
    assert np.array_equal(bind(PcodecCodec()).decode(codec.encode(CHUNK)), CHUNK)
    found = codec.decode(bytes(bind(PcodecCodec()).encode(CHUNK)))
    assert np.array_equal(found.reshape(CHUNK.shape), CHUNK)


@for_each(
    "data",
    [
        b"",
        b"pco!",
        b"\xff" * 60,
        bytes(bind(PcodecCodec()).encode(CHUNK))[:20],
        numcodecs.PCodec().encode(CHUNK[1:].copy()),
        numcodecs.PCodec().encode(np.zeros(601, "i4")),
        numcodecs.PCodec().encode(CHUNK.astype("f4")),
    ],
)
def test_damage_and_other_numbers_are_errors(data):
    with pytest.raises(CodecError):
        bind(PcodecCodec()).decode(data)


@for_each("dtype", ["?", "i1", "u1", "c8", "M8[s]", "O"])
def test_what_it_can_not_take_is_an_error_at_open(dtype):
    with pytest.raises(MetadataError, match="can't encode"):
        PcodecCodec().bind(ChunkSpec((2,), np.dtype(dtype), 0))


@for_each(
    "members",
    [
        {"level": 13},
        {"mode_spec": "fast"},
        {"delta_spec": "try"},
        {"delta_spec": "try_consecutive"},
        {"delta_spec": "none", "delta_encoding_order": 2},
        {"delta_encoding_order": 8},
        {"paging_spec": "exact"},
        {"equal_pages_up_to": 0},
        {"id": "pcodec"},
    ],
)
def test_a_wrong_configuration_is_an_error(members):
    with pytest.raises(MetadataError, match="pcodec"):
        parse_codec({"name": "numcodecs.pcodec", "configuration": members})


def test_without_the_package_the_error_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pcodec", None)
    with pytest.raises(UnsupportedError, match=r"zarrdask\[pcodec\]"):
        bind(PcodecCodec())
