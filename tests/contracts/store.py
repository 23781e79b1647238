"""What every store must do. A test class inherits it and has a fixture ``store``, empty."""

import pickle

import pytest

from zarrdask.storage.base import Scratch, Store

ODD_NAMES = [
    "with space",
    "per%20cent",
    "hash#mark",
    "question?",
    "star*",
    "br[a]cket",
    "ünïcode-日本",
    "semi;colon:and,comma",
    ".hidden",
    "c.0.1",
    "{brace}",
]


class StoreContract:
    @pytest.fixture
    def store(self) -> Store:
        raise NotImplementedError

    def test_what_was_set_is_got(self, store):
        store.set("a/b", b"value")
        assert store.get("a/b") == b"value"
        assert isinstance(store.get("a/b"), bytes)

    @pytest.mark.parametrize("value", [bytearray(b"xyz"), memoryview(b"xyz")])
    def test_any_buffer_can_be_set(self, store, value):
        store.set("k", value)
        assert store.get("k") == b"xyz"

    def test_a_value_is_kept_when_the_buffer_changes_later(self, store):
        value = bytearray(b"before")
        store.set("k", value)
        value[:] = b"after!"
        assert store.get("k") == b"before"

    def test_an_empty_value_is_a_value(self, store):
        store.set("k", b"")
        assert store.get("k") == b""
        assert store.list_dir("") == (["k"], [])

    def test_a_missing_key_is_none(self, store):
        assert store.get("absent") is None
        assert store.get("absent/deeper") is None
        assert store.get_range("absent", 0, 4) is None
        assert store.get_range("absent", -4) is None
        assert list(store.get_ranges("absent", [(0, 1), (3, 2)], Scratch())) == [None, None]

    def test_a_key_below_a_key_is_missing(self, store):
        store.set("a", b"1")
        assert store.get("a/b") is None
        assert store.get_range("a/b", 0, 1) is None
        assert list(store.get_many(["a/b"], Scratch())) == [None]

    def test_a_prefix_is_no_key(self, store):
        store.set("a/b", b"1")
        assert store.get("a") is None
        assert [v is None for v in store.get_many(["a", "a/b"], Scratch())] == [True, False]

    def test_a_range_of_a_prefix_is_none(self, store):
        store.set("a/b", b"1")
        assert store.get_range("a", 0, 4) is None
        assert store.get_range("a", -4) is None
        assert list(store.get_ranges("a", [(0, 4)], Scratch())) == [None]

    def test_a_value_is_replaced(self, store):
        store.set("k", b"a longer value")
        store.set("k", b"short")
        assert store.get("k") == b"short"

    def test_get_many_gives_each_value_in_the_order_of_the_keys(self, store):
        values = {f"d/{n}": bytes([n]) * (n + 1) for n in range(9)}
        for key, value in values.items():
            store.set(key, value)
        keys = ["d/8", "absent", "d/0", "d/3", "d", "d/3", "gone/x"]
        found = [None if v is None else bytes(v) for v in store.get_many(keys, Scratch())]
        assert found == [values.get(key) for key in keys]

    def test_get_many_of_nothing_is_nothing(self, store):
        assert list(store.get_many([], Scratch())) == []

    @pytest.mark.parametrize("size", [2**16 - 1, 2**16, 2**16 + 1, 2**20 + 3])
    def test_values_around_and_above_the_scratch_size_are_whole(self, store, size):
        value = bytes(range(251)) * (size // 251 + 1)
        store.set("big", value[:size])
        store.set("small", b"s")
        found = [bytes(v) for v in store.get_many(["small", "big", "small", "big"], Scratch())]
        assert found == [b"s", value[:size], b"s", value[:size]]
        assert store.get("big") == value[:size]

    def test_a_range_is_part_of_the_value(self, store):
        store.set("k", b"0123456789")
        assert bytes(store.get_range("k", 2, 3)) == b"234"
        assert bytes(store.get_range("k", 4)) == b"456789"
        assert bytes(store.get_range("k", -3)) == b"789"
        assert bytes(store.get_range("k", -5, 2)) == b"56"
        assert bytes(store.get_range("k", -2, 2)) == b"89"
        assert bytes(store.get_range("k", 0, 0)) == b""

    def test_a_range_ends_where_the_value_ends(self, store):
        store.set("k", b"0123")
        assert bytes(store.get_range("k", 2, 100)) == b"23"
        assert bytes(store.get_range("k", 4, 1)) == b""
        assert bytes(store.get_range("k", 50, 1)) == b""
        assert bytes(store.get_range("k", -100)) == b"0123"

    def test_ranges_come_in_order_and_may_touch_overlap_and_be_far_apart(self, store):
        value = bytes(n % 256 for n in range(300_000))
        store.set("k", value)
        ranges = [(0, 4), (4, 4), (6, 10), (5_000, 1), (100_000, 7), (299_998, 2)]
        found = [bytes(v) for v in store.get_ranges("k", ranges, Scratch())]
        assert found == [value[start : start + size] for start, size in ranges]

    def test_ranges_outside_the_value_are_short(self, store):
        store.set("k", b"0123456789")
        ranges = [(0, 2), (8, 5), (50, 5)]
        found = [bytes(v) for v in store.get_ranges("k", ranges, Scratch())]
        assert found == [b"01", b"89", b""]

    def test_erasing_removes_one_key_and_missing_ones_are_no_error(self, store):
        store.set("a/b", b"1")
        store.set("a/c", b"2")
        store.erase("a/b")
        store.erase("a/b")
        store.erase("never/was")
        assert store.get("a/b") is None
        assert store.get("a/c") == b"2"

    def test_erase_prefix_removes_what_begins_with_it_and_no_more(self, store):
        for key in ("a/b", "a/c/d", "ab", "b/a/x"):
            store.set(key, b"1")
        store.erase_prefix("a/")
        store.erase_prefix("never/was/")
        assert list(store.list_prefix("")) == ["ab", "b/a/x"]

    @pytest.mark.parametrize(("name", "other"), [("a*", "ab"), ("a?", "ab"), ("a[b]", "ab")])
    def test_erase_prefix_takes_a_name_as_it_is_not_as_a_pattern(self, store, name, other):
        store.set(f"{name}/x", b"1")
        store.set(f"{other}/x", b"2")
        store.erase_prefix(f"{name}/")
        assert list(store.list_prefix("")) == [f"{other}/x"]

    def test_listing_a_directory_gives_keys_and_prefixes_sorted(self, store):
        for key in ("z", "a", "d/x", "d/e/y", "c/q"):
            store.set(key, b"1")
        assert store.list_dir("") == (["a", "z"], ["c", "d"])
        assert store.list_dir("d/") == (["x"], ["e"])
        assert store.list_dir("nothing/") == ([], [])

    def test_listing_a_prefix_gives_every_key_below(self, store):
        for key in ("z", "d/x", "d/e/y", "dd/q"):
            store.set(key, b"1")
        assert sorted(store.list_prefix("d/")) == ["d/e/y", "d/x"]
        assert sorted(store.list_prefix("")) == ["d/e/y", "d/x", "dd/q", "z"]
        assert list(store.list_prefix("nothing/")) == []

    def test_an_empty_store_lists_nothing(self, store):
        assert store.list_dir("") == ([], [])
        assert list(store.list_prefix("")) == []

    @pytest.mark.parametrize("name", ODD_NAMES)
    def test_names_with_odd_characters_are_names(self, store, name):
        store.set(f"{name}/{name}", b"odd")
        store.set("plain", b"plain")
        assert store.get(f"{name}/{name}") == b"odd"
        assert [bytes(v) for v in store.get_many([f"{name}/{name}"], Scratch())] == [b"odd"]
        assert bytes(store.get_range(f"{name}/{name}", 1, 1)) == b"d"
        assert store.list_dir("") == (["plain"], [name])
        assert store.list_dir(f"{name}/") == ([name], [])
        assert sorted(store.list_prefix("")) == sorted([f"{name}/{name}", "plain"])
        store.erase(f"{name}/{name}")
        assert store.get(f"{name}/{name}") is None
        assert store.get("plain") == b"plain"

    def test_a_store_pickles_to_an_equal_one_that_sees_the_same_values(self, store):
        store.set("k", b"1")
        again = pickle.loads(pickle.dumps(store))
        assert again == store
        assert hash(again) == hash(store)
        assert again.url == store.url
        assert again.get("k") == b"1"

    def test_a_stamp_is_a_text(self, store):
        store.set("k", b"1")
        assert isinstance(store.stamp("k"), str)
        assert isinstance(store.stamp("absent"), str)
