"""Read the small coordinates of datasets with one request for all, whatever their number."""

from collections.abc import Container, Hashable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np
import xarray

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.nodes.array import Array, chunks_of
from zarrdask.errors import ZarrdaskError
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.memory import MemoryStore
from zarrdask.xarray import conventions
from zarrdask.xarray.datastore import StoredGroup

K = TypeVar("K", bound=Hashable)

#: The attribute of arrays and groups that names coordinates.
_COORDINATES = "coordinates"
#: The most bytes of one array, decoded, with what its chunks hold beyond its end.
MAX_ARRAY_BYTES = 2**20
#: The most bytes of all arrays that are read together.
MAX_TOTAL_BYTES = 2**25


def read_coordinates(groups: Mapping[str, StoredGroup]) -> dict[str, dict[str, np.ndarray]]:
    """Read the small coordinates of groups, by path and name, all with one request."""
    wanted: dict[tuple[str, str], Array] = {}
    for path, group in groups.items():
        mentioned = _mentioned(group)
        for name, array in group.arrays.items():
            if _is_coordinate(name, array.metadata, mentioned):
                wanted[path, name] = array
    values: dict[str, dict[str, np.ndarray]] = {path: {} for path in groups}
    for (path, name), data in read_small_arrays(wanted).items():
        values[path][name] = data
    return values


def _mentioned(group: StoredGroup) -> set[str]:
    """Return the names that the attribute ``coordinates`` of a group or its arrays mentions."""
    attributes = [array.metadata.attributes for array in group.arrays.values()]
    return {*_names(group.metadata.attributes, *attributes)}


def _names(*attributes: Mapping[Any, Any]) -> list[str]:
    """Return the names that the attribute ``coordinates`` mentions in some attributes."""
    texts = [members.get(_COORDINATES) for members in attributes]
    return [name for text in texts if isinstance(text, str) for name in text.split()]


def with_coordinates(
    attributes: Mapping[Any, Any],
    dataset: xarray.Dataset,
    variables: Mapping[Hashable, xarray.Variable],
    group: StoredGroup,
) -> Mapping[Any, Any]:
    """Return the new attributes of a stored group, which mention all coordinates that need it.

    These are the coordinates of the written dataset that no array mentions, as arrays that exist
    keep their attributes, and the coordinates that the group mentions already. `variables` are the
    encoded variables of the dataset.
    """
    arrays = [array.metadata.attributes for array in group.arrays.values()]
    new = [variable.attrs for name, variable in variables.items() if name not in group.arrays]
    mentioned = {*_names(attributes, *arrays, *new)}
    stored = [
        name
        for name in _names(group.metadata.attributes)
        if name in group.arrays and name not in dataset.data_vars
    ]
    missing = [
        name
        for name in dict.fromkeys((*stored, *map(str, dataset.coords)))
        if name not in mentioned and name not in dataset.dims and " " not in name
    ]
    if not missing:
        return attributes
    return {**attributes, _COORDINATES: " ".join((*_names(attributes), *missing))}


def _is_coordinate(name: str, metadata: ArrayMetadata, mentioned: Container[str]) -> bool:
    """Whether opening the dataset, or looking at it, reads the array."""
    if len(metadata.shape) != 1:
        return not metadata.shape
    try:
        dims = conventions.dimensions(metadata)
    except conventions.MissingDimensionsError:
        return False
    # Decoding reads the first and the last element of times.
    is_time = " since " in str(metadata.attributes.get("units"))
    return dims in ((name,), ()) or name in mentioned or is_time


def read_small_arrays(arrays: Mapping[K, Array]) -> dict[K, np.ndarray]:
    """Read the arrays, of several arrays of one store, that are small and have at most one axis.

    Arrays that cannot be read are left out: reading them later raises the error.
    """
    small: dict[K, Array] = {}
    total = 0.0
    for key, array in arrays.items():
        size = _read_size(array.metadata)
        if size <= MAX_ARRAY_BYTES and total + size <= MAX_TOTAL_BYTES:
            small[key] = array
            total += size
    try:
        return _read_together(small) if small else {}
    except ZarrdaskError:
        return {}


def _read_size(metadata: ArrayMetadata) -> float:
    """Return how many bytes reading the whole array decodes; infinity if it is not eligible."""
    if len(metadata.shape) > 1 or metadata.transformers or metadata.dtype.itemsize == 0:
        return float("inf")
    return metadata.grid.size * metadata.pipeline.spec.nbytes


def _read_together(arrays: Mapping[K, Array]) -> dict[K, np.ndarray]:
    stored = {name: chunks_of(array) for name, array in arrays.items()}
    keys = {
        name: [chunks.key(index) for index in chunks.metadata.grid.indices()]
        for name, chunks in stored.items()
    }
    units = next(iter(stored.values())).units
    encoded = units.get_many(chain.from_iterable(keys.values()), Scratch())
    values = {}
    for name, chunks in stored.items():
        # Each value is valid until the next is requested: keep copies.
        copies = [
            None if each is None else bytes(each) for each in islice(encoded, len(keys[name]))
        ]
        with suppress(ZarrdaskError):
            values[name] = _decoded(chunks, dict(zip(keys[name], copies, strict=True)))
    return values


def _decoded(chunks: StoredChunks, encoded: dict[str, bytes | None]) -> np.ndarray:
    """Return the elements of an array for its encoded chunks or shards, by key."""
    metadata, present = chunks.metadata, {k: v for k, v in encoded.items() if v is not None}
    if len(encoded) == len(present) == 1 and metadata.shard is None:
        # Nearly all coordinates: trees have thousands of them.
        chunk = metadata.pipeline.decode_apart(*present.values())
        return chunk[: metadata.shape[0]] if metadata.shape else chunk
    held = MemoryStore(present)
    values: np.ndarray = ArrayRegion(replace(chunks, store=held, is_stored=False))[...]
    return values
