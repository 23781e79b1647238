"""Data types of the v3 draft: names, extension types, fallbacks (conformance B-34 to B-37)."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zarrdask import config
from zarrdask.compliance import is_quiet, note, report_deviation
from zarrdask.dtypes.base import DataType
from zarrdask.dtypes.numeric import NAMES, Raw
from zarrdask.dtypes.registry import DATA_TYPES, of_dtype
from zarrdask.dtypes.size import check_item_size
from zarrdask.dtypes.v2 import parse_dtype, render_dtype
from zarrdask.errors import MetadataError, UnsupportedError, ZarrdaskError, quoted
from zarrdask.extension import is_uri

_RAW = re.compile(r"r\d+")
_TYPESTR = re.compile(r"([<>|]?)([biufc]\d+)")
_ZERO_PADDED = re.compile(r"S\d+")
#: The extensions of the draft under their URIs, of whatever time, and what zarr-python writes.
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
#: The kinds of NumPy types that each has.
_KINDS = {"complex": "c", "datetime": "mM", "object": "O", "string": "SU", "struct": "V"}
_DRAFT_URI = "https://purl.org/zarr/spec/extensions/data-types/{}/1.0"
#: What zarr-python writes, and looks for.
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
    """A data type, and the NumPy type that it has where it is stored."""

    data_type: DataType
    stored: np.dtype[Any]


@dataclass(frozen=True)
class ExtensionType(DataType):
    """An extension type of the draft with other fallbacks than those of the extension (B-27).

    Attributes
    ----------
    fallback : tuple
        Identifiers, the best first; none, if empty.
    """

    fallback: tuple[Any, ...] = ()

    def to_json(self) -> str | dict[str, Any]:
        return of_dtype(self.dtype).to_json()

    def parse_fill(self, found: Any) -> Any:
        return of_dtype(self.dtype).parse_fill(found)

    def render_fill(self, value: Any) -> Any:
        return of_dtype(self.dtype).render_fill(value)


@dataclass(frozen=True)
class FallbackType(ExtensionType):
    """An unknown extension type, read as one of its fallbacks (B-25).

    Attributes
    ----------
    document : str
        What the document says of it, and `fill` of its fill value, as JSON: that is not ours to
        change.
    """

    document: str = "null"
    fill: str = "null"


# --------------------------------------------------------------------------------------------
# Document -> data type


def parse_type(found: Any, *, older: bool) -> Element:
    """Return the data type that ``data_type`` describes.

    Parameters
    ----------
    older : bool
        Whether the dialect is the older one, whose names are NumPy's (X-B17).

    Raises
    ------
    MetadataError
        If it is neither an identifier nor an extension type.
    UnsupportedError
        If it is unknown, and fallbacks are not allowed or unknown, too; or its elements are too
        large.
    """
    element = _parse_element(found, older=older)
    check_item_size(element.stored.itemsize, "data_type")
    return element


def _parse_element(found: Any, *, older: bool) -> Element:
    if isinstance(found, str):
        return _parse_name(found, older=older)
    if not isinstance(found, dict) or not is_uri(found.get("extension")):
        raise _bad(found)
    if "type" not in found:
        raise MetadataError(
            "an extension type needs its type", key="data_type", found=found, expected="type"
        )
    try:
        element = _parse_extension(found)
    except ZarrdaskError as error:
        return _fall_back(found, error, older=older)
    return _with_fallback(element, found.get("fallback"), older=older)


def _bad(found: Any) -> MetadataError:
    return MetadataError(
        "not a data type",
        key="data_type",
        found=found,
        expected='an identifier, or {"extension": URI, "type": ...}',
    )


def _parse_name(name: str, *, older: bool) -> Element:
    if _RAW.fullmatch(name):
        raw = Raw.from_configuration(name, {})
        return Element(raw, raw.dtype)
    match = _TYPESTR.fullmatch(name)
    if name in NAMES:
        if older and name != "bool":
            report_deviation("X-B17", "a name of the newer dialect", key="data_type", found=name)
        stored = np.dtype(name).newbyteorder("<")
    elif match is not None:
        stored = _numpy(name, match[1] or "<", match[2])
        if not older or (not match[1] and stored.itemsize > 1):
            expected = stored.str if older else stored.name
            report_deviation(
                "X-B1", "a name of NumPy's", key="data_type", found=name, expected=repr(expected)
            )
    else:
        raise UnsupportedError(
            "unknown data type", key="data_type", found=name, expected=", ".join(sorted(NAMES))
        )
    return Element(of_dtype(stored.newbyteorder("=")), stored)


def _numpy(name: str, order: str, text: str) -> np.dtype[Any]:
    try:
        found = np.dtype(order + text)
    except TypeError:
        found = np.dtype("V")
    if found.name not in NAMES or (order == "|" and found.itemsize > 1):
        raise MetadataError("not a data type", key="data_type", found=name, expected="'<f4'")
    return found


def _parse_extension(found: Mapping[str, Any]) -> Element:
    uri, kind = found["extension"], found["type"]
    foreign = DATA_TYPES.get(uri)
    if foreign is not None:
        members = {n: v for n, v in found.items() if n not in ("extension", "fallback")}
        data_type = foreign.from_configuration(uri, members)
        return Element(data_type, data_type.dtype.newbyteorder("<"))
    match = _URIS.fullmatch(uri)
    name = _TODO.get(uri) if match is None else match[1] or match[2]
    if name not in _KINDS or set(found) - {"extension", "type", "fallback"}:
        raise UnsupportedError("unknown data type", key="data_type", found=uri)
    stored = _parse_numpy(kind)
    if stored.kind not in _KINDS[name] or (name == "struct") != isinstance(kind, list):
        raise MetadataError(f"not a type of the extension {name}", key="data_type", found=kind)
    native = stored if stored.names else stored.newbyteorder("=")
    return Element(of_dtype(native), stored)


def _parse_numpy(found: Any) -> np.dtype[Any]:
    if isinstance(found, str) and _ZERO_PADDED.fullmatch(found):
        return np.dtype(found)  # the extension's own spelling, which v2's rules don't know
    if isinstance(found, list) and len(found) == 1 and isinstance(found[0], list):
        name, *kind = found[0] or [None]
        if name == "" and len(kind) == 1:
            return parse_dtype(kind[0], "data_type")  # zarr-python, of bytes without fields
    return parse_dtype(_numpy_names(found), "data_type")


def _numpy_names(found: Any) -> Any:
    """Return a struct's fields with NumPy's names for the core's types."""
    if isinstance(found, list):
        return [
            [field[0], _numpy_names(field[1]), *field[2:]]
            if isinstance(field, list) and len(field) > 1
            else field
            for field in found
        ]
    if isinstance(found, str) and found in NAMES:
        return np.dtype(found).newbyteorder("<").str
    return found


