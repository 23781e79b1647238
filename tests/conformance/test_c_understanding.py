"""C.2 to C.4: what is unknown, extension definitions and their names, node names."""

import json
import socket
from functools import partial

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import LITTLE, dump, stored, v3
from zarrdask import register
from zarrdask.errors import ComplianceWarning, MetadataError, UnsupportedError
from zarrdask.formats.codecs.registry import CODECS, parse_codec
from zarrdask.formats.dtypes.registry import parse_data_type
from zarrdask.formats.extension import parse_definition
from zarrdask.formats.grids.keys import parse_keys

GROUP = {"zarr_format": 3, "node_type": "group"}
OFFSET = {"name": "https://example.com/zarr/offset", "configuration": {"offset": [12]}}
STATISTICS = {
    "name": "https://example.com/zarr/array-statistics",
    "configuration": {"min": 5, "max": 12},
    "must_understand": False,
}
CONSOLIDATED = {
    "name": "https://example.com/zarr/consolidated-metadata",
    "configuration": {},
    "must_understand": False,
}
pytestmark = pytest.mark.usefixtures("own_registries")

NO_NEED = {"must_understand": False}
NO_VALUES = {"name": "acme.nothing", **NO_NEED}


# ---- C.2


@for_each("base", [v3(), GROUP])
@for_each(
    "value", [1, "x", None, True, [], [NO_NEED], {}, {"must_understand": True}, {"a": NO_NEED}]
)
def test_c11_an_unknown_member_is_an_error(base, value):
    with pytest.raises(UnsupportedError, match="acme"):
        zarrdask.open({"zarr.json": dump({**base, "acme": value})})


@pytest.mark.parametrize("base", [v3(), GROUP], ids=["array", "group"])
def test_c11_unless_it_says_that_it_need_not_be_understood(base):
    zarrdask.open({"zarr.json": dump({**base, "acme": {**NO_NEED, "a": 1}})})


@pytest.mark.parametrize("base", [v3(), GROUP], ids=["array", "group"])
def test_c12_such_members_are_kept_when_the_document_is_written_again(base):
    values = {"zarr.json": dump({**base, "acme": {**NO_NEED, "a": [1, {"b": 2}]}})}
    node = zarrdask.open(values, mode="r+")
    node.attrs["x"] = 1
    found = json.loads(values["zarr.json"])
    assert found["acme"] == {"must_understand": False, "a": [1, {"b": 2}]}
    assert found["attributes"] == {"x": 1}


def test_c13_an_extension_must_be_understood_unless_it_says_otherwise():
    for must in ({}, {"must_understand": True}):
        with pytest.raises(UnsupportedError, match=r"acme\.nothing"):
            zarrdask.open(stored(v3(codecs=[LITTLE, {"name": "acme.nothing", **must}])))
    known = {"name": "crc32c", "must_understand": True}
    assert zarrdask.open(stored(v3(codecs=[LITTLE, known]))).shape == (4,)
    with pytest.raises(MetadataError):
        zarrdask.open(stored(v3(codecs=[LITTLE, {"name": "crc32c", "must_understand": "no"}])))


@pytest.mark.parametrize("member", ["data_type", "chunk_grid", "chunk_key_encoding"])
def test_c14_types_grids_and_encodings_must_always_be_understood(member):
    with pytest.raises(UnsupportedError, match=r"acme\.nothing"):
        zarrdask.open(stored(v3(**{member: NO_VALUES})))


def test_c14_known_ones_may_carry_the_member():
    grid = {"name": "regular", "configuration": {"chunk_shape": [2]}, **NO_NEED}
    data_type = {"name": "uint16", **NO_NEED}
    z = zarrdask.open(stored(v3(data_type=data_type, chunk_grid=grid), {"c/0": b"\1\0\2\0"}))
    np.testing.assert_array_equal(z[...], [1, 2, 0, 0])


@pytest.mark.parametrize("codecs", [[LITTLE, NO_VALUES], [NO_VALUES, LITTLE, NO_VALUES]])
def test_c15_an_unknown_codec_may_be_passed_over_on_reading_only(codecs):
    with pytest.warns(ComplianceWarning, match="C-15"):
        z = zarrdask.open(stored(v3(codecs=codecs), {"c/0": b"\1\0\2\0"}), mode="r+")
    np.testing.assert_array_equal(z[...], [1, 2, 0, 0])
    with pytest.raises(UnsupportedError, match=r"acme\.nothing"):
        z[...] = 1
    with pytest.raises(MetadataError, match="C-15"):
        zarrdask.open(stored(v3(codecs=codecs)), strict=True)


def test_c15_the_codec_that_makes_bytes_is_never_passed_over():
    with pytest.warns(ComplianceWarning), pytest.raises(MetadataError):
        zarrdask.open(stored(v3(codecs=[NO_VALUES])))


def test_c15_storage_transformers_are_never_passed_over():
    with pytest.raises(UnsupportedError, match=r"acme\.nothing"):
        zarrdask.open(stored(v3(storage_transformers=[NO_VALUES])))


