"""Codecs: chunk <-> bytes, pure. Codecs of your own are made from the names below."""

from typing import TYPE_CHECKING, Any

from zarrdask.display.other_names import CODECS
from zarrdask.errors import no_name
from zarrdask.formats.codecs.codec import (
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

if not TYPE_CHECKING:  # For type checkers, every name would exist.

    def __getattr__(name: str) -> Any:
        raise no_name(__name__, name, CODECS)
