"""The functions that open, create and consolidate groups, or open any node."""

from collections.abc import Mapping
from typing import Any

from zarrdask.arrays.hierarchy.lookup import locate_node, look_up
from zarrdask.arrays.hierarchy.snapshot import Snapshot, snapshot_of
from zarrdask.arrays.nodes.arguments import suggests_arguments
from zarrdask.arrays.nodes.array import Array
from zarrdask.arrays.nodes.concatenations.concatenated_group import as_concatenated
from zarrdask.arrays.nodes.group import Group, new_group, opened
from zarrdask.arrays.nodes.node import as_group, is_array_error
from zarrdask.arrays.nodes.open import MODES, check_mode
from zarrdask.errors import MetadataError, NodeNotFoundError, UnsupportedError
from zarrdask.formats.metadata.model import ArrayMetadata, ZarrFormat
from zarrdask.formats.metadata.new_metadata import new_attributes

#: The modes of `open_group`.
_GROUP_MODES = (*MODES, "a", "w", "w-")


@suggests_arguments
def open(  # noqa: A001
    url: Any,
    component: str | None = None,
    mode: str = "r",
    storage_options: dict[str, Any] | None = None,
    *,
    zarr_format: ZarrFormat | None = None,
    strict: bool | None = None,
    consolidated: bool | None = None,
    snapshot: Snapshot | None = None,
) -> Array | Group:
    """Open a stored array or group, of any format.

    Parameters
    ----------
    url : str, os.PathLike, MutableMapping, Store or Group
        The location of the node: a path, any fsspec URL, a mapping of keys to bytes, a store, or a
        group above it.
    component : str, optional
        The path of the node from `url`. By default the node is at `url` itself.
    mode : {"r", "r+"}
        Read only ("r", the default), or read and write ("r+").
    storage_options : dict, optional
        Options for fsspec, such as credentials.
    zarr_format : {2, 3, "v3-draft", "v3-draft-protocol"}, optional
        The only format whose documents are requested, for the node and for all nodes below it. By
        default the documents of all formats are requested.
    strict : bool, optional
        As in `open_array`.
    consolidated : bool, optional
        By default the consolidated metadata of a group is used if it has any. True requires
        consolidated metadata, of the node or of a group above it; False reads each node's own
        documents.
    snapshot : Manifest, str or os.PathLike, optional
        As in `open_array`; it also has the nodes below.

    Returns
    -------
    Array or Group

    Raises
    ------
    NodeNotFoundError
        If there is no node.
    MetadataError, UnsupportedError
        If the metadata is invalid, or requires a codec, data type or extension that is not
        available.

    Examples
    --------
    >>> import zarrdask
    >>> store = {}
    >>> z = zarrdask.create_array(store, "a", shape=4, dtype="i4")
    >>> list(zarrdask.open(store)), zarrdask.open(store, "a").shape
    (['a'], (4,))
    """
    check_mode(mode, MODES)
    if snapshot is not None:
        url, storage_options = snapshot_of(url, storage_options, snapshot), None
    lookup = look_up(url, component, storage_options, zarr_format=zarr_format, strict=strict)
    if mode != "r":
        lookup.node.store.check_writable()
    node, metadata = lookup.find(consolidated, default="own")
    if isinstance(metadata, ArrayMetadata) and isinstance(url, Array) and not component:
        return Array(node, metadata, mode, url.missing)
    return as_concatenated(opened(node, metadata, mode, strict=lookup.strict, search=lookup.search))


