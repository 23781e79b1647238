"""Arrays of v2 whose chunks are nested in directories, though their documents do not say so."""

from dataclasses import replace

from zarrdask import config
from zarrdask.compliance import report_deviation
from zarrdask.grids.keys import ChunkKeys
from zarrdask.metadata.json import Documents
from zarrdask.metadata.model import ArrayMetadata, Metadata
from zarrdask.storage.base import Store

#: The keys of nested chunks, such as "0/1".
_NESTED = ChunkKeys("v2", "/")


def with_stored_separator(
    store: Store, prefix: str, documents: Documents, metadata: Metadata
) -> Metadata:
    """Return a v2 node's metadata with the separator that its stored chunks have (X-A1).

    Old writers left out ``dimension_separator``, which then means ".". If
    ``zarrdask.v2-nested-legacy`` is set and the first chunk is stored under its key with "/" but
    not under its key with ".", the separator is "/".

    Parameters
    ----------
    store : Store
    prefix : str
        The prefix of the node's keys: "" or ends with "/".
    documents : mapping of str to (bytes or None)
        The documents from which the metadata was parsed, by name.
    metadata : Metadata
        The node as its documents describe it.

    Raises
    ------
    MetadataError
        If the separator is "/", in strict mode.
    """
    if not isinstance(metadata, ArrayMetadata) or len(metadata.shape) < 2:
        return metadata
    is_explicit = b'"dimension_separator"' in (documents[".zarray"] or b"")
    if is_explicit or not config.get("v2-nested-legacy"):
        return metadata
    first_chunk = (0,) * len(metadata.shape)
    flat, nested = (prefix + keys.key(first_chunk) for keys in (metadata.keys, _NESTED))
    if store.get_range(flat, 0, 1) is not None or store.get_range(nested, 0, 1) is None:
        return metadata
    report_deviation(
        "X-A1",
        "the chunks are nested, which the document does not say",
        key="dimension_separator",
        expected="'/'",
    )
    return replace(metadata, keys=_NESTED)
