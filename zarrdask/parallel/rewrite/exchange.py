"""The part of each worker in a pass in which the workers of a cluster exchange pieces.

The transport between the workers is not part of this module; see `cluster`.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from zarrdask.errors import StoreError
from zarrdask.formats.indexing.selection import Region, region_shape
from zarrdask.parallel.execution.workspace import Slot
from zarrdask.parallel.plan.owned_regions import Cutting
from zarrdask.parallel.plan.strategies import Scheme
from zarrdask.parallel.rewrite.passes import (
    ArrayTiles,
    PieceBuffer,
    RegionBuffer,
    TaskContext,
)
from zarrdask.storage.adapters.forks import Changes

#: How many pieces are requested ahead of the one that is being waited for.
_PREFETCH = 2
#: Requests a piece, by the numbers of the region that was read and of the region that is written.
#: It returns a function that waits for the bytes.
RequestPiece = Callable[[int, int], Callable[[], np.ndarray]]


@dataclass(frozen=True, eq=False)
class Exchange:
    """A pass over an array, box by box, in which workers send each other pieces."""

    #: The strategy, whose stages read and write regions that each lie in one box.
    scheme: Scheme
    source: ArrayTiles
    target: ArrayTiles
    #: The data type of the values between source and target.
    dtype: np.dtype[Any]

    @property
    def regions(self) -> Cutting:
        """The boxes, which are rewritten one after another."""
        return self.scheme.cuttings[0]

    @property
    def reads(self) -> Cutting:
        """The regions that are read."""
        return self.scheme.cuttings[1]

    @property
    def units(self) -> Cutting:
        """The regions that are written."""
        return self.scheme.cuttings[2]

    @property
    def processes(self) -> int:
        """The number of workers."""
        return self.scheme.stages[0].costs.processes

    def readers(self, box: int) -> list[int]:
        """Return the numbers of the regions that are read for a box."""
        return self.reads.numbers(self.regions.region(box))

    def writers(self, box: int) -> list[int]:
        """Return the numbers of the regions that are written in a box."""
        return self.units.numbers(self.regions.region(box))

    def owners(self, box: int) -> dict[int, int]:
        """Return the worker that reads each region of a box, both by number."""
        return {number: at % self.processes for at, number in enumerate(self.readers(box))}


class ExchangeMember:
    """One of the workers. It keeps the pieces that it read until the box has been written."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        stage = exchange.scheme.stages[0]
        self._context = TaskContext(exchange.dtype, stage.costs.slab, Slot(stage.threads))
        self._pieces: dict[tuple[int, int], np.ndarray] = {}

    def read(self, number: int) -> None:
        """Read a region, and keep it as pieces, one for each region that is written."""
        units, region = self._exchange.units, self._exchange.reads.region(number)
        # The memory of the slot is used again for the next region, so it can't hold the pieces.
        memory = np.empty(prod(region_shape(region)), self._exchange.dtype)
        buffer = PieceBuffer(region, units, memory)
        self._exchange.source.read(region, buffer, self._context)
        for index, piece in buffer.pieces.items():
            self._pieces[number, units.number(index)] = piece

    def piece(self, reader: int, writer: int) -> np.ndarray:
        """Return the bytes of the piece that a region read here has for a region to be written."""
        piece = self._pieces.get((reader, writer))
        if piece is None:
            raise StoreError(
                "a worker no longer holds a piece that it read; run the plan again to resume it",
                key=f"{reader}",
                expected=f"the piece for region {writer}",
            )
        # Not every transport between processes supports all data types, but all support bytes.
        return piece.reshape(-1).view(np.uint8)

    def write(self, number: int, request: RequestPiece) -> int | Changes:
        """Collect the pieces of a region and write it; return what `Pass` returns."""
        units = self._exchange.units
        source = _RemotePieces(self._exchange.reads, number, request)
        region = units.region(number)
        with self._exchange.target.changing() as (target, changes):
            stored = target.write(region, source, self._context)
        return changes[0] if changes else stored

    def clear(self) -> None:
        """Free the pieces."""
        self._pieces.clear()


@dataclass(frozen=True, eq=False)
class _RemotePieces:
    """The pieces of one region that is to be written, held by several workers."""

    reads: Cutting
    number: int
    request: RequestPiece

    def read(self, region: Region, buffer: RegionBuffer, context: TaskContext) -> None:
        """Request all pieces of the region, a few at a time."""
        pending: deque[tuple[Region, Callable[[], np.ndarray]]] = deque()

        def receive() -> None:
            part, wait = pending.popleft()
            buffer.put(part, wait().view(context.dtype).reshape(region_shape(part)))

        for part, number in self._parts(region):
            pending.append((part, self.request(number, self.number)))
            if len(pending) > _PREFETCH:
                receive()
        while pending:
            receive()

    def _parts(self, region: Region) -> Sequence[tuple[Region, int]]:
        parts = [(part, self.reads.number(index)) for index, part in self.reads.overlapping(region)]
        # Each writer begins elsewhere, so that not all send requests to the same worker first.
        first = self.number % max(len(parts), 1)
        return parts[first:] + parts[:first]
