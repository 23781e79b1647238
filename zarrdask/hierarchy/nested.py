"""Nested v2 arrays of old writers, whose documents do not say that they are."""

from dataclasses import replace

from zarrdask import config
from zarrdask.compliance import report_deviation
from zarrdask.grids.keys import ChunkKeys
from zarrdask.metadata.json import Documents
from zarrdask.metadata.model import ArrayMetadata, Metadata
from zarrdask.storage.base import Store

_NESTED = ChunkKeys("v2", "/")


def as_stored(store: Store, prefix: str, documents: Documents, metadata: Metadata) -> Metadata:
    """Return a v2 node's metadata with the separator that the chunks have (conformance X-A1).

    Without ``dimension_separator`` it is ".". Where ``zarrdask.v2-nested-legacy`` is set and the
    first chunk is not there, but it is with "/", it is that.

    Parameters
    ----------
    prefix : str
        Of the array's keys.
    documents : mapping
        What the metadata was parsed from.

    Raises
    ------
    MetadataError
        If it is "/", in strict mode.
    """
    if not isinstance(metadata, ArrayMetadata) or len(metadata.shape) < 2:
        return metadata
    said = b'"dimension_separator"' in (documents[".zarray"] or b"")
    if said or not config.get("v2-nested-legacy"):
        return metadata
    first = (0,) * len(metadata.shape)
    flat, nested = (prefix + keys.key(first) for keys in (metadata.keys, _NESTED))
    if store.get_range(flat, 0, 1) is not None or store.get_range(nested, 0, 1) is None:
        return metadata
    report_deviation(
        "X-A1",
        "chunks are nested, which the document does not say",
        key="dimension_separator",
        expected="'/'",
    )
    return replace(metadata, keys=_NESTED)
