"""The format of the groups above a new node, which the node should have, too.

Readers list only the nodes that have the format of the group: others are invisible to them.
"""

from collections.abc import Callable, Sequence

from zarrdask import config
from zarrdask.arrays.hierarchy import draft
from zarrdask.arrays.hierarchy.path import StorePath
from zarrdask.errors import MetadataError
from zarrdask.formats.byte_ranges import Buffer
from zarrdask.formats.metadata import detect
from zarrdask.formats.metadata.draft.entry import KEY, EntryPoint
from zarrdask.formats.metadata.formats import find_format, formats
from zarrdask.formats.metadata.json import Documents
from zarrdask.formats.metadata.model import Metadata, ZarrFormat
from zarrdask.storage.cache.prefetched import prefetch


def format_above(node: StorePath) -> ZarrFormat | None:
    """Return the format of the nearest group above a node in its store; None if there is none."""
    if node.layout.zarr_format is not None:
        return node.layout.zarr_format
    above = node.current.parents if node.path else []
    if not above:
        return None
    keys = (each.prefix + name for each in above for name in detect.entry_names())
    store = prefetch(above[0].store, keys)
    return _nearest_format(above, lambda each, name: store.get(each.prefix + name))


def _nearest_format(
    above: Sequence[StorePath], get: Callable[[StorePath, str], Buffer | None]
) -> ZarrFormat | None:
    """Return the format of the last of some nodes that has a document; None if there is none.

    `get` returns the document of a node with a name.
    """
    for node in reversed(above):
        for form in formats():
            for name in form.node_documents:
                document = get(node, name)
                if document is None:
                    continue
                if name == KEY and EntryPoint.is_in(bytes(document)):
                    return draft.enter(node, bytes(document)).layout.zarr_format
                return form.version
    return None


def format_of_new(node: StorePath, chosen: ZarrFormat | None) -> ZarrFormat:
    """Return the format of a new node: the chosen one, else its parents' format, else 3."""
    if chosen is None:
        chosen = format_above(node)
    return 3 if chosen is None else chosen


def check_visible_in(
    node: StorePath, metadata: Metadata, above: Sequence[StorePath], documents: Sequence[Documents]
) -> None:
    """Check that readers of the groups above a new node see it, as these have the same format."""
    by_path = {each.path: own for each, own in zip(above, documents, strict=True)}
    group = _nearest_format(above, lambda each, name: by_path[each.path].get(name))
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
