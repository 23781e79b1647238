"""The part of a stored dataset that a region means."""

from types import SimpleNamespace

import numpy as np
import pytest

xarray = pytest.importorskip("xarray")

from tests.covering import for_each  # noqa: E402
from zarrdask.errors import SelectionError  # noqa: E402
from zarrdask.xarray.writing.dataset_regions import (  # noqa: E402
    MissingLabelError,
    RegionTypeError,
    find_region,
)

STORED = {"t": np.array([10, 20, 30, 40]), "twice": np.array([1, 1])}


def find(region, *labels, mode="r+", **coordinates):
    """Return the region for a dataset along "t", with labels."""
    coords = {"t": [*labels]} if labels else {}
    dataset = xarray.Dataset({"v": ("t", np.zeros(len(labels) or 2))}, {**coords, **coordinates})
    stored = SimpleNamespace(values=lambda name: STORED[name])
    return find_region(dataset, region, stored, mode)


def test_labels_are_found_in_the_stored_coordinate():
    assert find("auto", 20, 30) == {"t": slice(1, 3)}
    assert find({"t": "auto"}, 40) == {"t": slice(3, 4)}
    assert find({"t": slice(1, 3)}) == {"t": slice(1, 3)}


def test_without_a_coordinate_it_begins_at_the_start():
    assert find("auto") == {"t": slice(0, 2)}


@for_each("labels", [(30, 20), (10, 30)])
def test_labels_must_be_consecutive(labels):
    with pytest.raises(SelectionError, match="non-contiguous"):
        find("auto", *labels)


def test_a_label_that_is_not_stored_is_an_error():
    with pytest.raises(MissingLabelError) as caught:
        find("auto", 20, 25)
    assert caught.value.found == 25


@for_each(
    "region, kind",
    [
        (5, RegionTypeError),
        ({"t": 5}, RegionTypeError),
        ({"t": slice(0, 2, 2)}, SelectionError),
        ({"x": slice(0, 2)}, SelectionError),
    ],
)
def test_other_values_are_no_regions(region, kind):
    with pytest.raises(kind):
        find(region)


def test_a_region_is_found_only_where_the_dataset_exists():
    with pytest.raises(SelectionError, match="must be 'r\\+' or 'a'"):
        find("auto", 20, mode="a-")


def test_each_variable_has_a_dimension_of_the_region():
    with pytest.raises(SelectionError, match="drop_vars"):
        find({"t": slice(0, 2)}, height=2.0)
