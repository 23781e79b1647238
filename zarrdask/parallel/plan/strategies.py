"""The source and target of a rewrite, its costs, and its possible strategies, as data."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from zarrdask.formats.grids.axis import Axis
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.parallel.plan.owned_regions import Choice, Cutting, ReadEdges, choices
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import LOCAL_COSTS

T = TypeVar("T")

#: The largest number of bytes that a thread reads at a time, unless a piece is larger, and the
#: divisor of the memory for the same limit.
_SLAB, PART = 2**22, 8


#: The input and the output of the tasks of a pass.
Reads = Literal["source", "packed", "held", "blocks"]
Writes = Literal["packed", "held", "target"]


class Costs(NamedTuple):
    """The resources of a rewrite, and the costs of its parts."""

    #: The bytes that a process may hold.
    memory: int
    #: The number of threads of a process.
    threads: int = 1
    #: The number of processes.
    processes: int = 1
    #: The cost of a request, as in `StoreCosts`.
    request: int = LOCAL_COSTS.request
    #: Whether values can be packed between passes: they have a fixed size.
    packs: bool = True
    #: The number of tasks that a process runs at a time.
    at_once: int = 1
    #: The number of copies of a value in memory, as in `StoreCosts`.
    copies: int = LOCAL_COSTS.copies
    #: Whether processes can exchange values.
    exchanges: bool = False
    #: The cost of a byte that processes exchange, as in `StoreCosts`.
    network: float = LOCAL_COSTS.network

    def for_stores(self, stores: Iterable[Store]) -> "Costs":
        """Return the costs of a rewrite that sends requests to some stores: the slowest counts."""
        slowest = max((store.capabilities.costs for store in stores), default=LOCAL_COSTS)
        return self._replace(
            request=slowest.request, copies=slowest.copies, network=slowest.network
        )

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
        return max(min(_SLAB * max(self.request // LOCAL_COSTS.request, 1), self.room // PART), 1)


@dataclass(frozen=True, eq=False)
class Stage:
    """One pass over the array: a task for each region."""

    #: The regions that the tasks own.
    regions: Cutting
    #: The input of the tasks: stored chunks, packed pieces, pieces in the memory of other workers,
    #: or blocks of a Dask array.
    reads: Reads
    #: The output of the tasks: packed pieces, pieces in memory, or units of the target.
    writes: Writes
    #: The number of reads and writes of all tasks.
    requests: int
    #: The decoded bytes that all tasks read and write.
    bytes_read: int
    bytes_written: int
    #: The largest number of bytes that a task holds at a time.
    peak: int
    #: The number of threads of a task that read or write.
    threads: int
    #: The resources that the pass was planned for.
    costs: Costs
    #: Set if encoded bytes are copied unchanged: of whole units, or of the chunks in shards.
    moves: Literal["units", "inner"] | None = None

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return self.regions.size


class Exchanged(NamedTuple):
    """The bytes and the pieces that workers exchange, within one box of the array after another."""

    boxes: Cutting
    nbytes: int
    pieces: int


@dataclass(frozen=True, eq=False)
class Scheme:
    """A strategy to rewrite an array."""

    #: "bytes as they are", "blocks as they are", "one pass", "in the cluster", "two passes" or
    #: "three passes".
    name: str
    #: The passes.
    stages: tuple[Stage, ...]
    #: The moved bytes, and all else as bytes that could be moved in the same time.
    cost: float
    #: The values that workers exchange, if they do.
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
        return max(stage.peak * stage.costs.at_once for stage in self.stages)


@dataclass(frozen=True, eq=False)
class Grids:
    """The chunk grids of the source and the target of a rewrite."""

    #: The size of an element in memory, in bytes.
    itemsize: int
    #: The smallest pieces that can be read, along each axis.
    source: tuple[Axis, ...]
    #: The units that have one writer each, along each axis.
    target: tuple[Axis, ...]
    #: Set if source and target have the same encoded bytes: in whole units, or in the chunks of
    #: shards.
    moves: Literal["units", "inner"] | None = None
    #: The shards of the source, if encoded chunks are moved out of them to a target without
    #: shards.
    shards: tuple[Axis, ...] | None = None
    #: The smallest parts of the pieces that can be read and decoded without the rest; None if a
    #: piece is read as a whole.
    divided: tuple[Axis, ...] | None = None
    #: The shards that hold the pieces; None if each piece is an object.
    holders: tuple[Axis, ...] | None = None

    @property
    def shape(self) -> Shape:
        """The shape of the array."""
        return tuple(axis.size for axis in self.target)

    @property
    def owners(self) -> tuple[Axis, ...]:
        """The grid of units or shards, which a task that copies encoded bytes owns entirely."""
        return self.target if self.shards is None else self.shards

    @property
    def nbytes(self) -> int:
        """The decoded size of the array in bytes."""
        return prod(self.shape) * self.itemsize

    @cached_property
    def pieces(self) -> Cutting:
        """The pieces of the source, clipped to the array."""
        return Cutting.of(self.source)

    @cached_property
    def parts(self) -> Cutting:
        """The parts of the pieces that are read, clipped to the array."""
        return self.pieces if self.divided is None else Cutting.of(self.divided)

    @cached_property
    def objects(self) -> Cutting:
        """The stored objects that hold the pieces, clipped to the array."""
        return self.pieces if self.holders is None else Cutting.of(self.holders)

    @property
    def read(self) -> list[ReadEdges]:
        """The boundaries of what is read along each axis."""
        cuttings = (self.pieces, self.parts, self.objects)
        edges = zip(*(each.edges for each in cuttings), strict=True)
        return [ReadEdges(*each) for each in edges]

    @cached_property
    def run_axis(self) -> int | None:
        """The axis along which neighbouring pieces of a shard follow one another, if there is one.

        They are one request.
        """
        if self.holders is None:
            return None
        pairs = enumerate(zip(self.holders, self.source, strict=True))
        return max((at for at, (h, s) in pairs if h.longest > s.longest), default=None)

    @cached_property
    def units(self) -> Cutting:
        """The units of the target, clipped to the array."""
        return Cutting.of(self.target)

    @cached_property
    def piece_bytes(self) -> int:
        """The decoded size of the largest piece of the source in bytes, without clipping."""
        return prod(lengths_of(self.source)) * self.itemsize

    @cached_property
    def unit_bytes(self) -> int:
        """The decoded size of the largest unit of the target in bytes, without clipping."""
        return prod(lengths_of(self.target)) * self.itemsize


def lengths_of(axes: tuple[Axis, ...]) -> Shape:
    """Return the greatest length of chunks along each axis, not clipped to the array."""
    return tuple(axis.longest for axis in axes)


# --------------------------------------------------------------------------------------------
# Costs

#: The overhead of a task, in bytes that could be moved in the same time.
TASK = 2**20
#: The largest number of combinations of lengths that are compared.
_MAX_COMBINATIONS = 100_000
#: The fraction of a task that one thread does: an object of packed pieces is stored in one call.
_SERIAL_FRACTION = {"packed": 0.25, "held": 0.05, "target": 0.05}


def to_read(grids: Grids, costs: Costs) -> int:
    """Return the bytes that a thread holds to read: a decoded piece, and its stored values."""
    piece = grids.piece_bytes
    return piece + costs.copies * max(piece, min(costs.slab, grids.nbytes))


def to_write(grids: Grids) -> int:
    """Return the bytes that a thread holds to write a unit: its copy, and a codec's in and out."""
    return 3 * grids.unit_bytes


