"""Extension definitions of v3 (core 3.1, ZEP 9): a name, its configuration, must_understand."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from zarrdask.errors import MetadataError

_RAW = re.compile(r"[a-z0-9._-]+")
_URI = re.compile(r"https?://[^/?#]+[^?#]*")
#: What zarr-python wrote in the draft begins with "TODO:".
_ANY_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.")
_MEMBERS = {"name", "configuration", "must_understand"}


@dataclass(frozen=True)
class Definition:
    """What a document says of an extension: a codec, data type, grid ... (conformance C-18).

    Attributes
    ----------
    name : str
        A registered or raw name, or a URI, which is a name and nothing else (C-22, C-23).
    configuration : mapping
        Empty where the document has none: that is the same (C-19).
    must_understand : bool
        Whether a reader that doesn't know the name has to fail.
    """

    name: str
    configuration: Mapping[str, Any] = field(default_factory=dict)
    must_understand: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return the object form."""
        found: dict[str, Any] = {"name": self.name}
        if self.configuration:
            found["configuration"] = dict(self.configuration)
        if not self.must_understand:
            found["must_understand"] = False
        return found


def parse_definition(found: Any, key: str) -> Definition:
    """Return an extension definition: an object, or a name alone as short-hand.

    Parameters
    ----------
    found : str or dict
        From a document.
    key : str
        The member where it stands.

    Raises
    ------
    MetadataError
        If it is neither, or its name is neither raw nor a URI (conformance C-18 to C-21).

    Examples
    --------
    >>> parse_definition("int32", "data_type") == parse_definition({"name": "int32"}, "data_type")
    True
    """
    members = {"name": found} if isinstance(found, str) else found
    if not isinstance(members, dict) or not isinstance(members.get("name"), str):
        raise _bad(found, key)
    name = check_name(members["name"], key)
    settings = members.get("configuration", {})
    must = members.get("must_understand", True)
    if not isinstance(settings, dict) or not isinstance(must, bool) or set(members) - _MEMBERS:
        raise _bad(found, f"{key} {name}")
    return Definition(name, settings, must)


def is_uri(found: Any) -> bool:
    """Whether something can name an extension in the v3 draft: a URI, which is never fetched."""
    return isinstance(found, str) and bool(_ANY_URI.match(found))


def _bad(found: Any, key: str) -> MetadataError:
    return MetadataError(
        "not an extension definition",
        key=key,
        found=found,
        expected='a name, or {"name": ..., "configuration": {...}, "must_understand": ...}',
    )


def check_name(name: str, key: str) -> str:
    """Return the name of an extension.

    Raises
    ------
    MetadataError
        If it is neither raw (lower-case letters, digits, "-", "_", ".") nor an http or https URI
        without query and fragment (conformance C-20, C-21). Other URIs pass, as ``urn:`` ones
        stand in the specification's own example: they are names that nothing is known under.
    """
    if _RAW.fullmatch(name) or _URI.fullmatch(name) or name.startswith("urn:"):
        return name
    raise MetadataError(
        "not the name of an extension",
        key=key,
        found=name,
        expected="lower-case letters, digits, '-', '_' and '.', or an http(s) URI",
    )
