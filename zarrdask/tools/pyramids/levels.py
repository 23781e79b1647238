"""The levels of a pyramid: their shapes, and where their cells lie in the finest level. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from zarrdask.errors import MetadataError

#: How the end of an axis is treated if the factor does not divide its length: its last cells are
#: left out, or the last cell is repeated, or the last window has fewer cells.
Borders = Literal["trim", "pad", "partial"]


@dataclass(frozen=True)
class Level:
    """A level of a pyramid.

    Attributes
    ----------
    path : str
        The path of the array from the group of the pyramid.
    shape : tuple of int
        The number of cells along each axis.
    factors : tuple of int
        The cells of level 0 for each cell along each axis: 1 for level 0 itself.
    """

    path: str
    shape: tuple[int, ...]
    factors: tuple[int, ...]

    @property
    def scale(self) -> tuple[float, ...]:
        """The distance between the centres of cells along each axis, in cells of level 0."""
        return tuple(map(float, self.factors))

    @property
    def translation(self) -> tuple[float, ...]:
        """The centre of the first cell, from the centre in level 0, in cells of level 0."""
        return tuple((factor - 1) / 2 for factor in self.factors)

    def factors_to(self, other: "Level") -> tuple[int, ...]:
        """Return the cells of this level for each cell of a coarser one."""
        return tuple(b // a for a, b in zip(self.factors, other.factors, strict=True))

    def reduced(self, path: str, factors: Sequence[int], borders: Borders) -> "Level":
        """Return the next level, in which each cell replaces a window of cells of this one."""
        shape = tuple(
            length // factor if borders == "trim" else -(-length // factor)
            for length, factor in zip(self.shape, factors, strict=True)
        )
        if 0 in shape and 0 not in self.shape:
            raise MetadataError(
                "an axis is shorter than its factor, so the level would be empty; pass fewer "
                "levels, a factor of 1 along this axis, or borders='partial'",
                key="levels",
                found=f"{self.shape} by factors {tuple(factors)}",
            )
        whole = tuple(a * b for a, b in zip(self.factors, factors, strict=True))
        return Level(path, shape, whole)
