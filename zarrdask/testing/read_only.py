"""The tests of a store that can't be written."""

import pickle
from collections.abc import Callable

import pytest

from zarrdask.errors import ReadOnlyError, UnsupportedError
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store
from zarrdask.storage.listing import value_sizes
from zarrdask.storage.partial_access import set_partial_values
from zarrdask.testing.checks import absent, plain, same

#: The values that a store must have for `ReadOnlyStoreContract`.
VALUES = {
    "a/b": b"0123456789",
    "a/c/d": b"",
    "e/f/g": bytes(range(256)) * 300,
    "zarr.json": b"{}",
}
NOT_SUPPORTED = (UnsupportedError, ReadOnlyError)


class ReadOnlyStoreContract:
    """The tests of a store that can't be written, be it listable or not.

    A subclass whose name begins with ``Test`` overrides the fixture `store`.
    """

    @pytest.fixture
    def store(self) -> Store:
        """Return a store that holds `VALUES`, and nothing else."""
        raise NotImplementedError("override the fixture: its store holds zarrdask.testing.VALUES")

    def test_it_can_read_and_not_write(self, store: Store) -> None:
        same((store.capabilities.readable, store.capabilities.writable), (True, False))

    def test_values_are_got_whole_and_in_parts(self, store: Store) -> None:
        for key, value in VALUES.items():
            same((store.get(key), next(value_sizes(store, [key]))), (value, len(value)))
            same(plain(store.get_many([key, "absent"], Scratch())), [value, None])
            parts = [store.get_range(key, 2, 3), store.get_range(key, 4), store.get_range(key, -3)]
            same(plain(parts), [value[2:5], value[4:], value[-3:]])
            ranges = [(0, 2), (1, 4), (70_000, 9)]
            expected: list[bytes | None] = [value[start : start + n] for start, n in ranges]
            same(plain(store.get_ranges(key, ranges, Scratch())), expected)
            requests = [(key, each) for each in ranges[::-1]]
            same(plain(store.get_partial_values(requests)), expected[::-1])

    def test_what_is_missing_is_none(self, store: Store) -> None:
        for key in ("absent", "a", "a/b/c", "a/c/x"):
            absent(store, key)

    def test_it_lists_or_says_that_it_cannot(self, store: Store) -> None:
        if not store.capabilities.listable:
            for action in (store.list_dir, store.list_prefix, lambda _: store.list()):
                with pytest.raises(UnsupportedError):
                    list(action(""))
            return
        same(sorted(store.list()), sorted(VALUES))
        same(sorted(store.list_prefix("a/")), ["a/b", "a/c/d"])
        same(store.list_dir(""), (["zarr.json"], ["a", "e"]))
        same(store.list_dir("a/"), (["b"], ["c"]))
        same(store.list_dir("b/"), ([], []))

    def test_writing_is_not_supported_and_changes_nothing(self, store: Store) -> None:
        actions: tuple[Callable[[], object], ...] = (
            lambda: store.set("new", b"1"),
            lambda: store.create("new", b"1"),
            lambda: set_partial_values(store, [("a/b", 0, b"1")]),
            lambda: store.erase("a/b"),
            lambda: store.erase_values(["a/b"]),
            lambda: store.erase_prefix("a/"),
        )
        for action in actions:
            with pytest.raises(NOT_SUPPORTED):
                action()
        same([store.get(key) for key in VALUES], list(VALUES.values()))
        same(store.get("new"), None)

    def test_it_pickles_to_one_that_reads_the_same(self, store: Store) -> None:
        again = pickle.loads(pickle.dumps(store))
        same((again == store, again.url), (True, store.url))
        same(again.get("a/b"), VALUES["a/b"])
