"""Read many small arrays together: with one request for all, whatever their number."""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

from zarrdask.chunks.read import read_region
from zarrdask.errors import ZarrdaskError
from zarrdask.indexing.selection import whole_region
from zarrdask.metadata.model import ArrayMetadata
from zarrdask.nodes.array import Array
from zarrdask.storage.base import Scratch
from zarrdask.storage.memory import MemoryStore

K = TypeVar("K", bound=Hashable)

#: The most bytes of one array, decoded, with what its chunks hold beyond its end.
MAX_ARRAY_BYTES = 2**20
#: The most bytes of all arrays that are read together.
MAX_TOTAL_BYTES = 2**25


def read_small_arrays(arrays: Mapping[K, Array]) -> dict[K, np.ndarray]:
    """Read those of several arrays of one store that are small and have at most one axis.

    Arrays that cannot be read are left out: whoever reads them by themselves gets the error.
    """
    small: dict[K, Array] = {}
    total = 0.0
    for key, array in arrays.items():
        size = _read_size(array.metadata)
        if size <= MAX_ARRAY_BYTES and total + size <= MAX_TOTAL_BYTES:
            small[key] = array
            total += size
    try:
        return _read_together(small)
    except ZarrdaskError:
        return {}


def _read_size(metadata: ArrayMetadata) -> float:
    """Return how many bytes reading the whole array decodes; infinity if it is not eligible."""
    if len(metadata.shape) > 1 or metadata.transformers or metadata.dtype.itemsize == 0:
        return float("inf")
    return metadata.grid.size * metadata.pipeline.spec.nbytes


def _read_together(arrays: Mapping[K, Array]) -> dict[K, np.ndarray]:
    if not arrays:
        return {}
    store = next(iter(arrays.values())).stored.store
    keys = [key for array in arrays.values() for key in _keys(array)]
    # Each value is valid until the next is asked for: keep copies.
    encoded = zip(keys, store.get_many(keys, Scratch()), strict=True)
    held = MemoryStore({key: bytes(value) for key, value in encoded if value is not None})
    values = {}
    for name, array in arrays.items():
        try:
            values[name] = read_region(replace(array.stored, store=held), whole_region(array.shape))
        except ZarrdaskError:
            continue
    return values


def _keys(array: Array) -> list[str]:
    chunks = array.stored
    return [chunks.key(index) for index in chunks.metadata.grid.indices()]
