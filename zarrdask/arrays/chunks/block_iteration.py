"""Iterate over the blocks of an array in storage order; the next blocks are read ahead."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from math import prod

import numpy as np

from zarrdask.arrays.chunks.read import read_region
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.formats.indexing.regions import tiles
from zarrdask.formats.indexing.selection import Region, whole_region

#: How many blocks are read while one is used.
_AHEAD = 2


def iter_blocks(chunks: StoredChunks, nbytes: int) -> Iterator[tuple[Region, np.ndarray]]:
    """Yield the regions of an array in storage order, each with its elements.

    Parameters
    ----------
    chunks : StoredChunks
        The array.
    nbytes : int
        The size of a block. It has whole chunks or shards, at least one; larger shards are divided
        along their chunks.
    """
    regions = block_regions(chunks, nbytes)
    ahead = deque[tuple[Region, Future[np.ndarray]]]()
    with ThreadPoolExecutor(1, "zarrdask-blocks") as pool:
        try:
            while True:
                while len(ahead) <= _AHEAD and (region := next(regions, None)) is not None:
                    ahead.append((region, pool.submit(read_region, chunks, region, threads=None)))
                if not ahead:
                    return
                region, values = ahead.popleft()
                yield region, values.result()
        finally:
            for _, values in ahead:
                values.cancel()


def block_regions(chunks: StoredChunks, nbytes: int) -> Iterator[Region]:
    """Return the regions of blocks in storage order."""
    metadata = chunks.metadata
    size = max(metadata.dtype.itemsize, 1)
    grid = metadata.grid
    if prod(grid.chunk_shape) * size > nbytes:
        grid = metadata.read_grid
    start = (0,) * len(metadata.shape)
    return iter(tiles(whole_region(metadata.shape), grid.axes, start, nbytes // size))
