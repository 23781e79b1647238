"""Read coordinate reference systems from the attributes of CF, GDAL and ``proj:``."""

import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from posixpath import join, normpath
from typing import Any

from zarrdask.arrays.nodes.array import Array
from zarrdask.arrays.nodes.group import Group
from zarrdask.errors import MetadataError, NodeNotFoundError, instance_of
from zarrdask.formats.metadata.model import ArrayMetadata, GroupMetadata

#: The attribute of an array, by convention.
GDAL, CF = "_CRS", "grid_mapping"
#: The members of GDAL's attribute and their types.
GDAL_MEMBERS = {"url": str, "wkt": str, "projjson": dict}
#: The attributes of the convention ``proj:``, the members of `Crs` and their types.
_PROJ: Mapping[str, tuple[str, type[Any]]] = {
    "proj:code": ("code", str),
    "proj:wkt2": ("wkt", str),
    "proj:projjson": ("projjson", dict),
}
_CODE = re.compile("[A-Z]+:[0-9]+")


@dataclass(frozen=True)
class Crs:
    """A coordinate reference system in the forms that were stored; it is not interpreted.

    Attributes
    ----------
    url : str, optional
        The URL that names it, such as ``http://www.opengis.net/def/crs/EPSG/0/4326``.
    wkt : str, optional
        Its definition as well-known text.
    projjson : mapping, optional
        Its definition as PROJJSON.
    grid_mapping : mapping, optional
        The other attributes of the CF variable, such as the parameters of the projection.
    code : str, optional
        Its authority and code, such as ``EPSG:4326``.
    """

    url: str | None = None
    wkt: str | None = None
    projjson: Mapping[str, Any] | None = None
    grid_mapping: Mapping[str, Any] | None = None
    code: str | None = None

    @property
    def definition(self) -> str | Mapping[str, Any] | None:
        """The URL, code, WKT or PROJJSON, the first that exists: ``pyproj.CRS`` takes it (A-74)."""
        return self.url or self.code or self.wkt or self.projjson


def as_crs(definition: Any) -> Crs:
    """Return a coordinate reference system that was passed in one of its forms."""
    if isinstance(definition, Crs) and definition.definition:
        return definition
    if isinstance(definition, Mapping):
        return Crs(projjson=dict(definition))
    text = definition.to_wkt() if hasattr(definition, "to_wkt") else definition
    if isinstance(text, str) and text.startswith(("http://", "https://")):
        return Crs(url=text)
    if isinstance(text, str) and _CODE.fullmatch(text):
        return Crs(code=text)
    if isinstance(text, str) and "[" in text:
        return Crs(wkt=text)
    raise MetadataError(
        "invalid coordinate reference system",
        key="crs",
        found=definition,
        expected="a URL, a code, WKT, PROJJSON, or an object with to_wkt()",
    )


def proj_attributes(system: Crs) -> dict[str, Any]:
    """Return the attributes ``proj:*`` of a coordinate reference system."""
    values = {attribute: getattr(system, member) for attribute, (member, _) in _PROJ.items()}
    attributes = {attribute: value for attribute, value in values.items() if value is not None}
    if not attributes:
        raise MetadataError(
            "the convention 'proj' stores no URL; pass a code, WKT or PROJJSON",
            key="proj:code",
            found=system,
        )
    return attributes


