"""The jobs of zarrs/zarr_benchmarks: read all, round trip, and chunk by chunk."""

import os
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

import zarrdask
from benchmarks import data
from benchmarks.published.jobs import Timed, module
from benchmarks.rows import Layout, Shape
from benchmarks.timing import Job

SHAPE = (256, 512, 1024)
TINY, TINY_CUBE = (64, 64, 64), (32, 32, 32)
CUBE = (256, 256, 256)
ZSTD = {"level": 0, "checksum": False}
RAW = Layout("zarrs-raw", CUBE, CUBE, shape=SHAPE, compressor=None, dtype="uint16")
COMPRESSED = replace(RAW, name="zarrs-zstd", compressor="zstd", configuration=ZSTD)
SHARDED = replace(COMPRESSED, name="zarrs-shards", chunks=(64, 64, 64), shards=CUBE)
LAYOUTS = {"raw": RAW, "zstd": COMPRESSED, "shards": SHARDED}
CASES = {
    "raw": "chunks of 256³, not compressed",
    "zstd": "chunks of 256³, zstd",
    "shards": "shards of 256³, chunks of 64³, zstd",
}
#: How many chunks are read concurrently, one by one.
CONCURRENT = 2

SOURCE = "https://github.com/zarrs/zarr_benchmarks"
ARRAY = (
    "The array is 1024³ uint16, with element (i, j, k) = (k + j² / 32 + i³) mod 65536, stored in"
    " three ways: in chunks of 256³ without compression, the same with zstd at level 0, and in"
    " shards of 256³ that hold chunks of 64³ with zstd at level 0."
)
SCALED = (
    "the shape is (256, 512, 1024), 256 MiB instead of 2 GiB, so that all contestants take turns"
    " within minutes. The page cache is warm, where the authors clear it: a"
    " virtual disk would be measured instead of the libraries. Each measurement is a process of its"
    " own, as theirs; the least of the rounds counts."
)
ALONE = ("zarrdask", "zarrista", "tensorstore", "zarr+zarrs", "zarr", "zarr+fused", "zarr+obstore")
DASK = (
    "dask+zarrdask",
    "dask+zarrista",
    "dask+tensorstore",
    "dask+zarr+zarrs",
    "dask+zarr",
    "dask+zarr+fused",
    "cubed",
)


