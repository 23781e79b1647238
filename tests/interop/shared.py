"""What the interop tests share: zarrdask in both its ways, and values that are hard on a format."""

from dataclasses import dataclass
from typing import Any, Literal

import dask.array as da
import numpy as np

import zarrdask


@dataclass(frozen=True)
class Ours:
    """zarrdask, eagerly or through Dask: see the fixture `ours`."""

    way: Literal["eager", "dask"]

    def read(self, url: Any, component: str | None = None, **options: Any) -> np.ndarray:
        if self.way == "eager":
            return zarrdask.open_array(url, component, **options)[...]
        x = zarrdask.from_zarr(url, component, **options)
        found = np.asarray(x.compute(scheduler="sync"))
        # In blocks that fit no stored chunks, it is the same.
        y = zarrdask.from_zarr(url, component, chunks=blocks(x.shape), **options)
        same(y.compute(scheduler="sync"), found)
        return found

    def write(
        self, values: np.ndarray, url: Any, component: str | None = None, **options: Any
    ) -> None:
        if self.way == "eager":
            z = zarrdask.create_array(
                url, component, shape=values.shape, dtype=values.dtype, **options
            )
            z[...] = values
            return
        zarrdask.to_zarr(unaligned(values), url, component, **options)

    def update(self, values: np.ndarray, url: Any, region: tuple[slice, ...]) -> None:
        if self.way == "eager":
            zarrdask.open_array(url, mode="r+")[region] = values
        else:
            # One block: blocks that share a stored unit at the region's edge would have to wait.
            zarrdask.to_zarr(da.from_array(values, chunks=-1), url, region=region)


def unaligned(values: np.ndarray) -> da.Array:
    """Return an array as a Dask array whose blocks fit no stored chunks."""
    return da.from_array(values, chunks=blocks(values.shape))


