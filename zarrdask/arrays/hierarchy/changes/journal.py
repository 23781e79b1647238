"""`Journal`: the record of a rewrite, kept beside the new node, so that a killed run can resume."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from itertools import chain
from time import monotonic
from types import MappingProxyType
from typing import Any

from zarrdask.arrays.hierarchy.path import StorePath, normalise_path
from zarrdask.errors import StoreError
from zarrdask.formats.metadata.json import DAMAGE, Documents
from zarrdask.formats.metadata.model import ArrayMetadata, Metadata
from zarrdask.storage.base import Store
from zarrdask.storage.zarr.draft_store import stored_in

#: Seconds between two writes of the record. A resumed run repeats the tasks done since the last.
WRITE_INTERVAL = 1.0
#: More tasks in one stage than any plan has. A damaged record must not fill the memory.
_MAX_TASKS = 2**24
#: The version of the record's format.
_VERSION = 3
#: The beginning of a digest of values.
_DIGEST = "sha256-"
#: The values that identify a plan, or digests of them, by the names that errors use.
Fingerprint = Mapping[str, str]
#: The directory beside a node that is being written: the record, and intermediate results.
BESIDE = ".zarrdask-rewrite/"
#: The argument by which rewrites begin again; they resume without an argument.
RESTART = "restart=True"
#: The name of the record in that directory.
_RECORD = "plan.json"
#: The name of the documents of the new arrays in that directory.
_ARRAYS = "arrays.json"
#: The directory of the records of writes to regions, in that directory; see `Journal`.
_REGIONS = "regions/"


def digest(*values: Any) -> str:
    """Return a short text that stands for values in a `Fingerprint`."""
    return _DIGEST + sha256(repr(values).encode(errors="surrogateescape")).hexdigest()


def beside(node: StorePath) -> tuple[Store, str]:
    """Return the store and the prefix of the keys for data about a node that is being written.

    For a hierarchy of the draft it is the underlying store: the data are not part of the hierarchy.
    """
    return stored_in(node.store), f"{node.prefix}{BESIDE}"


def workspace(node: StorePath) -> tuple[Store, str]:
    """Return a store and a prefix for what a plan packs between the passes that write a node."""
    store, prefix = beside(node)
    return store.temporary(f"{prefix}packed/")


def record_key(node: StorePath) -> str:
    """Return the key of the record of a plan that writes a node."""
    return f"{node.prefix}{BESIDE}{_RECORD}"


def is_begun(node: StorePath) -> bool:
    """Whether there is a record of a plan that creates a node, or appends to it."""
    record_store, record_prefix = beside(node)
    return record_store.get(f"{record_prefix}{_RECORD}") is not None


def unfinished(node: StorePath) -> str | None:
    """Return how the unfinished write of a node is resumed, for messages; None if there is none."""
    store, folder = beside(node)
    data = store.get(f"{folder}{_RECORD}")
    if data is None:
        return None
    try:
        again = str(json.loads(data)["again"])
    except DAMAGE:
        again = ""
    goes_on = "the same call finishes it"
    if again != RESTART:
        goes_on = "the same call with resume=True finishes it"
    return f"{goes_on}, and one with {again} begins again" if again else goes_on


def erase_record(node: StorePath) -> None:
    """Erase the record of a plan, so that it can't be resumed."""
    record_store, folder = beside(node)
    record_store.erase(f"{folder}{_RECORD}")


def erase_records(node: StorePath) -> None:
    """Erase all records of plans that write a node or its regions: stored values are erased."""
    erase_record(node)
    store, folder = beside(node)
    if store.capabilities.listable:
        store.erase_prefix(f"{folder}{_REGIONS}")


def erase_beside(node: StorePath, *, record_last: bool = False) -> None:
    """Erase the record of a plan, and then what it has stored between its passes.

    The documents of its arrays are erased before, as nothing would erase them if this is cut short.
    With `record_last`, everything else is erased before the record. A lease beside them stays: the
    writer that erases the record, or another one, may hold it.
    """
    store, folder = beside(node)
    store.erase(f"{folder}{_ARRAYS}")
    _erase_folder(store, folder, record_last=record_last)


