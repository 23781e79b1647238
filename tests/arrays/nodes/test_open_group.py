"""Opening and creating groups."""

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from zarrdask import Array, Group, create_group, open_group
from zarrdask.errors import (
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    NodeTypeError,
    ReadOnlyError,
)


def test_opening_for_reading_is_the_default(full):
    group = open_group(full.store)
    assert group.mode == "r"
    assert group["a"].mode == group["a/x"].mode == "r"


@for_each(
    "act",
    [
        lambda g: g.create_group("new"),
        lambda g: g.create_array("new", shape=1, dtype="i4"),
        lambda g: g.require_group("new"),
        lambda g: g.require_array("new", shape=1, dtype="i4"),
        lambda g: g.__delitem__("a"),
        lambda g: g.attrs.update(a=1),
        lambda g: g.attrs.__setitem__("a", 1),
        lambda g: g["a/x"].__setitem__(..., 1),
        lambda g: g["a"].create_group("new"),
        lambda g: g["a/x"].attrs.update(a=1),
    ],
)
def test_a_group_opened_for_reading_cannot_be_changed(full, act):
    before = {key: full.store.get(key) for key in full.store.list_prefix("")}
    for open_ in (open_group, zarrdask.open):
        with pytest.raises(ReadOnlyError, match=r"r\+"):
            act(open_(full.store))
    assert {key: full.store.get(key) for key in full.store.list_prefix("")} == before


def test_opening_for_changes(full):
    group = open_group(full.store, mode="r+")
    group["a/x"][...] = 3
    assert np.array_equal(full["a/x"][...], np.full((2, 3), 3))


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_opening_what_is_not_there_is_an_error(place, mode):
    with pytest.raises(NodeNotFoundError):
        open_group(place, mode=mode)


def test_mode_a_creates_or_opens(place):
    open_group(place, "g", mode="a", zarr_format=2).attrs["a"] = 1
    group = open_group(place, "g", mode="a")
    assert (group.zarr_format, group.attrs.asdict()) == (2, {"a": 1})
    group.create_group("more")


def test_mode_w_replaces(full):
    assert list(open_group(full.store, mode="w")) == []
    assert list(zarrdask.open(full.store)) == []


def test_mode_w_minus_creates_or_fails(full):
    with pytest.raises(NodeExistsError):
        open_group(full.store, mode="w-")
    assert open_group(full.store, "new", mode="w-").path == "new"


@for_each("mode", ["x", "rw", "", None])
def test_an_unknown_mode_is_an_error(mode):
    with pytest.raises(MetadataError, match="mode"):
        open_group({}, mode=mode)
    with pytest.raises(MetadataError, match="mode"):
        zarrdask.open({}, mode=mode)
    with pytest.raises(MetadataError, match="mode"):
        zarrdask.open_array({}, mode=mode)


def test_opening_the_other_kind_is_an_error_that_says_so(full):
    with pytest.raises(NodeTypeError, match="array"):
        open_group(full.store, "z")
    with pytest.raises(NodeTypeError, match="group"):
        zarrdask.open_array(full.store, "a")


def test_open_gives_whatever_is_there(full):
    assert isinstance(zarrdask.open(full.store), Group)
    assert isinstance(zarrdask.open(full.store, "z"), Array)
    assert zarrdask.open(full.store, "a/x", mode="r+").mode == "r+"


@pytest.mark.parametrize(
    "act",
    [
        lambda g: g["a"],
        lambda g: list(g.arrays()),
        lambda g: g.require_array("a", shape=4, dtype="u2"),
        lambda g: open_group(g)["a"],
        lambda g: zarrdask.open(g, "a"),
        lambda g: zarrdask.open_array(g, "a"),
        lambda g: zarrdask.from_zarr(g, component="a"),
    ],
)
def test_below_a_group_that_was_opened_strictly_all_is_strict(doubtful, act):
    with pytest.raises(MetadataError, match="A-16"):
        act(open_group(doubtful, strict=True))
    act(open_group(doubtful))


@pytest.mark.parametrize("mode", ["a", "w", "w-"])
def test_a_group_that_was_made_strictly_is_strict_below(doubtful, mode):
    del doubtful[".zgroup"]
    group = open_group({}, mode=mode, zarr_format=2, strict=True)
    group.store.set("g/a/.zarray", doubtful["a/.zarray"])
    with pytest.raises(MetadataError, match="A-16"):
        group.create_group("g")["a"]


@pytest.mark.parametrize(
    "options", [{"attributes": [1]}, {"attributes": "ab"}, {"zarr_format": [3]}]
)
def test_an_option_of_the_wrong_kind_is_an_error_that_names_it(options):
    with pytest.raises(MetadataError, match=next(iter(options))):
        create_group({}, **options)


def test_attributes_are_those_of_a_new_group():
    store = {}
    with pytest.raises(MetadataError, match=r"mode 'r\+' creates no group"):
        open_group(store, mode="r+", attributes={"a": 1})
    for mode, number, expected in (("a", 1, 1), ("a", 2, 1), ("w", 3, 3)):
        open_group(store, mode=mode, attributes={"a": number})
        assert dict(open_group(store).attrs) == {"a": expected}
