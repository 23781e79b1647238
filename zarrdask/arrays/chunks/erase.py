"""Erase a region of a stored array: its elements become the fill value."""

from collections.abc import Iterator
from itertools import product
from math import prod

import numpy as np
from toolz import partition_all

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.stored_keys import KEYS_PER_CALL, StoredUnits
from zarrdask.arrays.chunks.write import Beyond, write_region
from zarrdask.formats.codecs.decode import put_fill
from zarrdask.formats.grids.axis import Axis
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.formats.indexing.selection import Region, region_shape
from zarrdask.runtime.threads import on_each
from zarrdask.storage.locks.chunk_locks import ChunkLocks


def erase_region(chunks: StoredChunks, region: Region, *, beyond: Beyond = "keep") -> None:
    """Erase the units that a region covers, unread, and fill its part of the others.

    With ``beyond="fill"``, a unit is covered if all of its elements within the array are.
    """
    if 0 in region_shape(region):
        return
    covered = covered_units(chunks, region, beyond)
    indices = list(_erased(chunks, covered))
    batches = list(partition_all(KEYS_PER_CALL, indices))
    for batch in batches:
        chunks.units.check_writable(erasing=[chunks.key(index) for index in batch])
    locks = ChunkLocks(chunks.store)
    on_each(lambda batch: _erase_units(chunks, locks, batch), batches, None)
    fill = np.empty((), chunks.metadata.dtype)
    put_fill(fill, ..., chunks.metadata.fill)
    for part in _around(region, covered, chunks.metadata.grid.axes):
        values = np.broadcast_to(fill, region_shape(part))
        write_region(chunks, part, values, empty=False, locks=locks, threads=None, show=None)


def covered_units(chunks: StoredChunks, region: Region, beyond: Beyond) -> tuple[range, ...]:
    """Return the numbers of the units along each axis that a region covers."""
    return tuple(
        _covered(pick, axis, axis.size if beyond == "fill" else None)
        for pick, axis in zip(region, chunks.metadata.grid.axes, strict=True)
    )


def _covered(pick: slice, axis: Axis, size: int | None) -> range:
    """Return the numbers of the units that a slice covers, up to the length of the axis."""
    numbers = axis.numbers(pick)
    begin = numbers.start + (axis.start(numbers.start) < pick.start)
    is_whole = pick.stop in (axis.start(numbers.stop), size)
    return range(begin, numbers.stop if is_whole else numbers.stop - 1)


def _erased(chunks: StoredChunks, covered: tuple[range, ...]) -> Iterator[Index]:
    """Yield the units to erase: those that are stored, if it is cheap to list them."""
    counts = chunks.metadata.grid.counts
    number = prod(map(len, covered))
    is_listable = chunks.units.capabilities.listable
    if is_listable and number > KEYS_PER_CALL and 2 * number > prod(counts):
        for index in StoredUnits(chunks).indices():
            if all(i in numbers for i, numbers in zip(index, covered, strict=True)):
                yield index
    else:
        yield from product(*covered)


def _erase_units(chunks: StoredChunks, locks: ChunkLocks, indices: tuple[Index, ...]) -> None:
    versions = [locks.version(chunks.lock_name(index)) for index in indices]
    chunks.units.erase_values([chunks.key(index) for index in indices])
    for index, version in zip(indices, versions, strict=True):
        if locks.is_outdated(version):
            # A partial write at the same time may have stored what it read before.
            with locks.hold_here(chunks.lock_name(index)):
                chunks.units.erase(chunks.key(index))


def _around(region: Region, covered: tuple[range, ...], axes: tuple[Axis, ...]) -> Iterator[Region]:
    """Yield the parts of a region around its covered units; they do not overlap."""
    inner: Region = ()
    for number, (pick, units, axis) in enumerate(zip(region, covered, axes, strict=True)):
        if units:
            begin = axis.start(units.start)
            end = min(axis.start(units.stop), pick.stop)
            sides = slice(pick.start, begin, 1), slice(end, pick.stop, 1)
        else:
            begin = end = pick.start
            sides = slice(0, 0, 1), pick
        for side in sides:
            if side.start < side.stop:
                yield (*inner, side, *region[number + 1 :])
        if begin == end:
            return
        inner = (*inner, slice(begin, end, 1))
