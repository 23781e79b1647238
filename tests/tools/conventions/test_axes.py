"""The names, types and order of axes that OME-Zarr requires."""

from types import MappingProxyType

import pytest

from tests.covering import for_each
from zarrdask.errors import MetadataError
from zarrdask.tools.conventions.axes import OmeAxes


@for_each(
    ("axes", "dimension_names", "ndim", "types"),
    [
        (None, None, 2, ["space", "space"]),
        (None, None, 5, ["time", "channel", "space", "space", "space"]),
        (None, ("t", "y", "x"), 3, ["time", "space", "space"]),
        (["phase", "y", "x"], ("a", "b", "c"), 3, [None, "space", "space"]),
        ([{"name": "h", "type": "space"}, "x"], None, 2, ["space", "space"]),
    ],
)
def test_types_follow_from_names(axes, dimension_names, ndim, types):
    described = OmeAxes.of(axes, dimension_names, ndim)
    assert [axis.get("type") for axis in described.to_json()] == types


@for_each(
    ("axes", "ndim"),
    [
        (["y", "x"], 3),
        (["y", "x", "c"], 3),
        (["c", "t", "y", "x"], 4),
        (["c", "phase", "y", "x"], 4),
        (["t", "x"], 2),
        (["x", "x"], 2),
        (None, 4),
    ],
)
def test_axes_in_another_order_are_an_error(axes, ndim):
    with pytest.raises(MetadataError, match=r"axes: .*OME-Zarr requires a name"):
        OmeAxes.of(axes, None, ndim)


def test_an_axis_is_a_name_or_any_mapping():
    described = OmeAxes.of([MappingProxyType({"name": "y"}), "x"], None, 2)
    assert [axis["type"] for axis in described.to_json()] == ["space", "space"]
    with pytest.raises(MetadataError, match=r"axes\[1\]"):
        OmeAxes.of(["y", 5], None, 2)
