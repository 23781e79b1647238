"""What every codec must do: one function for each kind."""

import copy
import pickle

import numpy as np
import pytest

from zarrdask.errors import CodecError
from zarrdask.formats.codecs.codec import ChunkSpec, Kind

SAMPLES = [
    b"\0",
    b"a",
    b"\0" * 4096,
    bytes(range(256)) * 16,
    np.random.default_rng(7).bytes(5000),
    np.arange(3000, dtype="<f4").tobytes(),
]


def check_value(codec):
    """A codec is a value: equal to its copies, hashable, picklable, and unchangeable."""
    for again in (copy.deepcopy(codec), pickle.loads(pickle.dumps(codec))):
        assert again == codec
        assert hash(again) == hash(codec)
    with pytest.raises(AttributeError):
        codec.surely_not_a_field = 1
    assert isinstance(codec.kind, Kind)


def check_json(codec, parse):
    """A codec's metadata give an equal codec."""
    document = codec.to_json()
    assert document["name"] == codec.name
    assert set(document) <= {"name", "configuration"}
    assert parse(document) == codec


def check_bytes_bytes(codec):
    """What was encoded is decoded, from any buffer, into a given place or not."""
    check_value(codec)
    for data in SAMPLES:
        encoded = bytes(codec.encode(data))
        assert bytes(codec.encode(data)) == encoded, "encoding must be repeatable"
        assert bytes(codec.encode(memoryview(bytearray(data)))) == encoded
        size = codec.encoded_size(len(data))
        assert size is None or size == len(encoded)
        for buffer in (encoded, bytearray(encoded), memoryview(encoded)):
            assert bytes(codec.decode(buffer, len(data))) == data
        assert bytes(codec.decode(encoded, len(data) + 100)) == data
        out = np.zeros(len(data), np.uint8)
        assert bytes(codec.decode(encoded, len(data), out)) == data


def check_bounded(codec):
    """What decodes to more than it may is an error, with and without a given place."""
    for data in SAMPLES[1:]:
        encoded = bytes(codec.encode(data))
        for limit in {0, 1, len(data) // 2, len(data) - 1} - {len(data)}:
            with pytest.raises(CodecError):
                codec.decode(encoded, limit)
            with pytest.raises(CodecError):
                codec.decode(encoded, limit, np.zeros(limit, np.uint8))


def check_damage(codec):
    """What is cut off is an error, and nothing but one of ours."""
    for data in SAMPLES[2:]:
        encoded = bytes(codec.encode(data))
        for stop in {0, 1, 4, len(encoded) // 2, len(encoded) - 1}:
            with pytest.raises(CodecError):
                codec.decode(encoded[:stop], len(data))
            with pytest.raises(CodecError):
                codec.decode(encoded[:stop], len(data), np.zeros(len(data), np.uint8))
    for rubbish in (b"\xff" * 64, b"\0" * 64, b"not a compressed value, but some words instead"):
        with pytest.raises(CodecError):
            codec.decode(rubbish, 1000)


def check_array_bytes(codec, chunk, fill_value=0):
    """What was encoded is decoded; the bound codec tells its size."""
    check_value(codec)
    bound = codec.bind(ChunkSpec(chunk.shape, chunk.dtype, fill_value))
    encoded = bytes(bound.encode(chunk))
    assert bytes(bound.encode(np.array(chunk, order="F"))) == encoded
    if bound.encoded_size is not None:
        assert bound.encoded_size == len(encoded)
    found = bound.decode(encoded)
    assert found.shape == chunk.shape
    assert np.array_equal(found, chunk)


def check_array_array(codec, chunk, fill_value=0):
    """What was encoded is decoded, and has the shape and type that were announced."""
    check_value(codec)
    spec = ChunkSpec(chunk.shape, chunk.dtype, fill_value)
    following = codec.resolve(spec)
    encoded = codec.encode(chunk)
    assert (encoded.shape, encoded.dtype) == (following.shape, following.dtype)
    assert np.array_equal(codec.encode(np.array(chunk, order="F")), encoded)
    found = codec.decode(encoded, spec)
    assert found.shape == chunk.shape
    assert np.array_equal(found, chunk)
