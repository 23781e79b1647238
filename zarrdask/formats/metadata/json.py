"""JSON documents and the attributes in them, as all formats have them."""

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any

from zarrdask import config
from zarrdask.errors import MetadataError, one_of
from zarrdask.formats.compliance import is_strict, report_deviation

Documents = Mapping[str, bytes | None]

#: The maximum number of nested objects and lists in a document that is written. No format needs as
#: many, and the recursive functions that handle documents must not exhaust Python's stack.
MAX_DEPTH = 128
#: All bytes but brackets and quotes.
_NO_BRACKETS = bytes({*range(256)} - {*b'{}[]"'})
#: The errors that parsing a damaged record may raise.
DAMAGE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
#: The number of levels that consolidated metadata adds around the documents in it.
CONSOLIDATED_LEVELS = 4


class BareToken(float):
    """A number that a document spells as a bare ``NaN``, ``Infinity`` or ``-Infinity``.

    Such tokens are not JSON, but zarr-python and xarray write them into attributes. A float of
    this class is written as a bare token again.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy is the same object, so that attributes with NaN are equal to their copies.
        return _bare_token, (repr(float(self)),)


_BARE_TOKENS = {text: BareToken(text) for text in ("nan", "inf", "-inf")}


def _bare_token(text: str) -> BareToken:
    return _BARE_TOKENS[text]


def parse_json(data: bytes, key: str) -> dict[str, Any]:
    """Return the JSON object in a document.

    Bare NaN and infinities, which are not JSON, become `BareToken` numbers.
    """

    def token(text: str) -> float:
        report_deviation(
            "A-29", "this number is not JSON", key=key, found=text, expected=f'"{text}"'
        )
        return _bare_token(repr(float(text)))

    # Most documents have neither letter, in any encoding: these take Python's shared decoder.
    may_have_tokens = b"N" in data or b"I" in data
    try:
        document = json.loads(data, parse_constant=token if may_have_tokens else None)
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
    # A document with fewer brackets can't be nested too deeply, and need not be searched.
    count = data.count(b"{") + data.count(b"[")
    if count > limit and not _is_shallow(data, limit) and _is_deeper(document, limit):
        raise _too_deep(key, limit)
    return document


def _is_shallow(data: bytes, limit: int) -> bool:
    """Whether the brackets of a document show that it is not nested in more than `limit` levels.

    This is ten times as fast as looking at its values. It is False for documents with brackets or
    quotes in texts, and for those that are not UTF-8, which have NULs.
    """
    if b'\\"' in data or b"\0" in data:
        return False
    # A text without a bracket is a pair of quotes; the first one with a bracket leaves a quote.
    brackets = data.translate(None, _NO_BRACKETS).replace(b'""', b"")
    if b'"' in brackets:
        return False
    for _ in range(limit):
        if not brackets:
            return True
        brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")
    return not brackets


def _is_deeper(document: Any, limit: int) -> bool:
    """Whether objects and lists are nested in more than `limit` levels, without recursion."""
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
    """Return a document, of Python's own types, as JSON, after a check that it can be written.

    `key` is its name, for errors, and `limit` the maximum number of nested objects and lists. NaN
    and infinities are not JSON (conformance A-29), unless they are of the class `BareToken`.
    """
    _check_json(document, key, "", limit)
    try:
        return dump_json(document, indent=indent)
    except ValueError as error:  # an integer with more digits than Python converts
        raise MetadataError(f"this can't be written as JSON: {error}", key=key) from error


def dump_json(document: Mapping[str, Any], *, indent: int | None = 2) -> bytes:
    """Return a document that is known to be JSON as bytes, with unchanged NaN and infinities."""
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    # UTF-8 fails for lone surrogates only, and Python's escape of them is JSON's, too.
    return text.encode(errors="backslashreplace")


def _check_json(value: Any, key: str, path: str, limit: int) -> None:
    """Refuse values that JSON does not have, or that Python's encoder writes as something else."""
    if isinstance(value, Mapping):
        if limit <= 0:
            raise _too_deep(key, MAX_DEPTH)
        for name, below in value.items():
            # The encoder would write a number as text, and reading would not return it.
            if not isinstance(name, str):
                raise MetadataError("a key in JSON must be text", key=key, found=name)
            _check_json(below, key, f"{path}.{name}" if path else name, limit - 1)
    elif isinstance(value, list | tuple):
        if limit <= 0:
            raise _too_deep(key, MAX_DEPTH)
        for i, below in enumerate(value):
            _check_json(below, key, f"{path}[{i}]", limit - 1)
    elif isinstance(value, float) and not isfinite(value) and not isinstance(value, BareToken):
        raise _not_finite(value, key, path, "a finite number")
    elif not (value is None or isinstance(value, str | int | float)):
        raise MetadataError(
            f"{path or 'this value'} can't be written as JSON, which has no such type",
            key=key,
            found=value,
            expected="text, a number, True, False, None, or a list or dict of these; a value of "
            "NumPy has .item() and .tolist()",
        )


def _not_finite(value: float, key: str, path: str, expected: str) -> MetadataError:
    return MetadataError(
        f"{path or 'this value'} can't be written as JSON, which has no NaN or infinities",
        key=key,
        found=float(value),
        expected=expected,
    )


def render_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the user's attributes in the form in which they are put into a document.

    NaN and infinities that were not read from a document become `BareToken` numbers, if the
    setting ``zarrdask.non-finite-attributes`` permits.
    """
    return {name: _with_tokens(value, str(name), MAX_DEPTH) for name, value in attributes.items()}


def _with_tokens(value: Any, path: str, limit: int) -> Any:
    if isinstance(value, float):
        if isinstance(value, BareToken) or isfinite(value):
            return value
        _check_non_finite_allowed(value, path)
        return _bare_token(repr(float(value)))
    if not isinstance(value, Mapping | list | tuple):
        return value
    if limit <= 0:
        raise _too_deep("attributes", MAX_DEPTH)
    if isinstance(value, Mapping):
        return {
            name: _with_tokens(below, f"{path}.{name}", limit - 1) for name, below in value.items()
        }
    return [_with_tokens(below, f"{path}[{i}]", limit - 1) for i, below in enumerate(value)]


def _check_non_finite_allowed(value: float, path: str) -> None:
    name = "non-finite-attributes"
    setting = one_of(config.get(name), f"zarrdask.{name}", ("write", "refuse"))
    if setting == "refuse" or is_strict():
        raise _not_finite(
            value,
            "attributes",
            path,
            "a finite number, or the setting zarrdask.non-finite-attributes as 'write' outside of "
            "strict mode (A-29)",
        )


def required(document: Mapping[str, Any], names: tuple[str, ...], key: str) -> None:
    """Check that a document has all required members."""
    for name in names:
        if name not in document:
            raise MetadataError(
                f"the member {name!r} is missing", key=key, expected=", ".join(names)
            )
