"""Chunk grids: the interface, and the grids by name."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, Self

from zarrdask.errors import MetadataError
from zarrdask.formats.extension import Registry, parse_definition
from zarrdask.formats.grids.axis import Axis, Even

Shape = tuple[int, ...]

Index = tuple[int, ...]


@dataclass(frozen=True)
class ChunkGrid(ABC):
    """The base class of chunk grids, which are frozen dataclasses.

    A class defines `shape`, `axes`, `from_configuration`, `to_json` and `resize`.
    """

    #: The array's shape, in elements.
    shape: Shape

    @property
    @abstractmethod
    def axes(self) -> tuple[Axis, ...]:
        """The chunks along each axis."""

    @classmethod
    @abstractmethod
    def from_configuration(cls, configuration: Mapping[str, Any], shape: Shape) -> Self:
        """Return the grid of an array from its v3 configuration.

        Raises
        ------
        MetadataError
            If the configuration is not valid, or does not fit the shape.
        """

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the grid's v3 metadata, ``{"name": ..., "configuration": ...}``."""

    @abstractmethod
    def resize(self, shape: Shape) -> "ChunkGrid":
        """Return the grid of the array in another shape; chunks that both shapes have stay."""

    @cached_property
    def is_regular(self) -> bool:
        """Whether all chunks have the same shape, which is `chunk_shape`."""
        return all(isinstance(axis, Even) for axis in self.axes)

    @cached_property
    def chunk_shape(self) -> Shape:
        """The shape of the chunks; if they differ, the largest length along each axis."""
        return tuple(axis.longest for axis in self.axes)

    @cached_property
    def counts(self) -> Shape:
        """The number of chunks along each axis, without those outside the array."""
        return tuple(axis.count for axis in self.axes)

    @property
    def size(self) -> int:
        """The number of chunks."""
        return prod(self.counts)

    @property
    def chunks(self) -> Shape | tuple[Shape, ...]:
        """The chunk shape; if chunks differ, the lengths of all within the array, by axis.

        >>> from zarrdask.formats.grids.rectilinear import RectilinearGrid
        >>> RectilinearGrid((6, 6), ((1, 2, 4), 4)).chunks
        ((1, 2, 3), (4, 2))
        """
        if self.is_regular:
            return self.chunk_shape
        return tuple(axis.blocks(slice(0, axis.size, 1)) for axis in self.axes)

    def indices(self) -> Iterator[Index]:
        """Yield every chunk index, last axis fastest."""
        return product(*map(range, self.counts))

    def start(self, index: Index) -> Index:
        """Return the first element of a chunk; for the index after the last, the end of that."""
        return tuple(axis.start(i) for i, axis in zip(index, self.axes, strict=True))

    def shape_of(self, index: Index) -> Shape:
        """Return the shape in which a chunk is stored: it may extend beyond the array."""
        if self.is_regular:
            return self.chunk_shape
        return tuple(
            axis.start(i + 1) - axis.start(i) for i, axis in zip(index, self.axes, strict=True)
        )

    def region(self, index: Index) -> tuple[slice, ...]:
        """Return the region of the array that a chunk holds; the chunk may extend beyond it.

        >>> from zarrdask.formats.grids.regular import RegularGrid
        >>> RegularGrid((5,), (3,)).region((1,))
        (slice(3, 5, 1),)
        """
        return tuple(slice(*axis.span(i), 1) for i, axis in zip(index, self.axes, strict=True))

    def __getstate__(self) -> dict[str, Any]:
        # Cached properties are left out.
        return {each.name: getattr(self, each.name) for each in fields(self)}


GRIDS: Registry[type[ChunkGrid]] = Registry(
    "chunk grid",
    "chunk_grid",
    "zarrdask.chunk_grids",
    {
        "rectilinear": "zarrdask.formats.grids.rectilinear:RectilinearGrid",
        "regular": "zarrdask.formats.grids.regular:RegularGrid",
    },
)


def parse_grid(value: Any, shape: Shape) -> ChunkGrid:
    """Return the grid that ``chunk_grid`` describes: a name or an object (conformance C-18)."""
    # An unknown grid raises an error for any ``must_understand`` (C-14).
    definition = parse_definition(value, "chunk_grid")
    return GRIDS.find(definition.name).from_configuration(definition.configuration, shape)


def parse_lengths(value: Any, key: str, minimum: int) -> Shape:
    """Return a shape or chunk shape from its JSON."""
    if not isinstance(value, list) or any(
        type(n) is not int or not minimum <= n < 2**63 for n in value
    ):
        raise MetadataError(
            f"invalid lengths: they must be {'positive' if minimum else 'non-negative'} integers",
            key=key,
            found=value,
            expected=f"a list of integers from {minimum}, below 2**63",
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
