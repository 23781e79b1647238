"""The versions of OME-Zarr that are written: where the attributes of a group have its members."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zarrdask.formats.grids.keys import ChunkKeys
from zarrdask.formats.metadata.model import ZarrFormat

_OME = "ome"


@dataclass(frozen=True)
class OmeVersion:
    """A version of OME-Zarr.

    Attributes
    ----------
    name : str
        The version.
    is_nested : bool
        Whether all members are in the attribute ``ome``, instead of being attributes themselves.
    keys : ChunkKeys, optional
        The chunk key encoding that arrays must have.
    """

    name: str
    is_nested: bool
    keys: ChunkKeys | None = None

    @classmethod
    def of(cls, zarr_format: ZarrFormat) -> "OmeVersion":
        """Return the version for nodes of a format of Zarr."""
        return _OF_FORMATS.get(zarr_format, _NESTED)

    def members(self, attributes: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the members that the attributes of a group have.

        >>> OmeVersion.of(2).members({"omero": 1}), OmeVersion.of(3).members({"omero": 1})
        ({'omero': 1}, {})
        """
        return attributes.get(_OME, {}) if self.is_nested else attributes

    def attributes(self, members: Mapping[str, Any], existing: Mapping[str, Any]) -> dict[str, Any]:
        """Return the attributes that have members, and other members that existing ones have.

        >>> OmeVersion.of(3).attributes({"labels": ["a"]}, {"ome": {"omero": {}}})
        {'ome': {'version': '0.5', 'omero': {}, 'labels': ['a']}}
        """
        if not self.is_nested:
            return dict(members)
        return {_OME: {"version": self.name, **self.members(existing), **members}}

    def pyramid(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return the members that describe a pyramid, with the version of its description."""
        if not self.is_nested:
            return {"multiscales": [{**document, "version": self.name}]}
        return {"version": self.name, "multiscales": [dict(document)]}


_NESTED = OmeVersion("0.5", is_nested=True)
_OF_FORMATS: dict[ZarrFormat, OmeVersion] = {
    2: OmeVersion("0.4", is_nested=False, keys=ChunkKeys("v2", "/"))
}
