"""The stored chunks of the members of a concatenation, as chunks of the concatenation."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import TypeVar

from zarrdask.arrays.chunks.members.concatenation import Concatenation, Member
from zarrdask.arrays.chunks.members.stale_members import check_members
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.stored_keys import StoredUnits
from zarrdask.errors import UnsupportedError
from zarrdask.formats.byte_ranges import StoredObject
from zarrdask.formats.codecs.codec import ChunkSpec
from zarrdask.formats.codecs.translate import marks
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.formats.indexing.projection import project
from zarrdask.formats.indexing.selection import Region, pick_size
from zarrdask.formats.metadata.convert import has_equal_fill
from zarrdask.formats.metadata.model import ArrayMetadata

T = TypeVar("T")


def whole_chunk(array: Concatenation, index: Index) -> tuple[StoredChunks, str] | None:
    """Return the array and the key of the stored chunk that is a chunk of a concatenation.

    None if the chunk is not a whole chunk of one member, encoded in the same way.
    """
    region, metadata = array.metadata.grid.region(index), array.metadata
    cells = project(region, array.axes).indices
    member = array.member(cells[0]) if len(cells) == 1 else None
    if member is None or array.added or not is_encoded_alike(member.metadata, metadata):
        return None
    if len(member.axes) < len(member.region) or any(pick.step != 1 for pick in member.region):
        return None
    grid, shape = member.metadata.grid, metadata.grid.shape_of(index)
    own = []
    for number, (pick, cell) in enumerate(zip(region, cells[0], strict=True)):
        first = int(array.axes[number].boundaries[cell])
        start = member.region[number].start + pick.start - first
        axis = grid.axes[number]
        chunk = axis.number(start)
        end = axis.start(chunk + 1)
        stop = start + pick.stop - pick.start
        is_all = stop == min(end, axis.size)
        if axis.start(chunk) != start or end - start != shape[number] or not is_all:
            return None
        own.append(chunk)
    check_members(array, [member])
    chunks = member.chunks(array.options)
    return chunks, chunks.key(tuple(own))


def is_encoded_alike(one: ArrayMetadata, other: ArrayMetadata) -> bool:
    """Whether chunks of one shape have the same bytes in two arrays."""
    return _is_alike(_Pair(one, other))


class _Pair(tuple[ArrayMetadata, ArrayMetadata]):
    """Two arrays' metadata, compared by identity."""

    def __new__(cls, *pair: ArrayMetadata) -> "_Pair":
        return super().__new__(cls, pair)

    def __hash__(self) -> int:
        return hash(tuple(map(id, self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Pair) and all(a is b for a, b in zip(self, other, strict=True))


@lru_cache(maxsize=256)
def _is_alike(pair: _Pair) -> bool:
    one, other = pair
    if one.dtype.newbyteorder("=") != other.dtype.newbyteorder("=") or one.transformers:
        return False
    specs = [ChunkSpec(one.chunk_shape, each.dtype, each.fill) for each in pair]
    is_alike = marks(one.codecs, specs[0]) == marks(other.codecs, specs[1])
    return is_alike and has_equal_fill(one, other)


def stored_chunks(array: Concatenation) -> Iterator[Index]:
    """Yield the chunks of a concatenation that members have stored, at least in part."""
    check_members(array, array.present())
    axes, indices = array.metadata.grid.axes, set[Index]()
    for first, member in _located_members(array):
        if has_equal_fill(member.metadata, array.metadata):
            units = ((unit, None) for unit in StoredUnits(member.chunks(array.options)).indices())
            for region, _ in _regions(array, member, first, units):
                indices.update(project(region, axes).indices)
        else:
            # Chunks that are not stored have other elements than missing ones of the array.
            lengths = iter(member.shape)
            counts = [1 if axis in array.added else next(lengths) for axis in range(len(first))]
            whole = tuple(slice(at, at + n, 1) for at, n in zip(first, counts, strict=True))
            indices.update(project(whole, axes).indices)
    yield from sorted(indices)


def chunk_objects(array: Concatenation) -> Iterator[tuple[Index, StoredObject]]:
    """Yield the stored chunks of a concatenation, and the object that holds each.

    Raises
    ------
    UnsupportedError
        If a chunk is not a whole chunk of a member, encoded in the same way.
    """
    check_members(array, array.present())
    for first, member in _located_members(array):
        chunks = member.chunks(array.options)
        for region, stored in _regions(array, member, first, StoredUnits(chunks).objects()):
            index = project(region, array.metadata.grid.axes).indices[0]
            whole = whole_chunk(array, index)
            if whole is None or whole[1] != stored.key:
                raise UnsupportedError(
                    "this chunk of a member is not a chunk of the concatenation, as its shape or "
                    "its codecs differ, so it can't be referenced; copy the values themselves",
                    key=stored.url,
                )
            yield index, stored


def _located_members(array: Concatenation) -> Iterator[tuple[list[int], Member]]:
    """Yield the members that are not missing, each with the position of its first element."""
    for index, member in zip(product(*map(range, array.counts)), array.members, strict=True):
        if member is not None:
            first = [int(axis.boundaries[at]) for axis, at in zip(array.axes, index, strict=True)]
            yield first, member


def _regions(
    array: Concatenation, member: Member, first: Sequence[int], units: Iterable[tuple[Index, T]]
) -> Iterator[tuple[Region, T]]:
    """Yield the region of a concatenation that each stored object of a member has elements of."""
    grid = member.metadata.grid
    own = [axis for axis in range(len(array.axes)) if axis not in array.added]
    for unit, item in units:
        spans = list(map(_selected, grid.region(unit), member.region))
        if all(low < high for low, high in spans):
            region = [slice(at, at + 1, 1) for at in first]
            for axis, number in zip(own, member.axes, strict=True):
                low, high = spans[number]
                region[axis] = slice(first[axis] + low, first[axis] + high, 1)
            yield tuple(region), item


def _selected(span: slice, pick: slice) -> tuple[int, int]:
    """Return the range of the elements of a slice that are in a chunk."""
    low, high = (-(-(end - pick.start) // pick.step) for end in (span.start, span.stop))
    return max(low, 0), min(high, pick_size(pick))
