"""Copy encoded bytes unchanged from one array to another: whole units, or inner chunks of shards.

A unit is what one key of a store holds: a chunk, or a shard.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, product
from math import prod
from typing import Literal, NamedTuple

from zarrdask.arrays.chunks.cast import Casting
from zarrdask.arrays.chunks.presence import check_still_stored
from zarrdask.arrays.chunks.read import read_region
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.write import write_region
from zarrdask.errors import ZarrdaskError
from zarrdask.formats.byte_ranges import Buffer, Value
from zarrdask.formats.codecs.array_to_bytes.sharding import Shard, ShardingCodec, shard_of
from zarrdask.formats.codecs.byte_source import HeldValue, exact
from zarrdask.formats.codecs.codec import ChunkSpec, Codec
from zarrdask.formats.codecs.shard_order import ordered
from zarrdask.formats.codecs.translate import marks
from zarrdask.formats.grids.chunk_grid import ChunkGrid, Index
from zarrdask.formats.grids.regular import RegularGrid
from zarrdask.formats.indexing.selection import Region, shifted
from zarrdask.formats.metadata.convert import convert_fill, has_equal_fill
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.file_calls import pwrite
from zarrdask.storage.transfer import copy_values, local_value, store_values
from zarrdask.storage.value_parts import StoredValue

#: How encoded bytes get from one array to another: "units" are whole stored values; "inner" are the
#: chunks of shards, which become chunks of other shards or plain chunks; None means that values
#: have to be decoded.
Transfer = Literal["units", "inner", None]

#: The decoded bytes that are recoded at a time, unless a single unit is larger.
_RECODE_BYTES = 2**26
#: The bytes of units, decoded, that are requested together from a remote store.
_READ_BYTES = 2**28


class TransferResult(NamedTuple):
    """The number of units that were stored, and the bytes that were read and written."""

    units: int = 0
    read: int = 0
    written: int = 0

    @classmethod
    def of(cls, sizes: Sequence[int]) -> "TransferResult":
        """Return the result for units that were copied as they are."""
        return cls(len(sizes), sum(sizes), sum(sizes))


# --------------------------------------------------------------------------------------------
# Which bytes can be copied


def encoded_transfer(before: ArrayMetadata, after: ArrayMetadata) -> Transfer:
    """Return how encoded bytes of one array can be copied to another, or None if they can't.

    They can if both arrays have the same elements, fill value, grid and codecs, however their
    formats spell these.
    """
    one, other = (metadata.dtype.newbyteorder("=") for metadata in (before, after))
    if before.shape != after.shape or one != other or not has_equal_fill(before, after):
        return None
    if before.grid.axes == after.grid.axes and _codec_marks(before) == _codec_marks(after):
        return "units"
    if before.shard is None and after.shard is None:
        return None
    if before.read_grid.axes != after.read_grid.axes:
        return None
    return "inner" if _inner_marks(before) == _inner_marks(after) else None


def _codec_marks(metadata: ArrayMetadata) -> object:
    """Return a value that is equal for arrays whose units are encoded in the same way."""
    spec = ChunkSpec(metadata.chunk_shape, metadata.dtype, metadata.fill)
    return marks(metadata.codecs, spec)


def _inner_marks(metadata: ArrayMetadata) -> object:
    """Return a value that is equal for arrays whose inner chunks are encoded in the same way."""
    spec = ChunkSpec(metadata.read_grid.chunk_shape, metadata.dtype, metadata.fill)
    codecs: Sequence[Codec] = metadata.codecs
    if metadata.shard is not None and isinstance(codecs[-1], ShardingCodec):
        codecs = (*codecs[:-1], *codecs[-1].codecs)
    return marks(codecs, spec)


# --------------------------------------------------------------------------------------------
# Whole units


def move_units(
    source: StoredChunks, target: StoredChunks, indices: Sequence[Index]
) -> TransferResult:
    """Copy units as they are stored. Units that are missing stay missing."""
    keys = [(source.key(index), target.key(index)) for index in indices]
    step, sizes = max(_READ_BYTES // max(source.metadata.pipeline.spec.nbytes, 1), 1), list[int]()
    for at in range(0, len(keys), step):
        sizes += copy_values(source.units, target.units, keys[at : at + step])
    if len(sizes) < len(keys):
        check_still_stored(source)
    return TransferResult.of(sizes)


# --------------------------------------------------------------------------------------------
# Inner chunks


class InnerGrid:
    """The positions of the inner chunks of an array in its shards."""

    def __init__(self, metadata: ArrayMetadata) -> None:
        self.metadata = metadata
        self.counts = metadata.read_grid.counts
        self._lengths = metadata.read_grid.chunk_shape

    def range_of(self, unit: Index) -> list[range]:
        """Return the chunks of a unit along each axis, without those outside the array."""
        grid = self.metadata.grid
        axes = zip(grid.start(unit), grid.shape_of(unit), self._lengths, self.counts, strict=True)
        return [
            range(start // n, min((start + size) // n, count)) for start, size, n, count in axes
        ]

    def unit_of(self, chunk: Index) -> Index:
        """Return the unit that holds a chunk."""
        axes = zip(chunk, self._lengths, self.metadata.grid.axes, strict=True)
        return tuple(axis.number(i * n) for i, n, axis in axes)

    def position(self, unit: Index, chunk: Index) -> Index:
        """Return the position of a chunk in the index of its shard."""
        grid, axes = self.metadata.grid, self.metadata.pipeline.axes
        starts = zip(chunk, grid.start(unit), self._lengths, strict=True)
        position = tuple(i - start // n for i, start, n in starts)
        return position if axes is None else tuple(position[axis] for axis in axes)


def move_inner(
    source: StoredChunks, target: StoredChunks, indices: Sequence[Index]
) -> TransferResult:
    """Copy the inner chunks of units, without decoding them.

    Missing chunks stay missing, as do shards without any chunk. The indices count units of
    the target if it has shards, else of the source.
    """
    copy = _unpack_shard if target.metadata.shard is None else _pack_shard
    return total_result(copy(source, target, index) for index in indices)


def total_result(results: Iterable[TransferResult]) -> TransferResult:
    """Return the sum of several results."""
    rows = list(results)
    return TransferResult(*map(sum, zip(*rows, strict=True))) if rows else TransferResult()


def _unpack_shard(source: StoredChunks, target: StoredChunks, unit: Index) -> TransferResult:
    """Store the chunks of a shard as chunks of their own."""
    indices = list(product(*InnerGrid(source.metadata).range_of(unit)))
    chunks = ((target.key(index), data) for index, data in _shard_chunks(source, unit, indices))
    return TransferResult.of(store_values(target.units, chunks))


def _pack_shard(source: StoredChunks, target: StoredChunks, unit: Index) -> TransferResult:
    """Assemble a shard of encoded chunks."""
    shard, inner = shard_of(target.metadata.pipeline_at(unit)), InnerGrid(target.metadata)
    if shard is None:
        return TransferResult()
    by_position = {inner.position(unit, index): index for index in product(*inner.range_of(unit))}
    indices = [
        by_position[position] for position in ordered(by_position, shard.codec.written_order)
    ]
    chunks = (
        (inner.position(unit, index), data) for index, data in _encoded_chunks(source, indices)
    )
    first, key = next(chunks, None), target.key(unit)
    if first is None:
        check_still_stored(source)
        return TransferResult()
    file = local_value(target.units, key)
    if file is not None:
        sizes = list[int]()
        file[0].replace(file[1], partial(_write_shard, shard, chain([first], chunks), sizes))
        return TransferResult(1, sum(sizes), sum(sizes) + shard.index_size)
    held: dict[Index, Buffer] = {}
    for position, data in chain([first], chunks):
        held[position] = bytes(data)
    value = shard.assemble(held)
    target.units.set(key, value)
    return TransferResult(1, sum(map(len, held.values())), len(value))


def _write_shard(
    shard: Shard, chunks: Iterable[tuple[Index, Buffer]], sizes: list[int], fd: int
) -> None:
    """Write a shard to a file chunk by chunk, so that only one chunk is in memory.

    The order in the file is that in which the chunks come.
    """
    lengths = dict[Index, int]()
    index_first = shard.codec.index_location == "start"
    offset = shard.index_size if index_first else 0
    for position, data in chunks:
        lengths[position] = len(data)
        offset += _write_at(fd, data, offset)
    sizes += lengths.values()
    _write_at(fd, bytes(shard.encode_index(lengths)), 0 if index_first else offset)


def _write_at(fd: int, data: Buffer, offset: int) -> int:
    view, done = memoryview(data), 0
    while done < len(view):
        done += pwrite(fd, view[done:], offset + done)
    return done


def _encoded_chunks(source: StoredChunks, indices: list[Index]) -> Iterator[tuple[Index, Buffer]]:
    """Yield those encoded chunks of an array that are stored, inside shards or not.

    Chunks of shards come shard by shard, in the order of their bytes, as each shard is read once.
    """
    if source.metadata.shard is None:
        keys = [source.key(index) for index in indices]
        for index, data in zip(indices, source.units.get_many(keys, Scratch()), strict=True):
            if data is not None:
                yield index, data
        return
    inner, units = InnerGrid(source.metadata), dict[Index, list[Index]]()
    for index in indices:
        units.setdefault(inner.unit_of(index), []).append(index)
    for unit, members in units.items():
        yield from _shard_chunks(source, unit, members)


def _shard_chunks(
    source: StoredChunks, unit: Index, indices: list[Index]
) -> Iterator[tuple[Index, Buffer]]:
    """Yield those encoded chunks of a shard that are stored, each valid until the next."""
    shard, inner = shard_of(source.metadata.pipeline_at(unit)), InnerGrid(source.metadata)
    key = source.key(unit)
    try:
        value: Value | None = StoredValue(source.units, key, Scratch())
        is_whole = len(indices) == prod(map(len, inner.range_of(unit)))
        if is_whole and source.costs.overlaps:
            data = source.units.get(key)  # all of it is needed from a remote store
            value = None if data is None else HeldValue(data)
        table = None if shard is None or value is None else shard.read_index(value)
        if table is None or value is None:
            return
        _, stored, ranges = table.locate([inner.position(unit, index) for index in indices])
        names = [indices[position] for position in stored]
        yield from zip(names, exact(value.parts(ranges), ranges, names), strict=True)
    except ZarrdaskError as error:
        raise error.within(key) from error.__cause__


# --------------------------------------------------------------------------------------------
# Values that are decoded and encoded again


def recode(
    source: StoredChunks,
    target: StoredChunks,
    blocks: Sequence[Region],
    *,
    empty: bool,
    casting: Casting,
    start: Index | None = None,
) -> TransferResult:
    """Read regions of whole units of a new array from another array, and write them.

    `empty` is as in `write_region`; `casting` is the rule for casts. `start` is the element of the
    source that becomes the first one of the new array.
    """
    source = with_storable_fill(source, target.metadata)
    itemsize = source.metadata.dtype.itemsize
    units = read = written = 0
    for block in blocks:
        region = block if start is None else shifted(block, start)
        values = read_region(source, region, threads=1)
        read += values.size * itemsize
        values = casting.cast(values, target.metadata.dtype, target)
        units += write_region(target, block, values, empty=empty, beyond="fill", threads=1)
        written += values.nbytes
    return TransferResult(units, read, written)


def with_storable_fill(source: StoredChunks, target: ArrayMetadata) -> StoredChunks:
    """Return an array whose missing chunks read as values that the target can store.

    It is the source, except for objects: their fill value may be 0 where texts are stored.
    """
    metadata = source.metadata
    if not (metadata.dtype.hasobject and target.dtype.hasobject):
        return source
    fill = convert_fill(metadata.fill, metadata, target.data_type)
    return replace(source, metadata=replace(metadata, fill_value=fill))


def recode_grid(source: ArrayMetadata, target: ArrayMetadata) -> ChunkGrid:
    """Return the grid of the blocks that are recoded at a time: whole units of the target.

    Blocks are as long as the chunks of the source where that takes no more memory than a few
    units, so that these chunks are not read several times.
    """
    if not (source.read_grid.is_regular and target.grid.is_regular):
        return target.grid
    lengths = [max(n, 1) for n in target.chunk_shape]
    chunk = source.read_grid.chunk_shape
    itemsize = max(source.dtype.itemsize, target.dtype.itemsize)
    limit = max(prod(lengths), prod(source.chunk_shape), _RECODE_BYTES // itemsize)
    for axis, (n, size) in enumerate(zip(chunk, target.shape, strict=True)):
        unit = lengths[axis]
        longer = max(-(-min(n, size) // unit), 1) * unit
        if prod(lengths) // unit * longer <= limit:
            lengths[axis] = longer
    return RegularGrid(target.shape, tuple(lengths))
