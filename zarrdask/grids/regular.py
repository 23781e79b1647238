"""The regular chunk grid."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, ClassVar

from zarrdask.errors import MetadataError
from zarrdask.extension import members_of
from zarrdask.grids.base import Axis, Index, Shape, check_axes, parse_lengths


@dataclass(frozen=True, slots=True)
class RegularGrid:
    """A grid of chunks of one shape; those at the upper edges may extend beyond the array.

    Parameters
    ----------
    shape : tuple of int
        The array's shape, in elements.
    chunk_shape : tuple of int
        The shape of a chunk, in elements, with as many axes as `shape` (conformance C-36, A-10).

    Raises
    ------
    MetadataError
        If the numbers of axes differ, or a chunk is empty along an axis that is not.
    """

    shape: Shape
    chunk_shape: Shape

    is_regular: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_axes(self.chunk_shape, self.shape, "chunk_shape")
        for size, chunk in zip(self.shape, self.chunk_shape, strict=True):
            if chunk < 1 and size > 0:
                raise MetadataError(
                    "a chunk length must be positive", key="chunk_shape", found=self.chunk_shape
                )

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any], shape: Shape) -> "RegularGrid":
        members = members_of(configuration, "chunk_grid regular", {"chunk_shape": ...})
        return cls(shape, parse_lengths(members["chunk_shape"], "chunk_shape", 1))

    def to_json(self) -> dict[str, Any]:
        return {"name": "regular", "configuration": {"chunk_shape": list(self.chunk_shape)}}

    @property
    def axes(self) -> tuple[Axis, ...]:
        return self.chunk_shape

    @property
    def counts(self) -> Shape:
        """The number of chunks along each axis.

        >>> RegularGrid((5, 7), (2, 3)).counts
        (3, 3)
        """
        return tuple(
            -(-size // chunk) if size else 0
            for size, chunk in zip(self.shape, self.chunk_shape, strict=True)
        )

    @property
    def size(self) -> int:
        return prod(self.counts)

    def indices(self) -> Iterator[Index]:
        return product(*map(range, self.counts))

    def start(self, index: Index) -> Index:
        return tuple(i * chunk for i, chunk in zip(index, self.chunk_shape, strict=True))

    def shape_of(self, index: Index) -> Shape:
        return self.chunk_shape

    def resize(self, shape: Shape) -> "RegularGrid":
        return RegularGrid(shape, self.chunk_shape)
