"""What a store is: bytes by key, with defaults for all that can be built from get and set."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import ClassVar

from zarrdask.errors import UnsupportedError
from zarrdask.storage.byte_ranges import (
    Buffer,
    KeyRange,
    KeyValue,
    Range,
    by_key,
    cut,
    parts_by_key,
)
from zarrdask.storage.keys import Names, check_key, check_prefix, right_below


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

    def for_chunks(self) -> "Store":
        """Return this store for reading and writing the chunks of an array.

        A store may be stricter there: of what is certainly the key of a chunk it can tell that
        something else stands in its place. By default it is the store itself.
        """
        return self

    @property
    def deferrable(self) -> bool:
        """Whether values may be written after the call that prepared the write has returned."""
        return True

    def beside(self, prefix: str) -> "tuple[Store, str]":
        """Return where to keep values that are needed only while others are written.

        By default that is here, below the prefix.
        """
        return self, prefix

    def batch(self) -> AbstractContextManager[None]:
        """Have all that is written in the block appear at once, where the store can do that.

        By default each value appears when it is written.
        """
        return nullcontext()

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
        for key, places in by_key([key for key, _, _ in wanted]).items():
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

    def check_erasable(self, keys: Iterable[str]) -> None:  # noqa: B027 - most have no links
        """Check, before anything is erased, that values and prefixes may be erased.

        Raises
        ------
        LinkError
            If one lies behind a symbolic link, through which nothing is erased.
        """

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
