"""zarrdask and TensorStore read what the other writes."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import tensorstore as ts

import zarrdask
from tests.interop.shared import (
    BIG,
    CHUNKS,
    LITTLE,
    SHAPES,
    SHARDS,
    V3_DTYPES,
    V3_SHARDS,
    same,
    sample,
    sharding,
    transpose,
    v3_codecs,
    zstd,
)


def spec(path: Path, driver: str = "zarr3", **options: Any) -> dict[str, Any]:
    return {"driver": driver, "kvstore": {"driver": "file", "path": f"{path}/"}, **options}


def v3(shape: Any, dtype: str, chunks: Any, **members: Any) -> dict[str, Any]:
    """Return v3 metadata; TensorStore fills in what is left open."""
    grid = {"name": "regular", "configuration": {"chunk_shape": list(chunks)}}
    return {"shape": list(shape), "data_type": dtype, "chunk_grid": grid, **members}


def create_v3(path: Path, shape: Any, dtype: Any, chunks: Any, **members: Any) -> Any:
    metadata = v3(shape, np.dtype(dtype).name, chunks, **members)
    return ts.open(spec(path, metadata=metadata), create=True).result()


def write_v3(values: np.ndarray, path: Path, chunks: Any, **members: Any) -> None:
    create_v3(path, values.shape, values.dtype, chunks, **members)[...] = values


def write_v2(values: np.ndarray, path: Path, chunks: Any, **members: Any) -> None:
    descr = values.dtype.descr if values.dtype.names else values.dtype.str
    metadata = {"shape": list(values.shape), "chunks": list(chunks), "dtype": descr, **members}
    if not values.dtype.names:
        ts.open(spec(path, "zarr", metadata=metadata), create=True).result()[...] = typed(values)
        return
    for field in values.dtype.names:
        target = spec(path, "zarr", field=field, metadata=metadata)
        ts.open(target, create=True, open=True).result()[...] = typed(values[field])


def typed(values: np.ndarray) -> np.ndarray:
    """Return an array as TensorStore sees it: native, and bytes along an axis of their own."""
    kind = values.dtype.kind
    if kind not in "SV":
        return values.astype(values.dtype.newbyteorder("="))
    axis = np.frombuffer(values.tobytes(), f"{kind}1")
    return axis.reshape(*values.shape, values.dtype.itemsize)


def read(path: Path, driver: str = "zarr3", **options: Any) -> np.ndarray:
    found = ts.open(spec(path, driver, **options), read=True).result()
    if found.dtype.name in ("byte", "char"):
        return read_bytes(found)
    return np.asarray(found.read().result())


def read_bytes(found: Any) -> np.ndarray:
    """Return what TensorStore reads of bytes, which its arrays lose on their way to Python."""
    kind = "S" if found.dtype.name == "char" else "V"
    *shape, size = found.shape
    raw = {"shape": shape, "chunks": shape, "dtype": f"|{kind}{size}", "compressor": None}
    with TemporaryDirectory() as path:
        ts.open(spec(Path(path), "zarr", metadata=raw), create=True).result()[...] = found
        (chunk,) = (file for file in Path(path).iterdir() if file.name[0] != ".")
        return np.frombuffer(chunk.read_bytes(), f"{kind}1").reshape(found.shape)


# --------------------------------------------------------------------------------------------
# v3


@pytest.mark.parametrize("dtype", V3_DTYPES)
@pytest.mark.parametrize("bytes_codec", [LITTLE, BIG], ids=["little", "big"])
class TestV3DataTypes:
    def test_zarrdask_reads(self, tmp_path, ours, dtype, bytes_codec):
        values = sample(dtype)
        write_v3(values, tmp_path, CHUNKS, codecs=[bytes_codec, zstd(1)])
        same(ours.read(tmp_path), values)

    def test_tensorstore_reads(self, tmp_path, ours, dtype, bytes_codec):
        values = sample(dtype)
        ours.write(values, tmp_path, chunks=CHUNKS, codecs=[bytes_codec, zstd(1)])
        same(read(tmp_path), values)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("name", v3_codecs(1))
class TestV3Codecs:
    def test_zarrdask_reads(self, tmp_path, ours, dtype, name):
        values = sample(dtype)
        write_v3(values, tmp_path, CHUNKS, codecs=v3_codecs(values.itemsize)[name])
        same(ours.read(tmp_path), values)

    def test_tensorstore_reads(self, tmp_path, ours, dtype, name):
        values = sample(dtype)
        ours.write(values, tmp_path, chunks=CHUNKS, codecs=v3_codecs(values.itemsize)[name])
        same(read(tmp_path), values)


#: TensorStore takes no codecs after shards. It does what zarr-python doesn't: chunks that divide
#: the shard only after it is transposed.
TS_SHARDS = {
    **{name: codecs for name, codecs in V3_SHARDS.items() if not name.endswith("as-a-whole")},
    "transposed-before-to-others": [
        transpose(1, 0),
        sharding((4, 3), [transpose(1, 0), BIG, zstd(0)]),
    ],
    "nested-thrice": [sharding((6, 8), [sharding((3, 4), [sharding((3, 2), [LITTLE])])])],
}


@pytest.mark.parametrize("name", TS_SHARDS)
class TestV3Shards:
    def test_zarrdask_reads(self, tmp_path, ours, name):
        values = sample("float32")
        write_v3(values, tmp_path, SHARDS, codecs=TS_SHARDS[name])
        same(ours.read(tmp_path), values)

    def test_zarrdask_reads_parts(self, tmp_path, name):
        values = sample("float32")
        write_v3(values, tmp_path, SHARDS, codecs=TS_SHARDS[name])
        z, x = zarrdask.open_array(tmp_path), zarrdask.from_zarr(tmp_path)
        for part in (np.s_[7], np.s_[5:7, 7:9], np.s_[::4, 3], np.s_[-1:, -2:]):
            same(z[part], values[part])
            same(x[part].compute(scheduler="sync"), values[part])

    def test_tensorstore_reads(self, tmp_path, ours, name):
        values = sample("float32")
        ours.write(values, tmp_path, chunks=SHARDS, codecs=TS_SHARDS[name])
        same(read(tmp_path), values)

    def test_tensorstore_reads_an_update(self, tmp_path, ours, name):
        values = sample("float32")
        write_v3(values, tmp_path, SHARDS, codecs=TS_SHARDS[name])
        region = np.s_[3:11, 5:17]
        ours.update(values[region] + 1, tmp_path, region)
        values[region] += 1
        same(read(tmp_path), values)

    def test_zarrdask_reads_an_update(self, tmp_path, ours, name):
        values = sample("float32")
        ours.write(values, tmp_path, chunks=SHARDS, codecs=TS_SHARDS[name])
        region = np.s_[3:11, 5:17]
        ts.open(spec(tmp_path)).result()[region] = values[region] + 1
        values[region] += 1
        same(ours.read(tmp_path), values)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compressors": "gzip"},
        {"compressors": []},
        {"compressors": "blosc"},
        {"compressors": ["blosc", "crc32c"], "order": "F"},
        {"compressors": {"id": "blosc", "cname": "zstd", "clevel": 1, "shuffle": 2}},
        {"chunks": (2, 3), "shards": (8, 9)},
        {"chunks": (3, 2), "shards": "auto", "order": "F", "compressors": "gzip"},
        {"chunks": CHUNKS, "chunk_key_encoding": "v2"},
        {"dimension_names": ["y", None], "attributes": {"units": "K"}},
    ],
    ids=str,
)
def test_tensorstore_reads_what_options_make(tmp_path, ours, options):
    values = sample("uint32")
    ours.write(values, tmp_path, **options)
    same(read(tmp_path), values)


class TestV3Documents:
    def test_zarrdask_reads_the_shortest_that_tensorstore_writes(self, tmp_path, ours):
        # No configuration where it says the default, none of the optional members.
        values = sample("int16")
        write_v3(values, tmp_path, CHUNKS)
        same(ours.read(tmp_path), values)

    def test_zarrdask_reads_names_and_attributes(self, tmp_path):
        members = {"dimension_names": ["y", None], "attributes": {"units": "K", "た": [1]}}
        create_v3(tmp_path, (4, 4), "i2", (2, 2), **members)
        found = zarrdask.open_array(tmp_path)
        assert found.dimension_names == ("y", None)
        assert dict(found.attrs) == members["attributes"]

    def test_tensorstore_reads_names(self, tmp_path):
        zarrdask.create_array(tmp_path, shape=(4, 4), dtype="i2", dimension_names=["y", None])
        found = ts.open(spec(tmp_path), read=True).result()
        assert found.domain.labels == ("y", "")

    def test_a_resize_by_tensorstore(self, tmp_path, ours):
        values = sample("float32")
        ours.write(values, tmp_path, chunks=CHUNKS, fill_value=-1)
        ts.open(spec(tmp_path)).result().resize(exclusive_max=[8, 30]).result()
        expected = np.full((8, 30), -1, "f4")
        expected[:, :20] = values[:8]
        # What lies in chunks that were kept is not tensorstore's to clear: 20 to 24 is fill.
        same(ours.read(tmp_path), expected)

    def test_a_resize_by_zarrdask(self, tmp_path, ours):
        values = sample("float32")
        ours.write(values, tmp_path, chunks=(2, 4), shards=(6, 8), fill_value=-1)
        zarrdask.open_array(tmp_path, mode="r+").resize((8, 30))
        expected = np.full((8, 30), -1, "f4")
        expected[:, :20] = values[:8]
        same(read(tmp_path), expected)


# --------------------------------------------------------------------------------------------
# Shapes, keys, fill values, in both formats

SHAPES_V2 = {name: case for name, case in SHAPES.items() if case[2] is None}


@pytest.mark.parametrize("order", ["C", "F"])
class TestShapes:
    @pytest.mark.parametrize(("shape", "chunks", "shards"), SHAPES.values(), ids=SHAPES)
    def test_zarrdask_reads_v3(self, tmp_path, ours, shape, chunks, shards, order):
        values = sample("float64", shape)
        codecs = [LITTLE] if shards is None else [sharding(chunks, [LITTLE, zstd(0)])]
        if order == "F":
            # Before shards it would change their shape; TensorStore can, and so can we.
            axes = list(reversed(range(len(shape))))
            inner = chunks if shards is None else tuple(chunks[axis] for axis in axes)
            codecs = [LITTLE] if shards is None else [sharding(inner, [LITTLE, zstd(0)])]
            codecs.insert(0, transpose(*axes))
        write_v3(values, tmp_path, shards or chunks, codecs=codecs)
        same(ours.read(tmp_path), values)

    @pytest.mark.parametrize(("shape", "chunks", "shards"), SHAPES.values(), ids=SHAPES)
    def test_tensorstore_reads_v3(self, tmp_path, ours, shape, chunks, shards, order):
        values = sample("float64", shape)
        ours.write(values, tmp_path, chunks=chunks, shards=shards, order=order)
        same(read(tmp_path), values)

    @pytest.mark.parametrize(("shape", "chunks", "_"), SHAPES_V2.values(), ids=SHAPES_V2)
    def test_zarrdask_reads_v2(self, tmp_path, ours, shape, chunks, _, order):
        values = sample("float64", shape)
        if len(shape) < 2:
            order = "C"  # TensorStore does not find its own "F" again
        write_v2(values, tmp_path, chunks, order=order)
        same(ours.read(tmp_path), values)

    @pytest.mark.parametrize(("shape", "chunks", "_"), SHAPES_V2.values(), ids=SHAPES_V2)
    def test_tensorstore_reads_v2(self, tmp_path, ours, shape, chunks, _, order):
        values = sample("float64", shape)
        ours.write(values, tmp_path, chunks=chunks, order=order, zarr_format=2)
        same(read(tmp_path, "zarr"), values)


@pytest.mark.parametrize("shape", [(13, 20), (13,), ()])
@pytest.mark.parametrize("separator", ["/", "."])
class TestKeys:
    @pytest.mark.parametrize("encoding", ["default", "v2"])
    def test_zarrdask_reads_v3(self, tmp_path, ours, shape, separator, encoding):
        values = sample("int32", shape)
        keys = {"name": encoding, "configuration": {"separator": separator}}
        write_v3(values, tmp_path, CHUNKS[: len(shape)], chunk_key_encoding=keys)
        same(ours.read(tmp_path), values)

    @pytest.mark.parametrize("encoding", ["default", "v2"])
    def test_tensorstore_reads_v3(self, tmp_path, ours, shape, separator, encoding):
        values = sample("int32", shape)
        keys = {"chunk_key_encoding": encoding, "separator": separator}
        ours.write(values, tmp_path, chunks=CHUNKS[: len(shape)], **keys)
        same(read(tmp_path), values)

    def test_zarrdask_reads_v2(self, tmp_path, ours, shape, separator):
        values = sample("int32", shape)
        write_v2(values, tmp_path, CHUNKS[: len(shape)], dimension_separator=separator)
        same(ours.read(tmp_path), values)

    def test_tensorstore_reads_v2(self, tmp_path, ours, shape, separator):
        values = sample("int32", shape)
        keys = {"zarr_format": 2, "separator": separator}
        ours.write(values, tmp_path, chunks=CHUNKS[: len(shape)], **keys)
        same(read(tmp_path, "zarr"), values)


FILLS: list[tuple[str, Any]] = [
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
    ("float32", np.array(0x7FC12345, "u4").view("f4")[()]),
    ("complex64", complex(np.nan, -np.inf)),
    ("complex128", complex(-0.0, 0.1)),
]


@pytest.mark.parametrize("shards", [None, (4,)], ids=["chunks", "shards"])
@pytest.mark.parametrize(("dtype", "fill"), FILLS)
class TestV3FillValues:
    """Of eleven elements two are written: the rest has the fill value's bits."""

    def values(self, dtype: str, fill: Any) -> np.ndarray:
        values = np.full(11, fill, dtype)
        values[3:5] = 0
        return values

    def test_zarrdask_reads(self, tmp_path, ours, dtype, fill, shards):
        values = self.values(dtype, fill)
        # The document of zarrdask's own: TensorStore takes its fill value, and does the writing.
        options = {"chunks": (2,), "shards": shards, "fill_value": fill}
        zarrdask.create_array(tmp_path, shape=(11,), dtype=dtype, **options)
        ts.open(spec(tmp_path)).result()[3:5] = values[3:5]
        same(read(tmp_path), values)
        same(ours.read(tmp_path), values)

    def test_tensorstore_reads(self, tmp_path, ours, dtype, fill, shards):
        values = self.values(dtype, fill)
        ours.write(values, tmp_path, chunks=(2,), shards=shards, fill_value=fill)
        same(read(tmp_path), values)
        assert zarrdask.open_array(tmp_path).nchunks_stored() == 2


