"""The regular chunk grid."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from zarrdask.errors import MetadataError
from zarrdask.formats.extension import members_of
from zarrdask.formats.grids.axis import Axis, Even
from zarrdask.formats.grids.chunk_grid import ChunkGrid, Index, Shape, check_axes, parse_lengths


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

    def whole_chunk(self, request: Any) -> Index | None:
        """Return the index of the chunk that a request selects all of, and no others; or None.

        >>> RegularGrid((4, 6), (2, 3)).whole_chunk((slice(2, 4, 1), slice(0, 3, 1)))
        (1, 0)
        >>> RegularGrid((4, 6), (2, 3)).whole_chunk((slice(2, 4, 1), slice(0, 2, 1)))
        """
        if not isinstance(request, tuple):
            return None
        index = []
        for pick, chunk in zip(request, self.chunk_shape, strict=False):
            if not isinstance(pick, slice) or pick.step != 1 or pick.stop != pick.start + chunk:
                return None
            number, rest = divmod(pick.start, chunk or 1)
            if rest:
                return None
            index.append(number)
        return tuple(index)

    def resize(self, shape: Shape) -> "RegularGrid":
        return RegularGrid(shape, self.chunk_shape)
