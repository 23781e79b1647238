"""A rewrite by workers that hand each other what they read: what each of them does.

Nothing here knows how they reach each other.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np

from zarrdask.errors import StoreError
from zarrdask.indexing.regions import view, within
from zarrdask.indexing.selection import Region, region_shape
from zarrdask.plan.regions import Cutting
from zarrdask.rewrite.passes import Stored, Work, pack
from zarrdask.runtime.workspace import Slot

#: Pieces that are asked for before the one that is waited for has come.
_AHEAD = 2
#: Asks for a piece, by the numbers of who read it and who writes it; what it returns waits for
#: its bytes.
Ask = Callable[[int, int], Callable[[], np.ndarray]]


@dataclass(frozen=True, eq=False)
class Exchange:
    """A pass over an array, box by box, within which workers hand each other pieces.

    Attributes
    ----------
    regions : Cutting
        The boxes.
    reads, units : Cutting
        What is read at a time, and what is written: each lies in one box.
    source, target : Stored
    dtype : numpy.dtype
        Of the values on the way.
    threads : int
        How many of a worker read or write at a time.
    slab : int
        Bytes that each reads at a time, if no piece is larger.
    processes : int
        How many workers there are.
    """

    regions: Cutting
    reads: Cutting
    units: Cutting
    source: Stored
    target: Stored
    dtype: np.dtype[Any]
    threads: int
    slab: int
    processes: int

    def readers(self, box: int) -> list[int]:
        """Return the numbers of what is read of a box."""
        return _numbers(self.reads, self.regions.region(box))

    def writers(self, box: int) -> list[int]:
        """Return the numbers of what is written of a box."""
        return _numbers(self.units, self.regions.region(box))

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self.dtype.itemsize

    def owners(self, box: int) -> dict[int, int]:
        """Return which worker reads what of a box."""
        return {number: at % self.processes for at, number in enumerate(self.readers(box))}


def _numbers(cutting: Cutting, box: Region) -> list[int]:
    axes = []
    for edges, pick in zip(cutting.edges, box, strict=True):
        first, last = np.searchsorted(edges, (pick.start, pick.stop))
        axes.append(range(int(first), int(last)))
    return [cutting.number(index) for index in product(*axes)]


class Member:
    """One of the workers: what it read of a box stays here until all is written.

    Parameters
    ----------
    do : Exchange
    """

    def __init__(self, do: Exchange) -> None:
        self._do = do
        self._work = Work(do.dtype, do.slab, Slot(do.threads))
        self._held: dict[tuple[int, int], np.ndarray] = {}

    def take(self, number: int) -> None:
        """Read a region, and keep it, in pieces for those who write."""
        do, region = self._do, self._do.reads.region(number)
        # Not from the slot: it stays when the next region is read.
        buffer = np.empty(prod(region_shape(region)), do.dtype)
        for index, piece in pack(region, do.units, do.source, buffer, self._work).items():
            self._held[number, do.units.number(index)] = piece

    def piece(self, reader: int, writer: int) -> np.ndarray:
        """Return the bytes that one region that was read here has for one that is written.

        Raises
        ------
        StoreError
            If it is not here.
        """
        found = self._held.get((reader, writer))
        if found is None:
            raise StoreError(
                "a worker no longer has what it read", key=f"{reader}", expected=f"for {writer}"
            )
        # Not every way to another process knows all data types.
        return found.reshape(-1).view(np.uint8)

    def give(self, number: int, ask: Ask) -> int:
        """Write a region, of what all have for it; return how many units there are then."""
        asked = _Asked(self._do.reads, number, ask)
        return self._do.target.save(self._do.units, number, asked, self._work)

    def clear(self) -> None:
        """Forget what was read."""
        self._held.clear()


@dataclass(frozen=True, eq=False)
class _Asked:
    """What workers hold of a region that one of them writes."""

    reads: Cutting
    number: int
    ask: Ask

    def load(self, region: Region, values: np.ndarray, _: Work) -> None:
        """Ask for all pieces of the region, a few at a time."""
        waiting: deque[tuple[Region, Callable[[], np.ndarray]]] = deque()

        def put() -> None:
            part, piece = waiting.popleft()
            place = view(values, within(part, region))
            place[...] = piece().view(values.dtype).reshape(place.shape)

        for part, number in self._parts(region):
            waiting.append((part, self.ask(number, self.number)))
            if len(waiting) > _AHEAD:
                put()
        while waiting:
            put()

    def _parts(self, region: Region) -> Sequence[tuple[Region, int]]:
        found = [(part, self.reads.number(at)) for at, part in self.reads.meeting(region)]
        # Not all workers ask the same one first.
        first = self.number % max(len(found), 1)
        return found[first:] + found[:first]
