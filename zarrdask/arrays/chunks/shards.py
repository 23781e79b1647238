"""Fetch the shards of a region from a remote store, indexes and chunks at the same time.

Reading from a shard takes two requests, one after the other, as the index has the offsets of the
chunks. But the requests for all shards are in flight together, and the chunks of a shard are
requested as soon as its index has been received, while the indexes of later shards are in flight.

If the store has ETags, shard indexes are cached, so that a second read of a shard needs one round
trip. Requests for chunks are pinned to the ETag of the index: if the shard has changed, its index
is read again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice, repeat, tee
from operator import attrgetter
from typing import Literal, NamedTuple, cast

from zarrdask import config
from zarrdask.arrays.chunks.ranges.large_values import get_large, large_size
from zarrdask.arrays.chunks.ranges.shard_indexes import (
    INDEXES,
    CachedIndex,
    IndexLocation,
    caches_indexes,
)
from zarrdask.errors import ZarrdaskError
from zarrdask.formats.byte_ranges import Buffer, Range, RangeRequest, Tag, Value, cut, join_ranges
from zarrdask.formats.codecs.array_to_bytes.sharding import Located, Shard, locate, shard_of
from zarrdask.formats.codecs.byte_source import HeldValue
from zarrdask.formats.codecs.decode import ChunkCache
from zarrdask.formats.codecs.pipeline import Pipeline
from zarrdask.formats.indexing.projection import AnyRequest
from zarrdask.runtime import measuring
from zarrdask.runtime.in_flight import MAX_BYTES_IN_FLIGHT, window
from zarrdask.runtime.scratch import Scratch
from zarrdask.runtime.thread_counts import THIS_THREAD
from zarrdask.storage.base import Store
from zarrdask.storage.value_parts import StoredValue

#: Ranges that are requested by one call of a store that sends its requests itself.
MAX_ROUND_RANGES = 4096

#: How cached shard indexes are treated: "use" them, "renew" them, or "ignore" them.
_Kept = Literal["use", "renew", "ignore"]


class _ChangedError(Exception):
    """A shard is not of the version of its index any more."""


class ShardRequest(NamedTuple):
    """The needed chunks of one shard.

    Attributes
    ----------
    key : str
        The key of the shard in the store.
    pipeline : Pipeline
        The codecs of the shard.
    region : AnyRequest or None
        The part of the shard that is needed; None for all of it.
    cache : callable, optional
        Returns the cache of decoded chunks for the version of the shard that has a tag.
    """

    key: str
    pipeline: Pipeline
    region: AnyRequest | None
    cache: Callable[[Tag], ChunkCache] | None = None

    @property
    def shard(self) -> Shard:
        """The sharding codec."""
        return cast(Shard, self.pipeline.serializer)

    @property
    def is_plannable(self) -> bool:
        """Whether the ranges that are needed follow from the index."""
        return self.region is not None and shard_of(self.shard.chunks) is None

    @property
    def nbytes(self) -> int:
        """The decoded size of the shard in bytes."""
        return self.pipeline.spec.nbytes

    def is_larger(self, limit: float) -> bool:
        """Whether the whole shard is needed, and is larger than a number of bytes."""
        return self.region is None and self.nbytes > limit


class _Plan(NamedTuple):
    """The index of a shard, None if there is none, and what is needed of the shard.

    The chunks are None if they do not follow from the index. With a tag, the requests are for that
    version of the shard.
    """

    request: ShardRequest
    encoded_index: Buffer | None = None
    chunks: Located | None = None
    ranges: Sequence[RangeRequest] = ()
    tag: Tag | None = None


@dataclass(frozen=True)
class FetchedShard:
    """The parts of a shard that are needed, in memory.

    Attributes
    ----------
    index : HeldValue
        The encoded index.
    chunks : Located or None
        The chunks that are needed; None if the index is damaged.
    ranges : mapping
        The encoded chunks, by their ranges in the shard.
    """

    index: HeldValue
    chunks: Located | None
    ranges: Mapping[Range, Buffer | None]

    def part(self, start: int, length: int) -> Buffer | None:
        return self.index.part(start, length)

    def parts(self, ranges: Sequence[Range]) -> Iterator[Buffer | None]:
        return map(self.ranges.get, ranges)


def fetch_shards(
    store: Store, requests: Iterable[ShardRequest], scratch: Scratch
) -> Iterator[Value | None]:
    """Yield the value of each shard, with what is needed of it in memory; None if it is missing.

    A shard within a shard can't be planned from the outer index alone: it is yielded as a value
    that is read when it is decoded.
    """
    keeps = caches_indexes(store)
    requests, rest = tee(requests)
    with suppress(_ChangedError):
        for value in _fetched(store, requests, scratch, "use" if keeps else "ignore"):
            next(rest)
            yield value
        return
    yield from _fetched(store, rest, scratch, "renew")


def _fetched(
    store: Store, requests: Iterable[ShardRequest], scratch: Scratch, kept: _Kept
) -> Iterator[Value | None]:
    """Yield values as `fetch_shards`; if cached indexes are used, until a shard has changed."""
    # Fetching is ahead of what is yielded.
    limit = large_size(store)
    requests, all_requests = tee(requests)
    large = get_large(store, ((r.key, r.nbytes) for r in all_requests if r.is_larger(limit)))
    ahead, plans = tee(_plans(store, requests, kept))
    wanted = (
        _Wanted(each.key, each.start, each.length, plan.request.nbytes, plan.tag)
        for plan in ahead
        if not plan.request.is_larger(limit)
        for each in plan.ranges
    )
    parts = _fetch(store, wanted)
    for plan in plans:
        if plan.request.is_larger(limit):
            value = next(large)
            yield None if value is None else HeldValue(value)
        else:
            yield _value(store, plan, [*islice(parts, len(plan.ranges))], scratch)


def _plans(store: Store, requests: Iterable[ShardRequest], kept: _Kept) -> Iterator[_Plan]:
    """Yield the plan of each shard: from its cached index, or as soon as the index is received."""
    locate = partial(_locate, "" if kept == "ignore" else store.identity.token)

    def known(request: ShardRequest) -> _Plan | None:
        if not request.is_plannable:
            whole = RangeRequest(request.key, 0, None, ())
            return _Plan(request, ranges=[whole] if request.region is None else ())
        index = INDEXES.get(locate(request)) if kept == "use" else None
        plan = None if index is None else _plan(request, index.data, index.tag)
        if plan is not None and measuring.IS_ACTIVE:
            THIS_THREAD.counts.count("cache_hits")
        # Without a request for a chunk, no change of the shard would be noticed.
        return plan if plan and plan.ranges else None

    ahead, plans = tee((request, known(request)) for request in requests)
    unknown = (request for request, plan in ahead if plan is None)
    indexes = _indexes(store, unknown, locate, kept)
    for request, plan in plans:
        yield plan or _plan(request, *next(indexes))


def _locate(token: str, request: ShardRequest) -> IndexLocation:
    return IndexLocation(token, request.key, *request.shard.index_range)


def _indexes(
    store: Store,
    requests: Iterable[ShardRequest],
    locate: Callable[[ShardRequest], IndexLocation],
    kept: _Kept,
) -> Iterator[tuple[Buffer | None, Tag | None]]:
    """Request indexes; yield each and, if requests are pinned to its version, the tag of that."""
    locations: Iterator[IndexLocation] = map(locate, requests)
    if kept == "ignore":
        wanted = (_Wanted(key, start, length, 0, None) for _, key, start, length in locations)
        yield from zip(_fetch(store, wanted), repeat(None))
        return
    ahead, locations = tee(locations)
    parts = window(
        lambda locate: store.get_part(locate.key, locate.start, locate.length),
        ahead,
        size=attrgetter("length"),
    )
    for part, at in zip(parts, locations, strict=True):
        if part is None:
            INDEXES.put(at, None)
            yield None, None
            continue
        is_whole = len(part.value) == part.size
        data = bytes(cut(part.value, at.start, at.length) if is_whole else part.value)
        INDEXES.put(at, None if part.tag is None else CachedIndex(data, part.tag))
        yield data, part.tag if kept == "use" else None


def _plan(request: ShardRequest, index: Buffer | None, tag: Tag | None) -> _Plan:
    """Return the plan of a shard with an index; nothing is requested of it if it is damaged."""
    if index is None:
        return _Plan(request)
    try:
        chunks = locate(request.pipeline, HeldValue(index), request.region)
    except ZarrdaskError:
        return _Plan(request, index)  # the same error comes when the shard is read, with the key
    if chunks and request.cache is not None and tag is not None:
        chunks = chunks.without_cached(request.cache(tag))
    ranges = [(request.key, *each) for each in chunks.ranges] if chunks else []
    joined = [*join_ranges(ranges, config.get("coalesce-gap"))]
    return _Plan(request, index, chunks, joined, tag)


class _Wanted(NamedTuple):
    """A range to request, to the end of the value if its length is None.

    Attributes
    ----------
    whole : int
        The size of the whole value in bytes.
    tag : optional
        The tag of the version that is needed.
    """

    key: str
    start: int
    length: int | None
    whole: int
    tag: Tag | None

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self.whole if self.length is None else self.length


def _fetch(store: Store, ranges: Iterable[_Wanted]) -> Iterator[Buffer | None]:
    """Yield ranges while later ones are fetched."""

    def get(wanted: _Wanted) -> Buffer | None:
        key, start, length, _, tag = wanted
        if tag is None or length is None:
            return store.get_range(key, start, length)
        part = store.get_part(key, start, length, tag)
        if part is None:
            raise _ChangedError
        return part.value

    if store.capabilities.concurrent:
        size = attrgetter("size")
        yield from window(get, ranges, size=size)
        return
    for batch in _batches(ranges):
        yield from store.get_partial_values([(r.key, (r.start, r.length)) for r in batch])


def _batches(ranges: Iterable[_Wanted]) -> Iterator[list[_Wanted]]:
    """Yield lists of ranges that may be in memory together."""
    batch, held = list[_Wanted](), 0
    for wanted in ranges:
        is_full = held + wanted.size > MAX_BYTES_IN_FLIGHT or len(batch) >= MAX_ROUND_RANGES
        if batch and is_full:
            yield batch
            batch, held = [], 0
        batch.append(wanted)
        held += wanted.size
    if batch:
        yield batch


def _value(
    store: Store, plan: _Plan, parts: Sequence[Buffer | None], scratch: Scratch
) -> Value | None:
    request, index, chunks, joined, _ = plan
    if request.region is None:
        return None if parts[0] is None else HeldValue(parts[0])
    if not request.is_plannable:
        return StoredValue(store, request.key, scratch)
    if index is None:
        return None
    ranges = dict[Range, Buffer | None]()
    for each, part in zip(joined, parts, strict=True):
        for _, offset, length in each.members:
            value = None if part is None else cut(part, offset, length)
            ranges[each.start + offset, cast(int, length)] = value
    return FetchedShard(HeldValue(index), chunks, ranges)
