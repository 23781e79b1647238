"""Stores that users wrote when more methods of stores were public."""

import pytest

from zarrdask.runtime.scratch import Scratch
from zarrdask.storage import MemoryStore, Store, set_partial_values, value_sizes
from zarrdask.storage.places import key_stamp, store_token, store_uri
from zarrdask.storage.upkeep import reading


def test_what_a_store_defines_under_a_former_name_is_used():
    with pytest.warns(FutureWarning, match=r"is now called _\w+; rename it") as warnings:

        class Former(MemoryStore):
            @property
            def token(self):
                return "t"

            @property
            def uri(self):
                return "u:"

            def stamp(self, key):
                return key * 2

            def size(self, key):
                return 7

            def reading(self, key, scratch):
                return key

    assert len(warnings) == 5
    store = Former()
    assert (store_token(store), store_uri(store), key_stamp(store, "k")) == ("t", "u:", "kk")
    assert ([*value_sizes(store, "ab")], reading(store, "k", Scratch())) == ([7, 7], "k")


def test_attributes_of_a_store_that_are_none_of_these_methods_mean_nothing():
    class Own(MemoryStore):
        size = 5
        directory = "/elsewhere"

        def token(self):
            raise AssertionError

    store = Own()
    store.set("a", b"123")
    assert [*value_sizes(store, "a")] == [3]
    assert store_token(store) != ""


def test_a_method_that_is_no_longer_public_says_what_to_call_instead():
    store = MemoryStore()
    with pytest.raises(AttributeError, match=r"no attribute 'size'; call zarrdask.storage.value"):
        store.size("a")
    with pytest.raises(AttributeError, match=r"'nothing'$"):
        _ = store.nothing


def test_a_store_that_stores_parts_itself_is_called_for_it():
    parts = []

    class OwnParts(Store):
        url = "own:"

        def set_partial_values(self, key_start_values):
            parts.extend(key_start_values)

    set_partial_values(OwnParts(), [("a", 0, b"1")])
    assert parts == [("a", 0, b"1")]


def test_an_error_within_a_property_of_a_store_is_raised_as_it_is():
    class Mistaken(MemoryStore):
        @property
        def url(self):
            return self.pth

    with pytest.raises(AttributeError, match="no attribute 'pth'"):
        _ = Mistaken().url
