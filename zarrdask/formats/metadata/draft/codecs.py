"""The v3 draft's memory layout and codecs, and its older dialect's compressor and filters."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zarrdask.errors import UnsupportedError, instance_of, one_of
from zarrdask.formats.codecs.array_to_array.transpose import TransposeCodec
from zarrdask.formats.codecs.array_to_bytes.bytes import BytesCodec, endian_of, has_byte_order
from zarrdask.formats.codecs.codec import (
    Codec,
    Json,
    Kind,
    check_count,
    integer,
    parse_configuration,
)
from zarrdask.formats.codecs.coerce import plain_config
from zarrdask.formats.codecs.registry import CODECS
from zarrdask.formats.metadata.draft.entry import parse_uri
from zarrdask.formats.metadata.v2_codecs import COMPRESSORS, chain, render_codec

#: The URIs that writers have used (X-B7), of the first major version.
_URI = re.compile(r"https?://purl\.org/zarr/spec/codecs?/([a-z0-9_-]+)(?:/1(?:\.\d+)?)?")
_DRAFT_URI = "https://purl.org/zarr/spec/codecs/{}/1.0"
_OLDER_URI = "https://purl.org/zarr/spec/codec/{}/1.0"
_ENDIAN = "endian"
_BLOSC = {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}


def parse_layout(value: Any, ndim: int) -> list[Codec]:
    """Return the codec for a ``chunk_memory_layout``: none for C order (B-30, B-52, B-53)."""
    if isinstance(value, dict) and "extension" in value:
        raise UnsupportedError(
            "unknown memory layout", key="chunk_memory_layout", found=value["extension"]
        )
    one_of(value, "chunk_memory_layout", ("C", "F"))
    reverse = value == "F" and ndim > 1
    return [TransposeCodec(tuple(reversed(range(ndim))))] if reverse else []


def parse_codecs(value: Any, stored: np.dtype[Any]) -> list[Codec]:
    """Return the codecs of a ``codecs`` list, with the conversion to bytes that it leaves out.

    `stored` is the type of the elements, in the byte order in which they are stored.
    """
    check_count(instance_of(value, "codecs", list), "codecs")
    codecs: list[Codec] = []
    keeps_elements = True
    for item in value:
        members, settings = parse_uri(item, "codecs", "type")
        # Blosc shuffles by the size of the elements only if its input has elements (X-B18).
        elements = stored if keeps_elements else np.dtype("u1")
        codec = _parse_codec(members["type"], settings, elements)
        as_elements = not any(c.kind is not Kind.ARRAY_ARRAY for c in codecs)
        if codec.kind is Kind.BYTES_BYTES and as_elements:
            # A codec for bytes that follows an array gets the bytes of the elements (B-56).
            codecs.append(BytesCodec(endian_of(stored)))
        little = isinstance(codec, BytesCodec) and codec.endian != "big"
        keeps_elements = keeps_elements and (codec.kind is Kind.ARRAY_ARRAY or little)
        codecs.append(codec)
    if all(codec.kind is Kind.ARRAY_ARRAY for codec in codecs):
        codecs.append(BytesCodec(endian_of(stored)))
    return codecs


def _parse_codec(uri: str, settings: Json, stored: np.dtype[Any]) -> Codec:
    foreign = CODECS.get(uri)
    if foreign is not None:
        return foreign.from_configuration(settings)  # type: ignore[return-value]
    match = _URI.fullmatch(uri)
    if match is not None and match[1] == _ENDIAN:
        endian = parse_configuration(settings, _ENDIAN, {"endian": ...})["endian"]
        one_of(endian, "codec endian", ("big", "little"))
        return BytesCodec(endian if has_byte_order(stored) else None)
    *_, codec = chain("C", [], _compressor(uri, settings), stored, 1)
    return codec


def _compressor(uri: str, settings: Json) -> Json:
    """Return the v2 configuration of a compressor."""
    match = _URI.fullmatch(uri)
    if match is None or match[1] not in COMPRESSORS:
        supported = (_DRAFT_URI.format(name) for name in sorted({_ENDIAN, *COMPRESSORS}))
        raise UnsupportedError(
            "unknown codec", key="codecs", found=uri, expected=", ".join(supported)
        )
    if match[1] == "blosc":
        settings = parse_configuration(settings, "blosc", _BLOSC)
    if match[1] == "gzip":
        settings = parse_configuration(settings, "gzip", {"level": 1})
        integer(settings["level"], "gzip.level", 0, 9)
    return {"id": match[1], **settings}


def parse_compressor(
    value: Any, filters: list[Any], stored: np.dtype[Any], ndim: int
) -> list[Codec]:
    """Return the codecs for the older dialect's ``compressor``, which may be null (X-B7).

    `filters` are the configurations of numcodecs that zarr-python keeps among the attributes.
    """
    config: Json | None = None
    last: list[Codec] = []
    if value is not None:
        members, settings = parse_uri(value, "compressor", "codec")
        uri = members["codec"]
        foreign = CODECS.get(uri)
        if foreign is None:
            config = _compressor(uri, settings)
        else:
            last.append(foreign.from_configuration(settings))  # type: ignore[arg-type]
    return [*chain("C", list(filters), config, stored, ndim), *last]


def new_codec(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return the codec of a new array for a name or configuration of numcodecs that v3 lacks."""
    config = plain_config(value)
    config = {"id": config} if isinstance(config, str) and CODECS.get(config) is None else config
    if not isinstance(config, Mapping) or config.get("id") not in COMPRESSORS:
        return value
    *_, codec = chain("C", [], dict(config), dtype, 1)
    return codec