def test_c16_codecs_are_written_as_objects_without_must_understand():
    values = {}
    codecs = ["bytes", {"name": "crc32c", "must_understand": True}]
    zarrdask.create_array(values, shape=2, dtype="u1", codecs=codecs)
    document = json.loads(values["zarr.json"])
    assert document["codecs"] == [{"name": "bytes"}, {"name": "crc32c"}]
    assert isinstance(document["chunk_key_encoding"], dict)
    assert b"must_understand" not in values["zarr.json"]


# ---- C.3


@for_each("wrong", [1, None, [], {}, {"name": 1}, {"configuration": {}}])
def test_c18_an_extension_is_a_name_or_an_object_with_one(wrong):
    for member in ("data_type", "chunk_grid", "chunk_key_encoding"):
        with pytest.raises(MetadataError):
            zarrdask.open(stored(v3(**{member: wrong})))
    with pytest.raises(MetadataError):
        zarrdask.open(stored(v3(codecs=[wrong])))


@for_each("wrong", [[], "x", 1, None])
def test_c18_a_configuration_is_an_object(wrong):
    for parse in (parse_codec, parse_keys, parse_data_type):
        with pytest.raises(MetadataError):
            parse({"name": "bytes", "configuration": wrong})


@for_each(
    ("parse", "name"),
    [
        (parse_data_type, "int32"),
        (parse_keys, "default"),
        (parse_keys, "v2"),
        (parse_codec, "crc32c"),
    ],
)
def test_c19_a_name_alone_is_an_object_with_that_name(parse, name):
    assert parse(name) == parse({"name": name}) == parse({"name": name, "configuration": {}})


def test_c19_core_types_are_written_as_names_the_rest_as_objects():
    values = {}
    zarrdask.create_array(values, shape=2, dtype="i4")
    document = json.loads(values["zarr.json"])
    assert document["data_type"] == "int32"
    assert {type(item) for item in document["codecs"]} == {dict}
    assert {type(document[key]) for key in ("chunk_grid", "chunk_key_encoding")} == {dict}


@for_each("name", ["a", "7", "my-type_1.0", "numpy.datetime64", "---"])
def test_c20_raw_names(name):
    assert parse_definition(name, "x").name == name


@for_each("name", ["", "foo/bar", "foo:bar", "Foo", "a b", "naïve", "a\n"])
def test_c20_what_is_no_raw_name(name):
    with pytest.raises(MetadataError, match="name of an extension"):
        parse_definition(name, "x")


@for_each(
    "name", ["https://example.com", "http://e.c/a/b", "https://e.c/A%20b", "urn:example:datetime"]
)
def test_c21_uris_are_names(name):
    assert parse_definition(name, "x").name == name


@for_each(
    "name",
    [
        "https://e.c/a?b",
        "https://e.c/a#b",
        "https:///x",
        "https://",
        "ftp://e.c/a",
        "https://e.c?q",
    ],
)
def test_c21_what_is_no_uri_of_an_extension(name):
    with pytest.raises(MetadataError, match="name of an extension"):
        parse_definition(name, "x")


def test_c22_uris_are_never_fetched(monkeypatch):
    def refuse(*args, **kwargs):
        raise RuntimeError("a connection was made")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    for member in ({"data_type": "http://localhost/x"}, {"codecs": [LITTLE, "http://localhost/x"]}):
        with pytest.raises(UnsupportedError) as caught:
            zarrdask.open(stored(v3(**member)))
        assert caught.value.found == "http://localhost/x"


def test_c23_a_registered_uri_is_one_thing_under_that_very_name():
    name = "https://example.com/codecs/sum"
    register.codec(CODECS.find("crc32c"), name)
    assert parse_codec(name) == parse_codec("crc32c")
    for other in (name + "/", name.upper().lower() + "x", name.replace("https", "http"), "sum"):
        with pytest.raises(UnsupportedError):
            parse_codec(other)


@for_each("base", [v3(), GROUP])
@for_each("wrong", [[], {}, "x", None, [1], [{"configuration": {}}], ["Bad Name"]])
def test_c24_extensions_are_a_list_that_is_not_empty(base, wrong):
    with pytest.raises(MetadataError):
        zarrdask.open({"zarr.json": dump({**base, "extensions": wrong})})


@pytest.mark.parametrize("base", [v3(), GROUP], ids=["array", "group"])
def test_c25_an_unknown_extension_is_an_error_unless_it_need_not_be_understood(base):
    def opened(*extensions):
        return zarrdask.open({"zarr.json": dump({**base, "extensions": list(extensions)})})

    for must in ("acme.x", {"name": "acme.x"}, {"name": "acme.x", "must_understand": True}):
        with pytest.raises(UnsupportedError, match=r"acme\.x"):
            opened(STATISTICS, must)
    assert [e.name for e in opened(STATISTICS).metadata.extensions] == [STATISTICS["name"]]


def test_c25_a_known_one_has_its_configuration_checked():
    seen = []
    register.extension("acme.x", seen.append)
    given = {"name": "acme.x", "configuration": {"a": 1}}
    zarrdask.open(stored(v3(extensions=[given])))
    assert seen == [{"a": 1}]


