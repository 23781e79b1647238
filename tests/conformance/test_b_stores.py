"""B.9: the store interface, as the draft of v3 has it and v3 kept it."""

import fsspec
import pytest

import zarrdask
from tests.covering import for_each
from tests.storage.unlisted import UnlistedStore
from zarrdask.errors import MetadataError, SelectionError, UnsupportedError
from zarrdask.formats.store_keys import check_key, check_prefix
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store
from zarrdask.storage.local.local_store import LocalStore
from zarrdask.storage.memory import MappingStore, MemoryStore
from zarrdask.storage.partial_access import StoreWithPartialAccess, set_partial_values
from zarrdask.storage.remote.fsspec.fsspec_store import FsspecStore
from zarrdask.storage.zarr.draft_store import DraftStore

STORES = {
    "local": lambda path: LocalStore(str(path / "root")),
    "memory": lambda path: MemoryStore(),
    "mapping": lambda path: MappingStore({}),
    "fsspec": lambda path: FsspecStore(fsspec.filesystem("file", auto_mkdir=True), f"{path}/root"),
    "draft": lambda path: DraftStore(MemoryStore()),
}


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    return STORES[request.param](tmp_path)


def fill(store, keys):
    for key in keys:
        store.set(key, key.encode())
    return store


class Untouched(Store):
    """A store that nobody may use."""

    url = "untouched"

    def get(self, key):
        pytest.fail(f"{key!r} was asked for")

    def set(self, key, value):
        pytest.fail(f"{key!r} was stored")

    def erase(self, key):
        pytest.fail(f"{key!r} was erased")

    def list_dir(self, prefix):
        pytest.fail(f"{prefix!r} was listed")


# ---- keys

BAD_KEYS = ["", "a/", "/", "a b", "ä", "a:b", "a\\b", "a*", "a\n", "meta/héllo.array.json"]


@for_each("key", BAD_KEYS)
def test_b77_what_is_no_key_of_the_draft_is_rejected(key):
    with pytest.raises(MetadataError) as caught:
        check_key(key, draft=True)
    assert (caught.value.key, caught.value.found) == ("key", key)


@for_each("key", ["zarr.json", "meta/a-B_9.x.array.json", "data/foo/c0/0", ".", "a"])
def test_b77_keys_have_letters_digits_and_four_other_characters(key):
    assert check_key(key, draft=True) == key


@for_each("prefix", ["a", "a/b", "a b/", "ä/"])
def test_b77_what_is_no_prefix_of_the_draft_is_rejected(prefix):
    with pytest.raises(MetadataError) as caught:
        check_prefix(prefix, draft=True)
    assert (caught.value.key, caught.value.found) == ("prefix", prefix)


def test_b77_the_root_is_the_empty_prefix_or_a_slash(store):
    assert [check_prefix(prefix, draft=True) for prefix in ("", "/", "a/b/")] == ["", "", "a/b/"]
    fill(store, ["x"])
    assert store.list_dir("/") == store.list_dir("")


@for_each("key", ["", "a/", "/", None])
def test_b77_it_is_rejected_before_anything_is_done(key):
    store = Untouched()
    for action in (
        lambda: store.get_partial_values([("good", (0, 1)), (key, (0, 1))]),
        lambda: set_partial_values(store, [("good", 0, b"1"), (key, 0, b"1")]),
        lambda: store.erase_values(["good", key]),
    ):
        with pytest.raises(MetadataError):
            action()


@pytest.mark.parametrize("prefix", ["a", "a/b"])
def test_b77_a_prefix_is_rejected_before_anything_is_done(store, prefix):
    fill(store, ["a/b/x", "ab/x"])
    for action in (
        lambda: store.erase_prefix(prefix),
        lambda: list(store.list_prefix(prefix)),
        lambda: store.list_dir(prefix),
    ):
        with pytest.raises(MetadataError):
            action()
    assert sorted(store.list()) == ["a/b/x", "ab/x"]


@for_each("path", ["héllo", "a b", "a:b", "ok/a*"])
def test_b77_no_node_of_the_draft_gets_such_a_key(path):
    values = {}
    for create, options in (
        (zarrdask.create_group, {}),
        (zarrdask.create_array, {"shape": 2, "dtype": "u1"}),
    ):
        with pytest.raises(MetadataError):
            create(values, path, zarr_format="v3-draft", **options)
    assert values == {}


