"""The record of a write to an array: what is written, and which blocks tasks have stored."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial

from zarrdask.arrays.chunks.region import ArrayRegion
from zarrdask.arrays.chunks.stored_keys import StoredUnits
from zarrdask.arrays.hierarchy.changes.block_log import (
    BlockLog,
    BlockRecord,
    Bounds,
    RecordedBlocks,
)
from zarrdask.arrays.hierarchy.changes.finished import is_finished, remember_finished
from zarrdask.arrays.hierarchy.changes.journal import Fingerprint, Journal, beside, digest
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import UnsupportedError
from zarrdask.formats.indexing.selection import whole_region

#: The directory of the values that tasks store, in the directory of the record.
_BLOCKS = "blocks/"


class ArrayRecord:
    """The record of a write to an array, beside the array.

    Parameters
    ----------
    node : NodePath
        The location of the array.
    written : ArrayRegion
        The region that is written, of the array as it is after the write.
    plan : mapping of str to str
        The values that identify the write, as in a `Journal`.
    start_again : str
        The argument by which a user discards a record, for messages.
    overwrite : bool, default False
        Whether the record of another plan is discarded.
    region : str
        The name of the region that is written, if it is one of an array that exists. Other writers
        may change it between two runs.

    Attributes
    ----------
    journal : Journal
        Says which plan is written, and whether all values are stored.
    blocks : RecordedBlocks
        The blocks that are stored; blocks of earlier runs are known after `read_blocks`.
    """

    def __init__(
        self,
        node: NodePath,
        written: ArrayRegion,
        plan: Fingerprint,
        *,
        start_again: str,
        overwrite: bool = False,
        region: str = "",
    ) -> None:
        store, _ = beside(node)
        if not store.capabilities.listable or store.capabilities.bounded:
            raise UnsupportedError(
                "a write to this store can't be resumed, as the record of what is stored can't be "
                "listed, or does not outlive the process; omit resume=True",
                key=node.location,
            )
        self._node, self._written, self._plan = node, written, plan
        self.start_again, self._overwrite = start_again, overwrite
        self._is_of_region = bool(region)
        self.journal = Journal(node, plan, {"": written.metadata}, start_again, region)
        blocks = f"{self.journal.folder}{_BLOCKS}{digest(plan)}/"
        self.blocks = RecordedBlocks(BlockLog(store, blocks))

    @property
    def is_finished(self) -> bool:
        """Whether an array that is complete is known to be as this plan has stored it."""
        return self._is_whole and is_finished(self._written.stored, self._plan)

    def remember(self) -> None:
        """Note that this run has stored all values, before readers see the array."""
        if self._is_whole and not self.blocks.is_complete:
            remember_finished(self._written.stored, self._plan)

    @property
    def _is_whole(self) -> bool:
        whole = whole_region(self._written.metadata.shape)
        return not self._is_of_region and self._written.region == whole

    def has_all_values(self) -> bool:
        """Whether an earlier run of this plan has stored all values."""
        return self.journal.resume(overwrite=True) and self.journal.has_written_root

    def resume(self, *, restart: bool) -> bool:
        """Return whether a run of this plan is resumed.

        A record of another plan raises an error, unless it is overwritten. With `restart`, no run
        is resumed, and the record is discarded.
        """
        stored = self._node.stored_metadata(self._written.metadata.zarr_format)
        return self.journal.resume(overwrite=self._overwrite, restart=restart, stored=stored)

    def lock(self) -> AbstractContextManager[object]:
        """Return the lock that one writer on this machine at a time holds for this record."""
        node = self._node
        if self._is_of_region:
            node = node.at(self.journal.folder.rstrip("/"))
        return node.lock("rewrite")

    def read_blocks(self, *, resumed: bool) -> None:
        """Read which blocks earlier runs have stored; if none is resumed, forget these blocks.

        Blocks of a region that another writer has changed since count as not stored.
        """
        has_chunks = resumed and next(StoredUnits(self._written.stored).indices(), None) is not None
        if not has_chunks:
            # The chunks of recorded blocks may have been removed, with or without the record of the
            # write.
            self.blocks.log.clear()
        if has_chunks:
            is_valid = self._unchanged() if self._is_of_region else None
            self.blocks.stored = self.blocks.log.merge(is_valid)

    def _unchanged(self) -> Callable[[Bounds, BlockRecord], bool] | None:
        """Return whether a block is unchanged since its record, by one listing; None without times.

        A unit that was stored after the record of its block was stored by another writer.
        """
        times = dict[str, float]()
        try:
            for _, each in StoredUnits(self._written.stored).objects():
                if each.modified is None:
                    return None
                times[each.key] = each.modified
        except UnsupportedError:
            return None
        return partial(_is_unchanged, self._written, times)


def _is_unchanged(
    written: ArrayRegion, times: Mapping[str, float], block: Bounds, record: BlockRecord
) -> bool:
    keys = written.keys(tuple(slice(start, stop, 1) for start, stop in block))
    modified = [times[key] for key in keys if key in times]
    latest = max(modified, default=0.0)
    return len(modified) == record.units and (record.time is None or latest <= record.time)
