"""The member ``omero`` of OME-Zarr: how an image is displayed. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zarrdask.errors import MetadataError, instance_of

_COLOR = re.compile("[0-9A-Fa-f]{6}")
_WINDOW = ("min", "max", "start", "end")


def render_omero(omero: Mapping[str, Any], channels: int, dtype: np.dtype[Any]) -> dict[str, Any]:
    """Return display settings in which each channel has a window, by default the type's range.

    `with_windows` makes it narrower when the values are known.
    """
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


def has_window(channel: Mapping[str, Any]) -> bool:
    """Whether the settings of a channel say where its display begins or ends."""
    return not {"start", "end"}.isdisjoint(channel.get("window", {}))


def with_windows(omero: Any, windows: Sequence[tuple[float, float] | None]) -> dict[str, Any]:
    """Return stored display settings with other windows: the first and last value, or None.

    The limits ``min`` and ``max`` are widened where the values of a channel lie outside.
    """
    channels = instance_of(instance_of(omero, "omero", dict).get("channels"), "channels", list)
    if len(channels) != len(windows):
        raise MetadataError(
            "the display settings have other channels", key="omero.channels", found=len(channels)
        )
    changed = []
    for channel, window in zip(channels, windows, strict=True):
        if window is not None:
            start, end = window
            limits = {"min": min(channel["window"]["min"], start)}
            limits["max"] = max(channel["window"]["max"], end)
            channel = {**channel, "window": {**limits, "start": start, "end": end}}
        changed.append(channel)
    return {**omero, "channels": changed}


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
