"""What the formats share: JSON, shapes, and the names that a node may have."""

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any, Protocol

from zarrdask import config
from zarrdask.codecs.base import check_dimensions
from zarrdask.compliance import is_strict, report_deviation
from zarrdask.errors import MetadataError
from zarrdask.metadata.model import Metadata, ZarrFormat

Documents = Mapping[str, bytes | None]

#: The most levels of objects and lists in a document that is written. Nothing in the formats needs
#: as many; what handles documents is recursive and must not exhaust Python's stack.
MAX_DEPTH = 128
#: The levels that consolidated metadata put around the documents that they hold.
CONSOLIDATED_LEVELS = 4
#: What ``zarrdask.non-finite-attributes`` may be.
NON_FINITE_CHOICES = ("write", "refuse")


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


class BareToken(float):
    """A number that stands in a document as a bare ``NaN``, ``Infinity`` or ``-Infinity``.

    These are not JSON, but zarr-python and xarray write them into attributes. A float of this
    class is written as such a token again.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies are the same object, so that attributes with NaN equal their copies.
        return _bare_token, (repr(float(self)),)


_BARE_TOKENS = {
    "nan": BareToken("nan"),
    "inf": BareToken("inf"),
    "-inf": BareToken("-inf"),
}


def _bare_token(text: str) -> BareToken:
    return _BARE_TOKENS[text]


def parse_json(data: bytes, key: str) -> dict[str, Any]:
    """Return the JSON object in a document.

    Bare NaN and infinities, which are not JSON, become `BareToken` numbers.

    Raises
    ------
    MetadataError
        If the document is not a JSON object, is nested too deeply, or holds bare NaN or infinities
        in strict mode.
    """

    def token(text: str) -> float:
        report_deviation(
            "A-29", "this number is not JSON", key=key, found=text, expected=f'"{text}"'
        )
        return _bare_token(repr(float(text)))

    try:
        document = json.loads(data, parse_constant=token)
    except MetadataError:
        raise
    except RecursionError as error:
        raise _too_deep(key, MAX_DEPTH + CONSOLIDATED_LEVELS) from error
    except ValueError as error:
        raise MetadataError(f"this is not a JSON document: {error}", key=key) from error
    if not isinstance(document, dict):
        raise MetadataError(
            "this is not a JSON object",
            key=key,
            found=type(document).__name__,
            expected="an object",
        )
    limit = MAX_DEPTH + CONSOLIDATED_LEVELS
    # Few documents have as many brackets as that; the others need not be walked through.
    if data.count(b"{") + data.count(b"[") > limit and _is_deeper(document, limit):
        raise _too_deep(key, limit)
    return document


def _is_deeper(document: Any, limit: int) -> bool:
    """Whether objects and lists are nested in more than `limit` levels; not recursive."""
    level = [document]
    for _ in range(limit):
        level = [
            item
            for container in level
            for item in (container.values() if type(container) is dict else container)
            if type(item) is dict or type(item) is list
        ]
        if not level:
            return False
    return True


def _too_deep(key: str, limit: int) -> MetadataError:
    return MetadataError(
        "the document is nested too deeply",
        key=key,
        expected=f"at most {limit} levels of objects and lists",
    )


def render_json(
    document: Mapping[str, Any], key: str, *, indent: int | None = 2, limit: int = MAX_DEPTH
) -> bytes:
    """Return a document's bytes.

    Lone surrogates, which UTF-8 can't encode, are written as escapes.

    Parameters
    ----------
    key : str
        The name of the document, for errors.
    indent : int, optional
        Spaces by which a level is indented; None puts all on one line.
    limit : int
        The most levels of objects and lists.

    Raises
    ------
    MetadataError
        If the document is not JSON or is nested too deeply. NaN and infinities are not JSON
        (conformance A-29), unless they are of the class `BareToken`.
    """
    _check_json(document, key, "", limit)
    try:
        text = json.dumps(document, indent=indent, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise MetadataError(f"can't be written as JSON: {error}", key=key) from error
    # UTF-8 fails for lone surrogates only, and Python's escape of them is JSON's, too.
    return text.encode(errors="backslashreplace")


def _check_json(value: Any, key: str, place: str, limit: int) -> None:
    """Check what JSON's encoder would not refuse, or would write as something else.

    Parameters
    ----------
    place : str
        Where in the document the value stands, for errors.
    limit : int
        How many levels may follow.
    """
    if isinstance(value, Mapping):
        if limit <= 0:
            raise _too_deep(key, MAX_DEPTH)
        for name, below in value.items():
            # The encoder would write numbers as text, and what is read would differ.
            if not isinstance(name, str):
                raise MetadataError("a key in JSON must be text", key=key, found=name)
            _check_json(below, key, f"{place}.{name}" if place else name, limit - 1)
    elif isinstance(value, list | tuple):
        if limit <= 0:
            raise _too_deep(key, MAX_DEPTH)
        for at, below in enumerate(value):
            _check_json(below, key, f"{place}[{at}]", limit - 1)
    elif isinstance(value, float) and not isfinite(value) and not isinstance(value, BareToken):
        raise _not_finite(value, key, place, "a finite number")


def _not_finite(value: float, key: str, place: str, expected: str) -> MetadataError:
    return MetadataError(
        f"can't be written as JSON, which has no such number as {place or 'this'}",
        key=key,
        found=float(value),
        expected=expected,
    )


def render_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the user's attributes as a document holds them.

    NaN and infinities that a document did not have before become `BareToken` numbers, as the
    setting ``zarrdask.non-finite-attributes`` says.

    Raises
    ------
    MetadataError
        If the setting, or strict mode, refuses NaN and infinities.
    """
    return {name: _with_tokens(value, str(name), MAX_DEPTH) for name, value in attributes.items()}


