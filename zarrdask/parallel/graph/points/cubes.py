"""Plan the read of cubes of one shape in a region of a stored array; a point is a cube of one."""

from collections.abc import Sequence
from math import prod

import numpy as np

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.chunks.together import ArrayRead
from zarrdask.formats.codecs.decode import Blocks
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.indexing.projection import Points, Regions
from zarrdask.runtime import buffers

#: Cubes of at most this many elements are read element by element: a region takes as long as these.
_MAX_POINTS = 64


def cube_read(
    source: ArrayRegion, starts: Sequence[np.ndarray], shape: Shape
) -> tuple[ArrayRead, np.ndarray]:
    """Return the read of cubes, which decodes each chunk once, and the memory for the cubes.

    Parameters
    ----------
    source : ArrayRegion
        The region of a stored array.
    starts : sequence of ndarray
        For each axis of the region the first position of each cube.
    shape : tuple of int
        The shape of the cubes, which lie within the region.
    """
    count = len(starts[0])
    memory = buffers.empty((count, *shape), source.metadata.dtype)
    if not count or prod(shape) <= _MAX_POINTS:
        points = _points(source, starts, shape)
        return ArrayRead(source.stored, points, memory.reshape(-1)), memory
    regions = Regions(
        tuple(
            source.in_array(tuple(slice(a, a + n, 1) for a, n in zip(start, shape, strict=True)))
            for start in zip(*(each.tolist() for each in starts), strict=True)
        )
    )
    own = set(source.axes)
    axes = tuple(slice(None) if axis in own else None for axis in range(len(source.region)))
    blocks = Blocks([each[axes] for each in memory], memory.dtype)
    return ArrayRead(source.stored, regions, blocks), memory


def _points(source: ArrayRegion, starts: Sequence[np.ndarray], shape: Shape) -> Points:
    """Return all elements of cubes as points of the stored array."""
    count, ndim = len(starts[0]), len(shape)
    coordinates = [np.full((), pick.start, np.intp) for pick in source.region]
    for at, (axis, start, length) in enumerate(zip(source.axes, starts, shape, strict=True)):
        pick, others = source.region[axis], (1,) * (ndim - 1 - at)
        within = np.arange(length).reshape(*(1,) * (at + 1), length, *others)
        positions = start.astype(np.intp).reshape(count, *(1,) * ndim) + within
        coordinates[axis] = pick.start + positions * pick.step
    full = np.broadcast_to(np.zeros((), np.intp), (count, *shape))
    *every, _ = np.broadcast_arrays(*coordinates, full)
    return Points(tuple(each.reshape(-1) for each in every))
