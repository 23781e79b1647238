"""Pyramids of label images, which are listed by the group ``labels`` that they are in."""

from contextlib import suppress
from itertools import islice

from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import StoreError, ZarrdaskError
from zarrdask.formats.metadata.model import ZarrFormat
from zarrdask.storage.listing import stores_above
from zarrdask.tools.conventions.labels import LABELS, image_path, with_label
from zarrdask.tools.conventions.pyramids import parse_multiscales
from zarrdask.tools.pyramids.pyramid_changes import change_attributes


def from_image(node: NodePath) -> NodePath:
    """Return a label image as a node below its image, if its URL ends in ``labels`` and a name.

    Other nodes, and labels that are not below a node, are returned as they are.
    """
    above, _, name = node.location.rpartition("/")
    levels = 2 - len(node.path.split("/")) if node.path else 2
    if levels < 1 or not above.endswith(f"/{LABELS}"):
        return node
    with suppress(StoreError):  # access to the store does not imply access to those around it
        *_, store = node.store, *islice(stores_above(node.store, levels), levels)
        label = NodePath(store, "").join(f"{LABELS}/{name}")
        is_same = label.canonical_location == node.canonical_location
        return label if is_same and label.at("").exists() else node
    return node


def is_label(node: NodePath) -> bool:
    """Whether a node is in a group ``labels``."""
    return image_path(node.path) is not None


def image_levels(node: NodePath) -> int | None:
    """Return the number of levels of the image that a label image belongs to, if it has any.

    OME-Zarr demands the same number for its label images.
    """
    path = image_path(node.path)
    if path is None:
        return None
    try:
        image, metadata = node.at(path).find()
        pyramids = parse_multiscales(metadata.attributes, image.location)
    except ZarrdaskError:
        return None
    return len(pyramids[0].levels) if pyramids else None


def list_label(node: NodePath, zarr_format: ZarrFormat) -> None:
    """Add a label image to the names that the group above it lists, if that is ``labels``."""
    if not is_label(node):
        return
    above, _, name = node.path.rpartition("/")
    change_attributes(node.at(above), lambda attributes: with_label(attributes, name, zarr_format))
