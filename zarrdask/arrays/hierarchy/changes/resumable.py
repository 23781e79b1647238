"""Writes that can be resumed: tasks record the blocks that they have stored."""

from collections.abc import Sequence
from contextlib import ExitStack

from zarrdask.arrays.hierarchy.changes.array_record import ArrayRecord
from zarrdask.arrays.hierarchy.changes.new_array import LateArray
from zarrdask.arrays.hierarchy.changes.transaction import Change
from zarrdask.arrays.hierarchy.node_path import NodePath

_GOES_ON = "the same call with resume=True writes the missing blocks"


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
    def _new_arrays(self) -> list[LateArray]:
        return [change for change in self._changes if isinstance(change, LateArray)]

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
                record.journal.begin(resumed=True)
                record.blocks.is_complete = True
            self._has_begun = True
            return
        resumed = [record.resume(restart=self._restart) for record in self._records]
        for new in self._new_arrays:
            new.node.check_creation(new.metadata, overwrite=new.overwrites and not resumed[0])
        self._may_begin = True
        if not resumed[0]:
            for change in self._changes:
                change.begin()
        # The first record comes last: without it, the other ones count as none.
        for record, each in [*zip(self._records, resumed, strict=True)][::-1]:
            is_resumed = each and resumed[0]
            record.read_blocks(resumed=is_resumed)
            record.journal.begin(resumed=is_resumed)
        self._has_begun = True

    def commit(self) -> None:
        """Record that all values are stored, commit the changes, and erase the records."""
        for new in self._new_arrays:
            new.check_claim()
        for record in self._records:
            record.remember()
        self._records[0].journal.write_root()
        for change in self._changes:
            change.commit()
        for record in reversed(self._records):
            record.journal.erase()
        self._held.close()

    def abort(self) -> str:
        """Describe how the write is resumed."""
        self._held.close()
        if self._has_begun:
            return f"{_GOES_ON}, and one with {self._records[0].start_again} begins again"
        if self._may_begin:
            return "the write has not begun; a node that it replaces may be erased in part"
        return "the write has not begun, and nothing has changed"
