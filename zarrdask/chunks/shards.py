"""Fetch the shards of a region from a store with latency, indexes and chunks at the same time.

What is needed of a shard takes two requests, one after the other: the index tells where its chunks
are. But the requests for all shards are in flight together, and the chunks of a shard are requested
as soon as its index is there, while the indexes of later shards are on their way.

In stores that tell versions, indexes are kept, so that reading again from a shard takes one round
of requests. Chunks are requested of the version that the index is of: if the shard has changed,
its index is read anew.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import tee
from typing import Literal, NamedTuple, cast

from zarrdask import config
from zarrdask.codecs.array_to_bytes.sharding import Shard, needed_ranges, shard_of
from zarrdask.codecs.byte_source import HeldValue
from zarrdask.codecs.pipeline import Pipeline
from zarrdask.errors import ZarrdaskError
from zarrdask.indexing.projection import Request
from zarrdask.runtime.shard_indexes import INDEXES, IndexPlace, KeptIndex
from zarrdask.storage.base import Scratch, Store, StoredValue, Tag
from zarrdask.storage.byte_ranges import Buffer, Range, Value, cut
from zarrdask.storage.in_flight import in_flight
from zarrdask.storage.large_values import get_large, large_size
from zarrdask.storage.range_requests import RangeRequest, join_ranges

#: Encoded bytes that are in memory, or on their way to it, at a time.
MAX_BYTES_IN_FLIGHT = 2**28
#: Ranges that are requested by one call of a store that sends its requests itself.
MAX_ROUND_RANGES = 4096

#: How kept indexes are treated: "use" them, "renew" them, or "ignore" them.
_Kept = Literal["use", "renew", "ignore"]


class _ChangedError(Exception):
    """A shard is not of the version of its index any more."""


class ShardRequest(NamedTuple):
    """What is needed of one shard.

    Attributes
    ----------
    key : str
        The key of the shard in the store.
    pipeline : Pipeline
        The codecs of the shard.
    region : Request or None
        The part of the shard that is needed; None for all of it.
    """

    key: str
    pipeline: Pipeline
    region: Request | None

    @property
    def shard(self) -> Shard:
        """The sharding codec."""
        return cast(Shard, self.pipeline.serializer)

    @property
    def is_plannable(self) -> bool:
        """Whether the index tells which ranges are needed."""
        return self.region is not None and shard_of(self.shard.chunks) is None

    @property
    def nbytes(self) -> int:
        """The decoded size of the shard in bytes."""
        return self.pipeline.spec.nbytes

    def is_larger(self, limit: float) -> bool:
        """Whether the whole shard is needed, and is larger than a number of bytes."""
        return self.region is None and self.nbytes > limit


class _Plan(NamedTuple):
    """The index of a shard, None if there is none, and the requests for what is needed of it.

    With a tag, they are for that version of the shard.
    """

    request: ShardRequest
    encoded_index: Buffer | None
    ranges: Sequence[RangeRequest]
    tag: Tag | None = None


@dataclass(frozen=True)
class FetchedShard:
    """The parts of a shard that are needed, in memory."""

    index: Buffer
    ranges: Mapping[Range, Buffer | None]

    def part(self, start: int, length: int) -> Buffer | None:
        return HeldValue(self.index).part(start, length)

    def parts(self, ranges: Sequence[Range]) -> Iterator[Buffer | None]:
        return map(self.ranges.get, ranges)


def fetch_shards(
    store: Store, requests: Iterable[ShardRequest], scratch: Scratch
) -> Iterator[Value | None]:
    """Yield the value of each shard, with what is needed of it in memory; None if it is missing.

    A shard within a shard can't be planned from the outer index alone: it is yielded as a value
    that is read when it is decoded.
    """
    keeps = store.concurrent and store.versioned and config.get("index-cache-size") > 0
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
    """Yield values as `fetch_shards`; if kept indexes are used, until a shard has changed."""
    # Fetching is ahead of what is yielded.
    limit = large_size(store)
    requests, all_requests = tee(requests)
    large = get_large(store, ((r.key, r.nbytes) for r in all_requests if r.is_larger(limit)))
    ahead, plans = tee(_plans(store, requests, limit, kept))
    sized = ((each, plan.request.nbytes, plan.tag) for plan in ahead for each in plan.ranges)
    parts = _fetch(store, sized)
    for plan in plans:
        if plan.request.is_larger(limit):
            value = next(large)
            yield None if value is None else HeldValue(value)
        else:
            yield _value(store, plan, [next(parts) for _ in plan.ranges], scratch)


def _plans(
    store: Store, requests: Iterable[ShardRequest], limit: float, kept: _Kept
) -> Iterator[_Plan]:
    """Yield the plan of each shard, as soon as its index is there."""
    if kept != "ignore":
        plan = partial(_plan, store, store.token, limit, kept)
        yield from in_flight(plan, requests, size=_index_size, max_bytes=MAX_BYTES_IN_FLIGHT)
        return
    ahead, requests = tee(requests)
    wanted = (
        (RangeRequest(request.key, *request.shard.index_range, ()), 0, None)
        for request in ahead
        if request.is_plannable
    )
    indexes = _fetch(store, wanted)
    for request in requests:
        index = next(indexes) if request.is_plannable else None
        ranges = () if request.is_larger(limit) else _ranges(request, index)
        yield _Plan(request, index, ranges)


def _plan(store: Store, token: str, limit: float, kept: _Kept, request: ShardRequest) -> _Plan:
    """Return the plan of a shard, by the index that is kept or else by a request for it."""
    if not request.is_plannable:
        return _Plan(request, None, () if request.is_larger(limit) else _ranges(request, None))
    place = IndexPlace(token, request.key, *request.shard.index_range)
    index = INDEXES.get(place) if kept == "use" else None
    # Without a request for a chunk, no change of the shard would be noticed.
    if index is not None and (ranges := _ranges(request, index.data)):
        return _Plan(request, index.data, ranges, index.tag)
    part = store.get_part(request.key, place.start, place.length)
    if part is None:
        INDEXES.put(place, None)
        return _Plan(request, None, ())
    is_whole = len(part.value) == part.size
    data = bytes(cut(part.value, place.start, place.length) if is_whole else part.value)
    INDEXES.put(place, None if part.tag is None else KeptIndex(data, part.tag))
    tag = part.tag if kept == "use" else None
    return _Plan(request, data, _ranges(request, data), tag)


def _index_size(request: ShardRequest) -> int:
    return request.shard.index_range[1] if request.is_plannable else 0


def _ranges(request: ShardRequest, index: Buffer | None) -> Sequence[RangeRequest]:
    """Return the requests for a shard; none where it is missing or can't be planned."""
    if request.region is None:
        return [RangeRequest(request.key, 0, None, ())]
    if index is None:
        return ()
    try:
        ranges = needed_ranges(request.pipeline, HeldValue(index), request.region)
    except ZarrdaskError:
        return ()  # the same error comes when the shard is read, with the key
    return [*join_ranges([(request.key, *each) for each in ranges], config.get("coalesce-gap"))]


