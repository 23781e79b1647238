"""Data types of the v3 draft: names, extension types, fallbacks (conformance B-34 to B-37)."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zarrdask import config
from zarrdask.errors import MetadataError, UnsupportedError, ZarrdaskError, quoted
from zarrdask.formats.compliance import already_reported, report_deviation, warn_compliance
from zarrdask.formats.dtypes.data_type import DataType
from zarrdask.formats.dtypes.numeric import NAMES, RawBytes
from zarrdask.formats.dtypes.numpy_type import check_item_size, numpy_type
from zarrdask.formats.dtypes.registry import DATA_TYPES, of_dtype
from zarrdask.formats.dtypes.v2 import check_new, parse_dtype, render_dtype
from zarrdask.formats.extension import is_uri

_RAW = re.compile(r"r\d+")
_TYPESTR = re.compile(r"([<>|]?)([biufc]\d+)")
_ZERO_PADDED = re.compile(r"S\d+")
#: The URIs of the draft's extensions, of any version of its site, and the names that zarr-python
#: writes instead (below).
_URIS = re.compile(
    r"https?://(?:purl\.org/zarr/spec|zarr-specs\.readthedocs\.io/en/[\w.-]+)/(?:protocol/)?"
    r"extensions/(?:data-types/([a-z]+)|([a-z]+)-dtypes)/v?1\.0(?:\.html)?"
)
_TODO = {
    "TODO: bytestring array protocol URL": "string",
    "TODO: object array protocol URL": "object",
    "TODO: structured array protocol URL": "struct",
    "TODO: unicode array protocol URL": "string",
}
#: The kinds of NumPy types that each extension has.
_KINDS = {"complex": "c", "datetime": "mM", "object": "O", "string": "SU", "struct": "V"}
_DRAFT_URI = "https://purl.org/zarr/spec/extensions/data-types/{}/1.0"
#: The URIs that zarr-python writes and recognises, by the kind of the NumPy type.
_OLDER_URIS = {
    "c": "https://zarr-specs.readthedocs.io/en/core-protocol-v3.0-dev/protocol/extensions/"
    "complex-dtypes/v1.0.html",
    "m": "https://zarr-specs.readthedocs.io/en/latest/extensions/data-types/datetime/v1.0.html",
    "M": "https://zarr-specs.readthedocs.io/en/latest/extensions/data-types/datetime/v1.0.html",
    "O": "TODO: object array protocol URL",
    "S": "TODO: bytestring array protocol URL",
    "U": "TODO: unicode array protocol URL",
    "V": "TODO: structured array protocol URL",
}


class Element(NamedTuple):
    """A data type, and the NumPy type of its stored elements, with their byte order."""

    data_type: DataType
    stored: np.dtype[Any]


@dataclass(frozen=True)
class ExtensionType(DataType):
    """An extension type of the draft with other fallbacks than the usual ones (B-27)."""

    #: The identifiers of the fallbacks, the preferred one first. It may be empty.
    fallback: tuple[Any, ...] = ()

    def to_json(self) -> str | dict[str, Any]:
        return of_dtype(self.dtype).to_json()

    def parse_fill(self, value: Any) -> Any:
        return of_dtype(self.dtype).parse_fill(value)

    def render_fill(self, value: Any) -> Any:
        return of_dtype(self.dtype).render_fill(value)


@dataclass(frozen=True)
class FallbackType(ExtensionType):
    """An unknown extension type, read as one of its fallbacks (B-25)."""

    #: The JSON of the data type, which is written back unchanged.
    document: str = "null"
    #: The JSON of the fill value, which is written back unchanged.
    fill: str = "null"


# --------------------------------------------------------------------------------------------
# Document -> data type


def parse_type(value: Any, *, older: bool) -> Element:
    """Return the data type that ``data_type`` describes; `older` names are NumPy's (X-B17)."""
    element = _parse_element(value, older=older)
    check_item_size(element.stored.itemsize, "data_type")
    return element


def _parse_element(value: Any, *, older: bool) -> Element:
    if isinstance(value, str):
        return _parse_name(value, older=older)
    if not isinstance(value, dict) or not is_uri(value.get("extension")):
        raise MetadataError(
            "unknown data type",
            key="data_type",
            found=value,
            expected='an identifier, or {"extension": URI, "type": ...}',
        )
    if "type" not in value:
        raise MetadataError(
            "the member 'type' of the extension is missing", key="data_type", found=value
        )
    try:
        element = _parse_extension(value)
    except ZarrdaskError as error:
        return _fall_back(value, error, older=older)
    return _with_fallback(element, value.get("fallback"), older=older)


