"""Refuse a call that would write the same elements of an array twice."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from zarrdask.errors import SelectionError
from zarrdask.indexing.regions import overlap
from zarrdask.indexing.selection import Region


class WrittenRegion(NamedTuple):
    """The region of a stored array that a write covers."""

    #: The place of the array's chunks, as returned by `zarrdask.runtime.locks.location_of`.
    place: str
    #: The location of the array, for error messages.
    location: str
    region: Region

    def __str__(self) -> str:
        return f"[{', '.join(f'{pick.start}:{pick.stop}' for pick in self.region)}]"

    @property
    def start(self) -> int:
        """The first index along the first axis."""
        return self.region[0].start if self.region else 0

    def overlaps(self, other: "WrittenRegion") -> bool:
        """Whether two regions of arrays at the same place have elements in common."""
        return overlap(self.region, other.region)


def overlapping(regions: Iterable[WrittenRegion]) -> Iterator[tuple[int, int]]:
    """Yield the positions of all pairs of regions that have elements in common.

    >>> regions = [WrittenRegion("a/", "a", (slice(at, at + 4),)) for at in (0, 4, 7)]
    >>> list(overlapping(regions))
    [(1, 2)]
    """
    numbered = sorted(enumerate(regions), key=lambda each: (each[1].place, each[1].start))
    for _, group in groupby(numbered, lambda each: each[1].place):
        # As the regions are sorted, only those that end after the start of the next can overlap.
        active: list[tuple[int, WrittenRegion]] = []
        for number, region in group:
            active = [
                each
                for each in active
                if not each[1].region or each[1].region[0].stop > region.start
            ]
            for other_number, other in active:
                if other.overlaps(region):
                    yield min(other_number, number), max(other_number, number)
            active.append((number, region))


def check_disjoint(regions: Sequence[WrittenRegion]) -> None:
    """Check that no two regions of one call have elements in common."""
    for first, second in overlapping(regions):
        raise SelectionError(
            "two arrays would be written to the same elements, in no defined order; "
            "store one after the other",
            key=regions[first].location,
            found=f"{regions[first]} and {regions[second]}",
            expected="regions that do not overlap",
        )
