"""Rewrites as changes of a transaction: they record finished tasks, so that they can be resumed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import TypeVar

from zarrdask import config
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.chunks.stored_keys import StoredUnits
from zarrdask.arrays.hierarchy.changes.append import AppendedArray, AppendGuard
from zarrdask.arrays.hierarchy.changes.journal import Fingerprint, Journal
from zarrdask.arrays.hierarchy.changes.recorded import RecordedNodes
from zarrdask.arrays.hierarchy.changes.transaction import Change, transaction
from zarrdask.arrays.hierarchy.claim import Claim, claimed
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.resize import check_shape
from zarrdask.arrays.nodes.array import Array
from zarrdask.errors import StoreError
from zarrdask.formats.metadata.model import Metadata
from zarrdask.parallel.execution.executor import Workers, run
from zarrdask.parallel.execution.forks import TaskStores
from zarrdask.parallel.execution.locks import shape_lock
from zarrdask.parallel.rewrite.destination import Destination
from zarrdask.storage.concurrent_requests import request_on_each

T = TypeVar("T")
R = TypeVar("R")


@dataclass
class Rewrite(Change):
    """A rewrite of nodes, whose tasks are recorded when they are done."""

    #: The target, as its hierarchy sees it.
    view: NodePath
    journal: Journal
    #: Whether an interrupted earlier run is resumed now.
    resumed: bool
    #: Prepares the target, stores the record, and returns the target as its hierarchy sees it then.
    prepare: Callable[[], NodePath]
    #: The claim of new nodes.
    claim: Claim[NodePath] | None = field(default=None, kw_only=True)
    #: The condition on which chunks are stored in an array that grows.
    guard: AppendGuard | None = field(default=None, kw_only=True)
    #: The append of an array that grows, if its shape comes first.
    early: AppendedArray | None = field(default=None, kw_only=True)
    #: The array at the root, once its document is written.
    array: Array | None = field(default=None, init=False)
    #: The steps after all documents are written, which are repeated if the rewrite is interrupted
    #: then.
    completions: list[Callable[[], None]] = field(default_factory=list, init=False)
    #: The arrays whose chunks are all stored, and whose documents are not.
    _stored: dict[str, Destination] = field(default_factory=dict, init=False)
    #: The stores of tasks, and the chunks of arrays in them.
    _stores: TaskStores | None = field(default=None, init=False)
    _written: dict[str, StoredChunks] = field(default_factory=dict, init=False)
    _has_begun: bool = field(default=False, init=False)

    @property
    def location(self) -> str:
        """The location of the target."""
        return self.view.location

    @property
    def _is_early(self) -> bool:
        """Whether documents are written before chunks, as the store's changes appear together."""
        return self.view.store.capabilities.bounded

    def begin(self) -> None:
        """Prepare the target, and store the record."""
        config.check()  # The target may be erased, which an error later could not undo.
        self.view = self.prepare()
        self._has_begun = True

    def has_written(self, below: str, target: Destination) -> bool:
        """Return whether an earlier run has written the document of an array below the root.

        An error is raised if another program has created a node there.
        """
        if self._is_early or not target.view.has_document():
            return False
        metadata = target.metadata
        stored = target.view.stored_metadata(metadata.zarr_format)
        is_ours = self.journal.nodes[below] == "written"
        if not is_ours or stored is None or stored.render() != metadata.render():
            raise target.view.exists_error()
        return True

    def has_lost(self, target: Destination) -> bool:
        """Return whether nothing is stored of an array: another process may have removed it."""
        is_listed = self.resumed and target.view.store.capabilities.listable
        return is_listed and next(StoredUnits(target.chunks).indices(), None) is None

    def chunks(self, below: str, target: Destination, on: Workers) -> StoredChunks:
        """Return the chunks of an array as tasks change them."""
        if self._stores is None:
            is_digested = config.get("manifests")
            self._stores = TaskStores(is_forked=on.are_elsewhere, is_digested=is_digested)
        self._written[below] = self._stores.chunks(target.chunks)
        return self._written[below]

    def keep_manifests(self, arrays: Mapping[str, Destination], *, are_new: bool) -> None:
        """Note in the manifests of arrays what tasks have stored, if the setting says so."""

        def keep(below: str) -> None:
            target = arrays[below]
            is_whole = are_new and target.along is None and not self.resumed
            target.view.current.keep_manifest(self._written[below], is_whole=is_whole)

        request_on_each(self.view.store, keep, arrays.keys() & self._written.keys())

    def remaining(self, stage: int, count: int) -> list[int]:
        """Return the numbers of the tasks of a stage that are not done, of `count` tasks."""
        done = self.journal.done(stage)
        return [number for number in range(count) if number not in done]

    def run(
        self,
        stage: int,
        task: Callable[[T], R],
        items: Sequence[T],
        finished: Callable[[int, R], None],
        on: Workers,
        name: Callable[[T], str],
    ) -> None:
        """Run a task for each item of a stage, without those that are done.

        `finished` is called in this process after each task, with the number of the item and the
        result. `name` returns the name of the task for an item.
        """
        numbers = self.remaining(stage, len(items))

        def end(position: int, result: R) -> None:
            number = numbers[position]
            self.finish(stage, number)
            finished(number, result)

        run(task, [items[number] for number in numbers], on=on, finished=end, name=name)

    def finish(self, stage: int, task: int) -> None:
        """Note that a task is done: it is recorded soon."""
        self.journal.done(stage).add(task)
        self._keep()

    def add(self, below: str, target: Destination) -> None:
        """Note that all chunks of an array are stored: its document is written soon.

        The document of an array at the root is written by `commit`.
        """
        self._stored[below] = target
        if below:
            self._keep()

    def _keep(self) -> None:
        """From time to time, store the record, and write the documents."""
        if not self.journal.is_due:
            return
        if self._stored:
            self.write_documents()
        else:
            self._check_claim()
            self.journal.store()

    def _check_claim(self) -> None:
        """Check that the target was not removed: a record would say that its tasks are done."""
        if self.claim is not None:
            self.claim.check()

    def write_documents(self) -> None:
        """Write the documents of all arrays whose chunks are stored.

        The arrays are recorded before, so a document that is not recorded was written by another
        program.
        """
        if not self._stored:
            return
        self._check_claim()
        arrays, self._stored = self._stored, {}
        if (root := arrays.pop("", None)) is not None:
            is_again = self.journal.has_written_root
            self.journal.write_root()
            self.array = root.commit(is_again=is_again)
            self.keep_manifests({"": root}, are_new=True)
        if arrays and not self._is_early:
            self.journal.nodes.update(dict.fromkeys(arrays, "written"))
            self.journal.store()
            members = {below: target.metadata for below, target in arrays.items()}
            self.view.create_members(members, has_chunks=True, is_again=False)
            self.keep_manifests(arrays, are_new=True)

    def commit(self) -> None:
        """Write the last documents, complete what depends on them, and erase the record."""
        self.write_documents()
        for complete in self.completions:
            complete()
        self.journal.erase()

    def abort(self) -> str:
        """Record the finished tasks, unless the target was removed, and describe how to resume."""
        if self.early is not None:
            return self.early.abort()
        if not self._has_begun:
            return "the rewrite has not begun; a node that it replaces may be erased in part"
        try:
            self._check_claim()
        except StoreError:
            return "the target was removed while it was written; write it again"
        self.journal.store()
        self.write_documents()
        if self.array is not None:
            return "the array is complete; the same call erases the record of the rewrite"
        if self._is_early:
            return "the new nodes are incomplete; write them again with overwrite=True"
        return "the rewrite is incomplete; the same call resumes it, and restart=True begins again"


