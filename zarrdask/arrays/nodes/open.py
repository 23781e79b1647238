"""The function that opens an array."""

from typing import Any

from zarrdask.arrays.chunks.missing_chunks import Missing
from zarrdask.arrays.hierarchy.lookup import look_up
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.hierarchy.snapshot import Snapshot, snapshot_of
from zarrdask.arrays.nodes.arguments import suggests_arguments
from zarrdask.arrays.nodes.array import Array, chunks_of
from zarrdask.arrays.nodes.node import is_group_error
from zarrdask.errors import MetadataError, is_one_of, one_of
from zarrdask.formats.metadata.model import ArrayMetadata, ZarrFormat

#: The modes of functions that open existing nodes.
MODES = ("r", "r+")
#: Modes that users of other software pass to create a node.
_CREATING_MODES = ("w", "w-", "a", "x")


@suggests_arguments
def open_array(
    url: Any,
    component: str | None = None,
    mode: str = "r",
    storage_options: dict[str, Any] | None = None,
    *,
    zarr_format: ZarrFormat | None = None,
    strict: bool | None = None,
    consolidated: bool | None = None,
    missing: Missing | None = None,
    snapshot: Snapshot | None = None,
) -> Array:
    """Open a stored array.

    Parameters
    ----------
    url : str, os.PathLike, MutableMapping, Store, Array or Group
        The location of the array: a path, any fsspec URL, a mapping of keys to bytes, a store, the
        array itself, or a group above it.
    component : str, optional
        The path of the array from `url`. By default the array is at `url` itself.
    mode : {"r", "r+"}
        Read only ("r", the default), or read and write ("r+").
    storage_options : dict, optional
        Options for fsspec, such as credentials.
    zarr_format : {2, 3, "v3-draft", "v3-draft-protocol"}, optional
        The only format whose documents are requested; by default, all formats are tried. It
        saves requests, and opens arrays in stores that deny access to documents that don't exist.
    strict : bool, optional
        Whether metadata that breaks a rule of the format, but whose meaning is clear, raises an
        error that names the rule. By default as the group passed as `url` was opened, or else the
        setting ``zarrdask.strict``, which is False.
    consolidated : bool, optional
        True requires consolidated metadata of a group above the array; False reads the array's
        own documents. By default consolidated metadata is used if `url` is a group that was
        opened with it.
    missing : {"fill", "error"}, optional
        How chunks that are not stored are read: as the fill value, or by raising
        `ChunkNotFoundError`. It holds for all reads of the array, also by tasks in other processes.
        By default as `url`, if that is an array, or else the setting ``zarrdask.missing``, which is
        "fill".
    snapshot : Manifest, str or os.PathLike, optional
        A manifest of the node at `url`, or the local file that it is saved in: exactly the listed
        versions of the objects are read, also while others write to a bucket that keeps versions.
        In other stores, an object that has changed since raises `SnapshotError`.

    Returns
    -------
    Array

    Raises
    ------
    NodeNotFoundError
        If there is no node.
    NodeTypeError
        If the node is a group.
    ReadOnlyError
        If the mode is "r+" and the store can't be written.
    MetadataError, UnsupportedError
        If the metadata is invalid, or requires a codec, data type or extension that is not
        available.
    SnapshotError
        If a document has changed since the manifest was made.

    Examples
    --------
    >>> import zarrdask
    >>> store = {}
    >>> z = zarrdask.create_array(store, "a", shape=(4, 6), dtype="i4")
    >>> zarrdask.open_array(store, "a").shape
    (4, 6)
    """
    check_mode(mode, MODES)
    if snapshot is not None:
        url, storage_options = snapshot_of(url, storage_options, snapshot), None
    lookup = look_up(url, component, storage_options, zarr_format=zarr_format, strict=strict)
    if isinstance(url, Array) and not component:
        missing = missing or url.missing
        if lookup.search.accepts(url.zarr_format) and not strict:
            if mode in ("r", url.mode) and missing == url.missing:
                return url
            return Array(url.node_path, url.metadata, mode, missing)
    if mode != "r":
        lookup.node.store.check_writable()
    node, metadata = lookup.find(consolidated, default="inherited")
    if not isinstance(metadata, ArrayMetadata):
        raise is_group_error(
            "a group can't be opened as an array; pass component='path/to/array', the path of an "
            "array in it",
            node.location,
        )
    return array_at(node, metadata, mode, missing)


def array_at(
    node: NodePath, metadata: ArrayMetadata, mode: str, missing: Missing | None = None
) -> Array:
    """Return the array at a node, which may be a concatenation."""
    array = Array(node, metadata, mode, missing)
    if chunks_of(array).elements is None:
        return array
    # Imported here: few arrays are concatenations.
    from zarrdask.arrays.nodes.concatenations.concatenated import ConcatenatedArray

    return ConcatenatedArray(node, metadata, mode, missing)


def check_mode(mode: str, modes: tuple[str, ...]) -> None:
    """Check that the requested mode is one of some modes."""
    if is_one_of(mode, modes):
        return
    message = "unknown mode"
    if is_one_of(mode, _CREATING_MODES) and not set(modes) & set(_CREATING_MODES):
        message = (
            "this function opens existing nodes; create one with create_array or create_group, "
            "with overwrite=True to replace another"
        )
    expected = " or ".join(map(repr, modes))
    raise MetadataError(message, key="mode", found=mode, expected=expected)


def check_commit(commit: str) -> None:
    """Check that the time at which a user wants the metadata to be written is a known one."""
    one_of(commit, "commit", ("first", "last"))
