"""The v3 draft of May 2022, and the older dialect of it that real files use (B, X-B).

The names of documents are those in `DraftStore`, a view of the store.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from zarrdask.errors import MetadataError, UnsupportedError, instance_of
from zarrdask.formats.codecs.array_to_bytes.bytes import stored_type
from zarrdask.formats.codecs.array_to_bytes.sharding import ShardingCodec
from zarrdask.formats.codecs.bytes_to_bytes.blosc import BloscCodec
from zarrdask.formats.codecs.codec import Codec, Json
from zarrdask.formats.compliance import is_strict, report_deviation
from zarrdask.formats.dtypes.data_type import DataType
from zarrdask.formats.dtypes.registry import of_dtype, portable
from zarrdask.formats.extension import Definition
from zarrdask.formats.grids.chunk_grid import ChunkGrid, Shape, parse_lengths
from zarrdask.formats.grids.keys import ChunkKeyEncoding, ChunkKeys
from zarrdask.formats.metadata.array_options import ArrayOptions, as_list, is_auto
from zarrdask.formats.metadata.draft.codecs import (
    new_codec,
    parse_codecs,
    parse_compressor,
    parse_layout,
    render_codecs,
    render_compressor,
    split_layout,
)
from zarrdask.formats.metadata.draft.dtypes import parse_type, render_type
from zarrdask.formats.metadata.draft.entry import (
    KEY,
    check_members,
    parse_extensions,
    render_extensions,
)
from zarrdask.formats.metadata.draft.fill_values import parse_fill, render_fill, with_fill
from zarrdask.formats.metadata.draft.grid import parse_grid, render_grid
from zarrdask.formats.metadata.draft.transformers import (
    INDEX_CODECS,
    TITLE,
    URI,
    DraftSharding,
    parse_transformers,
    with_shards,
    without_shards,
)
from zarrdask.formats.metadata.format import Format, Parts
from zarrdask.formats.metadata.formats import find_format
from zarrdask.formats.metadata.json import (
    Documents,
    parse_json,
    render_attributes,
    render_json,
    required,
)
from zarrdask.formats.metadata.model import DIMENSIONS, ArrayMetadata, GroupMetadata, Metadata
from zarrdask.formats.metadata.node_layout import ARRAY, DOCUMENTS, DRAFT, GROUP, PROTOCOL
from zarrdask.formats.metadata.storage_transformers import StorageTransformer
from zarrdask.formats.metadata.v2_codecs import object_fill

_REQUIRED = (
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_memory_layout",
    "fill_value",
    "extensions",
    "attributes",
)
_FILTERS = "filters"
#: The names that nodes may have.
_NAME = re.compile(r"(?!\.+$)[A-Za-z0-9._-]+")


class Draft(Format):
    """The draft of May 2022."""

    version = DRAFT
    title = "the draft of Zarr v3"
    documents = node_documents = DOCUMENTS
    entry_documents = (KEY,)
    has_entry_point = True
    has_conventions = True
    index_codecs = INDEX_CODECS
    fill_masks = True
    has_serializer = False
    uses_numcodecs = True
    names_in_attributes = True
    #: Whether this is the older dialect.
    older = False

    # ---- documents -> metadata

    def parse(self, documents: Documents, minor: int = 0) -> Metadata | None:
        array, group = documents.get(ARRAY), documents.get(GROUP)
        if array is not None:
            if group is not None:
                report_deviation(
                    "X-B13",
                    "there is an array and a group at one path; the array is read",
                    key=ARRAY,
                    warn=True,
                )
            return self._parse_array(parse_json(array, ARRAY), minor)
        return None if group is None else self._parse_group(parse_json(group, GROUP), minor)

    def _parse_group(self, document: Json, minor: int) -> GroupMetadata:
        required(document, ("attributes",), GROUP)
        if document.get("extensions") == []:
            report_deviation("B-64", "groups have no extensions", key=GROUP, found="extensions")
            del document["extensions"]
        check_members(document, ("attributes",), GROUP, minor)
        attributes = instance_of(document["attributes"], "attributes", dict)
        return GroupMetadata(self.version, attributes)

    def _parse_array(self, document: Json, minor: int) -> ArrayMetadata:
        required(document, _REQUIRED, ARRAY)
        self._check_members(document, minor)
        shape = parse_lengths(document["shape"], "shape", 0)
        data_type, stored = parse_type(document["data_type"], older=self.older)
        attributes = dict(instance_of(document["attributes"], "attributes", dict))
        # zarr-python keeps filters among the attributes.
        has_filters = self.older and is_filters(attributes.get(_FILTERS))
        filters = list(attributes.pop(_FILTERS)) if has_filters else []
        names = _take_names(attributes, len(shape))
        grid, keys = parse_grid(document, shape)
        layers = parse_transformers(document.get("storage_transformers", []), len(shape))
        codecs = self._parse_codecs(document, filters, stored, len(shape))
        fill = document["fill_value"]
        value = parse_fill(fill, data_type, older=self.older)
        value = object_fill(codecs, value) if data_type.dtype.hasobject else value
        grid, codecs, transformers = with_shards(grid, codecs, layers)
        return ArrayMetadata(
            zarr_format=self.version,
            grid=grid,
            data_type=with_fill(data_type, fill),
            keys=keys,
            fill_value=value,
            codecs=codecs,
            attributes=attributes,
            dimension_names=names,
            transformers=transformers,
            extensions=parse_extensions(document["extensions"]),
        )

    def _check_members(self, document: Json, minor: int) -> None:
        known_members = (*_REQUIRED, "codecs", "storage_transformers")
        foreign_member = "codecs" if self.older else "compressor"
        if foreign_member in document:
            report_deviation(
                "X-B6", "a member belongs to the other dialect", key=ARRAY, found=foreign_member
            )
        if "dimension_separator" in document:
            # zarr-python writes it in addition to the separator in the grid.
            report_deviation("X-B6", "a member is unknown", key=ARRAY, found="dimension_separator")
        check_members(document, (*known_members, "compressor", "dimension_separator"), ARRAY, minor)
        if "codecs" in document and "compressor" in document:
            raise MetadataError(
                "a document can't have both codecs and a compressor",
                key=ARRAY,
                expected="one of them",
            )

    def _parse_codecs(
        self, document: Json, filters: list[Any], stored: np.dtype[Any], ndim: int
    ) -> tuple[Codec, ...]:
        layout = parse_layout(document["chunk_memory_layout"], ndim)
        if "compressor" in document or (self.older and "codecs" not in document):
            return (*layout, *parse_compressor(document.get("compressor"), filters, stored, ndim))
        return (*layout, *parse_codecs(document.get("codecs", []), stored))

    # ---- metadata -> documents

    def render(self, metadata: Metadata) -> dict[str, bytes | None]:
        if isinstance(metadata, GroupMetadata):
            if metadata.extensions:
                raise UnsupportedError(
                    "groups of the draft of Zarr v3 have no extensions",
                    key="extensions",
                    found=[item.name for item in metadata.extensions],
                )
            attributes = render_attributes(metadata.attributes)
            return {GROUP: render_json({"attributes": attributes}, GROUP)}
        return {ARRAY: render_json(self._render_array(metadata), ARRAY)}

    def _render_array(self, metadata: ArrayMetadata) -> Json:
        grid, codecs, transformers = without_shards(metadata)
        layout, codecs = split_layout(codecs, len(metadata.shape))
        stored = stored_type(metadata.dtype, codecs)
        data_type = metadata.data_type
        attributes = render_attributes(metadata.attributes)
        if metadata.dimension_names is not None:
            attributes.setdefault(DIMENSIONS, list(metadata.dimension_names))
        fill = metadata.fill_value if self.older else metadata.fill
        document = {
            "shape": list(metadata.shape),
            "data_type": render_type(data_type, stored, older=self.older),
            "chunk_grid": render_grid(grid, metadata.keys),
            "chunk_memory_layout": layout,
        }
        if self.older:
            document |= self._render_compressor(codecs, attributes)
        elif rendered := render_codecs(codecs, stored):
            document["codecs"] = rendered
        document |= {
            "fill_value": render_fill(fill, data_type, older=self.older),
            "extensions": render_extensions(metadata.extensions),
            "attributes": attributes,
        }
        if transformers:
            document["storage_transformers"] = list(map(self._render_transformer, transformers))
        return document

    def _render_compressor(self, codecs: list[Codec], attributes: Json) -> Json:
        compressor, filters = render_compressor(codecs)
        if is_filters(attributes.get(_FILTERS)) or (filters and _FILTERS in attributes):
            raise MetadataError(
                "the format would read this attribute as codecs; rename it",
                key=_FILTERS,
                found=attributes[_FILTERS],
            )
        if filters:
            attributes[_FILTERS] = filters
        return {} if compressor is None else {"compressor": compressor}

    def _render_transformer(self, transformer: StorageTransformer | DraftSharding) -> Json:
        document = transformer.to_json()
        settings = dict(document.get("configuration", {}))
        uri, kind = document["name"], settings.pop("type", None)
        if uri == URI and not self.older and is_strict():
            uri = TITLE
        return {"extension": uri, "type": kind} | ({"configuration": settings} if settings else {})

    # ---- nodes

    def check_path(self, path: str) -> None:
        if path and not all(map(_NAME.fullmatch, path.split("/"))):
            raise MetadataError(
                "the draft of Zarr v3 does not allow this path; choose other names",
                key="path",
                found=path,
                expected="names of ASCII letters and digits, '-', '_' and '.'",
            )

    def is_reserved(self, name: str) -> bool:
        return False

    def check_stored_path(self, path: str) -> None:
        try:
            self.check_path(path)
        except MetadataError as error:
            report_deviation("B-4", error.message, key="path", found=path, expected=error.expected)

    # ---- new arrays

    def codecs(
        self, options: ArrayOptions, data_type: DataType, ndim: int, inner: Shape | None
    ) -> Sequence[Codec]:
        data_type = portable(data_type)
        if options.codecs is None:
            # The draft has gzip and Blosc, and Zstandard only as a part of Blosc.
            compressors = options.compressors
            items = [BloscCodec("zstd", 3)] if is_auto(compressors) else as_list(compressors)
            items = [new_codec(item, data_type.dtype) for item in items]
            options = replace(options, compressors=items)
        return _in_shards(super().codecs(options, data_type, ndim, None), inner)

    def keys(self, options: ArrayOptions) -> ChunkKeyEncoding:
        separator = options.separator or "/"
        if options.chunk_key_encoding is not None or separator not in ("/", "."):
            raise MetadataError(
                "the draft of Zarr v3 has one chunk key encoding",
                key="chunk_key_encoding",
                found=options.chunk_key_encoding or separator,
                expected="the separator '/' or '.'",
            )
        return ChunkKeys("draft", separator)

    def transformers(self, items: list[Any], ndim: int) -> Sequence[Any]:
        return parse_transformers(items, ndim)

    def extensions(self, items: list[Any]) -> tuple[Definition, ...]:
        return parse_extensions(items)

    def arrange(
        self, grid: ChunkGrid, codecs: tuple[Codec, ...], transformers: Sequence[Any]
    ) -> Parts:
        return with_shards(grid, codecs, transformers)

    # ---- arrays that are converted from another format

    def convert_data_type(self, data_type: DataType, stored: np.dtype[Any]) -> DataType:
        # Each field of a struct may have its own byte order.
        dtype = data_type.dtype
        return data_type if dtype.names else of_dtype(dtype.newbyteorder("="))

    def convert_keys(self, keys: ChunkKeyEncoding) -> ChunkKeyEncoding:
        return ChunkKeys("draft")


class OlderDraft(Draft):
    """The older dialect of the draft, which real files use."""

    version = PROTOCOL
    title = "the older dialect of the draft of Zarr v3"
    optional_fill = True
    has_one_nan = True
    object_filter = True
    older = True

    def data_type(self, requested: DataType) -> DataType:
        # Objects are of any type, as in v2: only their codec determines it.
        return of_dtype(requested.dtype) if requested.dtype.hasobject else portable(requested)

    def codecs(
        self, options: ArrayOptions, data_type: DataType, ndim: int, inner: Shape | None
    ) -> Sequence[Codec]:
        return _in_shards(find_format(2).codecs(options, data_type, ndim, None), inner)


def _in_shards(codecs: Sequence[Codec], inner: Shape | None) -> Sequence[Codec]:
    return codecs if inner is None else [ShardingCodec(inner, tuple(codecs), INDEX_CODECS)]


def is_filters(value: Any) -> bool:
    """Whether an attribute holds filters of zarr-python: configurations of numcodecs."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, dict) and isinstance(item.get("id"), str) for item in value)
    )


def _take_names(attributes: Json, ndim: int) -> tuple[str | None, ...] | None:
    """Remove the dimension names that xarray and GDAL keep as an attribute, and return them."""
    names = attributes.get(DIMENSIONS)
    if not isinstance(names, list) or len(names) != ndim:
        return None
    is_names = all(isinstance(name, str | None) for name in names)
    return tuple(attributes.pop(DIMENSIONS)) if is_names else None
