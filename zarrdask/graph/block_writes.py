"""The tasks that write the blocks of a Dask array, and how many of them make one bundle."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from math import prod
from typing import NamedTuple

import dask.array as da
import numpy as np
from dask.layers import ArraySliceDep

from zarrdask.chunks.write import MAX_BYTES_IN_FLIGHT
from zarrdask.execution.handle import Target
from zarrdask.graph.chains import Block, BundleLimits
from zarrdask.plan.align import Chunks
from zarrdask.storage.in_flight import Requests


class Place(NamedTuple):
    """The place where the blocks of a Dask array are stored."""

    #: The region that the array is written to.
    target: Target
    #: The slices of each block in the array.
    slices: ArraySliceDep

    def nbytes(self, block: Block) -> int:
        """Return the size of a block in bytes."""
        itemsize: int = self.target.handle.chunks.metadata.dtype.itemsize
        return itemsize * prod(int(part.stop - part.start) for part in self.slices[block])

    def note(self, block: Block) -> str:
        """Return the note of an error that was raised while a block was computed or written."""
        first, *others = self.target.keys(self.slices[block]) or ["nothing"]
        more = f" and {len(others)} others" if others else ""
        store = self.target.handle.chunks.store
        return f"raised for block {block}, stored as {first}{more} in {store.url}"


@contextmanager
def in_one_task(places: Iterable[Place]) -> Iterator[Requests]:
    """Let blocks that one task writes be on their way to stores with latency together.

    Yields the requests, which tell an error of theirs from those of the caller.
    """
    requests = Requests(MAX_BYTES_IN_FLIGHT)
    with ExitStack() as stack:
        for place in places:
            stack.enter_context(place.target.joining(requests))
        yield stack.enter_context(requests)


class BlockWrites(NamedTuple):
    """The tasks that write a Dask array, one for each block."""

    #: For each block, the number of units that its task stored.
    receipts: da.Array
    #: The lengths of the blocks along each axis.
    blocks: Chunks
    #: The target that the tasks hold.
    target: Target
    #: A number for each block, the same for equal blocks of a new array; -1 for others.
    repeats: np.ndarray | None = None

    @property
    def block_count(self) -> int:
        """The number of blocks."""
        return prod(map(len, self.blocks))

    @property
    def place(self) -> Place:
        """The place where the blocks are stored."""
        return Place(self.target, ArraySliceDep(self.blocks))

    @property
    def bundle_length(self) -> int:
        """The number of blocks in a bundle; bundles are of use from two blocks on."""
        chunks = self.target.handle.chunks
        block_bytes = prod(map(max, self.blocks)) * chunks.metadata.dtype.itemsize
        limits = BundleLimits.current(is_far=not chunks.units.seekable)
        return limits.length(self.block_count, block_bytes)
