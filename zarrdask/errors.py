"""Errors with fields: each names the key, the value that was found and what was expected."""

import json
import re
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

T = TypeVar("T")
#: Names of zarr-python's errors, and what to use here.
OTHER_NAMES = {
    **dict.fromkeys(("ContainsArrayError", "ContainsGroupError"), "use NodeExistsError"),
    **dict.fromkeys(
        ("ArrayNotFoundError", "GroupNotFoundError", "PathNotFoundError"), "use NodeNotFoundError"
    ),
    "NodeTypeValidationError": "use NodeTypeError",
    "MetadataValidationError": "use MetadataError",
    "UnknownCodecError": "use UnsupportedError",
    "BoundsCheckError": "use SelectionError, which is an IndexError",
    "VindexInvalidSelectionError": "use SelectionError, which is an IndexError",
}
#: The types that `instance_of` checks, as messages call them.
_JSON_TYPES: dict[type, str] = {
    list: "a list",
    dict: "an object",
    bool: "true or false",
    str: "text",
}

#: The maximum number of characters of a value that a message quotes.
MAX_VALUE_LENGTH = 200

#: The maximum number of characters of the other parts, which may contain names from documents.
MAX_PART_LENGTH = 1000

#: A password in a URL, which may contain any character if it is not encoded; not a port.
_PASSWORD = re.compile(r"(://[^/\s:@?#\[]*:)(?!\d+(?:[/?#\s'\"]|$))[^\s'\"<>]*@")
#: A token instead of a user name. Azure's URLs have the name of a container there.
_TOKEN = re.compile(r"(?<!abfs)(?<!abfss)(?<!az)(://)(?!\*)[^/\s:@?#'\"]+@")
#: Parameters of URLs that give access: signatures of S3, Google and Azure (``sig``), and tokens,
#: keys, sessions and passwords under the names that servers usually give them.
_SECRET = re.compile(
    r"([?&;#][\w.%-]*(?:signature|sig|hmac|policy|credentials?|token|jwt|secret|password|passwd"
    r"|passphrase|pass|pwd|key(?:id)?|auth|authorization|bearer|sas|session(?:[_-]?id)?|sid|otp)=)"
    r"(?!\*)[^&#\s'\"]+",
    re.IGNORECASE,
)
_HEADER = re.compile(r"\b(Bearer|Basic) (?!\*)[\w.~+/-]{8,}=*", re.IGNORECASE)


def without_secrets(text: str) -> str:
    """Return a text in which passwords, signatures and tokens of URLs are left out.

    Examples
    --------
    >>> without_secrets("https://user:secret@host/x.zarr")
    'https://user:***@host/x.zarr'
    >>> without_secrets("https://host/x.zip?versionId=3&X-Amz-Signature=1f0c")
    'https://host/x.zip?versionId=3&X-Amz-Signature=***'
    """
    for pattern, shown in (
        (_PASSWORD, r"\1***@"),
        (_TOKEN, r"\1***@"),
        (_SECRET, r"\1***"),
        (_HEADER, r"\1 ***"),
    ):
        text = pattern.sub(shown, text)
    return text


def censored(error: BaseException) -> BaseException:
    """Return an error of the same type without secrets in its text, and in the texts of its causes.

    Packages put whole signed URLs in their messages, which a traceback shows.
    """
    chain = [error]
    while (below := _cause(chain[-1])) is not None and below not in chain:
        chain.append(below)
    shown = [_without_secrets(each) for each in chain]
    for above, old, new in zip(shown, chain[1:], shown[1:], strict=False):
        if new is not old:
            above.__cause__ = new
    return shown[0]


