"""zarrdask and others read what the other writes: registered codecs of v3, and numcodecs' ones."""

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.abc.codec import ArrayArrayCodec, ArrayBytesCodec
from zarr.registry import register_codec

import zarrdask
from tests.documents import LITTLE, named
from tests.interop.shared import CHUNKS, Ours, same, sample

#: In front of `bytes`, with the type of the elements.
FILTERS = {
    "delta": ("int32", {"dtype": "<i4"}),
    "delta narrower": ("int32", {"dtype": "<i4", "astype": "<i2"}),
    "fixedscaleoffset": (
        "float64",
        {"offset": 10, "scale": 4, "dtype": "<f8", "astype": "<i4"},
    ),
    "quantize": ("float32", {"digits": 2, "dtype": "<f4"}),
    "bitround": ("float32", {"keepbits": 12}),
    "astype": ("float64", {"encode_dtype": "<f4", "decode_dtype": "<f8"}),
}
COMPRESSORS: dict[str, dict[str, Any]] = {
    "blosc": {"cname": "zstd", "clevel": 3, "shuffle": 2},
    "bz2": {"level": 1},
    "gzip": {"level": 1},
    "lz4": {"acceleration": 1},
    "lzma": {"preset": 1},
    "shuffle": {"elementsize": 4},
    "zlib": {"level": 1},
    "zstd": {"level": 1},
    **{name: {} for name in ("adler32", "crc32", "crc32c", "fletcher32", "jenkins_lookup3")},
}


def values_of(dtype: str) -> np.ndarray:
    """Return numbers that all filters give back, and some rows of the fill value."""
    values = (np.arange(260).reshape(13, 20) % 97 / 4 + 10).astype(dtype)
    values[:5] = 0
    return values


