"""Names that other writers used, and those of 2023."""

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import LITTLE, stored, v3
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.codecs.aliases import full_name
from zarrdask.formats.codecs.array_to_array.transpose import TransposeCodec
from zarrdask.formats.codecs.registry import CODECS, parse_codec, parse_codecs
from zarrdask.formats.compliance import strictness

ZARRS = "https://codec.zarrs.dev/"
NAMES = [
    ("endian", {"endian": "big"}, "bytes"),
    ("adler32", {}, "numcodecs.adler32"),
    ("bz2", {"level": 5}, "numcodecs.bz2"),
    ("delta", {"dtype": "<i4"}, "numcodecs.delta"),
    ("fletcher32", {}, "numcodecs.fletcher32"),
    ("pcodec", {"level": 4}, "numcodecs.pcodec"),
    ("shuffle", {"elementsize": 2}, "numcodecs.shuffle"),
    ("zfpy", {"mode": 3, "precision": 9}, "numcodecs.zfpy"),
    ("zlib", {"level": 9}, "numcodecs.zlib"),
    ("zarrs.bitround", {"keepbits": 3}, "bitround"),
    ("zarrs.zfp", {"mode": "reversible"}, "zfp"),
    (f"{ZARRS}array_to_array/bitround", {"keepbits": 3}, "bitround"),
    (f"{ZARRS}array_to_bytes/zfp", {"mode": "reversible"}, "zfp"),
    (f"{ZARRS}array_to_bytes/pcodec", {"level": 4}, "numcodecs.pcodec"),
    (f"{ZARRS}bytes_to_bytes/bz2", {"level": 5}, "numcodecs.bz2"),
]


@for_each(("old", "members", "name"), NAMES)
def test_an_old_name_is_read_as_the_one_it_has_now_and_written_so(old, members, name):
    found = parse_codec({"name": old, "configuration": members})
    assert found == parse_codec({"name": name, "configuration": members})
    assert found.to_json()["name"] == name
    with strictness(True), pytest.raises(MetadataError, match=r"C-67|X-C7") as caught:
        parse_codec({"name": old, "configuration": members})
    assert caught.value.found == old


@for_each(
    "name",
    ["vlen-array", "zarrs.squeeze", "zarrs.gdeflate", "zarrs.vlen", "zarrs.optional", "optional"],
)
def test_names_without_a_meaning_here_are_an_error_that_shows_them(name):
    with pytest.raises(UnsupportedError) as caught:
        parse_codec(name)
    assert caught.value.found == name


def test_a_codec_that_is_registered_under_an_old_name_goes_before(own_registries):
    CODECS.register("bz2", CODECS.find("crc32c"))
    assert parse_codec("bz2").name == "crc32c"


@pytest.mark.parametrize("must", [True, False])
def test_an_old_name_need_not_be_passed_over(must):
    [_, found] = parse_codecs([LITTLE, {"name": "bz2", "must_understand": must}])
    assert found.name == "numcodecs.bz2"


@pytest.mark.parametrize(("order", "axes"), [("C", (0, 1, 2)), ("F", (2, 1, 0))])
def test_a_transposition_by_letter(order, axes):
    document = {"name": "transpose", "configuration": {"order": order}}
    assert parse_codecs([document, LITTLE], 3)[0] == TransposeCodec(axes)
    with strictness(True), pytest.raises(MetadataError, match="X-C11"):
        parse_codecs([document, LITTLE], 3)
    # Without knowing how many axes there are it means nothing.
    with pytest.raises(MetadataError, match=r"transpose\.order"):
        parse_codec(document)


def test_full_names():
    assert full_name("zlib") == "numcodecs.zlib"
    for name in ("zstd", "gzip", "nosuch", None, 5):
        assert full_name(name) == name


def test_an_array_of_old_names_is_written_again_with_new_ones():
    store = stored(v3((4,), (4,), "int32", codecs=["endian", {"name": "zlib"}][1:]))
    z = zarrdask.open_array(store, mode="r+")
    z[...] = np.arange(4)
    z.resize((6,))
    assert zarrdask.open_array(store, strict=True)[:4].tolist() == [0, 1, 2, 3]
