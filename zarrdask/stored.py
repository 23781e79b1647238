"""What is stored of an array: counted, and erased where a smaller shape leaves it outside."""

from collections.abc import Iterator
from math import prod

from zarrdask.chunkio import Chunks, StoredValue
from zarrdask.chunkwrite import filled
from zarrdask.codecs.sharding import shard_of
from zarrdask.grids import Index, Shape
from zarrdask.storage.base import Scratch


def stored_units(chunks: Chunks) -> Iterator[Index]:
    """Yield the indices of the units that are stored.

    Raises
    ------
    UnsupportedError
        If the store can't be listed.
    """
    metadata = chunks.metadata
    within = metadata.grid.counts
    start = len(chunks.prefix)
    for key in chunks.units.list_prefix(chunks.prefix):
        index = metadata.keys.index(key[start:], len(within))
        if index is not None and all(i < n for i, n in zip(index, within, strict=True)):
            yield index


def trim(chunks: Chunks, shape: Shape) -> None:
    """Erase what lies outside a smaller shape, so that growing again shows the fill value.

    Parameters
    ----------
    chunks : Chunks
        With the old shape.
    shape : tuple of int
        The new one.
    """
    grid = chunks.metadata.grid
    kept = grid.resize(shape).counts
    for index in list(stored_units(chunks)):
        if any(i >= n for i, n in zip(index, kept, strict=True)):
            chunks.units.erase(chunks.key(index))
        elif any(
            at + length > new < old
            for at, length, new, old in zip(
                grid.start(index), grid.shape_of(index), shape, grid.shape, strict=True
            )
        ):
            _clear_outside(chunks, index, shape)


def _clear_outside(chunks: Chunks, index: Index, shape: Shape) -> None:
    """Rewrite a unit that hangs over a shape, with the fill value where it does."""
    grid, pipeline = chunks.metadata.grid, chunks.metadata.pipeline_at(index)
    inside = tuple(
        slice(0, min(length, size - at), 1)
        for length, size, at in zip(grid.shape_of(index), shape, grid.start(index), strict=True)
    )
    key = chunks.key(index)
    data = chunks.units.get(key)
    if data is None:
        return
    unit = filled(pipeline)
    unit[inside] = pipeline.decode(data)[inside]
    chunks.units.set(key, pipeline.encode(unit))


def count_stored(chunks: Chunks) -> int:
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
