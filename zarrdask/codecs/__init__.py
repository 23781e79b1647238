"""Codecs: chunk <-> bytes, pure. The names below are for codecs of your own."""

from zarrdask.codecs.base import (
    ArrayArray,
    ArrayBytes,
    BytesBytes,
    ChunkSpec,
    Codec,
    Configured,
    Kind,
    Serializer,
    parse_configuration,
)

__all__ = [
    "ArrayArray",
    "ArrayBytes",
    "BytesBytes",
    "ChunkSpec",
    "Codec",
    "Configured",
    "Kind",
    "Serializer",
    "parse_configuration",
]
