"""Erase a region of an array, and exclude appends where its last chunks or shards are concerned."""

from zarrdask.arrays.chunks.erase import covered_units, erase_region
from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.hierarchy.changes.journal import erase_records
from zarrdask.arrays.hierarchy.changes.node_locks import exclusive
from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.arrays.hierarchy.resize import refreshed
from zarrdask.errors import StoreError
from zarrdask.formats.indexing.selection import Region, region_shape


def erase_elements(node: StorePath, chunks: StoredChunks, region: Region) -> None:
    """Set the elements of a region to the fill value.

    A unit that extends beyond the end of the array may hold elements of an unfinished append.
    """
    with node.store.batch():
        if 0 in region_shape(region) or not _reaches_beyond(chunks, region):
            erase_region(chunks, region)
            return
        with exclusive(node, "shape"):
            current = refreshed(node, chunks)
            shape = current.metadata.shape
            if len(shape) != len(region):
                raise StoreError(
                    "another writer replaced the array by one with another number of axes",
                    key=current.location,
                    found=shape,
                    expected=f"{len(region)} axes",
                )
            region = tuple(
                slice(min(pick.start, n), min(pick.stop, n), 1)
                for pick, n in zip(region, shape, strict=True)
            )
            # An append that was interrupted must not rely on what it has stored in these units.
            erase_records(node.current)
            erase_region(current, region, beyond="fill")


def _reaches_beyond(chunks: StoredChunks, region: Region) -> bool:
    """Whether the region covers units that extend beyond the end of the array."""
    return covered_units(chunks, region, "fill") != covered_units(chunks, region, "keep")
