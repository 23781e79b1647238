"""The sources of a concatenation: nested lists become a table, and patterns what they match."""

import numpy as np
import pytest

from tests.covering import for_each
from zarrdask.arrays.nodes.concatenations.source_table import Source, matching, parse_sources
from zarrdask.errors import MetadataError, NodeNotFoundError


@for_each(
    "sources, counts",
    [(["a", "b"], (2,)), ([["a", "b"], ["c", "d"], ["e", "f"]], (3, 2)), ([[["a"]]], (1, 1, 1))],
)
def test_nested_lists_are_a_table_in_c_order(sources, counts):
    table = parse_sources(sources, None)
    assert table.counts == counts
    assert [each.array for each in table.sources] == [*"abcdef"][: len(table.sources)]


def test_a_pair_is_a_source_and_its_region_and_none_is_missing():
    table = parse_sources([("a", slice(2)), None, {"b": 1}], None)
    assert table.sources == [Source("a", slice(2)), None, Source({"b": 1})]


@for_each("sources", [[], [["a"], []], [["a", "b"], ["c"]], [["a"], "b"], ["a", ["b"]]])
def test_lists_of_other_lengths_or_depths_are_an_error(sources):
    with pytest.raises(MetadataError, match="lists of sources") as caught:
        parse_sources(sources, None)
    assert caught.value.key == "sources"


@for_each("sources", [("a", "b"), iter(["a"]), 5, np.zeros(2), {"a": 1}])
def test_other_values_are_no_lists(sources):
    with pytest.raises(MetadataError):
        parse_sources(sources, None)


def test_a_pattern_is_replaced_by_what_it_matches_in_natural_order(tmp_path):
    for number in (1, 9, 10):
        (tmp_path / f"x-{number}.zarr").mkdir()
    pattern = f"{tmp_path}/x-*.zarr"
    names = [path.rpartition("-")[2] for path in matching(pattern, None)]
    assert names == ["1.zarr", "9.zarr", "10.zarr"]
    assert parse_sources(pattern, None).counts == (3,)
    with pytest.raises(NodeNotFoundError, match="nothing matches"):
        matching(f"{tmp_path}/y-*", None)


def test_a_path_without_magic_need_not_exist():
    assert matching("s3://bucket/a", None) == ["s3://bucket/a"]
