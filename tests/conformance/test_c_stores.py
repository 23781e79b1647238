"""C.9: the store interface of v3, and what is done with it."""

import json

import numpy as np
import pytest

import zarrdask
from tests.covering import for_each
from tests.documents import dump, stored, v3
from zarrdask.errors import MetadataError, NodeNotFoundError, SelectionError, UnsupportedError
from zarrdask.formats.store_keys import check_key, check_prefix
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.partial_access import set_partial_values
from zarrdask.storage.remote.fsspec.fsspec_store import FsspecStore
from zarrdask.storage.resolve import resolve

GROUP = b'{"zarr_format": 3, "node_type": "group"}'


@for_each("key", ["zarr.json", "a b", "日本/ü", "a\\b", "a:b?", "c/0/1", "\U0001f40d"])
def test_c72_any_unicode_text_that_does_not_end_with_a_slash_is_a_key(key):
    assert check_key(key) == key
    assert check_prefix(f"{key}/") == f"{key}/"


@for_each("key", ["", "/", "a/", "a\udc80", b"a", None])
def test_c72_what_is_none_is_an_error_before_anything_is_done(key):
    store = MemoryStore({"a": b"1"})
    for action in (
        lambda: store.get_partial_values([(key, (0, 1))]),
        lambda: set_partial_values(store, [("a", 0, b"2"), (key, 0, b"2")]),
        lambda: store.erase_values(["a", key]),
    ):
        with pytest.raises(MetadataError):
            action()
    assert store.get("a") == b"1"


@pytest.mark.parametrize("prefix", ["a", "a\udc80/"])
def test_c72_a_prefix_ends_with_a_slash(place, prefix):
    store = resolve(place)
    store.set("a", b"1")
    store.set("ab/x", b"1")
    for action in (store.erase_prefix, store.list_dir, lambda each: list(store.list_prefix(each))):
        with pytest.raises(MetadataError):
            action(prefix)
    assert sorted(store.list()) == ["a", "ab/x"]


def test_c72_partial_reads_take_a_start_and_a_length(store):
    store.set("a", b"0123456789")
    found = store.get_partial_values([("a", (4, 2)), ("gone", (0, 1)), ("a", (8, None))])
    assert [None if part is None else bytes(part) for part in found] == [b"45", None, b"89"]


def test_c72_partial_writes_must_not_overlap(store):
    store.set("a", b"0123")
    with pytest.raises(SelectionError):
        set_partial_values(store, [("a", 0, b"xy"), ("a", 1, b"z")])
    set_partial_values(store, [("a", 0, b"x"), ("a", 3, b"yz")])
    assert store.get("a") == b"x12yz"


# ---- URIs


def test_c73_a_local_directory_has_a_file_uri(tmp_path):
    store = LocalStore(str(tmp_path / "my data"))
    assert store.identity.uri == f"file://{tmp_path}/my%20data"
    assert LocalStore("/my data").identity.uri == "file:///my%20data"
    assert resolve(store.identity.uri) == store


def test_c73_text_without_a_scheme_is_a_local_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert resolve("my data") == resolve(f"{tmp_path}/my data") == LocalStore(f"{tmp_path}/my data")


def test_c73_other_stores_are_named_by_their_urls(tmp_path):
    assert FsspecStore.from_url("memory://a/b").identity.uri == "memory:///a/b"
    assert (
        FsspecStore.from_url(f"file://{tmp_path}/my data").identity.uri
        == f"file://{tmp_path}/my%20data"
    )
    assert resolve("memory://a/b/").identity.uri == "memory:///a/b"


# ---- operations


def test_c74_children_are_the_prefixes_that_have_a_document():
    values = {
        "zarr.json": GROUP,
        "array/zarr.json": dump(v3()),
        "array/c/0": b"1234",
        "group/zarr.json": GROUP,
        "group/deep/zarr.json": GROUP,
        "__hidden/zarr.json": GROUP,
        "nothing/file": b"1",
        "file": b"1",
    }
    root = zarrdask.open_group(values)
    assert list(root) == ["array", "group"]
    assert isinstance(root["array"], zarrdask.Array)
    assert isinstance(root["group"], zarrdask.Group)
    assert list(root["group"]) == ["deep"]


