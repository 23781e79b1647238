"""Forks: copies of a store that tasks change in other processes, which can't see the store itself.

A session of icechunk keeps its changes in the memory of one process. Tasks elsewhere change copies
of a fork of it, and what they return carries their changes to the process of the session, which
merges them when they arrive. So changes need not pass through all that is between the two.
"""

import threading
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar
from uuid import uuid4
from weakref import WeakValueDictionary

from zarrdask.errors import StoreError
from zarrdask.runtime.system import after_fork, renewed_after_fork
from zarrdask.storage.base import Store

#: The forks that were made in this process, by name.
_MADE_HERE: "WeakValueDictionary[str, Fork]" = WeakValueDictionary()
#: A name of this process, by which the names of its forks begin.
_PROCESS = [uuid4().hex]
#: Several threads may unpickle the same changes.
_MERGING = renewed_after_fork(threading.Lock())


class Fork(Store):
    """A copy of a store at one moment.

    Tasks do not change the fork itself, but copies of it: see `changing`.

    Parameters
    ----------
    name : str, optional
        The name of the fork in all processes; a new one by default.
    """

    #: Whether changes are merged while tasks go on, where they are made in the process of the fork.
    is_merged_at_once: ClassVar[bool] = False

    def __init__(self, name: str = "") -> None:
        self.name = name or f"{_PROCESS[0]}-{uuid4().hex}"
        self._merged = set[str]()
        if not name:
            _MADE_HERE[self.name] = self

    @abstractmethod
    def begin(self) -> Store:
        """Return a copy without changes."""

    @abstractmethod
    def end(self, copy: Store) -> bytes:
        """Return the changes of a copy, which the caller does not use again."""

    @abstractmethod
    def merge(self, changes: Iterable[bytes]) -> None:
        """Merge changes into the store that was forked, in the process where that was."""

    @abstractmethod
    def check_unchanged(self) -> None:
        """Check that the store that was forked has no changes, which the fork would not have."""

    @abstractmethod
    def check_same(self, other: "Fork") -> None:
        """Check that this fork and another one are forks of the same state of a store."""

    @abstractmethod
    def changed(self, changes: bytes) -> Iterable[str]:
        """Return the names of what changes are about, such as chunks and nodes."""

    def receive(self, name: str, changes: Iterable[bytes]) -> None:
        """Merge changes, unless changes of this name were merged before."""
        with _MERGING:
            if name not in self._merged:
                self.merge(changes)
                self._merged.add(name)


class Changes:
    """The changes of copies of forks, which are merged when they arrive where these were made.

    They arrive when they are unpickled in that process; there, the result is None.

    Parameters
    ----------
    parts : mapping of str to list of bytes
        What `Fork.end` returned for each copy, by the names of the forks.
    name : str, optional
        A name that all pickled copies of this object have.
    """

    __slots__ = ("name", "parts")

    def __init__(self, parts: Mapping[str, list[bytes]], name: str = "") -> None:
        self.parts = parts
        self.name = name or uuid4().hex

    @classmethod
    def joined(cls, changes: Iterable["Changes"]) -> "Changes | None":
        """Join changes of the same process; None if all were merged, as they are of this one."""
        parts = defaultdict[str, list[bytes]](list)
        for each in changes:
            if each.arrived() is not None:
                for fork, part in each.parts.items():
                    parts[fork] += part
        return cls(parts) if parts else None

    def arrived(self) -> "Changes | None":
        """Merge the changes if the forks were made in this process; return them if not.

        Raises
        ------
        StoreError
            If the store does not exist any more.
        """
        if not any(fork.startswith(_PROCESS[0]) for fork in self.parts):
            return self
        for fork, parts in self.parts.items():
            if fork not in _MADE_HERE:
                raise StoreError(
                    "the written chunks can't be merged into the session, which no longer "
                    "exists; keep a reference to the computed array until the result has arrived"
                )
            _MADE_HERE[fork].receive(self.name, parts)
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self.parts, self.name)


def _arrived(parts: Mapping[str, list[bytes]], name: str) -> Changes | None:
    return Changes(parts, name).arrived()


@contextmanager
def changing(store: Store) -> Iterator[tuple[Store, list[Changes]]]:
    """Yield the store that a task changes, and a list that holds its changes after the block.

    For a fork these are a copy and what has to be merged. Other stores are yielded as they are.
    """
    changes = list[Changes]()
    if not isinstance(store, Fork):
        yield store, changes
        return
    copy = store.begin()
    yield copy, changes
    made: Changes | None = Changes({store.name: [store.end(copy)]})
    if made is not None and store.is_merged_at_once:
        made = made.arrived()
    changes += [] if made is None else [made]


def _after_fork() -> None:
    # The copy of a store in a forked process is another store, and its threads do not run there.
    _MADE_HERE.clear()
    _PROCESS[0] = uuid4().hex


after_fork(_after_fork)
