"""Concatenations that are saved as a Zarr group: an array has the bytes of the document."""

import json

import numpy as np

from zarrdask.arrays.chunks.members.concatenated_store import ConcatenatedStore
from zarrdask.arrays.chunks.read import read_region
from zarrdask.arrays.hierarchy.manifest import KEY, VERSION, parse_manifest
from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import NodeNotFoundError
from zarrdask.formats.indexing.selection import whole_region
from zarrdask.formats.metadata.array_options import ArrayOptions
from zarrdask.formats.metadata.json import parse_json
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata, Metadata
from zarrdask.formats.metadata.new_metadata import plan_array

#: The name of the array of the document's bytes.
_NAME = "document"


def open_saved_group(node: NodePath) -> tuple[NodePath, Metadata]:
    """Return the root of the concatenation that is saved in a group, and its metadata."""
    saved, metadata = node.join(_NAME).find()
    if not isinstance(metadata, ArrayMetadata):
        raise NodeNotFoundError(
            "the saved concatenation has lost its array; save it again", key=saved.location
        )
    values = read_region(saved.chunks(metadata), whole_region(metadata.shape))
    base = node.location.rpartition("/")[0]
    document = parse_json(values.tobytes(), saved.location)
    store = parse_manifest(document, node.location, base, None)
    return root_of(store)


def root_of(store: ConcatenatedStore) -> tuple[NodePath, Metadata]:
    """Return the root of a concatenation, and its metadata."""
    root = NodePath(store, "")
    return root, store.arrays[""].metadata if "" in store.arrays else store.groups[""]


def save_group(node: NodePath, document: dict[str, object]) -> None:
    """Save a document as a group, which replaces one that was saved before."""
    data = np.frombuffer(json.dumps(document, separators=(",", ":")).encode(), np.uint8)
    node.create(GroupMetadata(3, {KEY: VERSION}), overwrite=node.exists())
    metadata = plan_array(ArrayOptions(shape=data.shape, dtype="u1", chunks=max(len(data), 1)))
    array = node.join(_NAME)
    array.create(metadata, overwrite=False)
    from zarrdask.arrays.chunks.write import write_region

    write_region(array.chunks(metadata), whole_region(data.shape), data, empty=False)
