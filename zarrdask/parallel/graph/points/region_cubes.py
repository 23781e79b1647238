"""Cubes of a region of a stored array at many positions: how they are planned, read and padded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.chunks.together import ArrayRead, read_alone
from zarrdask.formats.codecs.decode import put_fill
from zarrdask.formats.grids.axis import edges_of
from zarrdask.formats.indexing.selection import Region
from zarrdask.parallel.graph.blocks import region_blocks
from zarrdask.parallel.graph.points.cubes import cube_read


@dataclass(frozen=True)
class Cubes:
    """Which cubes of a region are read: cubes of one shape, at many positions.

    Attributes
    ----------
    source : ArrayRegion
        The region of a stored array.
    lengths : dict of int to int
        The length of the cubes along the axes with positions; they are whole along the others.
    is_dropped : bool
        Whether the cubes do not have the axes with positions, as their length is 1.
    ends : {"pad", "clip"}
        What cubes have beyond the ends of the region: the fill value, or the last element.
    """

    source: ArrayRegion
    lengths: Mapping[int, int]
    is_dropped: bool = False
    ends: Literal["pad", "clip"] = "pad"

    @property
    def axes(self) -> list[int]:
        """The axes with positions."""
        return sorted(self.lengths)

    @property
    def others(self) -> list[int]:
        """The axes without positions."""
        return [axis for axis in range(self.source.ndim) if axis not in self.lengths]

    def blocks(self) -> list[tuple[int, ...]]:
        """Return the blocks of the result along the axes of the cubes."""
        blocks = region_blocks(self.source, "auto")
        if self.is_dropped:
            return [blocks[axis] for axis in self.others]
        return [
            (self.lengths[axis],) if axis in self.lengths else blocks[axis]
            for axis in range(self.source.ndim)
        ]

    def edges(self) -> list[np.ndarray]:
        """Return the edges of groups of chunks along the axes with positions."""
        blocks = region_blocks(self.source, "auto")
        return [edges_of(blocks[axis]) for axis in self.axes]

    def inside(self, starts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the positions of the nearest cubes that lie within the region."""
        lasts = (max(self.source.shape[axis] - self.lengths[axis], 0) for axis in self.axes)
        return [np.clip(start, 0, last) for start, last in zip(starts, lasts, strict=True)]

    def read(self, starts: Sequence[np.ndarray], part: Region) -> np.ndarray:
        """Return cubes, read in this thread; `part` is the region along the other axes."""
        read, memory = self.planned(starts, part)
        read_alone(read, threads=1, show=False)
        return self.finished(memory, starts, part)

    def planned(self, starts: Sequence[np.ndarray], part: Region) -> tuple[ArrayRead, np.ndarray]:
        """Return the read of the nearest cubes within the region, and the memory for them."""
        every, shape = list[np.ndarray](), list[int]()
        positions = dict(zip(self.axes, self.inside(starts), strict=True))
        others = dict(zip(self.others, part, strict=True))
        for axis in range(self.source.ndim):
            if axis in positions:
                every.append(positions[axis])
                shape.append(min(self.lengths[axis], self.source.shape[axis]))
            else:
                every.append(np.full(len(starts[0]), others[axis].start, np.intp))
                shape.append(others[axis].stop - others[axis].start)
        return cube_read(self.source, every, tuple(shape))

    def finished(
        self, memory: np.ndarray, starts: Sequence[np.ndarray], part: Region
    ) -> np.ndarray:
        """Return the cubes, when the read that `planned` returned is done."""
        values = self.source.elements(memory)
        if self.is_dropped:
            return values.reshape(len(values), *(pick.stop - pick.start for pick in part))
        return self._extended(values, starts)

    def _extended(self, values: np.ndarray, starts: Sequence[np.ndarray]) -> np.ndarray:
        """Return cubes that were moved into the region with the elements of where they were."""
        beyond = list[tuple[int, np.ndarray]]()
        for axis, start, moved in zip(self.axes, starts, self.inside(starts), strict=True):
            length, size = self.lengths[axis], self.source.shape[axis]
            if length <= size and (start == moved).all():
                continue
            positions = start[:, None] + np.arange(length)
            index = np.clip(positions, 0, max(size - 1, 0)) - moved[:, None]
            values = np.take_along_axis(values, _along(index, axis, values.ndim), axis + 1)
            beyond.append((axis, (positions < 0) | (positions >= size)))
        if self.ends == "pad":
            for axis, mask in beyond:
                full = np.broadcast_to(_along(mask, axis, values.ndim), values.shape)
                put_fill(values, full, self.source.fill)
        return values


def _along(values: np.ndarray, axis: int, ndim: int) -> np.ndarray:
    """Return values for each cube and position as an array that broadcasts with the cubes."""
    shape = [len(values), *(1,) * (ndim - 1)]
    shape[axis + 1] = values.shape[1]
    return values.reshape(shape)
