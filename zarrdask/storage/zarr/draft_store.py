"""A view of a hierarchy of the v3 draft, in which documents and chunks of a node are together.

The names of the keys are given by a `DraftLayout`. In the view, the array at ``a/b`` has the
document ``a/b/array.json`` and chunks such as ``a/b/c0/1``; the document of a group is
``group.json``.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from zarrdask.errors import UnsupportedError
from zarrdask.formats.byte_ranges import (
    Buffer,
    Entry,
    ObjectVersion,
    Range,
    StoredObject,
    Tag,
    Value,
    Version,
)
from zarrdask.formats.metadata.node_layout import (
    ARRAY,
    DIRECTORIES,
    DRAFT,
    GROUP,
    SCALAR,
    DraftLayout,
    Layout,
)
from zarrdask.formats.store_keys import Names, check_key, check_prefix
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store
from zarrdask.storage.capabilities import Capabilities, without
from zarrdask.storage.wrapper import WrappedStore

#: The document of an implicit group, which exists because a node is below it (B-66).
IMPLICIT = b'{"attributes": {}}'


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
        self.layout = DraftLayout(base, zarr_format, suffix, minor)

    def _parts(self) -> tuple[Any, ...]:
        names = self.layout
        return self.inner, names.base, names.zarr_format, names.suffix, names.minor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DraftStore) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __reduce__(self) -> tuple[Any, ...]:
        return DraftStore, self._parts()

    # ---- keys

    def _existing(self, key: str) -> str:
        """Return the key in the underlying store, preferring one that exists."""
        if key.rpartition("/")[2] != SCALAR:
            return self.layout.real(key)
        own, other = self.layout.scalar(key)
        return other if self.inner.get_range(own, 0, 1) is None else own

    def _below(self, prefix: str) -> str:
        return self.layout.inside(check_prefix(prefix))

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
        start, skip = self.layout.data, len(self.layout.base)
        # Only the chunk of an array without dimensions may have one of two keys.
        real = [
            self._existing(key) if key.endswith(SCALAR) else start + key[skip:] for key in requested
        ]
        return self.inner.get_many(real, scratch)

    def _with_implicit(self, keys: list[str], scratch: Scratch) -> Iterator[Buffer | None]:
        """Yield documents, including documents of implicit groups."""
        values = self.inner.get_many([self._existing(key) for key in keys], scratch)
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
        own = set() if below else {*self.layout.node_documents("").values()}
        try:
            return any(key not in own for key in self.inner.list_prefix(self.layout.meta + below))
        except UnsupportedError:
            return False

    def keep_group(self, prefix: str) -> None:
        """Store a document for the group at a prefix if no node below implies it any more."""
        if self.get(prefix + GROUP) is None:
            self.set(prefix + GROUP, IMPLICIT)

    def has_document(self, prefix: str) -> bool:
        """Whether the node at a prefix has a document of its own."""
        path = self._below(prefix).rstrip("/")
        keys = self.layout.node_documents(path).values()
        return any(value is not None for value in self.inner.get_many(keys, Scratch()))

    def stat(self, key: str) -> Entry | None:
        entry = self.inner.stat(self._existing(key))
        return None if entry is None else entry._replace(key=key)

    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:
        return self.inner.get_range(self._existing(key), start, length)

    def get_ranges(
        self, key: str, ranges: Sequence[Range], scratch: Scratch
    ) -> Iterator[Buffer | None]:
        return self.inner.get_ranges(self._existing(key), ranges, scratch)

    def get_if_changed(
        self, key: str, tag: Tag | None, start: int = 0, length: int | None = None
    ) -> Version:
        return self.inner.get_if_changed(self._existing(key), tag, start, length)

    def get_version(
        self, key: str, version: ObjectVersion, start: int = 0, length: int | None = None
    ) -> Buffer | None:
        return self.inner.get_version(self._existing(key), version, start, length)

    def reading(self, key: str, scratch: Scratch) -> AbstractContextManager[Value]:
        return self.inner.reading(self._existing(key), scratch)

    def set(self, key: str, value: Buffer) -> None:
        self.inner.set(self.layout.real(key), value)
        if key.rpartition("/")[2] == SCALAR:
            self.inner.erase(self.layout.scalar(key)[1])

    def create(self, key: str, value: Buffer) -> bool:
        if key.rpartition("/")[2] == SCALAR:
            return Store.create(self, key, value)
        return self.inner.create(self.layout.real(key), value)

    def tidy(self, prefix: str, *, recursive: bool = False) -> None:
        below = self._below(prefix)
        for start in (self.layout.meta, self.layout.data):
            self.inner.tidy(start + below, recursive=recursive)

    def for_chunks(self) -> Store:
        return DraftStore(self.inner.for_chunks(), *self._parts()[1:])

    def check_writable(self, *, erasing: Iterable[str] = ()) -> None:
        rests = [self.layout.inside(key) for key in erasing]
        starts = self.layout.meta, self.layout.data
        self.inner.check_writable(erasing=[start + rest for start in starts for rest in rests])

    def erase(self, key: str) -> None:
        self.inner.erase(self.layout.real(key))
        if key.rpartition("/")[2] == SCALAR:
            self.inner.erase(self.layout.scalar(key)[1])

    def erase_values(self, keys: Iterable[str]) -> None:
        for key in [check_key(key) for key in keys]:
            self.erase(key)

    def erase_prefix(self, prefix: str) -> None:
        """Remove the documents and chunks of a node and of the nodes below it (B-74)."""
        below = self._below(prefix)
        own = [*self.layout.node_documents(below.rstrip("/")).values()]
        if self.inner.capabilities.listable:
            self.inner.erase_values(own)  # first, so that an interrupted call leaves no node
        self.inner.erase_prefix(self.layout.meta + below)
        self.inner.erase_prefix(self.layout.data + below)
        if not self.inner.capabilities.listable:
            self.inner.erase_values(own)

    # ---- listing

    def list_dir(self, prefix: str) -> Names:
        """Return the nodes directly below a prefix (B-69), or its chunks if there are no nodes."""
        below = self._below(prefix)
        nodes = self._nodes(below)
        return ([], nodes) if nodes else self.inner.list_dir(self.layout.data + below)

    def _nodes(self, below: str) -> list[str]:
        names = self.layout.nodes(*self.inner.list_dir(self.layout.meta + below))
        other = self.layout.consolidated
        if not below and other in names:
            content = self.inner.list_dir(f"{self.layout.meta}{other}/")
            names -= {other} if content == ([".zmetadata"], []) else set()
        return sorted(names)

    def list_prefix(self, prefix: str) -> Iterator[str]:
        """Yield every key that begins with a prefix, documents first."""
        below = self._below(prefix)
        own = self.layout.node_documents(below.rstrip("/"))
        documents = self.inner.get_many(own.values(), Scratch())
        exist = [document is not None for document in documents]
        yield from (
            self.layout.base + below + name for name, one in zip(own, exist, strict=True) if one
        )
        for key in self.inner.list_prefix(self.layout.meta + below):
            virtual = self.layout.document_name(key)
            if virtual is not None and key not in own.values():
                yield virtual
        for key in self.inner.list_prefix(self.layout.data + below):
            yield self.layout.base + key[len(self.layout.data) :]

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        """The inner store's; a listing consists of one of documents and one of chunks."""
        return without(self.inner.capabilities, self._declared.lost | {"lists_parts"})

    def entries(
        self, prefix: str, after: str = "", until: str | None = None, *, objects: bool = False
    ) -> Iterator[Entry]:
        for key, entry in self._entries(self._below(prefix), objects=objects):
            if after < key and (until is None or key <= until):
                stored = entry.object
                if objects and stored is not None:
                    stored = stored._replace(key=key, path=stored.path or stored.key)
                yield entry._replace(key=key, object=stored)

    def _entries(self, below: str, *, objects: bool) -> Iterator[tuple[str, Entry]]:
        """Yield the keys below a prefix, documents first, each with its entry as it is stored."""
        own = {real: name for name, real in self.layout.node_documents(below.rstrip("/")).items()}
        for real, name in own.items():
            entry = self.inner.stat(real)
            if entry is not None:
                if objects and entry.object is None:
                    root, tag = f"{self.identity.uri}/", entry.stamp or None
                    stored = StoredObject(real, root, entry.size or 0, None, tag)
                    entry = entry._replace(object=stored)
                yield self.layout.base + below + name, entry
        for entry in self.inner.entries(self.layout.meta + below, objects=objects):
            virtual = self.layout.document_name(entry.key)
            if virtual is not None and entry.key not in own:
                yield virtual, entry
        for entry in self.inner.entries(self.layout.data + below, objects=objects):
            yield self.layout.base + entry.key[len(self.layout.data) :], entry


def layout_of(store: Store) -> Layout:
    """Return the layout of the nodes in a store."""
    return store.layout if isinstance(store, DraftStore) else DIRECTORIES


def stored_in(store: Store) -> Store:
    """Return the store that has the keys which the layout of a store names."""
    return store.inner if isinstance(store, DraftStore) else store
