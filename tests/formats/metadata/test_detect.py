"""Which format a node is in."""

import pytest

from tests.covering import for_each
from tests.documents import dump, v2, v3
from zarrdask.errors import MetadataError
from zarrdask.formats.grids.chunk_grid import parse_lengths
from zarrdask.formats.metadata import detect
from zarrdask.formats.metadata.formats import find_format
from zarrdask.formats.metadata.json import parse_json, render_json


def test_all_formats_documents_are_asked_for_at_once():
    assert set(detect.all_names()) == {"zarr.json", ".zarray", ".zgroup", ".zattrs"}


@for_each(
    ("documents", "version"),
    [
        ({"zarr.json": dump(v3())}, 3),
        ({".zarray": dump(v2())}, 2),
        ({".zgroup": b'{"zarr_format": 2}'}, 2),
        ({"zarr.json": dump(v3()), ".zarray": dump(v2())}, 3),
    ],
)
def test_the_format_is_found_by_the_document(documents, version):
    assert detect.parse(documents).zarr_format == version


def test_nothing_is_found_where_nothing_is():
    assert detect.parse(dict.fromkeys(detect.all_names())) is None


@for_each("number", [1, 4, "3", None])
def test_an_unknown_format_is_an_error_that_lists_the_known(number):
    with pytest.raises(MetadataError, match="2 or 3 or 'v3-draft'") as caught:
        find_format(number)
    assert caught.value.found == number


@pytest.mark.parametrize("document", [{"zarr.json": dump(v3())}, {".zarray": dump(v2())}])
def test_metadata_are_written_in_their_own_format(document):
    metadata = detect.parse(document)
    assert set(document) <= set(metadata.render())
    assert detect.parse(metadata.render()) == metadata


def test_documents_are_utf8_and_may_begin_with_a_mark():
    assert parse_json('{"a": "た"}'.encode(), "k") == {"a": "た"}
    assert parse_json(b"\xef\xbb\xbf{}", "k") == {}
    assert render_json({"a": "た"}, "k").decode().count("た") == 1


@for_each("value", [None, 4, "44", (4,), [4.0], [-1], [True], [2**63]])
def test_what_is_no_list_of_lengths_is_an_error(value):
    with pytest.raises(MetadataError) as caught:
        parse_lengths(value, "shape", 0)
    assert (caught.value.key, caught.value.found) == ("shape", value)
