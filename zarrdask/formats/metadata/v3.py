"""Zarr v3 (core 3.1): one ``zarr.json`` for each node."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Self

from zarrdask.errors import MetadataError, UnsupportedError, instance_of, one_of
from zarrdask.formats.codecs.array_to_bytes.bytes import BytesCodec, has_byte_order
from zarrdask.formats.codecs.array_to_bytes.sharding import ShardingCodec
from zarrdask.formats.codecs.codec import Codec, Json
from zarrdask.formats.codecs.registry import parse_codecs
from zarrdask.formats.compliance import report_deviation
from zarrdask.formats.dtypes.registry import parse_data_type
from zarrdask.formats.dtypes.struct import Structured
from zarrdask.formats.grids.chunk_grid import parse_grid, parse_lengths
from zarrdask.formats.grids.keys import parse_keys
from zarrdask.formats.metadata.extensions import parse_extensions, parse_transformers
from zarrdask.formats.metadata.format import Format
from zarrdask.formats.metadata.invalid_documents import repair_v3_array, repaired
from zarrdask.formats.metadata.json import (
    Documents,
    parse_json,
    render_attributes,
    render_json,
    required,
)
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata, Known, Metadata
from zarrdask.formats.metadata.node_layout import DRAFT, PROTOCOL

_VERSION = 3
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
_GROUP = ("zarr_format", "node_type")
#: An optional member: its argument of the metadata, and the function that parses its value.
_Member = tuple[str, Callable[[Any], Any]]


class EntryPointError(MetadataError):
    """The document does not describe a node: it is the entry point of a hierarchy of the draft."""

    @classmethod
    def of(cls, version: str) -> Self:
        """Return the error for the ``zarr_format`` of an entry point, which is a URI."""
        return cls(
            "this is the root of a hierarchy of the v3 draft; open it by its own URL, and create "
            "nodes in it with the format of the hierarchy",
            key="zarr_format",
            found=version,
            expected=f"zarr_format={PROTOCOL if '/protocol/' in version else DRAFT!r}",
        )


class V3(Format):
    """Zarr v3."""

    version = _VERSION
    title = "Zarr v3"
    documents = node_documents = (_KEY,)
    consolidated_key = _KEY

    def parse(self, documents: Documents, minor: int = 0) -> Metadata | None:
        return self._parse(documents, None)

    def parse_shared(self, documents: Documents, known: Known) -> Metadata | None:
        return self._parse(documents, known)

    def _parse(self, documents: Documents, known: Known | None) -> Metadata | None:
        data = documents.get(_KEY)
        if data is None:
            return None
        document = parse_json(data, _KEY)
        version = document.get("zarr_format")
        if isinstance(version, str) and "://" in version:
            raise EntryPointError.of(version)
        required(document, _GROUP, _KEY)
        kind = document["node_type"]
        if type(version) is not int or version != _VERSION:
            raise MetadataError(
                "the document is not v3 metadata", key="zarr_format", found=version, expected="3"
            )
        if one_of(kind, "node_type", ("array", "group")) == "array":
            if known is not None:
                return _parse_shared(document, known)
            return repaired(_parse_array, document, repair_v3_array)
        # It describes other nodes, and may be outdated when the group is written again.
        consolidated = document.pop("consolidated_metadata", None)
        if consolidated is not None:
            _check_ignorable("consolidated_metadata", consolidated)
        return GroupMetadata(_VERSION, **_parse_optional(document, _GROUP, _GROUP_OPTIONAL))

    def render(self, metadata: Metadata) -> dict[str, bytes | None]:
        document: Json = {"zarr_format": _VERSION}
        if isinstance(metadata, GroupMetadata):
            document |= {"node_type": "group", "attributes": render_attributes(metadata.attributes)}
        else:
            document |= _render_array(metadata)
        if metadata.extensions:
            document["extensions"] = [item.to_json() for item in metadata.extensions]
        return {_KEY: render_json(document | dict(metadata.extra), _KEY)}


# --------------------------------------------------------------------------------------------
# Document -> metadata


def _parse_optional(
    document: Json, required_names: tuple[str, ...], optional: Mapping[str, _Member]
) -> dict[str, Any]:
    """Return the arguments of the metadata for all members that are not required."""
    arguments: dict[str, Any] = {"extra": {}}
    for name, value in document.items():
        if name in optional:
            argument, parse = optional[name]
            arguments[argument] = parse(value)
        elif name not in required_names:
            _check_ignorable(name, value)
            arguments["extra"][name] = value
    return arguments


def _check_ignorable(name: str, value: Any) -> None:
    """Check that an unknown member has ``must_understand: false`` (C-11, C-17)."""
    if not isinstance(value, dict) or value.get("must_understand") is not False:
        raise UnsupportedError(
            "unknown member that must be understood",
            key=name,
            found=value,
            expected='an object with "must_understand": false',
        )


def _parse_array(document: Json) -> ArrayMetadata:
    if "codecs" not in document:
        report_deviation(
            "X-C7",
            "the codecs are missing",
            key="codecs",
            expected="exactly one array->bytes codec",
        )
        document = {**document, "codecs": []}
    required(document, _ARRAY, _KEY)
    shape = parse_lengths(document["shape"], "shape", 0)
    data_type = parse_data_type(document["data_type"])
    lenient = "X-C7" if data_type.serializer == BytesCodec.name else None
    codecs = parse_codecs(document["codecs"], len(shape), lenient=lenient)
    if isinstance(data_type, Structured) and has_byte_order(data_type.dtype):
        codecs = _little_endian(codecs)
    return ArrayMetadata(
        zarr_format=_VERSION,
        grid=parse_grid(document["chunk_grid"], shape),
        data_type=data_type,
        keys=parse_keys(document["chunk_key_encoding"]),
        fill_value=data_type.parse_fill(document["fill_value"]),
        codecs=codecs,
        **_parse_optional(document, _ARRAY, _ARRAY_OPTIONAL),
    )


def _parse_shared(document: Json, known: Known) -> ArrayMetadata:
    """Parse an array; everything but its attributes may be known from another array."""
    attributes = instance_of(document.pop("attributes", {}), "attributes", dict)
    part = repr(document)
    metadata = known.get(part)
    if metadata is None:
        metadata = repaired(_parse_array, document, repair_v3_array)
        # Repairs are reported for each array, and users may change other members.
        if not (metadata.is_repaired or metadata.extra):
            known[part] = metadata
    return metadata.with_attributes(attributes)


def _little_endian(codecs: tuple[Codec, ...]) -> tuple[Codec, ...]:
    """Return codecs in which ``bytes`` without a byte order is little-endian, also within shards.

    This is how the data type ``structured`` is read (conformance X-C7), whose only writer did not
    specify a byte order. The data type ``struct``, as which it is written again, requires one.
    """
    changed: list[Codec] = []
    for codec in codecs:
        if isinstance(codec, ShardingCodec):
            codec = replace(codec, codecs=_little_endian(codec.codecs))
        elif codec == BytesCodec(None):
            report_deviation(
                "X-C7",
                "a byte order is missing; little-endian is assumed",
                key="bytes.endian",
                expected="'little' or 'big'",
                warn=True,
            )
            codec = BytesCodec("little")
        changed.append(codec)
    return tuple(changed)


def _parse_names(names: Any) -> tuple[str | None, ...] | None:
    if names is None:
        report_deviation("C-8", "null stands for no names", key="dimension_names", found="null")
        return None
    return tuple(instance_of(names, "dimension_names", list))


_GROUP_OPTIONAL: Mapping[str, _Member] = {
    "attributes": ("attributes", partial(instance_of, key="attributes", kind=dict)),
    "extensions": ("extensions", parse_extensions),
}
_ARRAY_OPTIONAL: Mapping[str, _Member] = {
    **_GROUP_OPTIONAL,
    "dimension_names": ("dimension_names", _parse_names),
    "storage_transformers": ("transformers", parse_transformers),
}


# --------------------------------------------------------------------------------------------
# Metadata -> document


def _render_array(metadata: ArrayMetadata) -> Json:
    document: Json = {
        "node_type": "array",
        "shape": list(metadata.shape),
        "data_type": metadata.data_type.to_json(),
        "chunk_grid": metadata.grid.to_json(),
        "chunk_key_encoding": metadata.keys.to_json(),
        "fill_value": metadata.data_type.render_fill(metadata.fill),
        "codecs": [codec.to_json() for codec in metadata.codecs],
        "attributes": render_attributes(metadata.attributes),
    }
    if metadata.dimension_names is not None:
        document["dimension_names"] = list(metadata.dimension_names)
    if metadata.transformers:
        document["storage_transformers"] = [t.to_json() for t in metadata.transformers]
    return document
