"""The axes of OME-Zarr: their names, types, order and units. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from zarrdask.errors import MetadataError, instance_of, one_of
from zarrdask.tools.conventions.levels import Numbers

#: The ``type`` of an axis, by the name of the axis; others have none.
_TYPES = {
    **dict.fromkeys("xyz", "space"),
    **dict.fromkeys(("t", "time"), "time"),
    **dict.fromkeys(("c", "channel"), "channel"),
}
#: The position of a type in the order of axes; all other types are sorted as channels.
_ORDER = {"time": 0, "channel": 1, "space": 2}
#: The axes of arrays without dimension names, by the number of axes.
_USUAL_NAMES = {2: "yx", 3: "zyx", 5: "tczyx"}
_PREFIXES = (
    *("yocto", "zepto", "atto", "femto", "pico", "nano", "micro", "milli", "centi", "deci", ""),
    *("hecto", "kilo", "mega", "giga", "tera", "peta", "exa", "zetta", "yotta"),
)
_UNITS = {
    "space": (
        *(f"{prefix}meter" for prefix in _PREFIXES),
        *("angstrom", "foot", "inch", "mile", "parsec", "yard"),
    ),
    "time": (*(f"{prefix}second" for prefix in _PREFIXES), "day", "hour", "minute"),
}


@dataclass(frozen=True)
class OmeAxes:
    """Axes that follow the rules of OME-Zarr.

    Attributes
    ----------
    axes : tuple of mapping
        The ``name`` of each axis, and if known its ``type`` and ``unit``.
    """

    axes: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(
        cls,
        axes: Sequence[Mapping[str, Any] | str] | None,
        dimension_names: Sequence[str | None] | None,
        ndim: int,
    ) -> "OmeAxes":
        """Return the axes that are given, else those that the dimensions or their number imply."""
        if axes is None and dimension_names is not None:
            axes = [name for name in dimension_names if name is not None]
        elif axes is None:
            axes = list(_USUAL_NAMES.get(ndim, ""))
        items = list(axes) if isinstance(axes, Sequence) else axes
        described = [
            _with_type({"name": axis} if isinstance(axis, str) else axis, f"axes[{at}]")
            for at, axis in enumerate(instance_of(items, "axes", list))
        ]
        return cls(tuple(described))._checked(ndim)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(axis["name"] for axis in self.axes)

    @property
    def channel(self) -> int | None:
        """The number of the axis of channels, if there is one."""
        types = [axis.get("type") for axis in self.axes]
        return types.index("channel") if "channel" in types else None

    def to_json(self) -> list[dict[str, Any]]:
        """Return the axes as they are stored."""
        return [dict(axis) for axis in self.axes]

    def with_units(self, units: Mapping[str, str]) -> "OmeAxes":
        """Return the axes with the units of some of them."""
        self._check_names("units", instance_of(units, "units", dict))
        axes = tuple(
            {**axis, "unit": units[axis["name"]]} if axis["name"] in units else axis
            for axis in self.axes
        )
        return replace(self, axes=axes)._checked(len(axes))

    def numbers(
        self, key: str, values: Mapping[str, float] | Sequence[float] | None, default: float
    ) -> Numbers:
        """Return a number for each axis; those that are not given are the default."""
        if isinstance(values, Mapping):
            self._check_names(key, values)
            values = [values.get(name, default) for name in self.names]
        elif values is None:
            values = [default] * len(self.axes)
        try:
            numbers = tuple(map(float, values))
        except (TypeError, ValueError, OverflowError):
            numbers = ()
        if len(numbers) != len(self.axes) or not all(map(isfinite, numbers)):
            raise MetadataError(
                "there must be one number for each axis, and it must be finite",
                key=key,
                found=values,
                expected=self.names,
            )
        return numbers

    def _check_names(self, key: str, values: Mapping[str, Any]) -> None:
        for name in values:
            one_of(name, key, self.names)

    def _checked(self, ndim: int) -> "OmeAxes":
        types = [axis.get("type") for axis in self.axes]
        order = [_ORDER.get(str(kind), _ORDER["channel"]) for kind in types]
        right = (
            len(self.axes) == ndim
            and len(set(self.names)) == ndim
            and order == sorted(order)
            and order.count(0) < 2
            and order.count(1) < 2
            and order.count(2) in (2, 3)
        )
        if not right:
            raise MetadataError(
                "OME-Zarr requires a name for each of two to five axes, in this order: at most one "
                "of time, at most one of channels or of another type, two or three of space; pass "
                'axes=[{"name": ..., "type": "space"}, ...], or transpose the array',
                key="axes",
                found=self.to_json(),
                expected=f"{ndim} axes, such as t, c, z, y, x",
            )
        for axis in self.axes:
            if "unit" in axis and axis.get("type") in _UNITS:
                one_of(axis["unit"], f"unit of axis {axis['name']!r}", _UNITS[axis["type"]])
        return self


def _with_type(value: Any, key: str) -> dict[str, Any]:
    axis = instance_of(dict(value) if isinstance(value, Mapping) else value, key, dict)
    kind = _TYPES.get(instance_of(axis.get("name"), f"{key}.name", str))
    return axis if kind is None or "type" in axis else {**axis, "type": kind}
