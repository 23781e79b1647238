"""A hierarchy of the draft as a store: documents and chunks under the node's path."""

import pytest

from tests.covering import for_each
from zarrdask.errors import UnsupportedError
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.memory import MemoryStore
from zarrdask.storage.zarr.draft_store import IMPLICIT, DraftStore
from zarrdask.testing import StoreContract

DRAFT, PROTOCOL = "v3-draft", "v3-draft-protocol"


class TestDraftStore(StoreContract):
    @pytest.fixture
    def store(self):
        return DraftStore(MemoryStore())


class TestDraftStoreOfTheOlderDialect(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        return DraftStore(LocalStore(str(tmp_path)), "", PROTOCOL, ".jsn")


def view(values=None, zarr_format=DRAFT, **options):
    return DraftStore(MemoryStore({} if values is None else values), "", zarr_format, **options)


def got(store, keys):
    return [None if v is None else bytes(v) for v in store.get_many(keys, Scratch())]


class TestKeys:
    @for_each(
        ("zarr_format", "real"),
        [
            (
                DRAFT,
                {
                    "group.json": "meta/group.json",
                    "array.json": "meta/array.json",
                    "foo/group.json": "meta/foo.group.json",
                    "foo/baz/array.json": "meta/foo/baz.array.json",
                    "foo/baz/c1/0": "data/foo/baz/c1/0",
                    "c0/0": "data/c0/0",
                    "x.array/group.json": "meta/x.array.group.json",
                    "s/c": "data/s/c",
                },
            ),
            (
                PROTOCOL,
                {
                    "group.json": "meta/root.group.json",
                    "array.json": "meta/root.array.json",
                    "foo/group.json": "meta/root/foo.group.json",
                    "foo/baz/array.json": "meta/root/foo/baz.array.json",
                    "foo/baz/c1/0": "data/root/foo/baz/c1/0",
                    "c0/0": "data/root/c0/0",
                    "s/c": "data/root/s/c0",
                },
            ),
        ],
    )
    @for_each("base", ["", "inner/store/"])
    def test_each_has_its_place(self, zarr_format, real, base):
        values = {}
        store = DraftStore(MemoryStore(values), base, zarr_format)
        for n, key in enumerate(real):
            store.set(base + key, b"%d" % n)
        assert values == {base + key: b"%d" % n for n, key in enumerate(real.values())}
        assert [store.get(base + key) for key in real] == [b"%d" % n for n in range(len(real))]
        assert got(store, [base + key for key in real]) == list(values.values())

    def test_the_suffix_is_that_of_documents_only(self):
        values = {}
        store = view(values, suffix=".x")
        for key in ("group.json", "a/array.json", "a/c0"):
            store.set(key, b"1")
        assert sorted(values) == ["data/a/c0", "meta/a.array.x", "meta/group.x"]
        assert sorted(store.list_prefix("")) == ["a/array.json", "a/c0", "group.json"]


class TestScalars:
    @for_each(("zarr_format", "root"), [(DRAFT, ""), (PROTOCOL, "root/")])
    @for_each("name", ["c", "c0"])
    def test_either_name_is_read(self, zarr_format, root, name):
        store = view({f"data/{root}s/{name}": b"1234"}, zarr_format)
        assert store.get("s/c") == b"1234"
        assert got(store, ["s/c"]) == [b"1234"]
        assert got(store, ["t/c", "s/c"]) == [None, b"1234"]
        assert bytes(store.get_range("s/c", 1, 2)) == b"23"
        assert [bytes(v) for v in store.get_ranges("s/c", [(0, 1)], Scratch())] == [b"1"]

    @pytest.mark.parametrize(
        ("zarr_format", "own", "other"),
        [(DRAFT, "data/s/c", "data/s/c0"), (PROTOCOL, "data/root/s/c0", "data/root/s/c")],
    )
    def test_what_is_written_is_what_is_there(self, zarr_format, own, other):
        values = {other: b"old"}
        store = view(values, zarr_format)
        store.set("s/c", b"new")
        assert values == {own: b"new"}
        values[other] = b"old"
        store.erase("s/c")
        assert values == {}


class TestGroups:
    def test_what_is_below_implies_a_group(self):
        store = view({"meta/a/b/x.array.json": b"{}"})
        assert store.get("a/group.json") == store.get("a/b/group.json") == IMPLICIT
        assert store.get("group.json") == IMPLICIT
        assert store.get("a/b/x/group.json") is None
        assert store.get("nothing/group.json") is None

    def test_an_array_is_no_group_whatever_is_below(self):
        store = view({"meta/a.array.json": b"array", "meta/a/x.array.json": b"{}"})
        assert got(store, ["a/array.json", "a/group.json"]) == [b"array", None]
        assert store.get("a/group.json") is None

    def test_an_empty_directory_is_none(self, tmp_path):
        (tmp_path / "meta" / "a" / "b").mkdir(parents=True)
        store = DraftStore(LocalStore(str(tmp_path)))
        assert store.get("a/group.json") is None

    def test_without_listing_there_are_those_with_documents_only(self):
        class Unlisted(MemoryStore):
            def list_prefix(self, prefix):
                raise UnsupportedError("can't")

        store = DraftStore(Unlisted({"meta/a/x.array.json": b"{}", "meta/b.group.json": b"1"}))
        assert store.get("a/group.json") is None
        assert store.get("b/group.json") == b"1"


class TestListing:
    VALUES = (
        "zarr.json",
        "meta/group.json",
        "meta/a.array.json",
        "meta/g.group.json",
        "meta/g/x.array.json",
        "meta/i/j/y.array.json",
        "data/a/c0/0",
        "data/g/x/c0",
        "data/gone/c0",
    )

    def test_a_directory_has_the_nodes_right_below(self):
        store = view(dict.fromkeys(self.VALUES, b"1"))
        assert store.list_dir("") == ([], ["a", "g", "i"])
        assert store.list_dir("g/") == ([], ["x"])
        assert store.list_dir("i/") == ([], ["j"])

    def test_everything(self):
        store = view(dict.fromkeys(self.VALUES, b"1"))
        assert sorted(store.list()) == [
            "a/array.json",
            "a/c0/0",
            "g/group.json",
            "g/x/array.json",
            "g/x/c0",
            "gone/c0",
            "group.json",
            "i/j/y/array.json",
        ]

    def test_erasing_all_leaves_the_entry_point(self):
        values = dict.fromkeys(self.VALUES, b"1")
        view(values).erase_prefix("")
        assert list(values) == ["zarr.json"]

    def test_consolidated_metadata_of_zarr_python_are_no_node(self):
        values = {
            "meta/root/a.array.json": b"1",
            "meta/root/consolidated.group.json": b"1",
            "meta/root/consolidated/.zmetadata": b"1",
        }
        assert view(values, PROTOCOL).list_dir("") == ([], ["a"])
        assert view(values | {"meta/root/consolidated/x.array.json": b"1"}, PROTOCOL).list_dir(
            ""
        ) == ([], ["a", "consolidated"])


class TestWhatTheStoreIs:
    def test_it_is_that_of_the_real_one(self, tmp_path):
        for real in (LocalStore(str(tmp_path)), MemoryStore()):
            store = DraftStore(real)
            assert (store.url, store.capabilities) == (real.url, real.capabilities)
            assert store.identity.uri == real.identity.uri
            assert store.identity.token == real.identity.token

    def test_chunks_are_asked_for_in_one_call_of_the_real_one(self):
        calls = []

        class Counting(MemoryStore):
            def get_many(self, keys, scratch):
                calls.append(list(keys))
                return super().get_many(calls[-1], scratch)

        store = DraftStore(Counting({"data/a/c0/1": b"1"}))
        assert got(store, ["a/c0/0", "a/c0/1"]) == [None, b"1"]
        assert calls == [["data/a/c0/0", "data/a/c0/1"]]

    def test_parts_are_of_one_value_as_in_the_real_one(self, tmp_path):
        store = DraftStore(LocalStore(str(tmp_path)))
        store.set("a/c0", b"old")
        with store.reading("a/c0", Scratch()) as value:
            assert bytes(value.part(0, 1)) == b"o"
            store.set("a/c0", b"new")
            assert [*map(bytes, value.parts([(1, 2)]))] == [b"ld"]
