"""Compare two arrays or hierarchies, in parallel."""

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, NamedTuple

from zarrdask.chunks.stored import StoredChunks
from zarrdask.execution.executor import check_reached, run, workers
from zarrdask.execution.handle import Handle
from zarrdask.execution.progress import progress as show_progress
from zarrdask.hierarchy.path import join_path, key_prefix, node_location
from zarrdask.indexing.selection import Region
from zarrdask.metadata.model import ArrayMetadata, Metadata
from zarrdask.storage.base import Store
from zarrdask.storage.consolidated import plain
from zarrdask.verification.compare import (
    ArrayComparison,
    Comparison,
    Difference,
    blocks,
    compare_region,
    differences,
)
from zarrdask.verification.scan import Census, find_nodes

Nodes = Mapping[str, Metadata | None]

#: Bytes that a task holds of each of both.
_BYTES = 2**25


class Pair(NamedTuple):
    """A region of two arrays that a task compares."""

    a: Handle
    b: Handle
    path: str
    region: Region


def compare(
    here: tuple[Store, str], there: tuple[Store, str], *, scheduler: Any, progress: bool
) -> Comparison:
    """Compare two nodes, each given by store and path, and all below: see `zarrdask.verify`."""
    a, b = (find_nodes(plain(store), path) for store, path in (here, there))
    ours, theirs = a.below(), b.below()
    told = list(_only_in_one(ours, theirs))
    works, arrays = list[Pair](), dict[str, ArrayComparison]()
    for path in sorted(ours.keys() & theirs.keys()):
        one, other = ours[path], theirs[path]
        if one is None or other is None:
            valid = ["not valid" if each is None else "valid" for each in (one, other)]
            told.append(Difference(path, "node", *valid))
            continue
        told += differences(path, one, other)
        if not isinstance(one, ArrayMetadata) or not isinstance(other, ArrayMetadata):
            continue
        if one.shape == other.shape:
            handles = _handle(a, path, one), _handle(b, path, other)
            regions = blocks(handles[0].chunks, handles[1].chunks, _BYTES)
            works += [Pair(*handles, path, region) for region in regions]
            arrays[path] = ArrayComparison(path, prod(one.shape))
    bar = show_progress(len(works), "compare", progress, unit="region")
    with workers(scheduler) as on, bar as shown:
        for census in (a, b):
            check_reached(plain(census.store), on)
        found = run(compare_regions, works, scheduler=on, finished=lambda *_: shown.advance())
    for each in found:
        arrays[each.path] += each
    return Comparison(
        node_location(*here), node_location(*there), tuple(arrays.values()), tuple(told)
    )


def _only_in_one(ours: Nodes, theirs: Nodes) -> Iterator[Difference]:
    for path in sorted(ours.keys() ^ theirs.keys()):
        there, missing = "there", "missing"
        yield Difference(path, "node", *((there, missing) if path in ours else (missing, there)))


def _handle(census: Census, below: str, metadata: ArrayMetadata) -> Handle:
    prefix = key_prefix(join_path(census.path, below))
    return Handle(StoredChunks(plain(census.store), prefix, metadata))


def compare_regions(pair: Pair) -> ArrayComparison:
    """Compare a region: the task."""
    return compare_region(pair.a.chunks, pair.b.chunks, pair.path, pair.region)
