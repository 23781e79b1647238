"""The place of an array in space: the attributes ``spatial:*``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zarrdask.errors import MetadataError, instance_of
from zarrdask.nodes.array import Array
from zarrdask.nodes.group import Group

#: The attributes that hold numbers, and how many.
_NUMBERS = {"transform": 6, "bbox": 4, "shape": 2}


@dataclass(frozen=True)
class Spatial:
    """How indices of an array correspond to coordinates in space.

    Attributes
    ----------
    dimensions : tuple of str, optional
        The names of the two spatial dimensions, that of the rows first.
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
    """Return the place in space that the attributes ``spatial:*`` describe.

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
            "this is not a list of numbers", key=key, found=value, expected=f"{count} numbers"
        )
    return tuple(numbers)
