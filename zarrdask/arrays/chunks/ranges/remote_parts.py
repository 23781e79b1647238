"""Fetch parts of large chunks from a remote store, where that is faster than whole chunks.

The ranges of an uncompressed chunk follow from its shape. The ranges of a Blosc chunk follow from
its header, which takes a request before. The requests for all chunks are in flight together, and
the ranges of a chunk are requested as soon as its header has been received. If the store has ETags,
headers are cached as shard indexes are, so that a second read of a chunk takes one round trip.

All parts of a chunk are of one version: ranges are pinned to the ETag of the header, and several
ranges without a header have to have the same ETag. A chunk that has changed is read as a whole.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, tee
from threading import Lock
from typing import Any, NamedTuple

from zarrdask import config
from zarrdask.arrays.chunks.ranges.large_values import get_large, large_size
from zarrdask.arrays.chunks.ranges.shard_indexes import INDEXES, CachedIndex, IndexLocation
from zarrdask.formats.byte_ranges import Buffer, Part, Range, Tag, join_ranges
from zarrdask.formats.codecs.byte_source import HeldValue, StoredParts
from zarrdask.formats.codecs.chunk_parts import ChunkPart, FetchedChunk, PartReader
from zarrdask.formats.codecs.part_layout import RANGE_BYTES, PartLayout
from zarrdask.formats.codecs.pipeline import Pipeline
from zarrdask.formats.indexing.projection import Request
from zarrdask.runtime.in_flight import window
from zarrdask.runtime.system import after_fork
from zarrdask.storage.base import Store

#: The first bytes of a compressed chunk that are requested: the header and the table of blocks of
#: nearly all chunks, and all of a small one.
HEAD_BYTES = 2**16

#: The locks of headers that are being requested.
_REQUESTED = dict[IndexLocation, Lock]()

#: The result for a chunk.
Fetched = Buffer | FetchedChunk | None


class ChunkRequest(NamedTuple):
    """The needed part of one chunk, or all of it if `inside` is None."""

    key: str
    pipeline: Pipeline
    inside: Request | None


class PartRanges(NamedTuple):
    """The part of a chunk that is requested.

    Attributes
    ----------
    layout : PartLayout
        Where the requested elements are in the decoded bytes.
    stored : StoredParts
        What decodes the bytes.
    ranges : list of (int, int)
        The ranges to request, which contain all that is needed but the first bytes.
    """

    layout: PartLayout
    stored: StoredParts
    ranges: list[Range]


@dataclass(frozen=True)
class _Plan:
    """The part of a chunk to request: all of it if that is None, or nothing any more.

    `tag` is the ETag of the first bytes, `head`; these are empty if they were not requested.
    """

    request: ChunkRequest
    part: PartRanges | None = None
    head: Buffer = b""
    tag: Tag | None = None
    #: All of the chunk, or None if it is missing, if that is known already.
    content: Buffer | None = None
    is_complete: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether all of the chunk is requested now."""
        return self.part is None and not self.is_complete


class _Wanted(NamedTuple):
    """A range to request: all of a chunk if the length is None, and nothing if it is 0."""

    plan: _Plan
    start: int
    length: int | None


def remote_layout(request: ChunkRequest) -> PartLayout | None:
    """Return where the requested elements are in a chunk; None if all of it is requested."""
    if request.inside is None:
        return None
    return PartReader(request.pipeline).find(request.inside, range_overhead())


def remote_ranges(
    store: Store, layout: PartLayout, stored: StoredParts, head: int
) -> PartRanges | None:
    """Return the ranges that are requested of a chunk; None if all of it takes hardly longer.

    The first `head` bytes are there already.
    """
    located = stored.locate(layout.ranges)
    if located is None:
        return None
    needed = [("", start, length) for start, length in located if start + length > head]
    joined = [(r.start, r.length or 0) for r in join_ranges(needed, config.get("coalesce-gap"))]
    # Several ranges take as long as one with the gaps that would be filled.
    cost = sum(length + range_overhead() for _, length in joined)
    if cost > stored.stored or max((n for _, n in joined), default=0) > large_size(store):
        return None
    return PartRanges(layout, stored, joined)


def range_overhead() -> int:
    """Return the bytes that are transferred in the time that one more request takes."""
    return max(int(config.get("coalesce-gap")), RANGE_BYTES)


