"""zarrdask and zarr-python read what the other writes."""

from pathlib import Path
from typing import Any, ClassVar

import dask
import numcodecs
import numpy as np
import pytest
import zarr

import zarrdask
from tests.interop.shared import (
    BIG,
    CHUNKS,
    CRC32C,
    LITTLE,
    SHAPES,
    SHARDS,
    SWAP,
    V3_DTYPES,
    V3_SHARDS,
    gzip,
    same,
    sample,
    transpose,
    v3_codecs,
    zstd,
)


def write_v3(values: np.ndarray, path: Path, codecs: list[Any], **options: Any) -> zarr.Array:
    """Write with zarr-python, which takes the list of codecs in three parts."""
    at = next(i for i, c in enumerate(codecs) if c["name"] in ("bytes", "sharding_indexed"))
    return write(
        values,
        path,
        filters=codecs[:at],
        serializer=codecs[at],
        compressors=codecs[at + 1 :],
        **options,
    )


def write(values: np.ndarray, path: Path, **options: Any) -> zarr.Array:
    z = zarr.create_array(path, shape=values.shape, dtype=values.dtype, **options)
    z[...] = values
    return z


def read(path: Path, name: str | None = None) -> np.ndarray:
    return np.asarray(zarr.open_array(path, path=name, mode="r")[...])


# --------------------------------------------------------------------------------------------
# v3


@pytest.mark.parametrize("dtype", V3_DTYPES)
@pytest.mark.parametrize("bytes_codec", [LITTLE, BIG], ids=["little", "big"])
class TestV3DataTypes:
    def test_zarrdask_reads(self, tmp_path, ours, dtype, bytes_codec):
        values = sample(dtype)
        write_v3(values, tmp_path, [bytes_codec, zstd(0)], chunks=CHUNKS)
        same(ours.read(tmp_path), values)

    def test_zarr_python_reads(self, tmp_path, ours, dtype, bytes_codec):
        values = sample(dtype)
        ours.write(values, tmp_path, chunks=CHUNKS, codecs=[bytes_codec, zstd(0)])
        same(read(tmp_path), values)


@pytest.mark.parametrize("dtype", ["float64", "int16"])
@pytest.mark.parametrize("name", v3_codecs(1))
class TestV3Codecs:
    def test_zarrdask_reads(self, tmp_path, ours, dtype, name):
        values = sample(dtype)
        write_v3(values, tmp_path, v3_codecs(values.itemsize)[name], chunks=CHUNKS)
        same(ours.read(tmp_path), values)

    def test_zarr_python_reads(self, tmp_path, ours, dtype, name):
        values = sample(dtype)
        ours.write(values, tmp_path, chunks=CHUNKS, codecs=v3_codecs(values.itemsize)[name])
        same(read(tmp_path), values)


@pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec")
@pytest.mark.parametrize("name", V3_SHARDS)
class TestV3Shards:
    def test_zarrdask_reads(self, tmp_path, ours, name):
        values = sample("float32")
        write_v3(values, tmp_path, V3_SHARDS[name], chunks=SHARDS)
        same(ours.read(tmp_path), values)

    def test_zarrdask_reads_parts(self, tmp_path, name):
        values = sample("float32")
        write_v3(values, tmp_path, V3_SHARDS[name], chunks=SHARDS)
        z, x = zarrdask.open_array(tmp_path), zarrdask.from_zarr(tmp_path)
        for part in (np.s_[7], np.s_[5:7, 7:9], np.s_[::4, 3], np.s_[-1:, -2:]):
            same(z[part], values[part])
            same(x[part].compute(scheduler="sync"), values[part])

    def test_zarr_python_reads(self, tmp_path, ours, name):
        values = sample("float32")
        ours.write(values, tmp_path, chunks=SHARDS, codecs=V3_SHARDS[name])
        same(read(tmp_path), values)

    def test_zarr_python_reads_an_update(self, tmp_path, ours, name):
        values = sample("float32")
        write_v3(values, tmp_path, V3_SHARDS[name], chunks=SHARDS)
        region = np.s_[3:11, 5:17]
        ours.update(values[region] + 1, tmp_path, region)
        values[region] += 1
        same(read(tmp_path), values)

    def test_zarrdask_reads_an_update(self, tmp_path, ours, name):
        values = sample("float32")
        ours.write(values, tmp_path, chunks=SHARDS, codecs=V3_SHARDS[name])
        region = np.s_[3:11, 5:17]
        zarr.open_array(tmp_path, mode="r+")[region] = values[region] + 1
        values[region] += 1
        same(ours.read(tmp_path), values)