@suggests_arguments
def open_group(
    url: Any,
    component: str | None = None,
    mode: str = "r",
    storage_options: dict[str, Any] | None = None,
    *,
    attributes: Mapping[str, Any] | None = None,
    zarr_format: ZarrFormat | None = None,
    strict: bool | None = None,
    consolidated: bool | None = None,
    snapshot: Snapshot | None = None,
) -> Group:
    """Open a stored group, or create one.

    Parameters
    ----------
    url, component, storage_options
        As in `open`.
    mode : {"r", "r+", "a", "w", "w-"}
        Read only ("r", the default); read and write ("r+"); read and write, created if there is
        no node ("a"); replace any node by a new group ("w"); create a new group, and
        raise `NodeExistsError` if there is a node ("w-").
    attributes : mapping, optional
        The attributes of a group that is created, of JSON values. In the modes "r" and "r+", which
        create none, they raise an error; in mode "a", a group that exists keeps its own.
    zarr_format : {2, 3, "v3-draft", "v3-draft-protocol"}, optional
        As in `open`; a group that is created has this format, by default as in `create_group`.
    strict : bool, optional
        As in `open_array`.
    consolidated : bool, optional
        As in `open`.
    snapshot : Manifest, str or os.PathLike, optional
        As in `open`. A snapshot can't be written.

    Returns
    -------
    Group

    Raises
    ------
    NodeNotFoundError
        If there is no node and the mode does not create one.
    NodeExistsError
        If there is a node and the mode is "w-".
    NodeTypeError
        If the node is an array.
    MetadataError, UnsupportedError
        As in `open`.
    """
    check_mode(mode, _GROUP_MODES)
    if attributes is not None and mode in MODES:
        raise MetadataError(
            f"mode {mode!r} creates no group; set the attributes by group.attrs.update(...), or "
            'pass mode="w" or "a"',
            key="attributes",
            found=attributes,
        )
    of_new = new_attributes(attributes)
    if snapshot is not None:
        url, storage_options = snapshot_of(url, storage_options, snapshot), None
    lookup = look_up(url, component, storage_options, zarr_format=zarr_format, strict=strict)
    if mode != "r":
        lookup.node.store.check_writable()
    if mode in ("w", "w-"):
        return new_group(lookup, zarr_format, of_new, overwrite=mode == "w")
    try:
        node, metadata = lookup.find(consolidated, default="own")
    except NodeNotFoundError:
        if mode != "a":
            raise
        return new_group(lookup, zarr_format, of_new, overwrite=False)
    group, mode = as_group(node, metadata), "r" if mode == "r" else "r+"
    return Group(node, group, mode, strict=lookup.strict, search=lookup.search)


@suggests_arguments
def create_group(
    url: Any,
    component: str | None = None,
    *,
    attributes: Mapping[str, Any] | None = None,
    zarr_format: ZarrFormat | None = None,
    overwrite: bool = False,
    storage_options: dict[str, Any] | None = None,
) -> Group:
    """Create a group, and the groups above it that don't exist.

    Parameters
    ----------
    url, component, storage_options
        As in `open`.
    attributes : mapping, optional
        The user's attributes, of JSON values.
    zarr_format : {3, 2, "v3-draft", "v3-draft-protocol"}, optional
        The format. By default the format of the nearest group between `url` and the new group, or 3
        if there is none. The last two are the draft of May 2022, and the older dialect of it that
        existing files use.
    overwrite : bool
        Whether an existing node is removed first, with everything below it. If False
        (default), raise `NodeExistsError` when there is one.

    Returns
    -------
    Group
        The new group, opened for writing.

    Raises
    ------
    NodeExistsError
        If the node exists and `overwrite` is False, or a node above it is an array.
    MetadataError
        If the attributes are not JSON values.

    Examples
    --------
    >>> import zarrdask
    >>> root = zarrdask.create_group({}, attributes={"title": "winds"})
    >>> z = root.create_array("u", shape=4, dtype="f4")
    >>> list(root), dict(root.attrs)
    (['u'], {'title': 'winds'})
    """
    of_new, lookup = new_attributes(attributes), look_up(url, component, storage_options)
    return new_group(lookup, zarr_format, of_new, overwrite=overwrite)


@suggests_arguments
def consolidate_metadata(
    url: Any, component: str | None = None, storage_options: dict[str, Any] | None = None
) -> Group:
    """Write a group's consolidated metadata: one document about all nodes below it.

    Opening the group then takes one read to find every node (conformance A-67, C-78). The nodes
    keep their own documents. These are not interpreted, so that nodes which zarrdask can't open are
    included, too. No node should be changed concurrently. A later change through zarrdask removes
    the consolidated metadata, or updates it (setting ``zarrdask.consolidated-after-change``).

    Parameters
    ----------
    url, component, storage_options
        The location of the group, as in `zarrdask.open`.

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
    node, metadata = locate_node(url, component, storage_options).find()
    if isinstance(metadata, ArrayMetadata):
        raise is_array_error("an array has no consolidated metadata; pass a group", node.location)
    if metadata.format.consolidated_key is None:
        raise UnsupportedError(
            "this format has no consolidated metadata; open the group without it",
            key=node.location,
            found=metadata.zarr_format,
            expected="2 or 3",
        )
    node.consolidate(metadata.zarr_format)
    node, metadata = node.find(consolidated="required")
    return Group(node, metadata, "r+")  # type: ignore[arg-type]
