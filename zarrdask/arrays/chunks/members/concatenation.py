"""Concatenations: arrays made of regions of other stored arrays.

The members are the cells of a grid, so that the members which a request overlaps are found as its
chunks are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from zarrdask.arrays.chunks.missing_chunks import Missing
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.formats.grids.axis import Uneven, edges_of
from zarrdask.formats.grids.chunk_grid import Index, Shape
from zarrdask.formats.grids.regular import RegularGrid
from zarrdask.formats.indexing.projection import Points, Request
from zarrdask.formats.indexing.regions import compose_axis
from zarrdask.formats.indexing.selection import Region, pick_size
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.storage.base import Store
from zarrdask.storage.resolve import open_store

#: The number of stores of members that a process keeps open.
_MAX_OPEN_STORES = 1024
#: The beginning of the name of a document in the group above an array.
ABOVE = "../"
#: The number of shapes of parts whose metadata a concatenation keeps.
_MAX_SHAPES = 256


class Member(NamedTuple):
    """A region of a stored array: a cell of a concatenation.

    A URL stands for a store that is opened when the member is read, so that a concatenation of very
    many members takes little memory.
    """

    store: Store | str
    #: The prefix of the array's keys in the store.
    prefix: str
    metadata: ArrayMetadata
    #: The region of the stored array, and the axes of it that the member has.
    region: Region
    axes: tuple[int, ...]
    #: As in `StoredChunks`.
    missing: Missing | None
    #: The version stamp of the array's document, or its ETag; "" if it is not known.
    stamp: str = ""
    #: The name of that document, relative to the array; by default the array's own.
    stamped: str = ""

    @property
    def shape(self) -> Shape:
        """The shape of the member."""
        return tuple([pick_size(self.region[axis]) for axis in self.axes])

    def lengths(self, axis: int) -> tuple[int, ...]:
        """Return how many elements are in each stored object that the member overlaps."""
        number = self.axes[axis]
        pick = self.region[number]
        return _lengths(_Identity(self.metadata), number, pick.start, pick.stop, pick.step)

    def chunks(self, options: "Options" = None) -> StoredChunks:
        """Return the stored array; `options` are for stores at URLs."""
        store = self.opened(options)
        return StoredChunks(store, self.prefix, self.metadata, missing=self.missing)

    def opened(self, options: "Options" = None) -> Store:
        """Return the store; `options` are for stores at URLs."""
        store = self.store
        return _open(store, _hashable(options)) if isinstance(store, str) else store

    @property
    def stamped_key(self) -> str:
        """The key of the document that has the stamp."""
        name, prefix = self.stamped or self.metadata.format.documents[0], self.prefix
        if name.startswith(ABOVE):
            name, prefix = name.removeprefix(ABOVE), prefix[: prefix.rfind("/", 0, -1) + 1]
        return prefix + name

    def requested(self, request: Request) -> Request:
        """Return the request to the stored array for a request to the member."""
        if not self.region:
            return ()
        if isinstance(request, Points):
            count = len(request.coordinates[0]) if request.coordinates else 1
            points = [np.full(count, pick.start) for pick in self.region]
            for axis, positions in zip(self.axes, request.coordinates, strict=True):
                pick = self.region[axis]
                points[axis] = pick.start + pick.step * positions
            return Points(tuple(points))
        picks: list[slice | np.ndarray] = list(self.region)
        for axis, inner in zip(self.axes, request, strict=True):
            outer = self.region[axis]
            if isinstance(inner, slice):
                picks[axis] = compose_axis(outer, inner)
            else:
                picks[axis] = outer.start + outer.step * inner
        return tuple(picks)


#: The options of the stores at URLs, as users pass them.
Options = Mapping[str, Any] | None


class _Identity:
    """Metadata, compared by identity: members share it."""

    __slots__ = ("metadata",)

    def __init__(self, metadata: ArrayMetadata) -> None:
        self.metadata = metadata

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.metadata is other.metadata

    def __hash__(self) -> int:
        return id(self.metadata)


@lru_cache(maxsize=256)
def _lengths(held: _Identity, axis: int, start: int, stop: int, step: int) -> tuple[int, ...]:
    return held.metadata.grid.axes[axis].blocks(slice(start, stop, step))


def _hashable(options: Options) -> Any:
    return None if options is None else _HashedOptions(options)


class _HashedOptions(dict[str, Any]):
    """Options as part of a key of a cache."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(sorted(self.items())))