# ---- values


def test_b78_a_key_has_one_value(store):
    store.set("a/b", b"1")
    store.set("a/b", b"2")
    assert store.get("a/b") == b"2"
    assert list(store.list()) == ["a/b"]


def test_b78_keys_are_case_sensitive(store):
    store.set("foo", b"a")
    store.set("FOO", b"b")
    assert (store.get("foo"), store.get("FOO")) == (b"a", b"b")


def test_b79_get_gives_the_value_or_none(store):
    fill(store, ["a/b"])
    assert store.get("a/b") == b"a/b"
    assert store.get("a/c") is None
    assert store.get("a") is None


def parts(store, key_ranges):
    return [None if v is None else bytes(v) for v in store.get_partial_values(key_ranges)]


def test_b80_parts_come_in_the_order_that_they_were_asked_for(store):
    store.set("a", b"0123456789")
    store.set("b", b"xyz")
    assert parts(
        store,
        [
            ("a", (7, 2)),
            ("b", (0, None)),
            ("a", (0, 3)),
            ("absent", (0, None)),
            ("a", (7, 2)),
            ("b", (1, None)),
            ("a", (0, None)),
        ],
    ) == [b"78", b"xyz", b"012", None, b"78", b"yz", b"0123456789"]


def test_b81_a_store_without_partial_reads_reads_the_value_and_cuts_it():
    class Whole(MemoryStore):
        asked = 0

        def get(self, key):
            self.asked += 1
            return super().get(key)

    store = Whole({"a": b"0123456789"})
    assert parts(store, [("a", (2, 3)), ("a", (8, 5)), ("a", (0, 1))]) == [b"234", b"89", b"0"]
    assert store.asked == 1


def test_b82_set_stores_and_replaces_a_value(store):
    store.set("a", b"longer")
    store.set("a", b"short")
    assert store.get("a") == b"short"


def test_b82_parts_are_put_into_values(store):
    store.set("a", b"0123456789")
    set_partial_values(store, [("a", 6, b"xy"), ("b", 0, b"new"), ("a", 1, b"AB"), ("a", 9, b"zz")])
    assert store.get("a") == b"0AB345xy8zz"
    assert store.get("b") == b"new"


@pytest.mark.parametrize(
    "ranges", [[(0, b"ab"), (1, b"c")], [(3, b"x"), (3, b"y")], [(5, b"x"), (0, b"0123456")]]
)
def test_b82_overlapping_parts_of_one_value_are_an_error(store, ranges):
    store.set("a", b"0123456789")
    with pytest.raises(SelectionError) as caught:
        set_partial_values(store, [("b", 0, b"x"), *(("a", at, value) for at, value in ranges)])
    assert caught.value.key == "a"
    assert (store.get("a"), store.get("b")) == (b"0123456789", None)


def test_b82_parts_may_touch_and_those_of_other_values_may_lie_alike(store):
    set_partial_values(store, [("a", 0, b"01"), ("b", 0, b"xy"), ("a", 2, b"23")])
    assert (store.get("a"), store.get("b")) == (b"0123", b"xy")


# ---- erasing


def test_b83_erase_removes_a_key(store):
    fill(store, ["a/b", "a/c"])
    store.erase("a/b")
    store.erase("a/b")
    assert list(store.list()) == ["a/c"]


def test_b83_erase_values_removes_several(store):
    fill(store, ["a/b", "a/c", "d"])
    store.erase_values(["a/b", "d", "absent"])
    assert list(store.list()) == ["a/c"]


def test_b83_erase_prefix_removes_all_that_begins_with_it(store):
    fill(store, ["a/b", "a/c/d", "ab", "e"])
    store.erase_prefix("a/")
    assert sorted(store.list()) == ["ab", "e"]


# ---- listing


def test_b84_list_gives_all_keys(store):
    keys = ["a/b", "a/c/d", "e/f/g"]
    assert sorted(fill(store, keys).list()) == keys


def test_b84_list_prefix_gives_the_keys_below_it(store):
    fill(store, ["a/b", "a/c/d", "e/f/g"])
    assert sorted(store.list_prefix("a/")) == ["a/b", "a/c/d"]


