"""The entry point of a hierarchy of the v3 draft, the ``zarr.json`` at its root (B-9 to B-19)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zarrdask.errors import MetadataError, UnsupportedError, instance_of, one_of
from zarrdask.formats.codecs.codec import Json
from zarrdask.formats.compliance import report_deviation
from zarrdask.formats.extension import Definition, is_uri, members_of
from zarrdask.formats.metadata.extensions import check_understood
from zarrdask.formats.metadata.json import parse_json, render_json, required
from zarrdask.formats.metadata.node_layout import DRAFT, PROTOCOL

#: The key of the document.
KEY = "zarr.json"
#: The value of ``zarr_format`` in each dialect.
URIS = {
    DRAFT: "https://purl.org/zarr/spec/core/3.0",
    PROTOCOL: "https://purl.org/zarr/spec/protocol/core/3.0",
}
_VERSION = re.compile(r"https?://\S+/(\d+)\.(\d+)")
_CORE = re.compile(r"https?://purl\.org/zarr/spec/(protocol/)?core/\d+\.\d+")
_STRING = re.compile(rb'"zarr_format"\s*:\s*"')
_SUFFIX = re.compile(r"[A-Za-z0-9._-]*")
_MEMBERS = ("zarr_format", "metadata_encoding", "extensions")
_OLDER = ("zarr_format", "metadata_encoding", "metadata_key_suffix", "extensions")


@dataclass(frozen=True)
class EntryPoint:
    """The contents of the entry point of a hierarchy."""

    #: The dialect, "v3-draft" or "v3-draft-protocol".
    zarr_format: str
    #: The suffix of the keys of documents.
    suffix: str = ".json"
    #: The minor version of the format.
    minor: int = 0
    #: Whether the document determines where the nodes are. It does not if it mixes the dialects.
    certain: bool = True

    @classmethod
    def is_in(cls, data: bytes | None) -> bool:
        """Whether a ``zarr.json`` is the entry point of a hierarchy of the draft, valid or not.

        Nodes of Zarr v3 have a number as ``zarr_format``, the draft has a URI.
        """
        if data is None or not _STRING.search(data):
            return False
        try:
            value = parse_json(data, KEY).get("zarr_format")
        except MetadataError:
            return False
        return isinstance(value, str) and "://" in value

    @classmethod
    def parse(cls, data: bytes) -> "EntryPoint":
        """Return the contents of an entry point."""
        document = parse_json(data, KEY)
        required(document, ("zarr_format",), KEY)
        older, minor = _parse_format(document["zarr_format"])
        string = isinstance(document.get("metadata_encoding"), str)
        required(document, _MEMBERS, KEY)
        check_members(document, _OLDER if older or string else _MEMBERS, KEY, minor)
        if older or string:
            suffix = _older_suffix(document)
        else:
            suffix = _parse_encoding(document["metadata_encoding"])
        parse_extensions(document["extensions"])
        return cls(PROTOCOL if older else DRAFT, suffix, minor, certain=older or not string)

    @staticmethod
    def render(zarr_format: str) -> bytes:
        """Return the entry point of a new hierarchy (conformance B-10, B-12, X-B17)."""
        uri = URIS[zarr_format]
        document: Json = {"zarr_format": uri}
        if zarr_format == PROTOCOL:
            document |= {"metadata_encoding": uri, "metadata_key_suffix": ".json"}
        else:
            document["metadata_encoding"] = {"type": "json", "metadata_key_suffix": ".json"}
        return render_json(document | {"extensions": []}, KEY)


def _parse_format(value: Any) -> tuple[bool, int]:
    """Return whether the dialect is the older one, and the minor version (B-11)."""
    expected = f"{URIS[DRAFT]!r} or {URIS[PROTOCOL]!r}"
    version = _VERSION.fullmatch(value) if isinstance(value, str) else None
    if version is None or not _CORE.fullmatch(value):
        raise MetadataError(
            "unknown version of Zarr", key="zarr_format", found=value, expected=expected
        )
    if int(version[1]) != 3:
        message = "this is another major version of Zarr"
        raise UnsupportedError(message, key="zarr_format", found=value, expected=expected)
    return "/protocol/" in value, int(version[2])


def _parse_encoding(value: Any) -> str:
    """Return the suffix of the documents' keys (B-12 to B-14)."""
    if "extension" in instance_of(value, "metadata_encoding", dict):
        raise UnsupportedError(
            "unknown encoding of documents", key="metadata_encoding", found=value["extension"]
        )
    required_members = {"type": ..., "metadata_key_suffix": ...}
    members = members_of(value, "metadata_encoding", required_members)
    one_of(members["type"], "metadata_encoding.type", ("json",))
    return _check_suffix(members["metadata_key_suffix"])


