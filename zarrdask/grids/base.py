"""Chunk grids: the interface, and the grids by name."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from zarrdask.errors import MetadataError
from zarrdask.extension import Registry, parse_definition

Shape = tuple[int, ...]

Index = tuple[int, ...]

#: The chunks along one axis: their one length, or the sorted boundaries between them, from 0 to
#: the end of the last chunk (int64).
Axis = int | np.ndarray


class ChunkGrid(Protocol):
    """What a chunk grid can do. They are frozen, equal by value, hashable, and pickle."""

    @property
    def shape(self) -> Shape:
        """The array's shape, in elements."""

    @property
    def chunk_shape(self) -> Shape:
        """The shape of all chunks; where they differ, the largest length along each axis."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The chunks along each axis."""

    @property
    def is_regular(self) -> bool:
        """Whether all chunks have one shape: then `axes` is `chunk_shape`."""

    @property
    def counts(self) -> Shape:
        """How many chunks lie along each axis."""

    @property
    def size(self) -> int:
        """How many chunks there are."""

    def indices(self) -> Iterator[Index]:
        """Yield every chunk index, last axis fastest."""

    def start(self, index: Index) -> Index:
        """Where the chunk begins, in elements; for the index after the last, where that ends."""

    def shape_of(self, index: Index) -> Shape:
        """Return the shape of a chunk, as it is stored: it may hang over the array."""

    def resize(self, shape: Shape) -> "ChunkGrid":
        """Return the grid of an array that was given another shape; chunks in both stay."""

    def to_json(self) -> dict[str, Any]:
        """Return the grid's v3 metadata, ``{"name": ..., "configuration": ...}``."""


class ChunkGridClass(Protocol):
    """A chunk grid class, as the registry sees it."""

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any], shape: Shape) -> ChunkGrid:
        """Return the grid of an array for its v3 configuration.

        Raises
        ------
        MetadataError
            If it is wrong, or does not fit the shape.
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
    """Return the grid that ``chunk_grid`` describes: a name or an object (conformance C-18).

    Raises
    ------
    MetadataError
        If it is neither, or its configuration is wrong.
    UnsupportedError
        If the name is unknown: ``must_understand`` makes no difference here (C-14).
    """
    definition = parse_definition(value, "chunk_grid")
    return GRIDS.find(definition.name).from_configuration(definition.configuration, shape)


def check_axes(entries: Sequence[Any], shape: Shape, key: str) -> None:
    """Check that something has one entry for each axis.

    Raises
    ------
    MetadataError
        If it has more or less.
    """
    if len(entries) != len(shape):
        raise MetadataError(
            "there must be one length for each dimension",
            key=key,
            found=entries,
            expected=f"{len(shape)} for shape {shape}",
        )


def extent_at(grid: ChunkGrid, index: Index) -> tuple[slice, ...]:
    """Return what of an array lies in a chunk, which may hang over it.

    >>> extent_at(RegularGrid((5,), (3,)), (1,))
    (slice(3, 5, 1),)
    """
    places = zip(grid.start(index), grid.shape_of(index), grid.shape, strict=True)
    return tuple(slice(start, min(start + length, size), 1) for start, length, size in places)


def extents(grid: ChunkGrid) -> Shape | tuple[Shape, ...]:
    """Return the chunk shape; where chunks differ, what each holds of the array, along each axis.

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