def test_b85_list_dir_gives_keys_and_prefixes_right_below(store):
    fill(store, ["a/b", "a/c", "a/d/e", "a/f/g"])
    # By their names: a/b and a/c, a/d/ and a/f/.
    assert store.list_dir("a/") == (["b", "c"], ["d", "f"])
    assert store.list_dir("b/") == ([], [])


# ---- what a store can't do


class Nothing(Store):
    """A store that can do nothing."""

    url = "nothing"


def test_b86_capabilities_are_separate():
    class Reads(Nothing):
        get = MemoryStore.get

    class Writes(Nothing):
        set, erase = MemoryStore.set, MemoryStore.erase

    class Lists(Nothing):
        list_prefix = MemoryStore.list_prefix

    kinds = (Nothing, Reads, Writes, Lists, MemoryStore)
    found = [kind().capabilities for kind in kinds]
    assert [(each.readable, each.writable, each.listable) for each in found] == [
        (False, False, False),
        (True, False, False),
        (False, True, False),
        (False, False, True),
        (True, True, True),
    ]


@for_each(
    "action",
    [
        lambda store: store.get("a"),
        lambda store: store.get_range("a", 0, 1),
        lambda store: list(store.get_ranges("a", [(0, 1)], Scratch())),
        lambda store: list(store.get_many(["a"], Scratch())),
        lambda store: store.get_partial_values([("a", (0, 1))]),
        lambda store: store.set("a", b"1"),
        lambda store: set_partial_values(store, [("a", 0, b"1")]),
        lambda store: store.erase("a"),
        lambda store: store.erase_values(["a"]),
        lambda store: store.erase_prefix("a/"),
        lambda store: store.list(),
        lambda store: store.list_prefix("a/"),
        lambda store: store.list_dir("a/"),
    ],
)
def test_b86_what_is_missing_is_an_error_that_says_so(action):
    with pytest.raises(UnsupportedError, match="nothing: not supported"):
        action(Nothing())


# ---- fallbacks


def test_b87_partial_operations_are_built_from_whole_ones():
    store = UnlistedStore()
    set_partial_values(store, [("a", 0, b"01"), ("b", 0, b"b")])
    assert parts(store, [("a", (1, 1)), ("c", (0, 1))]) == [b"1", None]
    store.erase_values(["a"])
    assert store.values == {"b": b"b"}


def test_b87_whole_operations_are_built_from_partial_ones():
    class Partial(StoreWithPartialAccess):
        url = "partial"

        def __init__(self):
            self.held = MemoryStore()

        def get_partial_values(self, key_ranges):
            return self.held.get_partial_values(key_ranges)

        def set_partial_values(self, key_start_values):
            set_partial_values(self.held, key_start_values)

        def erase_values(self, keys):
            self.held.erase_values(keys)

    store = Partial()
    store.set("a", b"0123456789")
    store.set("a", b"01")
    assert (store.get("a"), store.get("b"), store.get_range("a", 1, 1)) == (b"01", None, b"1")
    assert list(store.get_many(["a", "b"], Scratch())) == [b"01", None]
    store.erase("a")
    assert store.get("a") is None
    z = zarrdask.create_array(store, shape=4, dtype="u1", chunks=2)
    z[...] = [1, 2, 3, 4]
    assert zarrdask.open_array(store)[...].tolist() == [1, 2, 3, 4]


# ---- file systems


def test_b88_a_key_is_a_path_below_the_directory(tmp_path):
    store = LocalStore(str(tmp_path))
    store.set("meta/foo/bar.array.json", b"{}")
    assert (tmp_path / "meta" / "foo" / "bar.array.json").read_bytes() == b"{}"
    (tmp_path / "data" / "foo").mkdir(parents=True)
    (tmp_path / "data" / "foo" / "c0").write_bytes(b"1")
    assert store.get("data/foo/c0") == b"1"
    assert sorted(store.list()) == ["data/foo/c0", "meta/foo/bar.array.json"]
    assert store.list_dir("data/") == ([], ["foo"])
    store.erase("data/foo/c0")
    assert not (tmp_path / "data" / "foo" / "c0").exists()
