"""B.1 and B.2: names, paths, and the entry point of a hierarchy of the draft."""

import json
import socket

import numpy as np
import pytest

import zarrdask
from tests.conformance.refused import refused
from tests.covering import for_each
from tests.documents import dump, without
from tests.drafts import CORE, ENTRY, JSON, NOBODY, array, hierarchy, stored
from zarrdask.errors import MetadataError, NodeExistsError, NodeNotFoundError, UnsupportedError

DRAFT = {"zarr_format": "v3-draft"}
SMALL = {"shape": (4,), "dtype": "<u2", "chunks": 2, "compressors": [], **DRAFT}


def of_minor(minor, **others):
    return ENTRY | {"zarr_format": CORE[:-1] + str(minor)} | others


# ---- B.1


def test_b1_groups_have_children_and_arrays_have_none():
    store = {}
    zarrdask.create_array(store, "g/a", **SMALL)
    assert list(zarrdask.open_group(store)) == ["g"]
    assert list(zarrdask.open_group(store, "g")) == ["a"]
    for make in (zarrdask.create_group, lambda *a, **k: zarrdask.create_array(*a, **SMALL)):
        with pytest.raises(NodeExistsError, match="can't hold other nodes"):
            make(store, "g/a/x", **DRAFT)


def test_b1_two_siblings_never_share_a_name():
    store = {}
    zarrdask.create_array(store, "a", **SMALL)
    with pytest.raises(NodeExistsError):
        zarrdask.create_group(store, "a", **DRAFT)
    assert [key for key in store if key.startswith("meta/")] == ["meta/a.array.json"]


@pytest.mark.parametrize("path", [None, "", "/"])
def test_b2_the_root_has_no_name_and_its_path_is_a_slash(path):
    store = {}
    group = zarrdask.create_group(store, path, **DRAFT)
    assert (group.name, group.path) == ("", "")
    assert "meta/group.json" in store


@pytest.mark.parametrize("path", ["/foo/bar", "foo/bar"])
def test_b2_a_path_begins_with_a_slash_that_may_be_left_out(path):
    store = hierarchy({"foo/bar.array": array()})
    assert zarrdask.open(store, path).path == "foo/bar"
    assert zarrdask.open(store, path).name == "bar"


def test_b3_a_name_is_never_empty():
    store = {}
    zarrdask.create_group(store, "a//b/", **DRAFT)
    assert set(store) == {"zarr.json", "meta/a/b.group.json"}
    root = zarrdask.open_group(store)
    assert "" not in root
    with pytest.raises(NodeNotFoundError):
        root[""]


@for_each("name", ["héllo", "a b", "a:b", "a*", "日本"])
@for_each("path", ["{}", "g/{}", "{}/x"])
def test_b4_other_characters_are_not_written(name, path):
    store = {}
    for make in (zarrdask.create_group, lambda *a, **k: zarrdask.create_array(*a, **SMALL)):
        with pytest.raises(MetadataError) as caught:
            make(store, path.format(name), **DRAFT)
        assert caught.value.found == path.format(name)
    assert store == {}


def test_b4_letters_digits_hyphen_underscore_and_period_are_written():
    name = "abcxyzABCXYZ0189-_."
    store = {}
    zarrdask.create_group(store, name, **DRAFT)
    assert f"meta/{name}.group.json" in store


def test_b4_other_characters_are_read_unless_strict():
    store = hierarchy({"héllo.group": {"attributes": {}}})
    assert list(zarrdask.open_group(store)) == ["héllo"]
    assert zarrdask.open_group(store, "héllo").name == "héllo"
    with refused("B-4"):
        zarrdask.open_group(store, "héllo", strict=True)


@for_each("name", [".", "..", "..."])
@for_each("act", [zarrdask.create_group, zarrdask.open])
def test_b5_a_name_of_periods_only_is_an_error(name, act):
    with pytest.raises(MetadataError, match="periods"):
        act(hierarchy(), name, **(DRAFT if act is zarrdask.create_group else {}))


@for_each("name", [".a", "a.", "..a", "a..b"])
def test_b5_periods_beside_other_characters_are_fine(name):
    store = {}
    zarrdask.create_group(store, name, **DRAFT)
    assert list(zarrdask.open_group(store)) == [name]


def test_b6_names_are_case_sensitive():
    store = {}
    for n, name in enumerate(("foo", "FOO")):
        zarrdask.create_group(store, name, attributes={"n": n}, **DRAFT)
    assert list(zarrdask.open_group(store)) == ["FOO", "foo"]
    assert dict(zarrdask.open_group(store, "FOO").attrs) == {"n": 1}


