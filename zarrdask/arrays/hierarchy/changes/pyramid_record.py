"""The record of a pyramid in its group: its key, and how it is read and written."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import NodeNotFoundError
from zarrdask.formats.metadata.model import GroupMetadata, Metadata
from zarrdask.storage.zarr.draft_store import stored_in

#: The key, relative to the group.
PYRAMID_KEY = ".zarrdask/pyramid.json"
#: The attribute of the group, in stores that take values of nodes only, such as icechunk's.
PYRAMID_ATTRIBUTE = "zarrdask:pyramid"


def read_pyramid_record(group: NodePath) -> Any:
    """Return the record of a group as JSON values; None if there is none.

    Raises
    ------
    ValueError
        If it is no JSON.
    """
    value = stored_in(group.store).get(f"{group.prefix}{PYRAMID_KEY}")
    if value is not None:
        return json.loads(value)
    metadata = group.read()
    return None if metadata is None else metadata.attributes.get(PYRAMID_ATTRIBUTE)


def without_pyramid_record(group: GroupMetadata) -> GroupMetadata:
    """Return the metadata of a group without the record, which holds for its own levels only."""
    attributes = {k: v for k, v in group.attributes.items() if k != PYRAMID_ATTRIBUTE}
    return replace(group, attributes=attributes)


def write_pyramid_record(group: NodePath, record: Mapping[str, Any]) -> None:
    """Store the record of a group, which has a document."""
    store = stored_in(group.store)
    if not store.capabilities.bounded:
        store.set(f"{group.prefix}{PYRAMID_KEY}", json.dumps(record).encode())
        return

    def update(stored: Metadata | None) -> GroupMetadata:
        if not isinstance(stored, GroupMetadata):
            raise NodeNotFoundError("the group no longer exists", key=group.location)
        attributes = {**stored.attributes, PYRAMID_ATTRIBUTE: json.loads(json.dumps(record))}
        return replace(stored, attributes=attributes)

    group.update(group.find()[1].zarr_format, update)
