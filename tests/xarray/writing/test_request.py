"""What a user asks of a write: options that exclude each other are errors."""

import pytest

xarray = pytest.importorskip("xarray")

from tests.covering import for_each  # noqa: E402
from zarrdask.errors import MetadataError  # noqa: E402
from zarrdask.xarray.writing.request import (  # noqa: E402
    ArgumentTypeError,
    WriteSettings,
    contents,
    default_mode,
)


@for_each(
    "settings",
    [
        {"mode": "w", "append_dim": "t"},
        {"mode": "w-", "region": {"t": slice(2)}},
        {"mode": "x"},
        {"mode": "w", "commit": "never"},
        {"mode": "w", "resume": "maybe"},
        {"mode": "w", "resume": True, "commit": "first"},
    ],
)
def test_options_that_do_not_fit_together_are_errors(settings):
    with pytest.raises(MetadataError):
        WriteSettings(**settings).check()


@for_each(
    "settings",
    [
        {"mode": "a", "append_dim": "t"},
        {"mode": "r+", "region": "auto"},
        {"mode": "w", "resume": True, "commit": "last"},
    ],
)
def test_others_are_accepted(settings):
    WriteSettings(**settings).check()


def test_the_mode_follows_from_the_other_options():
    assert default_mode("t", None) == "a"
    assert default_mode(None, "auto") == "r+"
    assert default_mode(None, None) == "w-"


@for_each(
    "settings, may_create",
    [
        ({"mode": "w"}, True),
        ({"mode": "r+"}, False),
        ({"mode": "a", "region": {}}, False),
        ({"mode": "w", "compute": False}, False),
    ],
)
def test_what_may_be_created_now(settings, may_create):
    assert WriteSettings(**settings).may_create is may_create


def test_a_data_array_is_a_dataset_with_the_names_of_xarray():
    array = xarray.DataArray([1, 2], dims="x")
    assert [*contents(array, {}, inherit=False)[""].dataset] == ["__xarray_dataarray_variable__"]
    named = contents(array.rename("x"), {}, inherit=False)[""].dataset
    assert named.attrs == {"__xarray_dataarray_name__": "x"}
    assert [*contents(array.rename("a"), {}, inherit=False)[""].dataset] == ["a"]


def test_the_groups_of_a_tree_come_parents_first():
    tree = xarray.DataTree.from_dict({"/a/b": xarray.Dataset({"v": 1}), "/a": xarray.Dataset()})
    encoding = {"/a/b": {"v": {"dtype": "i2"}}}
    found = contents(tree, encoding, inherit=False)
    assert [*found] == ["", "a", "a/b"]
    assert found["a/b"].encoding == {"v": {"dtype": "i2"}}
    with pytest.raises(MetadataError, match="unexpected encoding group"):
        contents(tree, {"/c": {}}, inherit=False)


def test_other_objects_are_not_written():
    with pytest.raises(ArgumentTypeError, match="only objects of xarray"):
        contents([1, 2], {}, inherit=False)
