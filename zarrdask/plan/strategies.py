"""What is rewritten, what it may cost, and the ways to do it: as data."""

from dataclasses import dataclass
from math import prod
from typing import Literal, NamedTuple

import numpy as np

from zarrdask.grids.base import Axis, Shape
from zarrdask.plan.regions import Cutting

#: What is read at a time, at most, unless a piece is larger: these bytes, a part of the memory.
_SLAB, PART = 2**22, 8
#: What a request costs besides its bytes, as bytes: on a local disk, and elsewhere.
NEAR, FAR = 2**15, 2**19
#: What a byte costs that goes from process to process, as bytes of such a store.
HANDED_NEAR, HANDED_FAR = 1.5, 0.5


class Costs(NamedTuple):
    """What a plan has to reckon with.

    Attributes
    ----------
    memory : int
        Bytes that a process may hold.
    threads : int
        How many each may have.
    processes : int
        How many there are.
    request : int
        What a request costs besides its bytes: as bytes that could be moved meanwhile.
    packs : bool
        Whether values may be packed: they have a fixed size.
    at_once : int
        How many tasks a process does at a time.
    copies : int
        How often a value is in memory while a store gives or takes it: twice, where that wants
        bytes of its own, or gives several values at once.
    exchanges : bool
        Whether processes can hand values to each other.
    network : float
        What a byte costs that they do: as bytes of a store.
    """

    memory: int
    threads: int = 1
    processes: int = 1
    request: int = NEAR
    packs: bool = True
    at_once: int = 1
    copies: int = 1
    exchanges: bool = False
    network: float = HANDED_NEAR

    @property
    def room(self) -> int:
        """Bytes that a task may hold."""
        return self.memory // self.at_once

    @property
    def share(self) -> int:
        """How many threads a task may have."""
        return max(self.threads // self.at_once, 1)

    @property
    def tasks(self) -> int:
        """How many run at a time."""
        return self.processes * self.at_once

    @property
    def slab(self) -> int:
        """Bytes that a thread reads at a time, if pieces are no larger."""
        return max(min(_SLAB * max(self.request // NEAR, 1), self.room // PART), 1)


@dataclass(frozen=True, eq=False)
class Stage:
    """One pass over the array: a task for each region.

    Attributes
    ----------
    regions : Cutting
        What the tasks own.
    reads : {"source", "packed", "held", "blocks"}
        Where from: stored chunks, packed pieces, what workers hold, blocks of a Dask array.
    writes : {"packed", "held", "target"}
        Where to.
    requests : int
        Reads and writes of all tasks.
    bytes_read, bytes_written : int
        Of all tasks, decoded.
    peak : int
        The most bytes that a task holds.
    threads : int
        How many threads of a task read or write at a time.
    slab : int
        Bytes that a thread reads at a time, if pieces are no larger.
    at_once : int
        How many tasks a process does at a time.
    moves : {"units", "inner"}, optional
        Whether encoded bytes are moved: of whole units, or of the chunks in shards.
    """

    regions: Cutting
    reads: Literal["source", "packed", "held", "blocks"]
    writes: Literal["packed", "held", "target"]
    requests: int
    bytes_read: int
    bytes_written: int
    peak: int
    threads: int
    slab: int
    at_once: int = 1
    moves: Literal["units", "inner"] | None = None

    @property
    def tasks(self) -> int:
        """How many there are."""
        return self.regions.size


class Exchanged(NamedTuple):
    """What workers hand to each other.

    Attributes
    ----------
    boxes : Cutting
        They do so within one of these after another.
    nbytes : int
        How much.
    pieces : int
        In how many pieces.
    """

    boxes: Cutting
    nbytes: int
    pieces: int


@dataclass(frozen=True, eq=False)
class Scheme:
    """A way to rewrite an array.

    Attributes
    ----------
    name : str
        "bytes as they are", "blocks as they are", "one pass", "in the cluster", "two passes" or
        "three passes".
    stages : tuple of Stage
    cost : float
        Bytes that are moved, and what else takes time, as bytes.
    exchange : Exchanged, optional
        What workers hand to each other, if they do.
    """

    name: str
    stages: tuple[Stage, ...]
    cost: float
    exchange: Exchanged | None = None

    @property
    def cuttings(self) -> tuple[Cutting, ...]:
        """All regions that tasks are for."""
        boxes = () if self.exchange is None else (self.exchange.boxes,)
        return (*boxes, *(stage.regions for stage in self.stages))

    @property
    def moved(self) -> int:
        """Bytes that are read and written."""
        return sum(stage.bytes_read + stage.bytes_written for stage in self.stages)

    @property
    def requests(self) -> int:
        """Reads and writes."""
        return sum(stage.requests for stage in self.stages)

    @property
    def tasks(self) -> int:
        """How many there are."""
        return sum(stage.tasks for stage in self.stages)

    @property
    def peak(self) -> int:
        """The most bytes that a process holds."""
        return max(stage.peak * stage.at_once for stage in self.stages)


@dataclass(frozen=True, eq=False)
class Grids:
    """What is rewritten into what.

    Attributes
    ----------
    shape : tuple of int
    itemsize : int
        In bytes, of an element in memory.
    source : tuple of (int or ndarray of int)
        The smallest pieces that can be read: their length along each axis, or the boundaries.
    target : tuple of (int or ndarray of int)
        The units that have one writer, likewise.
    moves : {"units", "inner"}, optional
        Whether encoded bytes are the same in both: of units, or of the chunks in shards.
    shards : tuple of (int or ndarray of int), optional
        The source's, if encoded chunks are moved out of them and the target has none.
    """

    shape: Shape
    itemsize: int
    source: tuple[Axis, ...]
    target: tuple[Axis, ...]
    moves: Literal["units", "inner"] | None = None
    shards: tuple[Axis, ...] | None = None

    @property
    def owners(self) -> tuple[Axis, ...]:
        """What a task that moves encoded bytes has to have all of: units, or shards it opens."""
        return self.target if self.shards is None else self.shards

    @property
    def nbytes(self) -> int:
        """Of the array, decoded."""
        return prod(self.shape) * self.itemsize

    def longest(self, grid: Literal["source", "target"]) -> Shape:
        """Return the greatest length of a grid's chunks along each axis, as they are stored."""
        return lengths_of(self.source if grid == "source" else self.target)

    def largest(self, grid: Literal["source", "target"]) -> int:
        """Return the size of the largest chunk of a grid, in bytes, as it is stored."""
        return prod(self.longest(grid)) * self.itemsize


def lengths_of(axes: tuple[Axis, ...]) -> Shape:
    """Return the greatest length of chunks along each axis, as they are stored."""
    return tuple(a if isinstance(a, int) else int(np.diff(a).max(initial=0)) for a in axes)
