"""The v3 draft of May 2022, and the older dialect of it that real files use (B, X-B).

The names of documents are those in `zarrdask.storage.v3_draft.DraftStore`, a view of the store.
"""

from typing import Any

import numpy as np

from zarrdask.codecs.array_to_bytes.bytes import stored_type
from zarrdask.codecs.base import Codec, Json
from zarrdask.compliance import is_strict, report_deviation
from zarrdask.errors import MetadataError, UnsupportedError, instance_of, one_of
from zarrdask.extension import is_uri
from zarrdask.grids.base import GRIDS, ChunkGrid, Shape, parse_lengths
from zarrdask.grids.keys import ChunkKeys
from zarrdask.grids.regular import RegularGrid
from zarrdask.metadata.draft.codecs import (
    parse_codecs,
    parse_compressor,
    parse_layout,
    render_codecs,
    render_compressor,
    split_layout,
)
from zarrdask.metadata.draft.dtypes import parse_type, render_type
from zarrdask.metadata.draft.entry import check_members, parse_extensions, render_extensions
from zarrdask.metadata.draft.fill_values import parse_fill, render_fill, with_fill
from zarrdask.metadata.draft.rules import OLDER_RULES, RULES
from zarrdask.metadata.draft.transformers import (
    TITLE,
    URI,
    DraftSharding,
    parse_transformers,
    with_shards,
    without_shards,
)
from zarrdask.metadata.json import Documents, parse_json, render_attributes, render_json, required
from zarrdask.metadata.model import DIMENSIONS, ArrayMetadata, GroupMetadata, Metadata, ZarrFormat
from zarrdask.metadata.rules import FormatRules
from zarrdask.storage.transformers import StorageTransformer
from zarrdask.storage.v3_draft import ARRAY, DRAFT, GROUP, PROTOCOL

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


class DraftFormat:
    """One dialect of the draft.

    Parameters
    ----------
    version : {"v3-draft", "v3-draft-protocol"}
        The dialect.
    minor : int, default 0
        The minor version of the hierarchy. If it is not 0, unknown members are ignored.
    """

    NAMES: tuple[str, ...] = (ARRAY, GROUP)
    CHILD_NAMES: tuple[str, ...] = (ARRAY, GROUP)

    def __init__(self, version: str, minor: int = 0) -> None:
        self.VERSION: ZarrFormat = version
        self.minor = minor
        self.older = version == PROTOCOL
        self.RULES: FormatRules = OLDER_RULES if self.older else RULES

    # ---- documents -> metadata

    def parse(self, documents: Documents) -> Metadata | None:
        """Return the array or group that documents describe, or None if there are none."""
        array, group = documents.get(ARRAY), documents.get(GROUP)
        if array is not None:
            if group is not None:
                report_deviation(
                    "X-B13",
                    "there is an array and a group at one path; the array is read",
                    key=ARRAY,
                    warn=True,
                )
            return self._parse_array(parse_json(array, ARRAY))
        return None if group is None else self._parse_group(parse_json(group, GROUP))

    def _parse_group(self, document: Json) -> GroupMetadata:
        required(document, ("attributes",), GROUP)
        if document.get("extensions") == []:
            report_deviation("B-64", "groups have no extensions", key=GROUP, found="extensions")
            del document["extensions"]
        check_members(document, ("attributes",), GROUP, self.minor)
        attributes = instance_of(document["attributes"], "attributes", dict)
        return GroupMetadata(self.VERSION, attributes)

    def _parse_array(self, document: Json) -> ArrayMetadata:
        required(document, _REQUIRED, ARRAY)
        self._check_members(document)
        shape = parse_lengths(document["shape"], "shape", 0)
        data_type, stored = parse_type(document["data_type"], older=self.older)
        attributes = dict(instance_of(document["attributes"], "attributes", dict))
        # zarr-python keeps filters among the attributes.
        has_filters = self.older and is_filters(attributes.get(_FILTERS))
        filters = list(attributes.pop(_FILTERS)) if has_filters else []
        names = _take_names(attributes, len(shape))
        grid, keys = _parse_grid(document, shape)
        layers = parse_transformers(document.get("storage_transformers", []), len(shape))
        codecs = self._parse_codecs(document, filters, stored, len(shape))
        grid, codecs, transformers = with_shards(grid, codecs, layers)
        fill = document["fill_value"]
        return ArrayMetadata(
            zarr_format=self.VERSION,
            grid=grid,
            data_type=with_fill(data_type, fill),
            keys=keys,
            fill_value=parse_fill(fill, data_type, older=self.older),
            codecs=codecs,
            attributes=attributes,
            dimension_names=names,
            transformers=transformers,
            extensions=parse_extensions(document["extensions"]),
        )

    def _check_members(self, document: Json) -> None:
        known_members = (*_REQUIRED, "codecs", "storage_transformers")
        foreign_member = "codecs" if self.older else "compressor"
        if foreign_member in document:
            report_deviation(
                "X-B6", "a member belongs to the other dialect", key=ARRAY, found=foreign_member
            )
        if "dimension_separator" in document:
            # zarr-python writes it in addition to the separator in the grid.
            report_deviation("X-B6", "a member is unknown", key=ARRAY, found="dimension_separator")
        check_members(
            document, (*known_members, "compressor", "dimension_separator"), ARRAY, self.minor
        )
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
        """Return the document that describes a node."""
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
            "chunk_grid": _render_grid(grid, metadata.keys),
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


