"""Zarr v3 (core 3.1): one ``zarr.json`` a node."""

from typing import Any, cast

from zarrdask.codecs.base import Json
from zarrdask.codecs.registry import parse_codecs
from zarrdask.dtypes.fill import parse_v3, render_v3
from zarrdask.dtypes.v3 import parse_dtype, render_dtype
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.base import (
    Documents,
    parse_attributes,
    parse_json,
    parse_lengths,
    render_json,
    required,
)
from zarrdask.metadata import ArrayMetadata, ChunkKeys, GroupMetadata, Metadata

VERSION = 3
NAMES = ("zarr.json",)
CHILD_NAMES = ("zarr.json",)
_KEY = "zarr.json"
_ARRAY = (
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
)
_OPTIONAL = ("attributes", "storage_transformers", "dimension_names")
_GROUP = ("zarr_format", "node_type")
_SEPARATORS = {"default": "/", "v2": "."}


# --------------------------------------------------------------------------------------------
# Document -> metadata


def parse(documents: Documents) -> Metadata | None:
    """Return the array or group that ``zarr.json`` describes, or None if there is none.

    Raises
    ------
    MetadataError, UnsupportedError
        If it is not valid v3 metadata, or needs something that isn't there.
    """
    data = documents.get(_KEY)
    if data is None:
        return None
    document = parse_json(data, _KEY)
    required(document, _GROUP, _KEY)
    version, kind = document["zarr_format"], document["node_type"]
    if type(version) is not int or version != VERSION:
        raise MetadataError("not v3 metadata", key="zarr_format", found=version, expected="3")
    if kind == "array":
        return _parse_array(document)
    if kind == "group":
        return _parse_group(document)
    raise MetadataError("not a node", key="node_type", found=kind, expected="'array' or 'group'")


def _parse_group(document: Json) -> GroupMetadata:
    return GroupMetadata(
        VERSION,
        parse_attributes(document.get("attributes", {}), "attributes"),
        _extra(document, (*_GROUP, "attributes"), ("consolidated_metadata",)),
    )


def _extra(document: Json, known: tuple[str, ...], nullable: tuple[str, ...] = ()) -> Json:
    """Return the other members, which must say that they need not be understood (C-11, C-17)."""
    extra = {name: value for name, value in document.items() if name not in known}
    for name, value in extra.items():
        ignorable = isinstance(value, dict) and value.get("must_understand") is False
        if not ignorable and not (value is None and name in nullable):
            raise UnsupportedError(
                "an unknown member that must be understood",
                key=name,
                found=value,
                expected='an object with "must_understand": false',
            )
    return extra


def _parse_array(document: Json) -> ArrayMetadata:
    required(document, _ARRAY, _KEY)
    if document.get("storage_transformers"):
        raise UnsupportedError(
            "unknown storage transformer",
            key="storage_transformers",
            found=document["storage_transformers"],
        )
    shape = parse_lengths(document["shape"], "shape", 0)
    dtype = parse_dtype(*_definition(document["data_type"], "data_type"))
    return ArrayMetadata(
        zarr_format=VERSION,
        shape=shape,
        dtype=dtype,
        chunk_shape=_parse_grid(document["chunk_grid"]),
        keys=_parse_keys(document["chunk_key_encoding"]),
        fill_value=parse_v3(document["fill_value"], dtype),
        codecs=parse_codecs(document["codecs"]),
        attributes=parse_attributes(document.get("attributes", {}), "attributes"),
        dimension_names=_parse_names(document.get("dimension_names")),
        extra=_extra(document, (*_ARRAY, *_OPTIONAL)),
    )


def _definition(found: Any, key: str) -> tuple[str, Json]:
    """Return name and configuration of an extension: a name alone, or an object (C-18)."""
    if isinstance(found, str):
        return found, {}
    if isinstance(found, dict) and isinstance(found.get("name"), str):
        settings = found.get("configuration", {})
        if isinstance(settings, dict) and not set(found) - {
            "name",
            "configuration",
            "must_understand",
        }:
            return found["name"], settings
    raise MetadataError(
        "not an extension",
        key=key,
        found=found,
        expected='"name" or {"name": ..., "configuration": ...}',
    )


def _parse_grid(found: Any) -> tuple[int, ...]:
    name, settings = _definition(found, "chunk_grid")
    if name != "regular":
        raise UnsupportedError(
            "unknown chunk grid", key="chunk_grid", found=name, expected="'regular'"
        )
    if set(settings) != {"chunk_shape"}:
        raise MetadataError(
            "not the configuration of a regular grid",
            key="chunk_grid",
            found=settings,
            expected='{"chunk_shape": [...]}',
        )
    return parse_lengths(settings["chunk_shape"], "chunk_shape", 1)


def _parse_keys(found: Any) -> ChunkKeys:
    name, settings = _definition(found, "chunk_key_encoding")
    if name not in _SEPARATORS:
        raise UnsupportedError(
            "unknown chunk key encoding",
            key="chunk_key_encoding",
            found=name,
            expected="'default' or 'v2'",
        )
    separator = settings.get("separator", _SEPARATORS[name])
    if separator not in ("/", ".") or set(settings) - {"separator"}:
        raise MetadataError(
            "not the configuration of a chunk key encoding",
            key="chunk_key_encoding",
            found=settings,
            expected='{"separator": "/"} or {"separator": "."}',
        )
    return ChunkKeys(cast(Any, name), separator)


def _parse_names(found: Any) -> tuple[str | None, ...] | None:
    if found is None:
        return None
    if not isinstance(found, list) or not all(n is None or isinstance(n, str) for n in found):
        raise MetadataError(
            "not names", key="dimension_names", found=found, expected="a list of strings and nulls"
        )
    return tuple(found)


# --------------------------------------------------------------------------------------------
# Metadata -> document


def render(metadata: Metadata) -> dict[str, bytes | None]:
    """Return the document that describes a node.

    Raises
    ------
    UnsupportedError
        If v3 can't express it.
    """
    document: Json = {"zarr_format": VERSION}
    if isinstance(metadata, GroupMetadata):
        document |= {"node_type": "group", "attributes": dict(metadata.attributes)}
    else:
        document |= _render_array(metadata)
    return {_KEY: render_json(document | dict(metadata.extra), _KEY)}


def _render_array(metadata: ArrayMetadata) -> Json:
    document: Json = {
        "node_type": "array",
        "shape": list(metadata.shape),
        "data_type": render_dtype(metadata.dtype),
        "chunk_grid": {
            "name": "regular",
            "configuration": {"chunk_shape": list(metadata.chunk_shape)},
        },
        "chunk_key_encoding": {
            "name": metadata.keys.name,
            "configuration": {"separator": metadata.keys.separator},
        },
        "fill_value": render_v3(metadata.fill, metadata.dtype),
        "codecs": [codec.to_json() for codec in metadata.codecs],
        "attributes": dict(metadata.attributes),
    }
    if metadata.dimension_names is not None:
        document["dimension_names"] = list(metadata.dimension_names)
    return document