def _with_tokens(value: Any, place: str, limit: int) -> Any:
    if isinstance(value, float):
        if isinstance(value, BareToken) or isfinite(value):
            return value
        _check_non_finite_allowed(value, place)
        return _bare_token(repr(float(value)))
    if not isinstance(value, Mapping | list | tuple):
        return value
    if limit <= 0:
        raise _too_deep("attributes", MAX_DEPTH)
    if isinstance(value, Mapping):
        return {
            name: _with_tokens(below, f"{place}.{name}", limit - 1) for name, below in value.items()
        }
    return [_with_tokens(below, f"{place}[{at}]", limit - 1) for at, below in enumerate(value)]


def _check_non_finite_allowed(value: float, place: str) -> None:
    setting = config.get("non-finite-attributes")
    if setting not in NON_FINITE_CHOICES:
        raise MetadataError(
            "unknown setting",
            key="zarrdask.non-finite-attributes",
            found=setting,
            expected=" or ".join(NON_FINITE_CHOICES),
        )
    if setting == "refuse" or is_strict():
        raise _not_finite(
            value,
            "attributes",
            place,
            "a finite number, or the setting zarrdask.non-finite-attributes as 'write' outside of "
            "strict mode (A-29)",
        )


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


def parse_array_shape(shape: Any, key: str = "shape") -> tuple[int, ...]:
    """Return the shape of an array.

    Raises
    ------
    MetadataError
        If it is not a list of lengths.
    UnsupportedError
        If it has more dimensions than NumPy has.
    """
    if isinstance(shape, list):
        check_dimensions(len(shape), key)
    return parse_lengths(shape, key, 0)


def parse_lengths(value: Any, key: str, minimum: int) -> tuple[int, ...]:
    """Return a shape or chunk shape.

    Raises
    ------
    MetadataError
        If it is not a list of integers of at least `minimum`.
    """
    if not isinstance(value, list) or any(
        type(n) is not int or not minimum <= n < 2**63 for n in value
    ):
        raise MetadataError(
            "this is not a shape",
            key=key,
            found=value,
            expected=f"a list of integers from {minimum}",
        )
    return tuple(value)


def parse_attributes(value: Any, key: str) -> dict[str, Any]:
    """Return the user's attributes.

    Raises
    ------
    MetadataError
        If they are not an object.
    """
    if not isinstance(value, dict):
        raise MetadataError("this is not an object", key=key, found=value, expected="a JSON object")
    return value
