"""The regular chunk grid."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from zarrdask.errors import MetadataError
from zarrdask.formats.extension import members_of
from zarrdask.formats.grids.axis import Axis, Even
from zarrdask.formats.grids.chunk_grid import ChunkGrid, Shape, check_axes, parse_lengths


@dataclass(frozen=True)
class RegularGrid(ChunkGrid):
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

    chunk_shape: Shape = field()  # not the property of the base class as its default

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

    @cached_property
    def is_regular(self) -> bool:
        return True

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(map(Even, self.shape, self.chunk_shape))

    def resize(self, shape: Shape) -> "RegularGrid":
        return RegularGrid(shape, self.chunk_shape)
