"""The conventions by which the attributes of a group describe the levels of a pyramid."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from zarrdask.errors import one_of
from zarrdask.metadata.model import ZarrFormat
from zarrdask.pyramids.levels import Borders, Level


class Convention(Protocol):
    """How a group describes the levels of a pyramid."""

    #: What this convention does by default at the end of axes whose length is odd.
    borders: Borders

    def path(self, number: int) -> str:
        """Return the path of a new level from the group; level 0 is the finest."""

    def attributes(
        self,
        levels: Sequence[Level],
        dimension_names: Sequence[str | None] | None,
        dtype: np.dtype[Any],
        *,
        zarr_format: ZarrFormat,
        method: str,
        **details: Any,
    ) -> Mapping[str, Any]:
        """Return the attributes of the group that describe the levels.

        The first of `levels` need not be level 0, which may be left out. `details` are the keyword
        arguments of `zarrdask.pyramid` that are not its own: an error, if unknown.
        """


class Plain:
    """No convention: levels are named by their numbers, and no attributes are written."""

    borders: Borders = "partial"

    def path(self, number: int) -> str:
        """Return the number of the level."""
        return str(number)

    def attributes(self, levels: Sequence[Level], *_: Any, **details: Any) -> Mapping[str, Any]:
        """Return no attributes."""
        return {}


class Ome(Plain):
    """OME-Zarr: 0.4 in v2, 0.5 in v3."""

    borders: Borders = "trim"

    def attributes(
        self,
        levels: Sequence[Level],
        dimension_names: Sequence[str | None] | None = None,
        dtype: Any = None,
        *,
        zarr_format: ZarrFormat = 3,
        method: str = "mean",
        **details: Any,
    ) -> Mapping[str, Any]:
        """Return the attribute ``ome``, or ``multiscales`` in v2."""
        names = dimension_names or "tczyx"[-len(levels[0].shape) :]
        datasets = [
            {
                "path": level.path,
                "coordinateTransformations": [
                    {"type": "scale", "scale": list(level.scale)},
                    {"type": "translation", "translation": list(level.translation)},
                ],
            }
            for level in levels
        ]
        axes = [{"name": name} for name in names]
        document = {"axes": axes, "datasets": datasets, "type": method}
        if zarr_format == 2:
            return {"multiscales": [{"version": "0.4", **document}]}
        return {"ome": {"version": "0.5", "multiscales": [document]}}


#: The conventions by name, as `zarrdask.pyramid` takes them; None for no attributes.
CONVENTIONS: dict[str | None, Convention] = {"ome": Ome(), None: Plain()}


def find_convention(name: str | None) -> Convention:
    """Return a convention by its name."""
    one_of(name, "convention", tuple(CONVENTIONS))
    return CONVENTIONS[name]
