"""Definitions of extensions in documents, and registries of what implements them."""

import pytest

from tests.covering import for_each
from zarrdask.errors import MetadataError, UnsupportedError
from zarrdask.formats.extension import (
    Definition,
    Registry,
    find_package,
    is_uri,
    members_of,
    parse_definition,
)


@for_each(
    ("document", "expected"),
    [
        ("gzip", Definition("gzip")),
        ({"name": "gzip"}, Definition("gzip")),
        ({"name": "gzip", "configuration": {"level": 1}}, Definition("gzip", {"level": 1})),
        ({"name": "gzip", "must_understand": False}, Definition("gzip", {}, False)),
        ("https://example.com/a", Definition("https://example.com/a")),
    ],
)
def test_a_definition_comes_back(document, expected):
    found = parse_definition(document, "codecs")
    assert found == expected
    assert parse_definition(found.to_json(), "codecs") == expected


@for_each(
    "document",
    [
        5,
        None,
        [],
        {},
        {"name": 5},
        "Gzip",
        "",
        {"name": "gzip", "configuration": 5},
        {"name": "gzip", "must_understand": 0},
        {"name": "gzip", "level": 1},
    ],
)
def test_anything_else_is_an_error_with_its_key(document):
    with pytest.raises(MetadataError, match="codecs") as caught:
        parse_definition(document, "codecs")
    assert caught.value.found == document


def test_members_of_a_configuration_have_defaults():
    defaults = {"level": 1, "mode": ...}
    given = {"mode": "fast"}
    assert members_of(given, "codec x", defaults) == {"level": 1, "mode": "fast"}
    assert given == {"mode": "fast"}
    assert members_of(None, "codec x", {"level": 1}) == {"level": 1}
    with pytest.raises(MetadataError, match="missing") as caught:
        members_of({"level": 2}, "codec x", defaults)
    assert caught.value.expected == "mode"
    with pytest.raises(MetadataError, match="unknown member") as caught:
        members_of({"mode": 1, "levels": 2}, "codec x", defaults)
    assert (caught.value.found, caught.value.expected) == ("levels", "level, mode")


@for_each(
    ("value", "expected"),
    [("https://a.b/c", True), ("urn:x", True), ("gzip", False), (5, False), ("", False)],
)
def test_a_uri_has_a_scheme(value, expected):
    assert is_uri(value) is expected


@for_each(
    ("name", "expected"),
    [("acme", "acme-zarr"), ("acme.x", None), ("image_jpeg", "image"), ("image", None)],
)
def test_the_package_of_a_name_is_found(name, expected):
    assert find_package(name, {"acme": "acme-zarr", "image_": "image"}) == expected


def registry(provider=lambda _: None):
    built_in = {"pi": "math:pi", "bits*": "math:tau", "e": "tests.formats.test_extension:TABLE"}
    return Registry("number", "numbers", "zarrdask.no_such_group", built_in, provider)


TABLE = {"e": 2.7}


def test_built_in_implementations_are_loaded_by_name():
    numbers = registry()
    assert [round(numbers.find(name), 1) for name in ("pi", "e", "bits8")] == [3.1, 2.7, 6.3]
    assert numbers.get("phi") is None
    assert numbers.names() == ["bits*", "e", "pi"]


def test_a_registered_implementation_replaces_another():
    numbers = registry()
    numbers.register("pi", 3)
    numbers.register("phi", 1.6)
    assert (numbers.find("pi"), numbers.get("phi")) == (3, 1.6)
    assert "phi" in numbers.names()
    with pytest.raises(MetadataError, match="numbers"):
        numbers.register("Phi", 1.6)


def test_an_unknown_name_is_an_error_that_suggests_others():
    with pytest.raises(UnsupportedError, match="unknown number") as caught:
        registry().find("pie")
    assert (caught.value.key, caught.value.found, caught.value.expected) == ("numbers", "pie", "pi")
    assert registry(lambda name: f"install {name}").unknown("pie").expected == "install pie"