def theirs(path: Path, values: np.ndarray, codecs: list[dict[str, Any]]) -> None:
    """Let zarr-python write an array with these codecs: it gets the metadata from us."""
    options = {"shape": values.shape, "dtype": values.dtype, "chunks": CHUNKS}
    zarrdask.create_array(path, **options, codecs=codecs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.open_array(path, mode="r+")[...] = values


def read_by_zarr(path: Path) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(zarr.open_array(path, mode="r")[...])


@pytest.mark.parametrize("name", FILTERS)
class TestFilters:
    def test_zarr_reads_ours(self, tmp_path: Path, ours: Ours, name: str) -> None:
        dtype, members = FILTERS[name]
        codec = named(f"numcodecs.{name.split(maxsplit=1)[0]}", **members)
        ours.write(values_of(dtype), tmp_path, chunks=CHUNKS, codecs=[codec, LITTLE])
        same(read_by_zarr(tmp_path), values_of(dtype))

    def test_we_read_zarrs(self, tmp_path: Path, ours: Ours, name: str) -> None:
        dtype, members = FILTERS[name]
        codec = named(f"numcodecs.{name.split(maxsplit=1)[0]}", **members)
        theirs(tmp_path, values_of(dtype), [codec, LITTLE])
        same(ours.read(tmp_path), values_of(dtype))


@pytest.mark.parametrize("name", COMPRESSORS)
class TestCompressors:
    def test_zarr_reads_ours(self, tmp_path: Path, ours: Ours, name: str) -> None:
        codecs = [LITTLE, named(f"numcodecs.{name}", **COMPRESSORS[name])]
        ours.write(sample("int32"), tmp_path, chunks=CHUNKS, codecs=codecs)
        same(read_by_zarr(tmp_path), sample("int32"))

    def test_we_read_zarrs(self, tmp_path: Path, ours: Ours, name: str) -> None:
        theirs(tmp_path, sample("int32"), [LITTLE, named(f"numcodecs.{name}", **COMPRESSORS[name])])
        same(ours.read(tmp_path), sample("int32"))


@pytest.mark.parametrize("name", ["pcodec", "zfpy"])
class TestSerializers:
    def test_zarr_reads_ours(self, tmp_path: Path, ours: Ours, name: str) -> None:
        ours.write(values_of("float32"), tmp_path, chunks=CHUNKS, codecs=[f"numcodecs.{name}"])
        same(read_by_zarr(tmp_path), values_of("float32"))

    def test_we_read_zarrs(self, tmp_path: Path, ours: Ours, name: str) -> None:
        theirs(tmp_path, values_of("float32"), [f"numcodecs.{name}"])
        same(ours.read(tmp_path), values_of("float32"))


# ---- zarrs, a pipeline of zarr-python that knows codecs which zarr-python does not


def declare(name: str, base: type) -> None:
    """Make zarr-python accept a codec's metadata; only zarrs can apply it."""

    @dataclass(frozen=True)
    class Declared(base):  # type: ignore[misc]
        configuration: str = "{}"

        @classmethod
        def from_dict(cls, data):
            return cls(json.dumps(data.get("configuration", {})))

        def to_dict(self):
            return {"name": name, "configuration": json.loads(self.configuration)}

        def compute_encoded_size(self, *given):
            raise NotImplementedError

        async def _decode_single(self, *given):
            raise RuntimeError("not by zarrs")

        async def _encode_single(self, *given):
            raise RuntimeError("not by zarrs")

    register_codec(name, Declared)


declare("packbits", ArrayBytesCodec)
declare("reshape", ArrayArrayCodec)

ZARRS = {
    "bool": ("bool", [named("packbits", padding_encoding="first_byte")]),
    "bool after": ("bool", [named("packbits", padding_encoding="last_byte")]),
    "some bits": ("uint16", [named("packbits", first_bit=0, last_bit=8)]),
    "other bits": ("uint32", [named("packbits", first_bit=2, last_bit=20)]),
    "all bits": ("float64", [named("packbits")]),
    "complex": ("complex64", [named("packbits", first_bit=16)]),
    "reshape": ("float32", [named("reshape", shape=[[0], 2, -1]), LITTLE]),
    "pcodec": ("float64", ["numcodecs.pcodec"]),
    "zfpy": ("float64", ["numcodecs.zfpy"]),
    "bz2": ("int32", [LITTLE, "numcodecs.bz2", "numcodecs.fletcher32"]),
    "zlib": ("int32", [LITTLE, named("numcodecs.zlib", level=1)]),
}


@pytest.fixture
def zarrs():
    """zarr-python, with zarrs at work."""
    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        yield


@pytest.mark.usefixtures("zarrs")
@pytest.mark.parametrize("name", ZARRS)
class TestZarrs:
    def numbers(self, dtype: str) -> np.ndarray:
        # Whole chunks: of a part zarrs forgets where the first bit belongs.
        numbers = np.arange(360).reshape(15, 24) * 4 % 500
        return (numbers % 3 == 0) if dtype == "bool" else numbers.astype(dtype)

    def test_it_reads_ours(self, tmp_path: Path, ours: Ours, name: str) -> None:
        dtype, codecs = ZARRS[name]
        ours.write(self.numbers(dtype), tmp_path, chunks=CHUNKS, codecs=codecs)
        same(read_by_zarr(tmp_path), self.numbers(dtype))

    def test_we_read_its(self, tmp_path: Path, ours: Ours, name: str) -> None:
        dtype, codecs = ZARRS[name]
        theirs(tmp_path, self.numbers(dtype), codecs)
        same(ours.read(tmp_path), self.numbers(dtype))


@pytest.mark.usefixtures("zarrs")
@pytest.mark.parametrize("dtype", ["int8", "int16", "int64"])
def test_zarrs_packs_signed_integers_into_the_same_bits(tmp_path: Path, dtype: str) -> None:
    values = np.arange(-8, 8, dtype=dtype)
    written = []
    for name in ("ours", "theirs"):
        path = tmp_path / name
        codecs = [named("packbits", last_bit=3)]
        z = zarrdask.create_array(path, shape=16, dtype=dtype, chunks=-1, codecs=codecs)
        z[...] = values
        if name == "theirs":
            zarr.open_array(path, mode="r+")[...] = values
        same(zarrdask.open_array(path)[...], values)
        written.append((path / "c" / "0").read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize(
    "codec",
    [
        zarr.codecs.BloscCodec(cname="zstd"),
        zarr.codecs.BloscCodec(shuffle="noshuffle", typesize=2),
        zarr.codecs.GzipCodec(level=2),
        zarr.codecs.ZstdCodec(level=4),
    ],
)
def test_codecs_of_zarr_python_are_stored_as_it_stores_them(codec: Any) -> None:
    options: Any = {"shape": (4,), "chunks": (2,), "dtype": "i4"}
    theirs = zarr.create_array({}, compressors=codec, **options)
    ours = zarrdask.create_array({}, compressors=codec, **options)
    assert ours.compressors[0].to_json() == theirs.compressors[0].to_dict()
    v2 = zarrdask.create_array({}, compressors=codec, zarr_format=2, **options)
    assert v2.compressors[0].name == ours.compressors[0].name


def test_a_whole_list_of_codecs_of_zarr_python() -> None:
    inner = [zarr.codecs.BytesCodec(), zarr.codecs.GzipCodec()]
    sharding = zarr.codecs.ShardingCodec(chunk_shape=(2, 2), codecs=inner)
    codecs = [zarr.codecs.TransposeCodec(order=(1, 0)), sharding]
    z = zarrdask.create_array({}, shape=(4, 4), dtype="i8", codecs=codecs)
    z[...] = np.arange(16).reshape(4, 4)
    same(z[...], np.arange(16).reshape(4, 4))
    assert z.shards == (4, 4)
