"""Paths of nodes."""

import pytest

import zarrdask
from tests.covering import for_each
from zarrdask.arrays.hierarchy.path import join_path, key_prefix, normalise_path
from zarrdask.errors import MetadataError


@for_each(
    ("path", "expected"),
    [
        ("\\foo//bar/", "foo/bar"),
        ("//foo//bar/", "foo/bar"),
        ("/", ""),
        ("", ""),
        (None, ""),
        ("a", "a"),
        ("a\\b", "a/b"),
        (".hidden/a..b", ".hidden/a..b"),
        ("  a ", "  a "),
        ("A/a", "A/a"),
    ],
)
def test_paths_are_normalised(path, expected):
    assert normalise_path(path) == expected
    assert normalise_path(expected) == expected


@for_each("path", [".", "..", "a/../b", "a/./b", "...", "..\\x", "/a/.."])
def test_a_name_of_periods_only_is_an_error(path):
    with pytest.raises(MetadataError) as caught:
        normalise_path(path)
    assert caught.value.found == path


@pytest.mark.parametrize("path", ["..", "a/../../etc", "a/..\\..\\etc"])
@pytest.mark.parametrize("act", [zarrdask.open, zarrdask.create_group, zarrdask.open_array])
def test_no_path_leaves_the_store(tmp_path, path, act):
    with pytest.raises(MetadataError):
        act(tmp_path / "store", path)
    assert list(tmp_path.iterdir()) == []


def test_prefixes():
    assert key_prefix("") == ""
    assert key_prefix("a/b") == "a/b/"


def test_joined_paths_are_normal():
    assert join_path("", "a") == "a"
    assert join_path("a", "/b//c") == "a/b/c"
