"""Extensions and storage transformers of documents: what is unknown is an error if it must be."""

import pytest

from zarrdask.errors import MetadataError, UnsupportedError, ZarrdaskError
from zarrdask.formats.extension import Definition
from zarrdask.formats.metadata.extensions import (
    EXTENSIONS,
    check_understood,
    parse_extensions,
    parse_transformers,
)


def test_an_unknown_extension_is_an_error_unless_it_need_not_be_understood():
    name = "https://example.org/extension"
    with pytest.raises(UnsupportedError, match="unknown extension"):
        parse_extensions([{"name": name}])
    optional = parse_extensions([{"name": name, "must_understand": False}])
    assert optional == (Definition(name, {}, must_understand=False),)


def test_a_known_extension_checks_its_configuration(monkeypatch):
    def check(configuration):
        if configuration.get("level") != 1:
            raise MetadataError("wrong level", key="level")

    monkeypatch.setattr(EXTENSIONS, "get", {"mine": check}.get)
    definition = Definition("mine", {"level": 1})
    assert check_understood([definition]) == (definition,)
    with pytest.raises(MetadataError, match="wrong level"):
        check_understood([definition, Definition("mine", {"level": 2})])


@pytest.mark.parametrize("items", [[], {}, "name", None])
def test_there_is_a_list_of_at_least_one_extension(items):
    with pytest.raises(MetadataError):
        parse_extensions(items)


def test_no_storage_transformer_is_the_same_as_an_empty_list():
    assert parse_transformers([]) == ()
    with pytest.raises(ZarrdaskError, match="storage transformer"):
        parse_transformers([{"name": "unknown"}])