#: What zarrdask's users write, and what zarr-python's write for the same.
V3_OPTIONS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"chunks": CHUNKS, "compressors": "gzip"}, {"chunks": CHUNKS, "compressors": gzip(6)}),
    ({"chunks": CHUNKS, "compressors": []}, {"chunks": CHUNKS, "compressors": None}),
    ({"chunks": CHUNKS, "compressors": "blosc"}, {"chunks": CHUNKS, "compressors": "auto"}),
    (
        {"chunks": CHUNKS, "compressors": numcodecs.Blosc("zstd", 3, numcodecs.Blosc.BITSHUFFLE)},
        {"chunks": CHUNKS, "compressors": zarr.codecs.BloscCodec(cname="zstd", clevel=3)},
    ),
    (
        {"chunks": CHUNKS, "compressors": ["zstd", "crc32c"], "order": "F"},
        {"chunks": CHUNKS, "compressors": [zstd(3), CRC32C], "filters": [SWAP]},
    ),
    (
        {"chunks": CHUNKS, "shards": (10, 16), "compressors": "blosc"},
        {"chunks": CHUNKS, "shards": {"shape": (10, 16), "index_location": "start"}},
    ),
    (
        {"chunks": (2, 3), "shards": "auto", "order": "F", "compressors": {"id": "zstd"}},
        {"chunks": (2, 3), "shards": (8, 9), "filters": [SWAP]},
    ),
]


@pytest.mark.parametrize(("option", "peers"), V3_OPTIONS)
class TestV3Options:
    def test_zarrdask_reads(self, tmp_path, ours, option, peers):
        values = sample("uint32")
        write(values, tmp_path, **peers)
        same(ours.read(tmp_path), values)

    def test_zarr_python_reads(self, tmp_path, ours, option, peers):
        values = sample("uint32")
        ours.write(values, tmp_path, **option)
        same(read(tmp_path), values)
        assert zarr.open_array(tmp_path).chunks == zarrdask.open_array(tmp_path).chunks
        assert zarr.open_array(tmp_path).shards == zarrdask.open_array(tmp_path).shards


#: zarrdask's names for the orders of chunks in shards, and those of zarr-python.
ORDERS = {"c": "lexicographic", "f": "colexicographic", "morton": "morton"}


@pytest.mark.parametrize(("order", "peers"), ORDERS.items(), ids=ORDERS)
@pytest.mark.parametrize("chunks", [(2, 2), (4, 1)])
def test_shards_in_the_same_order_are_the_same_bytes(tmp_path, order, peers, chunks):
    values = np.arange(1, 241, dtype="u2").reshape(12, 20)
    codec = zarr.codecs.ShardingCodec(chunk_shape=chunks, subchunk_write_order=peers)
    write(values, tmp_path / "peers", chunks=(12, 20), serializer=codec, compressors=None)
    with dask.config.set({"zarrdask.shard-order": order}):
        options = {"shape": (12, 20), "dtype": "u2", "shards": (12, 20), "compressors": ()}
        zarrdask.create_array(tmp_path / "ours", chunks=chunks, **options)[...] = values
    ours, theirs = (tmp_path / name / "c/0/0" for name in ("ours", "peers"))
    assert ours.read_bytes() == theirs.read_bytes()
    same(read(tmp_path / "ours"), values)


# --------------------------------------------------------------------------------------------
# Shapes, keys, fill values, in both formats

