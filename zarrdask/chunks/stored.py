"""The chunks and shards of an array, bound to the store that they are in.

A *unit* is what is stored as one object: a chunk, or a shard of an array that has shards.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from zarrdask.grids.base import Index
from zarrdask.metadata.model import ArrayMetadata
from zarrdask.runtime.locks import location_of
from zarrdask.storage.base import Store


@dataclass(frozen=True)
class StoredChunks:
    """The units of one array in a store.

    Attributes
    ----------
    store : Store
    prefix : str
        The prefix of the array's keys: "" or ends with "/".
    metadata : ArrayMetadata
    guard : callable, optional
        Returns the view of a store through which units are changed, on a condition.
    units : Store
        The store seen through the array's storage transformers: chunks and shards are read from
        it and written to it.
    """

    store: Store
    prefix: str
    metadata: ArrayMetadata
    guard: Callable[[Store], Store] | None = field(default=None, compare=False, repr=False)
    units: Store = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        # Consolidated metadata hold no chunks: these are listed and read in the store itself.
        object.__setattr__(self, "store", self.store.current)
        units = self.store.for_chunks()
        if self.guard is not None:
            units = self.guard(units)
        for transformer in reversed(self.metadata.transformers):
            grid = self.metadata.grid
            units = transformer.wrap(units, self.prefix, self.metadata.keys, grid.counts)
        object.__setattr__(self, "units", units)

    def key(self, index: Index) -> str:
        """Return the key of a unit in `units`."""
        return self.prefix + self.metadata.keys.key(index)

    @property
    def location(self) -> str:
        """The URL of the array, for messages."""
        return f"{self.store.url}/{self.prefix}".rstrip("/")

    @cached_property
    def place(self) -> str:
        """The location of the array, the same for all stores and prefixes that lead to it."""
        return location_of(self.store, self.prefix)

    def lock_name(self, index: Index) -> str:
        """Return the name of the lock of a unit."""
        return self.place + self.metadata.keys.key(index)
