"""How many small blocks become one task."""

from dataclasses import dataclass

from zarrdask import config
from zarrdask.execution.client import thread_count

#: The smallest number of fused tasks: for each thread, and at all. If they were fewer, a thread
#: without work would wait longer for the last one.
TASKS_PER_THREAD = 8
MIN_TASKS = 32
#: The same for each thread where a store has latency: the blocks of a task wait together.
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

    def length(self, count: int, block_bytes: int, *, is_far: bool = False) -> int:
        """Return the number of blocks in a task; fewer than two blocks are not fused.

        There are `count` blocks of up to `block_bytes`. `is_far` is whether they are in a store
        with latency, where the blocks of a task wait together.
        """
        tasks = max(MIN_TASKS, TASKS_PER_THREAD * self.threads)
        if is_far:
            tasks = FAR_TASKS_PER_THREAD * self.threads
        return min(self.blocks, self.nbytes // max(block_bytes, 1), count // tasks)


#: The limits that leave each block a task of its own.
UNFUSED = FuseLimits(blocks=0, nbytes=0, threads=1)
