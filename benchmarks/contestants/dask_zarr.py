"""``dask.array.from_zarr`` and ``to_zarr``, with zarr-python."""

import warnings
from typing import Any

import dask.array as da
import zarr

from benchmarks.contestants import align
from benchmarks.rows import Layout


def lazy(path: str, layout: Layout, chunks: Any) -> da.Array:
    # The default is one task a chunk; of a shard, one an inner chunk.
    return da.from_zarr(path, chunks=None if chunks == "stored" else chunks)


def save(x: da.Array, path: str, layout: Layout) -> None:
    # Two tasks would write to one chunk, and lose each other's part.
    da.to_zarr(align(x, layout), path, **layout.options())


def replace(x: da.Array, path: str, region: tuple[slice, ...]) -> None:
    # Blocks are made to fit here, up to 128 MiB long. It warns of data loss where one block is
    # all that there is along an axis; the result is right.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", da.PerformanceWarning)
        da.to_zarr(x, zarr.open_array(path, mode="r+"), region=region)


def append(x: da.Array, path: str) -> None:
    z = zarr.open_array(path, mode="r+")
    start = z.shape[0]
    z.resize((start + len(x), *z.shape[1:]))
    replace(x, path, (slice(start, z.shape[0]), *(slice(0, n) for n in z.shape[1:])))


def rechunk(source: str, target: str, layout: Layout, onto: Layout, memory: int) -> None:
    x = da.from_zarr(source).rechunk(onto.chunks, method="tasks")
    da.to_zarr(x, target, **onto.options())


def overlap(path: str, layout: Layout, function: Any, chunks: Any, **options: Any) -> da.Array:
    return da.map_overlap(function, lazy(path, layout, chunks), **options)