def _fallbacks(found: Any) -> list[Any]:
    return [] if found is None else found if isinstance(found, list) else [found]


def _with_fallback(element: Element, found: Any, *, older: bool) -> Element:
    """Return a data type that keeps what fallback its document has, if it is an unusual one."""
    given = _fallbacks(found)
    usual = [[], default_fallback(element.stored, older=older), default_fallback(element.stored)]
    if given in usual or element.stored.hasobject or foreign_json(element.data_type):
        return element
    kept = ExtensionType(element.data_type.dtype, tuple(map(_hashable, given)))
    return Element(kept, element.stored)


def _hashable(found: Any) -> Any:
    return found if isinstance(found, str) else json.dumps(found)


def _fall_back(found: Mapping[str, Any], error: ZarrdaskError, *, older: bool) -> Element:
    """Return the first fallback that is known (B-25); the user has to allow that."""
    known: Element | None = None
    name: Any = None
    for name in _fallbacks(found.get("fallback")):
        try:
            known = _parse_name(name, older=older) if isinstance(name, str) else None
            known = _parse_extension(name) if isinstance(name, dict) else known
        except (ZarrdaskError, KeyError):
            continue
        if known is not None:
            break
    if known is None:
        raise error
    read_as = f"read as {quoted(name)}"
    # Where a task opens what was opened before, it was allowed there.
    if not config.get("draft-fallback") and not is_quiet():
        raise UnsupportedError(
            f"unknown data type; with the setting zarrdask.draft-fallback it is {read_as}",
            key="data_type",
            found=found["extension"],
        )
    note(f"data_type: {found['extension']} is unknown, the elements are {read_as} (B-25)")
    fallback = FallbackType(known.data_type.dtype, (), json.dumps(found))
    return Element(fallback, known.stored)