def generated(shape: Shape) -> np.ndarray:
    """Return the elements of an array."""
    i, j, k = (np.arange(n, dtype=np.uint32) for n in shape)
    rows = (j * j // 32)[:, None] + k
    # What exceeds 32 bits is a multiple of 65536.
    return np.stack([(n**3 + rows).astype(np.uint16) for n in i])


def values(root: Path, layout: Layout) -> np.ndarray:
    """Return the elements of the array of a layout, which are made once."""
    file = root / f"zarrs-field-{'-'.join(map(str, layout.shape))}.npy"
    data.saved(file, partial(generated, layout.shape))
    return np.load(file, mmap_mode="r")  # type: ignore[no-any-return]


def sized(case: str, *, tiny: bool) -> Layout:
    """Return the layout of a case, or of the tiny array that a process warms up with."""
    layout = LAYOUTS[case]
    if not tiny:
        return layout
    # No chunk is longer than the array: some contestants would return elements beyond its end.
    lengths = {"shape": TINY, "blocks": TINY, "chunks": TINY_CUBE}
    shards = TINY if layout.shards else None
    return replace(layout, name=f"{layout.name}-tiny", shards=shards, **lengths)


def store(root: Path, layout: Layout) -> None:
    """Store the array of a layout, unless it is there."""

    def write(path: Path) -> None:
        options = {"dtype": layout.dtype, **layout.options()}
        zarrdask.create_array(path, shape=layout.shape, **options)[...] = values(root, layout)

    data.made(root / layout.name, write)


def make(root: Path, *, tiny: bool) -> None:
    """Store the arrays that are not there yet."""
    for case in LAYOUTS:
        store(root, sized(case, tiny=True))
        store(root, sized(case, tiny=tiny))


def _reader(tool: str, path: str, layout: Layout) -> Callable[[], np.ndarray]:
    """Return what reads the whole array."""
    contestant: Any = import_module(module(tool))
    if hasattr(contestant, "read"):
        return partial(contestant.read, path)
    if tool.startswith("dask+"):
        return lambda: contestant.lazy(path, layout, None).compute()
    return lambda: contestant.eager(path)[...]


def read_all(case: str, tool: str, root: Path, *, tiny: bool) -> Job:
    """Return the read of the whole array into memory."""
    layout = sized(case, tiny=tiny)
    read = _reader(tool, str(root / layout.name), layout)
    return read, partial(np.array_equal, values(root, layout))


def round_trip(case: str, tool: str, root: Path, *, tiny: bool) -> Job:
    """Return the write of the array to a new one that is stored in the same way."""
    layout = sized(case, tiny=tiny)
    contestant: Any = import_module(module(tool))
    (root / "written").mkdir(exist_ok=True)
    source, target = str(root / layout.name), tempfile.mkdtemp(dir=root / "written") + "/array"

    def run() -> None:
        if hasattr(contestant, "round_trip"):
            contestant.round_trip(source, target, layout)
        elif tool.startswith("dask+"):
            contestant.save(contestant.lazy(source, layout, "stored"), target, layout)
        else:
            contestant.save(contestant.eager(source)[...], target, layout)

    def is_right(_: None) -> bool:
        found = zarrdask.open_array(target)
        equal = found.chunks == layout.chunks and np.array_equal(values(root, layout), found[...])
        shutil.rmtree(target)
        return bool(equal)

    # What others wrote shall not be flushed on this one's time.
    os.sync()
    return run, is_right


def by_chunks(case: str, tool: str, root: Path, *, tiny: bool) -> Job:
    """Return reads of the chunks of an array, each by a call of its own, two concurrently."""
    layout = sized(case, tiny=tiny)
    contestant: Any = import_module(module(tool))
    counts = (-(-n // length) for n, length in zip(layout.shape, layout.chunks, strict=True))
    indices = list(np.ndindex(*counts))

    def place(index: Shape) -> tuple[slice, ...]:
        axes = zip(index, layout.chunks, strict=True)
        return tuple(slice(i * n, i * n + n) for i, n in axes)

    def run() -> list[np.ndarray]:
        z = contestant.eager(str(root / layout.name))
        read = getattr(contestant, "read_chunk", lambda z, index: z[place(index)])
        with ThreadPoolExecutor(CONCURRENT) as pool:
            return list(pool.map(partial(read, z), indices))

    def is_right(chunks: list[np.ndarray]) -> bool:
        expected = values(root, layout)
        found = zip(indices, chunks, strict=True)
        return all(np.array_equal(chunk, expected[place(index)]) for index, chunk in found)

    return run, is_right


_COMMON: dict[str, Any] = {
    "source": SOURCE,
    "cases": CASES,
    "make": make,
    "nbytes": 2 * prod(SHAPE),
}
JOBS = (
    Timed(
        name="read_all",
        title="Read all",
        definition=f"{ARRAY} The whole array is read into memory.",
        scaled=SCALED,
        groups=(ALONE, DASK),
        prepare=read_all,
        budget=160,
        **_COMMON,
    ),
    Timed(
        name="round_trip",
        title="Round trip",
        definition="The arrays of “Read all” are read, decoded, encoded again and written to a new"
        " array that is stored in the same way.",
        scaled="as in “Read all”.",
        groups=(ALONE[:-1], DASK),
        prepare=round_trip,
        budget=300,
        **_COMMON,
    ),
    Timed(
        name="by_chunks",
        title="Chunk by chunk",
        definition="The arrays of “Read all” are read by one call for each chunk, in shards for"
        f" each inner chunk; {CONCURRENT} calls are made concurrently (the authors make 1 to 8).",
        scaled="as in “Read all”.",
        groups=(ALONE[:-1],),
        prepare=by_chunks,
        budget=80,
        **_COMMON,
    ),
)
