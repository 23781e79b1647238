"""Whether an array is still the one that a dataset was opened with."""

from zarrdask.arrays.chunks.stored import StoredChunks
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import StoreError
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.storage.listing import key_stamp


def opened_version(chunks: StoredChunks) -> str:
    """Return a text that changes when the document of an array is written again.

    It is "" for stores that would need a request for it.
    """
    name = chunks.metadata.format.documents[0]
    return key_stamp(chunks.store, chunks.prefix + name)


def check_version(chunks: StoredChunks, version: str) -> None:
    """Check that chunks can be read with the metadata that an array had in some version.

    An array that was resized, or has other attributes, is the same. One that was replaced by
    another with other codecs, or a removed one, raises `StoreError`: its chunks would be missing,
    or decode to wrong values.
    """
    if not version or opened_version(chunks) == version:
        return
    opened, node = chunks.metadata, NodePath.of(chunks)
    stored = node.stored_metadata(opened.zarr_format)
    if not _is_same(stored, opened):
        raise StoreError(
            "this array was replaced or removed after the dataset was opened, so its chunks can't "
            "be read with the metadata of that time; open the dataset again",
            key=chunks.location,
        )


def _is_same(stored: object, opened: ArrayMetadata) -> bool:
    if not isinstance(stored, ArrayMetadata) or len(stored.shape) != len(opened.shape):
        return False
    return stored.resized(opened.shape).without_labels() == opened.without_labels()
