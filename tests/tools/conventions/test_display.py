"""What tables and notebooks show of the levels of a pyramid."""

import numpy as np

import zarrdask
from tests.covering import for_each
from zarrdask.tools.conventions import Level, write_multiscales


def pyramid(store, shape=(2, 8, 6), dtype="u2"):
    root = zarrdask.create_group(store)
    for name, factor in ("0", 1), ("half", 2):
        lengths = (*shape[:-2], *(n // factor for n in shape[-2:]))
        z = root.create_array(
            name,
            shape=lengths,
            dtype=dtype,
            chunks=4,
            dimension_names=("c", "y", "x")[-len(shape) :],
        )
        z[...] = np.ones(lengths, dtype)
    ones = (1,) * (len(shape) - 2)
    levels = [Level("0", (*ones, 0.5, 0.25)), Level("half", (*ones, 1, 0.5))]
    write_multiscales(root, levels, convention="ome")
    return root


def test_levels_are_in_columns():
    rows = dict(pyramid({}).info.rows)
    assert rows["levels"] == "2"
    text = str(pyramid({}).info)
    assert "\n  0         shape (2, 8, 6)  scale (1, 0.5, 0.25)  chunks (4, 4, 4)\n" in text
    assert "\n  half      shape (2, 4, 3)  scale (1, 1, 0.5)     chunks (4, 4, 4)\n" in text


def test_a_notebook_shows_levels_and_an_image_of_each_channel_of_the_coarsest():
    html = pyramid({})._repr_html_()
    assert html.count("<strong>level</strong>") == 2
    assert html.count("<img") == 2
    assert "c 1" in html


@for_each(
    ("shape", "dtype", "images"), [((8, 6), "f4", 1), ((9, 8, 6), "u1", 4), ((2, 2), "c8", 0)]
)
def test_images_are_of_numbers_and_few(shape, dtype, images):
    assert pyramid({}, shape, dtype)._repr_html_().count("<img") == images


def test_a_level_may_be_a_group():
    root = zarrdask.create_group({})
    level = root.create_group("0")
    level.create_array("y", shape=4, dtype="f8")
    level.create_array("t", shape=(3, 4, 4), dtype="f4")
    root.attrs["multiscales"] = {"layout": [{"asset": "0"}]}
    assert dict(root.info.rows)["  0"] == "shape (3, 4, 4)  chunks (3, 4, 4)"


@for_each(
    "attributes",
    [{"multiscales": 5}, {"multiscales": [{"datasets": [{"path": "gone"}]}]}, {"ome": {}}],
)
def test_invalid_attributes_are_not_shown(attributes):
    root = zarrdask.create_group({}, attributes=attributes)
    assert "levels" not in dict(root.info.rows)
    assert root._repr_html_()
