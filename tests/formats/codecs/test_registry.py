"""Codecs by name."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import LITTLE, stored, v3
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.codecs.codec import Kind
from zarrdask.formats.codecs.registry import CODECS, parse_codec, parse_codecs

CORE = ["blosc", "bytes", "crc32c", "gzip", "sharding_indexed", "transpose", "zstd"]


@for_each("name", CORE)
def test_core_codecs_are_found_by_name(name):
    assert CODECS.find(name).name == name


@pytest.mark.parametrize("definition", ["crc32c", {"name": "crc32c"}])
def test_a_name_alone_is_an_object_with_that_name(definition):
    assert parse_codec(definition) == parse_codec({"name": "crc32c", "configuration": {}})


def test_a_codec_may_say_that_it_must_be_understood():
    assert parse_codec({"name": "crc32c", "must_understand": True}) == parse_codec("crc32c")


def test_an_unknown_codec_is_named_and_known_ones_are_listed():
    with pytest.raises(UnsupportedError) as caught:
        parse_codec({"name": "nosuch"})
    assert caught.value.found == "nosuch"
    assert all(name in caught.value.expected for name in CORE)


@for_each(
    "found",
    [
        None,
        5,
        [],
        {},
        {"id": "gzip"},
        {"name": 5},
        {"name": "gzip", "configuration": []},
        {"name": "gzip", "configuration": "fast"},
        {"name": "gzip", "level": 5},
    ],
)
def test_what_is_no_codec_is_an_error(found):
    with pytest.raises(MetadataError):
        parse_codec(found)


@for_each("found", [None, {}, "gzip", {"name": "gzip"}])
def test_what_is_no_list_of_codecs_is_an_error(found):
    with pytest.raises(MetadataError, match="list"):
        parse_codecs(found)


@dataclass(frozen=True)
class Invert:
    """Bytes -> bytes: every bit turned round."""

    name: ClassVar[str] = "test.invert"
    kind: ClassVar[Kind] = Kind.BYTES_BYTES

    @classmethod
    def from_configuration(cls, found):
        return cls()

    def to_json(self):
        return {"name": self.name}

    def encode(self, data):
        return bytes(255 - n for n in bytes(data))

    def decode(self, data, limit, out=None):
        return self.encode(data)

    def encoded_size(self, size):
        return size


@pytest.fixture
def invert(own_registries):
    zarrdask.register.codec(Invert)


@pytest.mark.usefixtures("invert")
def test_a_users_codec_reads_and_writes_like_a_built_in_one():
    store = stored(
        v3((2,), (2,), codecs=[LITTLE, {"name": "test.invert"}]), {"c/0": b"\xfe\xff\xfd\xff"}
    )
    z = zarrdask.open_array(store, mode="r+")
    assert z[...].tolist() == [1, 2]
    z[...] = 3
    assert store["c/0"] == b"\xfc\xff\xfc\xff"
    made = zarrdask.create_array({}, shape=3, dtype="u1", compressors="test.invert")
    made[...] = np.arange(3)
    assert made[...].tolist() == [0, 1, 2]
