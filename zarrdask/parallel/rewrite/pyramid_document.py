"""The stored record of a pyramid in its group: its key, and how it is read and written."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.errors import NodeNotFoundError
from zarrdask.formats.metadata.model import GroupMetadata, Metadata
from zarrdask.storage.zarr.draft_store import stored_in


@dataclass(frozen=True)
class PyramidDocument:
    """The document of a group that records how the levels of its pyramid were computed."""

    group: NodePath

    #: The key, relative to the group.
    KEY: ClassVar[str] = ".zarrdask/pyramid.json"
    #: The attribute of the group, in stores that take values of nodes only, such as icechunk's.
    ATTRIBUTE: ClassVar[str] = "zarrdask:pyramid"

    def read(self) -> Any:
        """Return the record as JSON values; None if there is none.

        Raises
        ------
        ValueError
            If it is no JSON.
        """
        value = stored_in(self.group.store).get(f"{self.group.prefix}{self.KEY}")
        if value is not None:
            return json.loads(value)
        metadata = self.group.read()
        return None if metadata is None else metadata.attributes.get(self.ATTRIBUTE)

    def write(self, record: Mapping[str, Any]) -> None:
        """Store the record in the group, which has a document."""
        store = stored_in(self.group.store)
        if not store.capabilities.bounded:
            store.set(f"{self.group.prefix}{self.KEY}", json.dumps(record).encode())
            return

        def update(stored: Metadata | None) -> GroupMetadata:
            if not isinstance(stored, GroupMetadata):
                raise NodeNotFoundError("the group no longer exists", key=self.group.location)
            attributes = {**stored.attributes, self.ATTRIBUTE: json.loads(json.dumps(record))}
            return replace(stored, attributes=attributes)

        self.group.update(self.group.find()[1].zarr_format, update)

    @classmethod
    def removed_from(cls, group: GroupMetadata) -> GroupMetadata:
        """Return the metadata of a group without the record, which is of its own levels only."""
        attributes = {k: v for k, v in group.attributes.items() if k != cls.ATTRIBUTE}
        return replace(group, attributes=attributes)