def split_layout(codecs: Sequence[Codec], ndim: int) -> tuple[str, list[Codec]]:
    """Return the memory layout, "C" or "F", and the codecs that follow it."""
    if not codecs or not isinstance(codecs[0], TransposeCodec):
        return "C", list(codecs)
    if codecs[0].order != tuple(reversed(range(ndim))):
        raise UnsupportedError(
            "the draft of Zarr v3 has the layouts C and F only",
            key="chunk_memory_layout",
            found=codecs[0].order,
        )
    return "F", list(codecs[1:])


def render_codecs(codecs: Sequence[Codec], dtype: np.dtype[Any]) -> list[Json]:
    """Return the JSON of ``codecs`` (B-58 to B-61)."""
    rendered: list[Json] = []
    for codec in codecs:
        if "://" in codec.name:
            rendered.append(_item("type", codec.name, codec.to_json().get("configuration", {})))
        elif isinstance(codec, BytesCodec):
            # Extension types have the byte order in their names; without this codec it is little.
            if codec.endian == "big" and dtype.kind in "iufc":
                rendered.append(_item("type", _DRAFT_URI.format(_ENDIAN), {"endian": "big"}))
        else:
            config = _render(codec)
            name = config.pop("id")
            if name not in COMPRESSORS:
                raise _no_such(codec)
            rendered.append(_item("type", _DRAFT_URI.format(name), config))
    return rendered


def _item(name: str, uri: str, settings: Json) -> Json:
    return {name: uri} | ({"configuration": dict(settings)} if settings else {})


def _render(codec: Codec) -> Json:
    try:
        return render_codec(codec)
    except UnsupportedError as error:
        raise _no_such(codec) from error


def _no_such(codec: Codec) -> UnsupportedError:
    return UnsupportedError(
        "the draft of Zarr v3 has no such codec", key="codecs", found=codec.name
    )


def render_compressor(codecs: Sequence[Codec]) -> tuple[Json | None, list[Json]]:
    """Return the older dialect's ``compressor``, and its filters, which become an attribute."""
    remaining = [codec for codec in codecs if not isinstance(codec, BytesCodec)]
    last = remaining[-1] if remaining else None
    if last is not None and "://" in last.name:
        settings = last.to_json().get("configuration", {})
        return _item("codec", last.name, settings), list(map(_render, remaining[:-1]))
    configs = list(map(_render, remaining))
    if last is None or last.name not in COMPRESSORS:
        return None, configs
    config = configs.pop()
    name = config.pop("id")
    # zarr-python requires a configuration, even an empty one.
    return {"codec": _OLDER_URI.format(name), "configuration": config}, configs