SHAPES_IN = [
    pytest.param(zarr_format, *case, id=f"v{zarr_format}-{name}")
    for zarr_format in (2, 3)
    for name, case in SHAPES.items()
    if zarr_format == 3 or case[2] is None
]
#: zarr-python reads shards without axes, but can't write them.
SHAPES_OUT = [case for case in SHAPES_IN if case.id != "v3-0-d-shard"]


@pytest.mark.parametrize("order", ["C", "F"])
class TestShapes:
    @pytest.mark.parametrize(("zarr_format", "shape", "chunks", "shards"), SHAPES_OUT)
    def test_zarrdask_reads(self, tmp_path, ours, zarr_format, shape, chunks, shards, order):
        values = sample("float64", shape)
        if zarr_format == 2:
            layout: dict[str, Any] = {"order": order}
        else:
            axes = list(reversed(range(len(shape))))
            filters = [transpose(*axes)] if order == "F" else []
            layout = {"shards": shards, "filters": filters}
        write(values, tmp_path, chunks=chunks, zarr_format=zarr_format, **layout)
        same(ours.read(tmp_path), values)

    @pytest.mark.parametrize(("zarr_format", "shape", "chunks", "shards"), SHAPES_IN)
    def test_zarr_python_reads(self, tmp_path, ours, zarr_format, shape, chunks, shards, order):
        values = sample("float64", shape)
        layout = {"chunks": chunks, "shards": shards, "order": order}
        ours.write(values, tmp_path, zarr_format=zarr_format, **layout)
        same(read(tmp_path), values)


KEYS = [(2, "v2", "."), (2, "v2", "/"), *((3, k, s) for k in ("default", "v2") for s in "./")]


