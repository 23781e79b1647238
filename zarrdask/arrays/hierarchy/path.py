"""Paths of nodes, and the stores that the nodes are in; the error for a path that is taken."""

import os
import stat
from itertools import accumulate
from typing import NamedTuple, Self, TypeVar

from zarrdask.arrays.chunks.missing_chunks import Missing
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.unfinished import Marker
from zarrdask.errors import MetadataError, NodeExistsError
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.formats.metadata.node_layout import Layout
from zarrdask.storage.base import Store
from zarrdask.storage.cache.prefetched import fresh
from zarrdask.storage.locks.chunk_locks import canonical_location
from zarrdask.storage.zarr.consolidated_store import uncached
from zarrdask.storage.zarr.draft_store import layout_of


class StorePath(NamedTuple):
    """A store and the normal path of a node in it; `NodePath` adds the operations on the node."""

    store: Store
    path: str

    @classmethod
    def of(cls, chunks: StoredChunks) -> Self:
        """Return the node of an array whose stored chunks are given; `chunks` is the inverse."""
        return cls(chunks.store, chunks.prefix.rstrip("/"))

    @property
    def location(self) -> str:
        """The URL of the store and the path, for messages."""
        return f"{self.store.url}/{self.path}".rstrip("/")

    @property
    def prefix(self) -> str:
        """The prefix of the node's keys: "" for the root, else the path and "/"."""
        return key_prefix(self.path)

    @property
    def canonical_location(self) -> str:
        """The location in a form that all stores and paths to the node share, ending with "/"."""
        return canonical_location(self.store, self.prefix)

    @property
    def layout(self) -> Layout:
        """The names of the keys of nodes in the store."""
        return layout_of(self.store)

    @property
    def is_absent(self) -> bool:
        """Whether there is no directory for the node on a local disk: then nothing is stored there.

        It is False in other stores, and in hierarchies of the draft, which have other keys.
        """
        store = self.store
        directory = store.identity.directory if store.capabilities.directories else None
        if directory is None or self.layout.base is not None:
            return False
        return not os.path.lexists(os.path.join(directory, self.path))

    def check_directories(self) -> None:
        """Check that no file on a local disk has the path of the node, or of a directory above it.

        Raises
        ------
        NodeExistsError
            If there is one, whose path the error names.
        """
        store = self.store
        root = store.identity.directory if store.capabilities.directories else None
        path = "" if root is None else os.path.join(root, self.path)
        while path:
            try:
                is_directory = stat.S_ISDIR(os.stat(path).st_mode)
            except (FileNotFoundError, NotADirectoryError):
                above = os.path.dirname(path)
                path = "" if above == path else above
                continue
            except (OSError, ValueError):
                return  # reported by the store
            if not is_directory:
                raise NodeExistsError(
                    "this is a file, not a directory; choose another target or remove it", key=path
                )
            return

    @property
    def parents(self) -> list[Self]:
        """The groups above the node, the root first."""
        return [self.at(path) for path in ancestors(self.path)]

    @property
    def current(self) -> Self:
        """The node in the store without consolidated metadata."""
        return self.via(uncached(self.store))

    @property
    def is_cached(self) -> bool:
        """Whether the store has cached (such as consolidated) metadata."""
        return self.current is not self

    @property
    def fresh(self) -> Self:
        """The node in the store without values that were read beforehand."""
        return self.via(fresh(self.store))

    def chunks(self, metadata: ArrayMetadata, missing: Missing | None = "fill") -> StoredChunks:
        """Return the stored chunks of this array; `missing` as in `StoredChunks`."""
        is_stored = metadata.documents is not None
        return StoredChunks(self.store, self.prefix, metadata, missing=missing, is_stored=is_stored)

    def tidy(self, *, recursive: bool = False) -> None:
        """Remove temporary files that killed writers left right below the node, or at any depth."""
        self.store.tidy(self.prefix, recursive=recursive)

    def join(self, name: str) -> Self:
        """Return the node at a name or a path below this one."""
        return self.at(join_path(self.path, name))

    def at(self, path: str) -> Self:
        """Return the node at another path in the store, given in normal form."""
        return type(self)(self.store, path)

    def via(self, store: Store) -> Self:
        """Return the same node seen through a view of the store."""
        return self if store is self.store else type(self)(store, self.path)


#: The type of an argument and of the result: a function that takes a `NodePath` returns one.
AnyPath = TypeVar("AnyPath", bound=StorePath)


def normalise_path(path: str | None) -> str:
    """Return a user's path in normal form: names joined by "/", without "/" at either end.

    None and "" are the root. A backslash separates names, too (conformance A-44, A-45, C-29).

    >>> normalise_path("//foo//bar/")
    'foo/bar'
    """
    if not isinstance(path, str | None) or (path and not path.isascii() and _has_surrogate(path)):
        raise MetadataError(
            "a path must be Unicode text", key="path", found=path, expected="names joined by '/'"
        )
    names = [name for name in (path or "").replace("\\", "/").split("/") if name]
    for name in names:
        if not name.strip(".") or "\0" in name:
            raise MetadataError(
                "a name in a path must not consist of periods only or contain a NUL; choose "
                "another name",
                key="path",
                found=path,
            )
    return "/".join(names)


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def key_prefix(path: str) -> str:
    """Return the prefix of a node's keys: "" for the root, else the path and "/"."""
    return f"{path}/" if path else ""


def ancestors(path: str) -> list[str]:
    """Return the paths of the groups above a node, the root first.

    >>> ancestors("a/b/c")
    ['', 'a', 'a/b']
    """
    names = path.split("/")[:-1]
    return ["", *accumulate(names, lambda above, name: f"{above}/{name}")] if path else []


def join_path(path: str, name: str) -> str:
    """Return the path, in normal form, of the node at a name or a path below another node."""
    below = normalise_path(name)
    return f"{path}/{below}" if path and below else path or below


def exists_error(node: StorePath) -> NodeExistsError:
    """Return the error for a path where a node exists already, maybe of an unfinished write."""
    advice = Marker(node.store, node.prefix).advice()
    return NodeExistsError(
        advice or "there is an array or group here already; overwrite=True replaces it",
        key=node.location,
    )
