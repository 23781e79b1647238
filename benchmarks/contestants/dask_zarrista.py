"""Dask over zarrista, as a careful user would do it: blocks of whole stored chunks or shards."""

from typing import Any

import dask.array as da

from benchmarks.contestants import align
from benchmarks.contestants.zarrista import create, eager
from benchmarks.rows import Layout


def lazy(path: str, layout: Layout, chunks: Any) -> da.Array:
    blocks = layout.units if chunks == "stored" else layout.blocks
    return da.from_array(eager(path), blocks, name=f"zarrista-{path}")


def save(x: da.Array, path: str, layout: Layout) -> None:
    da.store(align(x, layout), create(path, x.shape, layout), lock=False)