@contextmanager
def rewriting(
    node: NodePath,
    nodes: Mapping[str, Metadata],
    plan: Fingerprint,
    *,
    overwrite: bool,
    restart: bool,
) -> Iterator[Rewrite]:
    """Begin to write nodes at and below a path, or go on with an earlier run of the same plan.

    An error is raised if there is an array already. The arrays are written in the block.
    """
    with node.lock("rewrite"), claimed(node) as claim, node.store.batch():
        new = RecordedNodes.prepare(
            node, nodes, Journal(node, plan, nodes), overwrite=overwrite, restart=restart
        )
        prepare = partial(new.begin, claim)
        rewrite = Rewrite(new.view, new.journal, new.resumed, prepare, claim=claim)
        with transaction([rewrite]):
            yield rewrite


@contextmanager
def rewriting_array(
    target: Destination, plan: Fingerprint, *, overwrite: bool, restart: bool
) -> Iterator[Rewrite]:
    """Begin to write an array, or to append to one, or go on with an earlier run of the plan."""
    node, options = target.node, {"overwrite": overwrite, "restart": restart}
    if target.along is None:
        with rewriting(node, {"": target.metadata}, plan, **options) as rewrite:
            yield rewrite
        return
    with shape_lock(node) as lease, node.store.batch():
        journal = Journal(node, plan, {"": target.metadata})
        stored = node.stored_metadata(target.metadata.zarr_format)
        resumed = journal.resume(**options, stored=stored)
        metadata = check_shape(stored, (target.old_shape,), node.location)
        shape, early = metadata.shape, None
        if node.store.capabilities.bounded:
            shape = target.metadata.shape
            early = AppendedArray(node, target.chunks, target.old_shape)
        guard = AppendGuard(node, metadata.zarr_format, shape, lease)

        def prepare() -> NodePath:
            if early is not None:
                early.commit()
            journal.begin(resumed=resumed)
            return node

        rewrite = Rewrite(node, journal, resumed, prepare, guard=guard, early=early)
        with transaction([rewrite]):
            yield rewrite


def digest_of_parts(parts: Iterable[bytes]) -> bytes:
    """Return the hash of many values together, which need not be in memory at the same time."""
    joined = sha256()
    for part in parts:
        joined.update(part)
    return joined.digest()