def _parse_grid(document: Json, shape: Shape) -> tuple[ChunkGrid, ChunkKeys]:
    """Return the chunk grid and the encoding of chunk keys (B-28, B-29)."""
    member = instance_of(document["chunk_grid"], "chunk_grid", dict)
    if is_uri(member.get("extension")):
        members = {name: value for name, value in member.items() if name != "extension"}
        return GRIDS.find(member["extension"]).from_configuration(members, shape), ChunkKeys(
            "draft"
        )
    required(member, ("type", "chunk_shape"), "chunk_grid")
    unknown = set(member) - {"type", "chunk_shape", "separator"}
    if member["type"] != "regular" or unknown:
        raise UnsupportedError(
            "unknown chunk grid",
            key="chunk_grid",
            found=sorted(unknown) or member["type"],
            expected='{"type": "regular", "chunk_shape": [...], "separator": "/"}',
        )
    if "separator" not in member:
        report_deviation(
            "X-B15", "the separator is missing", key="chunk_grid", expected="'/' or '.'"
        )
    separator = one_of(member.get("separator", "/"), "chunk_grid.separator", ("/", "."))
    if document.get("dimension_separator", separator) not in (separator, None):
        raise MetadataError(
            "the separator differs from that of the grid",
            key="dimension_separator",
            found=document["dimension_separator"],
            expected=repr(separator),
        )
    lengths = parse_lengths(member["chunk_shape"], "chunk_shape", 0)
    return RegularGrid(shape, lengths), ChunkKeys("draft", separator)


def _render_grid(grid: ChunkGrid, keys: Any) -> Json:
    if not isinstance(keys, ChunkKeys) or keys.name != "draft":
        raise UnsupportedError("the draft of Zarr v3 has one key encoding only", key="keys")
    if type(grid) is RegularGrid:
        shape = list(grid.chunk_shape)
        return {"type": "regular", "chunk_shape": shape, "separator": keys.separator}
    member = grid.to_json()
    if not is_uri(member["name"]):
        raise UnsupportedError(
            "the draft of Zarr v3 has no such grid", key="chunk_grid", found=member["name"]
        )
    return {"extension": member["name"], **member.get("configuration", {})}


#: The two dialects, in the version that new hierarchies get.
FORMATS = (DraftFormat(DRAFT), DraftFormat(PROTOCOL))
