"""Copy stored units that can't be read from another array that holds the same."""

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
from zarrdask.indexing.projection import cut
from zarrdask.metadata.model import ArrayMetadata
from zarrdask.rewrite.move import how_to_move
from zarrdask.runtime.locks import UnitLocks
from zarrdask.storage.base import Store
from zarrdask.storage.byte_ranges import Buffer
from zarrdask.storage.consolidated import plain
from zarrdask.verification.check import Tally, check_unit, check_units


class Mended(NamedTuple):
    """What was found of some units before and after they were mended."""

    before: Tally
    after: Tally


def check_there(store: Store, path: str) -> None:
    """Check that there is something to mend from.

    Raises
    ------
    NodeNotFoundError
        If there is nothing.
    """
    with strictness(strict=False, quiet=True):
        find_node(store, path)


def find_array(store: Store, path: str) -> StoredChunks:
    """Return the units of an array.

    Raises
    ------
    NodeNotFoundError, NodeTypeError
        If there is none.
    """
    with strictness(strict=False, quiet=True):
        store, found = find_node(store, path)
    if not isinstance(found, ArrayMetadata):
        place = node_location(store, path)
        raise NodeTypeError("a group is here", key=place, found="group", expected="array")
    return StoredChunks(plain(store), key_prefix(path), found)


def check_same(chunks: StoredChunks, other: StoredChunks) -> None:
    """Check that units of one array can come from another.

    Raises
    ------
    MetadataError
        If it has another shape, data type or fill value.
    """
    ours, theirs = _essence(chunks.metadata), _essence(other.metadata)
    for name, found in theirs.items():
        if found != ours[name]:
            raise MetadataError(
                f"an array of another {name} can't mend this one",
                key=f"{other.store.url}/{other.prefix}".rstrip("/"),
                found=found,
                expected=ours[name],
            )


def _essence(metadata: ArrayMetadata) -> dict[str, str]:
    dtype = metadata.dtype.newbyteorder("=")
    fill = metadata.fill if dtype.hasobject else np.array(metadata.fill, dtype).tobytes()
    return {"shape": str(metadata.shape), "data type": str(dtype), "fill value": repr(fill)}


def is_alike(chunks: StoredChunks, other: StoredChunks) -> bool:
    """Whether both arrays store the same values of a unit as the same bytes."""
    # A transformer may keep more in a value than one unit.
    layers = chunks.metadata.transformers or other.metadata.transformers
    return not layers and how_to_move(chunks, other) == "units"


def mend_units(
    chunks: StoredChunks, other: StoredChunks, indices: list[Index], *, missing: bool
) -> Mended:
    """Copy those of some units that can't be read, and look at them again.

    Parameters
    ----------
    chunks, other : Chunks
        What is mended, and what it is mended from.
    indices : list of tuple of int
        Of the units.
    missing : bool
        Whether what is not stored in one is the truth of it: what is missing here is copied, and
        what is bad here and not stored there is erased.
    """
    before = check_units(chunks, indices)
    locks, alike = UnitLocks(chunks.store), is_alike(chunks, other)
    for index in indices:
        with locks.changing(chunks.lock_name(index)):
            _mend(chunks, other, index, missing=missing, alike=alike)
    return Mended(before, check_units(chunks, indices))


def _mend(
    chunks: StoredChunks, other: StoredChunks, index: Index, *, missing: bool, alike: bool
) -> None:
    # Once more, now that no one else changes it.
    here = check_unit(chunks, index)
    if not here.is_bad and not (missing and here.size is None):
        return
    key, found = chunks.key(index), _value(chunks, other, index, alike=alike)
    if found is not None:
        chunks.units.set(key, found)
    elif missing and here.is_bad and _is_absent(other, chunks, index):
        chunks.units.erase(key)


def _value(
    chunks: StoredChunks, other: StoredChunks, index: Index, *, alike: bool
) -> Buffer | None:
    """Return what a unit is to be, or None if the other array has it not, or bad."""
    if alike:
        verdict = check_unit(other, index)
        bad = verdict.is_bad or verdict.size is None
        return None if bad else other.units.get(other.key(index))
    if _is_absent(other, chunks, index):
        return None
    try:
        return _encoded(chunks, other, index)
    except ZarrdaskError:
        return None  # it can't be read there either


def _encoded(chunks: StoredChunks, other: StoredChunks, index: Index) -> Buffer:
    pipeline = chunks.metadata.pipeline_at(index)
    region = extent_at(chunks.metadata.grid, index)
    unit = fill_chunk(pipeline)
    inside: Any = (*(slice(0, part.stop - part.start) for part in region), ...)
    unit[inside] = read_region(other, region)
    return pipeline.encode(unit)


def _is_absent(other: StoredChunks, chunks: StoredChunks, index: Index) -> bool:
    """Whether another array stores nothing of where a unit is."""
    cuts = cut(extent_at(chunks.metadata.grid, index), other.metadata.grid.axes)
    return all(other.units.get_range(other.key(each), 0, 1) is None for each in cuts.indices)
