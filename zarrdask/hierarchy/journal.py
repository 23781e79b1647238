"""What of a plan is done: a small record beside what it makes, so that a killed run can go on."""

import json
from collections.abc import Iterable, Iterator
from time import monotonic
from typing import Any

from zarrdask.errors import StoreError
from zarrdask.storage.base import Store
from zarrdask.storage.v3_draft import DraftStore

#: In seconds: how often the record is stored. What was done since is done again.
_PAUSE = 1.0
_VERSION = 1
#: Beside a node that is being made: the record, and what passes leave to the next.
BESIDE = ".zarrdask-rewrite/"
_RECORD = "plan.json"


def beside(store: Store, prefix: str) -> tuple[Store, str]:
    """Return where notes are kept on a node that is not there yet: a store, and a prefix.

    Parameters
    ----------
    store : Store
        As the node's hierarchy sees it: of the draft, the notes are not among its nodes.
    prefix : str
        Of the node's keys: "" or ends with "/".
    """
    return (store.inner if isinstance(store, DraftStore) else store), f"{prefix}{BESIDE}"


def is_begun(store: Store, prefix: str) -> bool:
    """Whether there is a record of a plan that makes a node, or makes it longer."""
    where, start = beside(store, prefix)
    return where.get(f"{start}{_RECORD}") is not None


def forget(store: Store, prefix: str) -> None:
    """Remove the record, so that what was begun has to begin anew."""
    where, start = beside(store, prefix)
    where.erase(f"{start}{_RECORD}")


def journal_of(store: Store, prefix: str, plan: str) -> "Journal":
    """Return the record of a plan that makes a node."""
    where, start = beside(store, prefix)
    return Journal(where, f"{start}{_RECORD}", plan)


class Journal:
    """Which tasks of each stage of a plan are done.

    Parameters
    ----------
    store : Store
    key : str
        Of the record.
    plan : str
        What tells the plan from all others.
    """

    def __init__(self, store: Store, key: str, plan: str) -> None:
        self._store, self._key, self.plan = store, key, plan
        self._done: dict[int, set[int]] = {}
        self._stored = monotonic()

    def read(self) -> str | None:
        """Read what was done before; return which plan did it, or None if there is no record.

        Raises
        ------
        StoreError
            If the record is damaged.
        """
        data = self._store.get(self._key)
        if data is None:
            return None
        try:
            found = json.loads(data)
            if found["version"] != _VERSION:
                return ""
            plan = str(found["plan"])
            done = {at: set(_numbers(runs)) for at, runs in enumerate(found["done"])}
        except (ValueError, TypeError, KeyError) as error:
            raise StoreError(
                "the record of a rewrite is damaged; begin anew with restart=True",
                key=self._key,
                found=str(error),
            ) from error
        self._done = done if plan == self.plan else {}
        return plan

    def done(self, stage: int) -> set[int]:
        """Return the tasks of a stage that are done."""
        return self._done.setdefault(stage, set())

    def add(self, stage: int, task: int) -> None:
        """Remember that a task is done."""
        self.done(stage).add(task)
        if monotonic() - self._stored >= _PAUSE:
            self.store()

    def store(self) -> None:
        """Store the record."""
        stages = range(max(self._done, default=-1) + 1)
        record: dict[str, Any] = {
            "version": _VERSION,
            "plan": self.plan,
            "done": [list(_runs(sorted(self.done(at)))) for at in stages],
        }
        self._store.set(self._key, json.dumps(record).encode())
        self._stored = monotonic()


def _runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield numbers that follow each other as first and last.

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


def _numbers(runs: Any) -> Iterator[int]:
    for first, last in runs:
        yield from range(first, last + 1)
