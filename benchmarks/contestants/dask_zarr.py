"""``dask.array.from_zarr`` and ``to_zarr``, with zarr-python."""

from typing import Any

import dask.array as da

from benchmarks.contestants import align
from benchmarks.rows import Layout


def lazy(path: str, layout: Layout, chunks: Any) -> da.Array:
    # The default is one task a chunk; of a shard, one an inner chunk.
    return da.from_zarr(path, chunks=None if chunks == "stored" else chunks)


def save(x: da.Array, path: str, layout: Layout) -> None:
    # Two tasks would write to one chunk, and lose each other's part.
    da.to_zarr(align(x, layout), path, **layout.options())