def test_c75_erasing_a_node_erases_all_below_it(store):
    root = zarrdask.create_group(store)
    root.create_array("a/x", shape=4, dtype="u1")[...] = 1
    root.create_array("ab", shape=4, dtype="u1")
    del root["a"]
    assert sorted(store.list()) == ["ab/zarr.json", "zarr.json"]


def test_c75_a_node_exists_if_its_document_does(store):
    store.set("zarr.json", GROUP)
    store.set("a/zarr.json", b"not even JSON")
    store.set("b/c/0", b"1")
    root = zarrdask.open_group(store)
    assert ("a" in root, "b" in root) == (True, False)
    with pytest.raises(NodeNotFoundError):
        root["b"]


class TestResize:
    @pytest.fixture
    def values(self):
        return {}

    @pytest.fixture
    def z(self, values):
        z = zarrdask.create_array(
            values, shape=6, dtype="u1", chunks=4, fill_value=9, compressors=[]
        )
        z[...] = [0, 1, 2, 3, 4, 5]
        return z

    def test_c76_shrinking_erases_what_lies_outside(self, z, values):
        z.resize(3)
        assert values["c/0"] == b"\0\1\2\x09"
        assert "c/1" not in values
        z.resize(6)
        assert z[...].tolist() == [0, 1, 2, 9, 9, 9]

    def test_c76_shrinking_may_keep_what_lies_outside(self, z, values):
        z.resize(3, outside="keep")
        assert z[...].tolist() == [0, 1, 2]
        assert (values["c/0"], values["c/1"][:2]) == (b"\0\1\2\3", b"\4\5")
        z.resize(8)
        assert z[...].tolist() == [0, 1, 2, 3, 4, 5, 9, 9]

    def test_c76_growing_shows_what_is_stored_there_already(self, z, values):
        values["c/2"] = b"\7\7\7\7"
        z.resize(10)
        assert z[...].tolist() == [0, 1, 2, 3, 4, 5, 9, 9, 7, 7]

    def test_c76_growing_writes_no_data(self, z, values):
        before = dict(values)
        z.resize(1000)
        assert {key for key in values if values[key] != before.get(key)} == {"zarr.json"}

    def test_c76_what_becomes_of_the_outside_is_one_of_two_words(self, z):
        with pytest.raises(MetadataError, match="'erase' or 'keep'"):
            z.resize(3, outside="forget")
        assert z.shape == (6,)


# ---- storage transformers


@pytest.mark.parametrize("document", [v3(), v3(storage_transformers=[])])
def test_c77_no_transformers_are_an_empty_list_or_none(document):
    z = zarrdask.open(stored(document, {"c/0": b"\1\0\2\0"}), mode="r+")
    assert z[:2].tolist() == [1, 2]
    assert z.metadata.transformers == ()
    z.attrs["n"] = 1
    assert "storage_transformers" not in json.loads(z.store.get("zarr.json"))


@pytest.mark.parametrize(
    "transformer", [{"name": "nobody.knows"}, "nobody.knows", {"name": "sharding_indexed"}]
)
def test_c77_an_unknown_transformer_is_an_error_that_names_it(transformer):
    name = transformer if isinstance(transformer, str) else transformer["name"]
    with pytest.raises(UnsupportedError, match=name) as caught:
        zarrdask.open(stored(v3(storage_transformers=[transformer])))
    assert "storage_transformers" in caught.value.key


@for_each("transformers", [{"name": "x"}, "x", 5, [5], [{"configuration": {}}]])
def test_c77_transformers_are_a_list_of_definitions(transformers):
    with pytest.raises((MetadataError, UnsupportedError)) as caught:
        zarrdask.open(stored(v3(storage_transformers=transformers)))
    assert "storage_transformers" in caught.value.key


def test_c77_no_transformer_is_part_of_the_core():
    for name in ("sharding", "sharding_indexed", "indexed", "default"):
        with pytest.raises(UnsupportedError):
            zarrdask.open(stored(v3(storage_transformers=[{"name": name}])))
    z = zarrdask.create_array({}, shape=(4, 4), dtype="u1", chunks=2, shards=4)
    z[...] = 5
    assert np.all(z[...] == 5)
    assert "storage_transformers" not in json.loads(z.store.get("zarr.json"))
