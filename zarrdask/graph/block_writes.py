"""The tasks that write the blocks of a Dask array, and how many of them make one bundle."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import product
from math import prod
from typing import NamedTuple, TypeVar

import dask.array as da
import numpy as np
from dask._task_spec import Alias
from dask.highlevelgraph import HighLevelGraph
from dask.layers import ArraySliceDep

from zarrdask.execution.expressions import EXPRESSIONS
from zarrdask.execution.writer import BlockWriter
from zarrdask.graph.fuse.block_function import Block
from zarrdask.graph.fuse.limits import FuseLimits
from zarrdask.hierarchy.block_log import Bounds, bounds
from zarrdask.plan.align import Chunks
from zarrdask.runtime.turns import in_turns
from zarrdask.storage.in_flight import Requests

T = TypeVar("T")

#: The time in seconds for one block above which threads do not take turns: to compute and write a
#: small block holds the GIL for a part of it.
SLOW_SECONDS = 400e-6


class Place(NamedTuple):
    """The place where the blocks of a Dask array are stored."""

    #: Writes the blocks to a region of a stored array.
    writer: BlockWriter
    #: The slices of each block in the array.
    slices: ArraySliceDep

    def nbytes(self, block: Block) -> int:
        """Return the size of a block in bytes."""
        itemsize: int = self.writer.region.dtype.itemsize
        return itemsize * prod(int(part.stop - part.start) for part in self.slices[block])

    def note(self, block: Block) -> str:
        """Return the note of an error that was raised while a block was computed or written."""
        first, *others = self.writer.region.keys(self.slices[block]) or ["nothing"]
        more = f" and {len(others)} others" if others else ""
        store = self.writer.region.stored.store
        return f"raised for block {block}, stored as {first}{more} in {store.url}"


def write_in_one_task(
    places: Iterable[Place],
    write: Callable[[T, Requests], list[int]],
    items: Iterator[T],
    *,
    count: int,
    slow: float = SLOW_SECONDS,
    nbytes: int,
) -> np.ndarray:
    """Write small blocks, and return their receipt: a number of units for each.

    Threads take turns, unless a store has latency: there, the blocks are on their way together.

    `write` writes the blocks of an item, and returns the number of units of each; the second
    argument are the requests of all blocks, which tell an error of theirs from one of this item.
    There are `count` items, which are not small if one takes `slow` seconds, with blocks of
    `nbytes`.
    """
    counts = list[int]()

    def run(items: Iterator[T]) -> int:
        done = 0
        for item in items:
            counts.extend(write(item, requests))
            done += 1
        return done

    requests = Requests()
    writers = [place.writer for place in places]
    with ExitStack() as stack:
        for writer in writers:
            stack.enter_context(writer.joining(requests))
        stack.enter_context(requests)
        if not any(writer.region.is_far for writer in writers):
            in_turns(run, items, count=count, nbytes=nbytes, slow=slow, pace=writers[0].pace)
        else:
            run(items)
    return np.array(counts, np.intp)


class BlockWrites(NamedTuple):
    """The tasks that write a Dask array, one for each block."""

    #: For each block, the number of units that its task stored.
    receipts: da.Array
    #: The lengths of the blocks along each axis.
    blocks: Chunks
    #: What the tasks hold to write them.
    writer: BlockWriter
    #: A number for each block, the same for equal blocks of a new array; -1 for others.
    repeats: np.ndarray | None = None
    #: The numbers of the blocks to write, in C order, if an earlier run has stored the others.
    missing: Sequence[int] | None = None

    def without(self, stored: Collection[Bounds]) -> "BlockWrites":
        """Return the tasks without those of blocks that are stored."""
        if not stored:
            return self
        slices = ArraySliceDep(self.blocks)
        numbered = enumerate(product(*(range(len(axis)) for axis in self.blocks)))
        missing = [number for number, block in numbered if bounds(slices[block]) not in stored]
        return self._replace(missing=missing)

    def remaining(self) -> da.Array:
        """Return the receipts of the blocks to write, in one dimension if some are left out."""
        receipts = self.receipts
        if self.missing is None:
            return receipts
        indices = [tuple(map(int, np.unravel_index(n, receipts.numblocks))) for n in self.missing]
        if EXPRESSIONS:
            blocks = [receipts.blocks[index].ravel() for index in indices]
            return da.concatenate(blocks)
        name = f"{receipts.name}-missing"
        layer = {
            (name, n): Alias((name, n), (receipts.name, *index)) for n, index in enumerate(indices)
        }
        graph = HighLevelGraph.from_collections(name, layer, dependencies=[receipts])
        return da.Array(graph, name, ((1,) * len(layer),), meta=np.empty(0, np.intp))

    @property
    def block_count(self) -> int:
        """The number of blocks."""
        return prod(map(len, self.blocks))

    @property
    def place(self) -> Place:
        """The place where the blocks are stored."""
        return Place(self.writer, ArraySliceDep(self.blocks))

    def bundle_length(self, limits: FuseLimits, *, reads_far: bool = False) -> int:
        """Return the number of blocks in a bundle; bundles are of use from two blocks on.

        `reads_far` is whether blocks are read from a store with latency.
        """
        region = self.writer.region
        block_bytes = prod(map(max, self.blocks)) * region.dtype.itemsize
        is_far = reads_far or region.is_far
        return limits.length(self.block_count, block_bytes, is_far=is_far)
