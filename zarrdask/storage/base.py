"""What a store is: bytes by key, with defaults for all that can be built from get and set."""

import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import ClassVar

from zarrdask.errors import MetadataError, SelectionError, UnsupportedError

Buffer = bytes | bytearray | memoryview
#: Start and length.
Range = tuple[int, int]
#: A key, and what is wanted of its value: where it starts (from the end, if negative), and how
#: long it is, or None for all that follows.
KeyRange = tuple[str, tuple[int, int | None]]
#: A key, and what to put into its value, and where.
KeyValue = tuple[str, int, Buffer]
#: The names of the keys, and of the prefixes, right under a prefix.
Names = tuple[list[str], list[str]]
#: What the draft of v3 allows in a key.
_DRAFT = re.compile(r"[A-Za-z0-9/._-]*")
#: How Python has a file name that is no text.
_SURROGATE = re.compile("[\ud800-\udfff]")


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
    A missing key is None when read and nothing when erased.

    A subclass gives what it can: `get`, or it can't be read; `set` and `erase`, or it can't be
    written; `list_dir` (or `list_prefix`, or `list`), or it can't be listed. The rest is built
    from these, and a better store overrides it.
    """

    #: Whether a pickled copy in another process sees the same values.
    shared: ClassVar[bool] = True
    #: Whether several parts of a value cost no more than the whole: there is no latency to hide.
    seekable: ClassVar[bool] = False
    #: Whether of several that `create` a value at the same time exactly one does.
    conditional: ClassVar[bool] = False

    # ---- what it is

    @property
    @abstractmethod
    def url(self) -> str:
        """Where it is, for people."""

    @property
    def uri(self) -> str:
        """Where it is, as a URI in its canonical form (conformance C-73)."""
        return self.url

    @property
    def token(self) -> str:
        """What tells it from other stores: part of task names."""
        return self.url

    @property
    def readable(self) -> bool:
        """Whether values can be read (conformance B-86)."""
        return self._gives("get")

    @property
    def writeable(self) -> bool:
        """Whether values can be stored and erased."""
        return self._gives("set") and self._gives("erase")

    @property
    def listable(self) -> bool:
        """Whether it can tell its keys."""
        return any(map(self._gives, ("list_dir", "list_prefix", "list")))

    def _gives(self, name: str) -> bool:
        """Whether the class has an operation of its own."""
        return getattr(type(self), name) is not getattr(Store, name)

    def stamp(self, key: str) -> str:
        """Return what changes when the key is written again, if that costs nothing, or ""."""
        return ""

    # ---- reading

    def get(self, key: str) -> bytes | None:
        """Return the value, or None if there is none."""
        raise not_supported(self.url, "read")

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

    def get_partial_values(self, key_ranges: Iterable[KeyRange]) -> Sequence[Buffer | None]:
        """Return parts of values, in the order that they are asked for (conformance B-80).

        Parameters
        ----------
        key_ranges : iterable of (key, (start, length))
            As in `get_range`; a key may come several times.

        Raises
        ------
        MetadataError
            If one is no key; nothing is read then.
        """
        wanted = [(check_key(key), start, length) for key, (start, length) in key_ranges]
        found: dict[int, Buffer | None] = {}
        for key, places in _by_key([key for key, _, _ in wanted]).items():
            sized: dict[int, Range] = {}
            for at in places:
                _, start, length = wanted[at]
                if length is None or start < 0:
                    found[at] = self.get_range(key, start, length)
                else:
                    sized[at] = start, length
            order = sorted(sized, key=sized.__getitem__)
            parts = self.get_ranges(key, [sized[at] for at in order], Scratch())
            for at, part in zip(order, parts, strict=True):
                found[at] = None if part is None else bytes(part)
        return [found[at] for at in range(len(wanted))]

    # ---- writing

    def set(self, key: str, value: Buffer) -> None:
        """Store a value: afterwards readers see the old one or this one, never a mixture."""
        raise not_supported(self.url, "written")

    def create(self, key: str, value: Buffer) -> bool:
        """Store a value if there is none, and return whether there was none.

        By default that is looked up first: two may do it at the same time, and the later one's
        value stays. A store that can do better overrides it, and says that it is `conditional`.
        """
        if self.get(key) is not None:
            return False
        self.set(key, value)
        return True

    def set_partial_values(self, key_start_values: Iterable[KeyValue]) -> None:
        """Store parts of values (conformance B-82). By default each value is read and written.

        A value grows as it needs to; a gap is filled with zeros.

        Parameters
        ----------
        key_start_values : iterable of (key, start, bytes)
            A key may come several times, but its ranges must not overlap.

        Raises
        ------
        MetadataError
            If one is no key.
        SelectionError
            If ranges overlap, or start before the value. Nothing is written then.
        """
        for key, parts in parts_by_key(key_start_values).items():
            value = bytearray(self.get(key) or b"")
            for start, part in parts:
                value.extend(bytes(max(start + len(part) - len(value), 0)))
                value[start : start + len(part)] = part
            self.set(key, value)

    def erase(self, key: str) -> None:
        """Remove the value, if there is one."""
        raise not_supported(self.url, "written")

    def erase_values(self, keys: Iterable[str]) -> None:
        """Remove several values.

        Raises
        ------
        MetadataError
            If one is no key; nothing is removed then.
        """
        for key in [check_key(key) for key in keys]:
            self.erase(key)

    def erase_prefix(self, prefix: str) -> None:
        """Remove every key that begins with the prefix."""
        self.erase_values([*self.list_prefix(prefix)])

    def tidy(self, prefix: str) -> None:  # noqa: B027 - most have nothing to tidy up
        """Remove what writers that were cut short left right under a prefix, if that is cheap.

        It is nothing that a listing shows. By default there is no such thing.
        """

    # ---- listing

    def list_dir(self, prefix: str) -> Names:
        """Return the names of the keys, and of the prefixes, right under a prefix, sorted."""
        prefix = check_prefix(prefix)
        return right_below(prefix, self.list_prefix(prefix))

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield every key that begins with the prefix."""
        prefix = check_prefix(prefix)
        if self._gives("list_dir"):
            return self._walk(prefix)
        if self._gives("list"):
            return (key for key in self.list() if key.startswith(prefix))
        raise not_supported(self.url, "listed")

    def _walk(self, prefix: str) -> Iterator[str]:
        keys, prefixes = self.list_dir(prefix)
        for name in keys:
            yield prefix + name
        for name in prefixes:
            yield from self._walk(f"{prefix}{name}/")

    def list(self) -> Iterator[str]:
        """Yield every key."""
        return self.list_prefix("")


