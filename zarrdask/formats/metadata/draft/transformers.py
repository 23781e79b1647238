"""The storage transformers of the v3 draft. One of them, sharding, becomes a codec (S.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from zarrdask.errors import UnsupportedError, instance_of, one_of
from zarrdask.formats.codecs.array_to_bytes.bytes import BytesCodec
from zarrdask.formats.codecs.array_to_bytes.sharding import ShardingCodec
from zarrdask.formats.codecs.codec import Codec, check_count
from zarrdask.formats.extension import members_of
from zarrdask.formats.grids.chunk_grid import ChunkGrid, Shape, check_axes, parse_lengths
from zarrdask.formats.grids.regular import RegularGrid
from zarrdask.formats.metadata.draft.entry import parse_uri
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.formats.metadata.storage_transformers import TRANSFORMERS, StorageTransformer

#: The codecs of a shard's index, which the draft fixes (S-4, S-5).
INDEX_CODECS = (BytesCodec("little"),)
#: The URI of sharding that readers accept (X-B17, ZEP 2), and the URI in the specification's title.
URI = "https://purl.org/zarr/spec/storage_transformers/sharding/1.0"
TITLE = "https://purl.org/zarr/spec/extensions/storage-transformers/sharding/1.0"
#: All URIs of sharding (S-1).
_URIS = frozenset(
    f"{scheme}://purl.org/zarr/spec/{folder}{name}/sharding/1.0"
    for scheme in ("https", "http")
    for folder in ("", "extensions/")
    for name in ("storage-transformers", "storage_transformers")
)


@dataclass(frozen=True)
class DraftSharding:
    """Sharding as documents of the draft describe it: many chunks in one value."""

    #: The number of chunks in a shard along each axis.
    chunks_per_shard: Shape

    def to_json(self) -> dict[str, Any]:
        """Return the name and the configuration, as of other transformers."""
        settings = {"type": "indexed", "chunks_per_shard": list(self.chunks_per_shard)}
        return {"name": URI, "configuration": settings}


def parse_transformers(value: Any, ndim: int) -> tuple[StorageTransformer | DraftSharding, ...]:
    """Return the storage transformers, the one next to the array first (B-33, S-1, S-2, S-14)."""
    check_count(instance_of(value, "storage_transformers", list), "storage_transformers")
    return tuple(_parse_transformer(item, ndim) for item in value)


def _parse_transformer(value: Any, ndim: int) -> StorageTransformer | DraftSharding:
    members, settings = parse_uri(value, "storage_transformers", "extension", "type")
    configuration = {**settings, "type": members["type"]}
    if members["extension"] in _URIS:
        return _parse_sharding(configuration, ndim)
    kind = TRANSFORMERS.find(members["extension"])
    return kind.from_configuration(configuration)  # type: ignore[return-value]


def _parse_sharding(configuration: Mapping[str, Any], ndim: int) -> DraftSharding:
    required = {"type": ..., "chunks_per_shard": ...}
    members = members_of(configuration, "storage_transformers sharding", required)
    one_of(members["type"], "storage_transformers.type", ("indexed",))
    counts = parse_lengths(members["chunks_per_shard"], "sharding.chunks_per_shard", 1)
    check_axes(counts, (1,) * ndim, "sharding.chunks_per_shard")
    return DraftSharding(counts)


def with_shards(
    grid: ChunkGrid,
    codecs: tuple[Codec, ...],
    transformers: Sequence[StorageTransformer | DraftSharding],
) -> tuple[ChunkGrid, tuple[Codec, ...], tuple[StorageTransformer, ...]]:
    """Return an array's grid, codecs and storage transformers with sharding as a codec (S.1).

    A sharding transformer next to the array stores the same bytes as the sharding codec.
    """
    others: list[StorageTransformer] = []
    for transformer in transformers:
        if not isinstance(transformer, DraftSharding):
            others.append(transformer)
            continue
        if others or type(grid) is not RegularGrid:
            raise UnsupportedError(
                "sharding is supported for regular chunks only, and as the first transformer",
                key="storage_transformers",
                found=[item.to_json()["name"] for item in transformers],
            )
        inner = tuple(n or 1 for n in grid.chunk_shape)
        counts = transformer.chunks_per_shard
        shard = tuple(n * count for n, count in zip(inner, counts, strict=True))
        grid = RegularGrid(grid.shape, shard)
        codecs = (ShardingCodec(inner, codecs, INDEX_CODECS),)
    return grid, codecs, tuple(others)


def without_shards(
    metadata: ArrayMetadata,
) -> tuple[ChunkGrid, list[Codec], tuple[StorageTransformer | DraftSharding, ...]]:
    """Return the grid of the chunks, their codecs, and all storage transformers."""
    grid, codecs = metadata.grid, metadata.codecs
    transformers: list[StorageTransformer | DraftSharding] = [*metadata.transformers]
    while len(codecs) == 1 and isinstance(codecs[0], ShardingCodec):
        codec = codecs[0]
        if codec != replace(codec, index_codecs=INDEX_CODECS, index_location="end"):
            raise UnsupportedError(
                "the draft of Zarr v3 has one form of index only: at the end, without checksum",
                key="shards",
                found=[c.name for c in codec.index_codecs or ()],
            )
        pairs = zip(grid.chunk_shape, codec.chunk_shape, strict=True)
        transformers.insert(0, DraftSharding(tuple(shard // n for shard, n in pairs)))
        grid = RegularGrid(grid.shape, codec.chunk_shape)
        codecs = codec.codecs
    return grid, list(codecs), tuple(transformers)
