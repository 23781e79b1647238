"""Metadata of v3 beside those of v2: the same chunks are an array of both formats then."""

from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.hierarchy.create import put_documents, write_consolidated
from zarrdask.hierarchy.path import join_path, key_prefix, node_location
from zarrdask.metadata import consolidated, detect, v2
from zarrdask.metadata.convert import convert, convert_group
from zarrdask.metadata.model import ArrayMetadata, Metadata
from zarrdask.rewrite.move import way_between
from zarrdask.rewrite.node_plan import CopiedArray, CopyReport, Selection, plan_copy
from zarrdask.storage.base import Store
from zarrdask.storage.consolidated import ConsolidatedStore, plain


def upgrade(
    store: Store, path: str, metadata: Metadata, *, select: Selection, skip: bool, remove: bool
) -> CopyReport:
    """Write metadata of v3 beside those of v2, and touch no chunk (conformance C-38).

    What is of v3 already stays as it is, so this can be done again when it was cut short. Groups
    are written after what is in them, the first at last.

    Parameters
    ----------
    store, path, metadata
        Of an array or a group.
    select : Selection
    skip : bool
        Whether what can't be described in v3 is passed over; it is an error otherwise.
    remove : bool
        Whether the documents of v2 are removed then.

    Raises
    ------
    UnsupportedError
        If v3 can't describe the chunks as they are. Nothing is written then.
    """
    found, skipped = plan_copy(store, path, metadata, _beside, select=select, skip=skip)
    real = plain(store)
    arrays = [node for node in found if isinstance(node.after, ArrayMetadata)]
    with real.batch():
        for node in reversed(found):
            if node.before.zarr_format == 2:
                below = join_path(path, node.path)
                put_documents(real, below, detect.render(node.after))
        if isinstance(store, ConsolidatedStore) and not isinstance(metadata, ArrayMetadata):
            write_consolidated(real, path, 3)
        if remove:
            for node in found:
                _remove(real, join_path(path, node.path))
    place = node_location(real, path)
    notes = [note for node in found if node not in arrays for note in node.notes]
    copied = tuple(CopiedArray(n.path, "metadata only", notes=n.notes) for n in arrays)
    groups = len(found) - len(arrays)
    return CopyReport(place, place, copied, groups, tuple(skipped), tuple(notes))


def _beside(found: Metadata) -> Metadata:
    """Return the metadata of v3 for a node of v2."""
    if found.zarr_format == 3:
        return found
    if found.zarr_format != 2:
        raise MetadataError(
            "only nodes of v2 can become v3 where they are",
            key="in_place",
            found=found.zarr_format,
            expected="a copy at another place",
        )
    if not isinstance(found, ArrayMetadata):
        return convert_group(found, 3)
    # The encoding of v2 is one of v3's, of the same name.
    after = convert(found, zarr_format=3, chunk_key_encoding=found.keys)
    if way_between(found, after) != "units":
        raise UnsupportedError(
            "v3 can't describe these chunks as they are; they have to be copied",
            key="in_place",
            found=[codec.name for codec in found.codecs],
        )
    return after


def _remove(store: Store, path: str) -> None:
    store.erase_values([key_prefix(path) + n for n in (*v2.NAMES, consolidated.KEY)])
