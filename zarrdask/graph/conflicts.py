"""Refuse one call that would write the same elements of an array twice."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from zarrdask.errors import SelectionError
from zarrdask.indexing.selection import Region


class Part(NamedTuple):
    """The region of a stored array that a write covers.

    Attributes
    ----------
    place : str
        Where the chunks of the array are stored, as returned by
        `zarrdask.runtime.locks.location_of`.
    location : str
        The location of the array, for error messages.
    region : tuple of slice
        The region.
    """

    place: str
    location: str
    region: Region

    def __str__(self) -> str:
        return f"[{', '.join(f'{pick.start}:{pick.stop}' for pick in self.region)}]"

    @property
    def start(self) -> int:
        """The first index along the first axis."""
        return self.region[0].start if self.region else 0

    def overlaps(self, other: "Part") -> bool:
        """Whether both parts, of arrays in the same place, have elements in common.

        An array that is replaced by one with another number of dimensions overlaps all of it.
        """
        return len(self.region) != len(other.region) or all(
            max(a.start, b.start) < min(a.stop, b.stop)
            for a, b in zip(self.region, other.region, strict=True)
        )


def overlapping(parts: Iterable[Part]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of all pairs of parts that have elements in common.

    >>> parts = [Part("a/", "a", (slice(at, at + 4),)) for at in (0, 4, 7)]
    >>> list(overlapping(parts))
    [(1, 2)]
    """
    numbered = sorted(enumerate(parts), key=lambda each: (each[1].place, each[1].start))
    for _, group in groupby(numbered, lambda each: each[1].place):
        # Parts that may reach the next one: they are sorted along the first axis.
        reaching: list[tuple[int, Part]] = []
        for number, part in group:
            reaching = [
                each
                for each in reaching
                if not each[1].region or each[1].region[0].stop > part.start
            ]
            for other_number, other in reaching:
                if other.overlaps(part):
                    yield min(other_number, number), max(other_number, number)
            reaching.append((number, part))


def check_apart(parts: Sequence[Part]) -> None:
    """Check that no two writes of one call have elements in common.

    Raises
    ------
    SelectionError
        If two of them have.
    """
    for one, other in overlapping(parts):
        raise SelectionError(
            "two of the arrays are written to the same elements, and nothing determines which is "
            "written last; store one after the other",
            key=parts[one].location,
            found=f"{parts[one]} and {parts[other]}",
            expected="regions that do not overlap",
        )
