"""Chunk grids: the interface, and the grids by name."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from zarrdask.errors import MetadataError
from zarrdask.extension import Registry, parse_definition

Shape = tuple[int, ...]

Index = tuple[int, ...]

#: The chunks along one axis: their length, if all have the same, or their sorted boundaries, from 0
#: to the end of the last chunk (int64).
Axis = int | np.ndarray


class ChunkGrid(Protocol):
    """The interface of chunk grids. A grid is frozen, hashable, equal by value, and pickles."""

    @property
    def shape(self) -> Shape:
        """The array's shape, in elements."""

    @property
    def chunk_shape(self) -> Shape:
        """The shape of the chunks; if they differ, the largest length along each axis."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The chunks along each axis."""

    @property
    def is_regular(self) -> bool:
        """Whether all chunks have the same shape; `axes` is `chunk_shape` then."""

    @property
    def counts(self) -> Shape:
        """The number of chunks along each axis."""

    @property
    def size(self) -> int:
        """The number of chunks."""

    def indices(self) -> Iterator[Index]:
        """Yield every chunk index, last axis fastest."""

    def start(self, index: Index) -> Index:
        """Return the first element of a chunk; for the index after the last, the end of that."""

    def shape_of(self, index: Index) -> Shape:
        """Return the shape in which a chunk is stored: it may extend beyond the array."""

    def resize(self, shape: Shape) -> "ChunkGrid":
        """Return the grid of the array in another shape; chunks that both shapes have stay."""

    def to_json(self) -> dict[str, Any]:
        """Return the grid's v3 metadata, ``{"name": ..., "configuration": ...}``."""


class ChunkGridClass(Protocol):
    """The interface of chunk grid classes, which the registry holds."""

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any], shape: Shape) -> ChunkGrid:
        """Return the grid of an array from its v3 configuration.

        Raises
        ------
        MetadataError
            If the configuration is not valid, or does not fit the shape.
        """


GRIDS: Registry[type[ChunkGridClass]] = Registry(
    "chunk grid",
    "chunk_grid",
    "zarrdask.chunk_grids",
    {
        "rectilinear": "zarrdask.grids.rectilinear:RectilinearGrid",
        "regular": "zarrdask.grids.regular:RegularGrid",
    },
)


def parse_grid(value: Any, shape: Shape) -> ChunkGrid:
    """Return the grid that ``chunk_grid`` describes: a name or an object (conformance C-18)."""
    # An unknown grid is an error whatever ``must_understand`` says (C-14).
    definition = parse_definition(value, "chunk_grid")
    return GRIDS.find(definition.name).from_configuration(definition.configuration, shape)


def parse_lengths(value: Any, key: str, minimum: int) -> Shape:
    """Return a shape or chunk shape from its JSON."""
    if not isinstance(value, list) or any(
        type(n) is not int or not minimum <= n < 2**63 for n in value
    ):
        raise MetadataError(
            "this is not a shape",
            key=key,
            found=value,
            expected=f"a list of integers from {minimum}",
        )
    return tuple(value)


def check_axes(entries: Sequence[Any], shape: Shape, key: str) -> None:
    """Check that a sequence has one entry for each axis of an array; `key` is its name."""
    if len(entries) != len(shape):
        raise MetadataError(
            "there must be one length for each dimension",
            key=key,
            found=entries,
            expected=f"{len(shape)} for shape {shape}",
        )


def extent_at(grid: ChunkGrid, index: Index) -> tuple[slice, ...]:
    """Return the region of the array that a chunk holds; the chunk may extend beyond the array.

    >>> from zarrdask.grids.regular import RegularGrid
    >>> extent_at(RegularGrid((5,), (3,)), (1,))
    (slice(3, 5, 1),)
    """
    places = zip(grid.start(index), grid.shape_of(index), grid.shape, strict=True)
    return tuple(slice(start, min(start + length, size), 1) for start, length, size in places)


def extents(grid: ChunkGrid) -> Shape | tuple[Shape, ...]:
    """Return the chunk shape; if chunks differ, the lengths of all within the array, by axis.

    >>> from zarrdask.grids.rectilinear import RectilinearGrid
    >>> extents(RectilinearGrid((6, 6), ((1, 2, 4), 4)))
    ((1, 2, 3), (4, 2))
    """
    if grid.is_regular:
        return grid.chunk_shape
    return tuple(map(_extents, grid.axes, grid.counts, grid.shape))


def _extents(axis: Axis, count: int, size: int) -> Shape:
    edges = np.arange(count + 1) * axis if isinstance(axis, int) else axis[: count + 1]
    return tuple(np.diff(np.minimum(edges, size)).tolist()) or (0,)
