"""What is saved of the sources of a concatenation, to find them again."""

import os

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.arrays.nodes.concatenations.join_sources import recipe_of
from zarrdask.errors import ZarrdaskError


def array(*shape, **options):
    return zarrdask.create_array({}, shape=shape, dtype="i4", **options)


def test_a_recipe_has_the_urls_and_absolute_paths_of_sources():
    recipe = recipe_of("concat", ["s3://b/a", ["x"]], axis=0)
    assert recipe == {
        "verb": "concat",
        "sources": ["s3://b/a", [os.path.abspath("x")]],
        "axis": 0,
    }
    assert recipe_of("concat", ["s3://b/a", array(2)], axis=0) is None


def test_new_sources_that_match_a_pattern_are_found_again(tmp_path):
    for number in range(2):
        zarrdask.create_array(tmp_path / f"a{number}", shape=3, dtype="i4")
    joined = zarrdask.concat(f"{tmp_path}/a*")
    saved = tmp_path / "saved.json"
    joined.save(saved)
    zarrdask.create_array(tmp_path / "a2", shape=3, dtype="i4")
    again = zarrdask.open_array(saved)
    assert again.shape == (6,)
    assert len(again.refresh().added) == 1
    assert again.shape == (9,)


@for_each(
    "options",
    [{"axis": "t"}, {"axis": 5}, {"axis": (0, 1)}, {"missing": "ignore"}],
)
def test_wrong_arguments_are_errors(options):
    with pytest.raises(ZarrdaskError):
        zarrdask.concat([array(2, 3), array(2, 3)], **options)


def test_axes_may_be_given_by_their_names():
    sources = [array(2, 3, dimension_names=("t", "x"))] * 2
    assert zarrdask.concat(sources, "x").shape == (2, 6)
    stacked = zarrdask.stack(sources, dimension_names="run")
    assert (stacked.shape, stacked.dimension_names) == ((2, 2, 3), ("run", "t", "x"))


def test_nested_lists_are_joined_along_several_axes():
    values = np.arange(12).reshape(4, 3)
    sources = [[array(2, 2), array(2, 1)], [array(2, 2), array(2, 1)]]
    for i, row in enumerate(sources):
        for j, each in enumerate(row):
            each[...] = values[2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
    np.testing.assert_array_equal(zarrdask.concat(sources, (0, 1))[...], values)