@lru_cache(maxsize=_MAX_OPEN_STORES)
def _open(url: str, options: Any) -> Store:
    return open_store(url, None if options is None else dict(options))


@dataclass(frozen=True, eq=False)
class Concatenation:
    """Members as one array.

    Attributes
    ----------
    metadata : ArrayMetadata
        The metadata of the array. It has the chunks of the members, as far as these agree.
    axes : tuple of Uneven
        The boundaries of the members along each axis.
    members : sequence of (Member or None)
        The members in C order; None stands for a missing one, which is read as the fill value.
    added : tuple of int
        The axes that the members do not have: those along which they are stacked.
    options : mapping, optional
        The options of stores at URLs.
    is_saved : bool
        Whether the members come from a saved list: they must have the stamps that it has.
    """

    metadata: ArrayMetadata
    axes: tuple[Uneven, ...]
    members: Sequence[Member | None]
    added: tuple[int, ...] = ()
    options: Options = None
    is_saved: bool = False
    #: The metadata of parts, by their shapes.
    _parts: dict[Shape, ArrayMetadata] = field(init=False, repr=False, default_factory=dict)

    @property
    def counts(self) -> Shape:
        """The number of members along each axis."""
        return tuple([len(axis.boundaries) - 1 for axis in self.axes])

    def number(self, index: Index) -> int:
        """Return the number of a member by its index."""
        number = 0
        for count, position in zip(self.counts, index, strict=True):
            number = number * count + position
        return number

    def member(self, index: Index) -> Member | None:
        """Return the member with an index."""
        return self.members[self.number(index)]

    def own_axes(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return the values for the axes that members have, given those for all axes."""
        return tuple([each for axis, each in enumerate(values) if axis not in self.added])

    def overlapped(self, region: Region) -> list[range]:
        """Return the numbers of the members along each axis that a region overlaps."""
        return [axis.numbers(pick) for axis, pick in zip(self.axes, region, strict=True)]

    def part(self, region: Region) -> tuple["Concatenation", Region]:
        """Return the members that a region overlaps as a concatenation, and the region of it."""
        numbers = self.overlapped(region)
        axes, picks = [], []
        for axis, along, pick in zip(self.axes, numbers, region, strict=True):
            boundaries = axis.boundaries[along.start : along.stop + 1]
            first = int(boundaries[0])
            axes.append(Uneven(int(boundaries[-1]) - first, boundaries - first))
            empty = not len(along)
            start = 0 if empty else pick.start - first
            picks.append(slice(start, start if empty else pick.stop - first, pick.step))
        members = [self.members[self.number(index)] for index in product(*numbers)]
        shape = tuple(axis.size for axis in axes)
        part = replace(self, metadata=self._of_shape(shape), axes=tuple(axes), members=members)
        return part, tuple(picks)

    def _of_shape(self, shape: Shape) -> ArrayMetadata:
        """Return the metadata of a part, whose chunks do not matter: as a single chunk."""
        if shape not in self._parts:
            if len(self._parts) >= _MAX_SHAPES:
                self._parts.clear()
            grid = RegularGrid(shape, tuple(max(size, 1) for size in shape))
            self._parts[shape] = replace(self.metadata.without_labels(), grid=grid)
        return self._parts[shape]

    def present(self) -> Iterator[Member]:
        """Yield the members that are not missing."""
        return (member for member in self.members if member is not None)

    @property
    def size(self) -> int:
        """The number of cells; some may be missing."""
        return prod(self.counts)


def boundaries_of(lengths: Sequence[int]) -> Uneven:
    """Return the boundaries of members with some lengths along an axis."""
    edges = edges_of(lengths)
    return Uneven(int(edges[-1]), edges)


def location_of_member(member: Member) -> str:
    """Return the URL of a member's array."""
    url = member.store if isinstance(member.store, str) else member.store.url
    return f"{url}/{member.prefix}".rstrip("/")
