"""What this is about."""

from typing import Any

import dask
import dask.array as da

import zarrdask
from benchmarks.rows import Layout

eager = zarrdask.open_array
read_many = zarrdask.Array.read_many


def lazy(path: str, layout: Layout, chunks: Any) -> da.Array:
    return zarrdask.from_zarr(path, chunks=chunks or "auto")


def region(path: str, region: Any) -> da.Array:
    return zarrdask.from_zarr(path, region=region)


def save(x: da.Array, path: str, layout: Layout) -> None:
    zarrdask.to_zarr(x, path, **layout.options())


def replace(x: da.Array, path: str, region: tuple[slice, ...]) -> None:
    zarrdask.to_zarr(x, path, region=region)


def append(x: da.Array, path: str) -> None:
    zarrdask.append(x, path)


def rechunk(source: str, target: str, layout: Layout, onto: Layout, memory: int) -> None:
    zarrdask.rechunk(source, target, chunks=onto.chunks, max_mem=memory).execute(progress=False)


def overlap(path: str, layout: Layout, function: Any, chunks: Any, **options: Any) -> da.Array:
    # Neighbours share chunks.
    dask.config.set({"zarrdask.cache-size": "256 MiB"})
    return zarrdask.map_overlap(function, path, blocks=chunks, **options)