def _cause(error: BaseException) -> BaseException | None:
    """Return the error that a traceback shows as the cause of another one."""
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _without_secrets(error: BaseException) -> BaseException:
    text, kind = str(error), type(error)
    shown = without_secrets(text)
    if shown == text:
        return error
    members = {"__module__": kind.__module__, "__str__": lambda _: shown}
    stand_in: BaseException = kind.__new__(type(kind.__name__, (kind,), members), *error.args)
    vars(stand_in).update(vars(error))
    stand_in.args = tuple(without_secrets(e) if isinstance(e, str) else e for e in error.args)
    stand_in.__cause__ = _cause(error)
    return stand_in.with_traceback(error.__traceback__)


def forget_suppressed(error: BaseException) -> None:
    """Drop the contexts of an error, and of its causes, that a traceback does not show.

    They are the errors of packages for which others stand as the causes: their texts have secrets.
    """
    seen = set[int]()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        if each.__suppress_context__:
            each.__context__ = None
        each = _cause(each)


def shorten(text: str, length: int) -> str:
    """Return a text, with its middle left out if it has more than `length` characters.

    Examples
    --------
    >>> shorten("0123456789" * 3, 12)
    '012345...<18 characters left out>...456789'
    """
    if len(text) <= length:
        return text
    head, tail = length - length // 2, length // 2
    return f"{text[:head]}...<{len(text) - length} characters left out>...{text[-tail:]}"


def printable(text: str) -> str:
    r"""Return a text as one line, with characters escaped that control a terminal or the order.

    Names and attributes come from documents of others. The escapes are JSON's.

    Examples
    --------
    >>> printable("a\x1b[2J\u202eb")
    'a\\u001b[2J\\u202eb'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def printable_lines(text: str) -> str:
    """Return a text like `printable`, but keep its lines."""
    return "\n".join(map(printable, text.split("\n")))


def _escaped(character: str) -> str:
    # JSON escapes by UTF-16, and leaves DEL and characters such as "\x9b" to the encoding.
    escaped = json.dumps(character)[1:-1]
    return escaped if escaped != character else f"\\u{ord(character):04x}"


def quoted(value: object) -> str:
    """Return a value as a message quotes it: its representation, shortened if it is long."""
    try:
        text = repr(value)
    except RecursionError:
        text = f"<a deeply nested {type(value).__name__}>"
    except (OverflowError, ValueError):
        text = f"<a {type(value).__name__} without a text>"  # a date that NumPy does not have
    # A shortened text may lack the name of a parameter, by which a secret is found.
    return shorten(without_secrets(text), MAX_VALUE_LENGTH)


class ZarrdaskError(Exception):
    """Base class of all errors that zarrdask raises on purpose.

    Parameters
    ----------
    message : str
        A description of the problem.
    key : str, optional
        The store key, metadata field, argument or codec concerned.
    found, expected : object, optional
        The value that is wrong, and a description of valid ones. By default the message has
        no such part.
    """

    def __init__(
        self, message: str, *, key: str | None = None, found: Any = None, expected: Any = None
    ) -> None:
        self.message = without_secrets(message)
        super().__init__(self.message)
        self.key = key if key is None else without_secrets(key)
        self.found = without_secrets(found) if isinstance(found, str) else found
        self.expected = expected

    def __str__(self) -> str:
        # Values and keys may come from hostile documents, and be as long as the document.
        text = shorten(self.message, MAX_PART_LENGTH)
        if self.key is not None:
            text = f"{printable(shorten(without_secrets(self.key), MAX_PART_LENGTH))}: {text}"
        if self.found is not None:
            text += f"; found {quoted(self.found)}"
        if self.expected is not None:
            expected = without_secrets(str(self.expected))
            text += f"; expected {shorten(expected, MAX_PART_LENGTH)}"
        return printable_lines(text)

    def within(self, location: str) -> Self:
        """Return this error with a location, such as a node's URL, put before its own key.

        The layer that has the location calls this as the error passes through it.
        """
        # An error without a key, or with the root's (an empty text), names the location only.
        self.key = f"{location}: {self.key}" if self.key else location
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.key, self.found, self.expected)


def _rebuild(
    kind: type[ZarrdaskError], message: str, key: str | None, found: Any, expected: Any
) -> ZarrdaskError:
    return kind(message, key=key, found=found, expected=expected)


class NodeNotFoundError(ZarrdaskError, FileNotFoundError, KeyError):
    """There is no array or group at the path."""


class ChunkNotFoundError(ZarrdaskError, FileNotFoundError, KeyError):
    """A chunk is not stored, and the array was opened with ``missing="error"``."""

    @classmethod
    def of(cls, kind: str, index: tuple[int, ...]) -> Self:
        """Return the error for a missing chunk, inner chunk or shard with an index."""
        return cls(
            f'this {kind.rsplit(maxsplit=1)[-1]} is not stored; missing="fill", or the setting '
            "zarrdask.missing, reads it as the fill value",
            key=f"{kind} {index}",
        )


class NodeExistsError(ZarrdaskError, FileExistsError):
    """There is an array or group at the path already."""


class NodeTypeError(ZarrdaskError, TypeError):
    """The node is a group where an array is needed, or an array where a group is needed."""


class MetadataError(ZarrdaskError, ValueError):
    """A metadata document is not valid in its format, or an argument would make it invalid."""


class UnsupportedError(ZarrdaskError, NotImplementedError):
    """A data type, codec, grid or store operation is not supported."""


class SelectionError(ZarrdaskError, IndexError, ValueError):
    """A selection does not fit the array, or a value does not fit the selection."""


class CodecError(ZarrdaskError, ValueError):
    """A codec can't decode a stored value, or can't encode an array."""


class ChecksumError(CodecError):
    """A checksum does not match its data."""


class TruncatedError(CodecError):
    """A stored value is shorter than its codec, or its own header, says."""


class StoreError(ZarrdaskError, OSError):
    """A store failed or can't be reached."""


