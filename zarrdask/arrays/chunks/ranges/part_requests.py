"""Count, for plans, the requests that a read of parts of large chunks sends."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from zarrdask import config
from zarrdask.arrays.chunks.fetch_chunks import chunk_request, reads_parts
from zarrdask.arrays.chunks.ranges.remote_parts import (
    HEAD_BYTES,
    ChunkRequest,
    head_location,
    remote_layout,
    remote_ranges,
)
from zarrdask.arrays.chunks.ranges.shard_indexes import INDEXES, caches_indexes
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.formats.byte_ranges import Buffer, Range, Value
from zarrdask.formats.codecs.byte_source import HeldValue, StoredParts
from zarrdask.formats.codecs.chunk_parts import PartReader
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.local.open_file import OpenFile


class _FirstBytes(NamedTuple):
    """The layout of a chunk, from its first bytes.

    Attributes
    ----------
    stored : StoredParts or None
        Where its parts are; None if it is read as a whole, or missing.
    sizes : sequence of int
        The sizes of the requests for the first bytes.
    is_whole : bool
        Whether these are all of the chunk.
    """

    stored: StoredParts | None
    sizes: Sequence[int] = ()
    is_whole: bool = False


@dataclass(frozen=True)
class _Recorded:
    """An open value whose first bytes are read, and the size of each read."""

    value: Value
    sizes: list[int] = field(default_factory=list)

    def part(self, start: int, length: int) -> Buffer | None:
        part = self.value.part(start, length)
        if part is not None:
            self.sizes.append(len(part))
        return part


@dataclass(frozen=True, eq=False)
class PartRequests:
    """The requests for parts of the chunks of an array, one read after another.

    Attributes
    ----------
    chunks : StoredChunks
        The array.
    limit : int
        The most shards or chunks whose indexes or first bytes are read where each costs a round
        trip: these are in flight together.
    """

    chunks: StoredChunks
    limit: ClassVar[int] = 64
    _first: dict[Index, _FirstBytes] = field(default_factory=dict)

    @property
    def is_used(self) -> bool:
        """Whether parts of chunks may be read without the rest."""
        return self.chunks.metadata.shard is None and reads_parts(self.chunks)

    @property
    def keeps_indexes(self) -> bool:
        """Whether what is read first of a unit is cached, so that it is read once."""
        return self.chunks.costs.overlaps and caches_indexes(self.chunks.units)

    def are_counted(self, units: int) -> bool:
        """Whether a plan reads the indexes or the first bytes of so many units."""
        metadata = self.chunks.metadata
        has_indexes = metadata.shard is not None or bool(metadata.pipeline.compressors)
        return self.chunks.costs.checks or not has_indexes or units <= self.limit

    def sizes(self, index: Index, inside: Any) -> list[int | None]:
        """Return the size of each request for a part of a chunk: None is all of the chunk."""
        request = chunk_request(self.chunks, self.chunks.key(index), index, inside)
        if request.inside is None:
            return [None]
        are_requested = self.chunks.units.capabilities.requests_parts
        find = PartReader(request.pipeline).find
        layout = remote_layout(request) if are_requested else find(request.inside)
        if layout is None:
            return [None]
        stored, sizes, is_whole = self._first_bytes(index)
        if is_whole:
            return [*sizes]
        located: Sequence[Range] | None = None
        if stored is not None and are_requested:
            part = remote_ranges(self.chunks.units, layout, stored, sum(sizes))
            located = None if part is None else part.ranges
        elif stored is not None:
            located = stored.locate(layout.ranges)
            if located is not None:
                located = [joined for joined, _ in OpenFile.joined(located)]
        rest: list[int | None] = [None] if located is None else [length for _, length in located]
        return [*sizes, *rest]

    def _first_bytes(self, index: Index) -> _FirstBytes:
        """Return the layout of a chunk from its first bytes, which are requested once."""
        first = self._first.get(index)
        if first is not None:
            is_cached = self.keeps_indexes and first.stored is not None
            return first._replace(sizes=()) if is_cached else first
        if not self.are_counted(len(self._first) + 1):
            return _FirstBytes(None)  # as if all of it was read
        first = self._first[index] = self._read_first(index)
        return first

    def _read_first(self, index: Index) -> _FirstBytes:
        """Read the locations of the parts of a chunk; they are known if it is uncompressed."""
        chunks, pipeline = self.chunks, self.chunks.metadata.pipeline_at(index)
        if not pipeline.compressors:
            return _FirstBytes(PartReader(pipeline).stored(HeldValue(b"")))
        if chunks.units.capabilities.requests_parts:
            return _requested_first(chunks, ChunkRequest(chunks.key(index), pipeline, None))
        with chunks.units.reading(chunks.key(index), Scratch()) as value:
            recorded = _Recorded(value)
            return _FirstBytes(PartReader(pipeline).stored(recorded), recorded.sizes)  # type: ignore[arg-type]


def _requested_first(chunks: StoredChunks, request: ChunkRequest) -> _FirstBytes:
    store, pipeline = chunks.units, request.pipeline
    cached = INDEXES.get(head_location(store, request))
    if cached is not None and config.get("index-cache-size") > 0:
        return _FirstBytes(PartReader(pipeline).stored(HeldValue(cached.data)))
    # They are not cached: the plan is for other processes, too.
    first = store.get_part(request.key, 0, HEAD_BYTES)
    if first is None or len(first.value) == first.size:
        return _FirstBytes(None, [0 if first is None else first.size], is_whole=True)
    stored = PartReader(pipeline).stored(HeldValue(first.value)) if first.tag is not None else None
    is_known = stored is not None and stored.stored == first.size
    return _FirstBytes(stored if is_known else None, [len(first.value)])
