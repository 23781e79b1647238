"""A stored array, bound to its store: where its chunks and shards are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import floordiv, mul

from zarrdask.grids.base import Index, Shape
from zarrdask.metadata.model import ArrayMetadata
from zarrdask.runtime.locks import location_of
from zarrdask.storage.base import Scratch, Store
from zarrdask.storage.byte_ranges import Buffer, Range


@dataclass(frozen=True)
class StoredChunks:
    """The stored units of one array.

    Attributes
    ----------
    store : Store
    prefix : str
        Of the array's keys: "" or ends with "/".
    metadata : ArrayMetadata
    """

    store: Store
    prefix: str
    metadata: ArrayMetadata
    #: Where the units are: the store, seen through the array's storage transformers.
    units: Store = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        units = self.store.for_chunks()
        for transformer in reversed(self.metadata.transformers):
            grid = self.metadata.grid
            units = transformer.wrap(units, self.prefix, self.metadata.keys, grid.counts)
        object.__setattr__(self, "units", units)

    def key(self, index: Index) -> str:
        """Return the store key of a unit."""
        return self.prefix + self.metadata.keys.key(index)

    @property
    def location(self) -> str:
        """Where the array is, for messages."""
        return f"{self.store.url}/{self.prefix}".rstrip("/")

    @cached_property
    def place(self) -> str:
        """Where the units are, whatever store and prefix they are reached by."""
        return location_of(self.store, self.prefix)

    @cached_property
    def _together(self) -> Shape | None:
        """How many units along each axis a storage transformer keeps in one value."""
        found: Shape | None = None
        for layer in self.metadata.transformers:
            counts = getattr(layer, "chunks_per_shard", None)
            if counts is not None:
                found = tuple(map(mul, counts, found or (1,) * len(counts)))
        return found

    @property
    def is_packed(self) -> bool:
        """Whether a storage transformer keeps several units in one value."""
        return self._together is not None

    def lock_name(self, index: Index) -> str:
        """Return what a lock must be called to keep others from the value that holds a unit."""
        if self._together is not None:
            index = tuple(map(floordiv, index, self._together))
        return self.place + self.metadata.keys.key(index)


@dataclass(frozen=True)
class StoredValue:
    """A value in a store, read in parts."""

    store: Store
    key: str
    scratch: Scratch

    def part(self, start: int, length: int) -> Buffer | None:
        return self.store.get_range(self.key, start, None if start < 0 else length)

    def parts(self, ranges: Sequence[Range]) -> Iterator[Buffer | None]:
        return self.store.get_ranges(self.key, ranges, self.scratch)
