"""The requests and bytes of encoded chunks that are copied, and of a whole copy."""

from collections.abc import Iterable, Sequence
from itertools import chain, product
from math import prod
from typing import cast

from zarrdask.formats.byte_ranges import Range
from zarrdask.formats.codecs.array_to_bytes.sharding import Shard
from zarrdask.formats.codecs.byte_source import HeldValue
from zarrdask.formats.grids.chunk_grid import Index
from zarrdask.formats.indexing.selection import shifted
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.parallel.graph.encoded_sizes import EncodedSizes, overlapped, stored_bytes
from zarrdask.parallel.plan.request_costs import RequestCosts
from zarrdask.parallel.rewrite.copying.copy_tasks import Part
from zarrdask.parallel.rewrite.copying.move import InnerGrid, Transfer, recode_grid

#: The requests for encoded chunks, and the sizes of these chunks.
_Chunks = tuple[RequestCosts, list[int]]


def planned_costs(tasks: Iterable[Iterable[Part]]) -> RequestCosts:
    """Return the requests for chunks and shards of tasks, and the bytes that they move."""
    sources, total = dict[int, EncodedSizes](), RequestCosts({"GET": 0, "PUT": 0}, 0, 0)
    for part in chain.from_iterable(tasks):
        if part.job not in sources:
            sources[part.job] = EncodedSizes.listed(part.source)
        source, after = sources[part.job], part.target.metadata
        if part.transfer is None:
            total += _of_values(part, source)
        else:
            total += moved_costs(part.transfer, source, after, part.indices)
    return total


def _of_values(part: Part, source: EncodedSizes) -> RequestCosts:
    before, after = part.source.metadata, part.target.metadata
    grid, total, puts = recode_grid(before, after), RequestCosts({"GET": 0}, 0, 0), 0
    for index in part.indices:
        region = grid.region(index)
        read = region if part.start is None else shifted(region, part.start)
        fetched = source.read(read)
        total += RequestCosts(fetched.requests, fetched.fetched, 0)
        puts += sum(1 for _ in overlapped(after.grid, region))
    stored, basis = stored_bytes(after, puts, source)
    estimates = {} if basis is None else {"stored": basis}
    return total + RequestCosts({"PUT": puts}, 0, stored, estimates)


def moved_costs(
    transfer: Transfer, source: EncodedSizes, after: ArrayMetadata, indices: Sequence[Index]
) -> RequestCosts:
    """Return the requests to move encoded units, as `move_units` and `move_inner` do."""
    if transfer == "units":
        nbytes, units = source.total(indices), source.units
        puts = len(indices) if units is None else sum(index in units for index in indices)
        return RequestCosts({"GET": len(indices), "PUT": puts}, nbytes, nbytes)
    total = RequestCosts({"GET": 0, "PUT": 0}, 0, 0)
    grid = InnerGrid(source.chunks.metadata if after.shard is None else after)
    for index in indices:
        chunks = [*product(*grid.range_of(index))]
        if after.shard is None:
            fetched, sizes = _in_shard(source, index, chunks)
            puts, stored = len(sizes), sum(sizes)
        else:
            fetched, sizes = _anywhere(source, chunks)
            puts = 1 if sizes else 0
            stored = sum(sizes) + after.shard.index_size if sizes else 0
        total += RequestCosts({**fetched.requests, "PUT": puts}, fetched.fetched, stored)
    return total


def _in_shard(source: EncodedSizes, unit: Index, chunks: list[Index]) -> _Chunks:
    inner, index = InnerGrid(source.chunks.metadata), source.indexes.get(unit)
    if index is None:
        return RequestCosts({"GET": 1}, None if source.units is None else 0), []
    shard = cast(Shard, source.chunks.metadata.pipeline_at(unit).serializer)
    table = shard.read_index(HeldValue(index))
    positions = [inner.position(unit, chunk) for chunk in chunks]
    ranges: list[Range] = [] if table is None else table.locate(positions)[2]
    sizes = [length for _, length in ranges]
    is_whole = len(chunks) == prod(map(len, inner.range_of(unit)))
    if is_whole and source.chunks.costs.overlaps:
        return RequestCosts({"GET": 1}, source.total([unit])), sizes
    return source.read_ranges(index, ranges), sizes


def _anywhere(source: EncodedSizes, chunks: list[Index]) -> _Chunks:
    """Return the requests for encoded chunks that are in shards, or not."""
    if source.chunks.metadata.shard is None:
        units = source.units or {}
        costs = RequestCosts({"GET": len(chunks)}, source.total(chunks))
        return costs, [units[chunk] for chunk in chunks if chunk in units]
    inner, members = InnerGrid(source.chunks.metadata), dict[Index, list[Index]]()
    for chunk in chunks:
        members.setdefault(inner.unit_of(chunk), []).append(chunk)
    total, sizes = RequestCosts({"GET": 0}, 0), list[int]()
    for unit, each in members.items():
        costs, lengths = _in_shard(source, unit, each)
        total += costs
        sizes += lengths
    return total, sizes
