"""Limits of fusion: how many small blocks become one task."""

from collections.abc import Iterable
from dataclasses import dataclass

from zarrdask import config
from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.parallel.execution.client import thread_count

#: The smallest number of fused tasks: for each thread, and at all. If they were fewer, a thread
#: without work would wait longer for the last one.
TASKS_PER_THREAD = 8
MIN_TASKS = 32
#: The same for each thread if a store is remote: the requests of a task are in flight together.
FAR_TASKS_PER_THREAD = 4


@dataclass(frozen=True)
class FuseLimits:
    """The limits of a fused task. The process that fuses need not have the user's settings."""

    #: The largest number of blocks in a task.
    blocks: int
    #: The largest number of bytes that these blocks have together.
    nbytes: int
    #: The number of threads that run tasks.
    threads: int

    @classmethod
    def current(cls) -> "FuseLimits":
        """Return the limits by the settings, for the current scheduler."""
        return cls(config.get("fuse-blocks"), config.get("fuse-size"), thread_count())

    def length(self, count: int, block_bytes: int, regions: Iterable[ArrayRegion] = ()) -> int:
        """Return the number of blocks in a task; fewer than two blocks are not fused.

        There are `count` blocks of up to `block_bytes`, in `regions` of stored arrays.
        """
        tasks = max(MIN_TASKS, TASKS_PER_THREAD * self.threads)
        if any(region.costs.overlaps for region in regions):
            tasks = FAR_TASKS_PER_THREAD * self.threads
        return min(self.blocks, self.nbytes // max(block_bytes, 1), count // tasks)


#: The limits that leave each block a task of its own.
UNFUSED = FuseLimits(blocks=0, nbytes=0, threads=1)
