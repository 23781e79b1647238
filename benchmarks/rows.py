"""The rows of the table: what is measured, with whom, and what zarrdask has to reach."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

Shape = tuple[int, ...]

BLOSC = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}


@dataclass(frozen=True)
class Layout:
    """How an array is stored, and the blocks (16 MiB, or a shard) a careful user reads it by."""

    name: str
    chunks: Shape
    blocks: Shape = (64, 256, 256)
    shards: Shape | None = None
    shape: Shape = (256, 1024, 1024)
    compressor: str | None = "blosc"
    configuration: dict[str, Any] = field(default_factory=lambda: BLOSC)
    dtype: str = "float32"

    @property
    def units(self) -> Shape:
        """The shape of what one file holds."""
        return self.shards or self.chunks

    def sized(self, planes: int) -> "Layout":
        """Return it with that many planes at most; the array of row 8 has one size only."""
        first = min(planes, self.shape[0]) if len(self.shape) == 3 else self.shape[0]
        return replace(self, shape=(first, *self.shape[1:]))

    def tiny(self) -> "Layout":
        """Return it as small as a warm-up needs."""
        return replace(self, name=f"{self.name}-tiny", shape=tuple(min(n, 64) for n in self.shape))

    def codecs(self) -> list[dict[str, Any]]:
        """Return the compressor, if there is one, as Zarr's metadata has it."""
        if self.compressor is None:
            return []
        return [{"name": self.compressor, "configuration": self.configuration}]

    def options(self) -> dict[str, Any]:
        """Return the options of `zarrdask.create_array`, which are zarr-python's as well."""
        return {"chunks": self.chunks, "shards": self.shards, "compressors": self.codecs()}


@dataclass(frozen=True)
class Row:
    """One measurement: a job on an array, for some contestants.

    A bar is what zarrdask's time may be at most, as a multiple of a contestant's, of zarrdask's
    in another row, or of a second; "MiB" is what it may take of memory.
    """

    name: str
    title: str
    job: Literal[
        "sum",
        "read",
        "write",
        "replace",
        "append",
        "graph",
        "slice",
        "region",
        "points",
        "crops",
        "rechunk",
        "map",
        "overlap",
    ]
    layout: Layout
    tools: tuple[str, ...]
    bars: dict[str, float] = field(default_factory=dict)
    # What is written has these; reads have the tool's own default if this is None.
    chunks: Any = None
    # Where in each axis of an array that is there the region lies that is written, of its length.
    part: tuple[float, float] = (0, 1)
    # How many times the job is done in one measurement; times are of one.
    count: int = 1
    # What the array is rewritten as, and the memory that tools may take that can be told.
    onto: Layout | None = None
    memory: int = 2**28
    # Whether it is computed by a cluster of two processes.
    cluster: bool = False

    @property
    def writes(self) -> bool:
        """Whether it leaves files."""
        return self.job in ("write", "replace", "append", "rechunk", "map")


CUBES = Layout("blosc-64", (64, 64, 64))
SMALL = Layout("blosc-16", (16, 16, 16), shape=(64, 1024, 1024))
TINY = Layout("blosc-4k", (16, 8, 8), shape=(96, 1024, 1024))
SHARDS = Layout("blosc-shards", (32, 32, 32), (128, 256, 256), (128, 256, 256))
ZSTD = replace(CUBES, name="zstd-64", compressor="zstd", configuration={"level": 3})
GZIP = replace(CUBES, name="gzip-64", compressor="gzip", configuration={"level": 5})
MILLION = Layout("million", (10, 10), (2000, 2000), shape=(10_000, 10_000))
MAPS = Layout("blosc-maps", (1, 1024, 1024))
SERIES = Layout("blosc-series", (256, 64, 64))
LAYOUTS = (CUBES, SMALL, TINY, SHARDS, ZSTD, GZIP, MILLION, MAPS, SERIES)

