"""What users give as a codec."""

import numcodecs
import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.codecs.array_to_array.bitround import BitroundCodec
from zarrdask.formats.codecs.bytes_to_bytes.blosc import BloscCodec
from zarrdask.formats.codecs.bytes_to_bytes.crc32c import Crc32cCodec
from zarrdask.formats.codecs.bytes_to_bytes.gzip import GzipCodec
from zarrdask.formats.codecs.bytes_to_bytes.zstd import ZstdCodec
from zarrdask.formats.codecs.coerce import find_codec
from zarrdask.formats.codecs.registry import parse_codec


@for_each(
    ("given", "expected"),
    [
        (numcodecs.Zstd(level=7), ZstdCodec(7)),
        (numcodecs.GZip(level=7), GzipCodec(7)),
        (numcodecs.Blosc("zstd", 3, numcodecs.Blosc.AUTOSHUFFLE), BloscCodec("zstd", 3, -1)),
        (numcodecs.BitRound(5), BitroundCodec(5)),
        (numcodecs.CRC32C(), Crc32cCodec()),
        (numcodecs.VLenUTF8(), parse_codec("vlen-utf8")),
        ({"id": "zstd"}, ZstdCodec(0)),
        ({"name": "blosc", "configuration": {"cname": "zstd"}}, BloscCodec("zstd")),
        (
            {"name": "blosc", "configuration": {"cname": "zstd", "typesize": 4}},
            BloscCodec("zstd", typesize=4),
        ),
    ],
)
def test_what_v3_has_under_a_registered_name_is_that(given, expected):
    assert find_codec(given) == expected


@for_each(
    ("given", "name", "members"),
    [
        (numcodecs.Delta("<i4", "<i2"), "delta", {"dtype": "<i4", "astype": "<i2"}),
        (numcodecs.BZ2(7), "bz2", {"level": 7}),
        (numcodecs.Shuffle(2), "shuffle", {"elementsize": 2}),
        (numcodecs.LZMA(preset=1), "lzma", {"format": 1, "check": -1, "preset": 1}),
        (numcodecs.PackBits(), "packbits", {}),
        (numcodecs.get_codec({"id": "adler32"}), "adler32", {}),
        (numcodecs.get_codec({"id": "crc32c", "location": "start"}), "crc32c", None),
        (numcodecs.PCodec(3), "pcodec", {"level": 3}),
        (numcodecs.ZFPY(mode=2, rate=8), "zfpy", {"mode": 2, "rate": 8}),
        ({"id": "zlib", "level": 3}, "zlib", {"level": 3}),
        ("zlib", "zlib", {}),
        ({"name": "lz4", "configuration": {"acceleration": 3}}, "lz4", {"acceleration": 3}),
        ({"id": "bitround", "keepbits": 0}, "bitround", {"keepbits": 0}),
    ],
)
def test_others_have_a_prefix(given, name, members):
    found = find_codec(given)
    assert found.name == f"numcodecs.{name}"
    if members is not None:
        assert found == parse_codec({"name": f"numcodecs.{name}", "configuration": members})


def test_a_codec_is_returned_as_it_is():
    codec = BitroundCodec(0)
    assert find_codec(codec) is codec


@for_each("given", ["nosuch", {"id": "nosuch"}, {"id": "json2"}, {"id": "pickle"}])
def test_what_v3_has_not_is_an_error_that_names_it(given):
    with pytest.raises(UnsupportedError, match=r"nosuch|json2|pickle"):
        find_codec(given)


@for_each(
    "given",
    [
        None,
        5,
        {},
        {"name": 5},
        "endian",
        {"name": "bitround", "configuration": {"keepbits": 0}},
        {"name": "packbits", "configuration": {"start_bit": 1}},
        {"name": "sharding_indexed", "configuration": {"chunk_shape": [2], "codecs": ["bytes"]}},
    ],
)
def test_what_is_only_tolerated_in_files_is_an_error(given):
    with pytest.raises(MetadataError):
        find_codec(given)


@for_each(
    ("options", "names"),
    [
        ({"filters": numcodecs.Delta("<i4")}, ["numcodecs.delta", "bytes", "zstd"]),
        (
            {"filters": [numcodecs.Shuffle(4), numcodecs.Delta("<i4")], "compressors": "bz2"},
            ["numcodecs.delta", "bytes", "numcodecs.shuffle", "numcodecs.bz2"],
        ),
        ({"compressors": "pcodec"}, ["numcodecs.pcodec"]),
        ({"compressors": ["packbits", "crc32c"]}, ["packbits", "crc32c"]),
        (
            {"filters": "scale_offset", "order": "F", "compressors": []},
            ["transpose", "scale_offset", "bytes"],
        ),
        ({"dtype": "string"}, ["vlen-utf8", "zstd"]),
        ({"dtype": bytes, "compressors": "gzip"}, ["vlen-bytes", "gzip"]),
        ({"dtype": str, "shards": (4, 4), "compressors": []}, ["sharding_indexed"]),
    ],
)
def test_codecs_come_to_their_places(options, names):
    options = {"dtype": "i4", "shape": (4, 4), "chunks": (2, 2), **options}
    codecs = zarrdask.create_array({}, **options).metadata.codecs
    assert [codec.name for codec in codecs] == names


def test_what_is_left_open_is_filled_in_with_what_each_codec_is_given():
    cast = {"name": "cast_value", "configuration": {"data_type": "uint16"}}
    store = {}
    z = zarrdask.create_array(
        store, shape=8, dtype="f8", filters=[cast, "delta"], compressors=["shuffle", "blosc"]
    )
    _, delta, elements, shuffle, blosc = z.metadata.codecs
    assert delta.to_json()["configuration"] == {"dtype": "<u2"}
    assert elements.endian == "little"
    assert shuffle.to_json()["configuration"] == {"elementsize": 2}
    assert blosc.typesize == 2
    z[...] = np.arange(8)
    assert zarrdask.open_array(store, strict=True)[...].tolist() == list(range(8))


class Foreign:
    """A codec of other software, which has its document."""

    _tunable_attrs = frozenset({"typesize", "shuffle"})

    def to_dict(self):
        members = {"typesize": 1, "cname": "zstd", "clevel": 5, "shuffle": "bitshuffle"}
        return {"name": "blosc", "configuration": members | {"blocksize": 0}}


def test_a_codec_of_zarr_python_takes_what_it_leaves_open_from_the_data_type():
    z = zarrdask.create_array({}, shape=(4,), dtype="i4", compressors=Foreign())
    assert (z.compressors[0].typesize, z.compressors[0].shuffle) == (4, 1)
