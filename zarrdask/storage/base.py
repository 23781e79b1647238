"""The interface of stores: bytes by key, with defaults for what `get` and `set` can express."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from urllib.parse import unquote

from zarrdask.errors import no_attribute, printable
from zarrdask.formats.byte_ranges import (
    Buffer,
    KeyRange,
    Part,
    Range,
    StoredObject,
    Tag,
    Value,
    Version,
    cut,
)
from zarrdask.formats.store_keys import Names, check_key, check_prefix, right_below
from zarrdask.runtime.scratch import Scratch
from zarrdask.runtime.system import path_of_url
from zarrdask.storage.capabilities import Capabilities, bypassed, without
from zarrdask.storage.counted_requests import count_requests
from zarrdask.storage.former_names import INSTEAD, adopt_former_names
from zarrdask.storage.refusals import no_moved_chunks, no_objects, no_references, not_supported
from zarrdask.storage.remote.in_flight import Requests, window
from zarrdask.storage.value_parts import StoredValue, joined_parts

T = TypeVar("T")
Item = TypeVar("Item")

#: Stores references to the chunks of the array with a prefix, each with the index of the chunk.
StoreReferences = Callable[[str, Sequence[tuple[tuple[int, ...], StoredObject]]], None]


class Store(ABC):
    """Bytes by key (conformance B.9, C.9).

    Keys are relative, joined by "/", and never end with "/"; a prefix is "" or ends with "/".
    Reading a missing key returns None, and erasing one does nothing.

    A subclass implements `get` if it can be read, `set` and `erase` if it can be written, and
    `list_dir` (or `list_prefix`, or `list`) if it can be listed. The other methods are built from
    these; a subclass overrides those that it can do better.
    """

    #: What the store supports, and what its requests cost. A class declares its own, from which
    #: those are left out that its methods do not provide; an instance may have others.
    capabilities = Capabilities()
    _declared: ClassVar[Capabilities] = capabilities
    #: Whether a class of this package counts its requests itself, where it sends them.
    _counts_requests: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        adopt_former_names(cls)
        if not (cls._counts_requests and cls.__module__.startswith("zarrdask.")):
            count_requests(cls)
        if isinstance(declared := vars(cls).get("capabilities"), Capabilities):
            cls._declared = declared
        # A class whose instances differ, as views of other stores do, has a property.
        if isinstance(cls.capabilities, Capabilities):
            unsupported = {name for name, has in cls._operations().items() if not has}
            cls.capabilities = without(cls._declared, bypassed(cls) | unsupported)

    if not TYPE_CHECKING:  # For type checkers, every attribute would exist.

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):
                return object.__getattribute__(self, name)  # The error is one within a property.
            raise no_attribute(self, name, INSTEAD.get(name, ""))

    @classmethod
    def _operations(cls) -> dict[str, bool]:
        """Return whether the class implements reading, writing and listing."""
        return {
            "readable": cls._implements("get"),
            "writable": cls._implements("set") and cls._implements("erase"),
            "listable": any(map(cls._implements, ("list_dir", "list_prefix", "list"))),
        }

    @classmethod
    def _implements(cls, name: str) -> bool:
        """Whether the class has a method of its own."""
        return getattr(cls, name) is not getattr(Store, name)

    @property
    @abstractmethod
    def url(self) -> str:
        """The location of the store, for messages."""

    def __repr__(self) -> str:
        package = f", opened by {self._opened_by}" if self._opened_by else ""
        return printable(f"<{type(self).__name__} {self.url}{package}>")

    def batch(self) -> AbstractContextManager[None]:
        """Return a context in which writes take effect together, at its end, if the store can.

        By default, each value is visible as soon as it is written.
        """
        return nullcontext()

    # ---- reading

    def get(self, key: str) -> bytes | None:
        """Return the value, or None if there is none."""
        raise not_supported(self.url, "read")

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:
        """Yield the value of each key; each is valid until the next one is requested."""
        # A range need not be `bytes`, so it is not copied; with ETags it is of the same value.
        whole = partial(self.get_range, start=0) if self.capabilities.etags else self.get
        return self._each(whole, keys)

    def _each(self, request: Callable[[Item], T], items: Iterable[Item]) -> Iterator[T]:
        """Yield the result of a request for each item, with later ones in flight if possible."""
        return window(request, items) if self.capabilities.concurrent else map(request, items)

    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:
        """Return part of a value, or None if there is no value.

        Parameters
        ----------
        start : int
            The offset of the first byte; a negative one counts from the end.
        length : int, optional
            The number of bytes; by default all that follow. Fewer are returned if the value ends.
        """
        value = self.get(key)
        return None if value is None else cut(value, start, length)

    def get_ranges(
        self, key: str, ranges: Sequence[Range], scratch: Scratch
    ) -> Iterator[Buffer | None]:
        """Yield parts of one value, given as (start, length) in the order of their starts."""
        if self.capabilities.concurrent or self._implements("get_range"):
            for _, part in joined_parts(self, [(key, *each) for each in ranges]):
                yield part
            return
        value = self.get(key)
        for start, length in ranges:
            yield None if value is None else cut(value, start, length)

    def get_part(self, key: str, start: int, length: int, tag: Tag | None = None) -> Part | None:
        """Return part of a value, with the size and the tag of all of it.

        Only stores with the capability `etags` have this operation.

        Parameters
        ----------
        key : str
        start, length : int
            As in `get_range`; with a negative start, the length is the whole end of the value.
        tag : object, optional
            That of an earlier part. If the value has another one now, or the server sends no ETag,
            the result is None, as for a missing value.
        """
        raise not_supported(self.url, "read by parts of one version")

    def get_if_changed(
        self, key: str, tag: Tag | None, start: int = 0, length: int | None = None
    ) -> Version:
        """Return a value, or part of it, with its tag, unless the value has a given tag.

        Only stores with the capability `versions` have this operation.

        Parameters
        ----------
        key : str
        tag : object, optional
            That of an earlier version; None for the value in any case.
        start, length : int
            As in `get_range`; by default, the whole value is returned.
        """
        raise not_supported(self.url, "read on a condition")

    def get_partial_values(self, key_ranges: Iterable[KeyRange]) -> Sequence[Buffer | None]:
        """Return parts of values, in the order of the requests (conformance B-80).

        Parameters
        ----------
        key_ranges : iterable of (key, (start, length))
            As in `get_range`; a key may occur several times.

        Raises
        ------
        MetadataError
            If a key is invalid; nothing is read then.
        """
        requests = [(check_key(key), start, length) for key, (start, length) in key_ranges]
        parts: list[Buffer | None] = [None] * len(requests)
        for at, part in joined_parts(self, requests):
            parts[at] = part
        return parts

    # ---- writing

    def set(self, key: str, value: Buffer) -> None:
        """Store a value. Readers see the old value or the new one, never a mixture.

        The caller may use the memory of the value again: a store that keeps values copies it.
        """
        raise not_supported(self.url, "written")

    def set_many(self, values: Iterable[tuple[str, Buffer]]) -> None:
        """Store several values by key; each is valid until the next one is taken.

        By default, `set` stores each, concurrently if the store has latency. After an error,
        others may be stored or not.
        """
        if not self.capabilities.has_latency:
            for key, value in values:
                self.set(key, value)
            return
        with Requests() as requests:
            for key, value in values:
                requests.send(partial(self.set, key, bytes(value)), len(value))

    def create(self, key: str, value: Buffer) -> bool:
        """Store a value if the key is missing, and return whether it was.

        By default, the key is looked up first, so two writers may both succeed, and the later
        value stays. A store that excludes that overrides the method and declares the capability
        `create_exclusive`.
        """
        if self.get(key) is not None:
            return False
        self.set(key, value)
        return True

    def get_tagged(self, key: str) -> tuple[Buffer | None, Tag | None]:
        """Return a value and a tag, which changes with the value; twice None if there is none.

        Only stores with the capability `compare_and_swap` have this operation, and `swap`.
        """
        raise not_supported(self.url, "changed on a condition")

    def swap(self, key: str, value: Buffer, tag: Tag | None) -> bool:
        """Store a value if the present one has a tag, and return whether it had.

        Parameters
        ----------
        key : str
        value : bytes-like
        tag : object, optional
            What `get_tagged` returned; None if there was no value.

        Raises
        ------
        UnsupportedError
            If the store, or the server behind it, has no such operation. Nothing is stored then.
        """
        raise not_supported(self.url, "changed on a condition")

    def erase(self, key: str) -> None:
        """Remove a value, if there is one."""
        raise not_supported(self.url, "written")

    def erase_values(self, keys: Iterable[str]) -> None:
        """Remove several values.

        Raises
        ------
        MetadataError
            If a key is invalid; nothing is removed then.
        """
        checked = [check_key(key) for key in keys]
        for _ in self._each(self.erase, checked):
            pass

    def erase_prefix(self, prefix: str) -> None:
        """Remove every key that begins with the prefix."""
        if keys := [*self.list_prefix(prefix)]:
            self.erase_values(keys)

    # ---- listing

    def list_dir(self, prefix: str) -> Names:
        """Return the names of the keys, and of the prefixes, directly below a prefix, sorted."""
        prefix = check_prefix(prefix)
        return right_below(prefix, self.list_prefix(prefix))

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield every key that begins with the prefix."""
        prefix = check_prefix(prefix)
        if self._implements("list_dir"):
            return self._walk(prefix)
        if self._implements("list"):
            return (key for key in self.list() if key.startswith(prefix))
        raise not_supported(self.url, "listed")

    def _walk(self, prefix: str) -> Iterator[str]:
        pending = [prefix]
        while pending:
            folder = pending.pop()
            keys, prefixes = self.list_dir(folder)
            yield from (folder + name for name in keys)
            pending += [f"{folder}{name}/" for name in reversed(prefixes)]

    def list(self) -> Iterator[str]:
        """Yield every key."""
        return self.list_prefix("")

    # ---- what only this package asks of a store: see `zarrdask.storage.places` and `.upkeep`

    #: What to do where other processes can't access the store, as it is not `shared`: for messages.
    _unshared_advice: ClassVar[str] = 'use a local directory or a URL, or the scheduler "threads"'

    #: Whether bodies of answers are limited; see `zarrdask.storage.remote.body_limit`.
    _limits_bodies: bool = False

    #: The package that opened a URL, "" for other stores.
    _opened_by: str = ""

    @property
    def _endpoint(self) -> str:
        """The URL of the server, or of the account, where that of the store names a bucket only."""
        return ""

    @property
    def _uri(self) -> str:
        return self.url

    @property
    def _directory(self) -> str | None:
        if not self._uri.startswith("file://"):
            return None
        return path_of_url(unquote(self._uri.removeprefix("file://")))

    @property
    def _token(self) -> str:
        return self.url

    @property
    def _access(self) -> Mapping[str, Any]:
        return {}

    def _stamp(self, key: str) -> str:
        return ""

    def _above(self) -> "Store | None":
        return None

    @property
    def _uncached(self) -> "Store":
        return self

    def _drop_cache(self) -> None:  # noqa: B027 - most cache nothing
        """Read all documents from the store from now on."""

    def _for_chunks(self) -> "Store":
        return self

    @property
    def _is_deferrable(self) -> bool:
        return True

    def _temporary_place(self, prefix: str) -> "tuple[Store, str]":
        return self, prefix

    def _fork(self) -> "Store":
        raise not_supported(self.url, "forked")

    def _check_writable(self) -> None:  # noqa: B027 - writing to most others is not implemented
        """Check that the store is not one that can only be read."""

    def _check_erasable(self, keys: Iterable[str]) -> None:  # noqa: B027 - most have no links
        """Check that nothing is behind a symbolic link."""

    def _tidy(self, prefix: str, *, recursive: bool = False) -> None:  # noqa: B027 - most need none
        """Remove temporary files."""

    #: Whether a listing can begin behind a key, so that its parts can be requested concurrently.
    _lists_parts: bool = False

    def _list_sizes(
        self, prefix: str, after: str = "", until: str | None = None
    ) -> Iterator[tuple[str, int | None]]:
        """Yield keys behind `after` up to `until`, and the sizes that the listing includes."""
        keys = self.list_prefix(prefix)
        return ((k, None) for k in keys if after < k and (until is None or k <= until))

    def _list_objects(
        self, prefix: str, after: str = "", until: str | None = None
    ) -> Iterator[StoredObject]:
        """Yield the objects that hold the values of the keys behind `after` up to `until`."""
        raise no_objects(self.url)

    def _references_to(self, urls: Iterable[str]) -> "StoreReferences":
        raise no_references(self.url)

    def _move_chunks(self, prefix: str, offset: Sequence[int]) -> None:
        raise no_moved_chunks(self.url)

    def _size(self, key: str) -> int | None:
        """Return the size of a value: by default it is read, unless it comes with a part of it."""
        part = self.get_part(key, 0, 1) if self.capabilities.etags else None
        if part is not None and part.size:
            return part.size
        value = self.get(key)
        return None if value is None else len(value)

    def _are_unchanged(self, tags: Mapping[str, Tag]) -> bool:
        return all(self.get_if_changed(*item, 0, 0).is_unchanged for item in tags.items())

    def _reading(self, key: str, scratch: Scratch) -> AbstractContextManager[Value]:
        return nullcontext(StoredValue(self, key, scratch))