def fetch_remote(
    store: Store, requests: Iterable[ChunkRequest], pipeline: Pipeline
) -> Iterator[Fetched]:
    """Yield the needed part of each chunk while later ones are fetched; None if it is missing.

    The store has the capability `etags`; `pipeline` is bound to the largest chunk.
    """
    nbytes, has_heads = pipeline.spec.nbytes, bool(pipeline.compressors)
    is_large, largest = nbytes > large_size(store), 0
    large: Iterator[Buffer | None] = iter(())
    if is_large:
        requests, whole = tee(requests)
        large = get_large(store, ((r.key, nbytes) for r in whole if remote_layout(r) is None))

    def fetch(wanted: _Wanted) -> Part | Buffer | None:
        nonlocal largest
        plan, start, length = wanted
        if length:
            return store.get_part(plan.request.key, start, length, plan.tag)
        if length == 0:
            return None
        value = store.get_range(plan.request.key, 0)
        largest = max(largest, len(value or b""))
        return value

    def size(wanted: _Wanted) -> int:
        if wanted.length == 0:
            return len(wanted.plan.content or wanted.plan.head)
        # Until the first value is there, only its size before it was compressed is known.
        return wanted.length or largest or nbytes

    begin = partial(_begun, store)
    plans, ahead = tee(window(begin, requests) if has_heads else map(begin, requests))
    parts = window(fetch, (w for p in ahead for w in _wanted(p, is_large=is_large)), size=size)
    for plan in plans:
        count = 1 if plan.part is None else max(len(plan.part.ranges), 1)
        fetched = list(islice(parts, count))
        if plan.is_complete:
            yield plan.content
        elif plan.part is not None:
            ranges: Sequence[Any] = fetched[: len(plan.part.ranges)]
            yield _completed(store, plan, plan.part, ranges)
        elif not is_large:
            yield fetched[0]  # type: ignore[misc]
        elif remote_layout(plan.request) is None:
            yield next(large)
        else:
            yield from get_large(store, [(plan.request.key, nbytes)])


def _wanted(plan: _Plan, *, is_large: bool) -> Iterator[_Wanted]:
    """Yield the requests for a chunk; an empty one stands for values that are held in memory."""
    if plan.part is not None and plan.part.ranges:
        yield from (_Wanted(plan, *each) for each in plan.part.ranges)
    else:
        yield _Wanted(plan, 0, None if plan.is_whole and not is_large else 0)


def _begun(store: Store, request: ChunkRequest) -> _Plan:
    """Return the plan of a chunk, after a request for its first bytes if that is necessary."""
    layout = remote_layout(request)
    if layout is None:
        return _Plan(request)
    if not request.pipeline.compressors:
        stored = PartReader(request.pipeline).stored(HeldValue(b""))
        return _planned(store, request, layout, stored)
    if not config.get("index-cache-size"):
        return _with_head(store, request, layout, None)
    at = head_location(store, request)
    # If several tasks need a header, one requests it.
    with _REQUESTED.setdefault(at, Lock()):
        try:
            cached = INDEXES.get(at)
            if cached is None:
                return _with_head(store, request, layout, at)
            stored = PartReader(request.pipeline).stored(HeldValue(cached.data))
            return _planned(store, request, layout, stored, tag=cached.tag)
        finally:
            _REQUESTED.pop(at, None)


def _with_head(
    store: Store, request: ChunkRequest, layout: PartLayout, at: IndexLocation | None
) -> _Plan:
    """Return the plan of a chunk after a request for its first bytes, which are cached `at`."""
    first = store.get_part(request.key, 0, HEAD_BYTES)
    if first is None or len(first.value) == first.size:
        content = None if first is None else first.value
        return _Plan(request, content=content, is_complete=True)
    stored = (
        None if first.tag is None else PartReader(request.pipeline).stored(HeldValue(first.value))
    )
    if stored is None or stored.stored != first.size:
        return _Plan(request)
    if at is not None:
        INDEXES.put(at, CachedIndex(bytes(memoryview(first.value)[: stored.head]), first.tag))
    return _planned(store, request, layout, stored, first.value, first.tag)


def _planned(
    store: Store,
    request: ChunkRequest,
    layout: PartLayout,
    stored: StoredParts | None,
    head: Buffer = b"",
    tag: Tag | None = None,
) -> _Plan:
    part = None if stored is None else remote_ranges(store, layout, stored, len(head))
    return _Plan(request, part, head, tag)


def head_location(store: Store, request: ChunkRequest) -> IndexLocation:
    """Return the location of the first bytes of a chunk in the cache."""
    return IndexLocation(store.identity.token, request.key, 0, HEAD_BYTES)


def _completed(
    store: Store, plan: _Plan, part: PartRanges, fetched: Sequence[Part | None]
) -> Fetched:
    """Return the part of a chunk, given its ranges; all of it if they are not of one version."""
    if plan.tag is None and not any(fetched):
        return None
    located = [((0, len(plan.head)), plan.head)] if plan.head else []
    tags = set[Tag | None]() if plan.tag is None else {plan.tag}
    for each, answer in zip(part.ranges, fetched, strict=True):
        if answer is None:
            return _read_again(store, plan)
        if len(answer.value) == answer.size:
            return answer.value  # the server does not support range requests
        tags.add(answer.tag)
        if len(answer.value) != each[1] or answer.size != part.stored.stored:
            return _read_again(store, plan)
        located.append((each, answer.value))
    if len(tags) > 1 or (None in tags and len(fetched) > 1):
        return _read_again(store, plan)
    return ChunkPart(part.layout, part.stored, located)


def _read_again(store: Store, plan: _Plan) -> Buffer | None:
    """Read a chunk as a whole, which has changed, or whose length is not the expected one."""
    INDEXES.put(head_location(store, plan.request), None)
    return store.get(plan.request.key)


# The threads of the parent process, which hold these locks, do not run in a forked one.
after_fork(_REQUESTED.clear)