def test_b6_a_name_may_have_more_than_255_characters():
    name, store = "n" * 1000, {}
    zarrdask.create_array(store, name, **SMALL)
    assert zarrdask.open_array(store, name).name == name


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_b7_there_may_be_no_dimensions_or_one_of_length_zero(shape):
    store = {}
    made = zarrdask.create_array(store, "a", shape=shape, dtype="<i4", **DRAFT)
    made[...] = 7
    assert json.loads(store["meta/a.array.json"])["shape"] == list(shape)
    found = zarrdask.open_array(store, "a")
    assert np.array_equal(found[...], np.full(shape, 7))
    assert np.array_equal(zarrdask.from_zarr(store, "a").compute(), np.full(shape, 7))


def test_b8_a_chunk_length_is_not_zero():
    with pytest.raises(MetadataError, match="positive"):
        zarrdask.open(stored(array((4, 4), (2, 0))), "a")


def test_b8_a_dimension_of_length_zero_may_have_chunks_of_length_zero():
    found = zarrdask.open(stored(array((4, 0), (2, 0))), "a")
    assert found[...].shape == (4, 0)


# ---- B.2


def test_b9_the_entry_point_is_written_with_the_first_node():
    for make in (zarrdask.create_group, lambda *a, **k: zarrdask.create_array(*a, **SMALL)):
        store = {}
        make(store, "x", **DRAFT)
        assert json.loads(store["zarr.json"]) == ENTRY


def test_b9_without_the_entry_point_there_is_no_hierarchy():
    store = stored()
    del store["zarr.json"]
    for path in ("", "a"):
        with pytest.raises(NodeNotFoundError):
            zarrdask.open(store, path)


@pytest.mark.parametrize("data", [b"{", b"[]", b'"' + CORE.encode() + b'"'])
def test_b9_the_entry_point_is_one_json_object(data):
    store = stored() | {"zarr.json": data}
    with pytest.raises(MetadataError, match=r"zarr\.json"):
        zarrdask.open(store)
    with pytest.raises(NodeNotFoundError):
        zarrdask.open(store, "a")


@pytest.mark.parametrize("member", ["metadata_encoding", "extensions"])
def test_b9_a_missing_member_is_an_error(member):
    store = stored(entry=without(ENTRY, member))
    for path in ("", "a"):
        with pytest.raises(MetadataError, match=member):
            zarrdask.open(store, path)


def test_b10_zarr_format_is_the_uri():
    store = {}
    zarrdask.create_group(store, **DRAFT)
    assert json.loads(store["zarr.json"])["zarr_format"] == "https://purl.org/zarr/spec/core/3.0"


@pytest.mark.parametrize("minor", [0, 1, 17])
def test_b11_any_minor_version_opens(minor):
    store = stored(entry=of_minor(minor), chunks={"c0": b"\1\0\2\0"})
    assert zarrdask.open_array(store, "a")[:2].tolist() == [1, 2]
    assert zarrdask.open(store).zarr_format == "v3-draft"


@pytest.mark.parametrize("version", ["2.0", "4.0", "30.0"])
def test_b11_another_major_version_is_an_error(version):
    store = stored(entry=ENTRY | {"zarr_format": CORE[:-3] + version})
    for path in ("", "a"):
        with pytest.raises(UnsupportedError, match="version"):
            zarrdask.open(store, path)


@pytest.mark.parametrize(
    "uri",
    [
        "https://purl.org/zarr/spec/core/3",
        "https://purl.org/zarr/spec/core/",
        "https://example.org/something/3.0",
    ],
)
def test_b11_what_is_no_version_of_the_core_is_an_error(uri):
    with pytest.raises(MetadataError, match="version"):
        zarrdask.open(stored(entry=ENTRY | {"zarr_format": uri}))


def test_b11_unknown_names_are_ignored_in_a_higher_minor_version():
    entry = of_minor(1, future={"a": 1})
    documents = {"g.group": {"attributes": {}, "future": 1}, "a.array": array(future=1)}
    store = hierarchy(documents, entry)
    assert [path for path, _ in zarrdask.open_group(store).walk()] == ["a", "g"]
    assert zarrdask.open_array(store, "a")[...].tolist() == [0] * 4


def test_b12_the_metadata_encoding_is_json_with_its_suffix():
    store = {}
    zarrdask.create_group(store, **DRAFT)
    encoding = json.loads(store["zarr.json"])["metadata_encoding"]
    assert encoding == {"type": "json", "metadata_key_suffix": ".json"}


@for_each(
    "encoding",
    [
        {"type": "json"},
        {"metadata_key_suffix": ".json"},
        JSON | {"more": 1},
        JSON | {"type": "xml"},
        JSON | {"metadata_key_suffix": 1},
        JSON | {"metadata_key_suffix": "/../x"},
        [],
        None,
    ],
)
def test_b12_another_object_is_an_error(encoding):
    with pytest.raises(MetadataError, match="metadata_"):
        zarrdask.open(stored(entry=ENTRY | {"metadata_encoding": encoding}))