def crs(node: Array | Group) -> Crs | None:
    """Return the coordinate reference system of an array or a group, or None if it has none.

    An array has it in its attribute ``_CRS`` (GDAL), in its attributes ``proj:code``, ``proj:wkt2``
    and ``proj:projjson``, or in the attribute ``crs_wkt`` or ``spatial_ref`` of the variable that
    its attribute ``grid_mapping`` names (CF; conformance A-73, A-74); else in the attributes
    ``proj:*`` of its group. A group without any of these has the system of its arrays.

    Parameters
    ----------
    node : Array or Group

    Returns
    -------
    Crs or None

    Raises
    ------
    MetadataError
        If an attribute does not follow the convention, or the arrays of a group have different
        coordinate reference systems.
    NodeNotFoundError
        If the variable that ``grid_mapping`` names does not exist.

    Examples
    --------
    >>> import zarrdask
    >>> root = zarrdask.create_group({})
    >>> z = root.create_array("z", shape=(4, 6), dtype="f4")
    >>> zarrdask.conventions.write_crs(z, 'GEOGCRS["WGS 84"]')
    >>> crs(z).wkt, z.attrs["grid_mapping"], root["crs"].attrs["crs_wkt"]
    ('GEOGCRS["WGS 84"]', 'crs', 'GEOGCRS["WGS 84"]')
    """
    system = _own(node)
    if system is not None:
        return system
    if isinstance(node, Group):
        return _common(node)
    for group in node.node_path.parents[-1:]:
        metadata = group.read()
        if isinstance(metadata, GroupMetadata):
            return _parse_proj(metadata.attributes, group.location)
    return None


def _own(node: Array | Group) -> Crs | None:
    """Return the coordinate reference system that the attributes of a node itself lead to."""
    location = node.node_path.location
    attributes = node.attrs
    if GDAL in attributes:
        return _parse_gdal(attributes[GDAL], f"{location}: {GDAL}")
    if (system := _parse_proj(attributes, location)) is not None:
        return system
    if CF in attributes:
        return _parse_cf(_variable(node, attributes[CF], f"{location}: {CF}"))
    return None


def _parse_proj(attributes: Mapping[str, Any], location: str) -> Crs | None:
    members: dict[str, Any] = {
        member: deepcopy(instance_of(attributes[name], f"{location}: {name}", kind))
        for name, (member, kind) in _PROJ.items()
        if name in attributes
    }
    return Crs(**members) if members else None


def _common(group: Group) -> Crs | None:
    systems: list[Crs] = []
    for _, array in group.arrays():
        system = _own(array)
        if system is not None and system not in systems:
            systems.append(system)
    if len(systems) > 1:
        raise MetadataError(
            "the arrays of this group have different coordinate reference systems; pass one of "
            "the arrays",
            key=group.node_path.location,
            found=[system.definition for system in systems],
        )
    return systems[0] if systems else None


def _parse_gdal(value: Any, key: str) -> Crs:
    if isinstance(value, dict):
        members = {name: member for name, member in value.items() if name in GDAL_MEMBERS}
        if members and all(isinstance(m, GDAL_MEMBERS[name]) for name, m in members.items()):
            return Crs(**members)
    raise MetadataError(
        "the attribute is not a coordinate reference system",
        key=key,
        found=value,
        expected="an object with url, wkt or projjson",
    )


def _variable(node: Array | Group, grid_mapping: Any, key: str) -> dict[str, Any]:
    """Return the attributes of the variable that ``grid_mapping`` names.

    It is searched for in the node's group and in the groups above, the nearest first. If it is a
    path, it is relative to each of these groups.
    """
    words = grid_mapping.split() if isinstance(grid_mapping, str) else []
    if not words:
        raise MetadataError(
            "the attribute must name a variable", key=key, found=grid_mapping, expected="text"
        )
    # The longer form, "name: coordinate coordinate other: ...", names several: the first is used.
    name = words[0].removesuffix(":")
    own = node.node_path
    for group in reversed([*own.parents, *([own] if isinstance(node, Group) else [])]):
        path = normpath(join("/", group.path, name)).strip("/")
        metadata = None if path == own.path else own.at(path).read()
        if isinstance(metadata, ArrayMetadata):
            return deepcopy(dict(metadata.attributes))
    raise NodeNotFoundError(
        "the attribute names a variable that does not exist", key=key, found=grid_mapping
    )


def _parse_cf(attributes: dict[str, Any]) -> Crs:
    texts = [attributes.pop(name, None) for name in ("crs_wkt", "spatial_ref")]
    wkt = next((text for text in texts if isinstance(text, str)), None)
    return Crs(wkt=wkt, grid_mapping=attributes)
