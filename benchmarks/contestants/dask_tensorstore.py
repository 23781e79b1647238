"""Dask over tensorstore, as a careful user would do it: blocks of whole stored units."""

from typing import Any

import dask.array as da

from benchmarks.contestants import align
from benchmarks.contestants.tensorstore import TensorStore, create
from benchmarks.rows import Layout


def lazy(path: str, layout: Layout, chunks: Any) -> da.Array:
    blocks = layout.units if chunks == "stored" else layout.blocks
    return da.from_array(TensorStore(path), blocks, name=f"tensorstore-{path}")


def save(x: da.Array, path: str, layout: Layout) -> None:
    # It would get unaligned blocks right, but by writing most chunks twice.
    da.store(align(x, layout), create(path, x.shape, layout), lock=False)
