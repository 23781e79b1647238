"""Write coordinate reference systems and coordinates by the conventions of CF, GDAL and proj."""

from collections.abc import Sequence
from typing import Any, Literal

from zarrdask.arrays.nodes.array import Array
from zarrdask.arrays.nodes.create import create_array
from zarrdask.arrays.nodes.node import check_writable
from zarrdask.arrays.nodes.open import open_array
from zarrdask.errors import MetadataError, NodeTypeError, one_of
from zarrdask.tools.conventions.listed import PROJ, SPATIAL, list_conventions
from zarrdask.tools.conventions.reference import (
    CF,
    GDAL,
    GDAL_MEMBERS,
    Crs,
    as_crs,
    proj_attributes,
)
from zarrdask.tools.conventions.spatial import (
    check_coordinates,
    coordinates,
    spatial_attributes,
    write_coordinates,
)


def write_crs(
    array: Array,
    definition: Any,
    *,
    transform: Sequence[float] | None = None,
    x: Any = None,
    y: Any = None,
    convention: Literal["cf", "gdal", "proj"] = "cf",
    name: str = "crs",
) -> None:
    """Write the coordinate reference system of an array, and its coordinates if they are given.

    Parameters
    ----------
    array : Array
        The array, opened for writing. Its last two axes are the rows and the columns.
    definition : Crs, str, mapping or object
        The coordinate reference system: a URL that begins with ``http``, a code such as
        ``EPSG:4326``, WKT, PROJJSON, or an object with a method ``to_wkt``, such as
        ``pyproj.CRS``.
    transform : sequence of float, optional
        The numbers a to f of an affine transformation, such as a ``rasterio.Affine``:
        ``x = a * column + b * row + c`` and ``y = d * column + e * row + f``, where (0, 0) is the
        outer corner of the first pixel.
    x, y : array-like, optional
        The coordinates of the centres of the columns and of the rows, instead of `transform`.
    convention : {"cf", "gdal", "proj"}
        CF (the default) stores WKT in the attribute ``crs_wkt`` of a variable that the attribute
        ``grid_mapping`` names (conformance A-73); GDAL stores a URL, WKT or PROJJSON in the
        attribute ``_CRS`` (A-74). Both store the coordinates in two arrays beside `array`, named
        like its dimensions. "proj" stores a code, WKT or PROJJSON in the attributes ``proj:*``,
        and the transformation in ``spatial:*``.
    name : str
        The name of the CF variable beside the array, which is created if it does not exist. By
        default "crs".

    Raises
    ------
    MetadataError
        If `definition` is not a coordinate reference system, or has no form that the convention
        stores, or if the coordinates do not fit the array or the convention. Nothing has been
        written then.
    NodeTypeError
        If `array` is not an open array.
    ReadOnlyError
        If the array was opened for reading only.
    """
    if not isinstance(array, Array):
        raise NodeTypeError(
            "coordinate reference systems are written to arrays",
            key="array",
            found=array,
            expected='an open array, as of zarrdask.open_array(url, mode="r+")',
        )
    check_writable(array)
    one_of(convention, "convention", ("cf", "gdal", "proj"))
    system = as_crs(definition)
    if convention == "proj":
        attributes = proj_attributes(system)
        spatial_values = spatial_attributes(array, transform, x, y)
        listed = list_conventions(array.attrs, *([PROJ, SPATIAL] if spatial_values else [PROJ]))
        # Attributes that an earlier call has written would describe another system or location.
        replaced = ("proj:", "spatial:") if spatial_values else ("proj:",)
        kept = {k: v for k, v in array.attrs.items() if not k.startswith(replaced)}
        array.attrs.put(kept | attributes | spatial_values | listed)
        return
    values = coordinates(array, transform, x, y)
    check_coordinates(array, values)
    if convention == "gdal":
        attribute = _gdal_attribute(system)
        write_coordinates(array, values)
        array.attrs[GDAL] = attribute
        return
    if system.wkt is None or not array.path:
        raise MetadataError(
            "CF stores WKT in a variable beside the array; use convention='gdal' or 'proj' for "
            "other forms, or for an array at the root of a store",
            key=CF,
            found=system if array.path else "an array at the root",
        )
    if name in values:
        raise MetadataError(
            "the coordinates of a dimension have this name; pass another one",
            key="name",
            found=name,
        )
    variable = array.node_path.parents[-1].join(name)
    existing = open_array(*variable, mode="r+") if variable.exists() else None
    write_coordinates(array, values)
    attributes = {**(system.grid_mapping or {}), "crs_wkt": system.wkt}
    if existing is not None:
        existing.attrs.update(attributes)
    else:
        create_array(
            *variable,
            shape=(),
            dtype="i4",
            zarr_format=array.zarr_format,
            attributes=attributes,
        )
    array.attrs[CF] = name


def _gdal_attribute(system: Crs) -> dict[str, Any]:
    values = {member: getattr(system, member) for member in GDAL_MEMBERS}
    members = {member: value for member, value in values.items() if value is not None}
    if not members:
        raise MetadataError(
            "GDAL's attribute holds no code of an authority; pass a URL, WKT or PROJJSON, or use "
            "convention='proj'",
            key=GDAL,
            found=system,
        )
    return members