def test_b13_an_encoding_of_an_extension_is_an_error_that_names_it():
    encoding = {"extension": NOBODY, "type": "cbor", "metadata_key_suffix": ".cbor"}
    with pytest.raises(UnsupportedError) as caught:
        zarrdask.open(stored(entry=ENTRY | {"metadata_encoding": encoding}), "a")
    assert caught.value.found == NOBODY


@pytest.mark.parametrize("suffix", [".jsn", ".zarr.json", ""])
def test_b14_the_suffix_is_honoured(suffix):
    entry = ENTRY | {"metadata_encoding": {"type": "json", "metadata_key_suffix": suffix}}
    store = {"zarr.json": dump(entry), f"meta/g/a.array{suffix}": dump(array())}
    root = zarrdask.open_group(store, mode="r+")
    assert list(root) == ["g"]
    assert root["g/a"].shape == (4,)
    root["g"].create_group("new")
    root["g/a"].attrs["x"] = 1
    assert set(store) == {
        "zarr.json",
        f"meta/g/a.array{suffix}",
        f"meta/g/new.group{suffix}",
    }
    assert [path for path, _ in root.walk()] == ["g", "g/a", "g/new"]


# ---- extensions

PLACES = {
    "entry point": lambda item: stored(entry=ENTRY | {"extensions": [item]}),
    "array": lambda item: stored(array(extensions=[item])),
}


def check_extensions(place):
    """Check what holds for the extensions of the entry point, and for those of an array."""
    make = PLACES[place]
    settings = {"foo": "bar"}
    ignored = {"extension": NOBODY, "must_understand": False, "configuration": settings}
    assert zarrdask.open_array(make(ignored), "a").shape == (4,)
    with pytest.raises(UnsupportedError) as caught:
        zarrdask.open_array(make(ignored | {"must_understand": True}), "a")
    assert caught.value.found == NOBODY


@for_each("place", PLACES)
@for_each(
    "item",
    [
        {"must_understand": False},
        {"extension": NOBODY},
        {"extension": NOBODY, "must_understand": "no"},
        {"extension": 3, "must_understand": False},
        {"extension": "no URI", "must_understand": False},
        {"extension": NOBODY, "must_understand": False, "configuration": []},
        NOBODY,
        None,
    ],
)
def test_b15_an_extension_has_its_uri_and_must_understand(place, item):
    with pytest.raises(MetadataError, match="extension"):
        zarrdask.open(PLACES[place](item), "a")


@pytest.mark.parametrize("found", [None, {}, "x"])
def test_b15_extensions_are_a_list(found):
    with pytest.raises(MetadataError, match="extensions"):
        zarrdask.open(stored(entry=ENTRY | {"extensions": found}), "a")


def test_b16_an_unknown_extension_is_ignored_or_an_error_that_names_it():
    check_extensions("entry point")


def test_b16_the_examples_of_the_text_open():
    foo = "http://example.org/zarr/extension/foo"
    item = {"extension": foo, "must_understand": False, "configuration": {"foo": "bar"}}
    for extensions in ([], [item]):
        store = stored(entry=ENTRY | {"extensions": extensions})
        assert list(zarrdask.open_group(store)) == ["a"]


def test_b17_a_known_extension_is_given_its_configuration(own_registries):
    seen = []
    zarrdask.register.extension(NOBODY, seen.append)
    item = {"extension": NOBODY, "must_understand": True, "configuration": {"foo": "bar"}}
    for make in PLACES.values():
        zarrdask.open(make(item), "a")
    assert seen == [{"foo": "bar"}, {"foo": "bar"}]


def test_b18_an_unknown_extension_of_an_array_is_ignored_or_an_error_that_names_it():
    check_extensions("array")


def test_b18_the_extensions_of_an_array_are_kept_when_it_is_written_again():
    item = {"extension": NOBODY, "must_understand": False, "configuration": {"foo": "bar"}}
    store = stored(array(extensions=[item]))
    zarrdask.open_array(store, "a", mode="r+").attrs["x"] = 1
    assert json.loads(store["meta/a.array.json"]) == array(extensions=[item], attributes={"x": 1})


def test_b19_uris_are_never_fetched(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a URI was looked up")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    item = {"extension": NOBODY, "must_understand": False}
    store = stored(array(extensions=[item]), entry=ENTRY | {"extensions": [item]})
    assert zarrdask.open_array(store, "a")[...].tolist() == [0] * 4
    unknown = {"extension": NOBODY, "type": "x", "fallback": "r16"}
    with pytest.raises(UnsupportedError):
        zarrdask.open_array(stored(array(data_type=unknown)), "a")
