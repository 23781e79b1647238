"""The place of an array in space."""

import pytest

import zarrdask
from tests.covering import for_each
from tests.tools.conventions.nodes import make
from zarrdask.errors import MetadataError
from zarrdask.tools.conventions import (
    Spatial,
    spatial,
)


def test_the_place_in_space(root):
    attributes = {
        "spatial:dimensions": ["y", "x"],
        "spatial:transform": [10, 0, 500000, 0, -10, 5000000],
        "spatial:bbox": [0.0, 1.0, 2.0, 3.0],
        "spatial:shape": [20, 30],
        "spatial:registration": "node",
        "spatial:later": "unknown",
    }
    make(root, "t", **attributes)
    place = (10, 0, 500000, 0, -10, 5000000)
    expected = Spatial(("y", "x"), place, (0, 1, 2, 3), (20, 30), "node")
    assert spatial(root["t"]) == expected
    assert spatial(root) is None
    root.attrs["spatial:dimensions"] = ["y", "x"]
    assert spatial(root) == Spatial(dimensions=("y", "x"), registration="pixel")


@for_each(
    ("name", "value"),
    [
        ("transform", [1, 2, 3]),
        ("transform", [1, 2, 3, 4, 5, "6"]),
        ("bbox", 5),
        ("shape", [True, 2]),
        ("dimensions", "yx"),
        ("dimensions", [1, 2]),
        ("registration", 1),
    ],
)
def test_a_place_of_another_form_is_an_error_that_names_the_attribute(name, value):
    root = zarrdask.create_group({}, attributes={f"spatial:{name}": value})
    with pytest.raises(MetadataError, match=f"spatial:{name}"):
        spatial(root)
