"""Encoded bytes, for plans: the bytes that a read fetches, and estimates of what a write stores."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product, repeat
from math import prod
from typing import Any, cast

import numpy as np
from toolz import partition_all

from zarrdask import config
from zarrdask.arrays.chunks.ranges.part_requests import PartRequests
from zarrdask.arrays.chunks.shards import MAX_ROUND_RANGES
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.stored_keys import StoredUnits
from zarrdask.errors import ZarrdaskError
from zarrdask.formats.byte_ranges import Buffer, Range, join_ranges
from zarrdask.formats.codecs.array_to_bytes.sharding import Shard, locate, shard_of
from zarrdask.formats.codecs.byte_source import HeldValue
from zarrdask.formats.grids.axis import Axis
from zarrdask.formats.grids.chunk_grid import ChunkGrid, Index
from zarrdask.formats.indexing.projection import project
from zarrdask.formats.indexing.regions import tiles
from zarrdask.formats.indexing.selection import Region, intersection, shifted
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.parallel.plan.owned_regions import Cutting
from zarrdask.parallel.plan.request_costs import AS_SOURCE, SAMPLED, UNCOMPRESSED, RequestCosts
from zarrdask.storage.local.open_file import OpenFile

#: The most chunks, and the most reads of parts of shards or chunks, that a plan looks at.
_MAX_CHUNKS, _MAX_PART_READS = 2**20, 10_000


@dataclass(frozen=True, eq=False)
class EncodedSizes:
    """The encoded sizes of the chunks or shards of an array that are stored.

    Attributes
    ----------
    chunks : StoredChunks
        The array.
    units : dict, optional
        The size of each chunk or shard in bytes, by its index; None if they are not known.
    """

    chunks: StoredChunks
    units: dict[Index, int] | None

    @classmethod
    def listed(cls, chunks: StoredChunks, *, fast: bool = False) -> "EncodedSizes":
        """List an array, if that is possible; with `fast`, only if it does not take long."""
        is_large = (
            chunks.metadata.grid.size > _MAX_CHUNKS or not chunks.store.capabilities.is_listed_fast
        )
        is_listed = chunks.store.capabilities.listable and chunks.elements is None
        if not is_listed or (fast and is_large):
            return cls(chunks, None)
        try:
            return cls(chunks, dict(StoredUnits(chunks).sizes()))
        except (ZarrdaskError, OSError):
            return cls(chunks, None)  # a plan does not fail because of what is wrong with the store

    def total(self, units: Iterable[Index] | None = None) -> int | None:
        """Return the size of some units, or of all, in bytes; None if it is not known."""
        if self.units is None:
            return None
        if units is None:
            return sum(self.units.values())
        return sum(self.units.get(unit, 0) for unit in units)

    @property
    def ratio(self) -> float:
        """The encoded bytes for each decoded byte of the stored units."""
        grid, units = self.chunks.metadata.grid, self.units or {}
        decoded = sum(prod(grid.shape_of(unit)) for unit in units)
        decoded *= self.chunks.metadata.dtype.itemsize
        return sum(units.values()) / decoded if decoded else 1.0

    @cached_property
    def indexes(self) -> dict[Index, Buffer]:
        """The encoded index of each shard that is stored."""
        chunks, indexes = self.chunks, dict[Index, Buffer]()
        units = self.units or {}
        if self.units is None and chunks.metadata.grid.size <= self._parts.limit:
            units = dict.fromkeys(chunks.metadata.grid.indices(), 0)
        for batch in partition_all(MAX_ROUND_RANGES, sorted(units)):
            pipelines = (chunks.metadata.pipeline_at(unit) for unit in batch)
            ranges = (cast(Shard, each.serializer).index_range for each in pipelines)
            keys = map(chunks.key, batch)
            values = chunks.units.get_partial_values(zip(keys, ranges, strict=True))
            indexes.update((u, v) for u, v in zip(batch, values, strict=True) if v is not None)
        return indexes

    # ---- what reads fetch

    @cached_property
    def reads_parts(self) -> bool:
        """Whether parts of units may be read without the rest."""
        return self.chunks.metadata.shard is not None or self._parts.is_used

    @cached_property
    def _parts(self) -> PartRequests:
        return PartRequests(self.chunks)

    def are_planned(self, reads: int, units: int) -> bool:
        """Whether a number of reads of parts of so many units are planned one by one."""
        return reads <= _MAX_PART_READS and self._parts.are_counted(units)

    def read(self, region: Region) -> RequestCosts:
        """Return the requests for the units, or the parts of shards, that a region overlaps."""
        metadata = self.chunks.metadata
        if not self.reads_parts:
            units = list(overlapped(metadata.grid, region))
            return RequestCosts({"GET": len(units)}, self.total(units))
        indices, insides, _ = project(region, metadata.grid.axes)
        total = RequestCosts({"GET": 0}, 0)
        if metadata.shard is None:
            for unit, inside in zip(indices, insides, strict=True):
                total += self._read_chunk(unit, inside)
            return total
        for unit, inside in zip(indices, insides, strict=True):
            if inside is None and self.chunks.costs.overlaps:
                total += RequestCosts({"GET": 1}, self._whole_size(unit))
            else:
                total += self._read_part(unit, inside)
        return total

    def _read_chunk(self, unit: Index, inside: Any) -> RequestCosts:
        sizes = self._parts.sizes(unit, inside)
        if None not in sizes:
            return RequestCosts({"GET": len(sizes)}, sum(map(int, sizes)))  # type: ignore[arg-type]
        whole = self._whole_size(unit)
        parts = sum(size for size in sizes if size is not None)
        return RequestCosts({"GET": len(sizes)}, None if whole is None else whole + parts)

    def _read_part(self, unit: Index, inside: Any) -> RequestCosts:
        index, pipeline = self.indexes.get(unit), self.chunks.metadata.pipeline_at(unit)
        if index is None or shard_of(pipeline) is None:
            is_missing = index is None and self._knows_indexes
            return RequestCosts({"GET": 1}, 0 if is_missing else None)
        located = locate(pipeline, HeldValue(index), inside)
        costs = self.read_ranges(index, [] if located is None else located.ranges)
        if self._parts.keeps_indexes:
            if unit in self._requested:
                return RequestCosts(
                    {"GET": costs.requests["GET"] - 1}, (costs.fetched or 0) - len(index)
                )
            self._requested.add(unit)
        return costs

    def _whole_size(self, unit: Index) -> int | None:
        """Return the size of a unit in bytes, as the index of a shard without gaps says it."""
        if self.units is not None:
            return self.units.get(unit, 0)
        metadata, index = self.chunks.metadata, None
        if metadata.shard is None:
            return metadata.pipeline_at(unit).encoded_size
        index = self.indexes.get(unit)
        if index is None:
            return 0 if self._knows_indexes else None
        shard = cast(Shard, metadata.pipeline_at(unit).serializer)
        table = shard.read_index(HeldValue(index))
        sizes = None if table is None else table.stored_bytes
        return None if sizes is None else shard.index_size + int(sizes[sizes > 0].sum())

    @property
    def _knows_indexes(self) -> bool:
        """Whether shards without an index are not stored."""
        return self.units is not None or self.chunks.metadata.grid.size <= self._parts.limit

    @cached_property
    def _requested(self) -> set[Index]:
        """The shards whose index is in the cache by then."""
        return set()

    def read_ranges(self, index: Buffer, ranges: list[Range]) -> RequestCosts:
        """Return the requests for the index of a shard and for ranges, whose neighbours join."""
        if self.chunks.units.capabilities.keeps_open:
            lengths = [length for (_, length), _ in OpenFile.joined(ranges)]
        else:
            requests = [("", start, length) for start, length in ranges]
            joined = join_ranges(requests, config.get("coalesce-gap"))
            lengths = [each.length or 0 for each in joined]
        return RequestCosts({"GET": 1 + len(lengths)}, len(index) + sum(lengths))

    def read_all(
        self, regions: Cutting, start: Index, *, tile: int, whole: bool = False
    ) -> RequestCosts | None:
        """Return the requests of tasks that read a region each; None if they are not known.

        The regions are counted from an element of the array, and read in tiles of about so many
        elements. `whole` says whether chunks and shards are fetched as a whole.
        """
        metadata = self.chunks.metadata
        if prod(axis.count for axis in metadata.read_grid.axes) > _MAX_CHUNKS:
            return None
        axes = metadata.grid.axes
        ones = _weighted(np.ones(metadata.grid.counts), axes, regions.edges, start)
        is_parted = self.reads_parts and not whole
        if not is_parted and self.units is None:
            return None
        if is_parted:
            if not self.are_planned(ones, metadata.grid.size):
                return None
            total, grid = RequestCosts({"GET": 0}, 0), metadata.read_grid
            least = prod(grid.chunk_shape) if self.chunks.costs.copies > 1 else 1
            for number in range(regions.size):
                for part in tiles(regions.region(number), grid.axes, start, tile, least):
                    total += self.read(shifted(part, start))
            return total
        sizes = np.zeros(metadata.grid.counts)
        for unit, size in (self.units or {}).items():
            sizes[unit] = size
        return RequestCosts({"GET": ones}, _weighted(sizes, axes, regions.edges, start))

    def read_sample(self, regions: Cutting, start: Index) -> RequestCosts:
        """Return the requests of tasks that read a region each, estimated from some chunks."""
        grid, total = self.chunks.metadata.grid, RequestCosts({"GET": 0}, 0)
        stops = [at + int(edges[-1]) for at, edges in zip(start, regions.edges, strict=True)]
        region = tuple(map(slice, start, stops, repeat(1)))
        numbers = [axis.numbers(pick) for axis, pick in zip(grid.axes, region, strict=True)]
        count = prod(map(len, numbers))
        sample = np.unique(np.linspace(0, count - 1, self._parts.limit).astype(np.int64))
        back = tuple(-at for at in start)
        for at in zip(*np.unravel_index(sample, [*map(len, numbers)]), strict=True):
            unit = tuple(axis[int(n)] for axis, n in zip(numbers, at, strict=True))
            box = intersection(grid.region(unit), region)
            for _, part in regions.overlapping(shifted(box, back)):
                origin = tuple(n - at for n, at in zip(start, grid.start(unit), strict=True))
                total += self._read_chunk(unit, shifted(part, origin))
        share = count / max(len(sample), 1)
        fetched = None if total.fetched is None else round(total.fetched * share)
        requests = {"GET": round(total.requests["GET"] * share)}
        return RequestCosts(requests, fetched, estimates={"fetched": SAMPLED})


def _weighted(
    sizes: np.ndarray, axes: Sequence[Axis], edges: Sequence[np.ndarray], start: Sequence[int]
) -> int:
    """Return the sum of sizes of chunks, each as often as regions overlap the chunk."""
    for axis, borders, at in zip(axes, edges, start, strict=True):
        starts, borders = axis.start(np.arange(axis.count + 1)), borders + at
        first = np.maximum(np.searchsorted(borders, starts[:-1], "right") - 1, 0)
        last = np.minimum(np.searchsorted(borders, starts[1:], "left"), len(borders) - 1)
        sizes = np.tensordot(sizes, np.maximum(last - first, 0), (0, 0))
    return int(sizes)


def overlapped(grid: ChunkGrid, region: Region) -> Iterator[Index]:
    """Yield the units that a region overlaps."""
    yield from product(*(axis.numbers(p) for axis, p in zip(grid.axes, region, strict=True)))


# ---- what writes store


def stored_bytes(
    metadata: ArrayMetadata, units: int, source: EncodedSizes | None
) -> tuple[int, str | None]:
    """Return the bytes of a number of units that will be encoded, and how they were estimated.

    They are known if no codec compresses.
    """
    if metadata.grid.is_regular:
        size = metadata.pipeline.encoded_size
        if size is not None:
            return units * size, None
        mean: float = prod(metadata.chunk_shape)
    else:
        mean = prod(axis.size / max(axis.count, 1) for axis in metadata.grid.axes)
    decoded = units * mean * metadata.dtype.itemsize
    if source is None or source.units is None:
        return int(decoded), UNCOMPRESSED
    return int(decoded * source.ratio), AS_SOURCE