class LinkError(StoreError):
    """A path leads through a symbolic link, and links are not followed here."""


class SnapshotError(StoreError):
    """An object differs from its entry in the manifest of a snapshot, or may differ from it."""


class ReadOnlyError(StoreError, PermissionError):
    """A write was attempted on a store or node that was opened for reading only."""


class ComplianceWarning(UserWarning):
    """A document was read in a way that may not be what its writer meant."""


def is_one_of(value: Any, choices: Iterable[Any]) -> bool:
    """Whether a value is one of some choices, also if it is an array, which compares elements."""
    return isinstance(value, Hashable) and value in tuple(choices)


def one_of(value: Any, key: str, choices: Iterable[Any]) -> Any:
    """Return a value of a document or an argument that must be one of some choices."""
    choices = tuple(choices)
    if is_one_of(value, choices):
        return value
    expected = " or ".join(map(repr, choices))
    raise MetadataError("unknown value", key=key, found=value, expected=expected)


def no_attribute(obj: object, name: str, instead: str) -> AttributeError:
    """Return the error for an attribute that an object does not have; it says what to do instead.

    A name that begins with an underscore is a protocol's, not a user's.
    """
    hint = f"; {instead}" if instead and not name.startswith("_") else ""
    kind = type(obj).__name__
    return AttributeError(f"{kind!r} object has no attribute {name!r}{hint}", name=name, obj=obj)


def no_name(module: str, name: str, instead: Mapping[str, str]) -> AttributeError:
    """Return the error for a name that a module does not have; it says what to use instead."""
    hint = f"; {instead[name]}" if name in instead else ""
    # Python itself suggests names that are like this one.
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}", name=name)


def instance_of(value: Any, key: str, kind: type[T]) -> T:
    """Return a value of a document that must be of a JSON type."""
    if isinstance(value, kind):
        return value
    expected = _JSON_TYPES[kind]
    raise MetadataError("the value has the wrong type", key=key, found=value, expected=expected)


if not TYPE_CHECKING:  # For type checkers, every name would exist.

    def __getattr__(name: str) -> Any:
        raise no_name(__name__, name, OTHER_NAMES)
