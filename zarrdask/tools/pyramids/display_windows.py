"""The windows of brightness in which channels are displayed, from the values of a pyramid."""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from zarrdask.arrays.hierarchy.node_path import NodePath
from zarrdask.arrays.nodes.array import Array
from zarrdask.arrays.nodes.open_group import open_group
from zarrdask.errors import ZarrdaskError
from zarrdask.formats.metadata.model import ZarrFormat
from zarrdask.tools.conventions.axes import OmeAxes
from zarrdask.tools.conventions.ome_version import OmeVersion
from zarrdask.tools.conventions.omero import has_window, with_windows
from zarrdask.tools.pyramids.pyramid_changes import change_attributes

#: The percentiles of a channel's values at which its display is black, and has the full color.
_PERCENTILES = (0.5, 99.5)
#: The most values of a channel that are read.
MAX_VALUES = 1 << 22


def store_windows(
    node: NodePath, path: str, details: Mapping[str, Any], zarr_format: ZarrFormat
) -> None:
    """Store windows for the channels of an image without one, by the values of a coarse level.

    Parameters
    ----------
    node : NodePath
        The group of the pyramid.
    path : str
        The path of the level in the group.
    details : mapping
        The arguments of OME-Zarr: only channels in its ``omero`` that have no window get one.
    zarr_format : int
        The format of the group.
    """
    channels = (details.get("omero") or {}).get("channels", ())
    if all(map(has_window, channels)):
        return
    level = open_group(*node, consolidated=False)[path]
    if not isinstance(level, Array) or level.dtype.kind not in "biuf":
        return
    axis = OmeAxes.of(details.get("axes"), level.dimension_names, level.ndim).channel
    windows = [
        None if has_window(channel) else _window(level, axis, number)
        for number, channel in enumerate(channels)
    ]

    def change(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
        version = OmeVersion.of(zarr_format)
        try:
            omero = with_windows(version.members(attributes).get("omero"), windows)
        except ZarrdaskError:
            return {}  # another program has replaced the settings
        return version.attributes({"omero": omero}, attributes)

    change_attributes(node, change)


def _window(level: Array, axis: int | None, number: int) -> tuple[float, float] | None:
    """Return the percentiles of one channel; None if they do not span a range."""
    values = np.asarray(level[_sample(level, axis, number)])
    values = values[np.isfinite(values)]
    if not values.size:
        return None
    start, stop = np.percentile(values, _PERCENTILES).tolist()
    if level.dtype.kind != "f":
        start, stop = int(np.floor(start)), int(np.ceil(stop))
    return (start, stop) if start < stop else None


def _sample(level: Array, axis: int | None, number: int) -> tuple[slice, ...]:
    """Return evenly spaced elements of a channel: all of them, if there are not too many."""
    region = [slice(None)] * level.ndim
    sizes = list(level.shape)
    if axis is not None:
        region[axis], sizes[axis] = slice(number, number + 1), 1
    steps = [1] * level.ndim
    while prod(-(-size // step) for size, step in zip(sizes, steps, strict=True)) > MAX_VALUES:
        longest = max(range(level.ndim), key=lambda each: sizes[each] // steps[each])
        steps[longest] *= 2
        region[longest] = slice(None, None, steps[longest])
    return tuple(region)
