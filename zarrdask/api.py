"""The verbs that need several layers."""

from typing import Any

from zarrdask import hierarchy
from zarrdask.errors import NodeTypeError, UnsupportedError, ZarrdaskError
from zarrdask.formats import consolidated
from zarrdask.group import Group
from zarrdask.metadata import ArrayMetadata
from zarrdask.storage.consolidated import plain


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
    store, path = hierarchy.locate(url, component, storage_options)
    store, group = hierarchy.find(plain(store), path)
    place = hierarchy.location(store, path)
    if isinstance(group, ArrayMetadata):
        raise NodeTypeError("an array is here", key=place, found="array", expected="group")
    if group.zarr_format not in (2, 3):
        raise UnsupportedError(
            "this format has no consolidated metadata", key=place, found=group.zarr_format
        )
    try:
        entries = hierarchy.entries(store, path)
        documents = consolidated.render(group.zarr_format, entries)
    except ZarrdaskError as error:
        raise error.within(place) from error.__cause__
    for name, value in documents.items():
        store.set(hierarchy.prefix_of(path) + name, value)
    store, group = hierarchy.find(store, path, consolidated=True)
    return Group(store, path, group, "r+")  # type: ignore[arg-type]