@pytest.mark.parametrize(("zarr_format", "encoding", "separator"), KEYS)
@pytest.mark.parametrize("shape", [(13, 20), (13,), ()])
class TestKeys:
    def chunks(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return CHUNKS[: len(shape)]

    def test_zarrdask_reads(self, tmp_path, ours, zarr_format, encoding, separator, shape):
        values = sample("int32", shape)
        write(
            values,
            tmp_path,
            chunks=self.chunks(shape),
            zarr_format=zarr_format,
            chunk_key_encoding={"name": encoding, "separator": separator},
        )
        same(ours.read(tmp_path), values)

    def test_zarr_python_reads(self, tmp_path, ours, zarr_format, encoding, separator, shape):
        values = sample("int32", shape)
        keys = {"chunk_key_encoding": encoding, "separator": separator}
        ours.write(values, tmp_path, chunks=self.chunks(shape), zarr_format=zarr_format, **keys)
        same(read(tmp_path), values)


FILLS: list[tuple[int, str, Any]] = [
    *(
        (zarr_format, dtype, fill)
        for zarr_format in (2, 3)
        for dtype, fill in [
            ("bool", True),
            ("int8", -128),
            ("int64", -(2**63)),
            ("uint64", 2**64 - 1),
            ("float16", 0.1),
            ("float32", np.nan),
            ("float32", np.inf),
            ("float64", -np.inf),
            ("float32", -0.0),
            ("float64", 0.1),
            ("float64", 5e-324),
            ("complex64", complex(np.nan, -np.inf)),
            ("complex128", complex(-0.0, 0.1)),
        ]
    ),
    (2, ">f8", 0.1),
    (2, ">i4", -2),
    (2, "|S5", b"ab"),
    (2, "|S3", b"\x00\xff"),
    (2, "<U3", "né"),
    (2, ">U2", "\U0001f600"),
    (2, "|V3", b"\x01\x00\xff"),
    (2, "<M8[ns]", "NaT"),
    (2, ">M8[D]", 20000),
    (2, "<m8[s]", -1),
]


def fill_of(dtype: str, fill: Any) -> Any:
    dtype = np.dtype(dtype)
    if dtype.kind == "V":
        return np.void(fill)
    if dtype.kind in "mM":
        return np.array([fill]).astype(dtype)[0]
    return dtype.type(fill)


@pytest.mark.parametrize(("zarr_format", "dtype", "fill"), FILLS)
class TestFillValues:
    """Of seven elements two are written: the rest has the fill value's bits."""

    def values(self, dtype: str, fill: Any) -> np.ndarray:
        values = np.empty(7, dtype)
        values[...] = fill
        values[3:5] = np.zeros((), dtype)
        return values

    def test_zarrdask_reads(self, tmp_path, ours, zarr_format, dtype, fill):
        fill = fill_of(dtype, fill)
        options = {"zarr_format": zarr_format, "chunks": (2,), "fill_value": fill}
        z = zarr.create_array(tmp_path, shape=(7,), dtype=np.dtype(dtype), **options)
        z[3:5] = np.zeros(2, dtype)
        same(ours.read(tmp_path), self.values(dtype, fill))

    def test_zarr_python_reads(self, tmp_path, ours, zarr_format, dtype, fill):
        fill = fill_of(dtype, fill)
        values = self.values(dtype, fill)
        options = {"zarr_format": zarr_format, "chunks": (2,), "fill_value": fill}
        ours.write(values, tmp_path, **options)
        same(read(tmp_path), values)
        chunks = [p for p in tmp_path.rglob("*") if p.is_file() and p.name[0] not in ".z"]
        assert len(chunks) == 2  # one element of each is not the fill value


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_signed_zeros_are_not_the_fill_value(tmp_path, ours, zarr_format):
    values = np.array([0.0, 0.0, -0.0, -0.0])
    ours.write(values, tmp_path, chunks=(2,), zarr_format=zarr_format)
    same(read(tmp_path), values)


def test_zarr_python_reads_a_payload_of_nan(tmp_path, ours):
    # The other way is not to be had: zarr-python writes every NaN as "NaN".
    payload = np.array(0x7FC12345, "u4").view("f4")[()]
    values = np.array([1, 2, payload, payload], "f4")
    ours.write(values, tmp_path, chunks=(2,), fill_value=payload)
    assert [p.name for p in (tmp_path / "c").iterdir()] == ["0"]
    same(read(tmp_path), values)


@pytest.mark.parametrize("dtype", ["<f4", "|S3", "<M8[s]"])
def test_an_undefined_fill_value_reads_as_zeros(tmp_path, ours, dtype):
    zarr.create_array(
        tmp_path, shape=(3,), chunks=(2,), dtype=np.dtype(dtype), fill_value=None, zarr_format=2
    )
    expected = np.zeros(3, dtype)
    if expected.dtype.kind == "M":
        expected[:] = "NaT"  # as in zarr-python 3
    same(ours.read(tmp_path), expected)


# --------------------------------------------------------------------------------------------
# v2

V2_DTYPES: list[Any] = [
    *("|b1", "|i1", "|u1", "|S1", "|S12", "|V1", "|V5"),
    *(
        f"{order}{kind}"
        for kind in (
            "i2",
            "i4",
            "i8",
            "u2",
            "u4",
            "u8",
            "f2",
            "f4",
            "f8",
            "c8",
            "c16",
            "U1",
            "U4",
            "M8[ns]",
            "m8[25s]",
        )
        for order in "<>"
    ),
    *("<M8[Y]", ">M8[D]", ">m8[ms]"),
    [("r", "u1"), ("g", "u1"), ("b", "u1")],
    [("a", "<f4"), ("b", ">i2"), ("c", "S3"), ("d", "<c8")],
]


@pytest.mark.parametrize("dtype", V2_DTYPES, ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
class TestV2DataTypes:
    # Comparing all kinds of bits with the fill value, zarr-python meets signalling NaNs.
    @pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
    def test_zarrdask_reads(self, tmp_path, ours, dtype, order):
        values = sample(dtype)
        write(values, tmp_path, chunks=CHUNKS, zarr_format=2, order=order)
        same(ours.read(tmp_path), values)

    def test_zarr_python_reads(self, tmp_path, ours, dtype, order):
        values = sample(dtype)
        ours.write(values, tmp_path, chunks=CHUNKS, zarr_format=2, order=order)
        same(read(tmp_path), values)


class TestV2Strings:
    VALUES = np.array(["", "a", "né\U0001f600", "x" * 300, "\x00b"], object)

    def test_zarrdask_reads(self, tmp_path, ours):
        z = zarr.create_array(tmp_path, shape=(5,), chunks=(2,), dtype=str, zarr_format=2)
        z[...] = self.VALUES
        same(ours.read(tmp_path), self.VALUES)

    def test_zarr_python_reads(self, tmp_path, ours):
        ours.write(self.VALUES, tmp_path, chunks=(2,), zarr_format=2)
        assert read(tmp_path).tolist() == self.VALUES.tolist()


@pytest.mark.filterwarnings("ignore::zarr.errors.UnstableSpecificationWarning")
class TestV2Bytes:
    """The last chunk is absent: it holds the fill value, which is bytes too."""

    VALUES = np.array([b"", b"a\x00b", b"x" * 300, b"\x00", b""], object)

    def test_zarrdask_reads(self, tmp_path, ours):
        dtype = zarr.dtype.VariableLengthBytes()
        z = zarr.create_array(tmp_path, shape=(5,), chunks=(2,), dtype=dtype, zarr_format=2)
        z[...] = self.VALUES
        assert not (tmp_path / "2").exists()
        same(ours.read(tmp_path), self.VALUES)

    def test_zarr_python_reads(self, tmp_path, ours):
        filters = [numcodecs.VLenBytes()]
        ours.write(self.VALUES, tmp_path, chunks=(2,), zarr_format=2, filters=filters)
        same(read(tmp_path), self.VALUES)


BLOSC = numcodecs.Blosc
V2_COMPRESSORS: dict[str, Any] = {
    "none": None,
    **{
        f"blosc-{cname}": BLOSC(cname, 5, BLOSC.SHUFFLE)
        for cname in ("lz4", "lz4hc", "blosclz", "zlib", "zstd")
    },
    "blosc-noshuffle": BLOSC("lz4", 5, BLOSC.NOSHUFFLE),
    "blosc-bitshuffle": BLOSC("zstd", 1, BLOSC.BITSHUFFLE),
    "blosc-autoshuffle": BLOSC("lz4", 9, BLOSC.AUTOSHUFFLE, 256),
    "zlib": numcodecs.Zlib(9),
    "gzip": numcodecs.GZip(1),
    "bz2": numcodecs.BZ2(9),
    "lzma": numcodecs.LZMA(preset=1),
    "lzma-raw": numcodecs.LZMA(format=3, filters=[{"id": 33, "preset": 1}]),
    "lz4": numcodecs.LZ4(3),
    "zstd": numcodecs.Zstd(7),
    "zstd-checksum": numcodecs.Zstd(3, checksum=True),
}


@pytest.mark.parametrize("dtype", [">f8", "<i2", "|u1"])
@pytest.mark.parametrize("compressor", V2_COMPRESSORS.values(), ids=V2_COMPRESSORS)
class TestV2Compressors:
    def test_zarrdask_reads(self, tmp_path, ours, dtype, compressor):
        values = sample(dtype)
        write(values, tmp_path, chunks=CHUNKS, zarr_format=2, compressors=compressor)
        same(ours.read(tmp_path), values)

    def test_zarr_python_reads(self, tmp_path, ours, dtype, compressor):
        values = sample(dtype)
        compressors = [] if compressor is None else compressor
        ours.write(values, tmp_path, chunks=CHUNKS, zarr_format=2, compressors=compressors)
        same(read(tmp_path), values)


#: dtype, order, filters; small whole numbers survive all of them.
V2_FILTERS: dict[str, tuple[str, str, list[Any]]] = {
    "delta": ("<i4", "C", [numcodecs.Delta("<i4")]),
    "delta-big-endian": (">i4", "C", [numcodecs.Delta(">i4")]),
    "delta-narrowed": ("<i4", "F", [numcodecs.Delta("<i4", astype="<i2")]),
    "scaled": ("<f8", "C", [numcodecs.FixedScaleOffset(1, 10, "<f8", "<i2")]),
    "scaled-to-big-endian": ("<f4", "F", [numcodecs.FixedScaleOffset(-3, 2, "<f4", ">i4")]),
    "quantize": ("<f4", "C", [numcodecs.Quantize(3, "<f4")]),
    "quantize-narrowed": ("<f8", "C", [numcodecs.Quantize(1, "<f8", "<f4")]),
    "bitround": ("<f4", "C", [numcodecs.BitRound(10)]),
    "astype": ("<i8", "C", [numcodecs.AsType("<i2", "<i8")]),
    "astype-to-big-endian": ("<f8", "F", [numcodecs.AsType(">f4", "<f8")]),
    "packbits": ("|b1", "C", [numcodecs.PackBits()]),
    "packbits-F": ("|b1", "F", [numcodecs.PackBits()]),
    "shuffle": ("<i4", "C", [numcodecs.Shuffle(4)]),
    "shuffle-F": (">f8", "F", [numcodecs.Shuffle(8)]),
    "delta-shuffle": ("<i8", "C", [numcodecs.Delta("<i8"), numcodecs.Shuffle(8)]),
    "scaled-delta": (
        "<f8",
        "C",
        [numcodecs.FixedScaleOffset(0, 4, "<f8", "<i4"), numcodecs.Delta("<i4")],
    ),
    "crc32": ("<u2", "C", [numcodecs.CRC32()]),
    "crc32-at-the-end": ("<u2", "C", [numcodecs.CRC32(location="end")]),
    "crc32c": ("<u2", "C", [numcodecs.CRC32C()]),
    "adler32": (">u2", "F", [numcodecs.Adler32()]),
    "fletcher32": ("<f4", "C", [numcodecs.Fletcher32()]),
    "jenkins": ("<f4", "C", [numcodecs.JenkinsLookup3()]),
    "base64": ("<i4", "C", [numcodecs.Base64()]),
    "categorize": ("<U1", "C", [numcodecs.Categorize(list("01234567"), dtype="<U1")]),
    "a-compressor-as-a-filter": ("<i8", "C", [numcodecs.Delta("<i8"), numcodecs.Zlib(1)]),
}


@pytest.mark.parametrize(("dtype", "order", "filters"), V2_FILTERS.values(), ids=V2_FILTERS)
@pytest.mark.parametrize("compressor", [None, numcodecs.Zlib(1), BLOSC("lz4")], ids=str)
class TestV2Filters:
    def values(self, dtype: str) -> np.ndarray:
        ramp = np.arange(13 * 20).reshape(13, 20) % 8
        return (ramp % 2 == 1) if dtype == "|b1" else ramp.astype(dtype)

    def test_zarrdask_reads(self, tmp_path, ours, dtype, order, filters, compressor):
        values = self.values(dtype)
        options = {"order": order, "filters": filters, "compressors": compressor}
        write(values, tmp_path, chunks=CHUNKS, zarr_format=2, **options)
        same(ours.read(tmp_path), values)

    def test_zarr_python_reads(self, tmp_path, ours, dtype, order, filters, compressor):
        values = self.values(dtype)
        compressors = [] if compressor is None else compressor
        options = {"order": order, "filters": filters, "compressors": compressors}
        ours.write(values, tmp_path, chunks=CHUNKS, zarr_format=2, **options)
        same(read(tmp_path), values)


# --------------------------------------------------------------------------------------------
# Groups, attributes, names, and taking turns on one store

ATTRIBUTES = {
    "units": "K",
    "unicode": "た\U0001f600",
    "nested": {"list": [1, 2.5, None, True, {"deep": []}], "empty": {}},
    "big": 2**63,
    "": "an empty name",
}


@pytest.mark.parametrize("zarr_format", [2, 3])
class TestGroups:
    def test_zarrdask_reads(self, tmp_path, zarr_format):
        root = zarr.create_group(tmp_path, zarr_format=zarr_format, attributes=ATTRIBUTES)
        sub = root.create_group("sub/deeper", attributes={"n": 1})
        z = sub.create_array("x", shape=(4,), chunks=(2,), dtype="i4", attributes=ATTRIBUTES)
        z[...] = np.arange(4)
        root.create_array("y y", shape=(), dtype="f8")
        found = zarrdask.open_group(tmp_path)
        assert found.zarr_format == zarr_format
        assert dict(found.attrs) == ATTRIBUTES
        assert list(found) == ["sub", "y y"]
        assert [path for path, _ in found.walk()] == ["sub", "sub/deeper", "sub/deeper/x", "y y"]
        assert dict(found["sub/deeper"].attrs) == {"n": 1}
        assert dict(found["sub/deeper/x"].attrs) == ATTRIBUTES
        same(found["sub"]["deeper"]["x"][...], np.arange(4, dtype="i4"))

    def test_zarr_python_reads(self, tmp_path, zarr_format):
        root = zarrdask.create_group(tmp_path, attributes=ATTRIBUTES, zarr_format=zarr_format)
        sub = root.create_group("sub/deeper", attributes={"n": 1})
        z = sub.create_array("x", shape=(4,), chunks=(2,), dtype="i4", attributes=ATTRIBUTES)
        z[...] = np.arange(4)
        root.create_array("y y", shape=(), dtype="f8")
        root["sub"].attrs["late"] = [1]
        found = zarr.open_group(tmp_path, mode="r")
        assert found.metadata.zarr_format == zarr_format
        assert dict(found.attrs) == ATTRIBUTES
        assert sorted(path for path, _ in found.members(max_depth=None)) == [
            *("sub", "sub/deeper", "sub/deeper/x", "y y")
        ]
        assert dict(found["sub"].attrs) == {"late": [1]}
        assert dict(found["sub/deeper"].attrs) == {"n": 1}
        assert dict(found["sub/deeper/x"].attrs) == ATTRIBUTES
        same(found["sub/deeper/x"][...], np.arange(4, dtype="i4"))

    @pytest.mark.filterwarnings("ignore:Consolidated metadata")
    def test_zarrdask_reads_and_changes_consolidated(self, tmp_path, zarr_format):
        root = zarr.create_group(tmp_path, zarr_format=zarr_format)
        root.create_group("g").create_array("x", shape=(4,), dtype="i4")[...] = 3
        zarr.consolidate_metadata(tmp_path)
        found = zarrdask.open_group(tmp_path, mode="r+")
        assert [path for path, _ in found.walk()] == ["g", "g/x"]
        assert found["g/x"][1] == 3
        found["g"].attrs["a"] = 1
        assert dict(zarr.open_group(tmp_path, use_consolidated=False)["g"].attrs) == {"a": 1}

    def test_zarr_python_misses_what_zarrdask_deleted(self, tmp_path, zarr_format):
        root = zarr.create_group(tmp_path, zarr_format=zarr_format)
        for name in ("keep", "drop"):
            root.create_array(f"{name}/x", shape=(4,), dtype="i4")
        del zarrdask.open_group(tmp_path, mode="r+")["drop"]
        assert list(zarr.open_group(tmp_path, mode="r").keys()) == ["keep"]


class TestDimensionNames:
    def test_zarrdask_reads_v3(self, tmp_path):
        names = ("y", None, "")
        zarr.create_array(tmp_path, shape=(1, 2, 3), dtype="i4", dimension_names=names)
        assert zarrdask.open_array(tmp_path).dimension_names == names

    def test_zarr_python_reads_v3(self, tmp_path):
        names = ("y", None, "")
        zarrdask.create_array(tmp_path, shape=(1, 2, 3), dtype="i4", dimension_names=names)
        assert zarr.open_array(tmp_path).metadata.dimension_names == names

    def test_zarrdask_reads_xarrays_in_v2(self, tmp_path):
        attributes = {"_ARRAY_DIMENSIONS": ["y", "x"], "units": "K"}
        zarr.create_array(tmp_path, shape=(2, 3), dtype="i4", zarr_format=2, attributes=attributes)
        assert zarrdask.open_array(tmp_path).dimension_names == ("y", "x")

    def test_zarr_python_reads_xarrays_in_v2(self, tmp_path):
        options = {"dimension_names": ("y", "x"), "attributes": {"units": "K"}}
        zarrdask.create_array(tmp_path, shape=(2, 3), dtype="i4", zarr_format=2, **options)
        found = dict(zarr.open_array(tmp_path).attrs)
        assert found == {"_ARRAY_DIMENSIONS": ["y", "x"], "units": "K"}


@pytest.mark.parametrize("zarr_format", [2, 3])
class TestTakingTurns:
    OPTIONS: ClassVar = {"chunks": (3, 4), "fill_value": -1}

    def test_zarrdask_appends_and_zarr_python_reads(self, tmp_path, zarr_format):
        values = sample("int32")
        write(values[:10], tmp_path, zarr_format=zarr_format, **self.OPTIONS)
        zarrdask.open_array(tmp_path, mode="r+").append(values[10:])
        same(read(tmp_path), values)

    def test_zarr_python_appends_and_zarrdask_reads(self, tmp_path, ours, zarr_format):
        values = sample("int32")
        ours.write(values[:10], tmp_path, zarr_format=zarr_format, **self.OPTIONS)
        zarr.open_array(tmp_path, mode="r+").append(values[10:])
        same(ours.read(tmp_path), values)

    def test_what_zarrdask_cuts_off_does_not_come_back(self, tmp_path, zarr_format):
        values = sample("int32")
        write(values, tmp_path, zarr_format=zarr_format, **self.OPTIONS)
        zarrdask.open_array(tmp_path, mode="r+").resize((7, 6))
        zarr.open_array(tmp_path, mode="r+").resize(values.shape)
        expected = np.full_like(values, -1)
        expected[:7, :6] = values[:7, :6]
        same(read(tmp_path), expected)

    def test_zarrdask_changes_attributes_only(self, tmp_path, zarr_format):
        values = sample("int32")
        z = write(values, tmp_path, zarr_format=zarr_format, **self.OPTIONS)
        zarrdask.open_array(tmp_path, mode="r+").attrs["units"] = "K"
        found = zarr.open_array(tmp_path)
        assert dict(found.attrs) == {"units": "K"}
        before, after = z.metadata.to_dict(), found.metadata.to_dict()
        assert {**before, "attributes": None} == {**after, "attributes": None}
        same(found[...], values)


@pytest.mark.parametrize("zarr_format", [2, 3])
class TestAttributesThatAreNotJson:
    """NaN, infinities and lone surrogates: each writes them as the other does."""

    attributes: ClassVar = {
        "missing": float("nan"),
        "range": [float("-inf"), float("inf")],
        "half": "\ud800",
    }

    def test_zarrdask_changes_what_zarr_python_wrote(self, tmp_path, zarr_format):
        theirs = zarr.create_array(
            tmp_path / "z",
            shape=(4,),
            dtype="i4",
            zarr_format=zarr_format,
            attributes=self.attributes,
        )
        theirs[...] = np.arange(4)
        z = zarrdask.open_array(tmp_path, "z", mode="r+")
        z.resize(3)
        z.append([7])
        z.attrs["new"] = float("nan")
        again = zarr.open_array(tmp_path / "z", mode="r")
        assert again[...].tolist() == [0, 1, 2, 7]
        assert repr(again.attrs.asdict()) == repr(self.attributes | {"new": float("nan")})

    def test_zarr_python_reads_what_zarrdask_wrote(self, tmp_path, zarr_format):
        zarrdask.create_array(
            tmp_path, shape=4, dtype="i4", zarr_format=zarr_format, attributes=self.attributes
        )
        again = zarr.open_array(tmp_path, mode="r")
        assert repr(again.attrs.asdict()) == repr(self.attributes)
