"""Write a group's consolidated metadata."""

from typing import Any

from zarrdask.errors import NodeTypeError, UnsupportedError
from zarrdask.hierarchy.create import write_consolidated
from zarrdask.hierarchy.find import find_node
from zarrdask.hierarchy.path import locate_node, node_location
from zarrdask.metadata.model import ArrayMetadata
from zarrdask.nodes.group import Group
from zarrdask.nodes.options import suggests_arguments
from zarrdask.storage.consolidated import plain


@suggests_arguments
def consolidate_metadata(
    url: Any, component: str | None = None, storage_options: dict[str, Any] | None = None
) -> Group:
    """Write a group's consolidated metadata: the documents of all nodes below it, in one.

    Who opens the group afterwards needs one read to know every node (conformance A-67, C-78). The
    nodes keep their own documents, and are not parsed: what can't be opened here is told of, too.
    Nobody should change nodes meanwhile. A change through zarrdask drops them again, or brings
    them up to date (``zarrdask.consolidated-after-change``).

    Parameters
    ----------
    url, component, storage_options
        Of the group, as in `zarrdask.open`.

    Returns
    -------
    Group
        The group, opened for changes.

    Raises
    ------
    NodeNotFoundError, NodeTypeError
        If no group is there.
    MetadataError
        If a document is not JSON, or of another format than the group.
    UnsupportedError
        If the store can't be listed, or the format has no such metadata.

    Examples
    --------
    >>> import zarrdask
    >>> root = zarrdask.create_group({})
    >>> z = root.create_array("a/z", shape=4, dtype="i4")
    >>> list(zarrdask.consolidate_metadata(root))
    ['a']
    """
    store, path = locate_node(url, component, storage_options)
    store, group = find_node(plain(store), path)
    place = node_location(store, path)
    if isinstance(group, ArrayMetadata):
        raise NodeTypeError("an array is here", key=place, found="array", expected="group")
    if group.zarr_format not in (2, 3):
        raise UnsupportedError(
            "this format has no consolidated metadata", key=place, found=group.zarr_format
        )
    write_consolidated(store, path, group.zarr_format)
    store, group = find_node(store, path, consolidated=True)
    return Group(store, path, group, "r+")  # type: ignore[arg-type]