def test_c25_extensions_are_kept_when_the_document_is_written_again():
    values = stored(v3(extensions=[STATISTICS, CONSOLIDATED]))
    zarrdask.open(values, mode="r+").attrs["x"] = 1
    found = json.loads(values["zarr.json"])["extensions"]
    assert found == [STATISTICS, {k: v for k, v in CONSOLIDATED.items() if v != {}}]


@for_each(
    "changes",
    [
        {"data_type": {"name": "int32", "configuration": {"x": 1}}},
        {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2], "x": 1}}},
        {"chunk_key_encoding": {"name": "v2", "configuration": {"x": 1}}},
        {"codecs": [{"name": "bytes", "configuration": {"endian": "little", "x": 1}}]},
        {"codecs": [LITTLE, {"name": "crc32c", "configuration": {"x": 1}}]},
        {"codecs": [LITTLE, {"name": "gzip", "configuration": {"level": 1, "x": 1}}]},
        {"codecs": [LITTLE, {"name": "crc32c", "x": 1}]},
    ],
)
def test_c28_an_unknown_key_of_a_known_extension_is_an_error(changes):
    with pytest.raises(MetadataError):
        zarrdask.open(stored(v3(**changes)))


# ---- C.4


@pytest.mark.parametrize("name", ["a", "A.b-c_1", "héllo", "数据", "a b", ".hidden", "c", "_a"])
def test_c29_node_names_are_any_unicode(name, tmp_path):
    for place in ({}, tmp_path / "x.zarr"):
        zarrdask.create_array(place, name, shape=2, dtype="u1")[...] = 7
        root = zarrdask.open(place)
        assert list(root) == [name]
        np.testing.assert_array_equal(root[name][...], 7)


@for_each("name", [".", "..", "...", "__a", "zarr.json", "a/zarr.json", "x/__y"])
def test_c29_what_is_no_node_name(name):
    with pytest.raises(MetadataError, match="name"):
        zarrdask.create_array({}, name, shape=2, dtype="u1")


def test_c29_names_are_case_sensitive_and_taken_as_they_are():
    values = {}
    names = ["a", "A", "\u00e9", "e\u0301"]  # the last two look alike
    for name in names:
        zarrdask.create_group(values, name)
    assert sorted(zarrdask.open(values)) == sorted(names)


def test_c29_reserved_names_are_never_listed():
    values = {"zarr.json": dump(GROUP), "a/zarr.json": dump(GROUP), "__a/zarr.json": dump(GROUP)}
    assert list(zarrdask.open(values)) == ["a"]


@for_each("create", [zarrdask.create_group, partial(zarrdask.create_array, shape=2, dtype="u1")])
@for_each("name", ["zarr.json", "a/zarr.json", "zarr.json/a", "a/zarr.json/b"])
def test_c83_no_node_is_created_with_this_name(create, name):
    values = {}
    with pytest.raises(MetadataError, match=r"zarr\.json"):
        create(values, name)
    assert values == {}


def test_c83_a_document_below_this_name_is_no_node():
    below = {"zarr.json/zarr.json": dump(GROUP), "a/zarr.json/zarr.json": dump(v3())}
    values = {"zarr.json": dump(GROUP), "a/zarr.json": dump(GROUP)} | below
    assert [path for path, _ in zarrdask.open(values).walk()] == ["a"]


def test_c83_other_names_that_contain_it_are_allowed():
    values = {}
    for name in ("zarr.json.bak", "ZARR.JSON", "xzarr.json"):
        zarrdask.create_group(values, name)
    assert sorted(zarrdask.open(values)) == ["ZARR.JSON", "xzarr.json", "zarr.json.bak"]


# ---- ZEP 9's own examples


def test_c82_the_example_with_an_unknown_offset_is_refused():
    with pytest.raises(UnsupportedError) as caught:
        zarrdask.open(stored(v3(extensions=[OFFSET, STATISTICS, CONSOLIDATED])))
    assert caught.value.found == OFFSET["name"]


def test_c82_it_opens_where_the_offset_is_known():
    register.extension(OFFSET["name"], lambda configuration: None)
    z = zarrdask.open(stored(v3(extensions=[OFFSET, STATISTICS, CONSOLIDATED])))
    assert [e.must_understand for e in z.metadata.extensions] == [True, False, False]


def test_c82_statistics_and_consolidated_metadata_may_be_ignored():
    z = zarrdask.open(stored(v3(extensions=[STATISTICS, CONSOLIDATED])))
    assert z.metadata.extensions[0].configuration == {"min": 5, "max": 12}


def test_c82_the_array_with_uri_names_is_refused_by_the_first_of_them():
    example = v3(
        (128,),
        (32,),
        data_type="https://example.com/zarr/string",
        chunk_key_encoding={"name": "default", "configuration": {"separator": "."}},
        codecs=[{"name": "https://numcodecs.dev/vlen-utf8"}, {"name": "zstd"}],
        dimension_names=["x"],
        storage_transformers=[],
    )
    with pytest.raises(UnsupportedError) as caught:
        zarrdask.open(stored(example))
    assert caught.value.found == "https://example.com/zarr/string"
