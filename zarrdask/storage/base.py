"""What a store is: bytes by key, with defaults for all that can be built from get and set."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from zarrdask.errors import UnsupportedError

Buffer = bytes | bytearray | memoryview
Range = tuple[int, int]


class Scratch:
    """A reusable buffer for encoded bytes, so that reads need no allocation.

    What a store puts there is valid until the next value is read into it.
    """

    __slots__ = ("view",)

    def __init__(self) -> None:
        self.view = memoryview(bytearray(2**16))

    def reserve(self, size: int) -> memoryview:
        """Return the buffer, grown to at least `size` bytes; what it held is lost if it grows."""
        if len(self.view) < size:
            self.view = memoryview(bytearray(size + size // 4))
        return self.view


class Store(ABC):
    """Bytes by key (conformance B.9, C.9).

    Keys are relative, joined by "/", and never end with "/"; a prefix is "" or ends with "/".
    A missing key is None when read and nothing when erased. A subclass gives `get`, `set`,
    `erase` and `list_dir`; the rest has defaults that a better store overrides.
    """

    #: Whether a pickled copy in another process sees the same values.
    shared: ClassVar[bool] = True
    #: Whether several parts of a value cost no more than the whole: there is no latency to hide.
    seekable: ClassVar[bool] = False

    @property
    @abstractmethod
    def url(self) -> str:
        """Where it is, for people."""

    @property
    def token(self) -> str:
        """What tells it from other stores: part of task names."""
        return self.url

    @abstractmethod
    def get(self, key: str) -> bytes | None:
        """Return the value, or None if there is none."""

    @abstractmethod
    def set(self, key: str, value: Buffer) -> None:
        """Store a value: afterwards readers see the old one or this one, never a mixture."""

    @abstractmethod
    def erase(self, key: str) -> None:
        """Remove the value, if there is one."""

    @abstractmethod
    def list_dir(self, prefix: str) -> tuple[list[str], list[str]]:
        """Return the names of the keys, and of the prefixes, right under a prefix, sorted."""

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield every key that begins with the prefix."""
        keys, prefixes = self.list_dir(prefix)
        for name in keys:
            yield prefix + name
        for name in prefixes:
            yield from self.list_prefix(f"{prefix}{name}/")

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:
        """Yield each key's value in turn; one is valid until the next is asked for."""
        return map(self.get, keys)

    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:
        """Return part of a value, or None if there is no value.

        Parameters
        ----------
        start : int
            The first byte; negative counts from the end.
        length : int, optional
            How many bytes; all that follow, if absent. Less is returned where the value ends.
        """
        value = self.get(key)
        return None if value is None else cut(value, start, length)

    def get_ranges(
        self, key: str, ranges: Sequence[Range], scratch: Scratch
    ) -> Iterator[Buffer | None]:
        """Yield the parts (start, length) of one value, given by rising start."""
        value = self.get(key)
        for start, length in ranges:
            yield None if value is None else cut(value, start, length)

    def erase_prefix(self, prefix: str) -> None:
        """Remove every key that begins with the prefix."""
        for key in list(self.list_prefix(prefix)):
            self.erase(key)

    def stamp(self, key: str) -> str:
        """Return what changes when the key is written again, if that costs nothing, or ""."""
        return ""


def cut(value: Buffer, start: int, length: int | None) -> memoryview:
    """Return part of a value without copying it."""
    view = memoryview(value)
    if start < 0:
        start = max(len(view) + start, 0)
    return view[start : None if length is None else start + length]


def coalesce(ranges: Sequence[Range], gap: int, limit: int) -> list[tuple[Range, list[Range]]]:
    """Join ranges that are at most `gap` bytes apart, up to `limit` bytes together.

    Parameters
    ----------
    ranges : sequence of (start, length)
        By rising start; they may overlap.

    Returns
    -------
    list of ((start, length), list of (offset in the joined range, length))

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


def not_listable(url: str, error: Exception) -> UnsupportedError:
    """Return the error for a store that can be read by key only."""
    return UnsupportedError(
        "this store can't be listed, so what is in it can't be discovered; open nodes by path",
        key=url,
        found=str(error) or type(error).__name__,
    )
