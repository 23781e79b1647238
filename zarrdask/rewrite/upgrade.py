"""v3 metadata beside those of v2: the same chunks are then an array of both formats."""

from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.hierarchy.create import put_documents, write_consolidated
from zarrdask.hierarchy.path import join_path, key_prefix, node_location
from zarrdask.metadata import consolidated, detect, v2
from zarrdask.metadata.convert import convert
from zarrdask.metadata.model import ArrayMetadata, Metadata
from zarrdask.rewrite.move import encoded_transfer
from zarrdask.rewrite.node_plan import NodeCopy, NodeFilter, plan_nodes
from zarrdask.rewrite.report import CopiedArray, CopyReport
from zarrdask.storage.base import Store
from zarrdask.storage.consolidated import ConsolidatedStore, plain


def upgrade(
    store: Store,
    path: str,
    metadata: Metadata,
    *,
    select: NodeFilter,
    skip: bool,
    remove_v2: bool,
    dry_run: bool,
) -> CopyReport:
    """Write v3 metadata beside those of v2, and touch no chunk (conformance C-38).

    Nodes that are v3 already are left as they are, so an interrupted upgrade can be repeated. Each
    group is written after its members, so that the root is written last.
    """
    if metadata.zarr_format not in (2, 3):
        raise MetadataError(
            "only nodes of v2 can be upgraded in place; copy this one to another place",
            key="in_place",
            found=metadata.zarr_format,
            expected=2,
        ).within(node_location(store, path))
    nodes, skipped = plan_nodes(store, path, metadata, _upgraded, 3, select=select, skip=skip)
    if not dry_run:
        _write(store, path, nodes, remove_v2=remove_v2)
    place = node_location(store, path)
    arrays = [
        CopiedArray(node.path, "metadata only", 0, notes=node.notes or _already(node))
        for node in nodes
        if node.is_array
    ]
    return CopyReport.of_nodes(place, place, nodes, skipped, arrays)


def _already(node: NodeCopy) -> tuple[str, ...]:
    return ("it is v3 already",) if node.before.zarr_format == 3 else ()


def _write(store: Store, path: str, nodes: list[NodeCopy], *, remove_v2: bool) -> None:
    base = plain(store)
    with base.batch():
        for node in reversed(nodes):
            if node.before.zarr_format == 2:
                put_documents(base, join_path(path, node.path), detect.render(node.after))
        if isinstance(store, ConsolidatedStore) and not nodes[0].is_array:
            write_consolidated(base, path, 3)
        if remove_v2:
            for node in nodes:
                prefix = key_prefix(join_path(path, node.path))
                base.erase_values([prefix + name for name in (*v2.NAMES, consolidated.KEY)])


def _upgraded(_: str, before: ArrayMetadata) -> ArrayMetadata:
    """Return the v3 metadata of a v2 array."""
    if before.zarr_format == 3:
        return before
    # The chunk key encoding of v2 also exists in v3, under the same name.
    after = convert(before, zarr_format=3, chunk_key_encoding=before.keys)
    if encoded_transfer(before, after) != "units":
        raise UnsupportedError(
            "v3 can't describe these chunks as they are; they have to be copied",
            key="in_place",
            found=[codec.name for codec in before.codecs],
        )
    return after
