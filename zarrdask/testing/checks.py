"""Checks of what a store returns."""

import reprlib
from collections.abc import Iterable
from typing import Any

from zarrdask.formats.byte_ranges import Buffer
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.base import Store
from zarrdask.storage.listing import value_sizes


def same(value: Any, expected: Any) -> None:
    """Check that two values are equal."""
    if value != expected:
        raise AssertionError(f"found {reprlib.repr(value)}, expected {reprlib.repr(expected)}")


def plain(values: Iterable[Buffer | None]) -> list[bytes | None]:
    """Return values as bytes, copying each while it is valid."""
    return [None if value is None else bytes(value) for value in values]


def absent(store: Store, key: str) -> None:
    """Check that no way of reading a key finds a value."""
    same((store.get(key), next(value_sizes(store, [key]))), (None, None))
    same((store.get_range(key, 0, 4), store.get_range(key, -4)), (None, None))
    same(list(store.get_ranges(key, [(0, 1), (3, 2)], Scratch())), [None, None])
    same(list(store.get_many([key], Scratch())), [None])
    same(list(store.get_partial_values([(key, (0, None))])), [None])
