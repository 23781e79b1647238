"""tensorstore alone."""

from typing import Any

import numpy as np
import tensorstore

from benchmarks.rows import Layout, Shape

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


class TensorStore:
    """A tensorstore as NumPy and Dask want it: with NumPy's dtype, and results, not promises."""

    def __init__(self, path: str, **more: Any) -> None:
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": path}}
        self.store = store = tensorstore.open(spec | more).result()
        self.shape, self.ndim, self.dtype = store.shape, store.ndim, store.dtype.numpy_dtype

    def __getitem__(self, index: Any) -> np.ndarray:
        return self.store[index].read().result()  # type: ignore[no-any-return]

    def __setitem__(self, index: Any, value: np.ndarray) -> None:
        self.store[index].write(value).result()


eager = TensorStore


def read_many(z: TensorStore, crops: list[Any]) -> list[np.ndarray]:
    promises = [z.store[crop].read() for crop in crops]
    return [promise.result() for promise in promises]


def create(path: str, shape: Shape, layout: Layout) -> TensorStore:
    """Create an array."""
    codecs = [LITTLE, *layout.codecs()]
    if layout.shards:
        shards = {"chunk_shape": layout.chunks, "codecs": codecs, "index_location": "end"}
        shards["index_codecs"] = [LITTLE, {"name": "crc32c"}]
        codecs = [{"name": "sharding_indexed", "configuration": shards}]
    grid = {"name": "regular", "configuration": {"chunk_shape": layout.units}}
    about = {"shape": shape, "data_type": layout.dtype, "chunk_grid": grid, "codecs": codecs}
    return TensorStore(path, create=True, metadata=about)


def save(a: np.ndarray, path: str, layout: Layout) -> None:
    create(path, a.shape, layout)[...] = a
