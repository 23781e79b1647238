"""The codecs of imagecodecs. A stand-in for the package has classes of the same form."""

import sys
import types
import zlib

import numpy as np
import pytest

import zarrdask
from tests.contracts.codec import (
    check_array_array,
    check_array_bytes,
    check_bounded,
    check_bytes_bytes,
    check_damage,
    check_json,
)
from tests.covering import for_each
from zarrdask.errors import CodecError, MetadataError, TruncatedError, UnsupportedError
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.imagecodecs import adapter
from zarrdask.formats.codecs.imagecodecs.names import KINDS
from zarrdask.formats.codecs.registry import CODECS, parse_codec

CHUNK = np.arange(12, dtype="u2").reshape(3, 4)


class StandIn:
    @classmethod
    def from_config(cls, config):
        return cls(**config)


class Zlib(StandIn):
    codec_id = "imagecodecs_zlib"

    def __init__(self, *, level=None):
        self.level = 6 if level is None else int(level)

    def encode(self, buf):
        return zlib.compress(buf, self.level)

    def decode(self, buf, out=None):
        decoded = zlib.decompress(buf)
        if out is None:
            return decoded
        # As some codecs do, it fills the buffer and ignores what follows.
        view = memoryview(out)
        view[: len(decoded)] = decoded[: len(view)]
        return view[: len(decoded)]


class Delta(StandIn):
    codec_id = "imagecodecs_delta"

    def __init__(self, *, shape=None, dtype=None, axis=-1):
        self.expected, self.axis = (shape, np.dtype(dtype)), axis

    def encode(self, buf):
        assert (buf.shape, buf.dtype) == self.expected
        return np.diff(buf, axis=self.axis, prepend=buf.dtype.type(0)).tobytes()

    def decode(self, buf, out=None):
        shape, dtype = self.expected
        return np.cumsum(np.frombuffer(buf, dtype).reshape(shape), self.axis, dtype)


class Png(StandIn):
    codec_id = "imagecodecs_png"

    def __init__(self, *, level=None, squeeze=None):
        self.level = level

    def encode(self, buf):
        if self.level == 0:
            raise NotImplementedError
        rows, columns = buf.shape
        return bytes([rows, columns, buf.dtype.itemsize]) + buf.tobytes()

    def decode(self, buf, out=None):
        rows, columns, size = buf[:3]
        return np.frombuffer(buf[3:], f"u{size}").reshape(rows, columns)


@pytest.fixture(autouse=True)
def _package(monkeypatch):
    module = types.ModuleType("imagecodecs.numcodecs")
    vars(module).update(Zlib=Zlib, Delta=Delta, Png=Png)
    monkeypatch.setitem(sys.modules, "imagecodecs", types.ModuleType("imagecodecs"))
    monkeypatch.setitem(sys.modules, "imagecodecs.numcodecs", module)
    for function in (adapter.make, adapter.parameters_of):
        function.cache_clear()
    yield
    for function in (adapter.make, adapter.parameters_of):
        function.cache_clear()


def image(name, **configuration):
    return parse_codec({"name": f"imagecodecs_{name}", "configuration": configuration})


def test_a_compressor():
    codec = image("zlib", level=3, numthreads=2)
    check_json(codec, parse_codec)
    check_bytes_bytes(codec)
    check_bounded(codec)
    check_damage(codec)


def test_a_filter_gets_the_shape_and_the_data_type_of_the_chunk():
    codec = image("delta", axis=0)
    check_json(codec, parse_codec)
    check_array_array(codec, CHUNK)
    check_array_array(codec, CHUNK.astype("i4"))


def test_a_serializer():
    check_json(image("png"), parse_codec)
    check_array_bytes(image("png"), CHUNK)
    check_array_bytes(image("png"), CHUNK.astype(">u2"))


@for_each("other", [CHUNK.astype("u4"), CHUNK[:2], CHUNK.reshape(2, 6)[:, :4]])
def test_an_image_of_another_size_or_type_is_an_error(other):
    data = Png().encode(other)
    with pytest.raises(CodecError, match="does not decode to a chunk of this array"):
        image("png").bind(ChunkSpec(CHUNK.shape, CHUNK.dtype, 0)).decode(data)


@for_each("damage", [b"", b"\3", b"\3\4\2short"])
def test_damage_is_an_error(damage):
    with pytest.raises(CodecError):
        image("png").bind(ChunkSpec(CHUNK.shape, CHUNK.dtype, 0)).decode(damage)


@for_each("name", ["jpeg", "htj2k"])
def test_an_image_without_its_end_marker_is_truncated(name, monkeypatch):
    image = type("Image", (Png,), {"codec_id": f"imagecodecs_{name}"})
    monkeypatch.setattr(sys.modules["imagecodecs.numcodecs"], "Image", image, raising=False)
    codec = adapter.ImageCodec(f"imagecodecs_{name}", "{}").bind(
        ChunkSpec(CHUNK.shape, CHUNK.dtype, 0)
    )
    with pytest.raises(TruncatedError, match="end marker"):
        codec.decode(Png().encode(CHUNK))


@for_each("dtype", ["M8[s]", "O", "V3", "S2"])
@for_each("name", ["png", "delta"])
def test_elements_that_are_no_numbers_are_an_error_at_open(name, dtype):
    codec, spec = image(name), ChunkSpec((2,), np.dtype(dtype), 0)
    with pytest.raises(MetadataError, match="can't encode"):
        codec.resolve(spec) if name == "delta" else codec.bind(spec)


@for_each(
    ("name", "members", "match"),
    [
        ("zlib", {"livel": 1}, "livel"),
        ("zlib", {"level": "high"}, "the configuration of the codec is invalid"),
        ("png", {"quality": 1}, "quality"),
    ],
)
def test_a_wrong_configuration_is_an_error(name, members, match):
    with pytest.raises(MetadataError, match=match) as caught:
        image(name, **members)
    assert f"imagecodecs_{name}" in caught.value.key


def test_a_codec_that_only_decodes_is_named_when_it_encodes():
    z = zarrdask.create_array({}, shape=CHUNK.shape, dtype="u2", codecs=[image("png", level=0)])
    with pytest.raises(UnsupportedError, match=r"imagecodecs_png.*can't encode"):
        z[...] = CHUNK


def test_an_array_is_written_and_read():
    filters = [{"name": "imagecodecs_delta", "configuration": {}}]
    options = {"shape": CHUNK.shape, "dtype": "u2", "chunks": (3, 2)}
    z = zarrdask.create_array(
        {}, codecs=[*filters, "imagecodecs_png", "imagecodecs_zlib"], **options
    )
    z[...] = CHUNK
    assert np.array_equal(zarrdask.from_zarr(z).compute(), CHUNK)


def test_each_name_has_a_codec_of_its_kind():
    assert all(CODECS.find(name).kind is kind for name, kind in KINDS.items())


def test_a_codec_that_this_release_lacks_is_named():
    with pytest.raises(UnsupportedError, match=r"imagecodecs_webp.*upgrade"):
        image("webp")


def test_without_the_package_the_error_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "imagecodecs", None)
    with pytest.raises(UnsupportedError, match=r"zarrdask\[imagecodecs\]"):
        image("zlib")
