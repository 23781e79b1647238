"""The storage transformers of the v3 draft, and sharding as a codec."""

from dataclasses import replace
from typing import Any

from zarrdask.codecs.array_to_bytes.bytes import BytesCodec
from zarrdask.codecs.array_to_bytes.sharding import ShardingCodec
from zarrdask.codecs.base import Codec, check_count
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.extension import is_uri
from zarrdask.grids.base import ChunkGrid
from zarrdask.grids.regular import RegularGrid
from zarrdask.metadata.model import ArrayMetadata
from zarrdask.storage.sharding_transformer import ShardingTransformer
from zarrdask.storage.transformers import TRANSFORMERS, StorageTransformer

#: The codecs of a shard's index, which the draft fixes (S-4, S-5).
INDEX_CODECS = (BytesCodec("little"),)


def parse_transformers(value: Any, ndim: int) -> tuple[StorageTransformer, ...]:
    """Return the storage transformers, the one next to the array first (B-33, S-1, S-2, S-14)."""
    if not isinstance(value, list):
        raise MetadataError(
            "these are not storage transformers",
            key="storage_transformers",
            found=value,
            expected="a list",
        )
    check_count(value, "storage_transformers")
    transformers = tuple(map(_parse_transformer, value))
    for transformer in transformers:
        if isinstance(transformer, ShardingTransformer):
            transformer.check(ndim)
    return transformers


def _parse_transformer(value: Any) -> StorageTransformer:
    members = value if isinstance(value, dict) else {}
    settings = members.get("configuration", {})
    if (
        not is_uri(members.get("extension"))
        or "type" not in members
        or not isinstance(settings, dict)
        or set(members) - {"extension", "type", "configuration"}
    ):
        raise MetadataError(
            "this is not a storage transformer",
            key="storage_transformers",
            found=value,
            expected='{"extension": URI, "type": ..., "configuration": {...}}',
        )
    kind = TRANSFORMERS.find(members["extension"])
    parsed = kind.from_configuration({**settings, "type": members["type"]})
    return parsed  # type: ignore[return-value]


def with_shards(
    grid: ChunkGrid, codecs: tuple[Codec, ...], transformers: tuple[StorageTransformer, ...]
) -> tuple[ChunkGrid, tuple[Codec, ...], tuple[StorageTransformer, ...]]:
    """Return an array's grid, codecs and storage transformers with sharding as a codec (S.1).

    A sharding transformer next to the array stores the same bytes as the sharding codec, which
    can also read parts of a shard.
    """
    while (
        transformers
        and isinstance(transformers[0], ShardingTransformer)
        and type(grid) is RegularGrid
    ):
        inner = tuple(n or 1 for n in grid.chunk_shape)
        counts = transformers[0].chunks_per_shard
        shard = tuple(n * count for n, count in zip(inner, counts, strict=True))
        grid = RegularGrid(grid.shape, shard)
        codecs = (ShardingCodec(inner, codecs, INDEX_CODECS),)
        transformers = transformers[1:]
    return grid, codecs, transformers


def without_shards(
    metadata: ArrayMetadata,
) -> tuple[ChunkGrid, list[Codec], tuple[StorageTransformer, ...]]:
    """Return the grid of the chunks, their codecs, and all storage transformers."""
    grid, codecs, transformers = metadata.grid, metadata.codecs, list(metadata.transformers)
    while len(codecs) == 1 and isinstance(codecs[0], ShardingCodec):
        codec = codecs[0]
        if codec != replace(codec, index_codecs=INDEX_CODECS, index_location="end"):
            raise UnsupportedError(
                "the draft of Zarr v3 has one form of index only: at the end, without checksum",
                key="shards",
                found=[c.name for c in codec.index_codecs or ()],
            )
        pairs = zip(grid.chunk_shape, codec.chunk_shape, strict=True)
        transformers.insert(0, ShardingTransformer(tuple(shard // n for shard, n in pairs)))
        grid = RegularGrid(grid.shape, codec.chunk_shape)
        codecs = codec.codecs
    return grid, list(codecs), tuple(transformers)
