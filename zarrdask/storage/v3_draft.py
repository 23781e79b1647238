"""A view of a hierarchy of the v3 draft, in which documents and chunks of a node are together.

The draft of May 2022 keeps documents below ``meta/`` and chunks below ``data/`` (conformance B-49,
B-50), its older dialect below ``meta/root/`` and ``data/root/`` (X-B17). In the view, the array at
``a/b`` has the document ``a/b/array.json`` and chunks such as ``a/b/c0/1``; the document of a group
is ``group.json``.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.storage.base import Scratch, Store
from zarrdask.storage.byte_ranges import Buffer, Range, Value
from zarrdask.storage.keys import Names, check_key, check_prefix
from zarrdask.storage.wrapper import WrappedStore

#: The format of the draft's text, and its older dialect, which existing files use.
DRAFT, PROTOCOL = "v3-draft", "v3-draft-protocol"
#: The names of documents in the view.
DOCUMENTS = ARRAY, GROUP = "array.json", "group.json"
#: The document of an implicit group, which exists because a node is below it (B-66).
IMPLICIT = b'{"attributes": {}}'
_KINDS = {ARRAY: "array", GROUP: "group"}
#: The chunk of an array without dimensions (B-47).
_SCALAR = "c"


class DraftStore(WrappedStore):
    """One hierarchy of the draft in a store.

    Parameters
    ----------
    inner : Store
        The underlying store.
    base : str
        The prefix of the hierarchy's ``zarr.json`` in the underlying store: "" or a text that ends
        with "/". Keys of the view begin with it, too.
    zarr_format : {"v3-draft", "v3-draft-protocol"}
        The dialect.
    suffix : str
        The suffix of the keys of documents (B-14).
    minor : int
        The minor version of the format (B-11).
    """

    def __init__(
        self,
        inner: Store,
        base: str = "",
        zarr_format: str = DRAFT,
        suffix: str = ".json",
        minor: int = 0,
    ) -> None:
        super().__init__(inner)
        self.base = base
        self.zarr_format = zarr_format
        self.suffix = suffix
        self.minor = minor
        root = "root/" if zarr_format == PROTOCOL else ""
        #: The prefixes of the keys of documents and of chunks.
        self._meta = f"{base}meta/{root}"
        self._data = f"{base}data/{root}"

    def _parts(self) -> tuple[Any, ...]:
        return self.inner, self.base, self.zarr_format, self.suffix, self.minor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DraftStore) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __reduce__(self) -> tuple[Any, ...]:
        return DraftStore, self._parts()

    def _stamp(self, key: str) -> str:
        return self.inner._stamp(self._existing(key))

    # ---- keys

    def real(self, key: str) -> str:
        """Return the key in the underlying store.

        >>> from zarrdask.storage.memory import MemoryStore
        >>> view = DraftStore(MemoryStore())
        >>> view.real("foo/baz/array.json"), view.real("foo/baz/c0/1"), view.real("group.json")
        ('meta/foo/baz.array.json', 'data/foo/baz/c0/1', 'meta/group.json')
        """
        rest = self._inside(key)
        path, _, name = rest.rpartition("/")
        if name in _KINDS:
            return self._document(path, _KINDS[name])
        return self._scalars(key)[0] if name == _SCALAR else self._data + rest

    def _document(self, path: str, kind: str) -> str:
        if path:
            return f"{self._meta}{path}.{kind}{self.suffix}"
        return (
            self.base
            + ("meta/root." if self.zarr_format == PROTOCOL else "meta/")
            + (f"{kind}{self.suffix}")
        )

    def _scalars(self, key: str) -> tuple[str, str]:
        """Return the two possible keys of the chunk of an array without dimensions."""
        plain = self._data + key[len(self.base) :]
        counted = f"{plain}0"
        return (plain, counted) if self.zarr_format == DRAFT else (counted, plain)

    def _existing(self, key: str) -> str:
        """Return the key in the underlying store, preferring one that exists."""
        if key.rpartition("/")[2] != _SCALAR:
            return self.real(key)
        own, other = self._scalars(key)
        return other if self.inner.get_range(own, 0, 1) is None else own

    def _below(self, prefix: str) -> str:
        return self._inside(check_prefix(prefix))

    def _inside(self, key: str) -> str:
        """Return a key relative to the root of the hierarchy."""
        if not key.startswith(self.base):
            raise MetadataError(
                "this key is outside the hierarchy",
                key=self.url,
                found=key,
                expected=f"a key that begins with {self.base!r}",
            )
        return key[len(self.base) :]

    # ---- values

    def get(self, key: str) -> bytes | None:
        if key.endswith(GROUP):
            *_, document = self.get_many([key[: -len(GROUP)] + ARRAY, key], Scratch())
            return None if document is None else bytes(document)
        return self.inner.get(self._existing(key))

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:
        requested = list(keys)
        if any(key.endswith((ARRAY, GROUP)) for key in requested):
            return self._with_implicit(requested, scratch)
        if len(requested) == 1:
            return self.inner.get_many([self._existing(requested[0])], scratch)
        start, skip = self._data, len(self.base)
        # Only the chunk of an array without dimensions may be in one of two places.
        real = [
            self._existing(key) if key.endswith(_SCALAR) else start + key[skip:]
            for key in requested
        ]
        return self.inner.get_many(real, scratch)

    def _with_implicit(self, keys: list[str], scratch: Scratch) -> Iterator[Buffer | None]:
        """Yield documents, including those of implicit groups."""
        values = self.inner.get_many([self.real(key) for key in keys], scratch)
        documents = {k: None if v is None else bytes(v) for k, v in zip(keys, values, strict=True)}
        for key in keys:
            prefix, value = key[: -len(GROUP)], documents[key]
            is_missing = value is None and key.rpartition("/")[2] == GROUP
            if is_missing and documents.get(prefix + ARRAY) is None:
                yield IMPLICIT if self.is_implicit(prefix) else None
            else:
                yield value

    def is_implicit(self, prefix: str) -> bool:
        """Whether a node is below a prefix; the root always exists (B-66, X-B12)."""
        below = self._below(prefix)
        return not below or self.has_nodes(prefix)

    def has_nodes(self, prefix: str) -> bool:
        """Whether there are documents below a prefix; False if the store can't list (B-71)."""
        below = self._below(prefix)
        own = {self._document("", kind) for kind in _KINDS.values()} if not below else set()
        try:
            return any(key not in own for key in self.inner.list_prefix(self._meta + below))
        except UnsupportedError:
            return False

    def has_document(self, prefix: str) -> bool:
        """Whether the node at a prefix has a document of its own."""
        path = self._below(prefix).rstrip("/")
        keys = [self._document(path, kind) for kind in _KINDS.values()]
        return any(value is not None for value in self.inner.get_many(keys, Scratch()))

    def _size(self, key: str) -> int | None:
        return self.inner._size(self._existing(key))

    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:
        return self.inner.get_range(self._existing(key), start, length)

    def get_ranges(
        self, key: str, ranges: Sequence[Range], scratch: Scratch
    ) -> Iterator[Buffer | None]:
        return self.inner.get_ranges(self._existing(key), ranges, scratch)

    def _reading(self, key: str, scratch: Scratch) -> AbstractContextManager[Value]:
        return self.inner._reading(self._existing(key), scratch)

    def set(self, key: str, value: Buffer) -> None:
        self.inner.set(self.real(key), value)
        if key.rpartition("/")[2] == _SCALAR:
            self.inner.erase(self._scalars(key)[1])

    def create(self, key: str, value: Buffer) -> bool:
        if key.rpartition("/")[2] == _SCALAR:
            return Store.create(self, key, value)
        return self.inner.create(self.real(key), value)

    def _tidy(self, prefix: str, *, recursive: bool = False) -> None:
        below = self._below(prefix)
        for start in (self._meta, self._data):
            self.inner._tidy(start + below, recursive=recursive)

    def _for_chunks(self) -> Store:
        return DraftStore(self.inner._for_chunks(), *self._parts()[1:])

    def _check_erasable(self, keys: Iterable[str]) -> None:
        rests = [self._inside(key) for key in keys]
        self.inner._check_erasable(
            [start + rest for start in (self._meta, self._data) for rest in rests]
        )

    def erase(self, key: str) -> None:
        self.inner.erase(self.real(key))
        if key.rpartition("/")[2] == _SCALAR:
            self.inner.erase(self._scalars(key)[1])

    def erase_values(self, keys: Iterable[str]) -> None:
        for key in [check_key(key) for key in keys]:
            self.erase(key)

    def erase_prefix(self, prefix: str) -> None:
        """Remove the documents and chunks of a node and of the nodes below it (B-74)."""
        below = self._below(prefix)
        own = [self._document(below.rstrip("/"), kind) for kind in _KINDS.values()]
        if self.inner.capabilities.listable:
            self.inner.erase_values(own)  # first, so that an interrupted call leaves no node
        self.inner.erase_prefix(self._meta + below)
        self.inner.erase_prefix(self._data + below)
        if not self.inner.capabilities.listable:
            self.inner.erase_values(own)

    # ---- listing

    def list_dir(self, prefix: str) -> Names:
        """Return the nodes directly below a prefix (B-69), or its chunks if there are no nodes."""
        below = self._below(prefix)
        nodes = self._nodes(below)
        return ([], nodes) if nodes else self.inner.list_dir(self._data + below)

    def _nodes(self, below: str) -> list[str]:
        keys, prefixes = self.inner.list_dir(self._meta + below)
        names = set(prefixes)
        for key in keys:
            for kind in _KINDS.values():
                name = key.removesuffix(f".{kind}{self.suffix}")
                # The root's own documents have no name before the dot (X-B10).
                if name and name != key:
                    names.add(name)
        if not below and self.zarr_format == PROTOCOL and "consolidated" in names:
            # zarr-python keeps consolidated metadata here; this is not a group.
            content = self.inner.list_dir(f"{self._meta}consolidated/")
            names -= {"consolidated"} if content == ([".zmetadata"], []) else set()
        return sorted(names)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield every key that begins with a prefix, documents first."""
        below = self._below(prefix)
        own = {name: self._document(below.rstrip("/"), kind) for name, kind in _KINDS.items()}
        documents = self.inner.get_many(own.values(), Scratch())
        exist = [document is not None for document in documents]
        yield from (self.base + below + name for name, one in zip(own, exist, strict=True) if one)
        for key in self.inner.list_prefix(self._meta + below):
            virtual = self._virtual(key)
            if virtual is not None and key not in own.values():
                yield virtual
        for key in self.inner.list_prefix(self._data + below):
            yield self.base + key[len(self._data) :]

    def _virtual(self, key: str) -> str | None:
        """Return the key of a document in the view, or None for other keys (B-51)."""
        path = key[len(self._meta) :]
        for name, kind in _KINDS.items():
            if path.endswith(f".{kind}{self.suffix}"):
                return f"{self.base}{path.removesuffix(f'.{kind}{self.suffix}')}/{name}"
        return None


def real_key(store: Store, key: str) -> str:
    """Return the key in the underlying store, which differs in the view of a draft hierarchy."""
    return store.real(key) if isinstance(store, DraftStore) else key