def _older_suffix(document: Json) -> str:
    """Return the suffix, a member beside the encoding (a URI) in the older dialect (X-B16)."""
    encoding = document["metadata_encoding"]
    if isinstance(encoding, Mapping):
        message = "the form belongs to the newer dialect"
        report_deviation("X-B16", message, key="metadata_encoding", found=encoding)
        return _parse_encoding(encoding)
    if not isinstance(encoding, str) or not _CORE.fullmatch(encoding):
        raise UnsupportedError(
            "unknown encoding of documents",
            key="metadata_encoding",
            found=encoding,
            expected=repr(URIS[PROTOCOL]),
        )
    if "/protocol/" not in document["zarr_format"]:
        message = "the form belongs to the older dialect"
        report_deviation("X-B16", message, key="metadata_encoding", found=encoding)
    return _check_suffix(document.get("metadata_key_suffix", ".json"))


def _check_suffix(value: Any) -> str:
    if isinstance(value, str) and _SUFFIX.fullmatch(value):
        return value
    message, key = "invalid suffix of keys", "metadata_key_suffix"
    raise MetadataError(message, key=key, found=value, expected="'.json'")


def check_members(document: Json, known_members: tuple[str, ...], key: str, minor: int) -> None:
    """Check that a document of minor version 0 has no unknown members.

    In higher minor versions they may be ignored (conformance B-11, B-21, X-B6).
    """
    unknown = sorted(set(document) - set(known_members))
    if unknown and not minor:
        raise UnsupportedError(
            "unknown members may change the meaning of others",
            key=key,
            found=unknown,
            expected=", ".join(known_members),
        )


def parse_extensions(value: Any) -> tuple[Definition, ...]:
    """Return the extensions of a hierarchy or an array (B-15 to B-18, X-B14)."""
    return check_understood(map(_parse_extension, instance_of(value, "extensions", list)))


def _parse_extension(value: Any) -> Definition:
    members, settings = parse_uri(value, "extensions", "extension", "must_understand")
    must_understand = instance_of(members["must_understand"], "extensions.must_understand", bool)
    return Definition(members["extension"], settings, must_understand)


def parse_uri(value: Any, key: str, name: str, *others: str) -> tuple[Json, Json]:
    """Return the members and the configuration of an object that a URI names in the draft.

    The URI is the member `name`. The members `others` are required, the configuration is not.
    """
    members = value if isinstance(value, dict) else {}
    settings = members.get("configuration", {})
    is_complete = set(members) - {"configuration"} == {name, *others}
    if not is_complete or not is_uri(members[name]) or not isinstance(settings, dict):
        required_members = "".join(f'"{other}": ..., ' for other in others)
        raise MetadataError(
            "invalid extension",
            key=key,
            found=value,
            expected=f'{{"{name}": URI, {required_members}"configuration": {{...}}}}',
        )
    return members, settings


def render_extensions(extensions: tuple[Definition, ...]) -> list[Json]:
    """Return the JSON of ``extensions``."""
    return [
        {"extension": item.name, "must_understand": item.must_understand}
        | ({"configuration": dict(item.configuration)} if item.configuration else {})
        for item in extensions
    ]
