"""Where cubes are: positions of points and lengths of cubes, by names or numbers of axes. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from zarrdask.errors import SelectionError
from zarrdask.formats.indexing.selection import is_integer, within_bounds


@dataclass(frozen=True, eq=False)
class CubePositions:
    """The points of cubes and the lengths of cubes around them, by axis."""

    points: Mapping[int | str, np.ndarray]
    lengths: Mapping[int | str, int]

    def starts(self, axis: int | str, number: int, size: int) -> np.ndarray:
        """Return the first positions along an axis, which has this number and size in an array."""
        try:
            within = within_bounds(self.points[axis], number, size)
        except SelectionError as error:
            raise error.within(f"points[{axis!r}]") from error.__cause__
        return within - self.lengths[axis] // 2

    def is_inside(self, axis: int | str, starts: np.ndarray, size: int) -> np.ndarray:
        """Return which cubes are within an array along an axis of this size."""
        return (starts >= 0) & (starts <= size - self.lengths[axis])


def cube_positions(points: Any, size: Any) -> CubePositions:
    """Return the points and the lengths that a user passes; see `zarrdask.sample`."""
    positions = _positions(points)
    return CubePositions(positions, _lengths(size, list(positions)))


def _positions(points: Any) -> dict[int | str, np.ndarray]:
    """Return the positions by axis."""
    if isinstance(points, Mapping):
        positions = {axis: np.asarray(each) for axis, each in points.items()}
    else:
        table = np.asarray(points)
        if table.ndim != 2:
            raise SelectionError(
                "invalid points",
                key="points",
                found=table.shape,
                expected="an array of shape (points, axes), or a dict of axes to positions",
            )
        positions = dict(enumerate(table.T))
    shapes = {each.shape for each in positions.values()}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1:
        raise SelectionError(
            "the positions along each axis must be sequences of one length",
            key="points",
            found=f"shapes {sorted(shapes)}",
            expected="one 1-d sequence for each of one or more axes",
        )
    return positions


def _lengths(size: Any, axes: list[int | str]) -> dict[int | str, int]:
    """Return the lengths of cubes by axis."""
    lengths = dict(size) if isinstance(size, Mapping) else dict.fromkeys(axes, size)
    for axis in axes:
        length = lengths.get(axis, 1)
        if not is_integer(length) or length < 1:
            raise SelectionError(
                f"invalid length for axis {axis!r}",
                key="size",
                found=length,
                expected="an integer from 1",
            )
    unknown = [axis for axis in lengths if axis not in axes]
    if unknown:
        raise SelectionError(
            "the points have no positions along this axis",
            key="size",
            found=unknown[0],
            expected=f"one of {axes}",
        )
    return {axis: int(lengths.get(axis, 1)) for axis in axes}
