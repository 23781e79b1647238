"""The factors from level to level, and how many levels there are, from what a user passes. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from zarrdask.errors import MetadataError
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.indexing.selection import axis_number, is_integer
from zarrdask.tools.pyramids.levels import Borders, Level


@dataclass(frozen=True)
class Steps:
    """The factors along all axes, for each level after level 0, or the same for all levels.

    `number` is the number of levels; None if it depends on the size of the array.
    """

    factors: tuple[Shape, ...]
    number: int | None

    @classmethod
    def parse(
        cls, levels: Any, factors: Any, shape: Shape, names: Sequence[str | None] | None
    ) -> "Steps":
        """Return the steps for the arguments `levels` and `factors` of `zarrdask.pyramid`."""
        if not shape:
            raise MetadataError(
                "a pyramid needs an array with at least one axis",
                key="source",
                found="an array without axes",
            )
        if levels is not None and not (is_integer(levels) and levels >= 1):
            raise MetadataError(
                "the number of levels must be an integer of at least 1", key="levels", found=levels
            )
        if isinstance(factors, np.ndarray):
            factors = factors.tolist()
        if not _is_of_each_level(factors):
            return cls((_step(factors, shape, names),), levels)
        steps = tuple(_step(each, shape, names) for each in factors)
        if levels not in (None, len(steps) + 1):
            raise MetadataError(
                "there are factors for another number of levels",
                key="levels",
                found=levels,
                expected=str(len(steps) + 1),
            )
        return cls(steps, len(steps) + 1)

    def levels(
        self,
        shape: Shape,
        first: str,
        borders: Borders,
        chunk_shape: Shape,
    ) -> tuple[Level, ...]:
        """Return all levels: `first` is the path of level 0; the others are numbered."""
        levels = [Level(first, shape, (1,) * len(shape))]
        for number in count(1):
            factors = self.factors[min(number, len(self.factors)) - 1]
            if self.number is None and _is_small(levels[-1], factors, borders, chunk_shape):
                break
            if number == self.number:
                break
            levels.append(levels[-1].reduced(str(number), factors, borders))
        return tuple(levels)


def _is_small(level: Level, factors: Shape, borders: Borders, chunk_shape: Shape) -> bool:
    """Whether there is no level after this one by default."""
    axes = [
        (length, factor, chunk)
        for length, factor, chunk in zip(level.shape, factors, chunk_shape, strict=True)
        if factor > 1
    ]
    is_short = borders == "trim" and any(length < factor for length, factor, _ in axes)
    return is_short or all(length <= max(chunk, 1) for length, _, chunk in axes)


def _is_of_each_level(factors: Any) -> bool:
    """Whether there are factors for each level after level 0."""
    is_sequence = isinstance(factors, Sequence) and not isinstance(factors, str)
    return is_sequence and any(isinstance(each, Sequence | Mapping) for each in factors)


def _step(factors: Any, shape: Shape, names: Sequence[str | None] | None) -> Shape:
    """Return the factor along each axis, from what a user passes."""
    ndim = len(shape)
    step: list[Any] = [1] * ndim
    if is_integer(factors):
        step[-2:] = [factors] * min(ndim, 2)
    elif isinstance(factors, Mapping):
        for axis, factor in factors.items():
            step[axis_number(axis, ndim, names, "factors")] = factor
    elif isinstance(factors, Sequence) and not isinstance(factors, str) and len(factors) == ndim:
        step = list(factors)
    else:
        raise MetadataError(
            "invalid factors for the axes of the array",
            key="factors",
            found=factors,
            expected=f"an int, {ndim} ints, or a mapping from axes to ints",
        )
    for factor in step:
        if not (is_integer(factor) and factor >= 1):
            raise MetadataError(
                "factors must be integers",
                key="factors",
                found=factor,
                expected="at least 1",
            )
    return tuple(map(int, step))
