"""The array that a write finds when it is computed, which may be much later than requested."""

from dataclasses import dataclass

from zarrdask.arrays.cancellation import write_named
from zarrdask.arrays.chunks.write import Beyond
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.resize import existing_array
from zarrdask.arrays.nodes.replaced import has_same_chunks
from zarrdask.errors import StoreError
from zarrdask.formats.grids.chunk_grid import Shape
from zarrdask.formats.indexing.selection import Region
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.runtime.system import clock

#: How long a process does not look for an array again if that costs a request. Only the process
#: that runs the last task of a write knows when a computation has ended.
_TRUSTED_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ExpectedArray:
    """The array that the tasks of a write expect where they store chunks.

    Attributes
    ----------
    node : NodePath
        The array.
    metadata : ArrayMetadata
        Its metadata when the write was requested.
    region : Region
        The region that is written.
    beyond : {"keep", "fill"}
        What becomes of elements beyond the end of the array; see `write_region`.
    write : str
        The unique name of the write.
    """

    node: NodePath
    metadata: ArrayMetadata
    region: Region
    beyond: Beyond
    write: str

    def check(self) -> bool:
        """Check that the array is still there, has the region, and encodes chunks in the same way.

        Each process requests the documents once in `_TRUSTED_SECONDS` where that has latency, and
        reads them again on a local disk when they have changed. Return False: chunks are stored,
        and not compared.

        Raises
        ------
        NodeNotFoundError
            If the array was removed.
        StoreError
            If it was replaced or resized, so that the write would damage it or lose elements.
        """
        node, metadata = self.node.current, self.metadata
        stamp = node.version_stamp(metadata.format.node_documents)
        write = write_named(self.write)
        is_recent = stamp or (
            not node.store.capabilities.costs.checks
            and clock() - write.compared_at < _TRUSTED_SECONDS
        )
        if write.compared == stamp and is_recent:
            return False
        now = clock()
        stored = existing_array(node.stored_metadata(metadata.zarr_format), node.location)
        if not has_same_chunks(metadata, stored):
            raise StoreError(
                "the array was replaced after this write was requested, and its chunks are encoded "
                "in another way now: nothing more is written; request the write again",
                key=node.location,
            )
        if not self._fits(stored.shape):
            raise StoreError(
                "the array was resized after this write was requested: nothing more is written; "
                "request the write again",
                key=node.location,
                found=stored.shape,
                expected=f"{metadata.shape}",
            )
        write.compared, write.compared_at = stamp, now
        return False

    def _fits(self, shape: Shape) -> bool:
        """Whether the write stores its region, and nothing else, in an array of a shape."""
        if self.beyond == "fill":
            # Chunks at the end of the array would lose what was appended.
            return shape == self.metadata.shape
        lasts = [range(pick.start, pick.stop, pick.step or 1)[-1:] for pick in self.region]
        return all(not last or last[0] < n for last, n in zip(lasts, shape, strict=True))

    def forget(self) -> None:
        """Let the next computation compare the array again: this one has ended."""
        write_named(self.write).compared = None
