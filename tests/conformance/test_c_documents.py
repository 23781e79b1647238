"""C.1: keys and documents of v3."""

import json

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import LITTLE, dump, stored, v3, without
from zarrdask.errors import MetadataError, NodeNotFoundError, UnsupportedError

MANDATORY = [
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
]
GROUP = {"zarr_format": 3, "node_type": "group"}


def document(values, path=""):
    """Return what stands at a node."""
    return json.loads(values[f"{path}/zarr.json".lstrip("/")])


def test_c1_a_node_is_described_by_zarr_json_below_its_path():
    values = {}
    zarrdask.create_array(values, "foo/bar", shape=2, dtype="u1")
    assert sorted(values) == ["foo/bar/zarr.json", "foo/zarr.json", "zarr.json"]
    assert document(values, "foo/bar")["node_type"] == "array"
    assert document(values)["node_type"] == "group"


def test_c2_a_chunk_lies_below_its_array():
    values = {}
    z = zarrdask.create_array(values, "foo/baz", shape=(2, 1), dtype="u1", chunks=1)
    z[...] = 1
    assert "foo/baz/c/1/0" in values
    values = {}
    zarrdask.create_array(values, shape=(2, 1), dtype="u1", chunks=1)[...] = 1
    assert "c/1/0" in values


@for_each("member", MANDATORY)
def test_c3_a_missing_member_is_named(member):
    # Of arrays that GDAL wrote in 2023 the codecs are missing (X-C7): in strict mode only they too.
    with pytest.raises(MetadataError, match=member):
        zarrdask.open({"zarr.json": dump(without(v3(), member))}, strict=member == "codecs")


def test_c3_all_members_are_written():
    values = {}
    zarrdask.create_array(values, shape=2, dtype="u1")
    assert set(MANDATORY) <= set(document(values))


def test_c4_attributes_transformers_and_names_are_optional():
    z = zarrdask.open(stored(v3()))
    assert (dict(z.attrs), z.dimension_names, z.metadata.transformers) == ({}, None, ())
    given = v3(attributes={"a": [1]}, storage_transformers=[], dimension_names=["x"])
    z = zarrdask.open(stored(given))
    assert (dict(z.attrs), z.dimension_names) == ({"a": [1]}, ("x",))


def test_c5_a_group_needs_two_members_and_its_document():
    assert dict(zarrdask.open({"zarr.json": dump(GROUP)}).attrs) == {}
    for member in GROUP:
        with pytest.raises(MetadataError, match=member):
            zarrdask.open({"zarr.json": dump(without(GROUP, member))})
    with pytest.raises(MetadataError, match="node_type"):
        zarrdask.open({"zarr.json": dump({**GROUP, "node_type": "folder"})})
    with pytest.raises(NodeNotFoundError):
        zarrdask.open({"a/zarr.json": dump(GROUP)})


def test_c6_creating_makes_the_groups_above():
    values = {}
    zarrdask.create_group(values, "a/b/c")
    assert [document(values, path)["node_type"] for path in ("", "a", "a/b", "a/b/c")] == [
        "group"
    ] * 4


def test_c6_a_prefix_without_a_document_is_no_group():
    values = {"zarr.json": dump(GROUP), "a/b/zarr.json": dump(GROUP)}
    root = zarrdask.open(values)
    assert list(root) == []
    assert "a" not in root
    assert "a/b" in root


@for_each("found", ["3", 3.0, 2, 4, None, True])
def test_c7_zarr_format_is_the_integer_three(found):
    with pytest.raises(MetadataError, match="zarr_format"):
        zarrdask.open({"zarr.json": dump({**v3(), "zarr_format": found})})


def test_c7_a_uri_is_tried_as_a_draft():
    with pytest.raises(MetadataError, match="zarr_format"):
        zarrdask.open({"zarr.json": dump({**v3(), "zarr_format": "https://example.com/4.0"})})


