"""The interface of stores: bytes by key, with defaults for what `get` and `set` can express."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, ClassVar

from zarrdask.errors import printable
from zarrdask.formats.byte_ranges import (
    Buffer,
    Entry,
    KeyRange,
    ObjectVersion,
    Part,
    Range,
    Tag,
    Value,
    Version,
    cut,
)
from zarrdask.formats.store_keys import Names, check_key, check_prefix, right_below
from zarrdask.runtime.in_flight import Requests
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.capabilities import Capabilities, Declared
from zarrdask.storage.concurrent_requests import request_each
from zarrdask.storage.counted_requests import count_requests
from zarrdask.storage.identity import Identity
from zarrdask.storage.refusals import no_objects, not_supported
from zarrdask.storage.value_parts import StoredValue, joined_parts


class Store(ABC):
    """Bytes by key (conformance B.9, C.9).

    Keys are relative, joined by "/", and never end with "/"; a prefix is "" or ends with "/".
    Reading a missing key returns None, and erasing one does nothing.

    A subclass implements `get` if it can be read, `set` and `erase` if it can be written, and
    `list_dir` (or `list_prefix`, or `list`) if it can be listed. The other methods are built from
    these; a subclass overrides those that it can do better.
    """

    #: The operations that the store supports, and what its requests cost. A class declares its own,
    #: from which those are left out that its methods do not provide; an instance may have others.
    capabilities = Capabilities()
    #: The capabilities that the class declares, or the rest of the capabilities of its bases.
    _declared: ClassVar[Declared] = Declared()
    #: Whether a class of this package counts its requests itself, where it sends them.
    _counts_requests: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if not (cls._counts_requests and cls.__module__.startswith("zarrdask.")):
            count_requests(cls)
        own, declared = vars(cls).get("capabilities"), Declared()
        cls._declared = Declared(own, is_own=True) if isinstance(own, Capabilities) else declared
        for each in reversed(cls.__mro__):  # there may be several bases
            if issubclass(each, Store):
                known = each._declared
                declared = known if known.is_own else declared.in_subclass(vars(each))
        cls._declared = declared
        # A class whose instances differ, as views of other stores do, has a property.
        if isinstance(cls.capabilities, Capabilities):
            cls.capabilities = cls._declared.provided(
                readable=implements(cls, "get"),
                writable=implements(cls, "set") and implements(cls, "erase"),
                listable=is_listable(cls),
            )

    @property
    @abstractmethod
    def url(self) -> str:
        """The location of the store, for messages."""

    def __repr__(self) -> str:
        opened_by = self.identity.opened_by
        package = f", opened by {opened_by}" if opened_by else ""
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
        return request_each(self, whole, keys)

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
        if self.capabilities.concurrent or implements(type(self), "get_range"):
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
            The tag of an earlier part. If the value has another one now, or the server sends no
            ETag, the result is None, as for a missing value.
        """
        raise not_supported(self.url, "read by ranges of one version")

    def get_if_changed(
        self, key: str, tag: Tag | None, start: int = 0, length: int | None = None
    ) -> Version:
        """Return a value, or part of it, with its tag (an ETag), unless the value has a given tag.

        Only stores with the capability `versions` have this operation.

        Parameters
        ----------
        key : str
        tag : object, optional
            The tag of an earlier version; None for the value in any case.
        start, length : int
            As in `get_range`; by default, the whole value is returned.
        """
        raise not_supported(self.url, "read conditionally")

    def get_version(
        self, key: str, version: ObjectVersion, start: int = 0, length: int | None = None
    ) -> Buffer | None:
        """Return one version of a value, or part of it; None if the store does not have it.

        Only stores with the capability `reads_versions` have this operation.

        Parameters
        ----------
        key : str
        version : ObjectVersion
            The version of the object that holds the value, from `entries` or `stat`.
        start, length : int
            As in `get_range`; by default, the whole value is returned.
        """
        raise not_supported(self.url, "read by version")

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

        By default, `set` stores each, concurrently if that is faster. After an error,
        others may be stored or not.
        """
        if not self.capabilities.costs.overlaps:
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
        """Return a value and a tag, which changes with the value; two Nones if there is no value.

        Only stores with the capability `compare_and_swap` have this operation, and `swap`.
        """
        raise not_supported(self.url, "changed by conditional writes")

    def swap(self, key: str, value: Buffer, tag: Tag | None) -> bool:
        """Store a value if the present one has a tag, and return whether it had.

        Parameters
        ----------
        key : str
        value : bytes-like
        tag : object, optional
            The tag from `get_tagged`; None if there was no value.

        Raises
        ------
        UnsupportedError
            If the store, or the server behind it, has no such operation. Nothing is stored then.
        """
        raise not_supported(self.url, "changed by conditional writes")

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
        for _ in request_each(self, self.erase, checked):
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
        if implements(type(self), "list_dir"):
            return walk(self, prefix)
        if implements(type(self), "list"):
            return (key for key in self.list() if key.startswith(prefix))
        raise not_supported(self.url, "listed")

    def list(self) -> Iterator[str]:
        """Yield every key."""
        return self.list_prefix("")

    def entries(
        self, prefix: str, after: str = "", until: str | None = None, *, objects: bool = False
    ) -> Iterator[Entry]:
        """Yield the keys that begin with a prefix, with their entries in the listing.

        Parameters
        ----------
        prefix : str
        after, until : str, optional
            Only keys behind `after`, up to `until`, are listed.
        objects : bool, default False
            Whether each entry has the file or object that holds the value.

        Raises
        ------
        UnsupportedError
            If `objects` is True, and the values are not objects with URLs of their own.
        """
        if objects:
            raise no_objects(self.url)
        keys = self.list_prefix(prefix)
        return (Entry(key) for key in keys if after < key and (until is None or key <= until))

    def stat(self, key: str) -> Entry | None:
        """Return the size and the stamp of a value, or None if it is missing.

        By default, the value is read, unless its size comes with a part of it.
        """
        part = self.get_part(key, 0, 1) if self.capabilities.etags else None
        if part is not None and part.size:
            return Entry(key, part.size)
        value = self.get(key)
        return None if value is None else Entry(key, len(value))

    # ---- identity

    @property
    def identity(self) -> Identity:
        """The identity of the store: by default, its URL."""
        return Identity.at(self.url, self.url)

    def above(self) -> "Store | None":
        """Return the store of the directory that contains this one, if there is a known one."""
        return None

    # ---- lifecycle

    def reading(self, key: str, scratch: Scratch) -> AbstractContextManager[Value]:
        """Return a context in which parts of a value are read one after another.

        By default, each part is read by itself. A store that can keep the value open reads all
        parts of the same value, also if another writer replaces it concurrently.
        """
        return nullcontext(StoredValue(self, key, scratch))

    def for_chunks(self) -> "Store":
        """Return a store for reading and writing the chunks of an array.

        Such a store may be stricter: since all of its keys are keys of chunks, it can report that
        a file or directory has the key of a chunk by mistake. By default it is the store itself.
        """
        return self

    def temporary(self, prefix: str) -> "tuple[Store, str]":
        """Return a store and a prefix for values that are needed only while others are written.

        By default, these are the store and the prefix themselves.
        """
        return self, prefix

    def tidy(self, prefix: str, *, recursive: bool = False) -> None:  # noqa: B027 - most need none
        """Remove temporary files that killed writers left directly below a prefix, or at any depth.

        They are not listed as keys.
        """

    def check_writable(self, *, erasing: Iterable[str] = ()) -> None:  # noqa: B027 - most are
        """Check that the store is not read-only, before anything is changed.

        Parameters
        ----------
        erasing : iterable of str, optional
            The keys and prefixes to erase.

        Raises
        ------
        ReadOnlyError
            If the store is read-only, as on an HTTP server.
        LinkError
            If a key to erase is behind a symbolic link, through which nothing is erased.
        """


def implements(kind: type[Store], name: str) -> bool:
    """Whether a class has a method of its own, instead of the default."""
    return getattr(kind, name) is not getattr(Store, name)


def is_listable(kind: type[Store]) -> bool:
    """Whether a class implements one of the listings."""
    return any(implements(kind, name) for name in ("list_dir", "list_prefix", "list"))


def walk(store: Store, prefix: str) -> Iterator[str]:
    """Yield every key that begins with a prefix, by listings of directories."""
    pending = [prefix]
    while pending:
        folder = pending.pop()
        keys, prefixes = store.list_dir(folder)
        yield from (folder + name for name in keys)
        pending += [f"{folder}{name}/" for name in reversed(prefixes)]