# --------------------------------------------------------------------------------------------
# Keys


def check_key(key: str, *, draft: bool = False) -> str:
    """Return a key if it is one.

    The package makes its keys of paths and chunk indices that were checked, so reads and writes
    of chunks don't do this again.

    Parameters
    ----------
    draft : bool
        Whether the rule of the v3 draft holds, which knows few characters (conformance B-77).
        Otherwise a key is any Unicode text that does not end with "/" (C-72).

    Raises
    ------
    MetadataError
        If it is none.
    """
    valid = isinstance(key, str) and key != "" and not key.endswith("/")
    return _checked("key", key, 'Unicode text that does not end with "/"', valid=valid, draft=draft)


def check_prefix(prefix: str, *, draft: bool = False) -> str:
    """Return a prefix in normal form: "" or a text that ends with "/"; "/" is "" too.

    Parameters
    ----------
    draft : bool
        As in `check_key`.

    Raises
    ------
    MetadataError
        If it is none.
    """
    if prefix in ("", "/"):
        return ""
    valid = isinstance(prefix, str) and prefix.endswith("/")
    expected = '"" or Unicode text that ends with "/"'
    return _checked("prefix", prefix, expected, valid=valid, draft=draft)


def _checked(kind: str, text: str, expected: str, *, valid: bool, draft: bool) -> str:
    if not valid or _SURROGATE.search(text):
        raise MetadataError(f"not a {kind}", key=kind, found=text, expected=expected)
    if draft and not _DRAFT.fullmatch(text):
        raise MetadataError(
            f"not a {kind} in the draft of Zarr v3", key=kind, found=text, expected=_DRAFT.pattern
        )
    return text


def right_below(prefix: str, keys: Iterable[str]) -> Names:
    """Return the names right under a prefix, of all keys that begin with it.

    Examples
    --------
    >>> right_below("a/", ["a/b", "a/c", "a/d/e", "a/f/g"])
    (['b', 'c'], ['d', 'f'])
    """
    names: set[str] = set()
    prefixes: set[str] = set()
    for key in keys:
        name, slash, _ = key[len(prefix) :].partition("/")
        (prefixes if slash else names).add(name)
    return sorted(names), sorted(prefixes)


# --------------------------------------------------------------------------------------------
# Parts of values


def _by_key(keys: Sequence[str]) -> dict[str, list[int]]:
    """Return where each key stands in a list."""
    found: dict[str, list[int]] = defaultdict(list)
    for at, key in enumerate(keys):
        found[key].append(at)
    return found


def parts_by_key(key_start_values: Iterable[KeyValue]) -> dict[str, list[tuple[int, Buffer]]]:
    """Return the parts to be stored of each value, by rising start.

    Raises
    ------
    MetadataError
        If one is no key.
    SelectionError
        If parts of a value overlap, or start before it (conformance B-82).
    """
    found: dict[str, list[tuple[int, Buffer]]] = defaultdict(list)
    for key, start, value in key_start_values:
        found[check_key(key)].append((start, memoryview(value).cast("B")))
    for key, parts in found.items():
        parts.sort(key=lambda part: (part[0], len(part[1])))
        overlap = any(at + len(part) > then for (at, part), (then, _) in pairwise(parts))
        if overlap or parts[0][0] < 0:
            raise SelectionError(
                "parts to be stored must not overlap, nor start before the value",
                key=key,
                found=[(start, len(part)) for start, part in parts],
                expected="(start, length) pairs apart from each other, from 0",
            )
    return found


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


def not_supported(url: str, action: str) -> UnsupportedError:
    """Return the error for what a store can't do: be "read", "written" or "listed" (B-86)."""
    return UnsupportedError(f"not supported: this store can't be {action}", key=url)


def not_listable(url: str, error: Exception) -> UnsupportedError:
    """Return the error for a store that can be read by key only."""
    return UnsupportedError(
        "this store can't be listed, so what is in it can't be discovered; open nodes by path",
        key=url,
        found=str(error) or type(error).__name__,
    )
