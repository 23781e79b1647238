"""The rules of a format: the features of its arrays, and how new ones are made; v3 by default."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zarrdask.codecs.array_to_array.transpose import TransposeCodec
from zarrdask.codecs.array_to_bytes.bytes import BytesCodec
from zarrdask.codecs.array_to_bytes.sharding import ShardingCodec
from zarrdask.codecs.base import Codec, Kind, check_count
from zarrdask.codecs.coerce import find_codec
from zarrdask.codecs.registry import parse_codec
from zarrdask.dtypes.base import DataType
from zarrdask.dtypes.registry import portable
from zarrdask.errors import MetadataError, instance_of
from zarrdask.extension import Definition, Registry, parse_definition
from zarrdask.grids.base import ChunkGrid, Shape
from zarrdask.grids.keys import KEY_ENCODINGS, ChunkKeyEncoding, ChunkKeys, parse_keys
from zarrdask.metadata.options import ArrayOptions, as_list
from zarrdask.storage.transformers import TRANSFORMERS, StorageTransformer

#: The grid, codecs and storage transformers of an array.
Layout = tuple[ChunkGrid, tuple[Codec, ...], tuple[StorageTransformer, ...]]


#: Extensions of a whole array or group: for each name a function that checks its configuration.
EXTENSIONS: Registry[Callable[[Mapping[str, Any]], None]] = Registry(
    "extension", "extensions", "zarrdask.extensions", {}
)


# --------------------------------------------------------------------------------------------
# Extensions and storage transformers


def parse_extensions(items: Any) -> tuple[Definition, ...]:
    """Return the extensions of an array or a group (conformance C-24, C-25)."""
    if not instance_of(items, "extensions", list):
        raise MetadataError("there must be at least one extension", key="extensions")
    return check_understood(parse_definition(item, "extensions") for item in items)


def check_understood(definitions: Iterable[Definition]) -> tuple[Definition, ...]:
    """Return extensions after checking the configurations of those that are known."""
    checked = tuple(definitions)
    for definition in checked:
        check = EXTENSIONS.get(definition.name)
        if check is not None:
            check(definition.configuration)
        elif definition.must_understand:
            raise EXTENSIONS.unknown(definition.name)
    return checked


def parse_transformers(items: Any) -> tuple[StorageTransformer, ...]:
    """Return the storage transformers of an array; ``[]`` means none (conformance C-77)."""
    check_count(instance_of(items, "storage_transformers", list), "storage_transformers")
    definitions = [parse_definition(item, "storage_transformers") for item in items]
    return tuple(
        TRANSFORMERS.find(d.name).from_configuration(d.configuration)  # type: ignore[misc]
        for d in definitions
    )


# --------------------------------------------------------------------------------------------
# New arrays of v3


def v3_codecs(
    options: ArrayOptions, data_type: DataType, ndim: int, inner: Shape | None
) -> list[Codec]:
    """Return the codecs of a new array in v3; `inner` is the shape of the chunks in shards, if any.

    `data_type` is the one that the user asks for.
    """
    if options.codecs is not None:
        if options.compressors is not None or options.filters is not None or options.order != "C":
            raise MetadataError(
                "codecs is the whole chain; leave out filters, compressors and order", key="codecs"
            )
        codecs = [find_codec(item) for item in as_list(options.codecs)]
        if all(codec.kind is Kind.BYTES_BYTES for codec in codecs):
            codecs.insert(0, _serializer(data_type))
    else:
        compressors = "zstd" if options.compressors is None else options.compressors
        codecs = [find_codec(item) for item in (*as_list(options.filters), *as_list(compressors))]
        if options.order == "F" and ndim > 1:
            codecs.insert(0, TransposeCodec(tuple(reversed(range(ndim)))))
        if all(codec.kind is not Kind.ARRAY_BYTES for codec in codecs):
            codecs.append(_serializer(data_type))
        # numcodecs does not distinguish the kinds: its shuffle is a filter, pcodec a compressor.
        codecs.sort(key=lambda codec: list(Kind).index(codec.kind))
    return codecs if inner is None else [ShardingCodec(inner, tuple(codecs))]


def _serializer(data_type: DataType) -> Codec:
    # The byte order is filled in when the codec is bound to the type of its input.
    name = data_type.serializer
    return BytesCodec(None) if name == BytesCodec.name else parse_codec(name)


def v3_keys(options: ArrayOptions, default: str = "default") -> ChunkKeyEncoding:
    """Return the chunk key encoding of a new array; by default the one with the name `default`."""
    encoding = options.chunk_key_encoding
    if encoding is None or encoding in ("default", "v2"):
        own = {} if options.separator is None else {"separator": options.separator}
        return KEY_ENCODINGS.find(encoding or default)(own)
    if isinstance(encoding, str | Mapping):
        return parse_keys(encoding if isinstance(encoding, str) else dict(encoding))
    if not hasattr(encoding, "names"):
        raise MetadataError(
            "this is not a chunk key encoding", key="chunk_key_encoding", found=encoding
        )
    return encoding


# --------------------------------------------------------------------------------------------
# The rules of a format


def _same_layout(
    grid: ChunkGrid, codecs: tuple[Codec, ...], transformers: Sequence[StorageTransformer]
) -> Layout:
    return grid, codecs, tuple(transformers)


@dataclass(frozen=True, kw_only=True)
class FormatRules:
    """The features of the arrays of a format, and how new ones are made. The defaults are v3's."""

    #: The name of the format, for errors.
    title: str = "Zarr v3"
    #: Whether all Zarr software reads only paths that are ASCII text.
    ascii_paths: bool = False
    #: Whether names that begin with "__" are reserved for other purposes than nodes.
    reserves_names: bool = True
    #: Whether arrays may be sharded.
    has_shards: bool = True
    #: The codecs of the index of every shard. If given, shards can stand only at the beginning of a
    #: chain; by default the metadata of an array chooses the codecs and the place.
    index_codecs: tuple[Codec, ...] | None = None
    #: Whether an array may have no fill value.
    optional_fill: bool = False
    #: Whether codecs after the byte conversion are those of numcodecs.
    uses_numcodecs: bool = False
    #: Whether a filter, and not the data type, says what the objects in an array are.
    object_filter: bool = False
    #: Whether dimension names are kept as an attribute.
    names_in_attributes: bool = False
    #: Whether some dimensions may have names while others have none.
    partial_names: bool = True
    #: Whether arrays may have storage transformers.
    has_transformers: bool = True
    #: ``(requested) -> DataType`` returns the type of a new array.
    data_type: Callable[[DataType], DataType] = portable
    #: ``(data_type, stored) -> DataType`` returns the type of a converted array; `stored` is its
    #: NumPy type in the byte order in which it is stored.
    convert_data_type: Callable[[DataType, np.dtype[Any]], DataType] = lambda own, _: portable(own)
    #: ``(options, requested, ndim, inner) -> codecs`` returns the codecs of a new array; see
    #: `v3_codecs`.
    codecs: Callable[[ArrayOptions, DataType, int, Shape | None], Sequence[Codec]] = v3_codecs
    #: ``(options) -> ChunkKeyEncoding`` returns the chunk key encoding of a new array.
    keys: Callable[[ArrayOptions], ChunkKeyEncoding] = v3_keys
    #: ``(keys) -> ChunkKeyEncoding`` returns that of an array converted from another format.
    convert_keys: Callable[[ChunkKeyEncoding], ChunkKeyEncoding] = lambda _: ChunkKeys()
    #: ``(items, ndim)`` parses the storage transformers of a new array.
    transformers: Callable[[list[Any], int], Sequence[Any]] = lambda items, _: parse_transformers(
        items
    )
    #: ``(items)`` parses the extensions of a new array.
    extensions: Callable[[list[Any]], tuple[Definition, ...]] = lambda items: (
        parse_extensions(items) if items else ()
    )
    #: ``(grid, codecs, transformers)`` returns the three in the form in which arrays of the format
    #: are modelled.
    layout: Callable[[ChunkGrid, tuple[Codec, ...], Sequence[Any]], Layout] = _same_layout

    @property
    def has_free_shards(self) -> bool:
        """Whether shards may have any index, and stand anywhere in a chain, also in shards."""
        return self.has_shards and self.index_codecs is None


#: The rules of v3, and of formats that have none of their own.
V3_RULES = FormatRules()
