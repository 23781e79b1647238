"""The base class of formats: their documents, the features of their nodes, and new arrays."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zarrdask.errors import MetadataError
from zarrdask.formats.codecs.array_to_array.transpose import TransposeCodec
from zarrdask.formats.codecs.array_to_bytes.bytes import BytesCodec
from zarrdask.formats.codecs.array_to_bytes.sharding import ShardingCodec
from zarrdask.formats.codecs.codec import Codec, Kind
from zarrdask.formats.codecs.coerce import find_codec
from zarrdask.formats.codecs.registry import parse_codec
from zarrdask.formats.dtypes.data_type import DataType
from zarrdask.formats.dtypes.registry import portable
from zarrdask.formats.extension import Definition
from zarrdask.formats.grids.chunk_grid import ChunkGrid, Shape
from zarrdask.formats.grids.keys import KEY_ENCODINGS, ChunkKeyEncoding, ChunkKeys, parse_keys
from zarrdask.formats.metadata.array_options import ArrayOptions, as_list, codec_list, is_auto
from zarrdask.formats.metadata.extensions import parse_extensions, parse_transformers
from zarrdask.formats.metadata.formats import formats
from zarrdask.formats.metadata.json import Documents
from zarrdask.formats.metadata.model import Known, Metadata, ZarrFormat
from zarrdask.formats.metadata.storage_transformers import StorageTransformer

#: The grid, codecs and storage transformers of an array.
Parts = tuple[ChunkGrid, tuple[Codec, ...], tuple[StorageTransformer, ...]]


class Format(ABC):
    """A format. The features and the methods for new arrays are v3's unless overridden."""

    #: The `zarr_format` of its nodes, such as 3.
    version: ZarrFormat
    #: The name of the format, for errors.
    title: str
    #: The names of the documents that may describe a node.
    documents: tuple[str, ...]
    #: The names of those documents whose presence makes a node.
    node_documents: tuple[str, ...]

    #: The name of the document that has the consolidated metadata of a group, if there are any.
    consolidated_key: str | None = None
    #: Whether nodes stand in a hierarchy that is found from an entry point at its root.
    has_entry_point: bool = False
    #: The name of the chunk key encoding that new arrays have by default.
    default_keys: str = "default"
    #: Whether nodes are stored by conventions that their documents do not show: about their paths
    #: (`check_stored_path`), or the keys of their chunks (`unstated_keys`).
    has_conventions: bool = False
    #: Whether arrays may be sharded.
    has_shards: bool = True
    #: The codecs of the index of every shard. If given, shards can stand only at the beginning of a
    #: chain; by default the metadata of an array chooses the codecs and the location.
    index_codecs: tuple[Codec, ...] | None = None
    #: Whether an array may have no fill value.
    optional_fill: bool = False
    #: Whether fill values have one NaN only: their documents have no spelling for its other bits.
    has_one_nan: bool = False
    #: Whether elements with the fill value are missing ones, by the conventions of xarray.
    fill_masks: bool = False
    #: Whether an array has a list of codecs, and not filters and a compressor.
    has_codecs: bool = True
    #: Whether the codec that converts elements to bytes can be chosen.
    has_serializer: bool = True
    #: Whether codecs after the byte conversion are codecs of numcodecs.
    uses_numcodecs: bool = False
    #: Whether a filter, and not the data type, says what the objects in an array are.
    object_filter: bool = False
    #: Whether dimension names are kept as an attribute.
    names_in_attributes: bool = False
    #: Whether some dimensions may have names while others have none.
    partial_names: bool = True
    #: Whether arrays may have storage transformers.
    has_transformers: bool = True

    @property
    def entry_documents(self) -> tuple[str, ...]:
        """The names of the documents that lead to a node in a store without an entry point."""
        return self.documents

    @property
    def consolidated_documents(self) -> tuple[str, ...]:
        """The names of the documents that may hold consolidated metadata of groups."""
        return () if self.consolidated_key is None else (self.consolidated_key,)

    @property
    def has_free_shards(self) -> bool:
        """Whether shards may have any index, and stand anywhere in a chain, also in shards."""
        return self.has_shards and self.index_codecs is None

    # ---- documents

    @abstractmethod
    def parse(self, documents: Documents, minor: int = 0) -> Metadata | None:
        """Return the node that documents (by name) describe, or None if they are absent.

        `minor` is the minor version of the hierarchy, which only the draft has: if it is not 0,
        unknown members are ignored.
        """

    def parse_shared(self, documents: Documents, known: Known) -> Metadata | None:
        """Return the same as `parse`; arrays may share what does not depend on their attributes.

        It is taken from, and added to, `known`.
        """
        return self.parse(documents)

    @abstractmethod
    def render(self, metadata: Metadata) -> dict[str, bytes | None]:
        """Return the documents that describe a node; None for those that should be absent."""

    # ---- nodes

    def check_path(self, path: str) -> None:
        """Check that a node may be created at a path."""
        names = {n for form in formats() for n in (*form.documents, form.consolidated_key)}
        for name in path.split("/"):
            if name in names or self.is_reserved(name):
                raise MetadataError(
                    f"the name {name!r} is reserved in Zarr; choose another name",
                    key="path",
                    found=path,
                )

    def is_reserved(self, name: str) -> bool:
        """Whether a name is reserved for other purposes than nodes (conformance C-29, C-83)."""
        return name.startswith("__") or name in self.documents

    def check_stored_path(self, path: str) -> None:
        """Report the path of a stored node, from the root, if the format does not permit it."""
        return None

    def unstated_keys(self, documents: Documents) -> ChunkKeyEncoding | None:
        """Return the keys that chunks may have though the documents of the array do not say so."""
        return None

    # ---- new arrays

    def data_type(self, requested: DataType) -> DataType:
        """Return the data type of a new array."""
        return portable(requested)

    def codecs(
        self, options: ArrayOptions, data_type: DataType, ndim: int, inner: Shape | None
    ) -> Sequence[Codec]:
        """Return the codecs of a new array; `inner` is the shape of the chunks in shards, if any.

        `data_type` is the requested one.
        """
        if options.codecs is not None:
            codecs = _whole_chain(options, data_type)
        else:
            items = (*codec_list(options.filters), *codec_list(options.compressors, "zstd"))
            codecs = [find_codec(item) for item in items]
            if options.order == "F" and ndim > 1:
                codecs.insert(0, TransposeCodec(tuple(reversed(range(ndim)))))
            if all(codec.kind is not Kind.ARRAY_BYTES for codec in codecs):
                codecs.append(_serializer(data_type))
            # numcodecs does not distinguish the kinds: its shuffle is a filter, pcodec a
            # compressor.
            codecs.sort(key=lambda codec: list(Kind).index(codec.kind))
        return codecs if inner is None else [ShardingCodec(inner, tuple(codecs))]

    def keys(self, options: ArrayOptions) -> ChunkKeyEncoding:
        """Return the chunk key encoding of a new array."""
        encoding = options.chunk_key_encoding
        if encoding is None or (isinstance(encoding, str) and encoding in ("default", "v2")):
            own = {} if options.separator is None else {"separator": options.separator}
            return KEY_ENCODINGS.find(encoding or self.default_keys)(own)
        if isinstance(encoding, str | Mapping):
            return parse_keys(encoding if isinstance(encoding, str) else dict(encoding))
        if not hasattr(encoding, "names"):
            raise MetadataError(
                "invalid chunk key encoding", key="chunk_key_encoding", found=encoding
            )
        return encoding

    def transformers(self, items: list[Any], ndim: int) -> Sequence[Any]:
        """Return the storage transformers of a new array."""
        return parse_transformers(items)

    def extensions(self, items: list[Any]) -> tuple[Definition, ...]:
        """Return the extensions of a new array."""
        return parse_extensions(items) if items else ()

    def arrange(
        self, grid: ChunkGrid, codecs: tuple[Codec, ...], transformers: Sequence[Any]
    ) -> Parts:
        """Return the three in the form in which arrays of the format are modelled."""
        return grid, codecs, tuple(transformers)

    # ---- arrays that are converted from another format

    def convert_data_type(self, data_type: DataType, stored: np.dtype[Any]) -> DataType:
        """Return the data type of a converted array.

        `stored` is its NumPy type in the byte order in which it is stored.
        """
        return portable(data_type)

    def convert_keys(self, keys: ChunkKeyEncoding) -> ChunkKeyEncoding:
        """Return the chunk key encoding of a converted array."""
        return ChunkKeys()


def _whole_chain(options: ArrayOptions, data_type: DataType) -> list[Codec]:
    """Return the codecs that a user gives as the whole chain."""
    others = options.filters, options.compressors
    if not all(each is None or is_auto(each) for each in others) or options.order != "C":
        raise MetadataError(
            "codecs is the whole chain; leave out filters, compressors and order", key="codecs"
        )
    codecs = [find_codec(item) for item in as_list(options.codecs)]
    if all(codec.kind is Kind.BYTES_BYTES for codec in codecs):
        codecs.insert(0, _serializer(data_type))
    return codecs


def _serializer(data_type: DataType) -> Codec:
    # The byte order is filled in when the codec is bound to the type of its input.
    name = data_type.serializer
    return BytesCodec(None) if name == BytesCodec.name else parse_codec(name)
