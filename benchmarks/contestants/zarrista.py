"""zarrista, the bindings of zarrs that do without zarr-python."""

from typing import Any

import numpy as np
from zarrista import Array, ArrayBuilder, ChunkGrid, DataType, FillValue, codec
from zarrista.store import FilesystemStore

from benchmarks.rows import Layout, Shape


class Zarrista:
    """An array of zarrista as NumPy and Dask want it: with NumPy's dtype and arrays."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.shape, self.ndim, self.dtype = array.shape, array.ndim, np.dtype(array.dtype.name)
        self.indexes = array.shard_cache()

    def __getitem__(self, index: Any) -> np.ndarray:
        return np.asarray(self.array[index])

    def __setitem__(self, index: Any, value: np.ndarray) -> None:
        self.array[index] = np.ascontiguousarray(value)


def eager(path: str) -> Zarrista:
    return Zarrista(Array.open(FilesystemStore(path)))


def read_chunk(z: Zarrista, index: Shape) -> np.ndarray:
    # An inner chunk, of a shard; the cache is of the shards' indexes.
    return np.asarray(z.array.retrieve_subchunk(list(index), shard_cache=z.indexes))


def create(path: str, shape: Shape, layout: Layout) -> Zarrista:
    """Create an array."""
    grid = ChunkGrid.regular(list(shape), chunk_shape=list(layout.units))
    fill_value = FillValue(bytes(np.dtype(layout.dtype).itemsize))
    builder = ArrayBuilder(grid, DataType.from_string(layout.dtype), fill_value)
    codecs = [codec.BytesToBytesCodec.from_config(each) for each in layout.codecs()]
    builder = builder.compressors(codecs)
    if layout.shards:
        builder = builder.subchunk_shape(list(layout.chunks))
    return Zarrista(builder.create(FilesystemStore(path), "/"))


def save(a: np.ndarray, path: str, layout: Layout) -> None:
    create(path, a.shape, layout)[...] = a