# --------------------------------------------------------------------------------------------
# Regions


def joined(units: Sequence[Axis], counts: Shape, read: Sequence[ReadEdges]) -> list[list[Choice]]:
    """Return the choices, along each axis, of how many chunks or shards form a region."""
    limit = max(4, int(_MAX_COMBINATIONS ** (1 / max(sum(n > 1 for n in counts), 1))))
    return [choices(axis, edges, min(limit, 60)) for axis, edges in zip(units, read, strict=True)]


def read_requests(grids: Grids, overlapped: Sequence[T], held: Sequence[T]) -> Sequence[list[T]]:
    """Return factors along the axes, whose products add up to the requests that read pieces.

    Along each axis, `overlapped` pieces in `held` objects are read. Neighbouring pieces of a shard
    are one request, and its index is another.
    """
    if grids.holders is None:
        return [[*overlapped]]
    runs = [*overlapped]
    if grids.run_axis is not None:
        runs[grids.run_axis] = held[grids.run_axis]
    return [runs, [*held]]


def outer(axes: Sequence[Sequence[Any]], name: str) -> np.ndarray:
    """Return the product of an attribute, for each combination of choices along the axes."""
    return outer_product([[getattr(c, name) for c in axis] for axis in axes])


def outer_product(axes: Sequence[Sequence[float]]) -> np.ndarray:
    """Return the products of numbers, for each combination of one along each axis."""
    products = np.ones((), float)
    for axis in axes:
        products = np.multiply.outer(products, np.array(axis, float))
    return products


def cheapest(
    axes: Sequence[Sequence[T]], cost: np.ndarray, memory: np.ndarray, room: float
) -> list[T]:
    """Return the choices along the axes whose combination is the cheapest that fits.

    `cost` and `memory` are for each combination. If none fits, it is the smallest one.
    """
    fits = memory <= room
    rank = np.where(fits, cost, np.inf) if fits.any() else memory
    best = np.unravel_index(int(np.argmin(rank)), rank.shape)
    return [axis[int(i)] for axis, i in zip(axes, best, strict=True)]


def cutting(axes: Sequence[Any]) -> Cutting:
    """Return the regions that the choices along the axes make up."""
    return Cutting(tuple(chosen.edges for chosen in axes))


# --------------------------------------------------------------------------------------------
# Costs


def idle(tasks: np.ndarray, at_once: int) -> np.ndarray:
    """Return the factor by which idle workers in the last round of tasks prolong a pass."""
    tasks = np.maximum(tasks, 1)
    factor: np.ndarray = np.ceil(tasks / at_once) * at_once / tasks
    return factor


def cost_of(stage: Stage, costs: Costs, tasks: int | None = None) -> float:
    """Return the cost of a pass: the moved bytes, and all else as bytes moved in the same time."""
    moved = stage.bytes_read + stage.bytes_written + stage.requests * costs.request
    moved += stage.tasks * TASK
    rounds = float(idle(np.array(tasks or stage.tasks, float), costs.tasks))
    serial = _SERIAL_FRACTION[stage.writes]
    per_task = costs.threads * (serial + (1 - serial) / stage.threads) / stage.costs.at_once
    return moved * rounds * per_task
