"""Repair stored units: copy those that can't be read from another array with the same elements."""

from typing import Any, NamedTuple

import numpy as np

from zarrdask.chunks.read import read_region
from zarrdask.chunks.stored import StoredChunks
from zarrdask.chunks.write import fill_chunk
from zarrdask.compliance import strictness
from zarrdask.errors import MetadataError, NodeTypeError, ZarrdaskError
from zarrdask.grids.base import Index, extent_at
from zarrdask.hierarchy.find import find_node
from zarrdask.hierarchy.path import key_prefix, node_location
from zarrdask.indexing.projection import project
from zarrdask.metadata.model import ArrayMetadata
from zarrdask.rewrite.move import encoded_transfer
from zarrdask.runtime.locks import ChunkLocks
from zarrdask.storage.base import Store
from zarrdask.storage.byte_ranges import Buffer
from zarrdask.verification.check import Tally, check_unit, check_units


class RepairTally(NamedTuple):
    """The counts and the problems of some units, before and after their repair."""

    before: Tally
    after: Tally


def check_exists(store: Store, path: str) -> None:
    """Check that there is a node to repair from.

    Raises
    ------
    NodeNotFoundError
        If there is none.
    """
    with strictness(strict=False, quiet=True):
        find_node(store, path)


def find_array(store: Store, path: str) -> StoredChunks:
    """Return the units of the array at a path.

    Raises
    ------
    NodeNotFoundError, NodeTypeError
        If there is no array.
    """
    with strictness(strict=False, quiet=True):
        store, metadata = find_node(store, path)
    if not isinstance(metadata, ArrayMetadata):
        place = node_location(store, path)
        raise NodeTypeError(
            "expected an array but found a group; repair from a hierarchy of the same structure",
            key=place,
            found="group",
            expected="array",
        )
    return StoredChunks(store, key_prefix(path), metadata)


def check_same(chunks: StoredChunks, other: StoredChunks) -> None:
    """Check that units of one array can be repaired from another.

    Raises
    ------
    MetadataError
        If the other array has another shape, data type or fill value.
    """
    properties = _element_properties(chunks.metadata)
    for name, value in _element_properties(other.metadata).items():
        if value != properties[name]:
            raise MetadataError(
                f"the array can't be repaired from one with another {name}",
                key=f"{other.store.url}/{other.prefix}".rstrip("/"),
                found=value,
                expected=properties[name],
            )


def _element_properties(metadata: ArrayMetadata) -> dict[str, str]:
    dtype = metadata.dtype.newbyteorder("=")
    fill = metadata.fill if dtype.hasobject else np.array(metadata.fill, dtype).tobytes()
    return {"shape": str(metadata.shape), "data type": str(dtype), "fill value": repr(fill)}


def stores_equal_bytes(chunks: StoredChunks, other: StoredChunks) -> bool:
    """Return whether both arrays store the same elements of a unit as the same bytes."""
    # A storage transformer may change the bytes of units.
    transformers = chunks.metadata.transformers or other.metadata.transformers
    return not transformers and encoded_transfer(chunks.metadata, other.metadata) == "units"


def repair_units(
    chunks: StoredChunks, other: StoredChunks, indices: list[Index], *, missing: bool
) -> RepairTally:
    """Copy those of some units that can't be read from another array, and check them again.

    Parameters
    ----------
    chunks : StoredChunks
        The array that is repaired.
    other : StoredChunks
        The array that is read.
    indices : list of tuple of int
        The indices of the units.
    missing : bool
        Whether the other array also decides which units are stored: units that are missing here
        are copied, and bad units that are missing there are erased.
    """
    before = check_units(chunks, indices)
    locks, equal_bytes = ChunkLocks(chunks.store), stores_equal_bytes(chunks, other)
    for index in indices:
        with locks.hold(chunks.lock_name(index)):
            _repair_unit(chunks, other, index, missing=missing, equal_bytes=equal_bytes)
    return RepairTally(before, check_units(chunks, indices))


def _repair_unit(
    chunks: StoredChunks, other: StoredChunks, index: Index, *, missing: bool, equal_bytes: bool
) -> None:
    # Check again: another writer may have replaced the unit before it was locked.
    verdict = check_unit(chunks, index)
    if not verdict.is_bad and not (missing and verdict.size is None):
        return
    key, value = chunks.key(index), _intact_value(chunks, other, index, equal_bytes=equal_bytes)
    if value is not None:
        chunks.units.set(key, value)
    elif missing and verdict.is_bad and _is_missing(other, chunks, index):
        chunks.units.erase(key)


def _intact_value(
    chunks: StoredChunks, other: StoredChunks, index: Index, *, equal_bytes: bool
) -> Buffer | None:
    """Return the encoded unit, or None if it is missing or bad in the other array."""
    if equal_bytes:
        verdict = check_unit(other, index)
        usable = not verdict.is_bad and verdict.size is not None
        return other.units.get(other.key(index)) if usable else None
    if _is_missing(other, chunks, index):
        return None
    try:
        return _encoded(chunks, other, index)
    except ZarrdaskError:
        return None  # it can't be read in the other array either


def _encoded(chunks: StoredChunks, other: StoredChunks, index: Index) -> Buffer:
    """Read the elements of a unit from another array, and encode them."""
    pipeline = chunks.metadata.pipeline_at(index)
    region = extent_at(chunks.metadata.grid, index)
    unit = fill_chunk(pipeline)
    inside: Any = (*(slice(0, part.stop - part.start) for part in region), ...)
    unit[inside] = read_region(other, region)
    return pipeline.encode(unit)


def _is_missing(other: StoredChunks, chunks: StoredChunks, index: Index) -> bool:
    """Return whether another array stores no element of a unit."""
    cuts = project(extent_at(chunks.metadata.grid, index), other.metadata.grid.axes)
    return all(other.units.get_range(other.key(each), 0, 1) is None for each in cuts.indices)
