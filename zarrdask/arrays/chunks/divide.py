"""Projections whose entries are divided, so that several threads can read one shard. Pure."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from zarrdask.formats.indexing.projection import Points, Projection, Regions
from zarrdask.formats.indexing.selection import Region, pick_size, whole_region

#: A requested region of a shard, the number of its block if there are several, and its index there.
_Part = tuple[Region, int, tuple[slice, ...]]


def divide(
    projection: Projection, shard_shape: Sequence[int], chunk_shape: Sequence[int], count: int
) -> Projection:
    """Divide each entry into up to `count`, at boundaries of the chunks in the shards.

    No chunk is in two entries. Requests that are not made of slices stay as they are.

    Examples
    --------
    >>> projection = Projection([(3,)], [(slice(1, 7, 1),)], [(slice(0, 6),)])
    >>> for inside, outside in zip(*divide(projection, (8,), (2,), 2)[1:]):
    ...     print(inside, outside)
    (slice(1, 4, 1),) (slice(0, 3, None),)
    (slice(4, 7, 1),) (slice(3, 6, None),)
    """
    divided = Projection([], [], [])
    for index, inside, outside in zip(*projection, strict=True):
        parts = _parts(inside, outside, shard_shape)
        slabs: list[tuple[Any, Any]] = []
        if parts is not None:
            slabs = list(_slabs(parts, chunk_shape, count))
        if len(slabs) < 2:
            slabs = [(inside, outside)]
        elif not isinstance(inside, Regions):
            slabs = [(picks.regions[0], outsides[0][1]) for picks, outsides in slabs]
        for part, outside in slabs:
            divided.indices.append(index)
            divided.insides.append(part)
            divided.outsides.append(outside)
    return divided


def _parts(inside: Any, outside: Any, shard_shape: Sequence[int]) -> list[_Part] | None:
    """Return the regions of an entry, or None if it has other requests, or no axes."""
    if not shard_shape or isinstance(inside, Points):
        return None
    regions = inside.regions if isinstance(inside, Regions) else (inside,)
    outsides = outside if isinstance(inside, Regions) else ((0, outside),)
    whole = whole_region(tuple(shard_shape))
    parts = [
        (whole if region is None else region, number, outside)
        for region, (number, outside) in zip(regions, outsides, strict=True)
    ]
    picks = (pick for region, _, _ in parts for pick in region)
    return parts if all(isinstance(pick, slice) for pick in picks) else None


def _slabs(
    parts: list[_Part], chunk_shape: Sequence[int], count: int
) -> Iterator[tuple[Regions, list[tuple[int, Any]]]]:
    """Yield the parts of regions between planes, across the axis with the most chunks."""
    spans = []
    for axis, length in enumerate(chunk_shape):
        first = min(region[axis].start for region, _, _ in parts) // length
        last = max(region[axis].stop - 1 for region, _, _ in parts) // length
        spans.append((last + 1 - first, first))
    axis = max(range(len(spans)), key=lambda each: spans[each][0])
    chunks, first = spans[axis]
    count = min(count, chunks)
    planes = [(first + n * chunks // count) * chunk_shape[axis] for n in range(count + 1)]
    for start, stop in pairwise(planes):
        slab = [part for each in parts if (part := _between(each, axis, start, stop)) is not None]
        if slab:
            picks = Regions(tuple(region for region, _, _ in slab))
            yield picks, [(number, outside) for _, number, outside in slab]


def _between(part: _Part, axis: int, start: int, stop: int) -> _Part | None:
    """Return the part of a region between two planes, or None if there is none."""
    region, number, outside = part
    pick, target = region[axis], outside[axis]
    size = pick_size(pick)
    # The numbers of the first element of the pick from each plane on.
    low, high = (
        min(max(-(-(plane - pick.start) // pick.step), 0), size) for plane in (start, stop)
    )
    if low == high:
        return None
    begin = pick.start + low * pick.step
    cut = slice(begin, begin + (high - low - 1) * pick.step + 1, pick.step)
    moved = slice(target.start + low, target.start + high)
    return (
        (*region[:axis], cut, *region[axis + 1 :]),
        number,
        (*outside[:axis], moved, *outside[axis + 1 :]),
    )
