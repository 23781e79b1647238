"""Parts of values: joined requests, and a value that is read part by part."""

import dask

from tests.storage.latency import FarStore
from zarrdask.runtime.scratch import Scratch
from zarrdask.storage.value_parts import StoredValue, joined_parts

RANGES = [("b", 2, 3), ("a", 8, 2), ("b", -2, None), ("c", 0, 1), ("a", 0, 4)]


def stored():
    store = FarStore(seconds=0)
    store.set("a", b"0123456789")
    store.set("b", b"abcdefgh")
    store.clear()
    return store


def test_parts_come_with_the_number_of_their_range():
    parts = dict(joined_parts(stored(), RANGES))
    assert [None if parts[n] is None else bytes(parts[n]) for n in range(len(RANGES))] == [
        b"cde",
        b"89",
        b"gh",
        None,
        b"0123",
    ]


def test_ranges_of_a_value_that_are_near_each_other_are_one_request():
    for gap, requests in ((4, 4), (3, 5)):
        store = stored()
        with dask.config.set({"zarrdask.coalesce-gap": gap}):
            assert len([*joined_parts(store, RANGES)]) == len(RANGES)
        assert len(store.calls) == requests


def test_a_value_is_read_part_by_part():
    value = StoredValue(stored(), "b", Scratch())
    assert [bytes(value.part(1, 2)), bytes(value.part(-2, 2))] == [b"bc", b"gh"]
    assert [bytes(part) for part in value.parts([(0, 1), (4, 3)])] == [b"a", b"efg"]
    missing = StoredValue(stored(), "c", Scratch())
    assert [missing.part(0, 1), *missing.parts([(0, 1)])] == [None, None]
