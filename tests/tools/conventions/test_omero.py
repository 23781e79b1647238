"""Display settings of channels: the windows that they get, and what is refused."""

import numpy as np
import pytest

from tests.covering import for_each
from zarrdask.errors import MetadataError
from zarrdask.tools.conventions.omero import render_omero, with_windows


@for_each(("dtype", "window"), [("i1", (-128, 127)), ("f4", (0, 1)), ("?", (0, 1))])
def test_a_channel_gets_the_range_of_the_data_type(dtype, window):
    settings = {"channels": [{"color": "0000ff", "window": {"end": 0.5}}], "version": "0.4"}
    written = render_omero(settings, 1, np.dtype(dtype))
    low, high = window
    expected = {"min": low, "max": high, "start": low, "end": 0.5}
    assert written == {**settings, "channels": [{"color": "0000ff", "window": expected}]}


@for_each(
    ("settings", "match"),
    [
        ({}, "omero.channels"),
        ({"channels": [5]}, r"omero.channels\[0\]"),
        ({"channels": [{}]}, r"channels\[0\].color"),
        ({"channels": [{"color": "red"}]}, "six hexadecimal digits"),
        ({"channels": [{"color": "FF0000", "window": {"end": "1"}}]}, "window.end"),
    ],
)
def test_invalid_settings_are_an_error(settings, match):
    with pytest.raises(MetadataError, match=match):
        render_omero(settings, 1, np.dtype("u1"))


def test_windows_are_replaced_and_limits_widened():
    before = {"channels": [{"color": "0000ff"}, {"color": "00ff00"}], "rdefs": {"model": "color"}}
    written = with_windows(render_omero(before, 2, np.dtype("f4")), [(-3.0, 8.0), None])
    assert [each["window"] for each in written["channels"]] == [
        {"min": -3.0, "max": 8.0, "start": -3.0, "end": 8.0},
        {"min": 0, "max": 1, "start": 0, "end": 1},
    ]
    assert written["rdefs"] == before["rdefs"]


def test_windows_of_other_channels_are_an_error():
    with pytest.raises(MetadataError, match="other channels"):
        with_windows({"channels": [{"color": "0000ff"}]}, [])
