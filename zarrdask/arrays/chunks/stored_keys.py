"""List, count and erase the stored chunks and shards of an array."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import tee
from operator import floordiv, lt
from typing import Literal, TypeVar, cast

import numpy as np
from toolz import partition_all

from zarrdask import config
from zarrdask.arrays.chunks.shards import MAX_ROUND_RANGES
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.errors import StoreError, ZarrdaskError
from zarrdask.formats.byte_ranges import StoredObject
from zarrdask.formats.codecs.array_to_bytes.sharding import Shard
from zarrdask.formats.codecs.byte_source import HeldValue
from zarrdask.formats.codecs.decode import fill_chunk
from zarrdask.formats.grids.chunk_grid import ChunkGrid, Index, Shape
from zarrdask.formats.indexing.projection import project
from zarrdask.formats.indexing.selection import intersection, shifted, whole_region
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.runtime.threads import on_each
from zarrdask.storage.base import Store
from zarrdask.storage.listing import listed_entries, listed_keys, listed_objects, value_sizes
from zarrdask.storage.locks.chunk_locks import ChunkLocks
from zarrdask.storage.locks.unchanged import change_if_unchanged

T = TypeVar("T")

#: The message for a file that has the name of a directory of chunks.
_IN_THE_WAY = "a file has the name of a directory of chunks; remove or rename it"
#: The number of keys that are erased by one call.
KEYS_PER_CALL = 256
#: The number of keys that object stores list by one request.
KEYS_PER_LISTING = 1000
#: How many keys are compared for each part of a listing, so that the parts are of similar length.
_SAMPLES_PER_PART = 16
#: A function that is called with a damaged shard, by its index, and the error.
OnDamage = Callable[[Index, ZarrdaskError], object]


@dataclass(frozen=True)
class StoredUnits:
    """The units (chunks, or shards if there are any) of an array that are stored."""

    chunks: StoredChunks

    def indices(self) -> Iterator[Index]:
        """Return the indices of the units that are stored.

        Raises
        ------
        UnsupportedError
            If the store can't be listed.
        StoreError
            If listing fails, or a file has the name of a directory of chunks; the error names it.
        """
        keys = listed_keys(self.chunks.units, self.chunks.prefix, _listing_bounds(self.chunks))
        return (index for index, _ in _units_of(self.chunks, ((key, None) for key in keys)))

    def sizes(self) -> Iterator[tuple[Index, int]]:
        """Yield the units that are stored and the size of each in bytes, as `indices` does."""
        entries = listed_entries(
            self.chunks.units, self.chunks.prefix, _listing_bounds(self.chunks)
        )
        listed = ((each.key, each.size) for each in entries)
        for batch in partition_all(MAX_ROUND_RANGES, _units_of(self.chunks, listed)):
            # Not every store has the sizes in its listings.
            unknown = [unit for unit, size in batch if size is None]
            yield from ((unit, size) for unit, size in batch if size is not None)
            yield from _sizes(self.chunks, unknown)

    def objects(self) -> Iterator[tuple[Index, StoredObject]]:
        """Yield the units that are stored, and the object that holds each.

        Raises
        ------
        UnsupportedError
            If the values of the store are not objects with URLs of their own.
        """
        listed = listed_objects(self.chunks.units, self.chunks.prefix, _listing_bounds(self.chunks))
        return _units_of(self.chunks, ((each.key, each) for each in listed))

    def totals(self) -> tuple[int, int]:
        """Return the number of stored units of an array, and their total size in bytes."""
        sizes = [size for _, size in self.sizes()]
        return len(sizes), sum(sizes)

    def count_chunks(self) -> int:
        """Return the number of stored chunks; in a sharded array, of those in the shard indexes."""
        units = self.indices()
        if self.chunks.metadata.shard is None:
            return sum(1 for _ in units)
        return sum(int((sizes >= 0).sum()) for _, sizes in self.chunk_sizes(units))

    def map(
        self,
        per: Literal["shard", "chunk"],
        units: Iterable[Index] | None = None,
        on_damage: OnDamage | None = None,
    ) -> np.ndarray:
        """Return which units, or which chunks in shards, are stored; see `Array.stored_map`.

        `units` are the stored units, if they are known; `on_damage` is as in `chunk_sizes`.
        """
        units, metadata = self.indices() if units is None else units, self.chunks.metadata
        grid = metadata.grid if per == "shard" else metadata.read_grid
        result = np.zeros(grid.counts, bool)
        if per == "shard" or metadata.shard is None:
            for unit in units:
                result[unit] = True
            return result
        for first, sizes in self.chunk_sizes(units, on_damage):
            box = tuple(slice(at, at + n) for at, n in zip(first, sizes.shape, strict=True))
            # A shard at the end of an axis may have chunks outside the array.
            result[box] = sizes[tuple(map(slice, result[box].shape))] >= 0
        return result

    def chunk_sizes(
        self, units: Iterable[Index], on_damage: OnDamage | None = None
    ) -> Iterator[tuple[Index, np.ndarray]]:
        """Yield the stored bytes of the chunks in some units, -1 for chunks that are not stored.

        Each unit that is stored yields the index of its first chunk, and the sizes of all of its
        chunks (one, unless it is a shard, whose index names them). Many shard indexes are read
        together. A shard whose index is damaged raises an error, unless there is a function to call
        with it.
        """
        metadata = self.chunks.metadata
        if metadata.shard is None:
            for unit, size in _sizes(self.chunks, units):
                yield unit, np.full((1,) * len(unit), size)
            return
        chunk_shape = metadata.read_grid.chunk_shape
        for batch in partition_all(MAX_ROUND_RANGES, units):
            pipelines = [metadata.pipeline_at(unit) for unit in batch]
            keys = [self.chunks.key(unit) for unit in batch]
            ranges = [cast(Shard, pipeline.serializer).index_range for pipeline in pipelines]
            values = self.chunks.units.get_partial_values(zip(keys, ranges, strict=True))
            for unit, key, pipeline, value in zip(batch, keys, pipelines, values, strict=True):
                if value is None:
                    continue  # the shard was erased concurrently
                try:
                    index = cast(Shard, pipeline.serializer).read_index(HeldValue(value))
                except ZarrdaskError as error:
                    if on_damage is None:
                        raise error.within(key) from error.__cause__
                    on_damage(unit, error)
                    continue
                if index is not None:
                    first = tuple(map(floordiv, metadata.grid.start(unit), chunk_shape))
                    back, sizes = pipeline.back, index.stored_bytes
                    yield first, sizes if back is None else sizes.transpose(back)


def _listing_bounds(chunks: StoredChunks) -> list[str]:
    """Return keys that divide the listing of a large array into parts of similar length, sorted."""
    grid = chunks.metadata.grid
    count = min(grid.size // KEYS_PER_LISTING, config.get("requests"))
    if count < 2:
        return []
    numbers = range(0, grid.size, max(grid.size // (count * _SAMPLES_PER_PART), 1))
    # Row by row: the numbers of chunks may exceed what an array of NumPy can count.
    sample = sorted(chunks.key(_index_of(number, grid.counts)) for number in numbers)
    step = len(sample) // count
    return sample[step : step * count : step]


def _index_of(number: int, counts: Shape) -> Index:
    """Return the index of a unit by its number in C order."""
    index = []
    for count in reversed(counts):
        number, position = divmod(number, count)
        index.append(position)
    return tuple(reversed(index))


def _units_of(
    chunks: StoredChunks, listed: Iterable[tuple[str, T]], *, outside: bool = False
) -> Iterator[tuple[Index, T]]:
    """Yield the units among listed keys, each with what was listed with its key.

    With `outside`, chunks with indices outside the grid of the array are included.
    """
    metadata = chunks.metadata
    counts = metadata.grid.counts
    start, is_local = len(chunks.prefix), chunks.units.capabilities.directories
    for key, entry in listed:
        name = key[start:]
        # A directory with the name of a chunk is yielded, too: reading that chunk raises an error.
        index = metadata.keys.index(name.rstrip("/") if is_local else name, len(counts))
        if index is not None:
            if outside or all(map(lt, index, counts)):
                yield index, entry
        elif is_local and not name.endswith("/") and (advice := in_the_way(metadata, name)):
            raise StoreError(advice, key=f"{chunks.store.url}/{key}")


def in_the_way(metadata: ArrayMetadata, name: str) -> str | None:
    """Return what to do about a file that has the name of a directory of chunks; None for others.

    `name` is the key of the file without the prefix of the array.
    """
    ndim = len(metadata.shape)
    deeper = (name + "/0" * depth for depth in range(1, ndim + 1))
    is_directory = any(metadata.keys.index(key, ndim) is not None for key in deeper)
    return _IN_THE_WAY if is_directory else None


def chunks_with_data(
    grid: ChunkGrid, arrays: Sequence[StoredChunks], *, start: Index | None = None
) -> Iterator[Index]:
    """Yield the chunks of a grid, in C order, for which an array has stored data.

    The chunks of the arrays may differ from the grid's. The grid has the shape of the arrays, or of
    their region that begins at `start`. All chunks are yielded if a store can't be listed, or at
    least half of an array is stored.
    """
    indices = set[Index]()
    for chunks in arrays:
        own_grid = chunks.metadata.grid
        units = list(StoredUnits(chunks).indices()) if chunks.store.capabilities.listable else None
        if units is None or 2 * len(units) >= own_grid.size:
            yield from grid.indices()
            return
        for unit in units:
            region = own_grid.region(unit)
            if start is not None:
                region = shifted(region, tuple(-n for n in start))
                region = intersection(region, whole_region(grid.shape))
            indices.update(project(region, grid.axes).indices)
    yield from sorted(indices)


def erase_leftovers(chunks: StoredChunks, *, unless: Callable[[], object] | None = None) -> None:
    """Erase the units of a former array at the path of a new one, which would show them.

    Units without documents are left if a node was not erased completely, or if an array that was to
    appear when it is complete was not completed. `chunks` is the new array, before its documents
    are written: units outside its shape are erased, too, as they would appear when it is resized.
    Before units are erased, `unless` is called: it raises an error if another process has just
    created the array, so that they are not left over.
    """
    if chunks.store.capabilities.listable:
        listed = ((key, None) for key in listed_keys(chunks.units, chunks.prefix))
        leftovers = [chunks.key(index) for index, _ in _units_of(chunks, listed, outside=True)]
        if unless is not None and leftovers:
            unless()
        chunks.units.check_writable(erasing=leftovers)
        chunks.units.erase_values(leftovers)


def trim(chunks: StoredChunks, shape: Shape) -> None:
    """Erase the elements of an array outside a smaller shape: if it grows again, they are not seen.

    Several threads are used. It may be repeated if it was cut short. If the store can't be listed,
    all units that might be stored are erased.
    """
    grid = chunks.metadata.grid
    new_counts = grid.resize(shape).counts
    indices = (
        StoredUnits(chunks).indices() if chunks.store.capabilities.listable else grid.indices()
    )
    outside, overlapping = [], []
    for index in indices:
        if any(i >= n for i, n in zip(index, new_counts, strict=True)):
            outside.append(chunks.key(index))
        elif _loses_elements(grid, index, shape):
            overlapping.append(index)
    chunks.units.check_writable(erasing=outside)
    locks = ChunkLocks(chunks.store)
    batches = [outside[at : at + KEYS_PER_CALL] for at in range(0, len(outside), KEYS_PER_CALL)]
    on_each(chunks.units.erase_values, batches, None)
    on_each(lambda index: _clear_outside(chunks, locks, index, shape), overlapping, None)


def _loses_elements(grid: ChunkGrid, index: Index, shape: Shape) -> bool:
    """Whether a unit holds elements of the array that are outside a smaller shape."""
    return any(
        at + length > new < old
        for at, length, new, old in zip(
            grid.start(index), grid.shape_of(index), shape, grid.shape, strict=True
        )
    )


def _clear_outside(chunks: StoredChunks, locks: ChunkLocks, index: Index, shape: Shape) -> None:
    """Set the elements of a unit that are outside a shape to the fill value."""
    grid, pipeline = chunks.metadata.grid, chunks.metadata.pipeline_at(index)
    inside = tuple(
        slice(0, min(length, size - at), 1)
        for length, size, at in zip(grid.shape_of(index), shape, grid.start(index), strict=True)
    )
    key = chunks.key(index)

    def clear(units: Store) -> None:
        data = units.get(key)
        if data is None:
            return
        unit = fill_chunk(pipeline.spec)
        try:
            unit[inside] = pipeline.decode_counted(data)[inside]
            encoded = pipeline.encode(unit)
        except ZarrdaskError as error:
            raise error.within(key) from error.__cause__
        units.set(key, encoded)

    with locks.hold(chunks.lock_name(index)):
        # Another machine may write elements that stay.
        change_if_unchanged(chunks.units, clear)


def _sizes(chunks: StoredChunks, units: Iterable[Index]) -> Iterator[tuple[Index, int]]:
    """Yield the units that are stored, and the size of each in bytes."""
    units, ahead = tee(units)
    sizes = value_sizes(chunks.units, map(chunks.key, ahead))
    for unit, size in zip(units, sizes, strict=True):
        if size is not None:  # it was not erased concurrently
            yield unit, size
