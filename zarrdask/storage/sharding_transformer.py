"""Sharding in the v3 draft: a storage transformer, whose store has a value for each chunk (S.1).

If it is the first transformer, it is read as the sharding codec, whose bytes are the same. This
module serves arrays with another transformer before it, which reads chunks by their keys.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from zarrdask.errors import CodecError, MetadataError, ZarrdaskError
from zarrdask.grids.base import Index, Shape
from zarrdask.grids.keys import ChunkKeyEncoding
from zarrdask.storage.base import Scratch, Store
from zarrdask.storage.byte_ranges import Buffer, KeyRange, Range, cut
from zarrdask.storage.keys import Names, check_key, check_prefix, right_below
from zarrdask.storage.shard_index import ShardIndex
from zarrdask.storage.wrapper import WrappedStore

#: The URI that readers know (X-B17, ZEP 2), those of the specification's title and example (S-1).
URI = "https://purl.org/zarr/spec/storage_transformers/sharding/1.0"
TITLE = "https://purl.org/zarr/spec/extensions/storage-transformers/sharding/1.0"
EXAMPLE = "https://purl.org/zarr/spec/extensions/storage_transformers/sharding/1.0"
#: The shards of an array are read, changed and stored by one thread at a time. The locks are
#: reentrant, as the thread that changes a shard within a shard also changes the outer one.
_LOCKS = tuple(threading.RLock() for _ in range(64))


@dataclass(frozen=True)
class ShardingTransformer:
    """Many chunks in one value, with an index at its end.

    Parameters
    ----------
    chunks_per_shard : tuple of int
        The number of chunks in a shard along each axis.
    """

    chunks_per_shard: Shape

    name: ClassVar[str] = URI

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        if configuration.get("type") != "indexed":
            raise MetadataError(
                "the format of shards is unknown",
                key="storage_transformers",
                found=configuration.get("type"),
                expected="'indexed'",
            )
        counts = configuration.get("chunks_per_shard")
        if (
            not isinstance(counts, list)
            or any(type(n) is not int or n < 1 for n in counts)
            or set(configuration) != {"type", "chunks_per_shard"}
        ):
            raise MetadataError(
                "the configuration of sharding is invalid",
                key="storage_transformers",
                found=dict(configuration),
                expected='"type", and "chunks_per_shard" with positive integers',
            )
        return cls(tuple(counts))

    def check(self, ndim: int) -> None:
        """Check that there is a count for each dimension of an array.

        Raises
        ------
        MetadataError
            If the number of counts is another one (conformance S-2).
        """
        if len(self.chunks_per_shard) != ndim:
            raise MetadataError(
                "the number of counts is not that of the dimensions",
                key="chunks_per_shard",
                found=list(self.chunks_per_shard),
                expected=f"{ndim} counts",
            )

    def wrap(self, store: Store, prefix: str, keys: ChunkKeyEncoding, counts: Shape) -> Store:
        """Return the store in which each chunk is a value."""
        self.check(len(counts))
        return ShardedStore(store, prefix, keys, self.chunks_per_shard)

    def to_json(self) -> dict[str, Any]:
        settings = {"type": "indexed", "chunks_per_shard": list(self.chunks_per_shard)}
        return {"name": URI, "configuration": settings}


class ShardedStore(WrappedStore):
    """The chunks in the shards of an array, by their keys; other keys are those of the inner store.

    Parameters
    ----------
    inner : Store
        The store of the shards.
    prefix : str
        The prefix of the array's keys.
    keys : ChunkKeyEncoding
        The encoding of the keys of chunks, and of those of shards (conformance S-3).
    per_shard : tuple of int
        The number of chunks in a shard along each axis.
    """

    def __init__(self, inner: Store, prefix: str, keys: ChunkKeyEncoding, per_shard: Shape) -> None:
        super().__init__(inner)
        self.prefix = prefix
        self.keys = keys
        self.per_shard = per_shard
        self._size = 16 * prod(per_shard)

    def _parts(self) -> tuple[Any, ...]:
        return self.inner, self.prefix, self.keys, self.per_shard

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShardedStore) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __reduce__(self) -> tuple[Any, ...]:
        return ShardedStore, self._parts()

    def stamp(self, key: str) -> str:
        place = self._place(key)
        return self.inner.stamp(key if place is None else place[0])

    # ---- positions of chunks

    def _place(self, key: str) -> tuple[str, Index] | None:
        """Return the key of a chunk's shard, and the chunk's index in it; None for other keys."""
        if not key.startswith(self.prefix):
            return None
        index = self.keys.index(key[len(self.prefix) :], len(self.per_shard))
        if index is None:
            return None
        shard = tuple(i // n for i, n in zip(index, self.per_shard, strict=True))
        within = tuple(i % n for i, n in zip(index, self.per_shard, strict=True))
        return self.prefix + self.keys.key(shard), within

    def _parse_index(self, shard: str, data: Buffer | None) -> ShardIndex | None:
        """Return the index at the end of a shard (S-5), or None if there is no shard."""
        if data is None:
            return None
        if len(data) < self._size:
            raise CodecError(
                "the shard is shorter than its index",
                key=shard,
                found=f"{len(data)} bytes",
                expected=f"{self._size} bytes",
            )
        entries = np.frombuffer(memoryview(data)[len(data) - self._size :], "<u8")
        return ShardIndex(entries.reshape(*self.per_shard, 2))

    def _index(self, shard: str) -> ShardIndex | None:
        return self._parse_index(shard, self.inner.get_range(shard, -self._size))

    # ---- reading

    def get(self, key: str) -> bytes | None:
        place = self._place(key)
        if place is None:
            return self.inner.get(key)
        chunk = self._part(*place, 0, None)
        return None if chunk is None else bytes(chunk)

    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:
        place = self._place(key)
        if place is None:
            return self.inner.get_range(key, start, length)
        return self._part(*place, start, length)

    def get_ranges(
        self, key: str, ranges: Sequence[Range], scratch: Scratch
    ) -> Iterator[Buffer | None]:
        if self._place(key) is None:
            yield from self.inner.get_ranges(key, ranges, scratch)
            return
        value = self.get(key)
        for start, length in ranges:
            yield None if value is None else cut(value, start, length)

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:
        """Yield the value of each key: all indices are read first, then all chunks (S-11)."""
        keys = list(keys)
        places = {key: self._place(key) for key in keys}
        shards = sorted({place[0] for place in places.values() if place is not None})
        ends = self.inner.get_partial_values([(shard, (-self._size, None)) for shard in shards])
        tables = {s: self._parse_index(s, end) for s, end in zip(shards, ends, strict=True)}
        ranges: dict[str, KeyRange] = {}
        for key, place in places.items():
            if place is None:
                ranges[key] = key, (0, None)
                continue
            index = tables[place[0]]
            entry = None if index is None else _entry(place[0], index, place[1])
            if entry is not None:
                ranges[key] = place[0], entry
        values = self.inner.get_partial_values([*ranges.values()])
        parts = dict(zip(ranges, values, strict=True))
        for key in keys:
            place = places[key]
            if key in parts and place is not None:
                yield _whole(place[0], parts[key], ranges[key][1][1] or 0)
            else:
                yield parts.get(key)

    def _part(self, shard: str, within: Index, start: int, length: int | None) -> Buffer | None:
        """Return part of a chunk: the index is read first, then the range (S-11)."""
        index = self._index(shard)
        entry = None if index is None else _entry(shard, index, within)
        if entry is None:
            return None
        offset, size = entry
        begin = max(size + start, 0) if start < 0 else min(start, size)
        count = size - begin if length is None else min(length, size - begin)
        return _whole(shard, self.inner.get_range(shard, offset + begin, count), count)

    # ---- writing

    def set(self, key: str, value: Buffer) -> None:
        place = self._place(key)
        if place is None:
            self.inner.set(key, value)
        else:
            shard, within = place
            self._change(shard, lambda chunks: chunks | {within: bytes(value)})

    def create(self, key: str, value: Buffer) -> bool:
        if self._place(key) is None:
            return self.inner.create(key, value)
        return Store.create(self, key, value)

    def erase(self, key: str) -> None:
        place = self._place(key)
        if place is None:
            self.inner.erase(key)
        else:
            shard, within = place
            self._change(shard, lambda chunks: {i: c for i, c in chunks.items() if i != within})

    def _change(
        self, shard: str, change: Callable[[dict[Index, bytes]], dict[Index, bytes]]
    ) -> None:
        """Store a shard with changed chunks; the other chunks keep their bytes (S-9, S-10)."""
        with _LOCKS[hash(self.prefix) % len(_LOCKS)]:
            before = self._split(shard)
            after = change(before)
            if after:
                self.inner.set(shard, self._assemble(after))
            elif before:
                self.inner.erase(shard)

    def _split(self, shard: str) -> dict[Index, bytes]:
        data = self.inner.get(shard)
        index = self._parse_index(shard, data)
        if data is None or index is None:
            return {}
        chunks = {}
        for within in np.ndindex(*self.per_shard):
            entry = _entry(shard, index, within)
            if entry is not None:
                start, size = entry
                chunks[within] = bytes(_whole(shard, cut(data, start, size), size))
        return chunks

    def _assemble(self, chunks: Mapping[Index, bytes]) -> bytes:
        lengths = {within: len(chunks[within]) for within in sorted(chunks)}
        index = ShardIndex.contiguous(self.per_shard, lengths)
        entries = index.entries.astype("<u8", copy=False)
        return b"".join([*(chunks[within] for within in lengths), entries.tobytes()])

    # ---- listing

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield the keys of chunks instead of those of shards (S-12)."""
        prefix = check_prefix(prefix)
        # The keys of shards need not begin with this prefix, though those of chunks in them do.
        within = prefix.startswith(self.prefix) and prefix != self.prefix
        for key in self.inner.list_prefix(self.prefix if within else prefix):
            yield from (chunk for chunk in self._chunks(key) if chunk.startswith(prefix))

    def _chunks(self, key: str) -> Iterator[str]:
        """Yield the keys of the chunks in a shard; for other keys, the key itself."""
        inside = key.startswith(self.prefix)
        ndim = len(self.per_shard)
        shard = self.keys.index(key[len(self.prefix) :], ndim) if inside else None
        if shard is None:
            yield key
            return
        index = self._index(key)
        starts = [i * n for i, n in zip(shard, self.per_shard, strict=True)]
        for within in product(*map(range, self.per_shard)):
            if index is not None and _entry(key, index, within) is not None:
                chunk = tuple(s + i for s, i in zip(starts, within, strict=True))
                yield self.prefix + self.keys.key(chunk)

    def list_dir(self, prefix: str) -> Names:
        prefix = check_prefix(prefix)
        if not prefix.startswith(self.prefix):
            return self.inner.list_dir(prefix)
        return right_below(prefix, self.list_prefix(prefix))

    def erase_values(self, keys: Iterable[str]) -> None:
        for key in [check_key(key) for key in keys]:
            self.erase(key)

    def erase_prefix(self, prefix: str) -> None:
        """Remove the chunks below a prefix; others in their shards stay."""
        prefix = check_prefix(prefix)
        if prefix.startswith(self.prefix) and prefix != self.prefix:
            self.erase_values([*self.list_prefix(prefix)])
        else:
            self.inner.erase_prefix(prefix)


def _entry(shard: str, index: ShardIndex, within: Index) -> Range | None:
    """Return the range of a chunk in its shard, or None if it is not stored (S-6, S-8)."""
    try:
        return index.range_of(within)
    except ZarrdaskError as error:
        raise error.within(shard) from None


def _whole(shard: str, data: Buffer | None, size: int) -> Buffer:
    length = 0 if data is None else len(data)
    if data is None or length != size:
        raise CodecError(
            "the index of the shard points outside it",
            key=shard,
            found=f"{length} bytes",
            expected=f"{size} bytes",
        )
    return data
