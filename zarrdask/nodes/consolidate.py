"""Write a group's consolidated metadata."""

from typing import Any

from zarrdask.errors import NodeTypeError, UnsupportedError
from zarrdask.hierarchy.create import write_consolidated
from zarrdask.hierarchy.find import find_node
from zarrdask.hierarchy.path import locate_node, node_location
from zarrdask.metadata.consolidated import CONSOLIDATED_FORMATS
from zarrdask.metadata.model import ArrayMetadata
from zarrdask.nodes.group import Group
from zarrdask.nodes.options import suggests_arguments


@suggests_arguments
def consolidate_metadata(
    url: Any, component: str | None = None, storage_options: dict[str, Any] | None = None
) -> Group:
    """Write a group's consolidated metadata: one document about all nodes below it.

    Opening the group then takes one read to know every node (conformance A-67, C-78). The nodes
    keep their own documents. These are not interpreted, so that nodes which zarrdask can't open
    are included, too. No node should be changed meanwhile. A later change through zarrdask removes
    the consolidated metadata, or updates them (setting ``zarrdask.consolidated-after-change``).

    Parameters
    ----------
    url, component, storage_options
        Where the group is, as in `zarrdask.open`.

    Returns
    -------
    Group
        The group, opened for writing.

    Raises
    ------
    NodeNotFoundError
        If there is no node.
    NodeTypeError
        If the node is an array.
    MetadataError
        If a document is not JSON, or has another format than the group.
    UnsupportedError
        If the store can't be listed, or the format has no consolidated metadata.

    Examples
    --------
    >>> import zarrdask
    >>> root = zarrdask.create_group({})
    >>> z = root.create_array("a/z", shape=4, dtype="i4")
    >>> list(zarrdask.consolidate_metadata(root))
    ['a']
    """
    store, path = locate_node(url, component, storage_options)
    store, metadata = find_node(store, path)
    location = node_location(store, path)
    if isinstance(metadata, ArrayMetadata):
        raise NodeTypeError(
            "an array has no consolidated metadata; pass a group",
            key=location,
            found="array",
            expected="group",
        )
    if metadata.zarr_format not in CONSOLIDATED_FORMATS:
        raise UnsupportedError(
            "this format has no consolidated metadata; open the group without them",
            key=location,
            found=metadata.zarr_format,
            expected="2 or 3",
        )
    write_consolidated(store, path, metadata.zarr_format)
    store, metadata = find_node(store, path, consolidated="required")
    return Group(store, path, metadata, "r+")  # type: ignore[arg-type]
