"""The progress of a rewrite: a record beside the new node, so that a killed run can resume."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from time import monotonic
from types import MappingProxyType
from typing import Any

from zarrdask.errors import StoreError, ZarrdaskError
from zarrdask.hierarchy.path import normalise_path
from zarrdask.storage.base import Store
from zarrdask.storage.v3_draft import DraftStore

#: Seconds between two writes of the record. A resumed run repeats the tasks done since the last.
_WRITE_INTERVAL = 1.0
#: The version of the record's format.
_VERSION = 1
#: The directory beside a node that is being written: the record, and intermediate results.
BESIDE = ".zarrdask-rewrite/"
#: The name of the record in that directory.
_RECORD = "plan.json"


def beside(store: Store, prefix: str) -> tuple[Store, str]:
    """Return the store and the prefix of the keys for data about a node that is being written.

    For a hierarchy of the draft it is the underlying store: the data are not part of the hierarchy.
    """
    return (store.inner if isinstance(store, DraftStore) else store), f"{prefix}{BESIDE}"


def record_key(prefix: str) -> str:
    """Return the key of the record of a plan that writes the node at a prefix."""
    return f"{prefix}{BESIDE}{_RECORD}"


def lease_key(prefix: str) -> str:
    """Return the key of the lease of a writer that changes the shape of the node at a prefix."""
    return f"{prefix}{BESIDE}lease"


def is_begun(store: Store, prefix: str) -> bool:
    """Whether there is a record of a plan that creates a node, or appends to it."""
    record_store, record_prefix = beside(store, prefix)
    return record_store.get(f"{record_prefix}{_RECORD}") is not None


def erase_journal(store: Store, prefix: str) -> None:
    """Erase the record of a plan, so that it can't be resumed."""
    record_store, record_prefix = beside(store, prefix)
    record_store.erase(f"{record_prefix}{_RECORD}")


def journal_of(
    store: Store, prefix: str, plan: str, nodes: Mapping[str, str] = MappingProxyType({})
) -> "Journal":
    """Return the record of a plan that writes the node at a prefix, or several `nodes`."""
    record_store, record_prefix = beside(store, prefix)
    return Journal(record_store, f"{record_prefix}{_RECORD}", plan, nodes)


class Journal:
    """The record of a plan, at a key of a store: which tasks of each stage are done.

    `plan` is an identifier, by which its record is told from those of other plans. `nodes` are the
    nodes that it creates, by their paths: "array" or "group".
    """

    def __init__(
        self, store: Store, key: str, plan: str, nodes: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._store, self._key, self.plan, self._nodes = store, key, plan, nodes
        self._done: dict[int, set[int]] = {}
        self._stored, self._is_stored = monotonic(), True

    def read(self) -> str | None:
        """Read the stored record, if it is one of this plan, and return its plan's identifier.

        It is "" if another version of zarrdask wrote the record, None if there is none.
        """
        data = self._store.get(self._key)
        if data is None:
            return None
        try:
            record = json.loads(data)
            if record["version"] != _VERSION:
                return ""
            plan = str(record["plan"])
            done = {
                stage: {n for first, last in runs for n in range(first, last + 1)}
                for stage, runs in enumerate(record["done"])
            }
        except (ValueError, TypeError, KeyError) as error:
            raise StoreError(
                "the record of an interrupted rewrite is damaged; start again with restart=True",
                key=self._key,
                found=str(error),
            ) from error
        self._done = done if plan == self.plan else {}
        return plan

    def recorded_nodes(self) -> dict[str, str]:
        """Return the nodes of the plan whose record is stored; none if the record is damaged."""
        try:
            nodes = json.loads(self._store.get(self._key) or b"{}").get("nodes", {})
            return {normalise_path(path): kind for path, kind in nodes.items()}
        except (ValueError, TypeError, AttributeError):
            return {}

    def done(self, stage: int) -> set[int]:
        """Return the numbers of the tasks of a stage that are done."""
        return self._done.setdefault(stage, set())

    def add(self, stage: int, task: int) -> None:
        """Note that a task is done; the record is stored from time to time."""
        self.done(stage).add(task)
        if monotonic() - self._stored >= _WRITE_INTERVAL:
            self.store()

    def erase(self) -> None:
        """Erase the record, and what else is stored about the rewrite."""
        if self._is_stored and self._store.listable:
            self._store.erase_prefix(self._key.removesuffix(_RECORD))
        elif self._is_stored:
            self._store.erase(self._key)
        self._is_stored = False

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Store the record if the block is interrupted, or fails."""
        try:
            yield
        except BaseException:
            with suppress(ZarrdaskError):  # the first error is the one to report
                self.store()
            raise

    def store(self) -> None:
        """Store the record now."""
        stages = range(max(self._done, default=-1) + 1)
        record: dict[str, Any] = {
            "version": _VERSION,
            "plan": self.plan,
            "done": [list(_runs(sorted(self.done(stage)))) for stage in stages],
        }
        if self._nodes:
            record["nodes"] = dict(self._nodes)
        self._store.set(self._key, json.dumps(record).encode())
        self._is_stored = True
        self._stored = monotonic()


def _runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last number of each run of consecutive numbers.

    >>> list(_runs([0, 1, 2, 5]))
    [(0, 2), (5, 5)]
    """
    first = last = None
    for number in numbers:
        if last is not None and number == last + 1:
            last = number
            continue
        if first is not None and last is not None:
            yield first, last
        first = last = number
    if first is not None and last is not None:
        yield first, last
