"""The tasks that write the blocks of a Dask array; several small blocks share one task."""

from collections.abc import Iterable, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

import dask.array as da
import numpy as np
from dask.array import core
from dask.highlevelgraph import HighLevelGraph
from dask.layers import ArraySliceDep

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.hierarchy.changes.block_log import RecordedBlocks
from zarrdask.parallel.execution.block_writer import BlockWriter
from zarrdask.parallel.execution.dask_private import Alias
from zarrdask.parallel.graph.fuse.block_function import Block
from zarrdask.parallel.graph.fuse.limits import FuseLimits
from zarrdask.parallel.graph.fuse.task_reads import name_keys
from zarrdask.parallel.plan.align import Chunks


class BlockTarget(NamedTuple):
    """Where the blocks of a Dask array are stored."""

    #: Writes the blocks to a region of a stored array.
    writer: BlockWriter
    #: The slices of each block in the array.
    slices: ArraySliceDep
    #: A number for each block, the same for equal blocks of a new array; -1 for others.
    equal_blocks: np.ndarray | None

    def nbytes(self, block: Block) -> int:
        """Return the size of a block in bytes."""
        itemsize: int = self.writer.region.dtype.itemsize
        return itemsize * prod(int(part.stop - part.start) for part in self.slices[block])

    def note(self, block: Block) -> str:
        """Return the note of an error that was raised while a block was computed or written."""
        region = self.writer.region
        keys = name_keys(region.keys(self.slices[block]))
        return f"raised for block {block}, stored as {keys} in {region.stored.store.url}"


class BlockWrites(NamedTuple):
    """The tasks that write a Dask array, one for each block."""

    #: For each block, the number of units that its task stored.
    receipts: da.Array
    #: The lengths of the blocks along each axis.
    blocks: Chunks
    #: The writer of the blocks, which the tasks hold.
    writer: BlockWriter
    #: As in `BlockTarget`.
    equal_blocks: np.ndarray | None = None
    #: The numbers of the blocks to write, in C order, if an earlier run has stored the others.
    missing: Sequence[int] | None = None

    def without(self, recorded: RecordedBlocks) -> "BlockWrites":
        """Return the tasks, without tasks of blocks that earlier runs have stored."""
        if not (recorded.stored or recorded.is_complete):
            return self
        slices = ArraySliceDep(self.blocks)
        numbered = enumerate(product(*(range(len(axis)) for axis in self.blocks)))
        missing = [n for n, block in numbered if not recorded.is_stored(slices[block])]
        return self._replace(missing=missing)

    def remaining(self) -> da.Array:
        """Return the receipts of the blocks to write, in one dimension if some are left out."""
        receipts = self.receipts
        if self.missing is None:
            return receipts
        indices = [tuple(map(int, np.unravel_index(n, receipts.numblocks))) for n in self.missing]
        name = f"{receipts.name}-missing"
        layer = {
            (name, n): Alias((name, n), (receipts.name, *index)) for n, index in enumerate(indices)
        }
        graph = HighLevelGraph.from_collections(name, layer, dependencies=[receipts])
        return core.Array(graph, name, ((1,) * len(layer),), meta=np.empty(0, np.intp))

    @property
    def block_count(self) -> int:
        """The number of blocks."""
        return prod(map(len, self.blocks))

    @property
    def target(self) -> BlockTarget:
        """Where the blocks are stored."""
        return BlockTarget(self.writer, ArraySliceDep(self.blocks), self.equal_blocks)

    def length(self, limits: FuseLimits, sources: Iterable[ArrayRegion] = ()) -> int:
        """Return the number of blocks that one task writes; fewer than two blocks are not fused.

        `sources` are what the blocks are computed from.
        """
        region = self.writer.region
        block_bytes = prod(map(max, self.blocks)) * region.dtype.itemsize
        return limits.length(self.block_count, block_bytes, [region, *sources])
