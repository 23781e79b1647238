"""Chunk grids: how an array's index space is cut into chunks. Pure arithmetic."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

from zarrdask.errors import MetadataError

Shape = tuple[int, ...]
Index = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RegularGrid:
    """Chunks of one shape; those at the upper edges may hang over the array.

    Parameters
    ----------
    shape : tuple of int
        The array's shape, in elements.
    chunk_shape : tuple of int
        The chunks' shape, in elements, as long as `shape` (conformance C-36, A-10).

    Raises
    ------
    MetadataError
        If the lengths differ or a chunk is empty along an axis that is not.
    """

    shape: Shape
    chunk_shape: Shape

    def __post_init__(self) -> None:
        if len(self.shape) != len(self.chunk_shape):
            raise MetadataError(
                "the chunk shape has another number of dimensions than the array",
                key="chunk_shape",
                found=self.chunk_shape,
                expected=f"{len(self.shape)} lengths for shape {self.shape}",
            )
        for size, chunk in zip(self.shape, self.chunk_shape, strict=True):
            if chunk < 1 and size > 0:
                raise MetadataError(
                    "a chunk length must be positive", key="chunk_shape", found=self.chunk_shape
                )

    @property
    def counts(self) -> Shape:
        """How many chunks lie along each axis.

        >>> RegularGrid((5, 7), (2, 3)).counts
        (3, 3)
        """
        return tuple(
            -(-size // chunk) if size else 0
            for size, chunk in zip(self.shape, self.chunk_shape, strict=True)
        )

    @property
    def size(self) -> int:
        """How many chunks there are."""
        return prod(self.counts)

    def indices(self) -> Iterator[Index]:
        """Yield every chunk index, last axis fastest."""
        return product(*map(range, self.counts))

    def start(self, index: Index) -> Index:
        """Where the chunk begins, in elements."""
        return tuple(i * chunk for i, chunk in zip(index, self.chunk_shape, strict=True))

    def resize(self, shape: Shape) -> "RegularGrid":
        """Return the grid of an array that was given another shape."""
        return RegularGrid(shape, self.chunk_shape)
