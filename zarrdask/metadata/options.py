"""The options of a new array, as users give them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from zarrdask.codecs.base import Codec
from zarrdask.grids.keys import ChunkKeyEncoding
from zarrdask.metadata.chunking import ChunksLike, GridLike
from zarrdask.metadata.model import ZarrFormat

#: One codec or several: names, configurations (dicts), numcodecs objects or instances.
CodecsLike = str | Mapping[str, Any] | Codec | Sequence[Any] | None
#: A chunk key encoding: its name, its v3 metadata, or an instance.
KeysLike = str | Mapping[str, Any] | ChunkKeyEncoding | None


@dataclass(frozen=True, kw_only=True)
class ArrayOptions:
    """The options of a new array; `zarrdask.create_array` describes them."""

    shape: Any
    dtype: Any
    chunks: ChunksLike = "auto"
    shards: ChunksLike = None
    grid: GridLike = None
    codecs: CodecsLike = None
    compressors: CodecsLike = None
    filters: CodecsLike = None
    order: Literal["C", "F"] = "C"
    fill_value: Any = None
    dimension_names: Sequence[str | None] | None = None
    attributes: Mapping[str, Any] | None = None
    chunk_key_encoding: KeysLike = None
    separator: Literal["/", "."] | None = None
    storage_transformers: Sequence[Any] = ()
    extensions: Sequence[Any] = ()
    zarr_format: ZarrFormat = 3


def as_list(value: Any) -> list[Any]:
    """Return the items of an argument that may be None, one item, or several."""
    if value is None:
        return []
    if isinstance(value, Iterable) and not isinstance(value, str | Mapping):
        return list(value)
    return [value]
