"""A new array whose write can be resumed: tasks record the blocks that they have stored."""

from contextlib import ExitStack

from zarrdask.chunks.inventory import stored_units
from zarrdask.errors import UnsupportedError
from zarrdask.hierarchy.block_log import BlockLog, Bounds
from zarrdask.hierarchy.journal import Journal, beside
from zarrdask.hierarchy.node_path import NodePath
from zarrdask.hierarchy.recorded import RecordedNodes, last_document
from zarrdask.hierarchy.transaction import Change
from zarrdask.metadata.model import ArrayMetadata, Metadata

#: The directory of the values of tasks, in that of the record.
_BLOCKS = "blocks/"


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
    log : BlockLog
        The place where tasks record blocks.
    stored : set of tuple
        The bounds of the blocks that an earlier run has stored, when this one has begun.
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
        self.log = BlockLog(store, f"{prefix}{_BLOCKS}{plan}/")
        self.stored = set[Bounds]()

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
        chunks = self._view.chunks(self._metadata)
        has_chunks = nodes.resumed and next(stored_units(chunks), None) is not None
        if not has_chunks:
            # Blocks may be recorded whose chunks were removed, also with the record of the write.
            self.log.clear()
        nodes.begin()
        self._has_begun = True
        if has_chunks:
            self.stored = self.log.merge()

    def commit(self) -> None:
        """Erase the record, and write the documents."""
        # The many values of tasks go before the record: a process that is killed meanwhile has
        # nothing to compute again. Between record and document there are two requests then.
        self.log.merge()
        with last_document(self._journal, self._view):
            self._node.create(self._metadata, overwrite=False)
        self._held.close()

    def abort(self) -> str:
        """Describe how the write goes on."""
        self._held.close()
        if not self._has_begun:
            return "the write has not begun; a node that it was to replace may be erased in part"
        if not self._journal.is_stored:
            return "the write ended with its last document; check whether it is there"
        return (
            "there is no array yet; the same call with resume=True writes the missing blocks, and "
            "one with overwrite=True begins again"
        )
