"""Pyramids in the convention multiscales with a layout."""

import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.errors import MetadataError
from zarrdask.tools.conventions import (
    Level,
    Spatial,
    multiscales,
)

LAYOUT = [
    {"asset": "/third", "derived_from": "half", "transform": {"scale": [3.0, 3.0]}},
    {"asset": "full", "spatial:shape": [60, 120]},
    {
        "asset": "half",
        "derived_from": "full",
        "transform": {"scale": [2.0, 2], "translation": [0.5, 0.5]},
    },
]


def test_levels_of_a_layout_are_in_terms_of_the_level_that_all_are_derived_from(root):
    root.attrs["multiscales"] = {"layout": LAYOUT, "resampling_method": "average"}
    [pyramid] = multiscales(root)
    assert pyramid.levels == (
        Level("third", (6.0, 6.0), (0.5, 0.5)),
        Level("full", spatial=Spatial(shape=(60, 120))),
        Level("half", (2.0, 2.0), (0.5, 0.5)),
    )


@for_each(
    ("layout", "key"),
    [
        (5, "layout"),
        ([5], r"layout\[0\]"),
        ([{}], "asset"),
        ([{"asset": "a", "derived_from": "b"}], "derived_from"),
        ([{"asset": "a", "derived_from": "a"}], "derived_from"),
        ([{"asset": "a", "transform": {"scale": 2}}], "transform.scale"),
        ([{"asset": "a", "transform": []}], "transform"),
        ([{"asset": "a", "transform": {"scale": [1], "translation": [1, 1]}}], "one number"),
    ],
)
def test_a_layout_of_another_form_is_an_error(layout, key):
    root = zarrdask.create_group({}, attributes={"multiscales": {"layout": layout}})
    with pytest.raises(MetadataError, match=key):
        multiscales(root)