@pytest.mark.parametrize("fill", ["NaN", "Infinity", "-Infinity", -0.0, 0.1, "0x7fc12345"])
def test_zarrdask_reads_fill_values_that_tensorstore_writes(tmp_path, ours, fill):
    create_v3(tmp_path, (3,), "float32", (2,), fill_value=fill)
    same(ours.read(tmp_path), read(tmp_path))


# --------------------------------------------------------------------------------------------
# v2

#: No U, M, m: TensorStore has none.
V2_DTYPES: list[Any] = [
    *("|b1", "|i1", "|u1", "|S1", "|S12", "|V1", "|V5"),
    *(
        f"{order}{kind}"
        for kind in ("i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16")
        for order in "<>"
    ),
    [("r", "|u1"), ("g", "|u1"), ("b", "|u1")],
    [("a", "<f4"), ("b", ">i2"), ("c", "<c16")],
]


@pytest.mark.parametrize("dtype", V2_DTYPES, ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
class TestV2DataTypes:
    def test_zarrdask_reads(self, tmp_path, ours, dtype, order):
        values = sample(dtype)
        write_v2(values, tmp_path, CHUNKS, order=order)
        same(ours.read(tmp_path), values)

    def test_tensorstore_reads(self, tmp_path, ours, dtype, order):
        values = sample(dtype)
        ours.write(values, tmp_path, chunks=CHUNKS, zarr_format=2, order=order)
        if values.dtype.names is None:
            same(read(tmp_path, "zarr"), typed(values))
        for name in values.dtype.names or ():
            same(read(tmp_path, "zarr", field=name), typed(values[name]))


V2_COMPRESSORS: list[dict[str, Any] | None] = [
    None,
    {"id": "zlib", "level": 9},
    {"id": "gzip", "level": 1},
    {"id": "bz2", "level": 1},
    {"id": "zstd", "level": 5},
    *(
        {"id": "blosc", "cname": cname, "clevel": 5, "shuffle": 1, "blocksize": 0}
        for cname in ("lz4", "lz4hc", "blosclz", "zlib", "zstd")
    ),
    *(
        {"id": "blosc", "cname": "lz4", "clevel": 9, "shuffle": shuffle, "blocksize": 256}
        for shuffle in (-1, 0, 2)
    ),
]


@pytest.mark.parametrize("dtype", [">f8", "<i2", "|u1"])
@pytest.mark.parametrize("compressor", V2_COMPRESSORS, ids=str)
class TestV2Compressors:
    def test_zarrdask_reads(self, tmp_path, ours, dtype, compressor):
        values = sample(dtype)
        write_v2(values, tmp_path, CHUNKS, compressor=compressor)
        same(ours.read(tmp_path), values)

    def test_tensorstore_reads(self, tmp_path, ours, dtype, compressor):
        values = sample(dtype)
        compressors = [] if compressor is None else compressor
        ours.write(values, tmp_path, chunks=CHUNKS, zarr_format=2, compressors=compressors)
        same(read(tmp_path, "zarr"), values.astype(values.dtype.newbyteorder("=")))


@pytest.mark.parametrize("dtype", ["|u1", "<i2", ">f8", "<c16"])
@pytest.mark.parametrize("shuffle", [0, 1, 2])
def test_zarrdask_reads_blosc_with_snappy(tmp_path, ours, dtype, shuffle):
    # Which it can't write: its Blosc is built without.
    values = (np.arange(120_000) ** 2 // 977 % 250).reshape(300, 400).astype(dtype)
    snappy = {"id": "blosc", "cname": "snappy", "clevel": 5, "shuffle": shuffle}
    write_v2(values, tmp_path, (200, 300), compressor=snappy)
    same(ours.read(tmp_path), values)


@pytest.mark.parametrize(
    ("dtype", "fill"),
    [
        ("|b1", True),
        (">i4", -2),
        ("<u8", 2**64 - 1),
        ("<f2", 0.1),
        ("<f4", np.nan),
        (">f8", -np.inf),
        ("<f8", -0.0),
        ("<c16", complex(-0.0, np.nan)),
        ("|S5", b"ab"),
        ("|V3", b"\x01\x00\xff"),
    ],
)
def test_tensorstore_reads_v2_fill_values(tmp_path, ours, dtype, fill):
    values = np.empty(7, dtype)
    values[...] = np.void(fill) if dtype[1] == "V" else fill
    values[3:5] = np.zeros((), dtype)
    ours.write(values, tmp_path, chunks=(2,), zarr_format=2, fill_value=values[0])
    same(read(tmp_path, "zarr"), typed(values))
    assert zarrdask.open_array(tmp_path).nchunks_stored() == 2


@pytest.mark.parametrize(
    ("dtype", "fill"),
    [
        ("|b1", True),
        ("<u8", 2**64 - 1),
        ("<f4", "NaN"),
        (">f8", "-Infinity"),
        ("<c16", [-0.0, "NaN"]),
        ("|S5", "YWIAAAA="),
        ("|V3", "AQD/"),
        ("<i2", None),
    ],
)
def test_zarrdask_reads_v2_fill_values(tmp_path, ours, dtype, fill):
    metadata = {"shape": [7], "chunks": [2], "dtype": dtype, "fill_value": fill}
    ts.open(spec(tmp_path, "zarr", metadata=metadata), create=True).result()
    found = ours.read(tmp_path)
    assert found.dtype == np.dtype(dtype)
    same(typed(found), read(tmp_path, "zarr"))
