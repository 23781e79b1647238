"""The format of the groups above a new node, which the node should have, too.

Readers list the nodes of one format only, that of the group: others below it are invisible to them.
"""

from collections.abc import Sequence

from zarrdask import config
from zarrdask.arrays.hierarchy import draft
from zarrdask.arrays.hierarchy.find import read_documents
from zarrdask.arrays.hierarchy.path import StorePath, ancestors
from zarrdask.errors import MetadataError
from zarrdask.formats.metadata.draft.entry import KEY, EntryPoint
from zarrdask.formats.metadata.formats import find_format, formats
from zarrdask.formats.metadata.json import Documents
from zarrdask.formats.metadata.model import Metadata, ZarrFormat
from zarrdask.storage.zarr.detect import ANY


def format_above(node: StorePath) -> ZarrFormat | None:
    """Return the format of the nearest group above a node in its store; None if there is none."""
    if node.layout.zarr_format is not None:
        return node.layout.zarr_format
    if not node.path:
        return None
    store = node.current.store
    return nearest_format(
        node.current.parents, read_documents(store, ancestors(node.path), ANY.rounds(store))
    )


def nearest_format(above: Sequence[StorePath], documents: Sequence[Documents]) -> ZarrFormat | None:
    """Return the format of the last of some nodes that has documents; None if there is none."""
    for node, own in reversed([*zip(above, documents, strict=True)]):
        entry = own.get(KEY)
        if entry is not None and EntryPoint.is_in(entry):
            return draft.enter(node, entry).layout.zarr_format
        for form in formats():
            if any(own.get(name) is not None for name in form.node_documents):
                return form.version
    return None


def format_of_new(node: StorePath, chosen: ZarrFormat | None) -> ZarrFormat:
    """Return the format of a new node: the chosen one, else that of the groups above it, else 3."""
    if chosen is None:
        chosen = format_above(node)
    return 3 if chosen is None else chosen


def check_visible_in(
    node: StorePath, metadata: Metadata, above: Sequence[StorePath], documents: Sequence[Documents]
) -> None:
    """Check that readers of the groups above a new node see it, as these have the same format."""
    group = nearest_format(above, documents)
    if group in (None, metadata.zarr_format) or config.get("mixed-formats"):
        return
    title = find_format(metadata.zarr_format).title
    raise MetadataError(
        f"zarr-python, xarray and other readers of this {find_format(group).title} hierarchy would "
        f"not see a {title} node in it; leave zarr_format out, write elsewhere, or set "
        "zarrdask.mixed-formats to True",
        key=node.location,
        found=metadata.zarr_format,
        expected=f"zarr_format={group!r}",
    )
