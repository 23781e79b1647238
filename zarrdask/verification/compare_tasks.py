"""Compare two arrays or hierarchies, in parallel."""

from math import prod
from typing import Any, NamedTuple

from zarrdask.chunks.stored import StoredChunks
from zarrdask.execution.executor import check_reached, run, workers
from zarrdask.execution.handle import Handle
from zarrdask.hierarchy.path import join_path, key_prefix, node_location
from zarrdask.indexing.selection import Region
from zarrdask.metadata.model import ArrayMetadata
from zarrdask.runtime.progress import Show
from zarrdask.runtime.progress import progress as show_progress
from zarrdask.storage.base import Store
from zarrdask.verification.compare import (
    ArrayComparison,
    Comparison,
    Difference,
    blocks,
    compare_region,
    differences,
)
from zarrdask.verification.scan import Scan, find_nodes

#: The bytes that a task holds of each array.
_TASK_BYTES = 2**25


class ComparedRegion(NamedTuple):
    """A region of two arrays that one task compares."""

    a: Handle
    b: Handle
    path: str
    region: Region


def compare(
    a: tuple[Store, str], b: tuple[Store, str], *, scheduler: Any, progress: Show
) -> Comparison:
    """Compare two nodes, and everything below them; see `zarrdask.verify`."""
    scan_a, scan_b = (find_nodes(store, path) for store, path in (a, b))
    nodes_a, nodes_b = scan_a.below(), scan_b.below()
    unequal = [
        Difference(path, "node", *("present", "missing")[:: 1 if path in nodes_a else -1])
        for path in sorted(nodes_a.keys() ^ nodes_b.keys())
    ]
    tasks, arrays = list[ComparedRegion](), dict[str, ArrayComparison]()
    for path in sorted(nodes_a.keys() & nodes_b.keys()):
        one, other = nodes_a[path], nodes_b[path]
        if one is None or other is None:
            valid = ["not valid" if node is None else "valid" for node in (one, other)]
            unequal.append(Difference(path, "node", *valid))
            continue
        unequal += differences(path, one, other)
        if not isinstance(one, ArrayMetadata) or not isinstance(other, ArrayMetadata):
            continue
        if one.shape == other.shape:
            handles = _handle(scan_a, path, one), _handle(scan_b, path, other)
            regions = blocks(handles[0].chunks, handles[1].chunks, _TASK_BYTES)
            tasks += [ComparedRegion(*handles, path, region) for region in regions]
            arrays[path] = ArrayComparison(path, prod(one.shape))
    # What explains other differences comes first: nodes that are missing, or of another kind.
    unequal.sort(key=lambda difference: (difference.what != "node", difference.path))
    bar = show_progress(len(tasks), "compare", progress, unit="region")
    with workers(scheduler) as on, bar as shown:
        check_reached(on, scan_a.base, scan_b.base)
        results = run(compare_regions, tasks, on=on, finished=lambda *_: shown.advance())
    for result in results:
        arrays[result.path] += result
    return Comparison(node_location(*a), node_location(*b), tuple(arrays.values()), tuple(unequal))


def _handle(scan: Scan, below: str, metadata: ArrayMetadata) -> Handle:
    prefix = key_prefix(join_path(scan.path, below))
    return Handle(StoredChunks(scan.store, prefix, metadata))


def compare_regions(task: ComparedRegion) -> ArrayComparison:
    """Compare a region. This is the task: dashboards of clusters show its name."""
    return compare_region(task.a.chunks, task.b.chunks, task.path, task.region)
