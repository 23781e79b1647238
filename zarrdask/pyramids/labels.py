"""Pyramids of label images, which are listed by the group ``labels`` that they are in."""

from dataclasses import replace

from zarrdask.conventions.labels import LABELS, with_label
from zarrdask.hierarchy.node_path import NodePath
from zarrdask.metadata.model import GroupMetadata, Metadata, ZarrFormat
from zarrdask.nodes.open_group import open_group


def is_label(node: NodePath) -> bool:
    """Whether a node is in a group ``labels``."""
    return f"/{node.path}".rpartition("/")[0].endswith(f"/{LABELS}")


def list_label(node: NodePath, zarr_format: ZarrFormat) -> None:
    """Add a label image to the names that the group above it lists, if that is ``labels``."""
    if not is_label(node):
        return
    above, _, name = node.path.rpartition("/")
    group = open_group(*node.at(above), mode="r+", zarr_format=zarr_format, consolidated=False)
    before = group.attrs.asdict()
    if {**before, **with_label(before, name, zarr_format)} == before:
        return

    def listed(stored: Metadata | None) -> GroupMetadata:
        # Another process may have listed a label image since the group was opened.
        metadata = stored if isinstance(stored, GroupMetadata) else group.metadata
        added = with_label(metadata.attributes, name, zarr_format)
        return replace(metadata, attributes={**metadata.attributes, **added})

    group.node_path.update(zarr_format, listed)
