"""Refuse a call that would write the same elements of an array twice."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.errors import SelectionError


def overlapping(regions: Iterable[ArrayRegion]) -> Iterator[tuple[int, int]]:
    """Yield the positions of all pairs of regions that have elements in common."""
    numbered = sorted(
        enumerate(regions), key=lambda each: (each[1].canonical_location, each[1].start[:1])
    )
    for _, group in groupby(numbered, lambda each: each[1].canonical_location):
        # As the regions are sorted, only those that end after the start of the next can overlap.
        active: list[tuple[int, ArrayRegion]] = []
        for number, region in group:
            active = [
                each
                for each in active
                if not region.region or each[1].region[0].stop > region.start[0]
            ]
            for other_number, other in active:
                if other.overlaps(region):
                    yield min(other_number, number), max(other_number, number)
            active.append((number, region))


def check_disjoint(regions: Sequence[ArrayRegion]) -> None:
    """Check that no two regions of one call have elements in common."""
    for first, second in overlapping(regions):
        raise SelectionError(
            "two arrays would be written to the same elements, in no defined order; "
            "store one after the other",
            key=regions[first].stored.location,
            found=f"{regions[first]} and {regions[second]}",
            expected="regions that do not overlap",
        )