def blocks(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(1, n * 3 // 7) for n in shape)


def same(found: Any, expected: np.ndarray) -> None:
    """Check that two arrays agree in shape, dtype and every bit."""
    found = np.asarray(found)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    if expected.dtype.hasobject:
        assert found.tolist() == expected.tolist()
    elif found.tobytes() != expected.tobytes():
        np.testing.assert_array_equal(found, expected)
        raise AssertionError("equal values, but other bits (a signed zero, or a NaN's payload)")


def sample(dtype: Any, shape: tuple[int, ...] = (13, 20)) -> np.ndarray:
    """Return values of a dtype: along the first axis zeros, then a ramp, then all kinds of bits.

    With chunks of five rows the first row of chunks holds nothing but the usual fill value, the
    second compresses well, and the last, an edge, not at all: it has NaNs with payloads,
    signed zeros and extremes.
    """
    dtype = np.dtype(dtype)
    native = dtype.newbyteorder("=")
    size = int(np.prod(shape))
    bits = np.random.default_rng(size).bytes(size * native.itemsize)
    if native.kind == "b":
        values = np.frombuffer(bits, "u1").reshape(shape) % 2 == 1
    elif native.kind == "U":
        values = np.array([f"é{i:x}\U0001f600"[: native.itemsize // 4] for i in range(size)])
        values = values.astype(native).reshape(shape)
    else:
        values = np.frombuffer(bits, native).reshape(shape).copy()
    if shape and size:
        rows = np.arange(shape[0])
        if native.kind in "iufc":
            ramp = np.arange(size).reshape(shape) % 100
            middle = (rows >= 5) & (rows < 10)
            values[middle] = ramp[middle].astype(native)
        values[rows < 5] = np.zeros((), native)
        if native.kind in "fc":
            part = native.type(0).real.dtype
            specials = np.array([np.nan, np.inf, -np.inf, -0.0, np.finfo(part).tiny], part)
            values[-1].reshape(-1)[: len(specials)] = specials[: values[-1].size]
    return values.astype(dtype)


# --------------------------------------------------------------------------------------------
# Codecs as v3's metadata has them

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}
BIG = {"name": "bytes", "configuration": {"endian": "big"}}
CRC32C = {"name": "crc32c"}
INDEX = [LITTLE, CRC32C]


def transpose(*order: int) -> dict[str, Any]:
    return {"name": "transpose", "configuration": {"order": list(order)}}


def gzip(level: int) -> dict[str, Any]:
    return {"name": "gzip", "configuration": {"level": level}}


def zstd(level: int, *, checksum: bool = False) -> dict[str, Any]:
    return {"name": "zstd", "configuration": {"level": level, "checksum": checksum}}


def blosc(cname: str, shuffle: str, typesize: int, clevel: int = 5) -> dict[str, Any]:
    options = {"cname": cname, "clevel": clevel, "shuffle": shuffle, "blocksize": 0}
    return {"name": "blosc", "configuration": {**options, "typesize": typesize}}


def sharding(
    chunks: tuple[int, ...],
    codecs: list[Any],
    index_codecs: list[Any] = INDEX,
    index_location: str = "end",
) -> dict[str, Any]:
    return {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": list(chunks),
            "codecs": codecs,
            "index_codecs": index_codecs,
            "index_location": index_location,
        },
    }


# --------------------------------------------------------------------------------------------
# What is exchanged

CHUNKS = (5, 8)
SWAP = transpose(1, 0)

#: Of v3's core, but raw bytes: neither peer reads those by their registered name.
V3_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)


def v3_codecs(itemsize: int) -> dict[str, list[Any]]:
    shuffles = ("noshuffle", "shuffle", "bitshuffle")
    cnames = ("lz4", "lz4hc", "blosclz", "zlib", "zstd")
    return {
        "none": [LITTLE],
        "gzip-0": [LITTLE, gzip(0)],
        "gzip-9": [LITTLE, gzip(9)],
        **{f"blosc-lz4-{s}": [LITTLE, blosc("lz4", s, itemsize)] for s in shuffles},
        **{f"blosc-{c}": [LITTLE, blosc(c, "shuffle", itemsize)] for c in cnames[1:]},
        "blosc-level-0": [LITTLE, blosc("lz4", "shuffle", itemsize, clevel=0)],
        "blosc-bits-of-bytes": [LITTLE, blosc("zstd", "bitshuffle", 1)],
        "zstd-fast": [LITTLE, zstd(-7)],
        "zstd-19": [LITTLE, zstd(19)],
        "zstd-checksum": [LITTLE, zstd(3, checksum=True)],
        "crc32c": [LITTLE, CRC32C],
        "gzip-crc32c": [BIG, gzip(5), CRC32C],
        "crc32c-zstd": [LITTLE, CRC32C, zstd(1)],
        "transpose": [SWAP, LITTLE],
        "transpose-blosc": [SWAP, BIG, blosc("lz4", "shuffle", itemsize)],
        "twice-transposed": [SWAP, SWAP, LITTLE, zstd(0)],
    }


#: Name: the list of codecs, for shards of (6, 8) elements.
V3_SHARDS: dict[str, list[Any]] = {
    "plain": [sharding((2, 4), [LITTLE])],
    "index-at-start": [sharding((2, 4), [LITTLE, zstd(0)], index_location="start")],
    "compressed": [sharding((3, 2), [LITTLE, gzip(1)])],
    "blosc": [sharding((3, 4), [LITTLE, blosc("lz4", "shuffle", 4)])],
    "checked": [sharding((2, 2), [LITTLE, zstd(0), CRC32C])],
    "one-chunk": [sharding((6, 8), [LITTLE, zstd(0)])],
    "chunks-of-one": [sharding((1, 1), [BIG])],
    "transposed-within": [sharding((2, 4), [SWAP, LITTLE, zstd(0)])],
    # zarr-python wants chunks that divide the shard also before it is transposed.
    "transposed-before": [SWAP, sharding((2, 1), [LITTLE, zstd(0)])],
    "index-unchecked": [sharding((2, 4), [LITTLE], [LITTLE])],
    "index-big-endian": [sharding((2, 4), [LITTLE], [BIG, CRC32C])],
    "index-big-endian-at-start": [sharding((2, 4), [LITTLE], [BIG], "start")],
    "nested": [sharding((6, 4), [sharding((3, 2), [LITTLE, zstd(0)])])],
    "nested-mixed-index": [
        sharding((6, 4), [sharding((2, 4), [LITTLE], [BIG], "start")], [BIG, CRC32C], "end")
    ],
    "compressed-as-a-whole": [sharding((2, 4), [LITTLE]), gzip(1)],
    "checked-as-a-whole": [sharding((2, 4), [LITTLE, zstd(0)]), CRC32C],
}
SHARDS = (6, 8)

#: shape, chunks, shards
SHAPES: dict[str, tuple[Any, Any, Any]] = {
    "0-d": ((), (), None),
    "0-d-shard": ((), (), ()),
    "one": ((1,), (1,), None),
    "zero": ((0,), (4,), None),
    "zero-in-the-middle": ((3, 0, 2), (2, 1, 2), None),
    "zero-shards": ((0, 4), (1, 2), (2, 4)),
    "chunk-beyond-array": ((3, 2), (10, 7), None),
    "edges": ((7, 9), (3, 4), None),
    "edge-of-one": ((9, 5), (4, 4), None),
    "sharded-edges": ((7, 9), (2, 3), (4, 6)),
    "shard-beyond-array": ((3, 2), (2, 2), (16, 16)),
    "5-d": ((3, 2, 4, 3, 2), (2, 1, 3, 2, 2), None),
    "5-d-shards": ((3, 2, 4, 3, 2), (1, 1, 2, 2, 2), (2, 1, 4, 2, 2)),
}
