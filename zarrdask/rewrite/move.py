"""Encoded bytes that go from one array to another as they are: whole units, or inner chunks."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, product
from math import prod
from typing import Literal, NamedTuple

import numpy as np

from zarrdask.chunks.cast import as_stored
from zarrdask.chunks.read import read_region
from zarrdask.chunks.stored import StoredChunks, StoredValue
from zarrdask.chunks.write import write_region
from zarrdask.codecs.array_to_bytes.sharding import Shard, ShardingCodec, shard_of
from zarrdask.codecs.base import Buffer, ChunkSpec, Codec
from zarrdask.codecs.byte_source import HeldValue, Value, exact
from zarrdask.codecs.translate import marks
from zarrdask.errors import ZarrdaskError
from zarrdask.grids.base import ChunkGrid, Index
from zarrdask.grids.regular import RegularGrid
from zarrdask.indexing.selection import Region
from zarrdask.metadata.convert import convert_fill
from zarrdask.metadata.model import ArrayMetadata
from zarrdask.runtime.threads import on_each
from zarrdask.storage.base import Scratch
from zarrdask.storage.copy import copy_values, local_value
from zarrdask.storage.system import pwrite

#: "units": whole values as they are; "inner": chunks of shards, to or from shards or plain chunks.
How = Literal["units", "inner", None]

#: Decoded bytes that are recoded together, if units are not larger.
_AT_ONCE = 2**26
#: Values that one of several threads copies, and how many do.
_TOGETHER, _THREADS = 4, 8


class Moved(NamedTuple):
    """What was done: how many units were stored, and bytes read and written."""

    units: int = 0
    read: int = 0
    written: int = 0


# --------------------------------------------------------------------------------------------
# Whether


def how_to_move(source: StoredChunks, target: StoredChunks) -> How:
    """Return how encoded bytes of an array can become those of another one, or None.

    They can where both have the same elements, fill value, grid and chain of codecs, however
    these are spelled.

    Parameters
    ----------
    source, target : Chunks
        Arrays of one shape.
    """
    return way_between(source.metadata, target.metadata)


def way_between(before: ArrayMetadata, after: ArrayMetadata) -> How:
    """Return how encoded bytes can be moved between arrays of such metadata; see `how_to_move`."""
    if before.shape != after.shape or not _same_fill(before, after):
        return None
    if _same_grid(before.grid, after.grid) and _marks(before) == _marks(after):
        return "units"
    if before.shard is None and after.shard is None:
        return None
    grids = before.read_grid, after.read_grid
    return "inner" if _same_grid(*grids) and _inner(before) == _inner(after) else None


def _same_fill(before: ArrayMetadata, after: ArrayMetadata) -> bool:
    if before.dtype.hasobject or after.dtype.hasobject:
        if not (before.dtype.hasobject and after.dtype.hasobject):
            return False
        fill, other = (convert_fill(m.fill, m, m.data_type) for m in (before, after))
        return type(fill) is type(other) and bool(np.all(fill == other))
    one, two = (np.asarray(m.fill, m.dtype.newbyteorder("=")) for m in (before, after))
    return one.dtype == two.dtype and one.tobytes() == two.tobytes()


def fills_alike(before: ArrayMetadata, after: ArrayMetadata) -> bool:
    """Whether what is absent in an array may be absent in a recoded one: it reads as the same."""
    try:
        fill = convert_fill(before.fill, before, after.data_type)
    except ZarrdaskError:
        return False
    if after.dtype.hasobject:
        return type(fill) is type(after.fill) and bool(np.all(fill == after.fill))
    one, other = (np.asarray(each, after.dtype) for each in (fill, after.fill))
    return one.tobytes() == other.tobytes()


def _same_grid(one: ChunkGrid, other: ChunkGrid) -> bool:
    return one.counts == other.counts and all(
        np.array_equal(a, b) for a, b in zip(one.axes, other.axes, strict=True)
    )


def _marks(metadata: ArrayMetadata) -> object:
    spec = ChunkSpec(metadata.chunk_shape, metadata.dtype, metadata.fill)
    return marks(metadata.codecs, spec)


def _inner(metadata: ArrayMetadata) -> object:
    """Return what tells how the smallest parts that can be read by themselves are encoded."""
    spec = ChunkSpec(metadata.read_grid.chunk_shape, metadata.dtype, metadata.fill)
    codecs: Sequence[Codec] = metadata.codecs
    if metadata.shard is not None and isinstance(codecs[-1], ShardingCodec):
        codecs = (*codecs[:-1], *codecs[-1].codecs)
    return marks(codecs, spec)


# --------------------------------------------------------------------------------------------
# Whole units


def move_units(source: StoredChunks, target: StoredChunks, indices: Sequence[Index]) -> Moved:
    """Copy units as they are stored; those that are not there stay away.

    Raises
    ------
    StoreError
        If a store fails.
    """
    keys = [(source.key(index), target.key(index)) for index in indices]
    if source.units.seekable and target.units.seekable:
        sizes = copy_values(source.units, target.units, keys)
    else:
        # Far away: several requests at once.
        parts = [keys[at : at + _TOGETHER] for at in range(0, len(keys), _TOGETHER)]
        copy = partial(copy_values, source.units, target.units)
        sizes = [size for found in on_each(copy, parts, _THREADS) for size in found]
    return Moved(len(sizes), sum(sizes), sum(sizes))


# --------------------------------------------------------------------------------------------
# Inner chunks


class Inner:
    """Where the inner chunks of an array's shards are.

    Parameters
    ----------
    metadata : ArrayMetadata
        Of an array with shards, or of one without: its units are the chunks then.
    """

    def __init__(self, metadata: ArrayMetadata) -> None:
        self.metadata = metadata
        self.counts = metadata.read_grid.counts
        self._lengths = metadata.read_grid.chunk_shape

    def range_of(self, unit: Index) -> list[range]:
        """Return which chunks, along each axis, a unit holds that lie in the array."""
        grid = self.metadata.grid
        places = zip(grid.start(unit), grid.shape_of(unit), self._lengths, self.counts, strict=True)
        return [range(at // n, min((at + size) // n, count)) for at, size, n, count in places]

    def unit_of(self, chunk: Index) -> Index:
        """Return the unit that holds a chunk."""
        starts = [i * n for i, n in zip(chunk, self._lengths, strict=True)]
        return tuple(
            at // edges
            if isinstance(edges, int)
            else int(np.searchsorted(edges, at, side="right")) - 1
            for edges, at in zip(self.metadata.grid.axes, starts, strict=True)
        )

    def place(self, unit: Index, chunk: Index) -> Index:
        """Return where a chunk stands in the index of its shard."""
        grid, axes = self.metadata.grid, self.metadata.pipeline.axes
        places = zip(chunk, grid.start(unit), self._lengths, strict=True)
        found = tuple(i - at // n for i, at, n in places)
        return found if axes is None else tuple(found[axis] for axis in axes)


def move_inner(source: StoredChunks, target: StoredChunks, indices: Sequence[Index]) -> Moved:
    """Move the inner chunks of units, without decoding them.

    Chunks that are not there stay away, as do shards without any.

    Parameters
    ----------
    indices : sequence of Index
        Of units of the target if that has shards, else of the source.

    Raises
    ------
    CodecError
        If a shard is damaged. The error names its key.
    StoreError
        If a store fails.
    """
    work = _unpack if target.metadata.shard is None else _pack
    return total(work(source, target, index) for index in indices)


def total(parts: Iterable[Moved]) -> Moved:
    """Return what was done altogether."""
    found = list(parts)
    return Moved(*map(sum, zip(*found, strict=True))) if found else Moved()


def _unpack(source: StoredChunks, target: StoredChunks, unit: Index) -> Moved:
    """Store the chunks of a shard one by one."""
    wanted = list(product(*Inner(source.metadata).range_of(unit)))
    found = ((target.key(index), data) for index, data in _encoded(source, unit, wanted))
    if target.units.seekable:
        sizes = [_put(target, item) for item in found]
    else:
        held = [(key, bytes(data)) for key, data in found]
        sizes = on_each(partial(_put, target), held, _THREADS)
    return Moved(len(sizes), sum(sizes), sum(sizes))


def _put(target: StoredChunks, item: tuple[str, Buffer]) -> int:
    key, data = item
    target.units.set(key, data)
    return len(data)


def _pack(source: StoredChunks, target: StoredChunks, unit: Index) -> Moved:
    """Put chunks together to a shard."""
    shard, inner = shard_of(target.metadata.pipeline_at(unit)), Inner(target.metadata)
    found = (
        (inner.place(unit, index), data)
        for index, data in _gathered(source, list(product(*inner.range_of(unit))))
    )
    first, key = next(found, None), target.key(unit)
    if first is None or shard is None:
        return Moved()
    file = local_value(target.units, key)
    if file is not None:
        sizes = list[int]()
        file[0].replace(file[1], partial(_write, shard, chain([first], found), sizes))
        return Moved(1, sum(sizes), sum(sizes) + shard.index_size)
    held: dict[Index, Buffer] = {}
    for place, data in chain([first], found):
        held[place] = bytes(data)
    value = shard.assemble(held)
    target.units.set(key, value)
    return Moved(1, sum(map(len, held.values())), len(value))


def _write(shard: Shard, chunks: Iterable[tuple[Index, Buffer]], sizes: list[int], fd: int) -> None:
    """Write a shard to a file chunk by chunk, so that none but one is in memory."""
    lengths = dict[Index, int]()
    leading = shard.codec.index_location == "start"
    at = shard.index_size if leading else 0
    for place, data in chunks:
        lengths[place] = len(data)
        at += _write_at(fd, data, at)
    sizes += lengths.values()
    _write_at(fd, bytes(shard.encode_index(lengths)), 0 if leading else at)


def _write_at(fd: int, data: Buffer, at: int) -> int:
    view, done = memoryview(data), 0
    while done < len(view):
        done += pwrite(fd, view[done:], at + done)
    return done


def _gathered(source: StoredChunks, wanted: list[Index]) -> Iterator[tuple[Index, Buffer]]:
    """Yield the encoded chunks of an array that are there, out of shards or not."""
    if source.metadata.shard is None:
        keys = [source.key(index) for index in wanted]
        for index, data in zip(wanted, source.units.get_many(keys, Scratch()), strict=True):
            if data is not None:
                yield index, data
        return
    inner, units = Inner(source.metadata), dict[Index, list[Index]]()
    for index in wanted:
        units.setdefault(inner.unit_of(index), []).append(index)
    for unit, within in units.items():
        yield from _encoded(source, unit, within)


def _encoded(
    source: StoredChunks, unit: Index, wanted: list[Index]
) -> Iterator[tuple[Index, Buffer]]:
    """Yield the encoded chunks of a shard that are there, each valid until the next."""
    shard, inner = shard_of(source.metadata.pipeline_at(unit)), Inner(source.metadata)
    key = source.key(unit)
    try:
        value = _value(source, key, whole=len(wanted) == prod(map(len, inner.range_of(unit))))
        table = None if shard is None or value is None else shard.read_index(value)
        if table is None or value is None:
            return
        _, stored, ranges = table.locate([inner.place(unit, index) for index in wanted])
        names = [wanted[position] for position in stored]
        yield from zip(names, exact(value.parts(ranges), ranges, names), strict=True)
    except ZarrdaskError as error:
        raise error.within(key) from error.__cause__


def _value(source: StoredChunks, key: str, *, whole: bool) -> Value | None:
    """Return a shard: held where all of it is wanted and a request costs time."""
    if source.units.seekable or not whole:
        return StoredValue(source.units, key, Scratch())
    data = source.units.get(key)
    return None if data is None else HeldValue(data)


# --------------------------------------------------------------------------------------------
# Decoded and encoded again


def recode(
    source: StoredChunks, target: StoredChunks, blocks: Sequence[Region], *, empty: bool
) -> Moved:
    """Read regions of an array, and write them to a new one.

    Parameters
    ----------
    blocks : sequence of tuple of slice
        Whole units of the target, as far as the array goes.
    empty : bool
        Whether units that hold only the fill value are stored.

    Raises
    ------
    CodecError
        If a unit is damaged, or values can't be encoded.
    StoreError
        If a store fails.
    """
    source = _readable(source, target.metadata)
    size = source.metadata.dtype.itemsize
    done = []
    for block in blocks:
        values = read_region(source, block, threads=1)
        read = values.size * size
        values = as_stored(values, target)
        units = write_region(target, block, values, empty=empty, beyond="fill", threads=1)
        done.append(Moved(units, read, values.nbytes))
    return total(done)


def _readable(source: StoredChunks, target: ArrayMetadata) -> StoredChunks:
    """Return an array of objects whose absent chunks read as objects that the target can store."""
    metadata = source.metadata
    if not (metadata.dtype.hasobject and target.dtype.hasobject):
        return source
    fill = convert_fill(metadata.fill, metadata, target.data_type)
    return StoredChunks(source.store, source.prefix, replace(metadata, fill_value=fill))


def blocks_of(source: ArrayMetadata, target: ArrayMetadata) -> ChunkGrid:
    """Return the grid of what is recoded at once: whole units of the target.

    They are as long as the source's chunks where that takes no more memory than a few units, so
    that these are not read several times.
    """
    if not (source.read_grid.is_regular and target.grid.is_regular):
        return target.grid
    lengths = [max(n, 1) for n in target.chunk_shape]
    chunk = source.read_grid.chunk_shape
    itemsize = max(source.dtype.itemsize, target.dtype.itemsize)
    limit = max(prod(lengths), prod(source.chunk_shape), _AT_ONCE // itemsize)
    for axis, (n, size) in enumerate(zip(chunk, target.shape, strict=True)):
        unit = lengths[axis]
        longer = max(-(-min(n, size) // unit), 1) * unit
        if prod(lengths) // unit * longer <= limit:
            lengths[axis] = longer
    return RegularGrid(target.shape, tuple(lengths))
