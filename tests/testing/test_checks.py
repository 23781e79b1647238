"""The checks of what a store returns fail for wrong values."""

import pytest

from zarrdask.storage.memory import MemoryStore
from zarrdask.testing.checks import absent, plain, same


def test_other_values_are_reported():
    same([1, b"a"], [1, b"a"])
    with pytest.raises(AssertionError, match="found 1, expected 2"):
        same(1, 2)


def test_values_are_copied_while_they_are_valid():
    memory = bytearray(1)

    def values():
        for number in range(3):
            memory[0] = number
            yield memoryview(memory)
        yield None

    assert plain(values()) == [b"\0", b"\1", b"\2", None]


def test_a_key_is_absent_in_every_way_of_reading_it():
    absent(MemoryStore(), "a")
    store = MemoryStore()
    store.set("a", b"1")
    with pytest.raises(AssertionError):
        absent(store, "a")

    class Wrong(MemoryStore):
        def get_range(self, key, start, length=None):
            return b""

    with pytest.raises(AssertionError):
        absent(Wrong(), "a")
