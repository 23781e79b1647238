"""The levels of a pyramid, and the arithmetic of their scales and translations. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from zarrdask.errors import MetadataError, instance_of
from zarrdask.tools.conventions.spatial import Spatial

Numbers = tuple[float, ...]


class PyramidLevel(Protocol):
    """A level that a convention describes: `zarrdask.pyramid` plans them."""

    @property
    def path(self) -> str:
        """The path of the array from the group of the pyramid."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells along each axis."""

    @property
    def factors(self) -> tuple[int, ...]:
        """The cells of level 0 for each cell along each axis."""


@dataclass(frozen=True)
class Level:
    """One level of a pyramid.

    Attributes
    ----------
    path : str
        The path of the array, from the group that lists it. Some writers give the path of a group.
    scale : tuple of float, optional
        The distance between elements along each axis.
    translation : tuple of float, optional
        The position of the first element along each axis.
    spatial : Spatial, optional
        The position of the level in space, if the pyramid states it (`spatial:transform`).
    """

    path: str
    scale: Numbers | None = None
    translation: Numbers | None = None
    spatial: Spatial | None = None


@dataclass(frozen=True)
class Multiscale:
    """A pyramid: an array at several resolutions.

    Attributes
    ----------
    levels : tuple of Level
        The levels in the order of the document, which usually begins with the finest.
    name : str, optional
        The name of the pyramid.
    version : str, optional
        The version of the convention.
    axes : tuple of mapping
        The description of each axis: its ``name``, and if known ``type`` and ``unit``.
    coordinate_systems : tuple of mapping
        The coordinate systems of OME-Zarr 0.6: ``name`` and ``axes``. Scales and translations of
        the levels, and `axes`, belong to the system that the levels are transformed to.
    transformations : tuple of mapping
        The transformations of OME-Zarr 0.6 between these coordinate systems, as they are stored.
    """

    levels: tuple[Level, ...]
    name: str | None = None
    version: str | None = None
    axes: tuple[Mapping[str, Any], ...] = ()
    coordinate_systems: tuple[Mapping[str, Any], ...] = ()
    transformations: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Transformation:
    """A scale along each axis, and then a translation."""

    scale: Numbers | None = None
    translation: Numbers | None = None

    def then(self, other: "Transformation", key: str) -> "Transformation":
        """Return the transformation that is followed by another one."""
        parts = self.scale, self.translation, other.scale, other.translation
        lengths = {len(numbers) for numbers in parts if numbers}
        if len(lengths) > 1:
            raise MetadataError(
                "the scales and translations of a level must have one number for each axis",
                key=key,
                found=[numbers for numbers in parts if numbers],
            )
        if other == Transformation():
            return self
        if self == Transformation():
            return other
        ndim = max(lengths, default=0)
        scale, other_scale = (each.scale or (1.0,) * ndim for each in (self, other))
        start, other_start = (each.translation or (0.0,) * ndim for each in (self, other))
        return Transformation(
            tuple(a * b for a, b in zip(scale, other_scale, strict=True)),
            tuple(a * b + c for a, b, c in zip(start, other_scale, other_start, strict=True)),
        )


def parse_numbers(value: Any, kind: str, key: str) -> Numbers:
    """Return a scale or translation, which is a list of numbers."""
    numbers = instance_of(value, key, list)
    if not all(type(n) in (int, float) for n in numbers):
        raise MetadataError(f"a {kind} must be a list of numbers", key=key, found=numbers)
    return tuple(map(float, numbers))
