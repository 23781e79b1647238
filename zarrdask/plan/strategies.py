"""The source and target of a rewrite, its costs, and its possible strategies, as data."""

from dataclasses import dataclass
from math import prod
from typing import Literal, NamedTuple

import numpy as np

from zarrdask.grids.base import Axis, Shape
from zarrdask.plan.regions import Cutting

#: The largest number of bytes that a thread reads at a time, unless a piece is larger, and the
#: divisor of the memory for the same limit.
_SLAB, PART = 2**22, 8
#: The overhead of a request in bytes that could be moved meanwhile: on a local disk, and elsewhere.
NEAR, FAR = 2**15, 2**19
#: The cost of a byte that processes exchange, relative to a byte of such a store.
HANDED_NEAR, HANDED_FAR = 1.5, 0.5


class Costs(NamedTuple):
    """The resources of a rewrite, and the costs of its parts.

    Attributes
    ----------
    memory : int
        The bytes that a process may hold.
    threads : int
        The number of threads of a process.
    processes : int
        The number of processes.
    request : int
        The overhead of a request, in bytes that could be moved meanwhile.
    packs : bool
        Whether values can be packed between passes: they have a fixed size.
    at_once : int
        The number of tasks that a process runs at a time.
    copies : int
        The number of copies of a value in memory while it is read or written: two, if the store
        needs a copy of its own or returns several values at once.
    exchanges : bool
        Whether processes can exchange values.
    network : float
        The cost of a byte that processes exchange, relative to a byte of a store.
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
        """The bytes that a task may hold."""
        return self.memory // self.at_once

    @property
    def share(self) -> int:
        """The number of threads that a task may use."""
        return max(self.threads // self.at_once, 1)

    @property
    def tasks(self) -> int:
        """The number of tasks that run at a time."""
        return self.processes * self.at_once

    @property
    def slab(self) -> int:
        """The bytes that a thread reads at a time, if no piece is larger."""
        return max(min(_SLAB * max(self.request // NEAR, 1), self.room // PART), 1)


@dataclass(frozen=True, eq=False)
class Stage:
    """One pass over the array: a task for each region.

    Attributes
    ----------
    regions : Cutting
        The regions that the tasks own.
    reads : {"source", "packed", "held", "blocks"}
        What the tasks read: stored chunks, packed pieces, pieces in the memory of other workers, or
        blocks of a Dask array.
    writes : {"packed", "held", "target"}
        What the tasks write: packed pieces, pieces in memory, or units of the target.
    requests : int
        The number of reads and writes of all tasks.
    bytes_read, bytes_written : int
        The decoded bytes that all tasks read and write.
    peak : int
        The largest number of bytes that a task holds at a time.
    threads : int
        The number of threads of a task that read or write.
    slab : int
        The bytes that a thread reads at a time, if no piece is larger.
    at_once : int
        The number of tasks that a process runs at a time.
    moves : {"units", "inner"}, optional
        Set if encoded bytes are moved: those of whole units, or of the chunks in shards.
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
        """The number of tasks."""
        return self.regions.size


class Exchanged(NamedTuple):
    """The values that workers exchange.

    Attributes
    ----------
    boxes : Cutting
        The parts of the array within which they exchange values, one after another.
    nbytes : int
        The number of exchanged bytes.
    pieces : int
        The number of exchanged pieces.
    """

    boxes: Cutting
    nbytes: int
    pieces: int


@dataclass(frozen=True, eq=False)
class Scheme:
    """A strategy to rewrite an array.

    Attributes
    ----------
    name : str
        "bytes as they are", "blocks as they are", "one pass", "in the cluster", "two passes" or
        "three passes".
    stages : tuple of Stage
        The passes.
    cost : float
        The moved bytes, and all else as bytes that could be moved in the same time.
    exchange : Exchanged, optional
        The values that workers exchange, if they do.
    """

    name: str
    stages: tuple[Stage, ...]
    cost: float
    exchange: Exchanged | None = None

    @property
    def cuttings(self) -> tuple[Cutting, ...]:
        """The regions of all passes, after the boxes of an exchange."""
        boxes = () if self.exchange is None else (self.exchange.boxes,)
        return (*boxes, *(stage.regions for stage in self.stages))

    @property
    def moved(self) -> int:
        """The number of bytes that are read and written."""
        return sum(stage.bytes_read + stage.bytes_written for stage in self.stages)

    @property
    def requests(self) -> int:
        """The number of reads and writes."""
        return sum(stage.requests for stage in self.stages)

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return sum(stage.tasks for stage in self.stages)

    @property
    def peak(self) -> int:
        """The largest number of bytes that a process holds at a time."""
        return max(stage.peak * stage.at_once for stage in self.stages)


@dataclass(frozen=True, eq=False)
class Grids:
    """The chunk grids of the source and the target of a rewrite.

    Attributes
    ----------
    shape : tuple of int
        The shape of the array.
    itemsize : int
        The size of an element in memory, in bytes.
    source : tuple of (int or ndarray of int)
        The smallest pieces that can be read: their length along each axis, or the boundaries
        between them.
    target : tuple of (int or ndarray of int)
        The units that have one writer each: their length along each axis, or the boundaries.
    moves : {"units", "inner"}, optional
        Set if source and target have the same encoded bytes: those of units, or of the chunks in
        shards.
    shards : tuple of (int or ndarray of int), optional
        The shards of the source, if encoded chunks are moved out of them to a target without
        shards.
    """

    shape: Shape
    itemsize: int
    source: tuple[Axis, ...]
    target: tuple[Axis, ...]
    moves: Literal["units", "inner"] | None = None
    shards: tuple[Axis, ...] | None = None

    @property
    def owners(self) -> tuple[Axis, ...]:
        """The grid that a task which moves encoded bytes must own entirely: of units, or shards."""
        return self.target if self.shards is None else self.shards

    @property
    def nbytes(self) -> int:
        """The decoded size of the array in bytes."""
        return prod(self.shape) * self.itemsize

    def longest(self, grid: Literal["source", "target"]) -> Shape:
        """Return the greatest length of a grid's chunks along each axis, without clipping."""
        return lengths_of(self.source if grid == "source" else self.target)

    def largest(self, grid: Literal["source", "target"]) -> int:
        """Return the decoded size of the largest chunk of a grid in bytes, without clipping."""
        return prod(self.longest(grid)) * self.itemsize


def lengths_of(axes: tuple[Axis, ...]) -> Shape:
    """Return the greatest length of chunks along each axis, not clipped to the array."""
    return tuple(a if isinstance(a, int) else int(np.diff(a).max(initial=0)) for a in axes)
