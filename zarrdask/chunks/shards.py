"""Fetch the shards of a region from a store with latency: two rounds of requests for all of them.

First the indexes of all shards that are met in part, then all ranges of all shards. Asked one
shard after another, the same requests would take two rounds for each.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from toolz import partition_all

from zarrdask.codecs.array_to_bytes.sharding import Shard, needed_ranges, shard_of
from zarrdask.codecs.byte_source import HeldValue
from zarrdask.codecs.pipeline import Pipeline
from zarrdask.errors import ZarrdaskError
from zarrdask.indexing.projection import Request
from zarrdask.storage.base import Scratch, Store, StoredValue
from zarrdask.storage.byte_ranges import Buffer, Range, Value

#: Encoded bytes that one round of requests may bring into memory.
MAX_ROUND_BYTES = 2**28
#: Shards whose indexes are asked for in one round.
MAX_ROUND_SHARDS = 4096


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
    for batch in partition_all(MAX_ROUND_SHARDS, requests):
        yield from _fetch(store, batch, scratch)


def _fetch(
    store: Store, requests: Sequence[ShardRequest], scratch: Scratch
) -> Iterator[Value | None]:
    partial = [at for at, request in enumerate(requests) if _is_plannable(request)]
    asked = [(requests[at].key, _shard(requests[at]).index_range) for at in partial]
    indexes = dict(zip(partial, store.get_partial_values(asked), strict=True)) if asked else {}
    plans = [_plan(request, indexes.get(at)) for at, request in enumerate(requests)]
    for start, end in _rounds(requests, plans):
        ranges = [(requests[at].key, part) for at in range(start, end) for part in plans[at]]
        parts = iter(store.get_partial_values(ranges) if ranges else ())
        fetched = [[next(parts) for _ in plans[at]] for at in range(start, end)]
        for at, values in zip(range(start, end), fetched, strict=True):
            yield _value(store, requests[at], indexes.get(at), plans[at], values, scratch)


def _shard(request: ShardRequest) -> Shard:
    return cast(Shard, request.pipeline.serializer)


def _is_plannable(request: ShardRequest) -> bool:
    """Whether the index tells which ranges are needed."""
    return request.region is not None and shard_of(_shard(request).chunks) is None


def _plan(request: ShardRequest, index: Buffer | None) -> list[tuple[int, int | None]]:
    """Return the ranges of a shard to ask for; none where it is missing or can't be planned."""
    if request.region is None:
        return [(0, None)]
    if index is None:
        return []
    try:
        return [*needed_ranges(request.pipeline, HeldValue(index), request.region)]
    except ZarrdaskError:
        return []  # the same error comes when the shard is read, with the key


def _rounds(
    requests: Sequence[ShardRequest], plans: Sequence[Sequence[tuple[int, int | None]]]
) -> Iterator[tuple[int, int]]:
    """Yield runs of shards whose parts may be in memory together."""
    start, held = 0, 0
    for at, (request, plan) in enumerate(zip(requests, plans, strict=True)):
        size = sum(request.pipeline.spec.nbytes if length is None else length for _, length in plan)
        if at > start and held + size > MAX_ROUND_BYTES:
            yield start, at
            start, held = at, 0
        held += size
    if start < len(requests):
        yield start, len(requests)


def _value(
    store: Store,
    request: ShardRequest,
    index: Buffer | None,
    plan: Sequence[tuple[int, int | None]],
    values: Sequence[Buffer | None],
    scratch: Scratch,
) -> Value | None:
    if request.region is None:
        return None if values[0] is None else HeldValue(values[0])
    if not _is_plannable(request):
        return StoredValue(store, request.key, scratch)
    if index is None:
        return None
    return FetchedShard(index, dict(zip(cast("Sequence[Range]", plan), values, strict=True)))