#: A range, the size of the whole shard, and the tag of the version that is needed.
_Item = tuple[RangeRequest, int, Tag | None]


def _fetch(store: Store, ranges: Iterable[_Item]) -> Iterator[Buffer | None]:
    """Yield ranges while later ones are fetched."""

    def get(item: _Item) -> Buffer | None:
        (key, start, length, _), _, tag = item
        if tag is None or length is None:
            return store.get_range(key, start, length)
        part = store.get_part(key, start, length, tag)
        if part is None or part.tag != tag:
            raise _ChangedError
        return part.value

    if store.concurrent:
        yield from in_flight(get, ranges, size=_size, max_bytes=MAX_BYTES_IN_FLIGHT)
        return
    for batch in _batches(ranges):
        yield from store.get_partial_values([(r.key, (r.start, r.length)) for r in batch])


def _size(item: _Item) -> int:
    request, whole, _ = item
    return whole if request.length is None else request.length


def _batches(ranges: Iterable[_Item]) -> Iterator[list[RangeRequest]]:
    """Yield lists of ranges that may be in memory together."""
    batch, held = list[RangeRequest](), 0
    for item in ranges:
        size = _size(item)
        if batch and (held + size > MAX_BYTES_IN_FLIGHT or len(batch) >= MAX_ROUND_RANGES):
            yield batch
            batch, held = [], 0
        batch.append(item[0])
        held += size
    if batch:
        yield batch


def _value(
    store: Store, plan: _Plan, parts: Sequence[Buffer | None], scratch: Scratch
) -> Value | None:
    request, index, _, _ = plan
    if request.region is None:
        return None if parts[0] is None else HeldValue(parts[0])
    if not request.is_plannable:
        return StoredValue(store, request.key, scratch)
    if index is None:
        return None
    ranges: dict[Range, Buffer | None] = {}
    for joined, part in zip(plan.ranges, parts, strict=True):
        for _, offset, length in joined.members:
            value = None if part is None else cut(part, offset, length)
            ranges[joined.start + offset, cast(int, length)] = value
    return FetchedShard(index, ranges)
