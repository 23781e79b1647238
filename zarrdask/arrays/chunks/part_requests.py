"""The requests by which parts of large chunks are read, for plans: as they are sent."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from zarrdask import config
from zarrdask.arrays.chunks.fetch_chunks import chunk_request
from zarrdask.arrays.chunks.remote_parts import (
    HEAD_BYTES,
    ChunkRequest,
    head_location,
    remote_layout,
    remote_ranges,
)
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.formats.byte_ranges import Range, coalesce
from zarrdask.formats.codecs.byte_source import HeldValue, StoredParts
from zarrdask.formats.codecs.bytes_to_bytes.blosc_frame import HEAD_BYTES as FILE_HEAD_BYTES
from zarrdask.formats.codecs.chunk_parts import find_part, stored_parts
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.runtime.scratch import Scratch
from zarrdask.runtime.shard_indexes import INDEXES
from zarrdask.storage.local.open_file import FILE_GAP, FILE_LIMIT, OpenFile


class FirstBytes(NamedTuple):
    """What the first bytes of a chunk say.

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


def first_bytes(chunks: StoredChunks, index: Index) -> FirstBytes:
    """Read what says where the parts of a chunk are; of an uncompressed one, it is known."""
    key, pipeline = chunks.key(index), chunks.metadata.pipeline_at(index)
    if not pipeline.compressors:
        return FirstBytes(stored_parts(pipeline, HeldValue(b"")))
    if chunks.is_remote:
        return _remote_first_bytes(chunks, ChunkRequest(key, pipeline, None))
    with chunks.units.reading(key, Scratch()) as value:
        if not isinstance(value, OpenFile) or value.fd < 0:
            return FirstBytes(None)
        stored = stored_parts(pipeline, value)
        is_long = stored is not None and stored.head > FILE_HEAD_BYTES
        table = [stored.head] if stored is not None and is_long else []
        return FirstBytes(stored, [min(FILE_HEAD_BYTES, value.size), *table])


def _remote_first_bytes(chunks: StoredChunks, request: ChunkRequest) -> FirstBytes:
    store, pipeline = chunks.units, request.pipeline
    cached = INDEXES.get(head_location(store, request))
    if cached is not None and config.get("index-cache-size") > 0:
        return FirstBytes(stored_parts(pipeline, HeldValue(cached.data)))
    # They are not cached: the plan is for other processes, too.
    first = store.get_part(request.key, 0, HEAD_BYTES)
    if first is None or len(first.value) == first.size:
        return FirstBytes(None, [0 if first is None else first.size], is_whole=True)
    stored = stored_parts(pipeline, HeldValue(first.value)) if first.tag is not None else None
    is_known = stored is not None and stored.stored == first.size
    return FirstBytes(stored if is_known else None, [len(first.value)])


def part_sizes(
    chunks: StoredChunks, index: Index, inside: Any, first: Callable[[Index], FirstBytes]
) -> list[int | None]:
    """Return the size of each request for a chunk: None is all of the chunk.

    `inside` is the part that is needed, and `first` returns what the first bytes of a chunk say.
    """
    request = chunk_request(chunks, chunks.key(index), index, inside)
    if request.inside is None:
        return [None]
    is_remote = chunks.is_remote
    layout = remote_layout(request) if is_remote else find_part(request.pipeline, request.inside)
    if layout is None:
        return [None]
    stored, sizes, is_whole = first(index)
    if is_whole:
        return [*sizes]
    located: Sequence[Range] | None = None
    if stored is not None and is_remote:
        part = remote_ranges(chunks.units, layout, stored, sum(sizes))
        located = None if part is None else part.ranges
    elif stored is not None:
        located = stored.locate(layout.ranges)
        if located is not None:
            located = [joined for joined, _ in coalesce(located, FILE_GAP, FILE_LIMIT)]
    rest: list[int | None] = [None] if located is None else [length for _, length in located]
    return [*sizes, *rest]