def _erase_folder(store: Store, folder: str, *, record_last: bool) -> None:
    """Erase a record and all else in its directory, except for a lease."""
    record, lease = f"{folder}{_RECORD}", f"{folder}lease"
    if record_last and store.capabilities.listable:
        keys = store.list_prefix(folder)
        store.erase_values([key for key in keys if key not in (record, lease)])
    store.erase(record)
    if store.capabilities.listable and store.capabilities.compare_and_swap:
        store.erase_values([key for key in store.list_prefix(folder) if key != lease])
    elif store.capabilities.listable:
        store.erase_prefix(folder)


class Journal:
    """The record of a plan that writes a node: which tasks of each stage are done.

    Parameters
    ----------
    node : StorePath
        The node; the record stands beside it.
    plan : mapping of str to str
        The values that identify the plan, or digests of them, by the names that errors use.
    nodes : mapping of str to Metadata
        The nodes that the plan creates, by their paths.
    start_again : str
        The argument by which a user discards a record, for messages.
    region : str
        The name of the region that the plan writes, if it writes one of an array that exists: each
        region has a record of its own.

    Attributes
    ----------
    folder : str
        The prefix of the keys of the record, and of what is stored with it.
    nodes : dict of str to str
        The nodes of the plan, by their paths: "group", "array", or "written" for an array whose
        document is written next, or has been. Other arrays have no document yet.
    is_stored : bool
        Whether there may be a record in the store.
    recorded : dict of str to str
        The nodes of the interrupted plan, whichever it is; after `resume`.
    """

    def __init__(
        self,
        node: StorePath,
        plan: Fingerprint,
        nodes: Mapping[str, Metadata] = MappingProxyType({}),
        start_again: str = RESTART,
        region: str = "",
    ) -> None:
        self._start_again = start_again
        self._node, self._plan, self._is_of_region = node, dict(plan), bool(region)
        self._store, folder = beside(node)
        # Where changes appear together, an interrupted run leaves nothing.
        self._is_kept = not self._store.capabilities.bounded
        self.folder = f"{folder}{_REGIONS}{region}/" if region else folder
        self._key = f"{self.folder}{_RECORD}"
        self._arrays = {p: each for p, each in nodes.items() if isinstance(each, ArrayMetadata)}
        self._kinds = {path: "array" if path in self._arrays else "group" for path in nodes}
        self.nodes = self._kinds.copy()
        self.recorded = dict[str, str]()
        self._done: dict[int, set[int]] = {}
        self._stored, self.is_stored, self._is_described = monotonic(), self._is_kept, False

    def resume(
        self, *, overwrite: bool = False, restart: bool = False, stored: Metadata | None = None
    ) -> bool:
        """Read the record; return whether an earlier run of this plan was interrupted.

        A run of another plan raises an error, except with `overwrite` or `restart`, or
        if it has written `stored`: the metadata of the array at the root as it is stored now.
        """
        self._done, self.nodes = {}, self._kinds.copy()
        data = self._store.get(self._key)
        if data is None:
            return False
        try:
            record = json.loads(data)
            nodes = record.get("nodes", {})
            self.recorded = {normalise_path(path): kind for path, kind in nodes.items()}
            done = {stage: _numbers(runs) for stage, runs in enumerate(record["done"])}
            is_same = (record["version"], record["plan"]) == (_VERSION, self._plan)
            is_over = isinstance(stored, ArrayMetadata) and record.get("root") == _described(stored)
        except DAMAGE:
            record, is_same, is_over = {}, False, False
        if restart or (not is_same and (overwrite or is_over)):
            return False
        if not is_same:
            raise self._other_plan(record)
        self._done, self.nodes = done, self.nodes | self.recorded
        return True

    def _other_plan(self, record: Mapping[str, Any]) -> StoreError:
        """Return an error that names what differs between this plan and a recorded plan."""
        recorded, values = record.get("plan"), dict[str, str]()
        what = "; or its record is damaged"
        if record.get("version", _VERSION) != _VERSION:
            recorded, what = None, ", which another version of zarrdask began"
        if isinstance(recorded, dict) and recorded.keys() == self._plan.keys():
            differing = [name for name, value in self._plan.items() if recorded[name] != value]
            what = f" (what differs: {', '.join(differing)})"
            for name in differing[:1]:
                if not self._plan[name].startswith(_DIGEST):
                    values = {"found": self._plan[name], "expected": str(recorded[name])}
        return StoreError(
            f"another write was interrupted here{what}: repeat that write to finish it, or begin "
            f"again with {self._start_again}",
            key=f"{self._store.url}/{self._key}",
            **values,
        )

    def recorded_arrays(self) -> dict[str, Documents]:
        """Return the documents of the arrays of the interrupted plan, without attributes."""
        try:
            arrays = json.loads(self._store.get(f"{self.folder}{_ARRAYS}") or b"{}")
            return {
                normalise_path(path): {name: text.encode() for name, text in documents.items()}
                for path, documents in arrays.items()
            }
        except DAMAGE:
            return {}

    def done(self, stage: int) -> set[int]:
        """Return the numbers of the tasks of a stage that are done."""
        return self._done.setdefault(stage, set())

    @property
    def is_due(self) -> bool:
        """Whether the record was stored so long ago that it should be again."""
        return monotonic() - self._stored >= WRITE_INTERVAL

    @property
    def has_written_root(self) -> bool:
        """Whether the document of the array at the root is written next, or has been."""
        return self.nodes.get("") == "written"

    def write_root(self) -> None:
        """Record that the document of the array at the root is written next.

        Another document beside the record was written by another program.
        """
        self.nodes[""] = "written"
        self.store()

    def begin(self, *, resumed: bool) -> None:
        """Go on with a run that was killed, or store a new record instead of any other."""
        if resumed:
            self._node.tidy(recursive=True)
        else:
            self.erase()
            self.store()

    def erase(self) -> None:
        """Erase the record, and what else is stored about the rewrite.

        If the array at the root is written, the record comes last: a run that is killed before
        has nothing to do again.
        """
        if self.is_stored and self._is_of_region:
            _erase_folder(self._store, self.folder, record_last=True)
            _, folder = beside(self._node)
            if next(self._store.list_prefix(folder), None) is None:
                self._store.erase_prefix(folder)  # the directories, if no other region has a record
        elif self.is_stored:
            erase_beside(self._node, record_last=self.has_written_root)
        self.is_stored = self._is_described = False

    def store(self) -> None:
        """Store the record now."""
        if not self._is_kept:
            return
        stages = range(max(self._done, default=-1) + 1)
        record: dict[str, Any] = {
            "version": _VERSION,
            "plan": self._plan,
            "done": [list(_runs(sorted(self.done(stage)))) for stage in stages],
            "again": self._start_again,
        }
        if self.nodes:
            record["nodes"] = self.nodes
        if self.has_written_root:
            record["root"] = _described(self._arrays[""])
        values = {_RECORD: record}
        if self._arrays and not self._is_described:
            values[_ARRAYS] = {path: _described(each) for path, each in self._arrays.items()}
        self._store.set_many(
            (f"{self.folder}{name}", json.dumps(value).encode()) for name, value in values.items()
        )
        self.is_stored = self._is_described = True
        self._stored = monotonic()


def _described(metadata: ArrayMetadata) -> dict[str, str]:
    """Return the documents of an array without its attributes, which may be large."""
    documents = replace(metadata, attributes={}).render()
    return {name: value.decode() for name, value in documents.items() if value is not None}


def _numbers(runs: Iterable[tuple[int, int]]) -> set[int]:
    """Return the numbers in runs, as `_runs` yields them; ValueError if no plan has so many."""
    bounds = [(first, last + 1) for first, last in runs]
    if sum(max(end - first, 0) for first, end in bounds) > _MAX_TASKS:
        raise ValueError("too many tasks")
    return set(chain.from_iterable(range(first, end) for first, end in bounds))


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
