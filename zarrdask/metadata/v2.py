"""Zarr v2 (OGC 21-050r1): ``.zarray``, ``.zgroup``, ``.zattrs``."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from zarrdask.codecs.array_to_array.transpose import TransposeCodec
from zarrdask.codecs.array_to_bytes.bytes import NATIVE, BytesCodec, Endian, has_byte_order
from zarrdask.codecs.base import Codec, Json, check_count
from zarrdask.codecs.bytes_to_bytes.blosc import BloscCodec
from zarrdask.codecs.bytes_to_bytes.gzip import GzipCodec, ZlibCodec
from zarrdask.codecs.bytes_to_bytes.zstd import ZstdCodec, limited
from zarrdask.codecs.numcodecs.adapter import OBJECT_CODECS, BufferCodec, ObjectCodec, make
from zarrdask.compliance import report_deviation
from zarrdask.dtypes.fill_values import parse_v2, render_v2
from zarrdask.dtypes.registry import of_dtype
from zarrdask.dtypes.v2 import parse_dtype, render_dtype
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.grids.keys import ChunkKeys
from zarrdask.grids.regular import RegularGrid
from zarrdask.metadata.json import (
    Documents,
    parse_array_shape,
    parse_json,
    parse_lengths,
    render_attributes,
    render_json,
    required,
)
from zarrdask.metadata.model import ArrayMetadata, GroupMetadata, Metadata
from zarrdask.metadata.writers import is_netcdf, normalise_codec, sized_shuffle

VERSION = 2
NAMES = (".zarray", ".zgroup", ".zattrs")
CHILD_NAMES = (".zarray", ".zgroup")
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
_DIMENSIONS = "_ARRAY_DIMENSIONS"


# --------------------------------------------------------------------------------------------
# Documents -> metadata


def parse(documents: Documents) -> Metadata | None:
    """Return the array or group that documents describe, or None if there is none.

    Raises
    ------
    MetadataError
        If a document is not valid v2 metadata.
    UnsupportedError
        If it needs a data type or codec that is not supported.
    """
    array, group, attributes = (documents.get(name) for name in NAMES)
    attributes_document = {} if attributes is None else parse_json(attributes, ".zattrs")
    if array is not None:
        return _parse_array(parse_json(array, ".zarray"), attributes_document)
    if group is not None:
        return _parse_group(parse_json(group, ".zgroup"), attributes_document)
    return None


def _parse_group(document: Json, attributes: Json) -> GroupMetadata:
    required(document, ("zarr_format",), ".zgroup")
    _check_version(document, ".zgroup")
    extra = _others(document, ("zarr_format",), "A-50", ".zgroup")
    return GroupMetadata(VERSION, attributes, extra=extra)


def _others(document: Json, known: tuple[str, ...], rule: str, key: str) -> Json:
    """Return the members that v2 does not know, which netCDF-C and others write."""
    others = {name: member for name, member in document.items() if name not in known}
    if others:
        report_deviation(
            rule,
            "other members must not be present",
            key=key,
            found=sorted(others),
            expected=", ".join(known),
        )
    return others


def _check_version(document: Json, key: str) -> None:
    version = document["zarr_format"]
    if type(version) is not int or version != VERSION:
        raise MetadataError(
            "this is not v2 metadata", key=f"{key} zarr_format", found=version, expected="2"
        )


def _parse_array(document: Json, attributes: Json) -> ArrayMetadata:
    required(document, _MEMBERS, ".zarray")
    _check_version(document, ".zarray")
    dtype = parse_dtype(document["dtype"])
    fill = parse_v2(document["fill_value"], dtype)
    shape = parse_array_shape(document["shape"])
    separator = document.get("dimension_separator", ".")
    if separator not in (".", "/"):
        raise MetadataError(
            "this is not a separator",
            key="dimension_separator",
            found=separator,
            expected="'.' or '/'",
        )
    netcdf = is_netcdf(document, attributes)
    codecs = _parse_codecs(document, dtype, len(shape), netcdf=netcdf)
    names = _dimension_names(attributes, len(shape))
    if names is not None:
        # The model has them as dimension_names; they are put back when attributes are written.
        attributes = {key: value for key, value in attributes.items() if key != _DIMENSIONS}
    return ArrayMetadata(
        zarr_format=VERSION,
        grid=RegularGrid(shape, parse_lengths(document["chunks"], "chunks", 0)),
        data_type=of_dtype(dtype),
        keys=ChunkKeys("v2", separator),
        fill_value=object_fill(codecs, fill) if dtype.hasobject else fill,
        codecs=codecs,
        attributes=attributes,
        dimension_names=names,
        extra=_others(document, (*_MEMBERS, "dimension_separator"), "A-16", ".zarray"),
    )


def _dimension_names(attributes: Json, ndim: int) -> tuple[str | None, ...] | None:
    if _DIMENSIONS not in attributes:
        return None
    names = attributes[_DIMENSIONS]
    texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if texts and len(names) == ndim:
        return tuple(names)
    # netCDF-C writes scalars as arrays of shape [1] with other names.
    report_deviation(
        "A-71",
        "there should be one name for each dimension",
        key=_DIMENSIONS,
        found=names,
        expected=f"{ndim} names",
    )
    return None


def _parse_codecs(
    document: Json, dtype: np.dtype[Any], ndim: int, *, netcdf: bool
) -> tuple[Codec, ...]:
    order, filters, compressor = document["order"], document["filters"], document["compressor"]
    if order not in ("C", "F"):
        raise MetadataError("this is not an order", key="order", found=order, expected="'C' or 'F'")
    if filters is not None and not isinstance(filters, list):
        raise MetadataError(
            "these are not filters", key="filters", found=filters, expected="a list or null"
        )
    if filters == []:
        report_deviation(
            "A-15",
            "an empty list stands for no filters",
            key="filters",
            found=filters,
            expected="null",
        )
    return chain(order, list(filters or []), compressor, dtype, ndim, netcdf=netcdf)


def chain(
    order: str,
    filters: list[Any],
    compressor: Any,
    dtype: np.dtype[Any],
    ndim: int,
    *,
    netcdf: bool = False,
) -> tuple[Codec, ...]:
    """Return v2's order, filters and compressor as one list of codecs.

    Parameters
    ----------
    order : {"C", "F"}
        The order of the elements in a chunk; "F" becomes a transpose codec.
    filters : list of dict
        The configurations of the filters, with their ``id``.
    compressor : dict or None
        The configuration of the compressor, with its ``id``.
    dtype : numpy.dtype
        The type of the elements.
    ndim : int
        The number of axes.
    netcdf : bool, default False
        Whether netCDF-C wrote the array; see `zarrdask.metadata.writers.sized_shuffle`.

    Raises
    ------
    MetadataError, UnsupportedError
        If a codec is unknown, not supported, or misconfigured.
    """
    check_count(filters, "filters")
    codecs: list[Codec] = []
    if order == "F" and ndim > 1:
        codecs.append(TransposeCodec(tuple(reversed(range(ndim)))))
    if dtype.hasobject:
        codecs.append(_object_codec(filters.pop(0) if filters else None))
        view = "|u1"
    else:
        codecs.append(BytesCodec(_endian(dtype)))
        view = dtype.str if dtype.names is None else "|u1"
    for config in filters:
        codec = _filter(config, view, netcdf=netcdf)
        codecs.append(codec)
        view = _filtered(codec)
    if compressor is not None:
        itemsize = np.dtype(view).itemsize if filters else dtype.itemsize
        codecs.append(_compressor(compressor, itemsize, view))
    return tuple(codecs)


def object_fill(codecs: tuple[Codec, ...], fill: Any) -> Any:
    """Return the fill value of an array of objects in a form that its codec can encode.

    Documents have 0, "" or null for objects of every kind (conformance A-32). Null stays None.
    """
    codec = next((codec for codec in codecs if isinstance(codec, ObjectCodec)), None)
    if codec is None or fill is None:
        return fill
    if (codec.name == "vlen-bytes" and fill == "") or (codec.name == "vlen-array" and not fill):
        return codec.empty
    return fill


def _endian(dtype: np.dtype[Any]) -> Endian | None:
    if not has_byte_order(dtype):
        return None
    if dtype.names is not None:
        return "own"
    return {"<": "little", ">": "big", "=": NATIVE}[dtype.byteorder]  # type: ignore[return-value]


def _config(value: Any, key: str) -> Json:
    if not isinstance(value, dict) or not isinstance(value.get("id"), str):
        raise MetadataError(
            "this is not a codec", key=key, found=value, expected='an object with an "id" (or null)'
        )
    return value


def _object_codec(value: Any) -> Codec:
    if value is None:
        raise MetadataError(
            "objects need a codec that stores them",
            key="filters",
            expected=f"one of {', '.join(sorted(OBJECT_CODECS))} as the first filter",
        )
    config = _config(value, "filters")
    make(config)
    if config["id"] not in OBJECT_CODECS:
        raise UnsupportedError(
            "this codec can't store objects",
            key="filters",
            found=config["id"],
            expected=", ".join(sorted(OBJECT_CODECS)),
        )
    return ObjectCodec(json.dumps(config, sort_keys=True))


def _filter(value: Any, view: str, *, netcdf: bool) -> BufferCodec:
    config = normalise_codec(_config(value, "filters"))
    if netcdf:
        config = sized_shuffle(config, np.dtype(view).itemsize)
    make(config)
    return BufferCodec(json.dumps(config, sort_keys=True), view)


def _filtered(codec: BufferCodec) -> str:
    """Return the typestr of the output of a filter, which the next filter gets."""
    if codec.name == "bitround":
        return codec.view
    numcodec = make(json.loads(codec.config))
    return np.dtype(
        getattr(numcodec, "astype", None) or getattr(numcodec, "encode_dtype", "|u1")
    ).str


def _compressor(value: Any, itemsize: int, view: str) -> Codec:
    config = normalise_codec(_config(value, "compressor"))
    build = _COMPRESSORS.get(config["id"])
    if build is None:
        make(config)
        return BufferCodec(json.dumps(config, sort_keys=True), view)
    if others := sorted(set(config) - {"id"} - _COMPRESSOR_MEMBERS[config["id"]]):
        # Decoding needs none of them: compressed chunks have a header.
        report_deviation(
            "A-58", "some members are unknown", key=f"compressor {config['id']}", found=others
        )
    return build(config, itemsize)


def _blosc(config: Json, itemsize: int) -> Codec:
    return BloscCodec(
        config.get("cname", "lz4"),
        config.get("clevel", 5),
        config.get("shuffle", 1),
        config.get("blocksize", 0),
    ).bind(itemsize)


_COMPRESSORS: Mapping[str, Callable[[Json, int], Codec]] = {
    "blosc": _blosc,
    "gzip": lambda config, _: GzipCodec(config.get("level", 1)),
    "zlib": lambda config, _: ZlibCodec(config.get("level", 1)),
    "zstd": lambda config, _: ZstdCodec(
        limited(config.get("level", 0)), bool(config.get("checksum", False))
    ),
}
_COMPRESSOR_MEMBERS = {
    "blosc": {"cname", "clevel", "shuffle", "blocksize", "typesize"},
    "gzip": {"level"},
    "zlib": {"level"},
    "zstd": {"level", "checksum"},
}


# --------------------------------------------------------------------------------------------
# Metadata -> documents


def render(metadata: Metadata) -> dict[str, bytes | None]:
    """Return the documents that describe a node; None for those that should be absent.

    Raises
    ------
    UnsupportedError
        If v2 can't express the node.
    """
    attributes = render_attributes(metadata.attributes)
    if isinstance(metadata, GroupMetadata):
        document: Json = {"zarr_format": VERSION}
        name = ".zgroup"
    else:
        document = _render_array(metadata)
        name = ".zarray"
        if metadata.dimension_names is not None:
            attributes.setdefault(_DIMENSIONS, _render_names(metadata.dimension_names))
    text = render_json(attributes, ".zattrs") if attributes else None
    return {".zattrs": text, name: render_json(document, name)}


def _render_names(names: tuple[str | None, ...]) -> list[str | None]:
    if None in names:
        raise UnsupportedError(
            "in v2 either all dimensions have names or none", key="dimension_names", found=names
        )
    return list(names)


def _render_array(metadata: ArrayMetadata) -> Json:
    if not metadata.grid.is_regular:
        raise UnsupportedError(
            "v2 has no chunks of several shapes",
            key="chunks",
            found=metadata.grid.to_json()["name"],
            expected="'regular'",
        )
    order, filters, compressor = render_codecs(metadata)
    document = {
        "zarr_format": VERSION,
        "shape": list(metadata.shape),
        "chunks": list(metadata.chunk_shape),
        "dtype": render_dtype(metadata.dtype),
        "compressor": compressor,
        "fill_value": render_v2(metadata.fill_value, metadata.dtype),
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


def render_codecs(metadata: ArrayMetadata) -> tuple[str, list[Json], Json | None]:
    """Return the ``order``, ``filters`` and ``compressor`` for the codecs of an array.

    Raises
    ------
    UnsupportedError
        If v2 has no such codecs.
    """
    codecs = list(metadata.codecs)
    order = "C"
    if codecs and isinstance(codecs[0], TransposeCodec):
        if codecs[0].order != tuple(reversed(range(len(metadata.shape)))):
            raise UnsupportedError(
                "v2 has the orders C and F only", key="order", found=codecs[0].order
            )
        order = "F"
        codecs = codecs[1:]
    configs = [render_codec(codec) for codec in codecs if not isinstance(codec, BytesCodec)]
    last = codecs[-1] if codecs else None
    is_filter = isinstance(last, BytesCodec | ObjectCodec) or (
        isinstance(last, BufferCodec) and last.name not in COMPRESSORS
    )
    return (
        (order, configs, None) if is_filter or not configs else (order, configs[:-1], configs[-1])
    )


#: The codecs of numcodecs that are written as ``compressor``; the others are filters.
COMPRESSORS = frozenset({*_COMPRESSORS, "bz2", "lz4", "lzma"})


def render_codec(codec: Codec) -> Json:
    """Return the v2 configuration of a codec.

    Raises
    ------
    UnsupportedError
        If v2 has no such codec.
    """
    if isinstance(codec, BufferCodec | ObjectCodec):
        return dict(json.loads(codec.config))
    if isinstance(codec, BloscCodec):
        members = codec.to_json()["configuration"]
        members.pop("typesize", None)
        return {"id": "blosc", **members, "shuffle": codec.shuffle}
    if isinstance(codec, ZlibCodec | GzipCodec | ZstdCodec):
        return {"id": codec.name.removeprefix("numcodecs."), **codec.to_json()["configuration"]}
    raise UnsupportedError("v2 has no such codec", key="codecs", found=codec.name)
