"""What is stored of an array: counted, and erased where a smaller shape leaves it outside."""

import os
from collections.abc import Callable, Iterator, Sequence
from math import prod

from zarrdask.chunks.stored import StoredChunks, StoredValue
from zarrdask.chunks.write import fill_chunk
from zarrdask.codecs.array_to_bytes.sharding import shard_of
from zarrdask.errors import StoreError, ZarrdaskError
from zarrdask.grids.base import ChunkGrid, Index, Shape, extent_at
from zarrdask.indexing.projection import cut
from zarrdask.metadata.model import ArrayMetadata
from zarrdask.runtime.locks import UnitLocks
from zarrdask.runtime.threads import on_each
from zarrdask.storage.base import Scratch, Store
from zarrdask.storage.local import LocalStore
from zarrdask.storage.v3_draft import real_key
from zarrdask.storage.wrapper import WrappedStore

#: What is wrong with such a file.
IN_THE_WAY = "a file stands in the place of a directory of chunks; remove or move it"
#: Keys that are erased by one call.
_BATCH = 256


def stored_units(chunks: StoredChunks) -> Iterator[Index]:
    """Yield the indices of the units that are stored.

    Raises
    ------
    UnsupportedError
        If the store can't be listed.
    StoreError
        If that fails, or a file stands where a directory of chunks should be; the error names the
        place.
    """
    metadata = chunks.metadata
    within = metadata.grid.counts
    start, is_local = len(chunks.prefix), local_store(chunks.units) is not None
    for key in chunks.units.list_prefix(chunks.prefix):
        name = key[start:]
        # A directory in the place of a chunk is listed, so that reading it is an error.
        index = metadata.keys.index(name.rstrip("/") if is_local else name, len(within))
        if index is not None:
            if all(i < n for i, n in zip(index, within, strict=True)):
                yield index
        elif is_local and not name.endswith("/") and is_in_the_way(metadata, name):
            raise StoreError(IN_THE_WAY, key=f"{chunks.store.url}/{key}")


def is_in_the_way(metadata: ArrayMetadata, name: str) -> bool:
    """Whether a file of this name in an array is where the chunks need a directory."""
    ndim = len(metadata.shape)
    deeper = (name + "/0" * depth for depth in range(1, ndim + 1))
    return any(metadata.keys.index(key, ndim) is not None for key in deeper)


def local_store(store: Store) -> LocalStore | None:
    """Return the local directory that a store is a view of, if it is one."""
    while isinstance(store, WrappedStore):
        store = store.inner
    return store if isinstance(store, LocalStore) else None


def chunks_with_data(grid: ChunkGrid, arrays: Sequence[StoredChunks]) -> Iterator[Index]:
    """Yield the chunks of a grid, in C order, in which something is stored of some arrays.

    All of them, where a store can't be listed, or most of an array is there.

    Parameters
    ----------
    grid : ChunkGrid
    arrays : sequence of Chunks
        Of the shape of the grid.
    """
    seen = set[Index]()
    for chunks in arrays:
        within = chunks.metadata.grid
        units = list(stored_units(chunks)) if chunks.store.listable else None
        if units is None or 2 * len(units) >= within.size:
            yield from grid.indices()
            return
        for unit in units:
            seen.update(cut(extent_at(within, unit), grid.axes).indices)
    yield from sorted(seen)


def erase_leftovers(chunks: StoredChunks, *, unless: Callable[[], object] | None = None) -> None:
    """Erase units of an array that was here, so that a new one does not show them.

    A node that was not removed to the end, or an array that was to appear when it is complete,
    leaves such: no document tells of them.

    Parameters
    ----------
    chunks : Chunks
        The new array, which is not there yet.
    unless : callable, optional
        Raises an error if what was found is not left, as somebody made the array just now.
    """
    if chunks.store.listable:
        found = [chunks.key(index) for index in stored_units(chunks)]
        if unless is not None and found:
            unless()
        chunks.units.check_erasable(found)
        chunks.units.erase_values(found)


def trim(chunks: StoredChunks, shape: Shape) -> None:
    """Erase what lies outside a smaller shape, so that growing again shows the fill value.

    Several threads do it, and it may be done again. A store that can't be listed is asked to
    erase all units that there might be.

    Parameters
    ----------
    chunks : Chunks
        With the old shape.
    shape : tuple of int
        The new one.
    """
    grid = chunks.metadata.grid
    kept = grid.resize(shape).counts
    listed = stored_units(chunks) if chunks.store.listable else grid.indices()
    outside, hanging = [], []
    for index in listed:
        if any(i >= n for i, n in zip(index, kept, strict=True)):
            outside.append(chunks.key(index))
        elif _hangs_over(grid, index, shape):
            hanging.append(index)
    chunks.units.check_erasable(outside)
    locks = UnitLocks(chunks.store)
    batches = [outside[at : at + _BATCH] for at in range(0, len(outside), _BATCH)]
    on_each(chunks.units.erase_values, batches, None)
    on_each(lambda index: _clear_outside(chunks, locks, index, shape), hanging, None)


def _hangs_over(grid: ChunkGrid, index: Index, shape: Shape) -> bool:
    """Whether a unit holds elements that a smaller shape has no more."""
    return any(
        at + length > new < old
        for at, length, new, old in zip(
            grid.start(index), grid.shape_of(index), shape, grid.shape, strict=True
        )
    )


def _clear_outside(chunks: StoredChunks, locks: UnitLocks, index: Index, shape: Shape) -> None:
    """Rewrite a unit that hangs over a shape, with the fill value where it does."""
    grid, pipeline = chunks.metadata.grid, chunks.metadata.pipeline_at(index)
    inside = tuple(
        slice(0, min(length, size - at), 1)
        for length, size, at in zip(grid.shape_of(index), shape, grid.start(index), strict=True)
    )
    key = chunks.key(index)
    with locks.changing(chunks.lock_name(index)):
        data = chunks.units.get(key)
        if data is None:
            return
        unit = fill_chunk(pipeline)
        try:
            unit[inside] = pipeline.decode(data)[inside]
            encoded = pipeline.encode(unit)
        except ZarrdaskError as error:
            raise error.within(key) from error.__cause__
        chunks.units.set(key, encoded)


def stored_sizes(chunks: StoredChunks) -> tuple[int, int]:
    """Return how many units of an array are stored, and how many bytes they take together."""
    sizes = [_size(chunks.store, chunks.key(index)) for index in stored_units(chunks)]
    return len(sizes), sum(sizes)


def _size(store: Store, key: str) -> int:
    """Return the size of a value, without reading it where the store knows it."""
    key, inner = real_key(store, key), store
    while isinstance(inner, WrappedStore):
        inner = inner.inner
    try:
        if isinstance(inner, LocalStore):
            return os.path.getsize(inner.path(key))
        if hasattr(inner, "fs") and hasattr(inner, "path"):
            return int(inner.fs.size(inner.path(key)))
    except OSError:
        return 0  # it was erased meanwhile
    return len(inner.get(key) or b"")


def count_stored(chunks: StoredChunks) -> int:
    """Return how many chunks are stored: in shards, those that their indices name."""
    units = stored_units(chunks)
    if chunks.metadata.shard is None:
        return sum(1 for _ in units)
    total = 0
    for unit in units:
        shard = shard_of(chunks.metadata.pipeline_at(unit))
        value = StoredValue(chunks.units, chunks.key(unit), Scratch())
        index = None if shard is None else shard.read_index(value)
        if index is not None:
            total += prod(index.shape[:-1]) - int((index == 2**64 - 1).all(axis=-1).sum())
    return total