def test_c8_dimension_names_are_texts_or_null_one_an_axis():
    def opened(names):
        return zarrdask.open(stored(v3((2, 2), (1, 1), dimension_names=names))).dimension_names

    assert opened(["y", None]) == ("y", None)
    assert opened(["x", "x"]) == ("x", "x")
    assert opened(["", "x"]) == ("", "x")
    for wrong in (["x"], ["x", "y", "z"], ["x", 1], "xy", {"x": 0}):
        with pytest.raises(MetadataError, match="dimension_names"):
            opened(wrong)


def test_c8_null_instead_of_names_is_read_unless_strict():
    values = {"zarr.json": dump(v3(dimension_names=None))}
    assert zarrdask.open(values).dimension_names is None
    with pytest.raises(MetadataError, match=r"C-8\b"):
        zarrdask.open(values, strict=True)


@pytest.mark.parametrize("codecs", [[], ["crc32c"], [LITTLE, LITTLE]])
def test_c9_exactly_one_codec_makes_bytes_of_arrays(codecs):
    with pytest.raises(MetadataError, match="codecs"):
        zarrdask.open(stored(v3(codecs=codecs)), strict=True)


def test_c9_two_are_always_an_error():
    with pytest.raises(MetadataError, match="codecs"):
        zarrdask.open(stored(v3(codecs=[LITTLE, LITTLE])))


def test_c10_the_fill_value_is_recorded_also_if_it_is_the_default():
    values = {}
    zarrdask.create_array(values, shape=2, dtype="f4")
    assert document(values)["fill_value"] == 0
    values = {}
    zarrdask.create_array(values, shape=2, dtype="?")
    assert document(values)["fill_value"] is False
    with pytest.raises(MetadataError):
        zarrdask.open(stored(v3(fill_value=None)))


def test_xc1_names_are_read_by_zep_9s_rule_and_written_by_the_cores():
    # One character, and a digit first: ZEP 9 allows both, core 3.1 neither.
    for name in ("x", "7zip", "-", "_a"):
        with pytest.raises(UnsupportedError) as caught:
            zarrdask.open(stored(v3(data_type=name)))
        assert caught.value.found == name
    values = {}
    zarrdask.create_array(values, shape=2, dtype="i4", compressors="crc32c")
    names = [codec["name"] for codec in document(values)["codecs"]]
    names += [document(values)[key]["name"] for key in ("chunk_grid", "chunk_key_encoding")]
    assert all(len(name) > 1 and name[0].isalpha() for name in names)
    # The extension point that ZEP 9 calls "chunk_grids" is the member chunk_grid.
    with pytest.raises(UnsupportedError, match="chunk_grids"):
        zarrdask.open(stored(v3(chunk_grids=[])))


def test_xc3_the_specifications_example_of_an_extension_type_is_refused_by_name():
    example = v3(
        data_type={"name": "urn:example:datetime", "configuration": {"unit": "ns"}},
        fill_value=None,
    )
    with pytest.raises(UnsupportedError) as caught:
        zarrdask.open(stored(example))
    assert caught.value.key.endswith("data_type")
    assert caught.value.found == "urn:example:datetime"


def test_xc4_empty_transformers_and_null_consolidated_metadata_are_known_members():
    assert zarrdask.open(stored(v3(storage_transformers=[]))).shape == (4,)
    group = zarrdask.open({"zarr.json": dump({**GROUP, "consolidated_metadata": None})})
    assert list(group) == []
    # In an array consolidated_metadata has no meaning, and nothing says that it may be ignored.
    with pytest.raises(UnsupportedError, match="consolidated_metadata"):
        zarrdask.open(stored(v3(consolidated_metadata=None)))


def test_xc4_extensions_are_understood_and_written_only_on_request():
    listed = [{"name": "https://example.com/x", "must_understand": False}]
    z = zarrdask.open(stored(v3(extensions=listed)))
    np.testing.assert_array_equal(z[...], 0)
    values = {}
    zarrdask.create_array(values, "b", shape=2, dtype="u1")
    assert "extensions" not in document(values, "b")
    assert "extensions" not in document(values)
    zarrdask.create_array(values, "a", shape=2, dtype="u1", extensions=listed)
    assert document(values, "a")["extensions"] == listed
