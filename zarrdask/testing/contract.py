"""The tests of a store that reads, writes and lists."""

import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from zarrdask.errors import MetadataError, SelectionError
from zarrdask.formats.byte_ranges import Buffer, Version
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store
from zarrdask.storage.listing import key_stamp, value_sizes
from zarrdask.storage.partial_access import set_partial_values
from zarrdask.testing.checks import absent, plain, same

#: Names with characters that are special in file systems, URLs or shells.
ODD_NAMES = (
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
    "case",
    "CASE",
)
NOT_KEYS: tuple[Any, ...] = ("", "a/", "/", "a\udc80", None, 5)
NOT_PREFIXES: tuple[Any, ...] = ("a", "a/b", "a\udc80/", None)


class StoreContract:
    """The tests of a store that reads, writes and lists (conformance B.9, C.9).

    A subclass whose name begins with ``Test`` overrides the fixture `store`.
    """

    @pytest.fixture
    def store(self) -> Store:
        """Return an empty store, which must be a new one for each test."""
        raise NotImplementedError("override this fixture; it must return an empty store")

    # ---- values

    def test_it_can_read_write_and_list(self, store: Store) -> None:
        has = store.capabilities
        same((has.readable, has.writable, has.listable), (True, True, True))

    def test_a_stored_value_is_read(self, store: Store) -> None:
        store.set("a/b", b"value")
        same(store.get("a/b"), b"value")
        same(type(store.get("a/b")), bytes)

    def test_any_buffer_can_be_set_and_may_change_later(self, store: Store) -> None:
        value = bytearray(b"before")
        for key, buffer in (("a", value), ("b", memoryview(b"before"))):
            store.set(key, buffer)
        value[:] = b"after!"
        same((store.get("a"), store.get("b")), (b"before", b"before"))

    def test_many_values_are_set(self, store: Store) -> None:
        buffer = bytearray(2)

        def values() -> Iterator[tuple[str, bytearray]]:
            for number in range(10, 30):
                buffer[:] = str(number).encode()
                yield f"a/{number}", buffer  # valid until the next one is taken

        store.set_many(values())
        for number in range(10, 30):
            same(store.get(f"a/{number}"), str(number).encode())

    def test_values_that_threads_store_at_the_same_time_all_stay(self, store: Store) -> None:
        barrier = threading.Barrier(4)

        def store_some(thread: int) -> None:
            barrier.wait(60)
            for number in range(10):
                store.set(f"a/{thread}.{number}", b"%d" % number)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(store_some, range(4)))
        for thread in range(4):
            for number in range(10):
                same(store.get(f"a/{thread}.{number}"), b"%d" % number)

    def test_a_value_is_replaced_and_may_be_empty(self, store: Store) -> None:
        for value in (b"a longer value", b"short", b""):
            store.set("k", value)
            same((store.get("k"), next(value_sizes(store, ["k"]))), (value, len(value)))
        same(store.list_dir(""), (["k"], []))

    def test_what_is_missing_is_none(self, store: Store) -> None:
        store.set("a/b", b"1")
        # No value has a prefix of a key, or what is below a key.
        for key in ("absent", "absent/deeper", "a", "a/b/c"):
            absent(store, key)
        same(plain(store.get_many(["a", "a/b"], Scratch())), [None, b"1"])

    def test_names_with_odd_characters_are_names(self, store: Store) -> None:
        values = {f"{name}/{name}": name.encode() for name in ODD_NAMES} | {"plain": b"plain"}
        for key, value in values.items():
            store.set(key, value)
        same(plain(store.get_many(list(values), Scratch())), list(values.values()))
        same(store.list_dir(""), (["plain"], sorted(ODD_NAMES)))
        same(sorted(store.list_prefix("")), sorted(values))
        for name in ODD_NAMES:
            key = f"{name}/{name}"
            same(store.get(key), values[key])
            same(plain([store.get_range(key, 1, 1)]), [values[key][1:2]])
            same(store.list_dir(f"{name}/"), ([name], []))
            store.erase(key)
            del values[key]
            same(sorted(store.list_prefix("")), sorted(values))

    # ---- several values

    def test_get_many_gives_each_value_in_the_order_of_the_keys(self, store: Store) -> None:
        values = {f"d/{n}": bytes([n]) * (n + 1) for n in range(9)}
        for key, value in values.items():
            store.set(key, value)
        keys = ["d/8", "absent", "d/0", "d/3", "d", "d/3", "gone/x"]
        same(plain(store.get_many(keys, Scratch())), [values.get(key) for key in keys])
        same(list(store.get_many([], Scratch())), [])

    def test_values_around_and_above_the_scratch_size_are_whole(self, store: Store) -> None:
        store.set("small", b"s")
        for size in (2**16 - 1, 2**16, 2**16 + 1, 2**20 + 3):
            value = (bytes(range(251)) * (size // 251 + 1))[:size]
            store.set("big", value)
            values = plain(store.get_many(["small", "big", "small", "big"], Scratch()))
            same(values, [b"s", value, b"s", value])
            same(store.get("big"), value)

    def test_a_range_is_part_of_the_value_and_ends_where_that_ends(self, store: Store) -> None:
        store.set("k", digits := b"0123456789")
        ranges = [(2, 3), (4, None), (-3, None), (-5, 2), (-2, 2), (0, 0), (8, 100), (10, 1)]
        expected = [b"234", b"456789", b"789", b"56", b"89", b"", b"89", b""]
        ranges += [(50, 1), (-100, None), (-2, 100), (-100, 3), (-100, 100)]
        expected += [b"", digits, b"89", b"012", digits]
        same(plain(store.get_range("k", *each) for each in ranges), expected)
        same(plain(store.get_partial_values([("k", each) for each in ranges])), expected)

    def test_ranges_come_in_order_and_may_touch_overlap_and_be_far_apart(
        self, store: Store
    ) -> None:
        value = bytes(n % 256 for n in range(300_000))
        store.set("k", value)
        ranges = [(0, 4), (4, 4), (6, 10), (5_000, 1), (100_000, 7), (299_998, 2)]
        parts = plain(store.get_ranges("k", ranges, Scratch()))
        same(parts, [value[start : start + size] for start, size in ranges])
        # Ranges that end, or start, outside of the value are short.
        parts = plain(store.get_ranges("k", [(299_998, 5), (300_050, 5)], Scratch()))
        same(parts, [value[-2:], b""])

    def test_partial_values_are_in_the_order_of_the_requests(self, store: Store) -> None:
        store.set("a", b"0123456789")
        store.set("b/c", b"abc")
        keys = ["a", "b/c", "a", "gone", "a", "a", "b/c", "gone"]
        ranges = [(5, 2), (0, None), (0, 3), (0, 1), (8, None), (0, 3), (1, 9), (3, None)]
        expected = [b"56", b"abc", b"012", None, b"89", b"012", b"bc", None]
        same(plain(store.get_partial_values(zip(keys, ranges, strict=True))), expected)
        same(list(store.get_partial_values([])), [])

    def test_partial_values_are_set_and_the_rest_stays(self, store: Store) -> None:
        store.set("a", b"0123456789")
        parts: list[tuple[str, int, Buffer]]
        parts = [("a", 8, b"xyz"), ("b/c", 0, b"new"), ("a", 1, bytearray(b"AB"))]
        set_partial_values(store, parts)
        same((store.get("a"), store.get("b/c")), (b"0AB34567xyz", b"new"))
        set_partial_values(store, [("a", 13, b"5"), ("b/d", 1, b"x")])  # a gap holds zeros
        same((store.get("a"), store.get("b/d")), (b"0AB34567xyz\0\x005", b"\0x"))

    def test_overlapping_partial_values_are_an_error_and_nothing_is_written(
        self, store: Store
    ) -> None:
        store.set("a", b"0123")
        for start in (1, 0, -3):
            with pytest.raises(SelectionError) as caught:
                set_partial_values(store, [("b", 0, b"x"), ("a", 0, b"AB"), ("a", start, b"CD")])
            same(caught.value.key, "a")
            same((store.get("a"), store.get("b")), (b"0123", None))

    # ---- creating

    def test_a_value_is_created_where_there_is_none(self, store: Store) -> None:
        created = [store.create("a/b", bytearray(b"first")), store.create("a/b", b"second")]
        same((created, store.get("a/b")), ([True, False], b"first"))
        same([store.create("a/d", b""), store.create("a/d", b"more")], [True, False])
        store.erase("a/b")
        same([store.create("a/b", b"third")], [True])
        same((store.get("a/b"), store.get("a/d")), (b"third", b""))
        same(sorted(store.list()), ["a/b", "a/d"])

    def test_only_one_of_several_simultaneous_calls_creates_a_value(self, store: Store) -> None:
        if not store.capabilities.create_exclusive:
            return
        for turn in range(10):
            barrier = threading.Barrier(4)

            def create(number: int, key: str = f"a/{turn}", barrier: Any = barrier) -> bool:
                barrier.wait(60)
                return store.create(key, b"%d" % number)

            with ThreadPoolExecutor(4) as pool:
                created = list(pool.map(create, range(4)))
            same(sorted(created), [False, False, False, True])
            same(store.get(f"a/{turn}"), b"%d" % created.index(True))

    def test_a_value_is_replaced_if_it_is_the_one_that_was_read(self, store: Store) -> None:
        if not store.capabilities.compare_and_swap:
            return
        same(store.get_tagged("k"), (None, None))
        same([store.swap("k", bytearray(b"1"), None), store.swap("k", b"2", None)], [True, False])
        value, tag = store.get_tagged("k")
        same(bytes(value or b""), b"1")
        same([store.swap("k", b"3", tag), store.swap("k", b"4", tag)], [True, False])
        same(store.get("k"), b"3")
        store.erase("k")
        same((store.swap("k", b"5", tag), store.get("k")), (False, None))

    def test_parts_are_of_the_version_that_is_asked_for(self, store: Store) -> None:
        if not store.capabilities.etags:
            return
        same(store.get_part("k", 0, 4), None)
        store.set("k", b"0123456")
        part = store.get_part("k", 0, 4)
        same(part and (bytes(part.value), part.size), (b"0123", 7))
        end = store.get_part("k", -3, 3)
        same(end and (bytes(end.value)[-3:], end.tag), (b"456", part and part.tag))
        tag = part and part.tag
        if tag is None:
            return
        part = store.get_part("k", 4, 4, tag)
        same(part and (bytes(part.value), part.size, part.tag), (b"456", 7, tag))
        store.set("k", b"6543210")
        part = store.get_part("k", 4, 4, tag)
        same([part and part.tag].count(tag), 0)

    def test_a_value_that_has_not_changed_is_not_sent_again(self, store: Store) -> None:
        if not store.capabilities.versions:
            return
        same(store.get_if_changed("k", None), Version())
        store.set("k", b"0123456")
        first = store.get_if_changed("k", None)
        same((bytes(first.value or b""), first.size), (b"0123456", 7))
        part = store.get_if_changed("k", None, 2, 3)
        same((bytes(part.value or b""), part.size), (b"234", 7))
        end = store.get_if_changed("k", None, -3)
        same(bytes(end.value or b""), b"456")
        same(bytes(store.get_if_changed("k", None, -5, 2).value or b""), b"23")
        # A store may have no tag for a value that has just been stored.
        for tag in {first.tag, part.tag, end.tag} - {None}:
            again = store.get_if_changed("k", tag), store.get_if_changed("k", tag, 2, 3)
            same(again, (Version(tag=tag),) * 2)
        store.set("k", b"6543210")
        changed = store.get_if_changed("k", first.tag)
        same(bytes(changed.value or b""), b"6543210")
        store.erase("k")
        same(store.get_if_changed("k", changed.tag), Version())

    # ---- erasing

    def test_keys_are_erased_and_missing_ones_are_no_error(self, store: Store) -> None:
        for key in ("a/b", "a/c", "b/c", "b/d"):
            store.set(key, b"1")
        for key in ("a/b", "a/b", "never/was"):
            store.erase(key)
        same((store.get("a/b"), store.get("a/c")), (None, b"1"))
        store.erase_values(["b/c", "never/was", "a/c"])
        same(sorted(store.list()), ["b/d"])

    def test_erase_prefix_removes_what_begins_with_it_and_no_more(self, store: Store) -> None:
        for key in ("a/b", "a/c/d", "aa", "ab/x", "b/a/x"):
            store.set(key, b"1")
        store.erase_prefix("a/")
        store.erase_prefix("never/was/")
        same(sorted(store.list_prefix("")), ["aa", "ab/x", "b/a/x"])
        for name in ("a*", "a?", "a[b]"):  # names, not patterns
            store.set(f"{name}/x", b"1")
            store.erase_prefix(f"{name}/")
        same(sorted(store.list()), ["aa", "ab/x", "b/a/x"])
        store.erase_prefix("")
        same(list(store.list()), [])

    # ---- listing

    def test_keys_and_prefixes_are_listed(self, store: Store) -> None:
        same((store.list_dir(""), list(store.list())), (([], []), []))
        keys = ["a", "c/q", "d/e/y", "d/x", "dd/q", "z"]
        for key in keys[::-1]:
            store.set(key, b"1")
        for prefix in ("", "/"):
            same(store.list_dir(prefix), (["a", "z"], ["c", "d", "dd"]))
        same((store.list_dir("d/"), store.list_dir("nothing/")), ((["x"], ["e"]), ([], [])))
        same(sorted(store.list_prefix("d/")), ["d/e/y", "d/x"])
        same((sorted(store.list_prefix("")), sorted(store.list())), (keys, keys))
        same(list(store.list_prefix("nothing/")), [])

    # ---- what is no key

    def test_what_is_no_key_is_an_error_and_nothing_is_done(self, store: Store) -> None:
        store.set("a/b", b"1")
        for key in NOT_KEYS:
            with pytest.raises(MetadataError):
                store.get_partial_values([("a/b", (0, 1)), (key, (0, 1))])
            with pytest.raises(MetadataError):
                set_partial_values(store, [("a/b", 0, b"2"), (key, 0, b"2")])
            with pytest.raises(MetadataError):
                store.erase_values(["a/b", key])
            same([(each, store.get(each)) for each in store.list()], [("a/b", b"1")])

    def test_what_is_no_prefix_is_an_error_and_nothing_is_done(self, store: Store) -> None:
        store.set("a/b/x", b"1")
        for prefix in NOT_PREFIXES:
            for action in (store.erase_prefix, store.list_dir, lambda at: [*store.list_prefix(at)]):
                with pytest.raises(MetadataError):
                    action(prefix)
            same(list(store.list()), ["a/b/x"])

    def test_a_store_pickles_to_an_equal_one_that_sees_the_same_values(self, store: Store) -> None:
        store.set("k", b"1")
        again = pickle.loads(pickle.dumps(store))
        same((again == store, hash(again) == hash(store)), (True, True))
        same((again.url, again.identity.token), (store.url, store.identity.token))
        same(again.get("k"), b"1")

    # ---- what a store may leave out

    def test_entries_are_the_keys_and_have_the_sizes_of_values(self, store: Store) -> None:
        keys = ["a/0", "a/1", "a/2", "b"]
        for number, key in enumerate(keys):
            store.set(key, bytes(number))
        for bounds in (("", None), ("a/0", None), ("a/0", "a/1"), ("b", None)):
            after, until = bounds
            listed = [key for key in keys[:3] if after < key and (until is None or key <= until)]
            entries = {entry.key: entry.size for entry in store.entries("a/", after, until)}
            same(sorted(entries), listed)
            for key, size in entries.items():
                same(keys.index(key) if size is None else size, keys.index(key))

    def test_a_status_has_the_size_and_a_stamp_that_changes(self, store: Store) -> None:
        same(store.stat("a"), None)
        stamps = set()
        for value in (b"first", b"2nd"):
            store.set("a", value)
            entry = store.stat("a")
            same(entry and (entry.key, entry.size), ("a", len(value)))
            stamps.add(entry and entry.stamp)
        same(len(stamps), 2 if store.capabilities.stamps else 1)

    def test_an_opened_value_is_read_in_parts(self, store: Store) -> None:
        store.set("a", b"0123456789")
        with store.reading("a", Scratch()) as value:
            same(plain([value.part(2, 3), value.part(-2, 2)]), [b"234", b"89"])
            same(plain(value.parts([(0, 1), (4, 2)])), [b"0", b"45"])
            if store.capabilities.keeps_open:
                same(value.size, 10)  # type: ignore[attr-defined]
                store.set("a", b"another value")
                same(plain([value.part(0, 10)]), [b"0123456789"])
        with store.reading("absent", Scratch()) as value:
            same(plain([value.part(0, 1), *value.parts([(0, 1)])]), [None, None])

    def test_views_for_chunks_and_for_temporary_values_can_be_written(self, store: Store) -> None:
        store.check_writable(erasing=["c/", "c/0"])
        store.set("c/0", b"1")
        same(store.for_chunks().get("c/0"), b"1")
        store.for_chunks().set("c/1", b"2")
        same(store.get("c/1"), b"2")
        temporary, prefix = store.temporary("c/packed/")
        temporary.set(f"{prefix}0", b"3")
        same(temporary.get(f"{prefix}0"), b"3")
        temporary.erase_prefix(prefix)
        store.tidy("c/")
        store.tidy("", recursive=True)
        same(sorted(store.list()), ["c/0", "c/1"])

    def test_it_has_a_name_a_uri_and_a_stamp(self, store: Store) -> None:
        store.set("k", b"1")
        texts = [store.url, store.identity.uri, store.identity.token]
        texts += [key_stamp(store, "k"), key_stamp(store, "absent")]
        same([type(text) for text in texts], [str] * 5)
