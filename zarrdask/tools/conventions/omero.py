"""The member ``omero`` of OME-Zarr: how an image is displayed. Pure."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from zarrdask.errors import MetadataError, instance_of

_COLOR = re.compile("[0-9A-Fa-f]{6}")
_WINDOW = ("min", "max", "start", "end")


def render_omero(omero: Mapping[str, Any], channels: int, dtype: np.dtype[Any]) -> dict[str, Any]:
    """Return display settings in which each channel has a window, by default that of the type."""
    instance_of(omero, "omero", dict)
    items = instance_of(omero.get("channels"), "omero.channels", list)
    if len(items) != channels:
        raise MetadataError(
            "the display settings must have one item for each channel of the image",
            key="omero.channels",
            found=f"{len(items)} items",
            expected=f"{channels}",
        )
    written = [_channel(item, f"omero.channels[{at}]", dtype) for at, item in enumerate(items)]
    return {**omero, "channels": written}


def _channel(value: Any, key: str, dtype: np.dtype[Any]) -> dict[str, Any]:
    channel = instance_of(value, key, dict)
    color = instance_of(channel.get("color"), f"{key}.color", str)
    if not _COLOR.fullmatch(color):
        raise MetadataError(
            "a color must be six hexadecimal digits",
            key=f"{key}.color",
            found=color,
            expected='red, green and blue, such as "FF8000"',
        )
    low, high = _range(dtype)
    window = {"min": low, "max": high, "start": low, "end": high}
    window |= instance_of(channel.get("window", {}), f"{key}.window", dict)
    for name in _WINDOW:
        if type(window[name]) not in (int, float):
            raise MetadataError(
                "the window of a channel must consist of numbers",
                key=f"{key}.window.{name}",
                found=window[name],
            )
    return {**channel, "window": window}


def _range(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return the values between which an image is displayed by default."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return int(limits.min), int(limits.max)
    return 0, 1
