"""Ranges of bytes in stored values: joining neighbouring ranges, and cutting values."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

from toolz import groupby

Buffer = bytes | bytearray | memoryview
#: (start, length) in bytes.
Range = tuple[int, int]
#: (key, (start, length)): a part of a value to read. A negative start counts from the end; the
#: length None stands for all that follows.
KeyRange = tuple[str, tuple[int, int | None]]
#: Identifies the present value of a key, as an ETag does; its content is up to the store.
Tag = Any
#: Ranges are joined up to this many bytes: a longer request would hold up those after it.
JOIN_LIMIT = 2**24


class Value(Protocol):
    """A stored value that can be read in parts."""

    def part(self, start: int, length: int) -> Buffer | None:
        """Return part of the value, or None if it is missing; a negative start is from the end."""

    def parts(self, ranges: Sequence[Range]) -> Iterator[Buffer | None]:
        """Yield parts (start, length), in the order of their starts; each until the next one."""


class Part(NamedTuple):
    """Part of a stored value.

    Attributes
    ----------
    value : bytes-like
        The part. A server that does not support range requests has returned the whole value.
    size : int
        The size of the whole value in bytes; 0 if the server does not say.
    tag : optional
        The tag of this version of the value, such as its ETag; None if the server sends no ETag, or
        not the size.
    """

    value: Buffer
    size: int
    tag: Tag | None


class ObjectVersion(NamedTuple):
    """One version of a stored value.

    Attributes
    ----------
    tag : str, optional
        The ETag, or the stamp of a file.
    id : str, optional
        The ID by which a bucket with versions keeps it.
    """

    tag: str | None
    id: str | None = None


class StoredObject(NamedTuple):
    """A file or an object with a URL of its own that holds a value.

    Attributes
    ----------
    key : str
    root : str
        The URL of the store, which ends with "/".
    size : int
        The size in bytes.
    modified : float
        When it was changed last, in seconds since 1970; None if the listing does not say it.
    tag : str, optional
        An ETag, which each change of the value changes; None if the listing has none.
    path : str, optional
        The path of the object below the root, if that is not the key.
    version_id : str, optional
        The ID of this version in a bucket with versions; listings do not include it.
    """

    key: str
    root: str
    size: int
    modified: float | None
    tag: str | None = None
    path: str | None = None
    version_id: str | None = None

    @property
    def version(self) -> ObjectVersion:
        """The version, as `Store.get_version` reads it."""
        return ObjectVersion(self.tag, self.version_id)

    @property
    def url(self) -> str:
        """The URL, in which characters that a path can't have are percent-encoded."""
        return self.root + quote(self.key if self.path is None else self.path)


class Entry(NamedTuple):
    """A key of a store, and what is known of its value.

    Attributes
    ----------
    key : str
    size : int, optional
        The size of the value in bytes; None if a listing does not include it.
    stamp : str
        A text that each change of the value changes, in stores with the capability `stamps`.
    object : StoredObject, optional
        The file or object that holds the value, where a listing was asked for it, or where the
        answer to a request for the size describes it.
    """

    key: str
    size: int | None = None
    stamp: str = ""
    object: StoredObject | None = None


class Version(NamedTuple):
    """The present version of a stored value.

    Attributes
    ----------
    value : bytes-like, optional
        The value, or the requested part of it; None if it is missing or unchanged.
    size : int
        The size of the whole value in bytes; 0 if the value is missing or unchanged.
    tag : optional
        A tag that every change of the value changes; None if the value is missing, or if a change
        might go unnoticed.
    """

    value: Buffer | None = None
    size: int = 0
    tag: Tag | None = None

    @property
    def is_unchanged(self) -> bool:
        """Whether the value has the tag that was given."""
        return self.value is None and self.tag is not None


def strong_etag(etag: str | None) -> str | None:
    """Return an ETag of HTTP if it changes with each byte; None for a weak one.

    >>> strong_etag('"a1"'), strong_etag('W/"a1"'), strong_etag(None)
    ('"a1"', None, None)
    """
    return etag if etag is not None and not etag.startswith("W/") else None


def cut(value: Buffer, start: int, length: int | None) -> memoryview:
    """Return part of a value without copying it."""
    view = memoryview(value)
    if start < 0:
        start = max(len(view) + start, 0)
    return view[start : None if length is None else start + length]


def coalesce(ranges: Sequence[Range], gap: int, limit: int) -> list[tuple[Range, list[Range]]]:
    """Join ranges (start, length) that are at most `gap` bytes apart, up to `limit` bytes together.

    The ranges are in the order of their starts; they may overlap. A single one may be longer than
    the limit. The result has each joined range, and the ranges in it by their offset within.

    Examples
    --------
    >>> coalesce([(0, 4), (6, 2), (90, 5)], gap=2, limit=100)
    [((0, 8), [(0, 4), (6, 2)]), ((90, 5), [(0, 5)])]
    """
    joined: list[tuple[Range, list[Range]]] = []
    first, end, members = 0, 0, []  # type: tuple[int, int, list[Range]]
    for start, length in ranges:
        stop = start + length
        if members and (start - end > gap or max(stop, end) - first > limit):
            joined.append(((first, end - first), members))
            members = []
        if not members:
            first, end = start, stop
        members.append((start - first, length))
        end = max(end, stop)
    if members:
        joined.append(((first, end - first), members))
    return joined


class RangeRequest(NamedTuple):
    """One request for a range of a value: `length` bytes from `start` on, or all if that is None.

    A negative start counts from the end. `members` has, for each range that the request serves, its
    position in the call, its offset in the answer and its length.
    """

    key: str
    start: int
    length: int | None
    members: Sequence[tuple[int, int, int | None]]


def join_ranges(ranges: Sequence[tuple[str, int, int | None]], gap: int) -> Iterator[RangeRequest]:
    """Yield the requests for ranges (key, start, length) of values, in any order.

    Two ranges of a value are one request if at most `gap` bytes lie between them.

    Examples
    --------
    >>> for request in join_ranges([("a", 4, 2), ("b", -4, None), ("a", 0, 2)], gap=8):
    ...     print(request.key, request.start, request.length, request.members)
    a 0 6 [(2, 0, 2), (0, 4, 2)]
    b -4 None [(1, 0, None)]
    """
    for key, numbers in groupby(lambda at: ranges[at][0], range(len(ranges))).items():
        bounded = list[tuple[Range, int]]()
        for at in numbers:
            _, start, length = ranges[at]
            if start >= 0 and length is not None:
                bounded.append(((start, length), at))
            else:
                yield RangeRequest(key, start, length, [(at, 0, length)])
        bounded.sort(key=lambda each: each[0][0])
        members = iter(bounded)
        for (start, length), parts in coalesce([each for each, _ in bounded], gap, JOIN_LIMIT):
            cuts = [(next(members)[1], offset, size) for offset, size in parts]
            yield RangeRequest(key, start, length, cuts)
