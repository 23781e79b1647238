"""A group's documents, held from one read: a store that answers for them without asking."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zarrdask.storage.base import Scratch, Store
from zarrdask.storage.byte_ranges import Buffer, KeyValue, Range
from zarrdask.storage.keys import Names, check_prefix
from zarrdask.storage.wrapper import WrappedStore


@dataclass(frozen=True)
class Held:
    """What one document tells of a group and of everything below it.

    Attributes
    ----------
    documents : mapping
        For each node, by its path from the group ("" is the group itself): its documents, parsed,
        by name.
    members : mapping
        For each group, by its path: the names right below, sorted.
    names : frozenset of str
        The names of all documents that a node might have: those that are not held are absent.
    """

    documents: Mapping[str, Mapping[str, Any]]
    members: Mapping[str, Sequence[str]]
    names: frozenset[str]


class ConsolidatedStore(WrappedStore):
    """A store seen through consolidated metadata (conformance A-68, C-78).

    Metadata documents below a group, and the listing of groups, come from what is held; chunks,
    and everything elsewhere, from the store itself. The first change through it ends that: from
    then on it is the store itself. It pickles as the store itself.

    Parameters
    ----------
    inner : Store
        The store itself.
    path : str
        Of the group, in normal form.
    held : Held
    """

    def __init__(self, inner: Store, path: str, held: Held) -> None:
        super().__init__(inner)
        self.path = path
        self.held: Held | None = held

    def forget(self) -> None:
        """Ask the store itself from now on."""
        self.held = None

    def holds(self, path: str) -> bool:
        """Whether the node at a path, if there is one, is among what is held."""
        return self.held is not None and self._below(path) is not None

    def members(self, path: str) -> list[str] | None:
        """Return the names right below a group, or None if they are not held."""
        held, below = self.held, self._below(path)
        found = None if held is None or below is None else held.members.get(below)
        return None if found is None else list(found)

    def _below(self, path: str) -> str | None:
        """Return a path as seen from the group, or None if it is elsewhere."""
        if not self.path or path == self.path:
            return path[len(self.path) :]
        start = f"{self.path}/"
        return path[len(start) :] if path.startswith(start) else None

    def _document(self, held: Held | None, key: str) -> tuple[bool, bytes | None]:
        """Return whether a key is answered from what is held, and the answer."""
        path, _, name = key.rpartition("/")
        below = self._below(path)
        if held is None or below is None or name not in held.names:
            return False, None
        found = held.documents.get(below, {}).get(name)
        return True, None if found is None else json.dumps(found, ensure_ascii=True).encode()

    # ---- what it is: the store itself

    @property
    def listable(self) -> bool:
        """Whether it can tell its keys: those of the group's nodes it can."""
        return self.held is not None or self.inner.listable

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Store) and self.inner == plain(other)

    def __hash__(self) -> int:
        return hash(self.inner)

    def __reduce__(self) -> tuple[Any, ...]:
        # A task needs chunks: what is held must not travel with each of them.
        return plain, (self.inner,)

    def for_chunks(self) -> Store:
        """Return the store itself: nothing is held of chunks."""
        return self.inner.for_chunks()

    # ---- reading

    def get(self, key: str) -> bytes | None:
        answered, value = self._document(self.held, key)
        return value if answered else self.inner.get(key)

    def get_many(self, keys: Iterable[str], scratch: Scratch) -> Iterator[Buffer | None]:
        keys, held = list(keys), self.held
        answers = [self._document(held, key) for key in keys]
        asked = [key for key, (answered, _) in zip(keys, answers, strict=True) if not answered]
        others = iter(self.inner.get_many(asked, scratch) if asked else ())
        for answered, value in answers:
            yield value if answered else next(others)

    def get_range(self, key: str, start: int, length: int | None = None) -> Buffer | None:
        if self._document(self.held, key)[0]:
            return Store.get_range(self, key, start, length)
        return self.inner.get_range(key, start, length)

    def get_ranges(
        self, key: str, ranges: Sequence[Range], scratch: Scratch
    ) -> Iterator[Buffer | None]:
        if self._document(self.held, key)[0]:
            return Store.get_ranges(self, key, ranges, scratch)
        return self.inner.get_ranges(key, ranges, scratch)

    def list_dir(self, prefix: str) -> Names:
        held, below = self.held, self._below(check_prefix(prefix).rstrip("/"))
        if held is None or below is None or below not in held.members:
            return self.inner.list_dir(prefix)
        return sorted(held.documents.get(below, ())), list(held.members[below])

    # ---- writing

    def set(self, key: str, value: Buffer) -> None:
        self.forget()
        self.inner.set(key, value)

    def create(self, key: str, value: Buffer) -> bool:
        self.forget()
        return self.inner.create(key, value)

    def set_partial_values(self, key_start_values: Iterable[KeyValue]) -> None:
        self.forget()
        self.inner.set_partial_values(key_start_values)

    def erase(self, key: str) -> None:
        self.forget()
        self.inner.erase(key)

    def erase_values(self, keys: Iterable[str]) -> None:
        self.forget()
        self.inner.erase_values(keys)

    def erase_prefix(self, prefix: str) -> None:
        self.forget()
        self.inner.erase_prefix(prefix)


def plain(store: Store) -> Store:
    """Return the store itself, if this is one that is seen through consolidated metadata."""
    return store.inner if isinstance(store, ConsolidatedStore) else store
