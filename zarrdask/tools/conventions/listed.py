"""The attribute ``zarr_conventions``, the list of conventions that a node follows. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zarrdask.errors import instance_of

_LISTED = "zarr_conventions"


@dataclass(frozen=True)
class ListedConvention:
    """A convention of github.com/zarr-conventions, in the version that zarrdask writes."""

    name: str
    version: str
    uuid: str
    description: str

    def as_item(self) -> dict[str, str]:
        """Return the item of the list: schemas require these texts exactly."""
        repository = f"zarr-conventions/{self.name}"
        schema = f"{repository}/refs/tags/{self.version}/schema.json"
        return {
            "uuid": self.uuid,
            "schema_url": f"https://raw.githubusercontent.com/{schema}",
            "spec_url": f"https://github.com/{repository}/blob/{self.version}/README.md",
            "name": self.name,
            "description": self.description,
        }


MULTISCALES = ListedConvention(
    "multiscales",
    "v0.1",
    "d35379db-88df-4056-af3a-620245f8e347",
    "Multiscale layout of zarr datasets",
)
PROJ = ListedConvention(
    "proj",
    "v0.1",
    "f17cb550-5864-4468-aeb7-f3180cfb622f",
    "Coordinate reference system information for geospatial data",
)
SPATIAL = ListedConvention(
    "spatial", "v0.1", "689b58e2-cf7b-45e0-9fff-9cfc0883d6b4", "Spatial coordinate information"
)


def list_conventions(
    attributes: Mapping[str, Any], *conventions: ListedConvention
) -> dict[str, list[Any]]:
    """Return the attribute that lists conventions after the others of a node, each once."""
    return merge_conventions(attributes, {_LISTED: [each.as_item() for each in conventions]})


def merge_conventions(
    before: Mapping[str, Any], attributes: Mapping[str, Any]
) -> dict[str, list[Any]]:
    """Return the attribute that lists the conventions of two mappings, if the second has any."""
    items = attributes.get(_LISTED, [])
    uuids = [item["uuid"] for item in items]
    others = [
        item
        for item in instance_of(before.get(_LISTED, []), _LISTED, list)
        if not (isinstance(item, Mapping) and item.get("uuid") in uuids)
    ]
    return {_LISTED: [*others, *items]} if items else {}