def _parse_name(name: str, *, older: bool) -> Element:
    if _RAW.fullmatch(name):
        raw = RawBytes.from_configuration(name, {})
        return Element(raw, raw.dtype)
    match = _TYPESTR.fullmatch(name)
    if name in NAMES:
        if older and name != "bool":
            report_deviation(
                "X-B17", "the name belongs to the newer dialect", key="data_type", found=name
            )
        stored = np.dtype(name).newbyteorder("<")
    elif match is not None:
        stored = _numpy(name, match[1] or "<", match[2])
        if not older or (not match[1] and stored.itemsize > 1):
            expected = stored.str if older else stored.name
            report_deviation(
                "X-B1",
                "the name is one of NumPy",
                key="data_type",
                found=name,
                expected=repr(expected),
            )
    else:
        raise UnsupportedError(
            "unknown data type", key="data_type", found=name, expected=", ".join(sorted(NAMES))
        )
    return Element(of_dtype(stored.newbyteorder("=")), stored)


def _numpy(name: str, order: str, text: str) -> np.dtype[Any]:
    try:
        dtype = numpy_type(order + text)
    except ValueError:
        dtype = np.dtype("V")
    if dtype.name not in NAMES or (order == "|" and dtype.itemsize > 1):
        raise MetadataError("unknown data type", key="data_type", found=name, expected="'<f4'")
    return dtype


def _parse_extension(members: Mapping[str, Any]) -> Element:
    uri, kind = members["extension"], members["type"]
    foreign = DATA_TYPES.get(uri)
    if foreign is not None:
        settings = {n: v for n, v in members.items() if n not in ("extension", "fallback")}
        data_type = foreign.from_configuration(uri, settings)
        return Element(data_type, data_type.dtype.newbyteorder("<"))
    match = _URIS.fullmatch(uri)
    name = _TODO.get(uri) if match is None else match[1] or match[2]
    if name not in _KINDS or set(members) - {"extension", "type", "fallback"}:
        raise UnsupportedError("unknown data type", key="data_type", found=uri)
    stored = _parse_numpy(kind)
    if stored.kind not in _KINDS[name] or (name == "struct") != isinstance(kind, list):
        raise MetadataError(f"unknown type of the extension {name}", key="data_type", found=kind)
    native = stored if stored.names else stored.newbyteorder("=")
    return Element(of_dtype(native), stored)


def _parse_numpy(value: Any) -> np.dtype[Any]:
    if isinstance(value, str) and _ZERO_PADDED.fullmatch(value):
        value = f"|{value}"  # the extension has it without the byte order that v2 requires
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        name, *kind = value[0] or [None]
        if name == "" and len(kind) == 1:
            return parse_dtype(kind[0], "data_type")  # zarr-python's spelling of raw bytes
    dtype = parse_dtype(_numpy_names(value), "data_type")
    check_new(dtype, "data_type")
    return dtype


def _numpy_names(value: Any) -> Any:
    """Return the fields of a struct, with names of core types replaced by NumPy's typestrs."""
    if isinstance(value, list):
        return [
            [field[0], _numpy_names(field[1]), *field[2:]]
            if isinstance(field, list) and len(field) > 1
            else field
            for field in value
        ]
    if isinstance(value, str) and value in NAMES:
        return np.dtype(value).newbyteorder("<").str
    return value


