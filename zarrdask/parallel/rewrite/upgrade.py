"""``upgrade``: write v3 metadata for v2 arrays, whose chunks are not touched."""

from collections.abc import Iterable
from typing import Any, Literal

from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.arguments import suggests_arguments
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.metadata.convert import convert
from zarrdask.formats.metadata.model import ArrayMetadata
from zarrdask.formats.metadata.v2 import V2
from zarrdask.parallel.rewrite.copying.move import encoded_transfer
from zarrdask.parallel.rewrite.node_plan import NodeCopy, NodeFilter, find_origin, plan_nodes
from zarrdask.parallel.rewrite.rewrite_report import CopiedArray, CopyReport


@suggests_arguments
def upgrade(
    url: Any,
    *,
    component: str | None = None,
    remove_v2: bool = False,
    include: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] | None = None,
    on_unsupported: Literal["raise", "skip"] = "raise",
    dry_run: bool = False,
    storage_options: dict[str, Any] | None = None,
) -> CopyReport:
    """Write v3 metadata beside the v2 metadata of an array or hierarchy (conformance C-38).

    No chunk is touched. Nodes that are v3 already are not changed, so the same call completes an
    interrupted upgrade. The document of the root is written last.

    Parameters
    ----------
    url : str, os.PathLike, MutableMapping, Store, Array or Group
        The node, as in `zarrdask.open`.
    component : str, optional
        The path of the node below `url`.
    remove_v2 : bool, default False
        Remove the v2 documents when all v3 documents are written.
    include, exclude : str or iterable of str, optional
        Patterns of paths below the node, as in `copy`: the arrays that are upgraded, and the arrays
        and groups that are not. By default everything is upgraded.
    on_unsupported : {"raise", "skip"}, default "raise"
        Whether nodes that v3 can't represent raise an error or are left out.
    dry_run : bool, default False
        Check everything and return the report, but write nothing.
    storage_options : dict, optional
        Options of fsspec for a URL.

    Returns
    -------
    CopyReport
        What was done with each array. It prints.

    Raises
    ------
    UnsupportedError, MetadataError
        If a node can't be described by v3, or no array matches `include`. Nothing is written then.
    NodeNotFoundError
        If there is no node.

    Examples
    --------
    >>> import zarrdask
    >>> store = {}
    >>> z = zarrdask.create_array(store, shape=6, dtype="i4", chunks=2, zarr_format=2)
    >>> report = zarrdask.upgrade(store, remove_v2=True)
    >>> report.arrays[0].method, zarrdask.open_array(store).zarr_format
    ('metadata only', 3)
    """
    select = NodeFilter.parse(include, exclude, on_unsupported)
    origin = find_origin(url, storage_options, component)
    location, zarr_format = origin.node.location, origin.metadata.zarr_format
    if zarr_format not in (2, 3):
        raise MetadataError(
            "only nodes of v2 can be upgraded; copy this one to another location",
            key="zarr_format",
            found=zarr_format,
            expected=2,
        ).within(location)
    nodes, skipped = plan_nodes(origin, _upgraded, 3, select)
    if not dry_run:
        _upgrade_nodes(origin.node, nodes, remove_v2=remove_v2)
    arrays = []
    for node in nodes:
        notes = ("it is v3 already",) if not node.changes_format else node.notes
        if node.is_array:
            arrays.append(CopiedArray(node.path, "metadata only", 0, notes=notes))
    return CopyReport.of_nodes(location, location, nodes, skipped, arrays)


def _upgrade_nodes(root: NodePath, nodes: list[NodeCopy], *, remove_v2: bool) -> None:
    base = root.current.store
    with base.batch():
        documents = [
            (root.join(node.path).prefix + name, value)
            for node in reversed(nodes)
            if node.changes_format
            for name, value in node.after.render().items()
            if value is not None
        ]
        base.set_many(documents[:-1])
        base.set_many(documents[-1:])
        if root.is_cached and not nodes[0].is_array:
            root.via(base).consolidate(3)
        if remove_v2:
            names = (*V2.documents, str(V2.consolidated_key))
            prefixes = [root.join(node.path).prefix for node in nodes]
            base.erase_values([prefix + name for prefix in prefixes for name in names])


def _upgraded(_: str, before: ArrayMetadata) -> ArrayMetadata:
    """Return the v3 metadata of a v2 array."""
    if before.zarr_format == 3:
        return before
    # The chunk key encoding of v2 also exists in v3, under the same name.
    after = convert(before, zarr_format=3, chunk_key_encoding=before.keys)
    if encoded_transfer(before, after) != "units":
        raise UnsupportedError(
            "v3 metadata can't describe these chunks; convert them with zarrdask.copy",
            key="zarr_format",
            found=[codec.name for codec in before.codecs],
        )
    return after
