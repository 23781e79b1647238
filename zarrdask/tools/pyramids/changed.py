"""Find the regions of level 0 that have changed since the other levels were computed. Pure."""

from dataclasses import dataclass
from functools import reduce

import numpy as np

from zarrdask.arrays.chunks.versions import UnitVersions
from zarrdask.formats.grids.axis import Axis
from zarrdask.formats.grids.chunk_grid import ChunkGrid, Shape
from zarrdask.tools.pyramids.level_blocks import Bounds


def whole_bounds(shape: Shape) -> Bounds:
    """Return the bounds of all of an array."""
    return tuple((0, length) for length in shape)


@dataclass(frozen=True, eq=False)
class ChangedUnits:
    """The groups of chunks or shards of level 0 that have another version than before."""

    grid: ChunkGrid
    #: The number of chunks or shards in a group along each axis.
    lengths: Shape
    #: Whether each group has changed.
    groups: np.ndarray

    @classmethod
    def between(
        cls, before: UnitVersions | None, now: UnitVersions, grid: ChunkGrid
    ) -> "ChangedUnits | None":
        """Return the groups that have changed; None if the versions do not say it."""
        groups = None if before is None else before.changed(now)
        return None if groups is None else cls(grid, now.lengths, groups)

    @property
    def bounds(self) -> Bounds:
        """The smallest region that contains all groups that have changed, if there are any."""
        axes = self.groups.nonzero()
        return self._cells([(int(np.min(numbers)), int(np.max(numbers)) + 1) for numbers in axes])

    def extended(self, bounds: Bounds) -> Bounds:
        """Return a region with all of each group of several units, if one in it has changed.

        A part of a group that is a single chunk or shard may have changed.
        """
        groups = self._groups(bounds)
        if not self.groups[tuple(slice(*ends) for ends in groups)].any():
            return bounds
        cells = zip(bounds, self._cells(groups), self.lengths, strict=True)
        return tuple(part if length == 1 else whole for part, whole, length in cells)

    def outside(self, bounds: Bounds) -> np.ndarray:
        """Return which groups have changed and are not in a region."""
        groups = self.groups.copy()
        groups[tuple(slice(*ends) for ends in self._groups(bounds))] = False
        return groups

    def _groups(self, bounds: Bounds) -> list[tuple[int, int]]:
        """Return the first group along each axis that a region overlaps, and the one after all."""
        result = []
        for axis, length, ends in zip(self.grid.axes, self.lengths, bounds, strict=True):
            numbers = axis.numbers(slice(*ends, 1))
            result.append((numbers.start // length, -(-numbers.stop // length)))
        return result

    def _cells(self, groups: list[tuple[int, int]]) -> Bounds:
        """Return the region of groups, by the first and the one after the last of each axis."""

        def cell(axis: Axis, unit: int) -> int:
            return min(int(axis.start(min(unit, axis.count))), axis.size)

        axes = zip(self.grid.axes, self.lengths, groups, strict=True)
        return tuple((cell(axis, a * n), cell(axis, b * n)) for axis, n, (a, b) in axes)


def changed_bounds(
    before: Shape, shape: Shape, region: Bounds | None, units: ChangedUnits | None
) -> Bounds:
    """Return the region of level 0 that has changed.

    `before` is its shape when the levels were computed, `region` the region that a user passes, and
    `units` the chunks or shards that have changed, if their versions are known.
    """
    if len(before) != len(shape) or any(a > b for a, b in zip(before, shape, strict=True)):
        return whole_bounds(shape)  # windows at the old end may be whole now
    parts = [] if region is None else [region]
    if region is None and units is not None and units.groups.any():
        parts.append(units.bounds)
    grown = [axis for axis, (a, b) in enumerate(zip(before, shape, strict=True)) if a < b]
    if len(grown) == 1:
        [axis] = grown
        whole = whole_bounds(shape)
        parts.append((*whole[:axis], (before[axis], shape[axis]), *whole[axis + 1 :]))
    elif grown or (region is None and units is None):
        return whole_bounds(shape)
    if not parts:
        return ((0, 0),) * len(shape)
    bounds = reduce(_joined, parts)
    return bounds if units is None else units.extended(bounds)


def _joined(one: Bounds, other: Bounds) -> Bounds:
    """Return the smallest region that contains two others."""
    return tuple((min(a, c), max(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))
