"""Storage transformers: what may stand between an array and its store (conformance C-77, S-14)."""

from collections.abc import Mapping
from typing import Any, Protocol, Self

from zarrdask.extension import Registry
from zarrdask.grids.base import Shape
from zarrdask.grids.keys import ChunkKeyEncoding
from zarrdask.storage.base import Store


class StorageTransformer(Protocol):
    """What a storage transformer can do. They are frozen, equal by value, and pickle."""

    def wrap(self, store: Store, prefix: str, keys: ChunkKeyEncoding, counts: Shape) -> Store:
        """Return the store that holds the array's chunks, as the array sees it.

        Parameters
        ----------
        store : Store
            The store below: the real one, or that of the next transformer.
        prefix : str
            Of the array's keys.
        keys : ChunkKeyEncoding
            How the array names its chunks.
        counts : tuple of int
            How many chunks lie along each axis.
        """

    def to_json(self) -> dict[str, Any]:
        """Return the transformer's v3 metadata, ``{"name": ..., "configuration": ...}``."""


class TransformerClass(Protocol):
    """A storage transformer class, as the registry sees it."""

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        """Return the transformer for its v3 configuration.

        Raises
        ------
        MetadataError
            If it is wrong.
        """


_SHARDING = "zarrdask.storage.sharding_transformer:ShardingTransformer"

#: None is part of the core of v3; the draft has one, under several URIs (S-1).
TRANSFORMERS: Registry[type[TransformerClass]] = Registry(
    "storage transformer",
    "storage_transformers",
    "zarrdask.storage_transformers",
    {
        f"{scheme}://purl.org/zarr/spec/{name}/sharding/1.0": _SHARDING
        for scheme in ("https", "http")
        for name in (
            "extensions/storage-transformers",
            "extensions/storage_transformers",
            "storage-transformers",
            "storage_transformers",
        )
    },
)
