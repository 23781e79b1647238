"""What the formats share: JSON, shapes, and the names that a node may have."""

import json
from collections.abc import Mapping
from typing import Any, Protocol

from zarrdask.errors import MetadataError
from zarrdask.metadata import Metadata, ZarrFormat
from zarrdask.tolerance import tolerate

Documents = Mapping[str, bytes | None]


class Format(Protocol):
    """A module that knows one format.

    Attributes
    ----------
    VERSION : int
        Its number.
    NAMES : tuple of str
        The names of the documents that may describe a node.
    CHILD_NAMES : tuple of str
        Those whose presence makes a node.
    """

    VERSION: ZarrFormat
    NAMES: tuple[str, ...]
    CHILD_NAMES: tuple[str, ...]

    def parse(self, documents: Documents) -> Metadata | None:
        """Return the node that the documents (by name) describe, or None if they are absent."""

    def render(self, metadata: Metadata) -> dict[str, bytes | None]:
        """Return the documents that describe a node; None for those that should be absent."""


def parse_json(data: bytes, key: str) -> dict[str, Any]:
    """Return the JSON object in a document.

    Bare NaN and Infinity, which are not JSON, are read as old writers meant them.

    Raises
    ------
    MetadataError
        If it is not one.
    """

    def token(text: str) -> float:
        tolerate("A-29", "not JSON", key=key, found=text, expected=f'"{text}"')
        return float(text)

    try:
        found = json.loads(data, parse_constant=token)
    except MetadataError:
        raise
    except (ValueError, RecursionError) as error:
        raise MetadataError(f"not a JSON document: {error}", key=key) from error
    if not isinstance(found, dict):
        raise MetadataError(
            "not a JSON object", key=key, found=type(found).__name__, expected="an object"
        )
    return found


def render_json(document: Mapping[str, Any], key: str, *, indent: int | None = 2) -> bytes:
    """Return a document's bytes.

    Parameters
    ----------
    key : str
        What it is called, for errors.
    indent : int, optional
        Spaces that a level is set in; None puts all on one line.

    Raises
    ------
    MetadataError
        If an attribute is not JSON; NaN and infinities aren't (conformance A-29).
    """
    _check_keys(document, key)
    try:
        return json.dumps(document, indent=indent, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, UnicodeEncodeError) as error:
        raise MetadataError(f"can't be written as JSON: {error}", key=key) from error


def _check_keys(value: Any, key: str) -> None:
    # JSON's encoder would make texts of numbers as keys: what is read again would be another.
    if isinstance(value, Mapping):
        for name, below in value.items():
            if not isinstance(name, str):
                raise MetadataError("a key in JSON is text", key=key, found=name)
            _check_keys(below, key)
    elif isinstance(value, list | tuple):
        for below in value:
            _check_keys(below, key)


def required(document: Mapping[str, Any], names: tuple[str, ...], key: str) -> None:
    """Check that a document has its members.

    Raises
    ------
    MetadataError
        That names the first that is missing (conformance A-7, C-3).
    """
    for name in names:
        if name not in document:
            raise MetadataError(
                f"the member {name!r} is missing", key=key, expected=", ".join(names)
            )


def parse_lengths(found: Any, key: str, least: int) -> tuple[int, ...]:
    """Return a shape or chunk shape.

    Raises
    ------
    MetadataError
        If it is not a list of integers of at least `least`.
    """
    if not isinstance(found, list) or any(
        type(n) is not int or not least <= n < 2**63 for n in found
    ):
        raise MetadataError(
            "not a shape", key=key, found=found, expected=f"a list of integers from {least}"
        )
    return tuple(found)


def parse_attributes(found: Any, key: str) -> dict[str, Any]:
    """Return the user's attributes.

    Raises
    ------
    MetadataError
        If they are not an object.
    """
    if not isinstance(found, dict):
        raise MetadataError("not an object", key=key, found=found, expected="a JSON object")
    return found
