"""Rules for keys and prefixes."""

import pytest

from tests.covering import for_each
from zarrdask.errors import MetadataError
from zarrdask.formats.store_keys import check_key, check_prefix, check_relative


@for_each("key", ["a", "a/b", "ä b/%", "/a", "a//b"])
def test_any_text_that_does_not_end_with_a_slash_is_a_key(key):
    assert check_key(key) == key


@for_each("key", ["", "a/", None, 1, b"a", "a\udc80"])
def test_other_values_are_no_keys(key):
    with pytest.raises(MetadataError, match="invalid key"):
        check_key(key)


@for_each("key", ["ä", "a b", "a%", "a\n"])
def test_the_draft_allows_few_characters(key):
    assert check_key(key) == key
    with pytest.raises(MetadataError, match="draft of Zarr v3"):
        check_key(key, draft=True)


@for_each("prefix, expected", [("", ""), ("/", ""), ("a/", "a/"), ("a/b/", "a/b/")])
def test_prefixes_end_with_a_slash_or_are_empty(prefix, expected):
    assert check_prefix(prefix) == expected


@for_each("prefix", ["a", "a/b", None])
def test_other_values_are_no_prefixes(prefix):
    with pytest.raises(MetadataError, match="invalid prefix"):
        check_prefix(prefix)


@for_each("key", ["a", "a/b", ".zarray", "a/.zarray", "c/0/1"])
def test_a_relative_key_stays_below_its_node(key):
    assert check_relative(key, "node") == key


@for_each("key", ["..", "a/../b", ".", "/a", "a//b", "a/", "", "a\0", "a\\b", 3])
def test_a_key_that_leads_out_of_its_node_is_an_error(key):
    with pytest.raises(MetadataError, match="leads out of the node") as caught:
        check_relative(key, "node")
    assert (caught.value.key, caught.value.found) == ("node", key)