def _fallbacks(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def _with_fallback(element: Element, fallback: Any, *, older: bool) -> Element:
    """Return a data type that keeps the fallbacks of its document, if they are unusual."""
    fallbacks = _fallbacks(fallback)
    usual = [[], default_fallback(element.stored, older=older), default_fallback(element.stored)]
    if fallbacks in usual or element.stored.hasobject or foreign_json(element.data_type):
        return element
    hashable = tuple(each if isinstance(each, str) else json.dumps(each) for each in fallbacks)
    return Element(ExtensionType(element.data_type.dtype, hashable), element.stored)


def _fall_back(document: Mapping[str, Any], error: ZarrdaskError, *, older: bool) -> Element:
    """Return the first fallback that is known, if the setting allows fallbacks (B-25)."""
    element: Element | None = None
    name: Any = None
    for name in _fallbacks(document.get("fallback")):
        try:
            element = _parse_name(name, older=older) if isinstance(name, str) else None
            element = _parse_extension(name) if isinstance(name, dict) else element
        except (ZarrdaskError, KeyError):
            continue
        if element is not None:
            break
    if element is None:
        raise error
    read_as = f"read as {quoted(name)}"
    # A task that opens the array again need not have the setting of the program that opened it.
    if not config.get("draft-fallback") and not already_reported():
        raise UnsupportedError(
            f"unknown data type; turn on the setting zarrdask.draft-fallback to have it {read_as}",
            key="data_type",
            found=document["extension"],
        )
    warn_compliance(
        f"data_type: {document['extension']} is unknown, the elements are {read_as} (B-25)"
    )
    fallback = FallbackType(element.data_type.dtype, (), json.dumps(document))
    return Element(fallback, element.stored)


# --------------------------------------------------------------------------------------------
# Data type -> document


def default_fallback(stored: np.dtype[Any], *, older: bool = False) -> list[Any]:
    """Return the usual fallbacks of an extension type, which end with raw bytes (B-26, B-27).

    Examples
    --------
    >>> default_fallback(np.dtype("<M8[ns]")), default_fallback(np.dtype("S3"))
    (['int64', 'r64'], ['r24'])
    """
    if stored.hasobject or not stored.itemsize:
        return []
    raw = f"r{stored.itemsize * 8}"
    if stored.kind not in "mM":
        return [raw]
    # The older dialect has one fallback; GDAL reads the integer.
    return [f"{stored.str[0]}i8"] if older else ["int64", raw]


def foreign_json(data_type: DataType) -> dict[str, Any] | None:
    """Return the v3 metadata of a type that a user has registered under a URI, else None."""
    try:
        metadata = data_type.to_json()
    except (UnsupportedError, NotImplementedError):
        return None
    is_foreign = isinstance(metadata, dict) and "://" in metadata["name"]
    return metadata if is_foreign else None  # type: ignore[return-value]


def render_type(data_type: DataType, stored: np.dtype[Any], *, older: bool) -> Any:
    """Return the JSON of a data type whose elements are stored in the byte order of a dtype."""
    if isinstance(data_type, FallbackType):
        return json.loads(data_type.document)
    foreign = foreign_json(data_type)
    if foreign is not None:
        members = dict(foreign.get("configuration", {}))
        fallback = list(getattr(data_type, "fallback", ())) or default_fallback(stored)
        other_members = {"type": members.pop("type", stored.str), **members, "fallback": fallback}
        return {"extension": foreign["name"], **other_members}
    if stored.isbuiltin == 2 or stored.subdtype is not None:
        raise _no_such(stored)
    if stored.name in NAMES and (stored.kind != "c" or not older):
        # The older dialect has NumPy's names, but for this one.
        return stored.str.removeprefix("|") if older and stored.kind != "b" else stored.name
    if stored.kind == "V" and stored.names is None and not older:
        return RawBytes(stored).to_json()
    if stored.kind not in "cmMSUVO" or (stored.kind == "O" and not older):
        raise _no_such(stored)
    fallbacks = data_type.fallback if isinstance(data_type, ExtensionType) else ()
    fallback = [json.loads(value) if value.startswith("{") else value for value in fallbacks]
    fallback = fallback or default_fallback(stored, older=older)
    return _render_older(stored, fallback) if older else _render_extension(stored, fallback)


def _no_such(dtype: np.dtype[Any]) -> UnsupportedError:
    return UnsupportedError(
        "the draft of Zarr v3 has no such data type", key="data_type", found=str(dtype)
    )


def _render_extension(stored: np.dtype[Any], fallback: list[Any]) -> dict[str, Any]:
    name = next(n for n, kinds in _KINDS.items() if stored.kind in kinds)
    kind = stored.str.removeprefix("|") if stored.kind == "S" else render_dtype(stored)
    return {"extension": _DRAFT_URI.format(name), "type": kind, "fallback": fallback}


def _render_older(stored: np.dtype[Any], fallback: list[Any]) -> dict[str, Any]:
    kind = render_dtype(stored)
    if stored.kind == "V" and stored.names is None:
        kind = [["", stored.str]]
    first = fallback[0] if fallback else None
    return {"extension": _OLDER_URIS[stored.kind], "type": kind, "fallback": first}