DASK = ("zarrdask", "dask+zarr", "dask+tensorstore")
PIPELINES = ("zarr+zarrs", "zarr+zarrdask")
EAGER = ("zarrdask", "zarr", "zarr+fused", "zarr+obstore", "tensorstore", *PIPELINES)
INSIDE_DASK = ("dask+zarr+fused", "dask+zarr+zarrs", "dask+zarr+zarrdask", "dask+verbs")
ALL = (*DASK, *INSIDE_DASK, "tensorstore", *PIPELINES, "limit")
SUMS = (*ALL, "limit+sum")
WRITES = ("zarrdask", "dask+zarr")
RECHUNKS = ("zarrdask", "dask+zarr", "dask+p2p", "cubed", "limit")
HALF = {"dask+zarr": 1 / 2}
TENTH = {"dask+zarr": 1 / 10}
#: 256 MiB, and what does not depend on the array.
BOUND = {"second": 3, "MiB": 256 + 32}
POINTS = 300
CROPS = 256
# Blocks of the lengths of months, and of others, again and again.
MONTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
IRREGULAR = (MONTHS, (200, 56, 150, 106, 300, 212), (100, 256, 33, 367, 268))

ROWS = (
    Row("1", "sum, 64³ chunks, blosc", "sum", CUBES, SUMS, {"limit": 1.5, "dask+zarr": 1 / 4}),
    Row("2", "sum, 16³ chunks, blosc", "sum", SMALL, SUMS, {"limit": 1.2, "dask+zarr": 1 / 20}),
    Row("3", "sum, 32³ in shards", "sum", SHARDS, SUMS, {"row 1": 1.6, "dask+zarr": 1 / 20}),
    Row("4a", "sum, 64³ chunks, zstd", "sum", ZSTD, SUMS, {"limit": 1.5}),
    Row("4b", "sum, 64³ chunks, gzip", "sum", GZIP, SUMS, {"tensorstore": 1}),
    Row("5", "z[...], store of row 1", "read", CUBES, EAGER, {"tensorstore": 1, "zarr+zarrs": 1}),
    Row("6", "write 64³", "write", CUBES, ALL, {"limit": 1.3, "dask+zarr": 1 / 3}, (64, 64, 64)),
    Row("7a", "write shards", "write", SHARDS, ALL, {"dask+zarr": 1 / 3}, (128, 256, 256)),
    Row("7b", "write unaligned", "write", CUBES, ALL, {"dask+zarr": 1 / 3}, (50, 150, 150)),
    Row("7c", "write irregular", "write", CUBES, ALL, HALF, IRREGULAR),
    Row("7d", "region, ⅛, chunks", "replace", CUBES, WRITES, HALF, (64, 256, 256), (0, 1 / 2)),
    Row(
        "7e",
        "region, ⅛, between",
        "replace",
        CUBES,
        WRITES,
        HALF,
        (64, 256, 256),
        (3 / 32, 19 / 32),
    ),
    Row("7f", "append 10 times", "append", CUBES, WRITES, HALF, (64, 256, 256)),
    Row("8a", "10⁶ chunks: graph, auto", "graph", MILLION, DASK, {"second": 0.05}, "auto"),
    Row("8b", "10⁶ chunks: graph, stored", "graph", MILLION, DASK, {"second": 0.2}, "stored"),
    Row("8c", "10⁶ chunks: 10 rows, auto", "slice", MILLION, DASK, {}, "auto"),
    Row("8d", "10⁶ chunks: 10 rows, stored", "slice", MILLION, DASK, {}, "stored"),
    Row("8e", "10⁶ chunks: region", "region", MILLION, (*DASK, *EAGER[1:]), {"second": 0.02}),
    Row("9a", "z[i, j, k], 64³", "points", CUBES, EAGER, {"zarr": 1 / 4}, count=POINTS),
    Row("9b", "z[i, j, k], 32³ in shards", "points", SHARDS, EAGER, {"zarr": 1 / 4}, count=POINTS),
    Row("9c", "crops of 64³, shards", "crops", SHARDS, EAGER, {"tensorstore": 1}, count=CROPS),
    Row("10a", "rechunk, maps to series", "rechunk", MAPS, RECHUNKS, BOUND, onto=SERIES),
    Row("10b", "rechunk, series to maps", "rechunk", SERIES, RECHUNKS, BOUND, onto=MAPS),
    Row(
        "10c",
        "10a, all in memory",
        "rechunk",
        MAPS,
        ("zarrdask", "limit"),
        {"second": 1.5},
        onto=SERIES,
        memory=2**31,
    ),
    Row("11a", "x + 1, 4 KiB chunks", "map", TINY, WRITES, TENTH),
    Row("11b", "11a, two processes", "map", TINY, WRITES, TENTH, cluster=True),
    Row("11c", "sum, 4 KiB chunks, stored", "sum", TINY, WRITES, TENTH, "stored"),
    Row("12", "sum of blocks that overlap", "overlap", CUBES, WRITES, HALF, "stored"),
)
