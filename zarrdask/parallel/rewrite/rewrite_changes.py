"""Rewrites as changes of a transaction: they record what is done, so that they can be resumed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from zarrdask.arrays.chunks.stored_keys import stored_units
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
from zarrdask.parallel.execution.locks import shape_lock
from zarrdask.parallel.rewrite.destination import Destination

T = TypeVar("T")
R = TypeVar("R")


@dataclass
class Rewrite(Change):
    """A rewrite of nodes, whose tasks are recorded when they are done."""

    #: The target, as its hierarchy sees it.
    view: NodePath
    journal: Journal
    #: Whether an earlier run was interrupted, and goes on now.
    resumed: bool
    #: The condition on which chunks are stored in an array that grows.
    guard: AppendGuard | None = field(default=None, kw_only=True)
    #: The array at the root, once its document is written.
    array: Array | None = field(default=None, init=False)
    #: What is done when all documents are written, and again if the rewrite is interrupted then.
    completions: list[Callable[[], None]] = field(default_factory=list, init=False)
    #: The arrays whose chunks are all stored, and whose documents are not.
    _stored: dict[str, Destination] = field(default_factory=dict, init=False)
    _has_begun: bool = field(default=False, init=False)

    @property
    def location(self) -> str:
        """The location of the target."""
        return self.view.location

    @property
    def _is_early(self) -> bool:
        """Whether documents are written before chunks, as the store's changes appear together."""
        return self.view.store.capabilities.bounded

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
        return is_listed and next(stored_units(target.chunks), None) is None

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

        That of an array at the root is written by `commit`.
        """
        self._stored[below] = target
        if below:
            self._keep()

    def _keep(self) -> None:
        """From time to time, store the record, and write the documents."""
        if self.journal.is_due and self._stored:
            self.write_documents()
        elif self.journal.is_due:
            self.journal.store()

    def write_documents(self) -> None:
        """Write the documents of all arrays whose chunks are stored.

        The arrays are recorded before, so a document that is not recorded was written by another
        program.
        """
        arrays, self._stored = self._stored, {}
        if (root := arrays.pop("", None)) is not None:
            is_again = self.journal.has_written_root
            self.journal.write_root()
            self.array = root.commit(is_again=is_again)
        if arrays and not self._is_early:
            self.journal.nodes.update(dict.fromkeys(arrays, "written"))
            self.journal.store()
            members = {below: target.metadata for below, target in arrays.items()}
            self.view.create_members(members, has_chunks=True, is_again=False)

    def commit(self) -> None:
        """Write the last documents, complete what depends on them, and erase the record."""
        self.write_documents()
        for complete in self.completions:
            complete()
        self.journal.erase()

    def abort(self) -> str:
        """Record what is done, and describe how the rewrite goes on."""
        if not self._has_begun:
            return "the rewrite has not begun; a node that it replaces may be erased in part"
        self.journal.store()
        self.write_documents()
        if self.array is not None:
            return "the array is complete, and only the record of the rewrite is left"
        if self._is_early:
            return "the new nodes are incomplete; write them again with overwrite=True"
        return "the rewrite is incomplete; the same call resumes it, and restart=True begins again"


@dataclass
class NewNodes(Rewrite):
    """A rewrite to new nodes: the groups are written first, each array when it is complete."""

    nodes: RecordedNodes
    claim: Claim[NodePath]

    def begin(self) -> None:
        """Remove old nodes or the rest of another run; store the record and the groups."""
        self.nodes.begin(self.claim)
        self.view = self.nodes.view
        self._has_begun = True

    def _keep(self) -> None:
        # If the target was removed, a record would say that its tasks are done.
        if self.journal.is_due:
            self.claim.check()
        super()._keep()

    def abort(self) -> str:
        """Record what is done, unless the target was removed, and describe how to go on."""
        if self._has_begun:
            try:
                self.claim.check()
            except StoreError:
                return "the target was removed while it was written; write it again"
        return super().abort()

    def write_documents(self) -> None:
        """Write the documents of all arrays whose chunks are stored, if the claim is held."""
        if self._stored:
            self.claim.check()
        super().write_documents()


@dataclass
class LongerArray(Rewrite):
    """A rewrite that appends to an array."""

    target: Destination

    def begin(self) -> None:
        """Store the record, and the new shape where it must come first."""
        if self._is_early:
            self._appended.commit()
        if self.resumed:
            self.view.tidy(recursive=True)
        else:
            self.journal.erase()
            self.journal.store()
        self._has_begun = True

    def abort(self) -> str:
        """Record what is done; without a record, erase what was appended."""
        return self._appended.abort() if self._is_early else super().abort()

    @property
    def _appended(self) -> AppendedArray:
        target = self.target
        return AppendedArray(target.node, target.chunks, target.old_shape)


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
        rewrite = NewNodes(new.view, new.journal, new.resumed, new, claim)
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
        shape = target.metadata.shape if node.store.capabilities.bounded else metadata.shape
        guard = AppendGuard(node, metadata.zarr_format, shape, lease)
        longer = LongerArray(node, journal, resumed, target, guard=guard)
        with transaction([longer]):
            yield longer
