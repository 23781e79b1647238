"""Storage transformers, which stand between an array and its store (conformance C-77, S-14)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, Self

from zarrdask.formats.extension import Registry
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.grids.keys import ChunkKeyEncoding

if TYPE_CHECKING:
    from zarrdask.storage.base import Store


class StorageTransformer(Protocol):
    """The interface of storage transformers, which are frozen, equal by value, and picklable."""

    def wrap(self, store: "Store", prefix: str, keys: ChunkKeyEncoding, counts: Shape) -> "Store":
        """Return the store of the array's chunks, as the array sees it.

        Parameters
        ----------
        store : Store
            The store below: the underlying store, or the store of the next transformer.
        prefix : str
            The prefix of the array's keys.
        keys : ChunkKeyEncoding
            The encoding of the chunk keys.
        counts : tuple of int
            The number of chunks along each axis.
        """

    def to_json(self) -> dict[str, Any]:
        """Return the transformer's v3 metadata, ``{"name": ..., "configuration": ...}``."""


class TransformerClass(Protocol):
    """The interface of classes of storage transformers."""

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        """Return the transformer for its v3 configuration.

        Raises
        ------
        MetadataError
            If the configuration is invalid.
        """


#: The core of v3 defines no storage transformer. The draft's, sharding, is read as a codec.
TRANSFORMERS: Registry[type[TransformerClass]] = Registry(
    "storage transformer", "storage_transformers", "zarrdask.storage_transformers", {}
)