# --------------------------------------------------------------------------------------------
# Data type -> document


def default_fallback(stored: np.dtype[Any], *, older: bool = False) -> list[Any]:
    """Return what an extension type falls back to, raw bytes at last (B-26, B-27).

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
    # The older dialect has one fallback, and GDAL reads integers.
    return [f"{stored.str[0]}i8"] if older else ["int64", raw]


def foreign_json(data_type: DataType) -> dict[str, Any] | None:
    """Return the v3 metadata of a type that somebody else has registered under a URI."""
    try:
        found = data_type.to_json()
    except (UnsupportedError, NotImplementedError):
        return None
    is_foreign = isinstance(found, dict) and "://" in found["name"]
    return found if is_foreign else None  # type: ignore[return-value]


def render_type(data_type: DataType, stored: np.dtype[Any], *, older: bool) -> Any:
    """Return what ``data_type`` says.

    Parameters
    ----------
    stored : numpy.dtype
        With the byte order that the array's codecs give it.

    Raises
    ------
    UnsupportedError
        If the draft has no such type.
    """
    if isinstance(data_type, FallbackType):
        return json.loads(data_type.document)
    foreign = foreign_json(data_type)
    if foreign is not None:
        members = dict(foreign.get("configuration", {}))
        fallback = list(getattr(data_type, "fallback", ())) or default_fallback(stored)
        rest = {"type": members.pop("type", stored.str), **members, "fallback": fallback}
        return {"extension": foreign["name"], **rest}
    if stored.isbuiltin == 2 or stored.subdtype is not None:
        raise _no_such(stored)
    if stored.name in NAMES and (stored.kind != "c" or not older):
        return _older_name(stored) if older else stored.name
    if stored.kind == "V" and stored.names is None and not older:
        return Raw(stored).to_json()
    if stored.kind not in "cmMSUVO" or (stored.kind == "O" and not older):
        raise _no_such(stored)
    given = data_type.fallback if isinstance(data_type, ExtensionType) else ()
    fallback = list(map(_unhashed, given)) or default_fallback(stored, older=older)
    return _render_older(stored, fallback) if older else _render_extension(stored, fallback)


def _no_such(dtype: np.dtype[Any]) -> UnsupportedError:
    return UnsupportedError(
        "the draft of Zarr v3 has no such data type", key="data_type", found=str(dtype)
    )


def _unhashed(found: Any) -> Any:
    is_object = isinstance(found, str) and found.startswith("{")
    return json.loads(found) if is_object else found


def _older_name(stored: np.dtype[Any]) -> str:
    if stored.kind == "b":
        return "bool"
    return stored.str.removeprefix("|")


def _render_extension(stored: np.dtype[Any], fallback: list[Any]) -> dict[str, Any]:
    name = next(n for n, kinds in _KINDS.items() if stored.kind in kinds)
    kind = stored.str.removeprefix("|") if stored.kind == "S" else render_dtype(stored)
    return {"extension": _DRAFT_URI.format(name), "type": kind, "fallback": fallback}


def _render_older(stored: np.dtype[Any], fallback: list[Any]) -> dict[str, Any]:
    kind = render_dtype(stored)
    if stored.kind == "V" and stored.names is None:
        kind = [["", stored.str]]
    one = fallback[0] if fallback else None
    return {"extension": _OLDER_URIS[stored.kind], "type": kind, "fallback": one}
