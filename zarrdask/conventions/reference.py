"""Where the coordinate reference system of an array is written down: in CF's way, or in GDAL's."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from posixpath import join, normpath
from typing import Any, Literal

from zarrdask.errors import MetadataError, NodeNotFoundError
from zarrdask.hierarchy.consolidated import ancestors
from zarrdask.hierarchy.find import node_exists, read_node
from zarrdask.hierarchy.path import join_path, node_location
from zarrdask.metadata.model import ArrayMetadata
from zarrdask.nodes.array import Array
from zarrdask.nodes.group import Group
from zarrdask.nodes.open import create_array, open_array

_GDAL, _CF = "_CRS", "grid_mapping"
_GDAL_MEMBERS = {"url": str, "wkt": str, "projjson": dict}


@dataclass(frozen=True)
class Crs:
    """A coordinate reference system, as it is written down: it is not interpreted.

    Attributes
    ----------
    url : str, optional
        Its name, such as ``http://www.opengis.net/def/crs/EPSG/0/4326``.
    wkt : str, optional
        Well-known text.
    projjson : mapping, optional
    grid_mapping : mapping, optional
        The other attributes of CF's variable: the parameters of the projection.
    """

    url: str | None = None
    wkt: str | None = None
    projjson: Mapping[str, Any] | None = None
    grid_mapping: Mapping[str, Any] | None = None

    @property
    def definition(self) -> str | Mapping[str, Any] | None:
        """URL, WKT or PROJJSON, the first that there is: what ``pyproj.CRS`` takes (A-74)."""
        return self.url or self.wkt or self.projjson


def crs(node: Array | Group) -> Crs | None:
    """Return the coordinate reference system of an array or a group, or None if it has none.

    An array has it in its attribute ``_CRS``, as GDAL does, or in the variable that its attribute
    ``grid_mapping`` names, as CF does: there in ``crs_wkt`` or ``spatial_ref`` (conformance A-73,
    A-74). A group has that of its arrays.

    Raises
    ------
    MetadataError
        If an attribute is not what the convention says, or the arrays of a group differ.
    NodeNotFoundError
        If ``grid_mapping`` names a variable that is not there.

    Examples
    --------
    >>> import zarrdask
    >>> root = zarrdask.create_group({})
    >>> z = root.create_array("z", shape=(4, 6), dtype="f4")
    >>> write_crs(z, 'GEOGCRS["WGS 84"]')
    >>> crs(z).wkt, z.attrs["grid_mapping"], root["crs"].attrs["crs_wkt"]
    ('GEOGCRS["WGS 84"]', 'crs', 'GEOGCRS["WGS 84"]')
    """
    place = node_location(node.store, node.path)
    if _GDAL in node.attrs:
        return _parse_gdal(node.attrs[_GDAL], f"{place}: {_GDAL}")
    if _CF in node.attrs:
        return _parse_cf(_variable(node, node.attrs[_CF], f"{place}: {_CF}"))
    return _common(node) if isinstance(node, Group) else None


def _common(group: Group) -> Crs | None:
    found: list[Crs] = []
    for _, array in group.arrays():
        own = crs(array)
        if own is not None and own not in found:
            found.append(own)
    if len(found) > 1:
        raise MetadataError(
            "arrays of this group have different coordinate reference systems",
            key=node_location(group.store, group.path),
            found=[each.definition for each in found],
        )
    return found[0] if found else None


def _parse_gdal(found: Any, key: str) -> Crs:
    if isinstance(found, dict):
        known = {name: value for name, value in found.items() if name in _GDAL_MEMBERS}
        if known and all(isinstance(v, _GDAL_MEMBERS[name]) for name, v in known.items()):
            return Crs(**known)
    raise MetadataError(
        "not a coordinate reference system",
        key=key,
        found=found,
        expected="an object with url, wkt or projjson",
    )


def _variable(node: Array | Group, found: Any, key: str) -> dict[str, Any]:
    """Return the attributes of the variable that ``grid_mapping`` names, the nearest of its name.

    It is looked for in the node's group and then in those above; a path is taken from there.
    """
    words = found.split() if isinstance(found, str) else []
    if not words:
        raise MetadataError("not the name of a variable", key=key, found=found, expected="a name")
    # The longer form, "name: coordinate coordinate other: ...", names several: the first counts.
    name = words[0].removesuffix(":")
    above = [*ancestors(node.path), *([node.path] if isinstance(node, Group) else [])]
    for group in reversed(above):
        path = normpath(join("/", group, name)).strip("/")
        metadata = None if path == node.path else read_node(node.store, path)
        if isinstance(metadata, ArrayMetadata):
            return deepcopy(dict(metadata.attributes))
    raise NodeNotFoundError("this names a variable that is not there", key=key, found=found)


def _parse_cf(attributes: dict[str, Any]) -> Crs:
    texts = [attributes.pop(name, None) for name in ("crs_wkt", "spatial_ref")]
    wkt = next((text for text in texts if isinstance(text, str)), None)
    return Crs(wkt=wkt, grid_mapping=attributes)


def write_crs(
    array: Array, found: Any, *, convention: Literal["cf", "gdal"] = "cf", name: str = "crs"
) -> None:
    """Write an array's coordinate reference system.

    Parameters
    ----------
    array : Array
        Opened for changes.
    found : Crs, str, mapping or object
        A URL that begins with ``http``, WKT, PROJJSON, or what has a method ``to_wkt``, such as
        ``pyproj.CRS``.
    convention : {"cf", "gdal"}
        As CF does, in the attribute ``crs_wkt`` of a variable that ``grid_mapping`` names
        (conformance A-73); or as GDAL does, in ``_CRS`` (A-74).
    name : str
        Of CF's variable, beside the array; it is created if it is not there.

    Raises
    ------
    MetadataError
        If it is not a coordinate reference system, or has no WKT, which CF needs.
    ReadOnlyError
        If the array was opened for reading.
    """
    array.check_writable()
    known = _as_crs(found)
    if convention == "gdal":
        found = {name: getattr(known, name) for name in _GDAL_MEMBERS}
        array.attrs[_GDAL] = {name: value for name, value in found.items() if value is not None}
        return
    if known.wkt is None or not array.path:
        raise MetadataError(
            "CF keeps WKT in a variable beside the array; convention='gdal' does otherwise",
            key=_CF,
            found=known if array.path else "an array at the root",
        )
    path = join_path(ancestors(array.path)[-1], name)
    attributes = {**(known.grid_mapping or {}), "crs_wkt": known.wkt}
    if node_exists(array.store, path):
        open_array(array.store, path, mode="r+").attrs.update(attributes)
    else:
        create_array(
            array.store,
            path,
            shape=(),
            dtype="i4",
            zarr_format=array.zarr_format,
            attributes=attributes,
        )
    array.attrs[_CF] = name


def _as_crs(found: Any) -> Crs:
    if isinstance(found, Crs) and found.definition:
        return found
    if isinstance(found, Mapping):
        return Crs(projjson=dict(found))
    text = found.to_wkt() if hasattr(found, "to_wkt") else found
    if isinstance(text, str) and text.startswith(("http://", "https://")):
        return Crs(url=text)
    if isinstance(text, str) and "[" in text:
        return Crs(wkt=text)
    raise MetadataError(
        "not a coordinate reference system",
        key="crs",
        found=found,
        expected="a URL, WKT, PROJJSON, or an object with to_wkt()",
    )
