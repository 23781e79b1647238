"""A new array whose write can be resumed: tasks record the blocks that they have stored."""

from contextlib import ExitStack

from zarrdask.chunks.inventory import stored_units
from zarrdask.errors import UnsupportedError
from zarrdask.hierarchy.block_log import BlockLog, RecordedBlocks
from zarrdask.hierarchy.journal import Journal, beside
from zarrdask.hierarchy.new_array import create_after_chunks
from zarrdask.hierarchy.node_path import NodePath
from zarrdask.hierarchy.recorded import RecordedNodes
from zarrdask.hierarchy.transaction import Change
from zarrdask.metadata.model import ArrayMetadata, Metadata

#: The directory of the values of tasks, in that of the record.
_BLOCKS = "blocks/"
_NO_ARRAY = "there is no array yet"
_GOES_ON = (
    "the same call with resume=True writes the missing blocks, and one with overwrite=True begins "
    "again"
)


class ResumableArray(Change):
    """A new array whose documents come last, and whose blocks are recorded when they are stored.

    It is committed in the process in which it has begun, which holds a lock meanwhile.

    Parameters
    ----------
    node : NodePath
        The location of the array.
    view : NodePath
        The location as its hierarchy sees it.
    metadata : ArrayMetadata
        The metadata of the array.
    plan : str
        An identifier of what is written, which differs from those of other writes.
    overwrite : bool
        Whether a node that exists, or the rest of another write, is removed.

    Attributes
    ----------
    blocks : RecordedBlocks
        The blocks that are recorded; those of earlier runs are known when this one has begun.
    """

    def __init__(
        self, node: NodePath, view: NodePath, metadata: ArrayMetadata, plan: str, *, overwrite: bool
    ) -> None:
        self._node, self._view, self._overwrite = node, view, overwrite
        self._metadata = metadata
        self._journal = Journal(node, plan, self._nodes, start_again="overwrite=True")
        self._held = ExitStack()
        self._has_begun = False
        store, prefix = beside(node)
        if not store.capabilities.listable or store.capabilities.bounded:
            raise UnsupportedError(
                "a write to this store can't be resumed, as the record of what is stored can't be "
                "listed, or does not outlive the process; omit resume=True",
                key=node.location,
            )
        self.blocks = RecordedBlocks(BlockLog(store, f"{prefix}{_BLOCKS}{plan}/"))

    @property
    def location(self) -> str:
        """The location of the array."""
        return self._node.location

    @property
    def _nodes(self) -> dict[str, Metadata]:
        return {"": self._metadata}

    def begin(self) -> None:
        """Read what an earlier run has stored, or erase what is there and begin a record."""
        self._held.enter_context(self._node.lock("rewrite"))
        nodes = RecordedNodes.prepare(
            self._node, self._nodes, self._journal, overwrite=self._overwrite
        )
        self._has_begun = self.blocks.is_complete = nodes.is_written
        if nodes.is_written:
            return
        chunks = self._view.chunks(self._metadata)
        has_chunks = nodes.resumed and next(stored_units(chunks), None) is not None
        if not has_chunks:
            # Blocks may be recorded whose chunks were removed, also with the record of the write.
            self.blocks.log.clear()
        nodes.begin()
        self._has_begun = True
        if has_chunks:
            self.blocks.stored = self.blocks.log.merge()

    def commit(self) -> None:
        """Write the documents, and erase the record."""
        self._journal.write_root()
        create_after_chunks(self._node, self._view, self._metadata, is_recorded=True)
        self._journal.erase()
        self._held.close()

    def abort(self) -> str:
        """Describe how the write goes on."""
        self._held.close()
        if not self._has_begun:
            return "the write has not begun; a node that it was to replace may be erased in part"
        state = "the array may be complete" if self._journal.has_written_root else _NO_ARRAY
        return f"{state}; {_GOES_ON}"
