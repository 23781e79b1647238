"""Zarr v2 (OGC 21-050r1): ``.zarray``, ``.zgroup``, ``.zattrs``, and how new arrays are made."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from zarrdask.errors import MetadataError, UnsupportedError, instance_of, one_of
from zarrdask.formats.codecs.array_to_bytes.bytes import BytesCodec, stored_type
from zarrdask.formats.codecs.bytes_to_bytes.blosc import BloscCodec
from zarrdask.formats.codecs.codec import Codec, Json
from zarrdask.formats.codecs.coerce import find_codec, plain_config
from zarrdask.formats.codecs.numcodecs.adapter import make
from zarrdask.formats.compliance import report_deviation
from zarrdask.formats.dtypes.data_type import DataType
from zarrdask.formats.dtypes.fill_json import parse_v2
from zarrdask.formats.dtypes.numpy_type import is_unitless
from zarrdask.formats.dtypes.registry import of_dtype
from zarrdask.formats.dtypes.v2 import check_new, parse_dtype, render_dtype
from zarrdask.formats.extension import Definition
from zarrdask.formats.grids.chunk_grid import Shape, parse_lengths
from zarrdask.formats.grids.keys import ChunkKeyEncoding, ChunkKeys
from zarrdask.formats.grids.regular import RegularGrid
from zarrdask.formats.metadata.array_options import ArrayOptions, codec_list
from zarrdask.formats.metadata.format import Format
from zarrdask.formats.metadata.invalid_documents import repair_v2_array, repair_v2_group, repaired
from zarrdask.formats.metadata.json import (
    Documents,
    parse_json,
    render_attributes,
    render_json,
    required,
)
from zarrdask.formats.metadata.model import DIMENSIONS, ArrayMetadata, GroupMetadata, Metadata
from zarrdask.formats.metadata.v2_codecs import (
    chain,
    is_netcdf,
    object_fill,
    render_codec,
    render_codecs,
    render_fill,
)

_VERSION = 2
_MEMBERS = (
    "zarr_format",
    "shape",
    "chunks",
    "dtype",
    "compressor",
    "fill_value",
    "order",
    "filters",
)


class V2(Format):
    """Zarr v2."""

    version = _VERSION
    title = "Zarr v2"
    has_conventions = True
    documents = (".zarray", ".zgroup", ".zattrs")
    node_documents = (".zarray", ".zgroup")
    consolidated_key = ".zmetadata"
    default_keys = "v2"
    has_shards = False
    optional_fill = True
    has_one_nan = True
    fill_masks = True
    has_codecs = False
    has_serializer = False
    uses_numcodecs = True
    object_filter = True
    names_in_attributes = True
    partial_names = False
    has_transformers = False

    def parse(self, documents: Documents, minor: int = 0) -> Metadata | None:
        array, group, attributes = (documents.get(name) for name in self.documents)
        attributes_document = {} if attributes is None else parse_json(attributes, ".zattrs")
        if array is not None:
            parse = partial(_parse_array, attributes=attributes_document)
            return repaired(parse, parse_json(array, ".zarray"), repair_v2_array)
        if group is not None:
            parse_group = partial(_parse_group, attributes=attributes_document)
            return repaired(parse_group, parse_json(group, ".zgroup"), repair_v2_group)
        return None

    def render(self, metadata: Metadata) -> dict[str, bytes | None]:
        attributes = render_attributes(metadata.attributes)
        if isinstance(metadata, GroupMetadata):
            document: Json = {"zarr_format": _VERSION}
            name = ".zgroup"
        else:
            document = _render_array(metadata)
            name = ".zarray"
            if metadata.dimension_names is not None:
                names = metadata.dimension_names
                if None in names:
                    message = "in v2 either all dimensions have names or none"
                    raise UnsupportedError(message, key="dimension_names", found=names)
                attributes.setdefault(DIMENSIONS, list(names))
        text = render_json(attributes, ".zattrs") if attributes else None
        return {".zattrs": text, name: render_json(document, name)}

    def check_path(self, path: str) -> None:
        self.check_stored_path(path)
        super().check_path(path)

    def is_reserved(self, name: str) -> bool:
        return False

    def check_stored_path(self, path: str) -> None:
        # Not all Zarr software reads other paths.
        if not path.isascii():
            report_deviation("A-1", "a path in Zarr v2 is ASCII text", key="path", found=path)

    def unstated_keys(self, documents: Documents) -> ChunkKeyEncoding | None:
        # Old writers left out the separator, which then means "." (X-A1).
        is_stated = b'"dimension_separator"' in (documents.get(".zarray") or b"")
        return None if is_stated else ChunkKeys("v2", "/")

    def data_type(self, requested: DataType) -> DataType:
        # The byte order is part of the type, and only the codec of objects determines their type.
        return _new_type(requested.dtype)

    def codecs(
        self, options: ArrayOptions, data_type: DataType, ndim: int, inner: Shape | None
    ) -> Sequence[Codec]:
        if inner is not None:
            raise UnsupportedError("Zarr v2 has no shards", key="shards", found=options.shards)
        if options.codecs is not None:
            raise UnsupportedError(
                "Zarr v2 has no codecs; pass filters and compressors", key="codecs"
            )
        filters = [_numcodecs_config(item) for item in codec_list(options.filters)]
        if data_type.dtype.hasobject and not filters:
            # Objects of no particular type are assumed to be text.
            name = data_type.serializer
            filters = [{"id": "vlen-utf8" if name == BytesCodec.name else name}]
        compressors = codec_list(options.compressors, "zstd")
        if len(compressors) > 1:
            raise MetadataError(
                "Zarr v2 has at most one compressor", key="compressors", found=compressors
            )
        compressor = _numcodecs_config(compressors[0]) if compressors else None
        return chain(options.order, filters, compressor, data_type.dtype, ndim)

    def extensions(self, items: list[Any]) -> tuple[Definition, ...]:
        if items:
            raise UnsupportedError("only Zarr v3 arrays have extensions", key="extensions")
        return ()

    def convert_data_type(self, data_type: DataType, stored: np.dtype[Any]) -> DataType:
        return _new_type(stored)

    def convert_keys(self, keys: ChunkKeyEncoding) -> ChunkKeyEncoding:
        return ChunkKeys("v2", "." if getattr(keys, "separator", "/") == "." else "/")


# --------------------------------------------------------------------------------------------
# Documents -> metadata


def _parse_group(document: Json, attributes: Json) -> GroupMetadata:
    required(document, ("zarr_format",), ".zgroup")
    _check_version(document, ".zgroup")
    extra = _unknown_members(document, ("zarr_format",), "A-50", ".zgroup")
    return GroupMetadata(_VERSION, attributes, extra=extra)


def _unknown_members(document: Json, known_members: tuple[str, ...], rule: str, key: str) -> Json:
    """Return the members that v2 does not have, such as the members that netCDF-C writes."""
    unknown = {name: member for name, member in document.items() if name not in known_members}
    if unknown:
        report_deviation(
            rule,
            "other members must not be present",
            key=key,
            found=sorted(unknown),
            expected=", ".join(known_members),
        )
    return unknown


def _check_version(document: Json, key: str) -> None:
    version = document["zarr_format"]
    if type(version) is not int or version != _VERSION:
        raise MetadataError(
            "the document is not v2 metadata", key=f"{key} zarr_format", found=version, expected="2"
        )


def _parse_array(document: Json, attributes: Json) -> ArrayMetadata:
    required(document, _MEMBERS, ".zarray")
    _check_version(document, ".zarray")
    dtype = parse_dtype(document["dtype"])
    fill = parse_v2(document["fill_value"], dtype)
    shape = parse_lengths(document["shape"], "shape", 0)
    separator = document.get("dimension_separator", ".")
    one_of(separator, "dimension_separator", (".", "/"))
    netcdf = is_netcdf(document, attributes)
    codecs = _parse_codecs(document, dtype, len(shape), netcdf=netcdf)
    names = _dimension_names(attributes, len(shape))
    if names is not None:
        # The model has them as dimension_names; they are put back when attributes are written.
        attributes = {key: value for key, value in attributes.items() if key != DIMENSIONS}
    return ArrayMetadata(
        zarr_format=_VERSION,
        grid=RegularGrid(shape, parse_lengths(document["chunks"], "chunks", 1)),
        data_type=of_dtype(dtype),
        keys=ChunkKeys("v2", separator),
        fill_value=object_fill(codecs, fill) if dtype.hasobject else fill,
        codecs=codecs,
        attributes=attributes,
        dimension_names=names,
        extra=_unknown_members(document, (*_MEMBERS, "dimension_separator"), "A-16", ".zarray"),
    )


def _dimension_names(attributes: Json, ndim: int) -> tuple[str | None, ...] | None:
    if DIMENSIONS not in attributes:
        return None
    names = attributes[DIMENSIONS]
    texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if texts and len(names) == ndim:
        return tuple(names)
    # netCDF-C writes scalars as arrays of shape [1] with other names.
    report_deviation(
        "A-71",
        "there should be one name for each dimension",
        key=DIMENSIONS,
        found=names,
        expected=f"{ndim} names",
    )
    return None


def _parse_codecs(
    document: Json, dtype: np.dtype[Any], ndim: int, *, netcdf: bool
) -> tuple[Codec, ...]:
    order, filters, compressor = document["order"], document["filters"], document["compressor"]
    one_of(order, "order", ("C", "F"))
    filters = filters if filters is None else instance_of(filters, "filters", list)
    if filters == []:
        report_deviation(
            "A-15",
            "an empty list stands for no filters",
            key="filters",
            found=filters,
            expected="null",
        )
    return chain(order, list(filters or []), compressor, dtype, ndim, netcdf=netcdf)


# --------------------------------------------------------------------------------------------
# Metadata -> documents


def _render_array(metadata: ArrayMetadata) -> Json:
    if not metadata.grid.is_regular:
        raise UnsupportedError(
            "in Zarr v2 all chunks have the same shape",
            key="chunks",
            found=metadata.grid.to_json()["name"],
            expected="'regular'",
        )
    order, filters, compressor = render_codecs(metadata)
    stored = metadata.dtype
    if is_unitless(stored):
        stored = stored_type(stored, metadata.codecs)  # in memory it has native byte order
    document = {
        "zarr_format": _VERSION,
        "shape": list(metadata.shape),
        "chunks": list(metadata.chunk_shape),
        "dtype": render_dtype(stored),
        "compressor": compressor,
        "fill_value": render_fill(metadata.fill_value, metadata.dtype),
        "order": order,
        "filters": filters or None,
    }
    keys = metadata.keys
    if not isinstance(keys, ChunkKeys) or keys.name != "v2":
        raise UnsupportedError("v2 has one key encoding only", key="keys", found=keys.to_json())
    if keys.separator != ".":
        # OGC's text lacks this member; the later specification and all writers have it (X-A1).
        document["dimension_separator"] = keys.separator
    return document


# --------------------------------------------------------------------------------------------
# New arrays


def _new_type(dtype: np.dtype[Any]) -> DataType:
    """Return the data type of a new array; some that are read are not written."""
    check_new(dtype, "dtype")
    return of_dtype(dtype)


def _numcodecs_config(value: Any) -> dict[str, Any]:
    """Return the configuration of numcodecs for a codec in any form."""
    value = plain_config(value)
    if isinstance(value, str):
        # The default level is 3 in all formats; in numcodecs.Zstd it is 0.
        value = {"id": "zstd", "level": 3} if value == "zstd" else {"id": value}
    if isinstance(value, Mapping) and "id" in value:
        return dict(json.loads(json.dumps(make(dict(value)).get_config())))
    codec = find_codec(value)
    if isinstance(codec, BloscCodec):
        codec = codec.bind(1)
    return render_codec(codec)
