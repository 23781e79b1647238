"""What can go wrong, as data: every error names the key, what was found and what was expected."""

from typing import Any, Self

#: The most characters of a value that a message quotes.
MAX_VALUE_LENGTH = 200

#: The most characters of the other parts of a message, which may contain names from documents.
MAX_PART_LENGTH = 1000


def shorten(text: str, length: int) -> str:
    """Return a text, its middle left out if it is longer than some length.

    Examples
    --------
    >>> shorten("0123456789" * 3, 12)
    '012345...<18 characters left out>...456789'
    """
    if len(text) <= length:
        return text
    head, tail = length - length // 2, length // 2
    return f"{text[:head]}...<{len(text) - length} characters left out>...{text[-tail:]}"


def quoted(value: object) -> str:
    """Return how a message quotes a value: its representation, cut if that is long."""
    try:
        text = repr(value)
    except RecursionError:
        text = f"<a deeply nested {type(value).__name__}>"
    return shorten(text, MAX_VALUE_LENGTH)


class ZarrdaskError(Exception):
    """Root of all errors that zarrdask raises on purpose.

    Parameters
    ----------
    message : str
        What went wrong, in words.
    key : str, optional
        The store key, metadata field or codec concerned.
    found, expected : object, optional
        What was there, and what should have been. ``None`` means "not applicable".
    """

    def __init__(
        self, message: str, *, key: str | None = None, found: Any = None, expected: Any = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.key = key
        self.found = found
        self.expected = expected

    def __str__(self) -> str:
        # Values, and names in keys, may come from hostile documents and be as long as these.
        text = shorten(self.message, MAX_PART_LENGTH)
        if self.key is not None:
            text = f"{shorten(self.key, MAX_PART_LENGTH)}: {text}"
        if self.found is not None:
            text += f"; found {quoted(self.found)}"
        if self.expected is not None:
            text += f"; expected {shorten(str(self.expected), MAX_PART_LENGTH)}"
        return text

    def within(self, place: str) -> Self:
        """Return this error with `place` put before its key: the layer that knows adds it."""
        # The root has the empty prefix: that names nothing.
        self.key = f"{place}: {self.key}" if self.key else place
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.key, self.found, self.expected)


def _rebuild(
    kind: type[ZarrdaskError], message: str, key: str | None, found: Any, expected: Any
) -> ZarrdaskError:
    return kind(message, key=key, found=found, expected=expected)


class NodeNotFoundError(ZarrdaskError, FileNotFoundError, KeyError):
    """There is no array or group at the path."""


class NodeExistsError(ZarrdaskError, FileExistsError):
    """There is an array or group at the path already."""


class NodeTypeError(ZarrdaskError, TypeError):
    """The node is a group where an array is needed, or an array where a group is needed."""


class MetadataError(ZarrdaskError, ValueError):
    """A metadata document, or an argument that would become one, breaks its format."""


class UnsupportedError(ZarrdaskError, NotImplementedError):
    """A data type, codec, grid or store operation that is not available here."""


class SelectionError(ZarrdaskError, IndexError, ValueError):
    """A selection that does not fit the array, or a value that does not fit the selection."""


class CodecError(ZarrdaskError, ValueError):
    """A stored value that a codec can't decode, or values that it can't encode."""


class ChecksumError(CodecError):
    """A checksum does not match its data."""


class TruncatedError(CodecError):
    """A stored value ends before it should, as its own bytes or its length tell."""


class StoreError(ZarrdaskError, OSError):
    """A store failed, or can't be reached from here."""


class LinkError(StoreError):
    """A symbolic link stands where none is followed."""


class ReadOnlyError(StoreError, PermissionError):
    """Writing to something that was opened for reading."""


class ComplianceWarning(UserWarning):
    """Something was read in a way that may not be what its writer meant."""
