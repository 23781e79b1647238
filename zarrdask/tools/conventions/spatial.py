"""The position of an array in space: the attributes ``spatial:*``, and arrays of coordinates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zarrdask.arrays.nodes.array import Array
from zarrdask.arrays.nodes.create import create_array
from zarrdask.arrays.nodes.group import Group
from zarrdask.arrays.nodes.open import open_array
from zarrdask.errors import MetadataError, instance_of

#: The attributes that hold numbers, and how many.
_NUMBERS = {"transform": 6, "bbox": 4, "shape": 2}


@dataclass(frozen=True)
class Spatial:
    """How indices of an array correspond to coordinates in space.

    Attributes
    ----------
    dimensions : tuple of str, optional
        The names of the two spatial dimensions, the rows first.
    transform : tuple of float, optional
        The numbers a to f of an affine transformation: ``x = a * column + b * row + c`` and
        ``y = d * column + e * row + f``, where (0, 0) is the outer corner of the first pixel.
    bbox : tuple of float, optional
        The bounding box: xmin, ymin, xmax, ymax.
    shape : tuple of int, optional
        The number of rows and columns.
    registration : str, default "pixel"
        What the elements are values of: "pixel" (areas) or "node" (points).
    """

    dimensions: tuple[str, ...] | None = None
    transform: tuple[float, ...] | None = None
    bbox: tuple[float, ...] | None = None
    shape: tuple[int, ...] | None = None
    registration: str = "pixel"


def spatial(node: Array | Group) -> Spatial | None:
    """Return the position in space that the attributes ``spatial:*`` describe.

    Parameters
    ----------
    node : Array or Group

    Returns
    -------
    Spatial or None
        None if the node has no such attribute.

    Raises
    ------
    MetadataError
        If an attribute does not follow the convention.

    Examples
    --------
    >>> import zarrdask
    >>> z = zarrdask.create_array(
    ...     {},
    ...     shape=(180, 360),
    ...     dtype="f4",
    ...     attributes={"spatial:transform": [1.0, 0.0, -180.0, 0.0, -1.0, 90.0]},
    ... )
    >>> spatial(z).transform
    (1.0, 0.0, -180.0, 0.0, -1.0, 90.0)
    """
    return parse_spatial(node.attrs, f"{node.node_path.location}: ")


def parse_spatial(attributes: Mapping[str, Any], key: str) -> Spatial | None:
    """Parse the members ``spatial:*`` of an object; `key` comes before their names in errors."""
    members = {
        name.removeprefix("spatial:"): value
        for name, value in attributes.items()
        if name.startswith("spatial:")
    }
    values: dict[str, Any] = {}
    for name, count in _NUMBERS.items():
        if name in members:
            values[name] = _numbers(members[name], count, f"{key}spatial:{name}")
    if "dimensions" in members:
        names = instance_of(members["dimensions"], f"{key}spatial:dimensions", list)
        values["dimensions"] = tuple(
            instance_of(name, f"{key}spatial:dimensions", str) for name in names
        )
    if "registration" in members:
        registration = members["registration"]
        values["registration"] = instance_of(registration, f"{key}spatial:registration", str)
    return Spatial(**values) if values else None


def _numbers(value: Any, count: int, key: str) -> tuple[Any, ...]:
    numbers = instance_of(value, key, list)
    if len(numbers) != count or not all(type(n) in (int, float) for n in numbers):
        raise MetadataError(
            "this must be a list of numbers", key=key, found=value, expected=f"{count} numbers"
        )
    return tuple(numbers)


def spatial_attributes(
    array: Array, transform: Sequence[float] | None, x: Any, y: Any
) -> dict[str, Any]:
    """Return the attributes for a transformation or for evenly spaced coordinates, if any."""
    if transform is None and x is None and y is None:
        return {}
    if transform is None:
        values = coordinates(array, transform, x, y)
        (d_y, y_0), (d_x, x_0) = (spacing(name, each) for name, each in values.items())
        numbers: tuple[float, ...] = (d_x, 0.0, x_0, 0.0, d_y, y_0)
    else:
        numbers = _affine(array, transform, x, y)
    return {
        "spatial:dimensions": spatial_names(array.dimension_names),
        "spatial:transform": list(numbers),
        "spatial:shape": list(array.shape[-2:]),
    }


def spatial_names(names: Sequence[str | None] | None) -> list[str | None]:
    """Return the names of the rows and columns, which the convention requires of arrays."""
    if names is None or len(names) < 2 or None in names[-2:]:
        raise MetadataError(
            "an affine transformation needs the names of the last two axes, the rows and columns",
            key="dimension_names",
            found=names,
        )
    return list(names[-2:])


def coordinates(
    array: Array, transform: Sequence[float] | None, x: Any, y: Any
) -> dict[str, np.ndarray]:
    """Return the coordinates of the rows and of the columns, by the names of the dimensions.

    The result is empty if neither a transformation nor coordinates are given.
    """
    if transform is None and x is None and y is None:
        return {}
    names = array.dimension_names
    if names is None or None in names[-2:] or array.ndim < 2:
        raise MetadataError(
            "coordinates need two axes with names, of the rows and of the columns",
            key="dimension_names",
            found=names,
        )
    height, width = array.shape[-2:]
    if transform is None:
        values = _centres(y, height, "y"), _centres(x, width, "x")
    else:
        a, b, c, d, e, f = _affine(array, transform, x, y)
        if b or d:
            raise MetadataError(
                "a rotated grid has no coordinates of rows and columns; use convention='proj'",
                key="transform",
                found=tuple(transform),
            )
        values = f + e * (np.arange(height) + 0.5), c + a * (np.arange(width) + 0.5)
    return dict(zip((str(name) for name in names[-2:]), values, strict=True))


def check_coordinates(array: Array, values: Mapping[str, np.ndarray]) -> None:
    """Raise an error if an array has no group for its coordinates, or if others exist there."""
    if values and not array.path:
        raise MetadataError(
            "coordinates are arrays beside the array; use convention='proj' for an array at the "
            "root of a store",
            key="transform",
            found="an array at the root",
        )
    for name, expected in values.items():
        node = array.node_path.parents[-1].join(name)
        if not node.exists():
            continue
        existing = open_array(*node)
        if (
            existing.dtype.kind not in "iuf"
            or existing.shape != expected.shape
            or not np.allclose(existing[...], expected, rtol=1e-12)
        ):
            raise MetadataError(
                "the coordinates of this dimension exist, with other values",
                key=node.location,
                found=f"{existing.dtype} of shape {existing.shape}",
                expected=f"{expected}",
            )


def write_coordinates(array: Array, values: Mapping[str, np.ndarray]) -> None:
    """Create the arrays of coordinates that do not exist yet."""
    for axis, (name, each) in zip("YX", values.items(), strict=False):
        node = array.node_path.parents[-1].join(name)
        if not node.exists():
            create_array(
                *node,
                shape=each.shape,
                dtype=each.dtype,
                dimension_names=(name,),
                zarr_format=array.zarr_format,
                attributes={"axis": axis},
            )[...] = each


def _affine(array: Array, transform: Sequence[float], x: Any, y: Any) -> tuple[float, ...]:
    if x is not None or y is not None:
        raise MetadataError("pass either transform, or x and y", key="transform", found=transform)
    return affine_numbers(transform, array.ndim)


def affine_numbers(transform: Sequence[float], ndim: int) -> tuple[float, ...]:
    """Return the six numbers of a transformation; ``rasterio.Affine`` has three more."""
    try:
        numbers = tuple(map(float, transform))
    except (TypeError, ValueError, OverflowError):
        numbers = ()
    if len(numbers) not in (6, 9) or ndim < 2 or not np.isfinite(numbers).all():
        raise MetadataError(
            "invalid affine transformation of rows and columns",
            key="transform",
            found=transform,
            expected="six finite numbers, for an array of two or more axes",
        )
    a, b, _, d, e, _ = numbers[:6]
    if a * e == b * d:
        raise MetadataError(
            "all rows or columns would have the same coordinates", key="transform", found=transform
        )
    return numbers[:6]


def coarsened(transform: Sequence[float], factors: Sequence[int]) -> tuple[float, ...]:
    """Return the transformation of a level whose cells are windows of rows and columns."""
    a, b, c, d, e, f = transform
    rows, columns = factors
    return a * columns, b * rows, c, d * columns, e * rows, f


def bounding_box(transform: Sequence[float], shape: Sequence[int]) -> tuple[float, ...]:
    """Return xmin, ymin, xmax and ymax of the four corners of a grid."""
    a, b, c, d, e, f = transform
    rows, columns = shape
    corners = [(column, row) for column in (0, columns) for row in (0, rows)]
    x, y = zip(*((a * i + b * j + c, d * i + e * j + f) for i, j in corners), strict=True)
    return min(x), min(y), max(x), max(y)


def _centres(values: Any, count: int, name: str) -> np.ndarray:
    if values is None:
        raise MetadataError("pass both x and y", key=name, found=None)
    centres = np.asarray(values, dtype="f8")
    if centres.shape != (count,):
        raise MetadataError(
            "there must be one coordinate for each element along the axis",
            key=name,
            found=centres.shape,
            expected=(count,),
        )
    return centres


def spacing(name: str, values: np.ndarray) -> tuple[float, float]:
    """Return the distance of evenly spaced coordinates, and the outer edge of the first."""
    step = float((values[-1] - values[0]) / (len(values) - 1)) if len(values) > 1 else 0.0
    if not step or not np.allclose(np.diff(values), step, rtol=1e-6, atol=0):
        raise MetadataError(
            "the coordinates are not two or more at equal distances; use convention='cf'",
            key=name,
            found=values,
        )
    return step, float(values[0]) - step / 2
