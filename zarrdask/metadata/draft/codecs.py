"""The v3 draft's memory layout and codecs, and its older dialect's compressor and filters."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from zarrdask.codecs.array_to_array.transpose import TransposeCodec
from zarrdask.codecs.array_to_bytes.bytes import BytesCodec, endian_of, has_byte_order
from zarrdask.codecs.base import Codec, Json, Kind, check_count, integer, parse_configuration
from zarrdask.codecs.registry import CODECS
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.extension import is_uri
from zarrdask.metadata import v2

#: The spellings that there have been (X-B7); only the first major version is known.
_URI = re.compile(r"https?://purl\.org/zarr/spec/codecs?/([a-z0-9_-]+)(?:/1(?:\.\d+)?)?")

_DRAFT_URI = "https://purl.org/zarr/spec/codecs/{}/1.0"

_OLDER_URI = "https://purl.org/zarr/spec/codec/{}/1.0"

_ENDIAN = "endian"

_BLOSC = {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}


def parse_layout(found: Any, ndim: int) -> list[Codec]:
    """Return the codec that ``chunk_memory_layout`` stands for, if any (B-30, B-52, B-53).

    Raises
    ------
    UnsupportedError
        If it is that of an extension.
    MetadataError
        If it is none.
    """
    if isinstance(found, dict) and "extension" in found:
        raise UnsupportedError(
            "unknown memory layout", key="chunk_memory_layout", found=found["extension"]
        )
    if found not in ("C", "F"):
        raise MetadataError(
            "not a memory layout", key="chunk_memory_layout", found=found, expected="'C' or 'F'"
        )
    reverse = found == "F" and ndim > 1
    return [TransposeCodec(tuple(reversed(range(ndim))))] if reverse else []


def parse_codecs(found: Any, stored: np.dtype[Any]) -> list[Codec]:
    """Return what ``codecs`` describes, with the conversion to bytes that it leaves out.

    Raises
    ------
    MetadataError
        If it is not a list of objects with a URI as ``type``, or a configuration is wrong.
    UnsupportedError
        If a codec is unknown (conformance B-62).
    """
    if not isinstance(found, list):
        raise MetadataError("not a list of codecs", key="codecs", found=found, expected="a list")
    check_count(found, "codecs")
    codecs: list[Codec] = []
    plain = True
    for item in found:
        uri, settings = _parse_item(item, "type", "codecs")
        # Blosc shuffles the bytes of elements where it is given elements (X-B18).
        codec = _parse_codec(uri, settings, stored if plain else np.dtype("u1"))
        as_elements = not any(c.kind is not Kind.ARRAY_ARRAY for c in codecs)
        if codec.kind is Kind.BYTES_BYTES and as_elements:
            # What works on bytes and is given an array gets its elements (B-56).
            codecs.append(BytesCodec(endian_of(stored)))
        little = isinstance(codec, BytesCodec) and codec.endian != "big"
        plain = plain and (codec.kind is Kind.ARRAY_ARRAY or little)
        codecs.append(codec)
    if all(codec.kind is Kind.ARRAY_ARRAY for codec in codecs):
        codecs.append(BytesCodec(endian_of(stored)))
    return codecs


def _parse_item(found: Any, name: str, key: str) -> tuple[str, Json]:
    members = found if isinstance(found, dict) else {}
    uri, settings = members.get(name), members.get("configuration", {})
    others = set(members) - {name, "configuration"}
    if not isinstance(uri, str) or not is_uri(uri) or not isinstance(settings, dict) or others:
        raise MetadataError(
            "not a codec",
            key=key,
            found=found,
            expected=f'{{"{name}": URI, "configuration": {{...}}}}',
        )
    return uri, settings


def _parse_codec(uri: str, settings: Json, stored: np.dtype[Any]) -> Codec:
    foreign = CODECS.get(uri)
    if foreign is not None:
        return foreign.from_configuration(settings)  # type: ignore[return-value]
    match = _URI.fullmatch(uri)
    if match is not None and match[1] == _ENDIAN:
        return _parse_endian(settings, stored)
    *_, codec = v2.chain("C", [], _compressor(uri, settings), stored, 1)
    return codec


def _parse_endian(settings: Json, stored: np.dtype[Any]) -> Codec:
    endian = parse_configuration(settings, _ENDIAN, {"endian": ...})["endian"]
    if endian not in ("big", "little"):
        raise MetadataError(
            "not a byte order", key="codec endian", found=endian, expected="'big' or 'little'"
        )
    return BytesCodec(endian if has_byte_order(stored) else None)


def _compressor(uri: str, settings: Json) -> Json:
    """Return the v2 configuration of a compressor."""
    match = _URI.fullmatch(uri)
    if match is None or match[1] not in v2.COMPRESSORS:
        known = (_DRAFT_URI.format(name) for name in sorted({_ENDIAN, *v2.COMPRESSORS}))
        raise UnsupportedError("unknown codec", key="codecs", found=uri, expected=", ".join(known))
    if match[1] == "blosc":
        settings = parse_configuration(settings, "blosc", _BLOSC)
    if match[1] == "gzip":
        settings = parse_configuration(settings, "gzip", {"level": 1})
        integer(settings["level"], "gzip.level", 0, 9)
    return {"id": match[1], **settings}


def parse_compressor(
    found: Any, filters: list[Any], stored: np.dtype[Any], ndim: int
) -> list[Codec]:
    """Return what the older dialect's ``compressor`` describes, null being none (X-B7).

    Parameters
    ----------
    filters : list of dict
        What zarr-python has among the attributes: numcodecs configurations.

    Raises
    ------
    MetadataError, UnsupportedError
        As in `parse_codecs`.
    """
    config: Json | None = None
    last: list[Codec] = []
    if found is not None:
        uri, settings = _parse_item(found, "codec", "compressor")
        foreign = CODECS.get(uri)
        if foreign is None:
            config = _compressor(uri, settings)
        else:
            last.append(foreign.from_configuration(settings))  # type: ignore[arg-type]
    return [*v2.chain("C", list(filters), config, stored, ndim), *last]


def split_layout(codecs: Sequence[Codec], ndim: int) -> tuple[str, list[Codec]]:
    """Return the memory layout, and the other codecs.

    Raises
    ------
    UnsupportedError
        If the axes are in another order than the two that the draft knows.
    """
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
    """Return what ``codecs`` says (B-58 to B-61).

    Raises
    ------
    UnsupportedError
        If the draft has no such codec.
    """
    found: list[Json] = []
    for codec in codecs:
        if "://" in codec.name:
            found.append(_item("type", codec.name, _settings(codec)))
        elif isinstance(codec, BytesCodec):
            # Extension types have the byte order in their names; little is what none means.
            if codec.endian == "big" and dtype.kind in "iufc":
                found.append(_item("type", _DRAFT_URI.format(_ENDIAN), {"endian": "big"}))
        else:
            config = _render(codec)
            name = config.pop("id")
            if name not in v2.COMPRESSORS:
                raise _no_such(codec)
            found.append(_item("type", _DRAFT_URI.format(name), config))
    return found


def _item(name: str, uri: str, settings: Json) -> Json:
    return {name: uri} | ({"configuration": settings} if settings else {})


def _settings(codec: Codec) -> Json:
    return dict(codec.to_json().get("configuration", {}))


def _render(codec: Codec) -> Json:
    try:
        return v2.render_codec(codec)
    except UnsupportedError as error:
        raise _no_such(codec) from error


def _no_such(codec: Codec) -> UnsupportedError:
    return UnsupportedError(
        "the draft of Zarr v3 has no such codec", key="codecs", found=codec.name
    )


def render_compressor(codecs: Sequence[Codec]) -> tuple[Json | None, list[Json]]:
    """Return what the older dialect has as ``compressor``, and among the attributes as filters.

    Raises
    ------
    UnsupportedError
        If it has no such codecs.
    """
    rest = [codec for codec in codecs if not isinstance(codec, BytesCodec)]
    last = rest[-1] if rest else None
    if last is not None and "://" in last.name:
        return _item("codec", last.name, _settings(last)), list(map(_render, rest[:-1]))
    configs = list(map(_render, rest))
    if last is None or last.name not in v2.COMPRESSORS:
        return None, configs
    config = configs.pop()
    name = config.pop("id")
    # zarr-python wants a configuration, be it empty.
    return {"codec": _OLDER_URI.format(name), "configuration": config}, configs
