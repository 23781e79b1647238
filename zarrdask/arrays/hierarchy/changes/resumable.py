"""Writes that can be resumed: tasks record the blocks that they have stored."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.hierarchy.changes.array_record import ArrayRecord
from zarrdask.arrays.hierarchy.changes.journal import Fingerprint, Journal
from zarrdask.arrays.hierarchy.changes.new_array import LateArray, create_after_chunks
from zarrdask.arrays.hierarchy.changes.recorded import RecordedNodes
from zarrdask.arrays.hierarchy.changes.transaction import Change
from zarrdask.arrays.hierarchy.claim import claimed
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.formats.metadata.model import ArrayMetadata

_NO_ARRAY = "there is no array yet"
_GOES_ON = "the same call with resume=True writes the missing blocks"


def _not_begun(*, may_begin: bool) -> str:
    """Describe a write that has failed before its first block, maybe after its checks."""
    if may_begin:
        return "the write has not begun; a node that it replaces may be erased in part"
    return "the write has not begun, and nothing has changed"


class ResumableArray(Change):
    """A new array whose documents come last, and whose blocks are recorded when they are stored.

    It is committed in the process in which it has begun, which holds a lock until then.

    Parameters
    ----------
    node : NodePath
        The location of the array.
    view : NodePath
        The location as its hierarchy sees it.
    metadata : ArrayMetadata
        The metadata of the array.
    plan : mapping of str to str
        The values that identify the write, as in a `Journal`.
    overwrite : bool
        Whether a node that exists, or the rest of another write, is removed.
    restart : bool
        Whether what earlier runs have stored is discarded.

    Attributes
    ----------
    blocks : RecordedBlocks
        The blocks that are recorded; blocks of earlier runs are known when this one has begun.
    """

    def __init__(
        self,
        node: NodePath,
        view: NodePath,
        metadata: ArrayMetadata,
        plan: Fingerprint,
        *,
        overwrite: bool,
        restart: bool = False,
    ) -> None:
        self._node, self._view, self._metadata = node, view, metadata
        self._overwrite, self._restart = overwrite, restart
        written = ArrayRegion(view.chunks(metadata))
        self._record = ArrayRecord(node, written, plan, start_again="overwrite=True")
        self.blocks = self._record.blocks
        self._held = ExitStack()
        self._has_begun = self._may_begin = False

    @property
    def location(self) -> str:
        """The location of the array."""
        return self._node.location

    def begin(self) -> None:
        """Read what an earlier run has stored, or erase what is there and begin a record."""
        self._held.enter_context(self._record.lock())
        claim = self._claim = self._held.enter_context(claimed(self._node))
        nodes = RecordedNodes.prepare(
            self._node,
            {"": self._metadata},
            self._record.journal,
            overwrite=self._overwrite,
            restart=self._restart,
        )
        self._may_begin = True
        self.blocks.is_complete = nodes.is_written
        if not nodes.is_written:
            self._record.read_blocks(resumed=nodes.resumed)
            nodes.begin(claim)
        self._has_begun = True

    def commit(self) -> None:
        """Write the documents, and erase the record."""
        self._claim.check()
        self._record.remember()
        self._record.journal.write_root()
        is_again = self.blocks.is_complete
        located = self._node, self._view, self._metadata
        create_after_chunks(*located, is_recorded=True, is_again=is_again)
        self._record.journal.erase()
        self._held.close()

    def abort(self) -> str:
        """Describe how the write goes on."""
        self._held.close()
        if not self._has_begun:
            return _not_begun(may_begin=self._may_begin)
        is_late = self._record.journal.has_written_root
        state = "the array may be complete" if is_late else _NO_ARRAY
        return f"{state}; {_GOES_ON}, and one with overwrite=True begins again"


@dataclass
class RecordedArray(LateArray):
    """A new array of several that are written, and can be resumed, together."""

    has_record = True

    #: Whether a node that exists is removed.
    overwrites: bool = False
    #: Whether an earlier run may have written the documents.
    is_again: bool = field(default=False, init=False)

    def check(self, *, resumed: bool) -> None:
        """Check that there is no node, except one that is removed when the write begins."""
        self.node.check_creation(self.metadata, overwrite=self.overwrites and not resumed)

    def commit(self) -> None:
        """Write the documents; the record stays."""
        if self.claim is not None:
            self.claim.check()
        located = self.node, self.view, self.metadata
        create_after_chunks(*located, is_recorded=True, is_again=self.is_again)
        self.release()


class ResumableChanges(Change):
    """Changes of nodes that are resumed together: the changes of one call.

    The changes begin in the first run only, and may be committed twice. The first record says
    whether all values are stored; the others belong to other arrays.

    Parameters
    ----------
    node : NodePath
        The location of the node beside which the first record stands.
    changes : sequence of Change
        The changes, which make readers see the values when they are committed.
    records : sequence of ArrayRecord
        The records of the arrays.
    restart : bool
        Whether what earlier runs have stored is discarded.
    """

    def __init__(
        self,
        node: NodePath,
        changes: Sequence[Change],
        records: Sequence[ArrayRecord],
        *,
        restart: bool,
    ) -> None:
        self._node, self._changes, self._records = node, changes, records
        self._restart = restart
        self._held = ExitStack()
        self._has_begun = self._may_begin = False

    @property
    def location(self) -> str:
        """The location of the node beside which the first record stands."""
        return self._node.location

    @property
    def _new_arrays(self) -> list[RecordedArray]:
        return [change for change in self._changes if isinstance(change, RecordedArray)]

    @property
    def _first(self) -> Journal:
        return self._records[0].journal

    def begin(self) -> None:
        """Begin the changes and the records, or read what earlier runs have stored."""
        self._held.enter_context(self._records[0].lock())
        for change in self._changes:
            self._held.callback(change.release)
            change.exclude()
        if not self._restart and self._records[0].has_all_values():
            for new in self._new_arrays:
                new.is_again = True
            for record in self._records:
                record.tidy()
                record.blocks.is_complete = True
            self._has_begun = True
            return
        resumed = [record.resume(restart=self._restart) for record in self._records]
        for new in self._new_arrays:
            new.check(resumed=resumed[0])
        self._may_begin = True
        if not resumed[0]:
            for change in self._changes:
                change.begin()
        # The first record comes last: without it, the other ones count as none.
        for record, each in [*zip(self._records, resumed, strict=True)][::-1]:
            is_resumed = each and resumed[0]
            record.read_blocks(resumed=is_resumed)
            if is_resumed:
                record.tidy()
            else:
                record.journal.erase()
                record.journal.store()
        self._has_begun = True

    def commit(self) -> None:
        """Record that all values are stored, commit the changes, and erase the records."""
        for record in self._records:
            record.remember()
        self._first.write_root()
        for change in self._changes:
            change.commit()
        for record in reversed(self._records):
            record.journal.erase()
        self._held.close()

    def abort(self) -> str:
        """Describe how the write goes on."""
        self._held.close()
        if not self._has_begun:
            return _not_begun(may_begin=self._may_begin)
        return f"{_GOES_ON}, and one with resume='restart' begins again"
